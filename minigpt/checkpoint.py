"""Saved state: weights and moments in HDF5, everything else in a JSON index. Data only, no code (case 116).

    step-00000500/index.json        step, configuration (TOML), tokenizer (JSON), where every parameter lies, checksums
    step-00000500/shard-0000.h5     parameters/<name> and <moment>/<name>, in the bits that training holds

One rank writes a file (cases 108, 110). All is written under another name, flushed to the disk and renamed, so a
checkpoint is whole or not there, and a kill leaves the one before (case 107).
"""

import errno
import hashlib
import json
import os
import re
import shutil
from pathlib import Path

from autograd.backend import to_device, to_host, xp
from minigpt.errors import UserError

FORMAT = 1
PREFIX = "step-"
SHARD = "shard-0000.h5"
BLOCK = 1 << 20
OVERHEAD = 2048             # bytes that HDF5 needs for a dataset beside its content, at most


class CheckpointError(UserError, ValueError):
    """A checkpoint that is damaged, missing or made for something else; the message says what to do."""


def save(folder, step, flat, optimizer, config, tokenizer, ranks=1):
    """Write checkpoint `step` into `folder` and return its path.

    flat, optimizer    what is saved: parameters by name and the optimizer's moments of each
    config, tokenizer  TOML and JSON text
    ranks              how many trained together: with another number a run goes on, but on other samples

    Raises CheckpointError, and leaves nothing behind, if a weight is not finite (case 123) or there is no room.
    """
    refuse_not_finite(flat, step)
    path = Path(folder) / f"{PREFIX}{step:08d}"
    draft = path.with_name(path.name + ".draft")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        write(draft, step, flat, optimizer, config, tokenizer, ranks)
        replace(draft, path)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise CheckpointError(f"step {step} could not be saved in {folder} ({error.strerror or error}); the "
                              "checkpoints before it are as they were: make room, then go on from them") from None
    return path


def write(draft, step, flat, optimizer, config, tokenizer, ranks):
    draft.mkdir(parents=True)
    write_shard(draft / SHARD, {"parameters": flat.data, **optimizer.moments}, flat)
    index = {
        "format": FORMAT, "step": step, "ranks": ranks, "config": config, "tokenizer": tokenizer,
        "optimizer": {"name": type(optimizer).__name__, "steps": optimizer.steps, "moments": list(optimizer.moments)},
        "parameters": {name: {"shape": list(each.full_shape), "dtype": str(each.dtype), "file": SHARD}
                       for name, each in flat.parameters.items()},
        "files": {SHARD: digest(draft / SHARD)},
    }
    index["checksum"] = checksum(index)
    (draft / "index.json").write_text(json.dumps(index, indent=1), encoding="utf-8")
    for each in (*draft.iterdir(), draft):
        flush(each)


