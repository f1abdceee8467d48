"""Two competitors, alternating rounds in one run; medians and ratios."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from minigpt import launch

TOLERANCE = 2e-4            # relative, between two float32 implementations after a few steps


class Competitor:
    """A worker process: `losses` at the start, then `round(steps)` -> (seconds, peak bytes)."""

    def __init__(self, who, case, folder):
        self.who, self.orders = who, Path(folder) / f"{who}.orders"
        self.orders.touch()
        command = [sys.executable, "-m", "minigpt.bench.worker", who, case.name, str(folder)]
        threads = case.threads if who == "ours" else case.threads * case.ranks
        environment = dict(os.environ)
        if who == "ours" and case.ranks > 1:
            command = [launch.find_mpirun(), "-n", str(case.ranks), *command]
            environment.update(launch.environment(case.ranks))
        environment.update(OPENBLAS_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads),
                           MKL_NUM_THREADS=str(threads))
        environment.setdefault("MINIGPT_DEVICE", "cpu")
        environment.pop("OPENBLAS_CORETYPE", None)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        self.losses = self._answer()["losses"]
        self.seconds, self.peak = [], 0

    def round(self, steps):
        self._order(steps)
        answer = self._answer()
        self.seconds.append(answer["seconds"] / steps)
        self.peak = answer["peak"]

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the {self.who} worker ended with code {self.process.wait()} before it answered: "
                               "its error stands above")
        return json.loads(line)

    def _order(self, steps):
        with open(self.orders, "a") as file:
            file.write(f"{steps}\n")

    def close(self):
        """Tell the worker to end, and see that it does."""
        self._order(0)
        try:
            self.process.wait(30)
        finally:
            self.process.kill()


def race(case, rounds, peer=True):
    """Race one case -> a dict of figures.  Raises RuntimeError if the two do not compute the same losses."""
    with tempfile.TemporaryDirectory() as folder:
        ours = Competitor("ours", case, folder)
        theirs = Competitor("torch", case, folder) if peer else None
        competitors = [c for c in (ours, theirs) if c]
        try:
            if theirs:
                agree(case, ours.losses, theirs.losses)
            for _ in range(rounds):
                for competitor in competitors:
                    competitor.round(case.steps)
        finally:
            for competitor in competitors:
                competitor.close()
    return _figures(case, ours, theirs)


def agree(case, ours, theirs):
    """Raise RuntimeError unless both computed the same losses."""
    for step, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if abs(a - b) > TOLERANCE * abs(b):
            raise RuntimeError(f"{case.name}: at step {step} our loss is {a:.6f}, the peer's {b:.6f}: "
                               "they do not compute the same thing, so their speeds cannot be compared")


def _figures(case, ours, theirs):
    unit, amount = case.unit
    row = {"case": case.name, "unit": unit, "rounds": len(ours.seconds), "losses": ours.losses,
           "ours": amount / statistics.median(ours.seconds), "ours_peak_mb": ours.peak / 1e6,
           "must": case.must, "memory_must": case.memory}
    if theirs:
        ratios = [b / a for a, b in zip(ours.seconds, theirs.seconds)]
        row.update(peer=amount / statistics.median(theirs.seconds), ratio=statistics.median(ratios),
                   ratio_low=min(ratios), ratio_high=max(ratios), peer_peak_mb=theirs.peak / 1e6,
                   memory=ours.peak / theirs.peak)
    return row
