"""The ring all-reduce, step by step.

    python examples/ring_all_reduce.py                  four ranks, as threads of this process
    python examples/ring_all_reduce.py --ranks 3        another number
    mpirun -n 4 python examples/ring_all_reduce.py      processes

N ranks hold a vector each, and all want the sum. Each vector is cut into N chunks. In N-1 steps a sum of every chunk
grows as it goes round the ring; in N-1 more the finished sums go round and are copied. Every rank sends one N-th of
its vector in every step, so however many ranks there are, less than twice the vector leaves each of them.
"""

import argparse

import numpy as np

import comm
from comm import traffic
from comm.algorithms.ring import ring_all_reduce
from comm.render import letter, table

GB = 10**9


def steps_of(rank, size):
    """The 2 (N-1) steps of one rank: whom it sends which chunk, what comes from whom, and whether it is added."""
    return list(ring_all_reduce(rank, size))


def owned_after_phase_one(rank, size):
    """The chunk that is complete on this rank after N-1 steps: the one it then sends first."""
    return steps_of(rank, size)[size - 1].send if size > 1 else 0


def describe(step, rank):
    verb = "adds it to its own" if step.reduce else "keeps it"
    return (f"{letter(rank).upper()} sends chunk {step.send} to {letter(step.to).upper()}, "
            f"gets chunk {step.recv} from {letter(step.source).upper()} and {verb}")


def add_up(group, chunk=5):
    """Run it with chunks of 5 numbers: (the sum, bytes that left this rank, what the formula says).

    Rank r holds (r + 1) * [0, 1, 2, ...].
    """
    mine = (group.rank + 1) * np.arange(chunk * group.size, dtype=np.float64)
    total = group.all_reduce(mine, algorithm="ring_all_reduce")
    return total, group.ledger["all_reduce"].sent, traffic.ring_per_rank(mine.nbytes, group.size)


def five_lines(group):
    """The article's example, [1, 2, 3] on every rank: examples/all_reduce.py is the same as a program."""
    return group.all_reduce([1, 2, 3])


def show_steps(size):
    print(f"What rank A does, of {size}:")
    for number, step in enumerate(steps_of(0, size), 1):
        print(f"  step {number}: {describe(step, 0)}")
    owners = ", ".join(f"{letter(r).upper()} {owned_after_phase_one(r, size)}" for r in range(size))
    print(f"After the first {size - 1} steps the complete chunk of each rank is: {owners}\n")
    print(table("ring_all_reduce", size))


def show_traffic(message=350 * GB, ranks=64, once=7.0):
    """The gradients of GPT-3 in 16 bits over 64 ranks; `once`: seconds to send them once at 50 GB/s."""
    rows = [
        ("everyone copies to everyone", traffic.copies_to_everyone(message, ranks), None),
        ("a master gathers, sums, sends back", 2 * traffic.star(message, ranks), traffic.star_time(once, ranks)),
        ("a chain, there and back", 2 * traffic.chain(message, ranks), traffic.chain_time(once, ranks)),
        ("ring", traffic.ring(message, ranks), traffic.ring_time(once, ranks)),
    ]
    print(f"{message // GB} GB of gradients on each of {ranks} ranks, {once:g} s to send them once")
    print(f"  {'':<36}{'GB on the network':>18}{'seconds':>10}")
    for name, total, seconds in rows:
        print(f"  {name:<36}{total / GB:>18,.0f}{'' if seconds is None else f'{seconds:.2f}':>10}")
    print(f"  The master's {traffic.star(message, ranks) / GB:,.0f} GB in, and as many out, pass over its one link;")
    print(f"  in the ring {traffic.ring_per_rank(message, ranks) / GB:,.4f} GB leave each rank, all at once.\n")


def show_run(size):
    """On the ranks of mpirun if there are any, else on threads."""
    world = comm.world()
    work = lambda group: (add_up(group), five_lines(group).tolist(), group.size)
    results = comm.run(size, work) if world.size == 1 else [work(world)]
    (total, sent, formula), summed, size = results[0]
    if world.rank == 0:
        print(f"Run on {size} {'threads' if world.size == 1 else 'processes'}: every rank ends with "
              f"{total[1]:g} * [0, 1, 2, ...]")
        print(f"  {sent} bytes left rank 0; 2 M (N-1)/N is {formula:g}")
        print(f"  [1, 2, 3] summed over {size} ranks is {summed}")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4, help="of the table, and of threads (default 4)")
    size = parser.parse_args(argv).ranks
    if size < 2:
        parser.error(f"--ranks {size}: a ring has at least 2")
    if comm.world().rank == 0:
        show_steps(size)
        show_traffic()
    show_run(size)


if __name__ == "__main__":
    main()
