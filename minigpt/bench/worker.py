"""One competitor of a race, a process that is told how many steps to run and answers with the time it took.

    python -m minigpt.bench.worker ours|torch CASE FOLDER

It runs CHECKED steps first and prints {"losses": [...]}; then for every number N that is appended to
FOLDER/ours.orders (or torch.orders) it runs N steps and prints {"seconds": s, "peak": bytes}; 0 ends it.
Orders come in a file, which every rank watches in its sleep: ranks that wait for a message keep their
cores busy, and would slow the other competitor down.  Ours writes FOLDER/weights.npz, the peer reads it.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from minigpt.bench.cases import BY_NAME

CHECKED = 4                 # steps whose losses both must agree on
NAP = 0.002                 # seconds between two looks for an order
PATIENCE = 900              # seconds after which a worker that nobody talks to ends


def data(case, rank=None):
    """Seeded inputs and targets of `rank`, or of all ranks with None."""
    random = np.random.default_rng(1)
    count = case.ranks * case.samples
    if case.kind == "gpt":
        shape, vocabulary = (count, case.sizes[3]), case.sizes[5]
        inputs, targets = random.integers(0, vocabulary, shape), random.integers(0, vocabulary, shape)
    else:
        inputs = random.standard_normal((count, case.sizes[0]), np.float32)
        targets = random.integers(0, case.sizes[-1], count)
    mine = slice(None) if rank is None else slice(rank * case.samples, (rank + 1) * case.samples)
    return inputs[mine], targets[mine]


def peak_bytes():
    """Peak resident memory of this process.  (getrusage would count the parent's, from before exec.)"""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def run(step, orders, answer):
    """Serve one competitor: check, then rounds of as many steps as `orders` says, 0 to end."""
    answer({"losses": [step() for _ in range(CHECKED)]})
    for steps in orders:
        if steps == 0:
            break
        start = time.perf_counter()
        for _ in range(steps):
            step()
        answer({"seconds": time.perf_counter() - start, "peak": peak_bytes()})


def orders(path):
    """The numbers in a growing file, as they come; ends by itself when nobody wrote one for PATIENCE seconds."""
    waited = 0.0
    with open(path) as lines:
        while waited < PATIENCE:
            if line := lines.readline():
                waited = 0.0
                yield int(line)
            else:
                time.sleep(NAP)
                waited += NAP
    yield 0


def print_answer(answer):
    print(json.dumps(answer), flush=True)


def main(who, name, folder):
    case, folder = BY_NAME[name], Path(folder)
    if who == "torch":
        from minigpt.bench.torch_worker import Peer
        with np.load(folder / "weights.npz") as stored:
            peer = Peer(case, [stored[key] for key in stored.files], *data(case))
        run(peer.step, orders(folder / "torch.orders"), print_answer)
    else:
        from minigpt.bench import ours
        ours.compete(case, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
