"""The stand-in refuses what CuPy refuses: good code runs on it, planted bugs that NumPy lets pass do not."""
import copy
import functools
import gc
import math
import pickle
import threading
import weakref

import numpy as np
import pytest

from autograd import backend, strict
from autograd.strict import module, no_synchronization, stats, xp

REFUSALS = (TypeError, AttributeError, ValueError, IndexError, NotImplementedError)


def matrix():
    return xp.asarray(np.arange(16.0).reshape(4, 4))


class Foreign:
    """A class that asks to be preferred in binary operators, as Tensor does."""

    __array_ufunc__ = None

    def __radd__(self, other):
        return "mine"


def layer_norm(xp, x, gain, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / xp.sqrt(variance + 1e-5) * gain + bias


def embedding_backward(xp, ids, dy, rows):
    dw = xp.zeros((rows, dy.shape[-1]), dy.dtype)
    xp.add.at(dw, ids, dy)
    return dw


def causal_attention(xp, query, key, value):
    scores = xp.matmul(query, key.swapaxes(-1, -2)) / math.sqrt(query.shape[-1])
    hidden = xp.triu(xp.ones(scores.shape[-2:], dtype=bool), k=1)
    scores = xp.where(hidden, -xp.inf, scores)
    weights = xp.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return xp.einsum("bts,bsd->btd", weights, value)


def test_good_code_gives_what_numpy_gives():
    random = np.random.default_rng(0)
    x, gain = random.standard_normal((4, 6)), random.standard_normal(6)
    got = layer_norm(xp, xp.asarray(x), xp.asarray(gain), xp.asarray(gain))
    np.testing.assert_array_equal(got.get(), layer_norm(np, x, gain, gain))
    ids, dy = np.array([1, 1, 0]), random.standard_normal((3, 4))
    got = embedding_backward(xp, xp.asarray(ids), xp.asarray(dy), 5)
    np.testing.assert_array_equal(got.get(), embedding_backward(np, ids, dy, 5))
    query, key, value = random.standard_normal((3, 2, 5, 4))
    got = causal_attention(xp, xp.asarray(query), xp.asarray(key), xp.asarray(value))
    np.testing.assert_array_equal(got.get(), causal_attention(np, query, key, value))


BUGS = {
    # seventeen faults that a study of CuPy began with
    "a host mask mixed in": lambda xp, x: xp.where(np.tril(np.ones((4, 4))) > 0, x, -1e9),
    "a host operand": lambda xp, x: x + np.ones(4),
    "a host operand on the left": lambda xp, x: np.ones(4) * x,
    "np.asarray of a device array": lambda xp, x: np.asarray(x),
    "np.array of a list of device arrays": lambda xp, x: np.array([x, x]),
    "a product with a host array": lambda xp, x: x @ np.eye(4),
    "a host array added in place": lambda xp, x: x.__iadd__(np.ones(4)),
    "out= on the host": lambda xp, x: xp.exp(x, out=np.empty((4, 4))),
    "NumPy writes to the device": lambda xp, x: np.add(np.ones((4, 4)), 1, out=x),
    "a host value assigned": lambda xp, x: x.__setitem__(0, np.ones(4)),
    "a host index": lambda xp, x: x[np.array([0, 1])],
    "where= in a reduction": lambda xp, x: xp.sum(x, where=x > 0),
    "a function that only NumPy has": lambda xp, x: xp.vecdot(x, x),
    "a method that only NumPy has": lambda xp, x: x.to_device("cpu"),
    "a helper that only NumPy has": lambda xp, x: xp.einsum_path("ij->i", x),
    "a device scalar as a range": lambda xp, x: list(range(xp.argmax(x))),
    "a gather out of range": lambda xp, x: x[xp.asarray([7])],
    # more host data in device operations
    "a list as operand": lambda xp, x: x + [1.0, 2.0, 3.0, 4.0],
    "a list given to a ufunc": lambda xp, x: xp.maximum([0.0] * 4, x),
    "a list assigned": lambda xp, x: x.__setitem__(0, [1.0, 2.0, 3.0, 4.0]),
    "a list in a reduction": lambda xp, x: xp.sum([1.0, 2.0]),
    "a number in a reduction": lambda xp, x: xp.mean(3.0),
    "a Python bool as condition": lambda xp, x: xp.where(True, x, x),
    "a host array concatenated": lambda xp, x: xp.concatenate([x, np.ones((4, 4))]),
    "a host array stacked by NumPy": lambda xp, x: np.stack([x, np.ones((4, 4))]),
    "a host array compared": lambda xp, x: x == np.ones(4),
    "a host array in a power": lambda xp, x: np.full(4, 2.0) ** x,
    "a host array in einsum": lambda xp, x: xp.einsum("ij,jk->ik", x, np.eye(4)),
    "a host array in a method": lambda xp, x: x.dot(np.eye(4)),
    "a host array taken with": lambda xp, x: x.take(np.array([0]), axis=0),
    "a host array scattered": lambda xp, x: xp.add.at(x, xp.asarray([0]), np.ones(4)),
    "a host array made contiguous": lambda xp, x: xp.ascontiguousarray(np.ones(4)),
    "a tuple of indices with a host array": lambda xp, x: x[0, np.array([1])],
    "a host array filled from the device": lambda xp, x: np.empty((4, 4)).__setitem__(0, x[0]),
    "np.copyto to the host": lambda xp, x: np.copyto(np.empty((4, 4)), x),
    "an array of objects": lambda xp, x: xp.asarray(np.array([None, 1])),
    # keywords and methods that CuPy lacks
    "where= in a ufunc": lambda xp, x: xp.exp(x, where=x > 0, out=xp.empty_like(x)),
    "order= in a ufunc": lambda xp, x: xp.exp(x, order="C"),
    "initial= in a maximum": lambda xp, x: xp.max(x, initial=0.0),
    "where= in a method": lambda xp, x: x.mean(where=x > 0),
    "initial= in a method": lambda xp, x: x.sum(initial=1.0),
    "mean= in a variance": lambda xp, x: x.var(mean=x.mean()),
    "out= in einsum": lambda xp, x: xp.einsum("ij->i", x, out=xp.empty(4)),
    "a mode of take": lambda xp, x: xp.take(x, xp.asarray([9]), mode="clip"),
    "too many positional arguments": lambda xp, x: x.sum(0, None, None, False, 0.0),
    "maximum.reduce": lambda xp, x: xp.maximum.reduce(x),
    "multiply.at": lambda xp, x: xp.multiply.at(x, xp.asarray([0]), x[0]),
    "np.errstate through xp": lambda xp, x: xp.errstate(divide="ignore"),
    "np.insert through xp": lambda xp, x: xp.insert(x, 0, x[0], axis=0),
    "Generator.normal": lambda xp, x: xp.random.default_rng(0).normal(),
    "Generator.permutation": lambda xp, x: xp.random.default_rng(0).permutation(4),
    "the global generator": lambda xp, x: xp.random.standard_normal,
    "an 80-bit float": lambda xp, x: x.astype(xp.longdouble),
    "the flag writeable": lambda xp, x: x.flags.writeable,
    "the ctypes of a device array": lambda xp, x: x.ctypes,
    "DLPack into NumPy": lambda xp, x: np.from_dlpack(x),
    "the buffer protocol": lambda xp, x: memoryview(x),
    # a device value where the host needs a number
    "a device scalar as slice end": lambda xp, x: x[:xp.argmax(x)],
    "a device scalar as list index": lambda xp, x: [1, 2, 3][xp.argmax(x[0]) - 3],
    "a device scalar as shape": lambda xp, x: xp.zeros((xp.argmax(x[0]),)),
    "a device scalar in reshape": lambda xp, x: x.reshape(xp.argmax(x[0]) + 13, 1),
    "membership": lambda xp, x: 3.0 in x,
    "a device array as dictionary key": lambda xp, x: {x: 1},
    # silent on CuPy
    "a negative index out of range": lambda xp, x: x[xp.asarray([-5])],
    "take out of range": lambda xp, x: xp.take(x, xp.asarray([4]), axis=0),
    "take_along_axis out of range": lambda xp, x: xp.take_along_axis(x, xp.asarray([[4]]), axis=1),
    "add.at out of range": lambda xp, x: xp.add.at(x, xp.asarray([4]), 1.0),
    "an assignment out of range": lambda xp, x: x.__setitem__(xp.asarray([4]), 0.0),
    "an index twice in an assignment": lambda xp, x: x.__setitem__(xp.asarray([1, 1]), x[:2]),
    "a negative index that comes twice": lambda xp, x: x.__setitem__(xp.asarray([3, -1]), x[:2]),
    "an index twice in += ": lambda xp, x: x.__setitem__(xp.asarray([2, 2]), x[xp.asarray([2, 2])] + x[:2]),
    "integers divided in place": lambda xp, x: xp.asarray([1, 2]).__itruediv__(2),
    "an atomic add of bytes": lambda xp, x: xp.add.at(xp.zeros(4, "int8"), xp.asarray([0]), 1),
}

LOUD = {"a gather out of range", "a negative index out of range", "take out of range", "add.at out of range",
        "take_along_axis out of range", "an assignment out of range", "integers divided in place",
        "a device array as dictionary key"}                          # NumPy raises too; CuPy mostly does not


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug):
    with pytest.raises(REFUSALS):
        BUGS[bug](xp, matrix())