def replace(draft, path):
    """Put `draft` in the place of `path`, where a checkpoint of the same step may be, saved before a resume."""
    old = path.with_name(path.name + ".old.draft")
    shutil.rmtree(old, ignore_errors=True)
    if path.exists():
        path.rename(old)
    draft.rename(path)
    flush(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def write_shard(path, buffers, flat):
    import h5py  # 20 MB: only for those who save or load

    names = [f"{kind}/{name}" for kind in buffers for name in flat.parameters]
    reserve(path, sum(buffer.nbytes for buffer in buffers.values()) + OVERHEAD * (len(names) + 32))
    with h5py.File(path, "w") as file:
        for kind, buffer in buffers.items():
            for name in flat.parameters:
                file.create_dataset(f"{kind}/{name}", data=to_host(flat.view(buffer, name)))


def reserve(path, size):
    """Raise OSError if the disk has no room for `size` bytes: HDF5 would end the process by a segmentation fault."""
    if shutil.disk_usage(path.parent).free < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if hasattr(os, "posix_fallocate"):                  # counts quotas, too
        with open(path, "wb") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    raise                               # others: this file system cannot reserve


def refuse_not_finite(flat, step):
    for name in flat.parameters:
        if not bool(xp.isfinite(flat.view(flat.data, name)).all()):
            raise CheckpointError(f"step {step}: {name} is not finite, so nothing was saved; the last checkpoint is as "
                                  "it was. A smaller optim.lr may help, train.debug=true names the op")


def flush(path):
    """Make the disk hold what was written: a file's content, or a folder's names."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest(path):
    whole = hashlib.blake2b()
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            whole.update(block)
    return whole.hexdigest()


def checksum(index):
    content = json.dumps({key: value for key, value in index.items() if key != "checksum"}, sort_keys=True)
    return hashlib.blake2b(content.encode()).hexdigest()


def steps(folder):
    """{step: path} of the checkpoints in `folder`, oldest first; drafts that a kill left behind are not among them."""
    found = {}
    for path in sorted(Path(folder).glob(f"{PREFIX}*")):
        if re.fullmatch(rf"{PREFIX}\d+", path.name):
            found[step_of(path)] = path
    return found


def step_of(path):
    """After how many steps the checkpoint `path` was saved."""
    return int(path.name.removeprefix(PREFIX))


def prune(folder, keep):
    """Remove all but the newest `keep` checkpoints (0: none is removed) and every draft."""
    for draft in Path(folder).glob(f"{PREFIX}*.draft"):
        shutil.rmtree(draft, ignore_errors=True)
    for path in list(steps(folder).values())[:-keep or None]:
        if keep:
            shutil.rmtree(path)


def find(place):
    """The checkpoint that `place` means: itself, or the newest in it, or in its checkpoints folder.

    Raises CheckpointError if there is none.
    """
    place = Path(place)
    if (place / "index.json").exists():
        return place
    for folder in (place, place / "checkpoints"):
        found = steps(folder)
        if found:
            return found[max(found)]
    raise CheckpointError(f"there is no checkpoint in {place}: expected the folder of a run, such as "
                          f"runs/python-docs, or one {PREFIX}... folder of its checkpoints")


class Snapshot:
    """A checkpoint that was read and found whole: `step`, `ranks`, `config` and `tokenizer` (texts), `index`.

    Raises CheckpointError if anything in it was changed since it was saved.
    """

    def __init__(self, path):
        self.path = Path(path)
        try:
            self.index = json.loads((self.path / "index.json").read_text(encoding="utf-8"))
            if self.index.get("format") != FORMAT:
                raise CheckpointError(f"{self.path} has format {self.index.get('format')}, this minigpt reads format "
                                      f"{FORMAT}: use the version that wrote it")
            whole = self.index["checksum"] == checksum(self.index)
            for name, expected in self.index["files"].items():
                whole = whole and digest(self.path / name) == expected
            self.step, self.ranks = self.index["step"], self.index["ranks"]
            self.config, self.tokenizer = self.index["config"], self.index["tokenizer"]
        except (OSError, ValueError, KeyError, AttributeError) as error:
            if isinstance(error, CheckpointError):
                raise
            raise self.damaged(f"{type(error).__name__}: {error}") from None
        if not whole:
            raise self.damaged("its checksum does not fit its content")

    def damaged(self, reason):
        others = [each for each in steps(self.path.parent).values() if each != self.path]
        advice = f"; the one before it is {others[-1]}: delete the damaged one to go on from there" if others else ""
        return CheckpointError(f"the checkpoint {self.path} is damaged ({reason}){advice}")

    def restore(self, flat, optimizer=None):
        """Set the weights of `flat`, and the state of `optimizer`, to what was saved, bit for bit.

        Raises CheckpointError if they are of another model, precision or optimizer; then nothing was changed.
        """
        self.compare(flat, optimizer)
        import h5py

        buffers = {"parameters": flat.data, **(optimizer.moments if optimizer else {})}
        with h5py.File(self.path / SHARD, "r") as file:
            for kind, buffer in buffers.items():
                for name in flat.parameters:
                    flat.view(buffer, name)[...] = to_device(file[kind][name][()])
        if optimizer:
            optimizer.steps = self.index["optimizer"]["steps"]

    def compare(self, flat, optimizer):
        saved = {name: (tuple(each["shape"]), each["dtype"]) for name, each in self.index["parameters"].items()}
        here = {name: (each.full_shape, str(each.dtype)) for name, each in flat.parameters.items()}
        for name in saved | here:
            if saved.get(name) != here.get(name):
                raise CheckpointError(f"{self.path} is of another model: it has {name} {describe(saved.get(name))}, "
                                      f"this model {describe(here.get(name))}")
        name, moments = self.index["optimizer"]["name"], self.index["optimizer"]["moments"]
        if optimizer and (type(optimizer).__name__, list(optimizer.moments)) != (name, moments):
            raise CheckpointError(f"{self.path} was trained with {name} ({', '.join(moments)}), this run has "
                                  f"{type(optimizer).__name__} ({', '.join(optimizer.moments)}): set optim.name back")


def describe(parameter):
    return "not at all" if parameter is None else f"as {parameter[1]} {parameter[0]}"
