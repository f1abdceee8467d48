import numpy as np
import pytest

from autograd import ops, streams
from autograd.backend import xp
from tests.autograd.leaves import host, leaf, normal, same


def test_what_is_kept_is_scaled_up_and_the_rest_is_zero():
    x = leaf([1.0, 2.0, 3.0])
    y = ops.dropout(x, 0.5, np.array([True, False, True]))
    y.sum().backward()
    same(y, [2, 0, 6], "float32")
    same(x.grad, [2, 0, 2], "float32")


def test_everything_may_be_dropped_and_infinities_are_dropped_too():
    x = leaf([1.0, np.inf])
    same(ops.dropout(x, 1, np.array([False, False])), [0, 0])
    same(ops.dropout(x, 0.5, np.array([True, False])), [2, 0])


def test_the_stream_keeps_the_mean():
    keep = streams.keep_mask(0.25, 7, "blocks.0", step=3, samples=np.arange(16), positions=np.arange(16),
                             channels=256)
    y = ops.dropout(leaf(np.ones(keep.shape)), 0.25, keep)
    assert abs(float(y.mean()) - 1) < 0.01           # four standard deviations


@pytest.mark.parametrize("p, shape, words", [(1.5, (2,), "expected a probability"), (-0.1, (2,), "probability"),
                                             (0.5, (3, 2), r"keep has shape \(3, 2\), x \(2,\)")])
def test_probabilities_and_masks_that_do_not_fit_are_refused(p, shape, words):
    with pytest.raises(ValueError, match=words):
        ops.dropout(normal(2), p, np.ones(shape, bool))


def test_a_mask_of_numbers_is_refused():
    with pytest.raises(TypeError, match="keep must be booleans"):
        ops.dropout(normal(2), 0.5, xp.ones(2, xp.float32))
    assert host(ops.dropout(normal(2), 0.0, np.ones(2, bool))).dtype == "float32"
