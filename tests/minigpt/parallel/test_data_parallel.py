"""Several ranks train as one does: the same losses, gradients and weights."""

import re

import numpy as np
import pytest

from autograd.backend import to_device, to_host
from minigpt.models.batch import IGNORED
from minigpt.parallel.data_parallel import sum_over_ranks
from minigpt.train import report
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


def two_steps(group):
    """What a rank has sent for gradients after two steps, the formula, the algorithms, and the gradients' bytes."""
    trainer = Trainer(tiny.config(), tiny.corpus(), group)
    trainer.train_step()
    trainer.train_step()
    algorithms = [algorithm for _, algorithm in trainer.sync.ring.ledger.rows()]
    return *trainer.sync.traffic(), algorithms, trainer.optimizer.flat.grad.nbytes


def test_bytes_on_the_wire_are_those_of_the_formula():
    assert run(1, two_steps)[0][:3] == (0, 0, [])
    for sent, formula, _, size in run(2, two_steps):
        assert formula == sent == 2 * 2 * size / 2
    for sent, formula, algorithms, _ in run(4, two_steps):
        assert 0 < sent <= formula
        assert [name for name in algorithms if name.endswith("_all_reduce")] == algorithms != []


def test_fact_34_the_ring_sends_its_formula():
    """2 M (N-1)/N, to the cache line on which each chunk ends: 2 (N-1) chunks leave a rank in each of two steps."""
    slack = 2 * 2 * (3 - 1) * 64
    for sent, formula, algorithms, size in run(3, two_steps):
        assert algorithms == ["ring_all_reduce"]
        assert abs(sent - 2 * 2 * size * 2 / 3) <= slack
        assert sent <= formula <= sent + slack


def test_the_end_of_a_run_tells_what_was_sent_by_group_and_collective():
    def say(group):
        trainer, lines = Trainer(tiny.config(), tiny.corpus(), group), []
        trainer.train_step()
        totals = sum_over_ranks(group, *report.sent_and_formula(group.ledger))
        report.say_traffic(trainer, totals, lines.append)
        return trainer.sync.traffic()[0], totals, "\n".join(lines)

    for sent, totals, said in run(2, say):
        assert f"Sent         {sent:,} bytes" in said and f"the formula allows {sent:,}\n" in said
        assert f"{totals[0]:,.0f} bytes for everything by all ranks together, {totals[1]:,.0f} by the formulas" in said
        assert re.search(r"dp +\w+_all_reduce +1 ", said) and re.search("world +binomial_broadcast +1 ", said)
        assert totals[0] <= totals[1]
        assert "ABOVE THE FORMULA" not in said and max(map(len, said.splitlines())) <= 120


def test_gradients_of_several_buckets_are_all_summed(monkeypatch):
    monkeypatch.setattr("minigpt.parallel.data_parallel.BUCKET", 1000)
    of = layouts(12)
    expected, = run(1, lambda group: train(group, of(1, 1)))
    assert_equal(run(2, lambda group: train(group, of(2, 1))), expected)
