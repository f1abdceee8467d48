"""The registry of algorithms: what each one is, promises and costs. `simulate` proves every line of it."""

from comm.algorithms import (
    barrier,
    bruck,
    chain,
    composed,
    direct,
    double_tree,
    exchange,
    halving,
    hierarchical,
    naive,
    pat,
    recursive,
    ring,
    tree,
)

FAMILIES = (ring, recursive, double_tree, hierarchical, naive, halving, bruck, pat, direct, tree, chain, composed,
            exchange, barrier)

ALGORITHMS = {name: algorithm for family in FAMILIES for name, algorithm in family.ALGORITHMS.items()}
