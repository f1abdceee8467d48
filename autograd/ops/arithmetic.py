"""Elementwise arithmetic.  Operands broadcast; each gradient has its operand's own shape and dtype."""

from autograd.backend import to_device, xp
from autograd.ops.common import alike, like, shares, unbroadcast
from autograd.tape import op


@shares("dy")
@op
def add(a, b):
    """y = a + b                da = dy    db = dy, summed where an operand was repeated"""
    (p, q), of_a, of_b = alike(a, b), like(a), like(b)
    return p + q, lambda dy: (unbroadcast(dy, of_a), unbroadcast(dy, of_b))


@shares("dy")
@op
def sub(a, b):
    """y = a - b                da = dy    db = -dy"""
    (p, q), of_a, of_b = alike(a, b), like(a), like(b)
    return p - q, lambda dy: (unbroadcast(dy, of_a), of_b and unbroadcast(-dy, of_b))


@op
def mul(a, b):
    """y = a b                  da = dy b  db = dy a"""
    (p, q), of_a, of_b = alike(a, b), like(a), like(b)
    y = p * q
    p, q = p if of_b else None, q if of_a else None         # x * 2 need not remember x
    return y, lambda dy: (of_a and unbroadcast(dy * q, of_a), of_b and unbroadcast(dy * p, of_b))


@op
def div(a, b):
    """y = a / b                da = dy / b    db = -dy y / b"""
    (p, q), of_a, of_b = alike(a, b), like(a), like(b)
    y = p / q
    kept = y if of_b else None
    return y, lambda dy: (of_a and unbroadcast(dy / q, of_a), of_b and unbroadcast(-dy * kept / q, of_b))


@op
def neg(x):
    """y = -x                   dx = -dy"""
    return -x, lambda dy: -dy


@op
def pow(a, b):
    """y = a^b                  da = dy b a^(b-1)    db = dy y log(a)

    At a = 0 an infinite slope is taken as 0, so that (x^2).sum() ** 0.5 has a gradient at 0 (CASES 25).
    """
    (p, q), of_a, of_b = alike(a, b), like(a), like(b)
    y = p ** q
    kept = y if of_b else None

    def base_gradient(dy):
        nonzero = xp.where(p == 0, 1, p)
        return dy * xp.where((p == 0) & (q != 1), 0, q * nonzero ** (q - 1))

    def exponent_gradient(dy):
        base = xp.asarray(p, dtype=kept.dtype)                  # a number shall not promote float32
        return dy * kept * xp.log(xp.where(base == 0, 1, base))

    return y, lambda dy: (of_a and unbroadcast(base_gradient(dy), of_a),
                          of_b and unbroadcast(exponent_gradient(dy), of_b))


@op
def exp(x):
    """y = e^x                  dx = dy y"""
    y = xp.exp(x)
    return y, lambda dy: dy * y


@op
def log(x):
    """y = ln x                 dx = dy / x"""
    return xp.log(x), lambda dy: dy / x


@op
def sqrt(x):
    """y = sqrt(x)              dx = dy / (2 y)

    The infinite slope at 0 is taken as 0, so that a norm has a gradient at 0 (CASES 25).
    """
    y = xp.sqrt(x)
    return y, lambda dy: xp.where(y == 0, 0, dy / xp.where(y == 0, 1, 2 * y))


@op
def abs(x):
    """y = |x|                  dx = dy sign(x), which is 0 at the kink"""
    return xp.abs(x), lambda dy: dy * xp.sign(x)


@op
def maximum(a, b):
    """y = max(a, b)            dy goes to the larger; equal operands get half each"""
    p, q = alike(a, b)
    return xp.maximum(p, q), _to_winner(p > q, p == q, like(a), like(b))


@op
def minimum(a, b):
    """y = min(a, b)            dy goes to the smaller; equal operands get half each"""
    p, q = alike(a, b)
    return xp.minimum(p, q), _to_winner(p < q, p == q, like(a), like(b))


def _to_winner(first, tie, of_a, of_b):
    def backward(dy):
        half = xp.where(tie, dy / 2, 0)
        return unbroadcast(xp.where(first, dy, half), of_a), unbroadcast(xp.where(first | tie, half, dy), of_b)
    return backward


@op
def where(condition, a, b):
    """y = a where condition, else b        dy goes to the one that was taken"""
    condition, (p, q), of_a, of_b = to_device(condition), alike(a, b), like(a), like(b)
    return xp.where(condition, p, q), lambda dy: (
        None, unbroadcast(xp.where(condition, dy, 0), of_a), unbroadcast(xp.where(condition, 0, dy), of_b))


@op
def clip(x, low=None, high=None):
    """y = x, kept between low and high (numbers or None)       dx = dy where low <= x <= high"""
    y = x
    if low is not None:
        y = xp.maximum(y, low)
    if high is not None:
        y = xp.minimum(y, high)
    inside = x == y
    return y.copy() if y is x else y, lambda dy: xp.where(inside, dy, 0)


@op
def less(a, b):
    """y = a < b, booleans: no gradient"""
    return a < b, None


@op
def less_equal(a, b):
    """y = a <= b, booleans: no gradient"""
    return a <= b, None


@op
def greater(a, b):
    """y = a > b, booleans: no gradient"""
    return a > b, None


@op
def greater_equal(a, b):
    """y = a >= b, booleans: no gradient"""
    return a >= b, None


@op
def equal(a, b):
    """y = (a == b), booleans: no gradient"""
    return a == b, None


@op
def not_equal(a, b):
    """y = (a != b), booleans: no gradient"""
    return a != b, None
