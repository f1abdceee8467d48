"""From the arguments of a collective to its plan, and to what it returns when the plan has run.

A *job* is (plan, finish): run the plan, then finish() is the result. Every method here makes one, with the
same plan on every rank: nothing that differs between ranks may decide it. Group inherits them all.
"""

from comm.jobs.exchange import Exchange
from comm.jobs.parts import Parts
from comm.jobs.planned import Planned


class Jobs(Parts, Exchange, Planned):
    """The jobs of all collectives."""
