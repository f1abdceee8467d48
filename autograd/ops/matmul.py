"""Products: matmul, linear, einsum."""

from autograd.backend import xp
from autograd.ops.common import alike, flat, like, shares, unbroadcast
from autograd.ops.subscripts import plan
from autograd.tape import op


@op
def matmul(a, b):
    """y = a b over the last two axes, batched over the others; a vector counts as one row or one column.

    da = dy b^T    db = a^T dy, summed over batch axes along which an operand was repeated
    """
    p, q = alike(a, b)
    rows = p[None] if a.ndim == 1 else p
    columns = q[:, None] if b.ndim == 1 else q

    def backward(dy):
        if b.ndim == 1:
            dy = dy[..., None]
        if a.ndim == 1:
            dy = dy[..., None, :]
        da = unbroadcast(dy @ columns.swapaxes(-1, -2), (rows.shape, a.dtype))
        db = unbroadcast(rows.swapaxes(-1, -2) @ dy, (columns.shape, b.dtype))
        return da.reshape(a.shape), db.reshape(b.shape)

    return p @ q, backward


@op
def linear(x, weight, bias=None, *, transposed=False):
    """y = x W + b              x: (..., n)   W: (n, m), or (m, n) transposed   b: (m,)   y: (..., m)

    dx = dy W^T         wanted at once: the layer below waits for it
    dW = sum x^T dy     lazy: nobody waits, so a schedule may put it where a bubble would be
    db = sum dy         lazy too

    A head tied to an embedding is `transposed`: both see one parameter (V, d).
    """
    w = weight.T if transposed else weight
    if x.shape[-1] != w.shape[0]:
        raise ValueError(f"linear: x {x.shape} has {x.shape[-1]} columns, but the weight {weight.shape}"
                         f"{' transposed' if transposed else ''} takes {w.shape[0]}")
    y = x @ w

    def backward(dy):
        dx = dy @ w.T
        if transposed:
            dw = lambda: flat(dy).T @ flat(x)
        else:
            dw = lambda: flat(x).T @ flat(dy)
        return (dx, dw) if bias is None else (dx, dw, lambda: flat(dy).sum(0))

    return (y if bias is None else y + bias), backward


@shares("y")
@op
def einsum(subscripts, *tensors):
    """y = the sum of products that `subscripts` describes, as numpy.einsum: "bthd,bshd->bhts".

    The gradient of an operand is an einsum too: exchange its subscripts with those of y.
    """
    terms, output, extra, sizes = plan(subscripts, tensors)
    dtype = next((x.dtype for x in tensors if x.dtype.kind == "f"), tensors[0].dtype)
    operands = [x.astype(dtype) if x.dtype.kind in "iub" else x for x in tensors]
    operands += [xp.eye(n, dtype=dtype) for n in extra]
    wanted = [like(x) for x in tensors]

    def backward(dy):
        return None, *(form and unbroadcast(_of_operand(i, dy, terms, output, operands, sizes), form)
                       for i, form in enumerate(wanted))

    return xp.einsum(",".join(terms) + "->" + output, *operands), backward


def _of_operand(i, dy, terms, output, operands, sizes):
    """Exchange the subscripts of operand i and y; a letter that stands nowhere else is repeated."""
    others = [j for j in range(len(operands)) if j != i]
    known = set(output).union(*(terms[j] for j in others))
    lonely = "".join(letter for letter in terms[i] if letter not in known)
    ones = xp.ones(tuple(sizes[letter] for letter in lonely), dy.dtype)
    left = [output, *(terms[j] for j in others), lonely]
    return xp.einsum(",".join(left) + "->" + terms[i], dy, *(operands[j] for j in others), ones)
