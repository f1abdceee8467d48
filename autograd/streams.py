"""Counter-based random streams: a value is a function of its name and coordinates, never of who drew before.

Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011) maps a
128-bit counter under a 64-bit key to four random 32-bit words.  The key is a hash of (seed, use, name), the
counter holds the coordinates.  So a rank draws its shard of a parameter, or its part of a dropout mask, with
the bits that the serial run has there.  The same arithmetic runs on NumPy and CuPy.

    parameter, element i of the full array in C order:   counter (i//4 mod 2^32, i//4 >> 32, 0, 0), lane i%4
    dropout, channel c of (step, sample, position):      counter (c//4, position, sample, step),    lane c%4
"""
import hashlib
import math
import operator

from autograd.backend import is_array, to_device, to_host, xp

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85                  # what the key grows by each round: golden ratio, sqrt(3) - 1
ROUNDS = 10
LOW = 0xFFFFFFFF
TILE = 2**14                                   # counters at a time: their words stay in the L2 cache


def key(seed, name, use=""):
    """-> (k0, k1), the Philox key of a stream: 64 bits of blake2b.

    `use` ("normal", "uniform", "dropout") keeps apart the streams of one name.
    """
    text = f"{operator.index(seed)}\0{use}\0{name}".encode()
    digest = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")


def philox(counter, key):
    """-> list of four uint64 arrays that hold 32-bit random words, of the counters' common shape.

    counter: four ints or arrays of integers, broadcast together and taken modulo 2^32; key: two ints.
    """
    shape = xp.broadcast_shapes(*(word.shape for word in counter if is_array(word)))
    c0, c1, c2, c3 = (_word(word, shape) for word in counter)
    k0, k1 = key
    a, b = xp.empty(shape, xp.uint64), xp.empty(shape, xp.uint64)
    for _ in range(ROUNDS):
        xp.multiply(c0, MULTIPLIERS[0], out=a)
        xp.multiply(c2, MULTIPLIERS[1], out=b)
        xp.right_shift(b, 32, out=c0)          # c0, c1 = high(b) ^ c1 ^ k0, low(b)
        c0 ^= c1
        c0 ^= k0
        xp.bitwise_and(b, LOW, out=c1)
        xp.right_shift(a, 32, out=c2)          # c2, c3 = high(a) ^ c3 ^ k1, low(a)
        c2 ^= c3
        c2 ^= k1
        xp.bitwise_and(a, LOW, out=c3)
        k0, k1 = (k0 + WEYL[0]) & LOW, (k1 + WEYL[1]) & LOW
    return [c0, c1, c2, c3]


def _word(word, shape):
    if not is_array(word):
        return xp.full(shape, operator.index(word) & LOW, xp.uint64)
    full = xp.empty(shape, xp.uint64)
    full[...] = word.astype(xp.uint64)
    full &= LOW
    return full


def normal(seed, name, shape, std=1.0, mean=0.0, dtype="float32", region=None):
    """-> array of `xp`, normally distributed: the part `region` of the array of `shape` with this name.

    region: None for all, or a tuple that has for each leading axis a slice, a list or a 1-d array of indices,
    combined as in np.ix_.  The result equals the whole draw indexed by region, bit for bit.  Box-Muller in
    float64 on two words each, so |z| < 6.8, rounded once to dtype: float32 and float64 models start at the
    same point.  Raises ValueError, TypeError or IndexError for a region that does not fit shape.
    """
    def gaussian(words):
        first, second = _box_muller(words[0], words[1]), _box_muller(words[2], words[3])
        return [_affine(z, std, mean) for z in (*first, *second)]
    return _draw(key(seed, name, "normal"), shape, region, dtype, gaussian)


def uniform(seed, name, shape, low=0.0, high=1.0, dtype="float32", region=None):
    """-> array of `xp`, uniform between low and high.  As `normal`.

    Neither end is drawn, but rounding to a dtype narrower than float64 may reach one.
    """
    def between(words):
        return [_affine(_open_unit(word), high - low, low) for word in words]
    return _draw(key(seed, name, "uniform"), shape, region, dtype, between)


def _open_unit(word):
    """(word + 1/2) / 2^32: strictly between 0 and 1, exact in float64."""
    u = word.astype(xp.float64)
    u += 0.5
    u *= 2.0**-32
    return u


def _box_muller(radius_word, angle_word):
    """Two independent standard normals from two words (Box and Muller, 1958)."""
    radius, angle = _open_unit(radius_word), _open_unit(angle_word)
    xp.log(radius, out=radius)
    radius *= -2.0
    xp.sqrt(radius, out=radius)
    angle *= 2 * math.pi
    sine = xp.sin(angle)
    xp.cos(angle, out=angle)
    sine *= radius
    angle *= radius
    return angle, sine


def _affine(x, scale, shift):
    x *= scale
    x += shift
    return x


def _draw(key, shape, region, dtype, values):
    """The drawing loop of `normal` and `uniform`; values: four arrays of words -> four arrays of numbers."""
    shape = tuple(operator.index(n) for n in shape)
    axes = _axes(shape, region)
    cut = tuple(len(axis) for axis in axes)
    y = xp.empty(math.prod(cut), dtype)
    if y.dtype.kind in "biu":
        raise ValueError(f"dtype={dtype}: expected a float type, {y.dtype} would round the values away")
    start = _first_of_run(axes, shape)
    if start is None:
        _draw_scattered(y, axes, shape, key, values)
    else:
        _draw_run(y, start, key, values)
    return y.reshape(cut)


