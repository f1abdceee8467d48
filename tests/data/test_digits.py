import gzip
import hashlib
import warnings

import numpy as np
import pytest

from data import digits
from tests.data.server import serving


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return head + array.astype(np.uint8).tobytes()


def files(train=7, test=3):
    """The four files' contents by name, packed, and the numbers in them."""
    draw = np.random.default_rng(1)
    arrays = [draw.integers(0, 256, (train, 28, 28)), np.arange(train) % 10,
              draw.integers(0, 256, (test, 28, 28)), np.arange(test) % 10]
    return {name: gzip.compress(idx(array)) for name, array in zip(digits.FILES, arrays)}, arrays


def write(folder, contents):
    for name, content in contents.items():
        (folder / name).write_bytes(content)


def check(loaded, arrays):
    for x, expected in zip(loaded[::2], arrays[::2]):
        assert x.dtype == np.float32 and x.shape == (len(expected), 784)
        assert np.array_equal(np.rint(x * 255), expected.reshape(len(expected), 784))
    for y, expected in zip(loaded[1::2], arrays[1::2]):
        assert y.dtype == np.int64 and np.array_equal(y, expected)


def test_a_folder_of_idx_files_is_read_packed_or_not(tmp_path):
    contents, arrays = files()
    write(tmp_path, contents)
    check(digits.load(tmp_path), arrays)
    for name in list(contents)[::2]:
        (tmp_path / name).unlink()
        (tmp_path / name.removesuffix(".gz")).write_bytes(gzip.decompress(contents[name]))
    check(digits.load(str(tmp_path)), arrays)


def test_missing_files_are_named(tmp_path):
    contents, _ = files()
    del contents["t10k-labels-idx1-ubyte.gz"]
    write(tmp_path, contents)
    with pytest.raises(FileNotFoundError, match="has no t10k-labels-idx1-ubyte.gz "):
        digits.load(tmp_path)


IMAGES = idx(np.zeros((2, 28, 28)))


@pytest.mark.parametrize("content, message", [
    (b"", "begins with nothing"),
    (b"PK\3\4", "begins with 50 4b 03 04, but .* begins with 00 00 08 03"),
    (idx(np.zeros(3)), "begins with 00 00 08 01"),
    (b"\0\0\x0d\3" + IMAGES[4:], "begins with 00 00 0d 03"),
    (IMAGES[:9], "cut short: 9 bytes, not even its head of 16"),
    (IMAGES[:-1], "has 1,583 bytes, but 2 x 28 x 28 numbers need 1,584: it is cut short"),
    (IMAGES + b"\0", "has 1,585 bytes, .*damaged"),
    (b"\0\0\x08\3" + b"\xff" * 12, "4294967295 x 4294967295"),
    (gzip.compress(IMAGES)[:-9], "damaged, its gzip stream"),
    (gzip.compress(IMAGES)[:20] + b"\xff" * 10, "damaged, its gzip stream"),
    (gzip.compress(IMAGES)[:-6] + b"\0\0\0\0\0\0", "damaged, its gzip stream"),
    (idx(np.zeros((7, 8, 8))), "images of 8 x 8, expected 28 x 28"),
    (idx(np.zeros((5, 28, 28))), "holds 5 images, but .* 7 labels")])
def test_a_damaged_file_is_named_with_what_is_wrong(tmp_path, content, message):
    contents, _ = files()
    write(tmp_path, {**contents, "train-images-idx3-ubyte.gz": content})
    with pytest.raises(ValueError, match=f"train-images-idx3-ubyte.gz .*{message}"):
        digits.load(tmp_path)


def test_a_label_beyond_9_is_refused(tmp_path):
    contents, _ = files()
    write(tmp_path, {**contents, "t10k-labels-idx1-ubyte.gz": idx(np.array([1, 2, 10]))})
    with pytest.raises(ValueError, match="label 10, expected 0 to 9"):
        digits.load(tmp_path)


def test_mnist_is_downloaded_once_and_checked(tmp_path, monkeypatch):
    contents, arrays = files()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    known = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    monkeypatch.setattr(digits, "FILES", known)
    with serving(404) as broken, serving("good", **contents) as server:
        monkeypatch.setattr(digits, "MIRRORS", (broken.url(""), server.url("")))
        for _ in range(2):
            check(digits.load(cache=tmp_path), arrays)
    assert server.requests == list(contents)


def test_without_network_scikit_learns_digits_come_and_a_warning_says_so(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(digits, "MIRRORS", ("http://127.0.0.1:9/",))
    with pytest.warns(UserWarning, match="(?s)could not download.*refused.*scikit-learn's 8 x 8 digits"):
        loaded = digits.load(cache=tmp_path)
    train_x, train_y, test_x, test_y = loaded
    assert train_x.shape == (1438, 784) and test_x.shape == (359, 784)
    for x, y in [(train_x, train_y), (test_x, test_y)]:
        assert x.dtype == np.float32 and y.dtype == np.int64 and x.min() == 0 and x.max() == 1
        assert np.array_equal(np.unique(y), np.arange(10))
    with warnings.catch_warnings(action="ignore"):
        assert all(map(np.array_equal, loaded, digits.load(cache=tmp_path)))
    # Nearest class mean: digits that were mixed up or scaled wrongly would not be recognised.
    means = np.stack([train_x[train_y == digit].mean(0) for digit in range(10)])
    nearest = np.argmin(((test_x[:, None] - means)**2).sum(-1), axis=1)
    assert np.mean(nearest == test_y) > 0.85


def test_scaling_keeps_a_uniform_picture_uniform_and_its_sides():
    rows = digits._interpolation(8, 28)
    assert np.allclose(rows.sum(1), 1) and np.allclose(rows, rows[::-1, ::-1])
    assert rows[0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]
