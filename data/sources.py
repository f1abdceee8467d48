"""Where a corpus comes from: a name, or a file or folder of the user's. Each is a Source: digest and text."""

import difflib
import hashlib
import os
import sysconfig
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from data import download, text

SHAKESPEARE = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"


class Source(NamedTuple):
    name: str
    digest: Callable[[], str]      # SHA-256 of everything that `read` reads; cheap beside tokenising it
    read: Callable[[], str]


def find(name_or_path, encoding, cache, say):
    """The Source of that name, or else of that path. Raises FileNotFoundError with the nearest name."""
    if name_or_path in NAMED:
        return NAMED[name_or_path][0](cache, say)
    if not str(name_or_path):
        raise ValueError(f"no corpus was named: give one of {', '.join(NAMED)}, a file or a folder")
    path = Path(os.path.expanduser(name_or_path))
    if path.is_dir():
        return _folder(path, encoding, cache, say)
    if path.is_file():
        return Source(_printable(path.stem), lambda: _digest([path]), lambda: _read(path, encoding))
    if path.exists():
        raise ValueError(f"{path} is neither a file nor a folder; copy what it gives into a file")
    near = difflib.get_close_matches(str(name_or_path), NAMED, n=1)
    raise FileNotFoundError(f"there is no corpus, file or folder {str(name_or_path)!r}"
                            + (f"; did you mean {near[0]!r}?" if near else "")
                            + f" (corpora: {', '.join(NAMED)}; anything else is a path)")


def _python_docs(cache, say):
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise FileNotFoundError("this Python has no pydoc_data.topics, the text of the corpus python-docs; "
                                "install the whole standard library, or give the path of a text") from None
    whole = "\n".join(topics[topic] for topic in sorted(topics))
    return Source("python-docs", lambda: hashlib.sha256(whole.encode()).hexdigest(), lambda: whole)


def _python_stdlib(cache, say):
    root = Path(sysconfig.get_path("stdlib"))
    leave = {"test", "tests", "idle_test", "site-packages", "dist-packages"}
    files = [path for path in _walk(root, leave)
             if path.suffix == ".py" and not path.name.startswith("_sysconfigdata")]    # differs by machine
    return Source("python-stdlib", lambda: _digest(files, root), lambda: "\n".join(map(_read_python, files)))


def _shakespeare(cache, say):
    path = cache / "downloads" / "tinyshakespeare.txt"
    advice = ("Without internet, give the path of a text instead of 'shakespeare', or put the file there "
              f"yourself, as\n  {path}\nor use a corpus that comes with Python: python-docs, python-stdlib.")
    download.fetch([SHAKESPEARE], path, SHAKESPEARE_SHA256, advice, say)
    return Source("shakespeare", lambda: SHAKESPEARE_SHA256, lambda: _read(path, "utf-8"))


NAMED = {
    "python-docs": (_python_docs, "the language reference that comes with Python, 0.5 MB"),
    "python-stdlib": (_python_stdlib, "the sources of Python's standard library without tests, 12 MB"),
    "shakespeare": (_shakespeare, "tinyshakespeare, the corpus of char-rnn and nanoGPT, 1.1 MB, a download"),
}


def _folder(root, encoding, cache, say):
    """Every text below `root`, ordered by name; hidden files and those that look binary are left out."""
    files, binary = [], []
    for path in _walk(root, leave={"__pycache__"}, beside=cache.resolve()):
        (binary if encoding is None and _looks_binary(path) else files).append(path)
    if binary:
        say(f"{root}: left out {len(binary)} files that are not text, for example {binary[0]}")
    if not files:
        raise ValueError(f"{root} holds no text files ({len(binary)} files that are not text)")
    return Source(_printable(root.resolve().name) or "root", lambda: _digest(files, root),
                  lambda: "\n".join(_read(path, encoding) for path in files))


def _walk(root, leave, beside=None):
    """The files below `root`, sorted, without hidden ones, folders named in `leave` and the folder `beside`."""
    found = []
    for folder, folders, files in os.walk(root, onerror=_raise):
        folders[:] = [each for each in folders if each not in leave and not each.startswith(".")
                      and Path(folder, each).resolve() != beside]
        found += [Path(folder, each) for each in files if not each.startswith(".")]
    return sorted(path for path in found if path.is_file())


def _raise(error):
    raise error


def _printable(name):
    """A file's name may be any bytes; HDF5 and terminals want characters."""
    return name.encode("utf-8", "replace").decode()


def _looks_binary(path):
    with open(path, "rb") as file:
        head = file.read(8192)
    return b"\0" in head and not any(head.startswith(mark) for mark, _ in text.BYTE_ORDER_MARKS)


def _read(path, encoding):
    return text.decode(path.read_bytes(), str(path), encoding)


def _read_python(path):
    with open(path, "rb") as file:
        encoding, _ = tokenize.detect_encoding(file.readline)         # PEP 263
    return _read(path, encoding)


def _digest(paths, root=None):
    """SHA-256 over names below `root` and contents: of one file, of its content only."""
    if root is None:
        return download.hash_of(paths[0])
    whole = hashlib.sha256()
    for path in paths:
        line = f"{path.relative_to(root).as_posix()}\0{download.hash_of(path)}\n"
        whole.update(line.encode(errors="surrogateescape"))
    return whole.hexdigest()