@pytest.mark.parametrize("bug", sorted(set(BUGS) - LOUD))
def test_numpy_lets_the_planted_bug_pass(bug):
    BUGS[bug](np, np.arange(16.0).reshape(4, 4))


GOOD = {
    "NumPy's functions dispatch to the device": lambda x: np.exp(np.concatenate([x, x])),
    "reductions stay on the device": lambda x: x.sum(),
    "np.mean dispatches": lambda x: np.mean(x, axis=0),
    "np.linalg.norm dispatches": lambda x: np.linalg.norm(x),
    "xp.linalg.norm": lambda x: xp.linalg.norm(x),
    "argmax stays on the device": lambda x: xp.argmax(x),
    "array_equal stays on the device": lambda x: xp.array_equal(x, x),
    "allclose stays on the device": lambda x: xp.allclose(x, x),
    "numbers as operands": lambda x: 2.0 * x + np.float64(1.0) - True,
    "a matrix product in place makes a new array": lambda x: x.__matmul__(x),
    "a device index": lambda x: x[xp.asarray([0, 3])],
    "a list as index": lambda x: x[[0, 3]],
    "a tuple of device indices": lambda x: x[xp.arange(4), xp.asarray([3, 2, 1, 0])],
    "a mask assigned a number": lambda x: xp.where(x > 3, 0.0, x),
    "a new axis and an ellipsis": lambda x: x[..., xp.newaxis, 1:3],
    "out= given by position": lambda x: xp.add(x, 1.0, xp.empty_like(x)),
    "a cumulated sum": lambda x: xp.add.accumulate(x, axis=1),
    "random numbers": lambda x: xp.random.default_rng(0).standard_normal((4, 4), dtype="float32"),
    "a Fourier transform": lambda x: xp.fft.rfft(x),
    "a deep copy": lambda x: copy.deepcopy(x),
    "types": lambda x: x.astype(xp.float16).astype(xp.result_type(xp.float32, "int8")),
    "fix, which is no ufunc in NumPy": lambda x: xp.fix(x),
}


