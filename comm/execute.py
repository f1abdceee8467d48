"""Plans: one rank's rounds bound to memory, made once and run many times.

What makes small messages cheap is that nothing is computed on the way: slices, scratch and the transport's
calls of each round are bound when the plan is made. Scratch is aligned to cache lines (comm/device.py).
"""

from collections import defaultdict
from functools import partial

from comm.bind import Binder, Move
from comm.device import host
from comm.ledger import Tally
from comm.memory import Memory

COLLECTIVE_TAG = 1 << 14  # tags from here on belong to collectives; a user's tags are below


class Plan:
    """Run the rounds of one rank.

    rule: a generator of rounds, rule(rank, size). flat, cuts, source, out, out_cuts: see comm.memory.Memory.
    op: how summands combine. device: who owns the memory and adds. first: None, or (target, source): what is
    copied before the rounds. promised: the slots that must be in `flat` at the end (None: all of them). kept: it
    will run many times, so requests are made once. window: None, or where the ranks of this node read each
    other's memory (comm/shared.py).
    `run()` blocks and counts one call in `tally`. `start()` begins and returns; `poll()` goes as far as it can
    without waiting and says whether it is done; `wait()` finishes. A plan may be run again when it is done.
    flights: None, or all that is in flight on this rank (comm/flights.py): what was started is carried on while
    the rank waits for anything else, and all the rest while it waits for this.
    """

    flights = None

    def __init__(self, endpoint, rule, flat, cuts, op="sum", device=host, tag=COLLECTIVE_TAG, *, source=None,
                 out=None, out_cuts=(), first=None, promised=None, kept=False, window=None):
        self.flat, self.out = flat, out
        self._endpoint = endpoint
        memory = Memory(flat, cuts, source, out, out_cuts)
        self._moves = Binder(endpoint, memory, op, device, tag, kept, window).moves(rule, promised)
        if first is not None:
            self._moves.insert(0, Move([partial(device.copy, *first)], [], list, [], []))
        self.peers = _traffic(endpoint, self._moves)  # {rank in the world: (messages, bytes)} of one run
        self.messages = sum(messages for messages, _ in self.peers.values())
        self.sent = sum(nbytes for _, nbytes in self.peers.values())  # bytes that leave this rank in one run
        self.tally = Tally(flat.nbytes, self.sent, self.peers)
        self._calls = [call for moves in _together(self._moves) for call in _calls(endpoint, moves)]
        self._at = len(self._moves)  # it is done

    def announce(self, call):
        """Have `call` made before every run."""
        self._moves.insert(0, Move([call], [], list, [], []))
        self._calls.insert(0, call)
        self._at = len(self._moves)

    def run(self):
        if self.flights:
            self.flights.run(self)
            return
        for call in self._calls:
            call()
        self.tally.calls += 1

    def start(self):
        if self._at < len(self._moves):
            raise RuntimeError("this plan is in flight: wait() for it before it is run or started again")
        self.tally.calls += 1
        self._at = -1
        self._advance()
        if self.flights is not None and self._at < len(self._moves):
            self.flights.append(self)

    def poll(self):
        while self._at < len(self._moves):
            if not self._endpoint.test(self._requests):
                return False
            self._finish()
        return True

    test = poll  # as a Handle's

    def wait(self):
        if self.flights and not self.flights.only(self):
            self.flights.carry_on(self.poll)
        while self._at < len(self._moves):
            self._endpoint.wait(self._requests)
            self._finish()

    def _finish(self):
        for call in self._moves[self._at].after:
            call()
        self._advance()

    def _advance(self):
        self._at += 1
        if self._at < len(self._moves):
            self._requests = _begin(self._moves[self._at])
        elif self.flights is not None:
            self.flights.remove(self)


def _together(moves):
    """Lists of moves: those that join the one before them come with it."""
    lists = []
    for move in moves:
        if move.joins:
            lists[-1].append(move)
        else:
            lists.append([move])
    return lists


def _calls(endpoint, moves):
    """What to call, one after the other, to carry out moves that overlap."""
    if len(moves) > 1:
        return [partial(_overlapped, endpoint, moves)]
    return [*moves[0].before, *moves[0].exchange, *moves[0].after]


def _overlapped(endpoint, moves):
    """Each move's messages are on their way while those of the one before are added."""
    flying = None
    for move in [*moves, None]:
        begun = move and _begin(move)
        if flying:
            earlier, requests = flying
            endpoint.wait(requests)
            for call in earlier.after:
                call()
        flying = move, begun


def _begin(move):
    for call in move.before:
        call()
    return move.post()


def _traffic(endpoint, moves):
    peers = defaultdict(lambda: (0, 0))
    for peer, count, nbytes in (entry for move in moves for entry in move.traffic):
        messages, total = peers[endpoint.ranks[peer]]
        peers[endpoint.ranks[peer]] = messages + count, total + nbytes
    return dict(peers)
