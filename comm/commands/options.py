"""The options of algorithms on the command line: --root, --segments, --nodes, --aggregate."""

import argparse
import inspect

from comm.algorithms import ALGORITHMS
from comm.schedule import ROOTED

OPTIONS = ("root", "segments", "nodes", "aggregate")


def add_options(parser):
    """What the rule of the chosen algorithm may take; `options_of` says which."""
    parser.add_argument("--root", type=_whole(0), metavar="RANK",
                        help="the rank that broadcast, reduce, gather and scatter begin or end at (default 0)")
    parser.add_argument("--segments", type=_whole(1), metavar="S", help="parts of the message of a pipelined algorithm")
    parser.add_argument("--nodes", type=_nodes, metavar="0,0,1,1",
                        help="the node of every rank, for hierarchical algorithms (default: two halves)")
    parser.add_argument("--aggregate", type=_whole(1), metavar="K", help="the most chunks in one message, for pat")
    parser.set_defaults(fail=parser.error)


def options_of(name, size, chosen):
    """What was chosen for this algorithm, as keywords. Raises ValueError for what its rule does not take."""
    given = {option: getattr(chosen, option) for option in OPTIONS if getattr(chosen, option) is not None}
    for option in given:
        takers = [other for other in ALGORITHMS if option in _taken(other)]
        if name not in takers:
            raise ValueError(f"{name} takes no --{option}; these do: {', '.join(takers)}")
    if given.get("root", 0) >= size:
        raise ValueError(f"--root {given['root']}: expected one of the {size} ranks, 0 to {size - 1}")
    if "nodes" in given and len(given["nodes"]) != size:
        raise ValueError(f"--nodes names the node of {len(given['nodes'])} ranks: expected {size}, as many as --ranks")
    return given


def _taken(name):
    """The options that the rule of an algorithm takes."""
    algorithm = ALGORITHMS[name]
    parameters = inspect.signature(algorithm.rule).parameters
    return [option for option in OPTIONS
            if (algorithm.collective in ROOTED if option == "root" else option in parameters)]


def _whole(least):
    def read(text):
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number, from {least}")
        return int(text)
    return read


def _nodes(text):
    """"0,0,1,1" as a tuple of the node of every rank."""
    parts = text.split(",")
    if not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r}: expected the node number of every rank, as in 0,0,0,1,1")
    return tuple(map(int, parts))