@pytest.mark.parametrize("use", GOOD)
def test_what_cupy_can_do_stays_on_the_device(use):
    with no_synchronization():
        assert isinstance(GOOD[use](matrix()), strict.ndarray)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">="])
def test_operators_agree_with_numpy_on_either_side(operator):
    host = np.arange(1.0, 5.0)
    compute = eval(f"lambda a, b: a {operator} b")
    for left, right in [(0, 0), (0, 2.0), (2.0, 0)]:
        expected = compute(left or host, right or host)
        got = compute(left or xp.asarray(host), right or xp.asarray(host))
        np.testing.assert_array_equal(got.get(), expected)
        assert got.dtype == expected.dtype


@pytest.mark.parametrize("operator", ["+=", "-=", "*=", "/=", "//=", "%=", "**=",
                                      "&=", "|=", "^=", "<<=", ">>="])
def test_in_place_operators_keep_the_array_and_its_memory(operator):
    integers = operator[0] in "&|^<>"
    host = np.arange(1, 5) if integers else np.arange(1.0, 5.0)
    x = xp.asarray(host)
    names = {"x": x, "host": host.copy()}
    view = x[:]
    exec(f"x {operator} 2\nhost {operator} 2", names)
    assert names["x"] is x
    np.testing.assert_array_equal(view.get(), names["host"])


