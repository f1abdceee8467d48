"""Networks of switches that NICs are plugged into: one switch, leaf and spine, fat tree, dragonfly, butterfly.

Each builder draws its switches and links, and returns path(source, target): for (P,) ports of either end a list
of columns (P,) of links, first the source's NIC, last the target's. Routes are minimal and fixed, as InfiniBand's
are: which of several equal ways a message takes depends on its target only (D-mod-k: Zahavi, "D-Mod-K routing
providing non-blocking traffic for shift permutations on real life fat trees" (2010)).
"""

import math
from typing import NamedTuple

import numpy as np

from comm.topology.network import NONE

MOST_LINKS = 1 << 24


class Ports(NamedTuple):
    """The NICs to be connected."""

    vertices: np.ndarray  # (ports,)
    link: tuple  # their Link
    wire: float  # seconds for a cable and the switch behind it


def _plug(drawing, ports, switches):
    """NIC p hangs on the switch switches[p]; returns (links out of the NICs, links into them)."""
    return (drawing.join(ports.vertices, switches, "NIC", ports.link, wire=ports.wire),
            drawing.join(switches, ports.vertices, "NIC", ports.link, wire=ports.wire))


def _both_ways(drawing, below, above, tier, ports, cables=1):
    """Links below -> above and back."""
    return (drawing.join(below, above, tier, ports.link, cables, ports.wire),
            drawing.join(above, below, tier, ports.link, cables, ports.wire))


def _check_links(count, what, hint):
    if count > MOST_LINKS:
        raise ValueError(f"{what}: {count:.2g} links, expected at most {MOST_LINKS:,}; {hint}")


def single_switch(drawing, ports):
    """Every NIC on one switch without limits of its own: contention at the NICs only."""
    out, into = _plug(drawing, ports, np.repeat(drawing.add(1, "switch"), len(ports.vertices)))
    return lambda source, target: [out[source], into[target]]


def leaf_spine(drawing, ports, leaf, oversubscription=1, place=None):
    """Two levels: `leaf` NICs on each leaf, every leaf joined to every spine.

    oversubscription: how many times more bytes the NICs of a leaf can send than its links upwards can carry.
    place (ports,): the position of each port; ports place // leaf share a leaf (default: their own number).
    """
    place = np.arange(len(ports.vertices)) if place is None else place
    leaf_of = place // leaf
    leaves = drawing.add(int(leaf_of.max()) + 1, "leaf")
    out, into = _plug(drawing, ports, leaves[leaf_of])
    if len(leaves) == 1:
        return lambda source, target: [out[source], into[target]]
    spines = max(1, round(leaf / oversubscription))
    cables = leaf / oversubscription / spines  # not quite 1 if the ratio does not divide the leaf
    up, down = _both_ways(drawing, leaves[:, None], drawing.add(spines, "spine")[None], "leaf-spine", ports, cables)

    def path(source, target):
        below, above, spine = leaf_of[source], leaf_of[target], place[target] % spines
        far = below != above
        return [out[source], np.where(far, up[below, spine], NONE), np.where(far, down[above, spine], NONE),
                into[target]]

    return path


