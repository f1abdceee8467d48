"""One competitor of a race, a process that is told how many steps to run and answers with the time it took.

    python -m minigpt.bench.worker ours|torch CASE WEIGHTS.npz

It runs CHECKED steps first and prints {"losses": [...]}; then for every number N on standard input
it runs N steps and prints {"seconds": s, "peak": bytes}.  Ours writes WEIGHTS.npz, the peer reads it.
"""

import json
import sys
import time

import numpy as np

from minigpt.bench.cases import BY_NAME

CHECKED = 4                 # steps whose losses both must agree on


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


def run(step, order, answer):
    """Serve one competitor: check, then rounds.  `order()` -> steps to run, 0 to end."""
    answer({"losses": [step() for _ in range(CHECKED)]})
    while steps := order():
        start = time.perf_counter()
        for _ in range(steps):
            step()
        answer({"seconds": time.perf_counter() - start, "peak": peak_bytes()})


def read_order():
    line = sys.stdin.readline().strip()
    return int(line) if line else 0


def print_answer(answer):
    print(json.dumps(answer), flush=True)


def main(who, name, weights):
    case = BY_NAME[name]
    if who == "torch":
        from minigpt.bench.torch_worker import Peer
        with np.load(weights) as stored:
            peer = Peer(case, [stored[key] for key in stored.files], *data(case))
        run(peer.step, read_order, print_answer)
    else:
        from minigpt.bench import ours
        ours.compete(case, weights)


if __name__ == "__main__":
    main(*sys.argv[1:])
