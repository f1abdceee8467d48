import numpy as np
import pytest

from autograd.gradcheck import check_op
from examples import swap_a_layer as example
from minigpt.config import Model
from minigpt.layers import LayerNorm, RMSNorm
from minigpt.models import GPT
from tests.examples.running import run


def test_the_op_and_the_layer_keep_their_contracts_and_the_wrong_one_is_refused():
    assert "gradient of input 0" in example.check()


def test_the_op_can_be_checked_on_the_strict_device():
    check_op(example.squared_relu, [np.random.default_rng(1).normal(size=(3, 4))], strict=True)


@pytest.mark.parametrize("name, norm", [("as it is", LayerNorm), ("norm=RMSNorm", RMSNorm)])
def test_one_line_swaps_every_norm(name, norm):
    model = GPT(Model(d_model=8, n_layers=2, n_heads=2, vocab_size=5), example.VARIANTS[name])
    norms = [model.norm, *(n for block in model.blocks for n in (block.norm1, block.norm2))]
    assert [type(n) for n in norms] == [norm] * 5


def test_no_steps_are_refused():
    with pytest.raises(AssertionError, match="at least 1"):
        run("swap_a_layer.py", "--steps", 0)


def test_it_trains_every_variant(tmp_path_factory):
    said = run("swap_a_layer.py", "--steps", 3, MINIGPT_CACHE=str(tmp_path_factory.mktemp("cache")))
    numbers = {name: int(said.split(f"\n{name} ")[1].split()[0].replace(",", "")) for name in example.VARIANTS}
    assert numbers["as it is"] == numbers["feed_forward=SquaredFeedForward"]
    assert numbers["as it is"] - numbers["norm=RMSNorm"] == 5 * 48         # five norms without their biases
