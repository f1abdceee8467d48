"""Training: it learns, resumes to the last bit, and stops when numbers break."""

import numpy as np
import pytest

import comm
from autograd.backend import to_device, to_host
from minigpt.train.step import NotFinite
from minigpt.train.trainer import Trainer
from tests.minigpt import tiny
from tests.ranks import run


def losses_of(trainer, until):
    losses = []
    while trainer.step < until:
        losses.append(trainer.read(*trainer.train_step())[0])
    return losses


def test_the_loss_falls():
    trainer = Trainer(tiny.config("train.max_steps=60", "data.batch_size=8"), tiny.corpus(), comm.world())
    losses = losses_of(trainer, 60)
    assert losses[0] == pytest.approx(np.log(trainer.corpus.vocab_size), rel=0.05)
    assert losses[-1] < 0.75 * losses[0]


@pytest.mark.parametrize("words", [(), ("model.dropout=0.2", "train.accumulate=2"), ("optim.name=sgd",)], ids=str)
@pytest.mark.parametrize("ranks", [1, 2])
def test_case_111_a_resumed_run_has_the_losses_of_the_unbroken_one_to_the_last_bit(tmp_path, ranks, words):
    def unbroken(group):
        return losses_of(Trainer(tiny.config(*words), tiny.corpus(), group), 6)

    def broken(stop):
        def go(group):
            trainer = Trainer(tiny.config(*words), tiny.corpus(), group)
            before = losses_of(trainer, stop)
            trainer.save(tmp_path / str(stop))
            losses_of(trainer, stop + 1)            # what is done after the save is lost
            trainer = Trainer(tiny.config(*words), tiny.corpus(), group)
            trainer.resume(tmp_path / str(stop) / f"step-{stop:08d}")
            return before + losses_of(trainer, 6)
        return go

    expected = run(ranks, unbroken)
    for stop in range(6):
        assert run(ranks, broken(stop)) == expected


def test_gradients_that_are_not_finite_stop_every_rank_before_the_weights_change():
    def go(group):
        trainer = Trainer(tiny.config(), tiny.corpus(), group)
        trainer.train_step()
        if group.rank == 1:                         # this rank alone computes NaN; the sum carries it to all
            trainer.model.embedding.weight.data[:] = to_device(np.float32("nan"))
        before = to_host(trainer.optimizer.flat.data).copy()
        with pytest.raises(NotFinite, match="step 1: the gradient is nan, .*train.debug=true names the first op"):
            trainer.read(*trainer.train_step())
        return np.array_equal(before, to_host(trainer.optimizer.flat.data), equal_nan=True)

    from autograd.backend import device
    assert run(2, go) == ([True, True] if device == "cpu" else [False, False])


def test_debug_mode_names_the_step_the_op_and_the_layer():
    trainer = Trainer(tiny.config("train.debug=true"), tiny.corpus(), comm.world())
    trainer.train_step()
    trainer.model.blocks[1].feed_forward.up.weight.data[:] = 1e30
    trainer.model.blocks[1].feed_forward.down.weight.data[:] = 1e30
    message = r"step 1: [\w ]+ produced NaN .*in layer blocks.1.feed"
    with np.errstate(all="ignore"), pytest.raises(NotFinite, match=message):
        trainer.train_step()


def test_case_117_a_text_that_is_too_short_names_both_sizes():
    with pytest.raises(ValueError, match="the text has 5 tokens, but one window of context=8 needs 9"):
        Trainer(tiny.config(), tiny.corpus("the q", validation=0), comm.world())


def test_case_118_a_text_of_one_window_trains():
    trainer = Trainer(tiny.config(), tiny.corpus("the quick", validation=0), comm.world())
    assert len(losses_of(trainer, 6)) == 6
    assert trainer.validate() is None


def test_validation_is_the_same_for_any_number_of_ranks_and_covers_every_target():
    def validate(group):
        return Trainer(tiny.config("train.dtype=float64"), tiny.corpus(), group).validate()

    alone, = run(1, validate)
    assert run(3, validate) == pytest.approx([alone] * 3, rel=1e-12)
    assert run(1, lambda group: Trainer(tiny.config("train.dtype=float64", "data.batch_size=7"), tiny.corpus(),
                                        group).validate())[0] == pytest.approx(alone, rel=1e-12)


def test_validation_changes_nothing_that_training_sees():
    plain = losses_of(Trainer(tiny.config(), tiny.corpus(), comm.world()), 4)
    trainer = Trainer(tiny.config(), tiny.corpus(), comm.world())
    losses = []
    for step in range(4):
        losses += losses_of(trainer, step + 1)
        trainer.validate(limit=2)
    assert losses == plain


def test_a_vocabulary_smaller_than_the_text_s_is_refused():
    with pytest.raises(ValueError, match=r"model\.vocab_size=3, but the corpus has"):
        Trainer(tiny.config("model.vocab_size=3"), tiny.corpus(), comm.world())
