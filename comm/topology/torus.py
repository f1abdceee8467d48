"""Networks without switches, where every node passes on what is not for it: torus and hypercube.

A hypercube of 2^n nodes is a torus of n directions with two nodes each, so one file serves both. Routing is by
dimension order: first along direction 1 the shorter way round, then along direction 2, and so on (Dally and
Seitz, "Deadlock-free message routing in multiprocessor interconnection networks" (1987),
https://doi.org/10.1109/TC.1987.1676939).
"""

import numpy as np

from comm.topology.network import NONE


def torus(drawing, nodes, sides, link, wire):
    """Join `nodes`, vertices (prod(sides),), to a torus; returns path(source, target) of (P,) node numbers."""
    grid = nodes.reshape(sides)
    ahead, back = [], []
    for axis, side in enumerate(sides):
        tier = f"direction {axis + 1}" if len(sides) <= 3 else "torus link"
        if side == 1:
            ahead.append(None)
            back.append(None)
            continue
        ahead.append(drawing.join(nodes, np.roll(grid, -1, axis).ravel(), tier, link, wire=wire))
        # two nodes in a direction have one cable, not two
        back.append(drawing.join(nodes, np.roll(grid, 1, axis).ravel(), tier, link, wire=wire) if side > 2
                    else ahead[-1])

    def path(source, target):
        at, goal = list(np.unravel_index(source, sides)), np.unravel_index(target, sides)
        columns = []
        for axis, side in enumerate(sides):
            distance = (goal[axis] - at[axis]) % side
            forward = distance <= side // 2
            hops = np.where(forward, distance, side - distance)
            for hop in range(side // 2):
                here = np.ravel_multi_index(at, sides)
                link = np.where(forward, ahead[axis][here], back[axis][here])
                columns.append(np.where(hop < hops, link, NONE))
                at[axis] = (at[axis] + np.where(hop < hops, np.where(forward, 1, -1), 0)) % side
        return columns or [np.full(len(source), NONE)]

    return path


def gray_walk(sides):
    """(nodes,) the place of every node on a walk through all of them, each step to a neighbour.

    A reflected Gray code: a snake through the rows, on a hypercube the code of Gray's patent. It comes home in
    one step too if some side is even; if all are odd and equal, a code whose digits run round does. Otherwise
    the last step home is longer.
    """
    even = [axis for axis, side in enumerate(sides) if side % 2 == 0]
    order = even[:1] + [axis for axis in range(len(sides)) if axis not in even[:1]]  # an even side turns slowest
    turned = [sides[axis] for axis in order]
    digits = np.indices(turned).reshape(len(sides), -1)
    if even or len(set(sides)) > 1:
        passed = np.zeros(digits.shape[1], int)  # how often the slower digits, as a number, have stepped
        steps = []
        for digit, side in zip(digits, turned):
            steps.append(np.where(passed % 2, side - 1 - digit, digit))
            passed = passed * side + digit
        code = np.stack(steps)
    else:
        slower = np.vstack([np.zeros(digits.shape[1], int), digits[:-1]])
        code = (digits - slower) % np.array(turned)[:, None]
    nodes = np.ravel_multi_index([code[order.index(axis)] for axis in range(len(sides))], sides)
    place = np.empty(len(nodes), int)
    place[nodes] = np.arange(len(nodes))
    return place


def z_order(sides):
    """(nodes,) the place of every node where runs of 2, 4, 8, ... nodes are boxes as near a cube as may be.

    The bits of the coordinates are shuffled together, lowest first: Morton's order. For trees and butterflies of
    ranks, whose partners are 1, 2, 4, ... apart.
    """
    at = np.indices(sides).reshape(len(sides), -1)
    key, weight = np.zeros(at.shape[1], np.int64), 1
    for bit in range(max(sides).bit_length()):
        for axis in reversed(range(len(sides))):
            if sides[axis] - 1 >> bit:
                key += (at[axis] >> bit & 1) * weight
                weight *= 2
    return np.argsort(np.argsort(key, kind="stable"), kind="stable")
