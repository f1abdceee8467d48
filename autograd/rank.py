"""What each rank (a process, in tests also a thread) keeps for itself: one `threading.local`."""

import threading


class Rank(threading.local):
    """The state of the tape for this rank.  Everything process-wide is fixed after import."""

    def __init__(self):
        self.recording = True          # False inside no_grad
        self.twins = True              # False inside formulas_only: every op runs its formula
        self.debug = False             # True inside debug: every result is checked for NaN and infinity
        self.layer = ""                # name of the layer that is running, kept up in debug mode
        self.accumulation = None       # the open Accumulation, which says when a leaf is complete
        self.after_node = None         # called after every node of a backward: polls collectives in flight
        self.arena = None              # made on first use by autograd.arena


rank = Rank()
