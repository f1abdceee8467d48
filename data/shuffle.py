"""A random order of n things without storing it: any place of the order is computed by itself."""

import numpy as np

ROUNDS = 12       # four do for large counts (Luby & Rackoff 1988), but with six 5 things come out uneven


def mix(x):
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014): integers to well mixed uint64, one to one."""
    if isinstance(x, int):
        x = x % 2**64                             # any seed, negative ones too
    x = np.atleast_1d(np.asarray(x)).astype(np.uint64)
    x = x + np.uint64(0x9E3779B97F4A7C15)         # wraps, as meant
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def permute(places, count, keys):
    """Who stands at `places` (0 .. count-1) of the order of `count` things that `keys` name; int64.

    keys: uint64 of the shape of `places`; equal keys name the same order. A Feistel network permutes the
    numbers below the next power of four; what falls at `count` or above goes round again until it is below
    (cycle walking, Black and Rogaway 2002), fewer than four rounds on average.
    """
    half = np.uint64(max(1, (int(count - 1).bit_length() + 1) // 2))
    result = np.asarray(places).astype(np.uint64)
    keys = np.broadcast_to(keys, result.shape)
    outside = np.ones(result.shape, bool)
    while outside.any():
        result[outside] = _feistel(result[outside], half, keys[outside])
        outside &= result >= count
    return result.astype(np.int64)


def _feistel(x, half, keys):
    low = np.uint64((1 << int(half)) - 1)
    left, right = x >> half, x & low
    for _ in range(ROUNDS):
        keys = mix(keys)
        left, right = right, left ^ (mix(keys ^ right) & low)
    return (left << half) | right
