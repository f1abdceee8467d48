"""Every example says what it shows and how to run it, and its options stand in its --help."""

import ast

import pytest

from tests.examples.running import EXAMPLES, run

NAMES = sorted(path.name for path in EXAMPLES.glob("*.py"))
TESTED = {"all_reduce.py", "backward_by_hand.py", "data_parallel.py", "mlp_digits.py", "network_lab.py", "neuron.py",
          "one_step.py", "own_collective.py", "plot_run.py", "polynomial.py", "ring_all_reduce.py", "shaped_network.py",
          "softmax_and_loss.py", "swap_a_layer.py", "train_gpt.py"}
WITH_OPTIONS = [name for name in NAMES if "ArgumentParser" in (EXAMPLES / name).read_text(encoding="utf-8")]


def test_every_example_has_a_test():
    assert set(NAMES) == TESTED


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_says_how_to_run_it(name):
    text = ast.get_docstring(ast.parse((EXAMPLES / name).read_text(encoding="utf-8")))
    assert f"python examples/{name}" in text


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_help_shows_the_docstring_with_its_commands(name):
    said = run(name, "--help")
    assert f"python examples/{name}" in said and "options:" in said


def test_the_examples_with_options_are_these():
    assert WITH_OPTIONS == ["mlp_digits.py", "network_lab.py", "own_collective.py", "plot_run.py", "polynomial.py",
                            "ring_all_reduce.py", "shaped_network.py", "swap_a_layer.py", "train_gpt.py"]
