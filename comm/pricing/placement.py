"""Which GPU each rank runs on. A schedule knows ranks only, so their order decides how far its messages go.

The same GPUs in another order. A ring wants neighbours close: the walk, on a torus a snake, on a hypercube Gray's
code. Exchanges between partners 1, 2, 4, ... apart want these close: blocks. A tree that grows from the root has
one message in its first round and N/2 in its last, so these should be short and those may be long: spread, which
is blocks with the bits of the rank reversed. Hoefler and Snir, "Generic topology mapping strategies for
large-scale parallel architectures" (2011), https://doi.org/10.1145/1995896.1995909, on the problem in general.
"""

import numpy as np

from comm.pricing.price import default_options, prices

ORDERS = {
    "packed": "one server after the other, as `mpirun --map-by slot` does",
    "round-robin": "one rank to each server in turn, as `mpirun --map-by node` does",
    "shuffled": "as a scheduler may hand them out, with a fixed seed",
    "walk": "for rings, neighbours close: a snake on a torus, Gray's code on a hypercube",
    "blocks": "for exchanges, partners 1, 2, 4, ... apart close: Morton's order on a torus",
    "spread": "for trees, partners N/2, N/4, ... apart close: blocks with reversed bits",
}
FITTED = tuple(order for order in ORDERS if order != "shuffled")
"""The orders among which `fit` looks."""


def place(order, ranks, topology):
    """(ranks,) the GPU of every rank; the first `ranks` GPUs of the cluster in every order.

    Raises ValueError for an order that is not in ORDERS, or more ranks than GPUs.
    """
    if order not in ORDERS:
        raise ValueError(f"order {order!r}: expected one of {', '.join(ORDERS)}")
    if not 1 <= ranks <= topology.gpus:
        raise ValueError(f"{ranks} ranks on {topology.gpus} GPUs ({topology.title}): expected 1 to {topology.gpus}; "
                         "say more nodes, or fewer ranks")
    gpus = np.arange(ranks)
    if order == "shuffled":
        return np.random.default_rng(0).permutation(gpus)
    if order == "round-robin":
        node = topology.node[:ranks]
        return np.lexsort((gpus, gpus - np.searchsorted(node, node)))
    key = {"packed": gpus, "walk": topology.walk}.get(order, topology.blocks)
    placed = np.argsort(key[:ranks])
    return placed[np.argsort(np.argsort(_reversed_bits(gpus)))] if order == "spread" else placed


def _reversed_bits(numbers):
    """0 to N-1 with the bits turned round: 1 becomes the highest of all."""
    turned, rest = np.zeros_like(numbers), numbers.copy()
    for _ in range(len(numbers).bit_length()):
        turned, rest = 2 * turned + rest % 2, rest // 2
    return turned


def priced_in(order, name, message, ranks, topology, gamma=0.0, progress=None, **options):
    """The Price of an algorithm with its ranks in this order; it is told the nodes if it asks for them."""
    return priced_in_each([order], name, message, ranks, topology, gamma, progress, **options)[order]


def priced_in_each(orders, name, message, ranks, topology, gamma=0.0, progress=None, **options):
    """{order: Price}, as `priced_in`. One schedule serves all orders, unless it depends on the nodes."""
    placements = {order: place(order, ranks, topology) for order in orders}
    told = {order: {**default_options(name, topology, gpus), **options} for order, gpus in placements.items()}
    found = {}
    for options in told.values():
        alike = [order for order in orders if told[order] == options and order not in found]
        found.update(zip(alike, prices(name, message, ranks, topology, [placements[order] for order in alike], gamma,
                                       progress, **options) if alike else []))
    return {order: found[order] for order in orders}


def fit(name, message, ranks, topology, gamma=0.0, progress=None, **options):
    """(order, its Price): the order of FITTED in which this algorithm is fastest on this cluster."""
    found = priced_in_each(FITTED, name, message, ranks, topology, gamma, progress, **options)
    best = min(found, key=lambda order: found[order].time)
    return best, found[best]