def test_unary_operators_agree_with_numpy():
    host = np.array([-2, 3])
    x = xp.asarray(host)
    for got, expected in [(-x, -host), (+x, +host), (abs(x), abs(host)), (~x, ~host)]:
        np.testing.assert_array_equal(got.get(), expected)


def test_a_matrix_product_in_place_rebinds_the_name_as_on_cupy():
    x = before = matrix()
    x @= xp.eye(4)
    assert x is not before


def test_an_operand_that_asks_for_it_is_preferred():
    assert matrix() + Foreign() == "mine"
    with pytest.raises(TypeError):
        xp.add(matrix(), Foreign())


def test_an_operand_of_an_unknown_class_is_refused():
    with pytest.raises(TypeError, match="unsupported type"):
        matrix() + object()


def test_one_element_is_a_view_without_dimensions_as_on_cupy():
    x = matrix()
    element = x[1, 2]
    element += 100.0
    assert element.shape == () and float(x[1, 2]) == 106.0
    row = xp.arange(3)
    first = row[0]
    first += 7
    assert row.get().tolist() == [7, 1, 2]


def test_a_view_shares_memory_and_knows_its_base():
    x = matrix()
    view = x[1:].T.reshape(4, 3)[0]
    view[...] = -1.0
    assert view.base is x and x.base is None
    np.testing.assert_array_equal(x.get()[1:, 0], -np.ones(3))
    assert (x + 1).base is None
    assert x.T.reshape(-1).base is None           # had to be copied


def test_the_device_copies_what_it_is_given():
    host = np.zeros(3)
    x = xp.asarray(host)
    host += 1.0
    assert x.get().tolist() == [0.0, 0.0, 0.0]
    x.get()[:] = 5.0
    assert x.get().tolist() == [0.0, 0.0, 0.0]
    assert xp.asarray(x) is x
    assert xp.array(x) is not x


def test_writing_into_out_gives_out_back():
    x, out = matrix(), xp.empty((4, 4))
    assert xp.exp(x, out=out) is out
    assert xp.matmul(x, x, out=out) is out
    assert xp.add(x, x, out) is out
    assert x.sum(axis=0, out=out[0]) is not None
    np.testing.assert_array_equal(out[0].get(), x.get().sum(0))
    quotient, remainder = xp.empty((4, 4)), xp.empty((4, 4))
    assert xp.divmod(x, 3.0, out=(quotient, remainder))[1] is remainder
    np.testing.assert_array_equal(remainder.get(), x.get() % 3.0)


