"""Collectives come in pairs, one the other backwards: broadcast and reduce, scatter and gather.

Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and experience"
(2007), https://doi.org/10.1002/cpe.1206, section 3.
"""

from comm.schedule import Recv, Send, rounds


def backwards(rule, rank, size, reduce, **options):
    """The rounds of `rule`, last one first, every message the other way; what comes is added if `reduce`."""
    for items in reversed(list(rounds(rule, rank, size, **options))):
        yield [Recv(item.to, item.chunks, reduce) if isinstance(item, Send) else Send(item.source, item.chunks)
               for item in items]
