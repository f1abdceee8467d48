"""Which GPU each rank runs on. A schedule knows ranks only, so their order decides how far its messages go.

The same GPUs in another order: a ring wants neighbours close (walk), a tree or butterfly wants partners 1, 2, 4,
... apart close (blocks). On servers of several GPUs, numbered one server after the other, both are the order that
the ranks have anyway; on a torus the walk is a snake, on a hypercube Gray's code.
"""

import numpy as np

from comm.price import default_options, price

ORDERS = {
    "packed": "one server after the other, as `mpirun --map-by slot` does",
    "round-robin": "one rank to each server in turn, as `mpirun --map-by node` does",
    "shuffled": "as a scheduler may hand them out, with a fixed seed",
    "walk": "neighbours close: a snake on a torus, Gray's code on a hypercube",
    "blocks": "partners 1, 2, 4, ... apart close: Morton's order on a torus",
}
FITTED = ("packed", "walk", "blocks")
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
    key = {"packed": gpus, "walk": topology.walk, "blocks": topology.blocks}[order]
    return np.argsort(key[:ranks])


def priced_in(order, name, message, ranks, topology, gamma=0.0, progress=None, **options):
    """The Price of an algorithm with its ranks in this order; it is told the nodes if it asks for them."""
    placement = place(order, ranks, topology)
    options = {**default_options(name, topology, placement), **options}
    return price(name, message, ranks, topology, placement, gamma, progress, **options)


def fit(name, message, ranks, topology, gamma=0.0, progress=None, **options):
    """(order, its Price): the order of FITTED in which this algorithm is fastest on this cluster."""
    prices = {order: priced_in(order, name, message, ranks, topology, gamma, progress, **options)
              for order in FITTED}
    best = min(prices, key=lambda order: prices[order].time)
    return best, prices[best]
