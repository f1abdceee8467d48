"""The folder of a run: one process writes there at a time, and an earlier run is set aside."""

import filelock

from minigpt.errors import UserError

PATIENCE = 2.0              # seconds in which the ranks of a run that was killed come to their end


def claim(folder):
    """The lock that keeps other runs out of `folder` until it is released or this process ends, however it ends.

    Raises UserError if another run holds it, or nothing can be written there.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder.parent / f".{folder.name}.lock")
        lock.acquire(timeout=PATIENCE)
    except filelock.Timeout:
        raise UserError(f"another run is writing in {folder}: wait for its end, or choose another train.name") from None
    except OSError as error:
        raise UserError(f"cannot write in {folder.parent} ({error.strerror or error}): choose another train.folder, "
                        "or make room") from None
    return lock


def set_aside(folder, say):
    """Give the folder of an earlier run the next free number, so that nothing of it is lost.

    Raises UserError if what is there is no run, so that no other folder is ever moved.
    """
    if not folder.exists():
        return
    if not is_run(folder):
        raise UserError(f"{folder} is there but is not the folder of a run: choose another train.name or train.folder")
    number = 1
    while (other := folder.with_name(f"{folder.name}.{number}")).exists():
        number += 1
    folder.rename(other)
    say(f"The earlier run in {folder} is now in {other}.")


def is_run(folder):
    if not folder.is_dir():
        return False
    return not any(folder.iterdir()) or (folder / "checkpoints").is_dir() or (folder / "metrics.jsonl").is_file()