def fat_tree(drawing, ports, oversubscription=1):
    """Three levels of switches with k plugs each: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores.

    The smallest even k with k^3/4 plugs for NICs. oversubscription thins every link above the edge switches.
    Leiserson, "Fat-trees: universal networks for hardware-efficient supercomputing" (1985),
    https://doi.org/10.1109/TC.1985.6312192; Al-Fares, Loukissas and Vahdat, "A scalable, commodity data center
    network architecture" (2008), https://doi.org/10.1145/1402958.1402967.
    """
    count = len(ports.vertices)
    half = next(half for half in range(1, count + 2) if 2 * half ** 3 >= count)
    pods = -(-count // half ** 2)
    edges = drawing.add(pods * half, "edge switch").reshape(pods, half)
    middles = drawing.add(pods * half, "aggregation switch").reshape(pods, half)
    cores = drawing.add(half * half, "core switch").reshape(half, half)
    port = np.arange(count)
    edge_of, pod_of = port // half, port // half ** 2
    out, into = _plug(drawing, ports, edges.ravel()[edge_of])
    thin = 1 / oversubscription
    up, down = _both_ways(drawing, edges[:, :, None], middles[:, None, :], "edge-aggregation", ports, thin)
    rise, fall = _both_ways(drawing, middles[:, :, None], cores[None], "aggregation-core", ports, thin)

    def path(source, target):
        here, there = pod_of[source], pod_of[target]
        middle, core = target % half, target // half % half
        climbs, crosses = edge_of[source] != edge_of[target], here != there
        return [out[source],
                np.where(climbs, up[here, edge_of[source] % half, middle], NONE),
                np.where(crosses, rise[here, middle, core], NONE),
                np.where(crosses, fall[there, middle, core], NONE),
                np.where(climbs, down[there, edge_of[target] % half, middle], NONE),
                into[target]]

    return path


def _all_to_all(drawing, tails, heads, tier, ports, cables):
    """(n, n, ...) links from tails[i, j] to heads[i, j] for all i and j that differ, NONE where they do not."""
    tails, heads = np.broadcast_arrays(tails, heads)
    one, other = np.nonzero(~np.eye(len(tails), dtype=bool))
    table = np.full(tails.shape, NONE)
    table[one, other] = drawing.join(tails[one, other], heads[one, other], tier, ports.link, cables, ports.wire)
    return table


def dragonfly(drawing, ports, leaf, routers=None, local=None, cables=None):
    """Groups of leaves, joined all to all; the groups joined all to all by one link from some leaf of each.

    Minimal routing: at most one link inside the group, one between groups, one inside the other group.
    leaf: NICs on a leaf (p in the paper). routers: leaves in a group (a; default: the smallest balanced size).
    local, cables: how many cables side by side make one link inside a group, and between groups; by default as
    many as uniform traffic needs, so that the NICs are the limit (a = 2p = 2h in the paper).
    Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly topology" (2008),
    https://doi.org/10.1109/ISCA.2008.19.
    """
    leaves = -(-len(ports.vertices) // leaf)
    a = routers or next(a for a in range(1, leaves + 1) if a * (a * max(1, a // 2) + 1) >= leaves)
    groups = -(-leaves // a)
    _check_links(groups * (groups + a * a), f"a dragonfly of {groups} groups of {a} leaves", "say other routers")
    local = local or max(1, -(-2 * leaf // a))
    cables = cables or max(1, -(-leaf * a // max(1, groups - 1)))
    switches = drawing.add(groups * a, "leaf").reshape(groups, a)
    leaf_of = np.arange(len(ports.vertices)) // leaf
    out, into = _plug(drawing, ports, switches.ravel()[leaf_of])

    inside = _all_to_all(drawing, switches.T[:, None], switches.T[None], "inside a group", ports, local)
    gate = (np.subtract.outer(np.arange(groups), np.arange(groups)) * -1 % groups - 1) % a  # (from, to): whose link
    doors = np.take_along_axis(switches, gate, axis=1)
    between = _all_to_all(drawing, doors, doors.T, "between groups", ports, cables)

    def path(source, target):
        (here, mine), (there, theirs) = np.divmod(leaf_of[source], a), np.divmod(leaf_of[target], a)
        crosses = here != there
        leave = np.where(crosses, gate[here, there], theirs)
        enter = np.where(crosses, gate[there, here], theirs)
        return [out[source], inside[mine, leave, here], np.where(crosses, between[here, there], NONE),
                inside[enter, theirs, there], into[target]]

    return path


def flattened_butterfly(drawing, ports, leaf, sides):
    """Switches on a grid, each joined to all others of its row, of its column, and so on; `leaf` NICs on each.

    sides: switches along each direction. One hop for every direction in which source and target differ.
    Kim, Dally and Abts, "Flattened butterfly: a cost-efficient topology for high-radix networks" (2007),
    https://doi.org/10.1145/1250662.1250679.
    """
    _check_links(math.prod(sides) * sum(sides), f"a butterfly of sides {sides}", "say shorter sides")
    grid = drawing.add(math.prod(sides), "switch").reshape(sides)
    where = np.arange(len(ports.vertices)) // leaf
    out, into = _plug(drawing, ports, grid.ravel()[where])
    tables = []  # for each direction, the link from a switch (flat) to the coordinate in that direction
    for axis, side in enumerate(sides):
        at = np.indices(sides)[axis].ravel()
        heads = np.stack([np.take(grid, [c], axis).repeat(side, axis).ravel() for c in range(side)], axis=1)
        table = np.full(heads.shape, NONE)
        others = at[:, None] != np.arange(side)
        tails = np.broadcast_to(grid.reshape(-1, 1), heads.shape)
        table[others] = drawing.join(tails[others], heads[others], f"direction {axis + 1}", ports.link,
                                     wire=ports.wire)
        tables.append(table)

    def path(source, target):
        at = list(np.unravel_index(where[source], sides))
        goal = np.unravel_index(where[target], sides)
        hops = []
        for axis, table in enumerate(tables):
            hops.append(table[np.ravel_multi_index(at, sides), goal[axis]])
            at[axis] = goal[axis]
        return [out[source], *hops, into[target]]

    return path
