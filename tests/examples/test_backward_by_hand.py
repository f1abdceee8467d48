import numpy as np

from examples import backward_by_hand as example
from tests.examples.running import run


def test_every_gradient_by_hand_equals_the_tapes():
    x, targets, parameters = example.draw(seed=7)
    loss, hand = example.by_hand(x, targets, **parameters)
    tape_loss, tape, drawn = example.by_tape(x, targets, parameters)
    assert set(tape) == {"x", "W1", "b1", "W2", "b2"} < set(hand) == set(example.FORMULAS)
    assert abs(loss - tape_loss) < 1e-14
    for name, gradient in tape.items():
        np.testing.assert_allclose(gradient, hand[name], rtol=0, atol=1e-15, err_msg=name)
    assert drawn.startswith("cross_entropy") and "W1 (5, 8)" in drawn


def test_a_difference_agrees_with_the_formula_at_every_weight():
    x, targets, parameters = example.draw()
    _, hand = example.by_hand(x, targets, **parameters)
    for place in np.ndindex(parameters["W2"].shape):
        assert abs(example.by_difference(x, targets, parameters, "W2", place) - hand["W2"][place]) < 1e-8


def test_it_prints_a_line_for_every_formula():
    said = run("backward_by_hand.py")
    assert all(f"  d{name:<4}" in said for name in example.FORMULAS)
