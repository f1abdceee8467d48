import numpy as np
import pytest

import comm
from examples import mlp_digits
from minigpt.models import MLP
from tests.examples.running import DIGITS, run
from tests.ranks import mpirun


def quiet(line):
    """Nobody listens."""


def test_fact_1_the_network_has_13_002_parameters():
    assert mlp_digits.count(MLP(mlp_digits.SIZES)) == (12_960, 42)


def test_fact_1_more_than_90_percent_of_held_out_digits():
    pytest.importorskip("sklearn")
    _, reached = mlp_digits.train(comm.world(), mlp_digits.load(), epochs=4, say=quiet)
    assert reached > 0.9


def test_fact_1_more_than_90_percent_of_mnist():
    if not DIGITS.exists():
        pytest.skip("needs ../shared/data/mnist10k.npz")
    arrays = mlp_digits.load(str(DIGITS))
    assert arrays[0].shape == (8500, 784) and arrays[0].dtype == np.float32 and arrays[0].max() == 1
    _, reached = mlp_digits.train(comm.world(), arrays, epochs=4, say=quiet)
    assert reached > 0.9


def test_two_ranks_learn_what_one_learns():
    random = np.random.default_rng(1)
    x, y = random.random((70, 784), np.float32), random.integers(0, 10, 70)
    train = lambda group: mlp_digits.train(group, (x, y, x, y), epochs=2, say=quiet)[0].layers[2].weight.numpy()
    alone, both = comm.run(1, train), comm.run(2, train)
    np.testing.assert_array_equal(*both)
    np.testing.assert_allclose(both[0], alone[0], rtol=0, atol=1e-5)


def test_it_says_what_the_network_saw(tmp_path):
    random = np.random.default_rng(1)
    np.savez(tmp_path / "mine.npz", x=random.integers(0, 256, (60, 784), np.uint8), y=random.integers(0, 10, 60))
    said = run("mlp_digits.py", "--data", tmp_path / "mine.npz", "--epochs", 3)
    assert "12,960 weights + 42 biases = 13,002 parameters" in said
    assert "51 digits to learn from, 9 held out, on 1 rank(s)" in said and "Held-out accuracy" in said


@pytest.mark.mpi
def test_fact_1_under_mpirun_as_well():
    pytest.importorskip("sklearn")
    ended = mpirun(2, "examples/mlp_digits.py", "--epochs", 3)
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count("13,002 parameters") == 1 and "on 2 rank(s)" in ended.stdout
    assert float(ended.stdout.split("Held-out accuracy ")[1].split("%")[0]) > 90
