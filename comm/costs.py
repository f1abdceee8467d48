"""What a group's messages cost: from rank 0's cache, or measured now and kept there.

The file's name stands for who was measured: the hosts of all ranks in order, each with its MPI and how many cores
a rank may use. What cannot be read, or is not ours, is measured again; a folder that cannot be written is no error.
"""

import contextlib
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import platformdirs

from comm.algorithms.ring import ring_all_gather
from comm.algorithms.tree import binomial_broadcast
from comm.device import host
from comm.execute import Plan
from comm.measure import SIZES, TAG, measure, sane
from comm.predict import Curve, Model
from comm.schedule import bounds

VERSION = 1  # of the file, and of how it was measured
DIGEST = 16  # bytes that stand for where a rank runs


def costs_of(endpoint, afresh=False):
    """The Model of the ranks of this endpoint, the same on all of them. Every rank must call it.

    Rank 0 looks for it in its cache, and all get what it found; if nothing, or if `afresh`, all measure.
    """
    path = folder() / f"{key_of(endpoint)}.json"
    found = None if afresh or endpoint.rank else read(path)
    model = _from_numbers(_told(endpoint, _to_numbers(found)), "cached")
    if model is None:
        model = measure(endpoint)
        if endpoint.rank == 0:
            write(path, model)
    return model


def folder():
    """Where costs are kept: `comm` in $MINIGPT_CACHE, or else in the user's own cache folder."""
    path = os.environ.get("MINIGPT_CACHE") or platformdirs.user_cache_dir("minigpt")
    return Path(os.path.expanduser(path)) / "comm"


def key_of(endpoint):
    """A name for this set of hosts, the same on all ranks: each rank tells where it runs."""
    told = host.empty(endpoint.size * DIGEST, "u1")
    mine = hashlib.blake2b(endpoint.place().encode(), digest_size=DIGEST).digest()
    told.reshape(-1, DIGEST)[endpoint.rank] = memoryview(mine)
    Plan(endpoint, ring_all_gather, told, bounds(told.size, endpoint.size), tag=TAG).run()
    nodes = ",".join(map(str, endpoint.nodes))
    return f"costs-{endpoint.size}-{hashlib.blake2b(told.tobytes() + nodes.encode(), digest_size=DIGEST).hexdigest()}"


def read(path):
    """The Model in a file, or None if it is not there, not whole, or not such a file."""
    try:
        kept = json.loads(Path(path).read_text())
        if kept["version"] != VERSION:
            return None
        costs = [Curve(tuple(map(float, cost[0])), tuple(map(float, cost[1]))) if isinstance(cost, list) else
                 float(cost) for cost in (kept["costs"][name] for name in Model._fields[:-1])]
        model = Model(*costs, "cached")
        _to_numbers(model)
        return model if sane(model) == model else None
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, ZeroDivisionError):
        return None


def write(path, model):
    """Keep a Model: the file is there whole or not at all. What the file system refuses is left."""
    text = json.dumps({"version": VERSION, "costs": model._asdict()}, indent=1)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")  # who else writes this file is of this host
        try:
            draft.write_text(text)
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)


def _told(endpoint, numbers):
    """What rank 0 has, on every rank."""
    numbers = host.like(numbers.shape, numbers.dtype) if endpoint.rank else numbers
    Plan(endpoint, binomial_broadcast, numbers, [0, numbers.size], tag=TAG).run()
    return numbers


def _to_numbers(model):
    """A Model (or None) as (n,) float64, the same n always: for each cost how many points, sizes, seconds."""
    rows = np.zeros((len(Model._fields) - 1, 1 + 2 * len(SIZES)))
    for row, cost in zip(rows, model or ()):
        if isinstance(cost, Curve):
            row[0] = n = len(cost.sizes)
            if n > len(SIZES) or n != len(cost.seconds) or list(cost.sizes) != sorted(set(cost.sizes)):
                raise ValueError("no Curve")
            row[1:1 + n], row[1 + n:1 + 2 * n] = cost
        elif isinstance(cost, float):
            row[1] = cost
    return rows.reshape(-1)


def _from_numbers(numbers, source):
    """The Model of `_to_numbers`, or None."""
    if not numbers.any():
        return None
    costs = []
    for row in numbers.reshape(len(Model._fields) - 1, -1).tolist():
        n = int(row[0])
        costs.append(Curve(tuple(row[1:1 + n]), tuple(row[1 + n:1 + 2 * n])) if n else row[1])
    return Model(*costs, source)
