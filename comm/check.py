"""MINIGPT_COMM_CHECK=1: before each collective the ranks agree on what they are about to do.

Without it, ranks that call different things hang, or add numbers that do not belong together. With it, each
rank passes a header (operation, dtype, count, root, and the line that called) round the ring, and every rank
raises the same Mismatch. It costs a short all-gather for every collective, which the ledger leaves out, and
nothing when it is off.
"""

import os
import sys

from comm.algorithms.ring import ring_all_gather
from comm.device import host
from comm.execute import COLLECTIVE_TAG, Plan
from comm.schedule import bounds

HEADER = 256  # bytes
TAG = COLLECTIVE_TAG + 1


class Mismatch(RuntimeError):
    """Ranks of one group called different collectives, or the same one with different arguments."""


def wanted():
    """Is MINIGPT_COMM_CHECK set to anything but 0?"""
    return os.environ.get("MINIGPT_COMM_CHECK", "0") not in ("", "0")


class Checker:
    """Compares calls over the ranks of one endpoint."""

    def __init__(self, endpoint):
        size = endpoint.size
        self._endpoint = endpoint
        self._headers = host.empty(size * HEADER, "u1")
        self._plan = Plan(endpoint, ring_all_gather, self._headers, bounds(size * HEADER, size), tag=TAG)

    def __call__(self, call):
        """call: what this rank is about to do, e.g. "all_reduce(sum of 10 float32)".

        Raises Mismatch on every rank if the ranks do not all say the same.
        """
        rows = self._headers.reshape(-1, HEADER)
        text = f"{call}\0{_site()}".encode()[:HEADER]
        rows[self._endpoint.rank] = memoryview(text.ljust(HEADER, b"\0"))
        self._plan.run()
        said = [bytes(row).rstrip(b"\0").decode(errors="replace").partition("\0")[::2] for row in rows]
        if any(other != said[0][0] for other, _ in said):
            raise Mismatch(_describe(said, self._endpoint.ranks))


def _describe(said, names):
    """One line for each different call, with the ranks (as numbered in the world) that made it, and where."""
    groups = {}
    for name, call in zip(names, said):
        groups.setdefault(call, []).append(str(name))
    lines = [f"rank{'s' * (len(who) > 1)} {', '.join(who)}: {call}" + (f" at {site}" if site else "")
             for (call, site), who in groups.items()]
    return "\n  ".join(["the ranks of a group must make the same calls in one order, but called", *lines])


def _site():
    """file:line of the nearest caller outside this package."""
    here = os.path.dirname(__file__)
    frame = sys._getframe(1)
    while frame is not None and os.path.dirname(frame.f_code.co_filename).startswith(here):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"[-100:] if frame else ""