def _draw_run(y, start, key, values):
    """y[j] = element start + j: all four lanes of every counter are used."""
    for low in range(start // 4, -(-(start + y.size) // 4), TILE):
        high = min(low + TILE, -(-(start + y.size) // 4))
        n = xp.arange(low, high, dtype=xp.uint64)
        lanes = xp.stack(values(philox((n & LOW, n >> 32, 0, 0), key)), axis=-1).reshape(-1)
        first, last = max(4 * low, start), min(4 * high, start + y.size)
        y[first - start:last - start] = lanes[first - 4 * low:last - 4 * low]


def _draw_scattered(y, axes, shape, key, values):
    """y[j] = the element with the j-th combination of indices; three of four lanes go unused."""
    axes = [xp.arange(a.start, a.stop, a.step) if isinstance(a, range) else to_device(a) for a in axes]
    for low in range(0, y.size, TILE):
        rest = xp.arange(low, min(low + TILE, y.size))
        flat, stride = xp.zeros_like(rest), 1
        for axis, size in zip(reversed(axes), reversed(shape), strict=True):
            flat += axis[rest % len(axis)] * stride
            rest //= len(axis)
            stride *= size
        n = flat // 4
        lanes = xp.stack(values(philox((n & LOW, n >> 32, 0, 0), key)))
        y[low:low + TILE] = xp.take_along_axis(lanes, (flat % 4)[None], axis=0)[0]


def _axes(shape, region):
    """-> for each axis of shape, the indices wanted: a range or a host array."""
    region = () if region is None else tuple(region)
    if len(region) > len(shape):
        raise ValueError(f"region has {len(region)} axes, the shape {shape} only {len(shape)}")
    axes = []
    for axis, size in enumerate(shape):
        part = region[axis] if axis < len(region) else slice(None)
        if isinstance(part, slice):
            axes.append(range(*part.indices(size)))
            continue
        part = to_host(part)
        if part.ndim != 1 or (part.size and part.dtype.kind not in "iu"):
            raise TypeError(f"region[{axis}]: expected a slice or a 1-d array of indices, got {part!r}")
        if part.size and not 0 <= part.min() <= part.max() < size:
            raise IndexError(f"region[{axis}] reaches from {part.min()} to {part.max()}, the axis has {size}")
        axes.append(part.astype("int64"))
    return axes


def _first_of_run(axes, shape):
    """-> flat number of the first element if the region is one run in C order, else None."""
    start, stride, whole = 0, 1, True
    for axis, size in zip(reversed(axes), reversed(shape), strict=True):
        if not isinstance(axis, range) or axis.step != 1 or not (whole or len(axis) == 1):
            return None
        start += axis.start * stride
        stride *= size
        whole = len(axis) == size
    return start


def keep_mask(p, seed, name, *, step, samples, positions, channels):
    """-> bool array (B, T, C) of `xp`: what dropout with probability p keeps.  P(True) = 1 - p.

    step: int; samples (B,) and positions (T,) or (B, T): global numbers, taken modulo 2^32; channels: how
    many, or which: a range or a 1-d host array of global numbers.  Some of the samples, positions or channels
    give that part of the mask, bit for bit.  Raises ValueError unless 0 <= p <= 1 and the shapes fit.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability p={p}: expected 0 <= p <= 1")
    threshold = round(p * 2**32)               # drop the words below: at most 2^-33 off in probability
    channels, columns = _cover(channels)
    samples, positions, rows = _rows(samples, positions)
    stream, offset = key(seed, name, "dropout"), channels.start % 4
    blocks = xp.arange(channels.start // 4, -(-channels.stop // 4), dtype=xp.uint64)
    keep = xp.empty((len(samples), len(channels)), bool)
    tile = max(1, TILE // max(1, len(blocks)))
    for row in range(0, len(samples), tile):
        part = slice(row, row + tile)
        words = philox((blocks, positions[part], samples[part], step), stream)
        lanes = xp.stack([word >= threshold for word in words], axis=-1).reshape(len(words[0]), -1)
        keep[part] = lanes[:, offset:offset + len(channels)]
    keep = keep if columns is None else keep[:, to_device(columns)]
    return keep.reshape(*rows, keep.shape[1])


def _rows(samples, positions):
    """-> sample and position of each of the B T rows, as columns, and (B, T)."""
    samples, positions = to_device(samples), to_device(positions)
    rows = *samples.shape, *positions.shape[-1:]
    if samples.ndim != 1 or positions.ndim == 0 or positions.shape not in (rows, rows[1:]):
        raise ValueError(f"samples {samples.shape} positions {positions.shape}: expected (B,), (T,) or (B,T)")
    if any(x.size and x.dtype.kind not in "iu" for x in (samples, positions)):
        raise ValueError(f"samples {samples.dtype} positions {positions.dtype}: expected whole numbers")
    samples = xp.broadcast_to(samples[:, None], rows).reshape(-1, 1)
    return samples, xp.broadcast_to(positions, rows).reshape(-1, 1), rows


def _cover(channels):
    """-> (range that holds all channels, their places in it or None if they are the range)."""
    if not hasattr(channels, "__len__"):
        return range(operator.index(channels)), None
    if isinstance(channels, range) and channels.step == 1:
        return channels, None
    numbers = to_host(channels)
    if numbers.size == 0:
        return range(0), None
    return range(int(numbers.min()), int(numbers.max()) + 1), numbers - numbers.min()
