"""Handwritten digits: MNIST from its IDX files, or scikit-learn's smaller ones where there is no network."""

import gzip
import math
import os
import warnings
import zlib
from pathlib import Path

import numpy as np

from data import cache as caching
from data import download

FILES = {   # SHA-256 of the four files, in the order that `load` returns them
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
MIRRORS = ("https://ossci-datasets.s3.amazonaws.com/mnist/",
           "https://storage.googleapis.com/cvdf-datasets/mnist/")
SIDE = 28
HELD_OUT = 0.2                                    # of scikit-learn's 1,797 digits


def load(path=None, *, cache=None, progress=None):
    """(train_x, train_y, test_x, test_y): x (N, 784) float32 in 0..1, y (N,) int64 in 0..9.

    path: a folder with MNIST's four files, or others of the same form (Fashion-MNIST), packed by gzip or not.
    Without it they are downloaded once; where that fails, scikit-learn's 8 x 8 digits are scaled to 28 x 28
    instead, and a warning says so. Raises ValueError for damaged files, FileNotFoundError for missing ones.
    """
    if path is not None:
        return read(Path(os.path.expanduser(path)))
    try:
        return read(get(cache, progress))
    except download.DownloadError as error:
        warnings.warn(f"{error}\nGoing on with scikit-learn's 8 x 8 digits, scaled to {SIDE} x {SIDE}: 1,797 "
                      "digits instead of 70,000.", stacklevel=2)
        return small()


def get(cache=None, progress=None):
    """The cache's folder of MNIST's four files, downloaded if need be. Raises download.DownloadError."""
    folder = caching.folder(cache) / "downloads" / "mnist"
    advice = (f"Without internet, put MNIST's four files into {folder} yourself, "
              "or give the folder they are in as the path.")
    for name, sha256 in FILES.items():
        download.fetch([mirror + name for mirror in MIRRORS], folder / name, sha256, advice,
                       progress or (lambda line: None))
    return folder


def read(folder):
    """The four arrays of `load` from the IDX files in `folder`."""
    packed = [folder / name for name in FILES]
    paths = [path if path.is_file() else path.with_suffix("") for path in packed]
    missing = [name for name, path in zip(FILES, paths) if not path.is_file()]
    if missing:
        raise FileNotFoundError(f"{folder} has no {', '.join(missing)} (nor the same without .gz)")
    return *_images_and_labels(*paths[:2]), *_images_and_labels(*paths[2:])


def _images_and_labels(images, labels):
    x, y = parse_idx(images, 3), parse_idx(labels, 1)
    if len(x) != len(y):
        raise ValueError(f"{images} holds {len(x)} images, but {labels} {len(y)} labels")
    if x.shape[1:] != (SIDE, SIDE):
        raise ValueError(f"{images} holds images of {x.shape[1]} x {x.shape[2]}, expected {SIDE} x {SIDE}")
    if y.max(initial=0) > 9:
        raise ValueError(f"{labels} holds the label {y.max()}, expected 0 to 9")
    return x.reshape(len(x), SIDE * SIDE).astype(np.float32) / 255, y.astype(np.int64)


def parse_idx(path, dimensions):
    """The uint8 array in an IDX file, by gzip or not.

    Two zero bytes, a type, the number of dimensions, each size as a big-endian int32, then the numbers.
    Raises ValueError for another type, another number of dimensions or another length.
    """
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is damaged, its gzip stream cannot be read: {error}") from None
    magic, head = bytes([0, 0, 8, dimensions]), 4 + 4 * dimensions
    if data[:4] != magic:
        raise ValueError(f"{path} begins with {data[:4].hex(' ') or 'nothing'}, but an IDX file of bytes "
                         f"in {dimensions} dimensions begins with {magic.hex(' ')}")
    if len(data) < head:
        raise ValueError(f"{path} is cut short: {len(data)} bytes, not even its head of {head}")
    shape = [int.from_bytes(data[i:i + 4], "big") for i in range(4, head, 4)]
    expected = head + math.prod(shape)
    if len(data) != expected:
        raise ValueError(f"{path} has {len(data):,} bytes, but {' x '.join(map(str, shape))} numbers need "
                         f"{expected:,}: it is {'cut short' if len(data) < expected else 'damaged'}")
    return np.frombuffer(data, np.uint8, offset=head).reshape(shape)


def small():
    """scikit-learn's 1,797 digits of 8 x 8, scaled to 28 x 28, in a random order that is always the same."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ModuleNotFoundError("the 8 x 8 digits come with scikit-learn, which is not installed: "
                                  "pip install scikit-learn") from None
    x, y = load_digits(return_X_y=True)
    scale = _interpolation(8, SIDE)
    x = scale @ (x.reshape(-1, 8, 8) / 16) @ scale.T
    x = np.clip(x, 0, 1).reshape(-1, SIDE * SIDE).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(x))
    test, train = np.split(order, [int(len(x) * HELD_OUT)])
    return x[train], y[train].astype(np.int64), x[test], y[test].astype(np.int64)


def _interpolation(old, new):
    """(new, old): each row mixes the two nearest of `old` pixels by their distance."""
    places = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    return np.maximum(0, 1 - abs(places[:, None] - np.arange(old)))
