"""A cluster described in a line of text: "nodes=8,gpus=8,nvlink=nvlink4,nic=ndr,leaf=16,oversubscription=2"."""

from difflib import get_close_matches

import numpy as np

from comm.topology import switched
from comm.topology.links import read_link
from comm.topology.network import Drawing
from comm.topology.torus import gray_walk, torus, z_order
from comm.units import read_seconds

KEYS = {
    "kind": "the network: switch, leaf-spine, fat-tree, dragonfly, torus, hypercube or butterfly",
    "nodes": "servers (default: as many as the ranks need)",
    "gpus": "GPUs in a server",
    "nvlink": "link of each GPU to the switch inside its server",
    "nics": "NICs of a server (default: one for each GPU)",
    "pcie": "link of a GPU to its NIC, or none: the NIC's own",
    "nic": "link of a NIC to the network; of the cables of the network too",
    "hop": "time that a cable and the switch behind it add",
    "leaf": "NICs on one leaf switch",
    "oversubscription": "bytes a second into a leaf for each that can leave it upwards",
    "rails": "1: the first NICs of all servers share leaves, and so on; 0: a server's NICs do",
    "routers": "leaves in a group of a dragonfly",
    "local": "cables side by side between two leaves of a group",
    "cables": "cables side by side between two groups",
    "sides": "nodes (torus) or switches (butterfly) along each direction, as in 4x4x4",
}
"""What may be said of a cluster. Links are names of comm.topology.links or rates: 400Gb/s, 50GB/s@2us."""

SERVER = {"gpus", "nodes", "nvlink", "nic", "hop", "kind"}
SWITCHED = SERVER | {"nics", "pcie"}
KINDS = {
    "switch": SWITCHED,
    "leaf-spine": SWITCHED | {"leaf", "oversubscription", "rails"},
    "fat-tree": SWITCHED | {"oversubscription"},
    "dragonfly": SWITCHED | {"leaf", "routers", "local", "cables"},
    "butterfly": SWITCHED | {"leaf", "sides"},
    "torus": SERVER | {"sides"},
    "hypercube": SERVER,
}
"""The kinds of networks, and the keys that each takes."""

DEFAULTS = {"kind": "leaf-spine", "gpus": "8", "nvlink": "nvlink4", "pcie": "pcie5", "nic": "ndr", "hop": "250ns"}

PRESETS = {
    "article": ("kind=switch,gpus=1,pcie=none,nic=ndr@1us,hop=0",
                "the article's sums: every rank has 400 Gb/s (50 GB/s) to all others"),
    "dgx-h100": ("leaf=32,rails=1",
                 "servers of eight H100 (NVLink 4, eight NDR NICs), leaves by rail, no oversubscription"),
    "dgx-b200": ("nvlink=nvlink5,leaf=32,rails=1", "the same with NVLink 5"),
    "ethernet": ("gpus=8,nvlink=pcie5,nic=roce,leaf=32,oversubscription=4,hop=1us",
                 "servers without NVLink on RoCE, 4 : 1 oversubscribed"),
    "fat-tree": ("kind=fat-tree", "servers of eight on a three-level fat tree"),
    "dragonfly": ("kind=dragonfly,leaf=16", "the article's: leaves of two servers of eight GPUs with a NIC each"),
    "torus": ("kind=torus,gpus=1", "a three-dimensional torus of single GPUs, 50 GB/s a cable"),
    "hypercube": ("kind=hypercube,gpus=1", "a hypercube of single GPUs, 50 GB/s a cable"),
    "butterfly": ("kind=butterfly", "servers of eight on a flattened butterfly of two directions"),
    "switch": ("kind=switch", "servers of eight on one big switch"),
}
"""Clusters with a name: (description, in words). What follows the name overrides it: "torus,sides=8x8"."""


