"""The registry of algorithms: what each one is, promises and costs. `simulate` proves every line of it."""

from comm.algorithms import barrier, chain, composed, direct, exchange, recursive, ring, tree

ALGORITHMS = {
    **ring.ALGORITHMS,
    **recursive.ALGORITHMS,
    **tree.ALGORITHMS,
    **barrier.ALGORITHMS,
    **chain.ALGORITHMS,
    **composed.ALGORITHMS,
    **exchange.ALGORITHMS,
    **direct.ALGORITHMS,
}