HIDDEN = {
    "float(x)": lambda x: float(x.sum()),
    "int(x)": lambda x: int(x.sum()),
    "complex(x)": lambda x: complex(x.sum()),
    "bool(x)": lambda x: bool((x > 0).all()),
    "if x": lambda x: 1 if x.sum() else 2,
    "math.sqrt(x)": lambda x: math.sqrt(x.sum()),
    "an f-string": lambda x: f"{x.sum():.3f}",
    "print": lambda x: str(x),
    "repr": lambda x: repr(x),
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "tobytes": lambda x: x.tobytes(),
    "get": lambda x: x.get(),
    "asnumpy": lambda x: xp.asnumpy(x),
    "pickle": lambda x: pickle.dumps(x),
    "a mask as index": lambda x: x[x > 3],
    "nonzero": lambda x: xp.nonzero(x),
    "x.nonzero()": lambda x: x.nonzero(),
    "where of one argument": lambda x: xp.where(x > 3),
    "unique": lambda x: xp.unique(x),
    "max of Python": lambda x: max(x[0, 0], x[0, 1]),
}


@pytest.mark.parametrize("use", HIDDEN)
def test_a_transfer_to_the_host_is_counted_once_and_can_be_forbidden(use):
    x = matrix()
    before = stats.d2h
    HIDDEN[use](x)
    assert stats.d2h == before + 1
    with no_synchronization(), pytest.raises(RuntimeError, match="no_synchronization"):
        HIDDEN[use](x)


def test_iteration_gives_device_arrays_without_a_transfer():
    before = stats.d2h
    rows = list(matrix())
    assert len(rows) == 4 and all(isinstance(row, strict.ndarray) for row in rows)
    assert isinstance(next(iter(rows[0])), strict.ndarray)
    assert stats.d2h == before
    with pytest.raises(TypeError):
        list(matrix().sum())


def test_transfers_to_the_device_are_counted():
    before = stats.h2d
    xp.asarray(np.ones(3))
    xp.array([1, 2])
    xp.empty(3).set(np.ones(3))
    assert stats.h2d == before + 3


def test_forbidding_ends_with_its_block_even_after_an_error():
    with pytest.raises(KeyError), no_synchronization():
        raise KeyError
    assert float(matrix()[0, 0]) == 0.0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uninitialised_floats_are_not_numbers(dtype):
    for x in (xp.empty((2, 3), dtype), xp.empty_like(xp.ones((2, 3), dtype)), xp.ndarray((2, 3), dtype)):
        assert np.isnan(x.get()).all() and x.shape == (2, 3) and x.dtype == dtype


def test_uninitialised_integers_are_no_index():
    for dtype in ("int64", "int32", "uint8"):
        with pytest.raises(IndexError):
            matrix()[xp.empty(2, dtype)]


def test_a_buffer_is_not_exported_before_the_stream_is_done():
    x = matrix() * 2
    with pytest.raises(RuntimeError, match="synchronize"):
        _ = x.__cuda_array_interface__
    xp.cuda.get_current_stream().synchronize()
    interface = x[1:].__cuda_array_interface__        # naming a part of it queues nothing
    assert interface["shape"] == (3, 4) and interface["typestr"] == "<f8" and interface["strides"] is None
    assert interface["data"][0] == x.data.ptr + 32
    assert x.T.__cuda_array_interface__["strides"] == (8, 32)
    x[0] = 1.0
    with pytest.raises(RuntimeError, match="synchronize"):
        _ = x.__cuda_array_interface__


@pytest.mark.parametrize("write", ["x += 1", "x.fill(0)", "x.sort()", "xp.exp(x, out=x)", "x[0] = x[1]",
                                   "x.sum()"])
def test_every_kernel_makes_the_stream_busy(write):
    x = matrix()
    xp.cuda.Device().synchronize()
    exec(write, {"x": x, "xp": xp})
    with pytest.raises(RuntimeError, match="synchronize"):
        _ = x.__cuda_array_interface__


