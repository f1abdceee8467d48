import numpy as np
import pytest

from autograd import ops
from autograd.backend import xp
from tests.autograd.leaves import host, leaf, normal, same


def test_case_10_broadcast_to_has_a_gradient():
    x = leaf(np.ones(3))
    ops.broadcast_to(x, (4, 3)).sum().backward()
    same(x.grad, [4, 4, 4])


@pytest.mark.parametrize("index", [[0, 0], np.array([0, 0]), (np.array([0, 0]),), np.array([[0], [0]])])
def test_case_12_an_element_taken_twice_gets_both_gradients(index):
    x = leaf([1.0, 5.0])
    x[index].sum().backward()
    same(x.grad, [2, 0])


def test_case_12_also_with_negative_indices_and_in_several_axes():
    x = normal(2, 3)
    x[np.array([0, 0, -2]), np.array([1, 1, -2])].sum().backward()
    same(x.grad, [[0, 3, 0], [0, 0, 0]])


@pytest.mark.parametrize("index", [3, -4, [0, 3], np.array([-4]), (slice(None), [4]), (0, 4)])
def test_case_14_an_index_out_of_range_is_an_error_on_every_device(index):
    with pytest.raises(IndexError):
        normal(3, 4)[index]


def test_indices_may_be_tensors_masks_and_dots():
    x = normal(3, 4)
    ids = ops.argmax(x, axis=0)
    same(x[ids, 1], host(x)[host(ids), 1])
    same(x[..., None, 1:], host(x)[..., None, 1:])
    (x[x > 0] * 2).sum().backward()
    same(x.grad, 2.0 * (host(x) > 0))


def test_case_42_empty_indices_give_empty_results_and_zero_gradients():
    x = normal(3, 4)
    y = x[[]]
    assert y.shape == (0, 4)
    y.sum().backward()
    same(x.grad, np.zeros((3, 4)))


def test_iterating_and_unpacking_follow_the_first_axis():
    x = normal(2, 3)
    a, b = x
    (a * b).sum().backward()
    same(x.grad, host(x)[::-1])


def test_split_gives_zero_to_a_part_that_nobody_used():
    x = normal(5, 2)
    first, _, last = ops.split(x, [1, 2, 2])
    (first.sum() + (2 * last).sum()).backward()
    same(x.grad, np.repeat([1.0, 0, 2], [1, 2, 2])[:, None] * np.ones(2))


@pytest.mark.parametrize("parts, words", [(3, "equal parts"), ([1, 1], "add up to 2, the axis has 4"), (0, "equal"),
                                          ([5, -1], "add up to 4")])
def test_split_says_what_does_not_fit(parts, words):
    with pytest.raises(ValueError, match=words):
        ops.split(normal(4, 2), parts)


def test_concat_and_stack_take_arrays_among_tensors():
    x, constant = normal(2), xp.ones(2, xp.float32)
    ops.concat([x, constant, x]).sum().backward()
    same(x.grad, [2, 2])
    x.grad = None
    (ops.stack([constant, x]) * 3).sum().backward()
    same(x.grad, [3, 3])


@pytest.mark.parametrize("join", [ops.concat, ops.stack])
def test_joining_takes_a_list(join):
    for wrong in (normal(3, 2), []):
        with pytest.raises(TypeError, match="expected a list of one or more tensors"):
            join(wrong)


def test_reshape_takes_sizes_or_a_shape():
    x = normal(2, 6)
    assert x.reshape(3, 4).shape == x.reshape((3, 4)).shape == x.reshape([3, 4]).shape == (3, 4)
    assert x.reshape(-1).shape == (12,)
    assert x.T.shape == (6, 2)
    assert normal(2, 3, 4).permute(1, 2, 0).shape == (3, 4, 2)


def test_pad_says_what_does_not_fit():
    with pytest.raises(ValueError, match="1 widths for 2 axes"):
        ops.pad(normal(2, 2), [(1, 1)])
