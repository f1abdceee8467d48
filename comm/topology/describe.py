"""A cluster described in a line of text: "nodes=8,gpus=8,nvlink=nvlink4,nic=ndr,leaf=16,oversubscription=2"."""

from difflib import get_close_matches

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


MOST = 1_000_000_000


def read(text):
    """{key: value as text} of a description, with the defaults. Raises ValueError for what its kind does not take."""
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


def number(given, key, least=1, most=MOST, default=None):
    """A whole number from `least` to `most`, or the default. Raises ValueError."""
    text = given.get(key, default)
    if text is None or isinstance(text, int):
        return text
    if not text.isdecimal() or not least <= int(text) <= most:
        raise ValueError(f"{key}={text}: expected a whole number from {least} to {most:,}: {KEYS[key]}")
    return int(text)


def ratio(given, key):
    """A number from 1; 1 if not given. Raises ValueError."""
    try:
        found = float(given.get(key, 1))
    except ValueError:
        found = 0
    if not 1 <= found < float("inf"):
        raise ValueError(f"{key}={given[key]}: expected a number from 1, as in 2: {KEYS[key]}")
    return found


def sides(given):
    """(4, 4, 4) from "4x4x4"; None if not given. Raises ValueError."""
    if "sides" not in given:
        return None
    found = given["sides"].split("x")
    if not all(side.isdecimal() and 1 <= int(side) <= MOST for side in found):
        raise ValueError(f"sides={given['sides']}: expected whole numbers from 1, as in 4x4x4")
    return tuple(map(int, found))
