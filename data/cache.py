"""Where prepared corpora and downloads lie, and how a file appears there whole or not at all."""

import os
from contextlib import contextmanager
from pathlib import Path

import filelock
import platformdirs


def folder(cache=None):
    """The cache folder: `cache` if given, else $MINIGPT_CACHE, else the user's own cache folder."""
    path = cache or os.environ.get("MINIGPT_CACHE") or platformdirs.user_cache_dir("minigpt")
    return Path(os.path.expanduser(path))


@contextmanager
def locked(path, say):
    """Hold the lock beside `path`, so that of several processes one builds it and the others wait.

    Makes the folder if need be. Raises OSError if it cannot be written, saying what to set.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(f"{path}.lock")
        try:
            lock.acquire(timeout=0.5)
        except filelock.Timeout:
            say(f"waiting for another process that prepares {path.name}")
            lock.acquire()
    except OSError as error:
        raise OSError(f"cannot write to the cache folder {path.parent} ({error.strerror or error}); "
                      "set MINIGPT_CACHE to a folder that you may write to") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def replacing(path):
    """A temporary name beside `path`, renamed to it if the block ends well and removed if it does not.

    Call it under `locked(path)`: the lock is what makes the temporary name ours alone.
    """
    partial = path.with_name(f"{path.name}.part")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
