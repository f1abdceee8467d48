"""What every topology must keep."""

import numpy as np

from comm.topology import NONE, describe


def every_pair(text, ranks=None):
    """(topology, source, target, routes) of all pairs of GPUs."""
    topology = describe(text, ranks)
    source, target = np.divmod(np.arange(topology.gpus ** 2), topology.gpus)
    return topology, source, target, topology.routes(source, target)


def check_routes(text, ranks=None):
    """Every route begins at its source, joins link to link and ends at its target; returns what every_pair does."""
    topology, source, target, routes = every_pair(text, ranks)
    at = source.copy()
    for column in routes.T:
        there = column != NONE
        assert (topology.tails[column[there]] == at[there]).all(), text
        at[there] = topology.heads[column[there]]
    assert (at == target).all(), text
    return topology, source, target, routes


def hops(routes):
    """(P,) links on each route."""
    return (routes != NONE).sum(axis=1)


def crossing(topology, tier, inside):
    """Bytes per second of the links of a tier that lead from the vertices that are `inside` (V,) to the others."""
    of_tier = topology.tier == topology.tiers.index(tier)
    return topology.bandwidth[of_tier & inside[topology.tails] & ~inside[topology.heads]].sum()


def numbers_of(topology, name):
    """The numbers of the vertices of one kind."""
    first, count, _ = next(kind for kind in topology.vertices if kind[2] == name)
    return np.arange(first, first + count)