def describe(text, ranks=None):
    """The Topology that `text` describes: a preset, a kind, or key=value, separated by commas.

    ranks: where the text does not say how many nodes there are, there are as many as so many ranks need (64).
    Raises ValueError that names the nearest key, preset or link for what is not known, and what was expected.
    """
    given = _read(text)
    kind = given["kind"]
    gpus = _number(given, "gpus")
    if "nodes" in given:
        nodes = _number(given, "nodes")
    else:
        nodes = -(-(ranks or 64) // gpus)
    if kind in ("torus", "hypercube"):
        return _direct(given, kind, nodes, gpus)
    return _switched(given, kind, nodes, gpus)


def _read(text):
    """key -> value as text, checked against the kind."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    given = dict(DEFAULTS)
    said = {}
    if parts and "=" not in parts[0]:
        name = parts.pop(0)
        if name in PRESETS:
            given.update(part.split("=") for part in PRESETS[name][0].split(","))
        elif name in KINDS:
            given["kind"] = name
        else:
            raise ValueError(f"cluster {name!r}: no such cluster{_near(name, [*PRESETS, *KINDS])} Known: "
                             f"{', '.join([*PRESETS, 'leaf-spine'])}, or key=value")
    for part in parts:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in KEYS:
            raise ValueError(f"cluster key {key!r}: no such key{_near(key, KEYS)} Known: {', '.join(KEYS)}")
        if not equals or not value:
            raise ValueError(f"cluster key {key!r}: expected {key}=value, {KEYS[key]}")
        if key in said:
            raise ValueError(f"cluster key {key!r} is given twice: {said[key]} and {value}")
        said[key] = value
    given.update(said)
    if given["kind"] not in KINDS:
        raise ValueError(f"kind={given['kind']}: no such network{_near(given['kind'], KINDS)} "
                         f"Known: {', '.join(KINDS)}")
    for key in said.keys() - KINDS[given["kind"]]:
        raise ValueError(f"a {given['kind']} takes no {key}; it takes {', '.join(sorted(KINDS[given['kind']]))}")
    return given


def _near(word, known):
    near = get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else "."


def _number(given, key, least=1, default=None):
    """A whole number."""
    text = given.get(key, default)
    if text is None or isinstance(text, int):
        return text
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{key}={text}: expected a whole number from {least}, {KEYS[key]}")
    return int(text)


def _ratio(given, key):
    try:
        ratio = float(given.get(key, 1))
    except ValueError:
        ratio = 0
    if not 1 <= ratio < float("inf"):
        raise ValueError(f"{key}={given[key]}: expected a number from 1, as in 2: {KEYS[key]}")
    return ratio


def _sides(given):
    """(4, 4, 4) from "4x4x4"; None if not given."""
    if "sides" not in given:
        return None
    sides = given["sides"].split("x")
    if not all(side.isdecimal() and int(side) >= 1 for side in sides):
        raise ValueError(f"sides={given['sides']}: expected whole numbers from 1, as in 4x4x4")
    return tuple(map(int, sides))


def _cube(count, directions):
    """The smallest nearly equal sides whose product is at least `count`."""
    sides = []
    for left in range(directions, 0, -1):
        sides.append(next(side for side in range(1, count + 2) if side ** left >= count))
        count = -(-count // sides[-1])
    return tuple(sides)


def _servers(given, drawing, nodes, gpus):
    """GPUs and the switches inside servers: (GPUs (nodes, gpus), columns up and down (nodes * gpus,))."""
    cards = drawing.add(nodes * gpus, "GPU")
    if gpus == 1:
        return cards, cards, None, None
    inner = drawing.add(nodes, "server")
    link = read_link(given["nvlink"])
    up = drawing.join(cards, inner.repeat(gpus), "NVLink", link)
    return cards, inner, up, drawing.join(inner.repeat(gpus), cards, "NVLink", link)


def _direct(given, kind, nodes, gpus):
    """Servers that pass on messages themselves."""
    sides = _sides(given)
    if kind == "hypercube":
        sides = (2,) * max(1, (nodes - 1).bit_length())
    elif sides is None:
        sides = _cube(nodes, 3)
    count = int(np.prod(sides))
    if "nodes" in given and count != nodes:
        raise ValueError(f"nodes={nodes}: a {kind} of {'x'.join(map(str, sides))} has {count}; leave nodes out, "
                         f"or say sides whose product it is")
    drawing = Drawing()
    cards, inner, up, down = _servers(given, drawing, count, gpus)
    node = np.arange(count * gpus) // gpus
    between = torus(drawing, inner, sides, read_link(given["nic"]), read_seconds(given["hop"]))

    def path(source, target):
        columns = between(node[source], node[target])
        return columns if gpus == 1 else [up[source], *columns, down[target]]

    def of_gpus(place):
        return (place[:, None] * gpus + np.arange(gpus)).ravel()

    title = (f"{_title(nodes=count, gpus=gpus, given=given)}, {kind} of {'x'.join(map(str, sides))}, "
             f"{given['nic']} cables")
    return drawing.topology(title, node, path, of_gpus(gray_walk(sides)), of_gpus(z_order(sides)))


def _switched(given, kind, nodes, gpus):
    """Servers with NICs, on a network of switches."""
    nics = _number(given, "nics", default=gpus)
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
        columns = [np.where(near, -1, column) for column in columns]
        return columns if up is None else [np.where(near, up[source], -1), *columns, np.where(near, down[target], -1)]

    return drawing.topology(f"{_title(nodes, gpus, given)}, {words}", node, path)


def _network(given, kind, drawing, ports, nodes, nics):
    """(path between ports, the network in words)."""
    nic = f"{given['nic']} NICs"
    if kind == "switch":
        return switched.single_switch(drawing, ports), f"{nic} on one switch"
    if kind == "leaf-spine":
        leaf, ratio = _number(given, "leaf", default=32), _ratio(given, "oversubscription")
        server, rail = np.divmod(np.arange(nodes * nics), nics)
        place = rail * nodes + server if _number(given, "rails", 0, default=0) else None
        return (switched.leaf_spine(drawing, ports, leaf, ratio, place),
                f"{nic}, {leaf} to a leaf{' by rail' if place is not None else ''}, {ratio:g} : 1 oversubscribed")
    if kind == "fat-tree":
        ratio = _ratio(given, "oversubscription")
        return switched.fat_tree(drawing, ports, ratio), f"{nic} on a fat tree, {ratio:g} : 1 oversubscribed"
    if kind == "dragonfly":
        sizes = {key: _number(given, key) for key in ("routers", "local", "cables")}
        leaf = _number(given, "leaf", default=16)
        return switched.dragonfly(drawing, ports, leaf, **sizes), f"{nic}, dragonfly with leaves of {leaf}"
    leaf, sides = _number(given, "leaf"), _sides(given)
    count = nodes * nics
    if sides is None:
        leaf = leaf or next(k for k in range(1, count + 2) if k ** 3 >= count)
        sides = _cube(-(-count // leaf), 2)
    leaf = leaf or -(-count // int(np.prod(sides)))
    if leaf * int(np.prod(sides)) < count:
        raise ValueError(f"sides={given['sides']},leaf={leaf}: room for {leaf * int(np.prod(sides))} NICs, the "
                         f"servers have {count}")
    return (switched.flattened_butterfly(drawing, ports, leaf, sides),
            f"{nic}, flattened butterfly of {'x'.join(map(str, sides))} switches with {leaf} NICs each")


def _title(nodes, gpus, given):
    if gpus == 1:
        return f"{nodes} servers of one GPU"
    return f"{nodes} servers of {gpus} GPUs ({given['nvlink']})"
