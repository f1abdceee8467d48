"""Several ranks train as one does: the same losses, gradients and weights."""

import numpy as np
import pytest

from autograd.backend import to_device, to_host
from minigpt.models.batch import IGNORED
from minigpt.train.trainer import Trainer
from tests.minigpt import tiny
from tests.ranks import run


class Masked:
    """A loader whose samples count unevenly: of sample n, targets beyond n % 4 + 1 are ignored."""

    def __init__(self, loader):
        self.loader = loader

    def batch(self, step, micro=0):
        window = self.loader.batch(step, micro)
        counted = window.positions[None, :] <= window.samples[:, None] % 4
        return window._replace(targets=np.where(counted, window.targets, IGNORED))


def train(group, settings, steps=3, masked=False):
    """(losses, gradient norms, weights) of `steps` steps."""
    trainer = Trainer(settings, tiny.corpus(), group)
    if masked:
        trainer.loader = Masked(trainer.loader)
    figures = [trainer.read(*trainer.train_step()) for _ in range(steps)]
    return *zip(*figures), to_host(trainer.optimizer.flat.data).copy()


def layouts(whole, *words):
    """A configuration for `whole` samples a step, by (ranks, accumulate)."""
    def of(ranks, accumulate):
        return tiny.config(f"data.batch_size={whole // ranks // accumulate}", f"train.accumulate={accumulate}",
                           "train.dtype=float64", *words)
    return of


def assert_equal(results, expected):
    for losses, norms, weights in results:
        np.testing.assert_allclose(losses, expected[0], rtol=1e-10)
        np.testing.assert_allclose(norms, expected[1], rtol=1e-10)
        np.testing.assert_allclose(weights, expected[2], rtol=1e-8, atol=1e-10)
        np.testing.assert_array_equal(weights, results[0][2])


@pytest.mark.parametrize("ranks, accumulate", [(1, 6), (2, 1), (3, 2), (4, 1), (5, 1), (2, 3)])
def test_case_47_48_50_any_cut_of_a_step_equals_the_whole(ranks, accumulate):
    of = layouts(60 if ranks == 5 else 12)
    expected, = run(1, lambda group: train(group, of(1, 1)))
    assert_equal(run(ranks, lambda group: train(group, of(ranks, accumulate))), expected)


@pytest.mark.parametrize("ranks, accumulate", [(1, 4), (2, 1), (4, 3)])
def test_case_51_every_counted_token_weighs_the_same_on_ranks_and_in_micro_batches(ranks, accumulate):
    of = layouts(12)
    expected, = run(1, lambda group: train(group, of(1, 1), masked=True))
    assert_equal(run(ranks, lambda group: train(group, of(ranks, accumulate), masked=True)), expected)


def test_dropout_is_the_same_in_every_layout():
    of = layouts(12, "model.dropout=0.3")
    expected, = run(1, lambda group: train(group, of(1, 1)))
    assert_equal(run(3, lambda group: train(group, of(3, 2))), expected)
    without, = run(1, lambda group: train(group, layouts(12)(1, 1)))
    assert abs(expected[0][0] - without[0][0]) > 1e-6


def test_float32_copies_stay_equal_to_the_last_bit():
    results = run(3, lambda group: train(group, tiny.config("train.debug=true"), steps=5))
    for _, _, weights in results:
        np.testing.assert_array_equal(weights, results[0][2])


def test_the_weights_of_rank_0_become_everyones():
    def weights(group):
        return to_host(Trainer(tiny.with_seed(tiny.config(), group.rank), tiny.corpus(), group).optimizer.flat.data)

    zero, one, two = run(3, weights)
    np.testing.assert_array_equal(zero, one)
    np.testing.assert_array_equal(zero, two)
    assert zero.any()


def test_debug_mode_finds_a_copy_that_drifted_by_one_bit():
    def drift(group):
        trainer = Trainer(tiny.config("train.debug=true"), tiny.corpus(), group)
        trainer.train_step()
        if group.rank == 1:
            host = to_host(trainer.optimizer.flat.data).copy()
            host.view(np.uint32)[0] ^= 1
            trainer.optimizer.flat.data[...] = to_device(host)
        trainer.sync.check_copies(7)

    with pytest.raises(RuntimeError, match="after step 7 the copies of the weights differ between ranks"):
        run(2, drift)


def test_a_rank_that_is_asked_to_stop_stops_all_before_the_same_step():
    def go(group):
        trainer = Trainer(tiny.config(), tiny.corpus(), group)
        for step in range(6):
            if trainer.train_step(stop=group.rank == 2 and step == 4) is None:
                return trainer.step
        return None

    assert run(3, go) == [4, 4, 4]


def test_bytes_on_the_wire_are_those_of_the_formula():
    def traffic(group):
        trainer = Trainer(tiny.config(), tiny.corpus(), group)
        trainer.train_step()
        trainer.train_step()
        return *trainer.sync.traffic(), trainer.optimizer.flat.grad.nbytes

    for ranks in (1, 2, 4):
        results = run(ranks, traffic)
        assert sum(sent for sent, _, _ in results) == 2 * 2 * results[0][2] * (ranks - 1)
        for sent, formula, size in results:
            assert formula == 2 * 2 * size * (ranks - 1) / ranks
            assert abs(sent - formula) <= 2 * 2 * 8 * ranks


def test_gradients_of_several_buckets_are_all_summed(monkeypatch):
    monkeypatch.setattr("minigpt.parallel.data_parallel.BUCKET", 1000)
    of = layouts(12)
    expected, = run(1, lambda group: train(group, of(1, 1)))
    assert_equal(run(2, lambda group: train(group, of(2, 1))), expected)
