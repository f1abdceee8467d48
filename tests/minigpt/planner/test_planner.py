"""The arithmetic of parameters and memory against what is really there."""

from dataclasses import replace

import pytest

import comm
from autograd.backend import device
from minigpt.config import Model
from minigpt.models import GPT
from minigpt.module import named_parameters
from minigpt.planner import count, describe_memory, describe_parameters, memory
from minigpt.planner.parameters import block
from minigpt.train.trainer import Trainer
from tests.minigpt import tiny
from tests.ranks import run

GPT3 = Model(d_model=12288, n_layers=96, n_heads=96, context=2048, vocab_size=50257)


def test_fact_10_to_15_gpt_3_counts_to_its_175_billion():
    parts = count(GPT3)
    assert parts["token embedding (and head)"] == 617_558_016
    assert parts["positions"] == 25_165_824
    assert sum(block(GPT3).values()) == 1_812_099_072
    assert block(GPT3)["norms"] == 49_152
    assert sum(parts.values()) == 174_604_259_328


@pytest.mark.parametrize("changes", [{}, {"d_ff": 33}, {"n_layers": 1, "vocab_size": 7}], ids=str)
def test_the_count_is_the_models_own(changes):
    config = replace(Model(d_model=24, n_layers=3, n_heads=4, context=10, vocab_size=50), **changes)
    names = named_parameters(GPT(config))
    parts = count(config)
    assert sum(parts.values()) == sum(p.size for _, p in names)
    assert parts["attention"] == sum(p.size for name, p in names if ".attention." in name)
    assert parts["feed-forward"] == sum(p.size for name, p in names if ".feed_forward." in name)


@pytest.mark.parametrize("words, moments", [
    ((), 2), (("train.dtype=float64",), 2), (("optim.name=sgd",), 1),
    (("optim.name=sgd", "optim.momentum=0"), 0)], ids=str)
def test_weights_gradients_and_moments_are_predicted_to_the_padding(words, moments):
    trainer = Trainer(tiny.config(*words), tiny.corpus(), comm.world())
    predicted, flat = memory(trainer.config), trainer.optimizer.flat
    slack = 64 * len(flat.parameters)
    assert 0 <= flat.data.nbytes - predicted["weights"] <= slack
    assert 0 <= flat.grad.nbytes - predicted["gradients"] <= slack
    held = sum(each.nbytes for each in trainer.optimizer.moments.values())
    assert 0 <= held - predicted["moments"] <= moments * slack


def test_descriptions_name_every_part_and_the_sum():
    lines = list(describe_parameters(GPT3))
    assert lines[0] == "174,604,259,328 in 96 blocks of width 12288 with 96 heads" and len(lines) == 6
    assert any("617,558,016" in line for line in lines)
    settings = tiny.config("model.vocab_size=50")
    first, second = describe_memory(settings)
    assert f"{sum(memory(settings).values()) / 1e6:,.0f} MB" in first and "activations" in second


@pytest.mark.skipif(device != "cpu", reason="the arena is of the CPU")
@pytest.mark.parametrize("d_model, n_layers, n_heads, context", [(64, 2, 2, 64), (64, 4, 4, 64), (64, 2, 2, 256)])
def test_activations_are_predicted_to_a_tenth(d_model, n_layers, n_heads, context):
    from autograd import arena
    settings = tiny.config(f"model.d_model={d_model}", f"model.n_layers={n_layers}", f"model.n_heads={n_heads}",
                           f"model.context={context}", "data.batch_size=16")

    def held(group):                                # a thread has an arena of its own
        trainer = Trainer(settings, tiny.corpus(3 * tiny.TEXT), group)
        for _ in range(2):
            trainer.train_step()
        return arena.resident(), memory(trainer.config)["activations"]

    (resident, predicted), = run(1, held)
    assert predicted == pytest.approx(resident, rel=0.1)
