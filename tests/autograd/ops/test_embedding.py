import numpy as np
import pytest

from autograd import ops
from tests.autograd.leaves import normal, same


def test_case_13_a_token_that_comes_twice_gets_both_gradients():
    w = normal(4, 2)
    ops.embedding(w, np.array([[1, 1], [3, 1]])).sum().backward()
    same(w.grad, [[0, 0], [3, 3], [0, 0], [1, 1]])


@pytest.mark.parametrize("bad", [4, -1, 10**12])
def test_case_14_a_token_out_of_range_is_named_with_the_size(bad):
    with pytest.raises(IndexError, match=rf"embedding: id {bad} is out of range for size 4"):
        ops.embedding(normal(4, 2), np.array([0, bad]))


def test_case_42_no_tokens_and_an_empty_table():
    w = normal(4, 2)
    y = ops.embedding(w, np.zeros((0, 3), "int64"))
    assert y.shape == (0, 3, 2)
    y.sum().backward()
    same(w.grad, np.zeros((4, 2)))
    empty = normal(0, 2)
    y = ops.embedding(empty, [])
    y.sum().backward()
    assert y.shape == empty.grad.shape == (0, 2)
    with pytest.raises(IndexError, match="size 0"):
        ops.embedding(empty, np.array([0]))


def test_tokens_must_be_integers():
    with pytest.raises(TypeError, match="expected integers, got float64"):
        ops.embedding(normal(4, 2), np.array([0.0]))
