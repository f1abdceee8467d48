"""A Topology from its description: servers of GPUs, and the network that joins them."""

import math

import numpy as np

from comm.topology import switched
from comm.topology.describe import number, ratio, read, sides
from comm.topology.links import read_link
from comm.topology.network import NONE, Drawing
from comm.topology.torus import gray_walk, torus, z_order
from comm.units import read_seconds

MOST_GPUS = 1 << 20


def describe(text, ranks=None):
    """The Topology that `text` describes: a preset, a kind, or key=value, separated by commas.

    ranks: where the text does not say how many nodes there are, there are as many as so many ranks need (64).
    Raises ValueError that names the nearest key, preset or link for what is not known, and what was expected.
    """
    given = read(text)
    kind = given["kind"]
    gpus = number(given, "gpus")
    if "nodes" in given:
        nodes = number(given, "nodes")
    else:
        nodes = -(-(ranks or 64) // gpus)
    if nodes * gpus > MOST_GPUS:
        raise ValueError(f"{nodes} servers of {gpus} GPUs: expected at most {MOST_GPUS:,} GPUs in all")
    if kind in ("torus", "hypercube"):
        return _direct(given, kind, nodes, gpus)
    return _switched(given, kind, nodes, gpus)


def _cube(count, directions):
    """The smallest nearly equal sides whose product is at least `count`."""
    sides = []
    for left in range(directions, 0, -1):
        sides.append(next(side for side in range(1, count + 2) if side ** left >= count))
        count = -(-count // sides[-1])
    return tuple(sides)


def _servers(given, drawing, nodes, gpus):
    """(GPUs, what stands for each server, links up to and down from its switch, or None for servers of one GPU)."""
    cards = drawing.add(nodes * gpus, "GPU")
    if gpus == 1:
        return cards, cards, None, None
    inner = drawing.add(nodes, "server")
    link, tier = read_link(given["nvlink"]), "NVLink" if given["nvlink"].startswith("nvlink") else "in the server"
    up = drawing.join(cards, inner.repeat(gpus), tier, link)
    return cards, inner, up, drawing.join(inner.repeat(gpus), cards, tier, link)


def _direct(given, kind, nodes, gpus):
    """Servers that pass on messages themselves."""
    shape = sides(given)
    if kind == "hypercube":
        shape = (2,) * (nodes - 1).bit_length() or (1,)
    elif shape is None:
        shape = _cube(nodes, 3)
    count = math.prod(shape)
    if count * gpus > MOST_GPUS:
        raise ValueError(f"a {kind} of {_times(shape)} servers of {gpus} GPUs: expected at most {MOST_GPUS:,} GPUs")
    if "nodes" in given and count != nodes:
        raise ValueError(f"nodes={nodes}: a {kind} of {_times(shape)} has {count}; say nodes={count}, or "
                         "nothing")
    drawing = Drawing()
    cards, inner, up, down = _servers(given, drawing, count, gpus)
    node = np.arange(count * gpus) // gpus
    between = torus(drawing, inner, shape, read_link(given["nic"]), read_seconds(given["hop"]))

    def path(source, target):
        columns = between(node[source], node[target])
        return columns if gpus == 1 else [up[source], *columns, down[target]]

    def of_gpus(place):
        return (place[:, None] * gpus + np.arange(gpus)).ravel()

    title = (f"{_title(nodes=count, gpus=gpus, given=given)}, {kind} of {_times(shape)}, "
             f"{given['nic']} cables")
    return drawing.topology(title, node, path, of_gpus(gray_walk(shape)), of_gpus(z_order(shape)))


def _switched(given, kind, nodes, gpus):
    """Servers with NICs, on a network of switches."""
    nics = number(given, "nics", default=gpus)
    if nics > gpus:
        raise ValueError(f"nics={nics}: a server of {gpus} GPUs has at most so many NICs")
    bare = given["pcie"] == "none"
    if bare and nics != gpus:
        raise ValueError(f"pcie=none: every GPU is its own NIC then, so nics={nics} must equal gpus={gpus}")
    drawing = Drawing()
    cards, _, up, down = _servers(given, drawing, nodes, gpus)
    node = np.arange(nodes * gpus) // gpus
    port_of = node * nics + np.arange(nodes * gpus) % gpus * nics // gpus
    cards_of_nics = cards
    if not bare:
        cards_of_nics = drawing.add(nodes * nics, "NIC")
        pcie = read_link(given["pcie"])
        onto = drawing.join(cards, cards_of_nics[port_of], "PCIe", pcie)
        off = drawing.join(cards_of_nics[port_of], cards, "PCIe", pcie)
    ports = switched.Ports(cards_of_nics, read_link(given["nic"]), read_seconds(given["hop"]))
    across, words = _network(given, kind, drawing, ports, nodes, nics)

    def path(source, target):
        near = node[source] == node[target]
        columns = across(port_of[source], port_of[target])
        if not bare:
            columns = [onto[source], *columns, off[target]]
        columns = [np.where(near, NONE, column) for column in columns]
        if up is None:
            return columns
        return [np.where(near, up[source], NONE), *columns, np.where(near, down[target], NONE)]

    return drawing.topology(f"{_title(nodes, gpus, given)}, {words}", node, path)


def _network(given, kind, drawing, ports, nodes, nics):
    """(path between ports, the network in words)."""
    nic = f"{given['nic']} NICs"
    if kind == "switch":
        return switched.single_switch(drawing, ports), f"{nic} on one switch"
    if kind == "leaf-spine":
        leaf, over = number(given, "leaf", default=32), ratio(given, "oversubscription")
        server, rail = np.divmod(np.arange(nodes * nics), nics)
        place = rail * nodes + server if number(given, "rails", 0, 1, default=0) else None
        return (switched.leaf_spine(drawing, ports, leaf, over, place),
                f"{nic}, {leaf} to a leaf{' by rail' if place is not None else ''}, {over:g} : 1 oversubscribed")
    if kind == "fat-tree":
        over = ratio(given, "oversubscription")
        return switched.fat_tree(drawing, ports, over), f"{nic} on a fat tree, {over:g} : 1 oversubscribed"
    if kind == "dragonfly":
        sizes = {key: number(given, key) for key in ("routers", "local", "cables")}
        leaf = number(given, "leaf", default=16)
        return switched.dragonfly(drawing, ports, leaf, **sizes), f"{nic}, dragonfly with leaves of {leaf}"
    return _butterfly(given, drawing, ports, nodes * nics, nic)


def _butterfly(given, drawing, ports, count, nic):
    leaf, shape = number(given, "leaf"), sides(given)
    if shape is None:
        leaf = leaf or next(k for k in range(1, count + 2) if k ** 3 >= count)
        shape = _cube(-(-count // leaf), 2)
    leaf = leaf or -(-count // math.prod(shape))
    if leaf * math.prod(shape) < count:
        raise ValueError(f"sides={_times(shape)},leaf={leaf}: room for {leaf * math.prod(shape)} NICs, the servers "
                         f"have {count}")
    return (switched.flattened_butterfly(drawing, ports, leaf, shape),
            f"{nic}, flattened butterfly of {_times(shape)} switches with {leaf} NICs each")


def _times(shape):
    return "x".join(map(str, shape))


def _title(nodes, gpus, given):
    servers = f"{nodes:,} server{'s' if nodes > 1 else ''}"
    if gpus == 1:
        return f"{servers} of one GPU"
    return f"{servers} of {gpus} GPUs ({given['nvlink']})"
