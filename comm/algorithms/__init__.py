"""The registry of algorithms: what each one is, promises and costs. `simulate` proves every line of it."""

from comm.algorithms import recursive, ring, tree

ALGORITHMS = {
    **ring.ALGORITHMS,
    **recursive.ALGORITHMS,
    **tree.ALGORITHMS,
}
