"""Data parallelism: the same model on every rank, other examples on each.

    python examples/data_parallel.py

500 examples on 10 ranks (threads of this process) are 50 each. Every rank computes the gradient of its own part; the
ring adds them up, so that all ranks take the same step and the copies stay equal to the last bit. For that nobody
has to know everybody's gradient: the article's "everyone learns all gradients and averages them" would be an
all-gather, which moves N/2 times as many bytes as the all-reduce that is really used.
"""

import hashlib

import numpy as np

import comm
from autograd import Tensor, ops
from autograd.backend import to_host
from comm import traffic
from minigpt.flat import flatten
from minigpt.models import MLP
from minigpt.module import initialize
from minigpt.optim import SGD
from minigpt.parallel.data_parallel import DataParallel

RANKS, EXAMPLES, SIZES = 10, 500, (8, 16, 1)


def examples():
    """x (500, 8) and y (500, 1), to be learnt."""
    random = np.random.default_rng(1)
    x = random.normal(size=(EXAMPLES, SIZES[0]))
    return x, np.sin(x.sum(1, keepdims=True))


def share(group):
    """Which examples this rank reads."""
    cuts = comm.bounds(EXAMPLES, group.size)
    return slice(cuts[group.rank], cuts[group.rank + 1])


def train(group, steps=20, lr=0.1):
    """Train on this rank's share: (examples read, loss of each step, weights, a hash of them after every step)."""
    x, y = (array[share(group)] for array in examples())
    model = initialize(MLP(SIZES), seed=1, dtype="float64")
    flat = flatten(model)
    optimizer, sync = SGD(flat), DataParallel(group, flat)
    losses, hashes = [], []
    for _ in range(steps):
        flat.zero_grad()
        loss = ops.mse(model(Tensor(x)), Tensor(y), total=EXAMPLES)     # a summand of the mean over all 500
        loss.backward()
        sync(flat.gradient())
        optimizer.step(lr)
        losses.append(float(group.all_reduce(np.array(loss.item()))))
        hashes.append(hashlib.blake2b(to_host(flat.data)).hexdigest())
    return len(x), losses, to_host(flat.data).copy(), hashes


def two_halves(group):
    """Whether an all-reduce equals a reduce-scatter, after which each rank has its rows' sum, and an all-gather."""
    mine = np.random.default_rng(group.rank).normal(size=(23, 3))
    whole = group.all_reduce(mine, algorithm="ring_all_reduce")
    return np.allclose(whole, group.all_gather(group.reduce_scatter(mine)), rtol=1e-15, atol=1e-15)


def average_after_all_gather(group, gradient):
    """What the article describes: the same average, for (N-1) M bytes from each rank."""
    return group.all_gather(gradient[None]).mean(0)


def main():
    alone, together = comm.run(1, train)[0], comm.run(RANKS, train)
    print(f"{EXAMPLES} examples on {RANKS} ranks: {', '.join(str(each[0]) for each in together)}")
    equal = all(each[3] == together[0][3] for each in together)
    print(f"  after each of {len(alone[1])} steps all {RANKS} copies of the weights are equal to the last bit: {equal}")
    print(f"  loss from {together[0][1][0]:.4f} to {together[0][1][-1]:.4f}; one rank with all 500 examples: "
          f"from {alone[1][0]:.4f} to {alone[1][-1]:.4f}")
    print(f"  largest difference of a weight from that of the one rank: {abs(together[0][2] - alone[2]).max():.0e}\n")
    print(f"All-reduce = reduce-scatter, then all-gather: {all(comm.run(RANKS, two_halves))}\n")
    message = alone[2].nbytes
    gather, ring = (RANKS - 1) * message, traffic.ring_per_rank(message, RANKS)
    print(f"Bytes from each rank for a gradient of {message:,}: all-gather {gather:,}, ring all-reduce {ring:,.0f}")


if __name__ == "__main__":
    main()
