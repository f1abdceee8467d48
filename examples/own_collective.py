"""Write a collective of your own, let it be proved, run it, and see what it would cost on hundreds of GPUs.

    python examples/own_collective.py
    python examples/own_collective.py --ranks 1024 --message 1G

The ring sends in one direction only, so in a torus half of the wires are idle. Here is a ring that goes both ways:
half of the chunks travel clockwise, the other half against it, in the same rounds. A collective is a rule, arithmetic
in `rank`; registered, it is proved on paper, drawn, run and priced like any other.
"""

import argparse

import numpy as np

import comm
from comm.algorithms import ALGORITHMS
from comm.pricing.placement import fit
from comm.render import table
from comm.schedule import Algorithm, Recv, Send
from comm.simulate import Broken, prove_all
from comm.topology import describe
from comm.units import read_bytes, say_seconds


def two_way_ring_all_reduce(rank, size):
    """Chunks 0 to N-1 go to the right, N to 2N-1 to the left; 2 (N-1) rounds, as the ring has.

    In every round a rank sends one chunk of M/2N bytes each way: 2 M (N-1)/N bytes in all, as the ring does.
    """
    right, left = (rank + 1) % size, (rank - 1) % size
    for k in range(2 * (size - 1)):
        adds = k < size - 1
        out, back = (rank - k) % size, size + (rank + k) % size           # what goes to the right, and to the left
        came, came_back = (rank - k - 1) % size, size + (rank + k + 1) % size
        if size == 2:                                                     # both neighbours are one rank: one message
            yield [Send(right, pair(out, back)), Recv(left, pair(came, came_back), adds)]
        else:
            yield [Send(right, pair(out)), Send(left, pair(back)),
                   Recv(left, pair(came), adds), Recv(right, pair(came_back), adds)]


def pair(*chunks):
    """Chunk numbers side by side: (count,) for one rank, (size, count) for all of them."""
    return np.stack(chunks, axis=-1)


def hasty_all_reduce(rank, size):
    """The same with a slip: in round N, the first that copies, everyone expects the chunk after the one that comes."""
    for number, items in enumerate(two_way_ring_all_reduce(rank, size), 1):
        slip = number == size
        yield [item._replace(chunks=(item.chunks + 1) % size) if slip and isinstance(item, Recv) else item
               for item in items]


def register(name, rule):
    """Make a rule known under a name that ends with its collective's. The costs are what the proof compares with."""
    ALGORITHMS[name] = Algorithm(
        rule, "all_reduce", rounds=lambda n: 2 * (n - 1), sent=lambda n: 4 * (n - 1),
        total=lambda n: 4 * n * (n - 1), chunks=lambda n: 2 * n)


def proofs(sizes=(*range(1, 34), 64)):
    """(on how many sizes the rule holds, what the proof says of the hasty one)."""
    for size in sizes:
        prove_all("two_way_ring_all_reduce", size)
    try:
        prove_all("hasty_all_reduce", 4)
    except Broken as error:
        return len(sizes), str(error)
    raise AssertionError("the proof let a broken rule pass")


def run(size):
    """Does it add as NumPy does, on this many threads? (the same answer, bytes that left rank 0, messages)"""
    def body(group):
        x = np.arange(1001.0) * (group.rank + 1)
        y = group.all_reduce(x, algorithm="two_way_ring")
        same = np.array_equal(y, np.arange(1001.0) * sum(range(1, group.size + 1)))
        return same, group.ledger["all_reduce"].sent, group.ledger["all_reduce"].messages

    answers = comm.run(size, body)
    return all(same for same, *_ in answers), *answers[0][1:]


def costs(ranks, message):
    """{cluster: {algorithm: seconds}}, ranks in the order that suits each algorithm best."""
    names = ("ring_all_reduce", "two_way_ring_all_reduce", "double_tree_all_reduce")
    side = int(ranks**0.5)
    clusters = {"one switch": f"article,nodes={side * side}", f"torus of {side} x {side}": f"torus,sides={side}x{side}"}
    return {title: {name: fit(name, message, side * side, describe(cluster), **_pieces(name))[1].time
                    for name in names} for title, cluster in clusters.items()}


def _pieces(name):
    return {"segments": 64} if name.startswith("double_tree") else {}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=256, help="of the cluster that is priced (default 256)")
    parser.add_argument("--message", type=read_bytes, default=10**10, help="bytes to sum (default 10G)")
    chosen = parser.parse_args(argv)
    if chosen.ranks < 4:
        parser.error(f"--ranks {chosen.ranks}: a torus has at least 4")
    register("two_way_ring_all_reduce", two_way_ring_all_reduce)
    register("hasty_all_reduce", hasty_all_reduce)
    print(table("two_way_ring_all_reduce", 3))
    held, story = proofs()
    print(f"Proved on {held} sizes. The rule with a slip is refused:\n  {story}\n")
    same, sent, messages = run(5)
    print(f"Run on 5 threads: {'equal to' if same else 'NOT'} NumPy's sum; {sent} bytes left rank 0 in {messages} "
          "messages\n")
    for title, times in costs(chosen.ranks, chosen.message).items():
        print(f"{chosen.message / 1e9:g} GB over {int(chosen.ranks**0.5)**2} GPUs, {title}")
        for name, seconds in times.items():
            print(f"  {name:<28}{say_seconds(seconds):>12}")
    print("\nOn a switch every rank has one link, which both ways share. In a torus the two ways use different wires,\n"
          "and the ring that goes both ways wins while chunks are so long that two messages a round do not matter.")


if __name__ == "__main__":
    main()
