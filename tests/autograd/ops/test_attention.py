import warnings

import numpy as np
import pytest

from autograd import ops
from tests.autograd.leaves import host, leaf, normal, same


def qkv(t=3, s=3, heads=2, kv_heads=2, d=4):
    return normal(1, heads, t, d, seed=1), normal(1, kv_heads, s, d, seed=2), normal(1, kv_heads, s, d, seed=3)


def test_case_34_a_query_that_may_look_at_nothing_gets_zeros_and_gives_zero_gradients():
    query, key, value = qkv()
    mask = np.array([[True, True, True], [False, False, False], [True, False, True]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = ops.attention(query, key, value, causal=False, mask=mask)
        (y * y).sum().backward()
    same(y[:, :, 1], np.zeros((1, 2, 4)))
    same(query.grad[:, :, 1], np.zeros((1, 2, 4)))
    for x in (query, key, value):
        assert np.isfinite(host(x.grad)).all() and np.abs(host(x.grad)).max() > 0


def test_a_masked_key_has_no_influence_even_if_it_is_not_finite():
    query, key, value = qkv()
    y = ops.attention(query, key, value)
    changed = host(key).copy()
    changed[:, :, -1] = 1e30
    z = ops.attention(query, leaf(changed), value)
    same(y[:, :, :-1], host(z)[:, :, :-1])


def test_case_46_the_scale_is_that_of_a_head_not_of_the_model():
    query, key, value = qkv(d=4)
    one = ops.attention(query, key, value)
    np.testing.assert_array_equal(host(one), host(ops.attention(query, key, value, scale=1 / 2)))


def test_later_queries_of_a_longer_past_see_all_of_it():
    query, key, value = qkv(t=4, s=4)
    whole = ops.attention(query, key, value)
    last = ops.attention(query[:, :, 3:], key, value)
    np.testing.assert_allclose(host(whole)[:, :, 3:], host(last), rtol=1e-6)


def test_packed_equals_separate_heads():
    x = normal(2, 3, 12)
    query, key, value = (x[:, :, 4 * i:4 * i + 4].reshape(2, 3, 2, 2).transpose(1, 2) for i in range(3))
    y = ops.attention(query, key, value).transpose(1, 2).reshape(2, 3, 4)
    np.testing.assert_allclose(host(ops.packed_attention(x, d_head=2)), host(y), atol=1e-6)


def test_case_42_no_batch_and_no_positions():
    for t in (0, 2):
        x = normal(0, t, 12)
        y = ops.packed_attention(x, d_head=2)
        assert y.shape == (0, t, 4)
        y.sum().backward()
        assert x.grad.shape == x.shape
    x = normal(2, 0, 12)
    assert ops.packed_attention(x, d_head=2).shape == (2, 0, 4)


@pytest.mark.parametrize("shapes, words", [
    (((1, 3, 2, 4), (1, 2, 2, 4), (1, 2, 2, 4)), "3 query heads cannot share 2"),
    (((1, 2, 3, 4), (1, 2, 2, 4), (1, 2, 2, 4)), "3 queries and only 2 keys"),
    (((1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 3, 4)), "do not fit"), (((2, 3, 4), (2, 3, 4), (2, 3, 4)), "expected"),
])
def test_attention_says_what_does_not_fit(shapes, words):
    with pytest.raises(ValueError, match=words):
        ops.attention(*(normal(*shape) for shape in shapes))


def test_a_mask_of_numbers_is_refused():
    with pytest.raises(TypeError, match="mask must be booleans"):
        ops.attention(*qkv(), mask=np.zeros((3, 3), "float32"))


@pytest.mark.parametrize("columns, options", [
    (13, {"d_head": 2}), (12, {"d_head": 5}), (12, {"d_head": 2, "groups": 5})])
def test_packed_attention_says_what_does_not_fit(columns, options):
    with pytest.raises(ValueError, match="packed_attention"):
        ops.packed_attention(normal(1, 2, columns), **options)