def test_two_devices_do_not_mix():
    here = xp.ones(3)
    with xp.cuda.Device(1):
        there = xp.ones(3)
        assert there.device == xp.cuda.Device(1)
        with pytest.raises(ValueError, match="device 0"):
            here + there
    with pytest.raises(ValueError, match="device 1"):
        here + there
    with pytest.raises(ValueError, match="device 1"):
        here[0:1] = there[0]


def test_every_rank_as_a_thread_has_its_own_device_counts_and_stream():
    seen = {}

    def rank(number):
        xp.cuda.Device(number).use()
        x = xp.ones(3) * number
        with no_synchronization():
            x = x + 1
        for _ in range(number):
            float(x[0])
        seen[number] = stats.d2h, x.device.id
        x.__cuda_array_interface__ if number else xp.cuda.get_current_stream().synchronize()

    before = stats.d2h
    threads = [threading.Thread(target=rank, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {0: (0, 0), 1: (1, 1), 2: (2, 2)}
    assert stats.d2h == before and stats.device == 0


def test_get_into_a_host_array():
    x, out = matrix(), np.empty((4, 4))
    assert x.get(out=out) is out
    np.testing.assert_array_equal(out, np.arange(16.0).reshape(4, 4))
    with pytest.raises(TypeError):
        x.get(out=np.empty((4, 4), "float32"))
    with pytest.raises(TypeError):
        x.get(out=np.empty(16))
    with pytest.raises(RuntimeError):
        x.get(out=np.empty((4, 4)).T)
    with pytest.raises(TypeError):
        x.set(np.ones((4, 4), "float32"))


def test_arrays_die_with_their_last_user():
    gc.disable()
    try:
        x = matrix()
        view, alive = x[1:], weakref.ref(x)
        del x
        assert alive() is not None            # the view still shows its memory
        del view
        assert alive() is None
    finally:
        gc.enable()


def test_pickles_travel_through_the_host():
    x = pickle.loads(pickle.dumps(matrix()))
    assert isinstance(x, strict.ndarray)
    np.testing.assert_array_equal(x.get(), matrix().get())


def test_bfloat16_has_no_product_of_more_than_two_dimensions():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    x = xp.ones((2, 4, 4), bfloat16)
    with pytest.raises(TypeError, match="bfloat16"):
        x @ x
    assert float((x[0] @ x[0])[0, 0]) == 4.0
    assert np.isnan(float(xp.empty(1, bfloat16)[0]))


def test_an_unknown_name_says_which_cupy_was_asked():
    with pytest.raises(AttributeError, match=r"cupy has no attribute 'block' \(CuPy 14"):
        _ = xp.block
    with pytest.raises(AttributeError, match="does not model"):
        _ = xp.RawKernel
    with pytest.raises(TypeError, match=r"cupy\.sum\(\) got an unexpected keyword argument 'where'"):
        xp.sum(matrix(), where=None)


def test_refusing_names_the_operation_and_the_way_out():
    with pytest.raises(TypeError, match=r"add: unsupported type .*ndarray.*to_device"):
        matrix() + np.ones(4)


def test_every_frozen_name_is_there_or_says_that_it_is_not_modelled():
    modelled = 0
    for name in [name for kind in ("functions", "ufuncs", "types", "constants") for name in module.API[kind]]:
        try:
            functools.reduce(getattr, name.split("."), xp)
            modelled += 1
        except AttributeError as error:
            assert "does not model" in str(error), name
    assert modelled > 350


def test_the_frozen_surface_is_of_the_cupy_that_the_backend_asks_for():
    assert module.API["version"].split(".")[0] == backend.CUPY_VERSIONS


def test_the_frozen_surface_is_what_the_installed_cupy_offers():
    cupy = pytest.importorskip("cupy", reason="needs the wheel of CuPy, but no GPU")
    if cupy.__version__ != module.API["version"]:
        pytest.skip(f"CuPy {cupy.__version__} is installed, {module.API['version']} is frozen")
    from tests.tools.freeze_cupy_api import freeze
    assert freeze() == module.API
