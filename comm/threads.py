"""N ranks as N threads of one process: deterministic, and it knows when nobody can go on.

A send is finished when its receiver has taken it, as MPI allows for any message: a program that runs here
does not lean on MPI's buffers. Messages match by (sender, receiver, tag) in order, so results do not depend
on timing.
"""

import contextlib
import math
import threading
from collections import defaultdict, deque
from dataclasses import dataclass
from functools import partial

import numpy as np

from comm.device import host
from comm.mail import ThreadMail

MOMENT = 0.1  # seconds that a rank under checks waits before it looks around


class Deadlock(RuntimeError):
    """Every rank waits for another one, or for one that has ended; the message says who for whom."""


class Stopped(BaseException):
    """Unwinds a rank because another one failed. Not an Exception, so that no program catches it."""


@dataclass(eq=False)
class Post:
    """One half of a message: a send or a receive that waits for its other half."""

    sends: bool
    owner: int
    peer: int
    tag: int
    view: np.ndarray
    operation: str
    done: bool = False

    def __str__(self):
        what = "send to" if self.sends else "receive from"
        return f"rank {self.owner} waits in {self.operation}: {what} rank {self.peer}, tag {self.tag}, " \
               f"{self.view.nbytes} bytes"


@dataclass(eq=False)
class Arrival:
    """A rank that waits for others at a barrier."""

    owner: int
    operation: str
    done: bool = False

    def __str__(self):
        return f"rank {self.owner} waits in {self.operation} for the ranks of its node"


class Board:
    """Where the ranks of one process post their messages. One lock guards all of it."""

    def __init__(self, size):
        self.size = size
        self.failure = None  # (rank, exception) of the first rank that failed
        self._lock = threading.Lock()
        self._wake = [threading.Condition(self._lock) for _ in range(size)]
        self._channels = defaultdict(deque)
        self._waiting = {}  # rank -> the Post that it waits for
        self._notes = [[] for _ in range(size)]  # to each rank
        self._ended = set()
        self._meetings = defaultdict(list)
        self.shared = defaultdict(dict)  # what ranks show each other, by a key that they agree on

    def post(self, context, post):
        """Match with the other half if it is there, else leave it."""
        source, target = (post.owner, post.peer) if post.sends else (post.peer, post.owner)
        channel = context, source, target, post.tag
        with self._lock:
            self._stop_if_failed()
            queue = self._channels[channel]
            if not queue or queue[0].sends == post.sends:
                queue.append(post)
                return
            other = queue.popleft()
            if not queue:
                del self._channels[channel]
            _transfer(*(post, other) if post.sends else (other, post))
            if self._waiting.get(other.owner) is other:
                del self._waiting[other.owner]
                self._wake[other.owner].notify()

    def meet(self, place, size, arrival):
        """Note that a rank has come to a place; when `size` have, none of them waits any longer."""
        with self._lock:
            self._stop_if_failed()
            here = self._meetings[place]
            here.append(arrival)
            if len(here) < size:
                return
            del self._meetings[place]
            for one in here:
                one.done = True
                if self._waiting.get(one.owner) is one:
                    del self._waiting[one.owner]
                    self._wake[one.owner].notify()

    def note(self, source, ranks, note):
        """Leave a note to these ranks, all at once, and wake those that wait."""
        with self._lock:
            for rank in ranks:
                self._notes[rank].append((source, note))
                if self._waiting.pop(rank, None) is not None:
                    self._wake[rank].notify()

    def notes(self, rank):
        """Take the notes to this rank: [(rank, note)]."""
        if not self._notes[rank]:
            return []
        with self._lock:
            notes, self._notes[rank] = self._notes[rank], []
        return notes

    def rest(self, post, seconds):
        """Wait for this post, or a note, but not longer than that."""
        with self._lock:
            self._stop_if_failed()
            if post.done or self._notes[post.owner]:
                return
            self._waiting[post.owner] = post
            self._look_for_deadlock(post.owner)
            self._wake[post.owner].wait(seconds)
            self._waiting.pop(post.owner, None)
            self._stop_if_failed()

    def wait(self, post):
        with self._lock:
            while not post.done:
                self._stop_if_failed()
                self._waiting[post.owner] = post
                self._look_for_deadlock(post.owner)
                self._wake[post.owner].wait()

    def test(self, post):
        with self._lock:
            self._stop_if_failed()
            return post.done

    def end(self, rank, error=None):
        """A rank's function has returned, or raised `error`."""
        with self._lock:
            self._ended.add(rank)
            self._waiting.pop(rank, None)
            if isinstance(error, Stopped):
                return
            if error is not None:
                self._fail(rank, error)
            elif self.failure is None and self._waiting:
                with contextlib.suppress(Deadlock):  # it is recorded, and wakes the ranks that wait
                    self._look_for_deadlock(rank)

    def fail(self, rank, error):
        with self._lock:
            self._fail(rank, error)

    def _fail(self, rank, error):
        if self.failure is None:
            self.failure = rank, error
        for condition in self._wake:
            condition.notify_all()

    def _stop_if_failed(self):
        if self.failure is not None:
            raise Stopped

    def _look_for_deadlock(self, rank):
        """Exact, with no clock: a post that is matched stops its owner's waiting at once."""
        if len(self._waiting) + len(self._ended) < self.size:
            return
        lines = [str(post) for _, post in sorted(self._waiting.items())]
        lines += [f"rank {r} has ended" for r in sorted(self._ended)]
        error = Deadlock("no rank can go on:\n  " + "\n  ".join(lines))
        self._fail(rank, error)
        raise error


def _transfer(send, receive):
    if send.view.nbytes != receive.view.nbytes:
        raise ValueError(
            f"rank {send.owner} sends {send.view.nbytes} bytes (in {send.operation}, tag {send.tag}) but "
            f"rank {receive.owner} expects {receive.view.nbytes} (in {receive.operation}): give both sides "
            "the same shape and dtype")
    np.copyto(receive.view.view(np.uint8), send.view.view(np.uint8))
    send.done = receive.done = True


class Threads:
    """One rank's end of a Board, for one group of ranks. `ranks` are the group's ranks in the world."""

    takes_devices = False

    def __init__(self, board, ranks, rank, nodes=None, context=(), mail=None):
        self._board, self.context, self._splits, self._shares = board, context, 0, 0
        self.ranks, self.rank, self.size = tuple(ranks), rank, len(ranks)
        self.nodes = (0,) * self.size if nodes is None else tuple(nodes)
        self.mail = mail or ThreadMail(board, self.ranks[self.rank])
        self.operation = "send or receive"

    def pieces(self, view):
        """Messages that it takes to move `view`."""
        return 1

    def post(self, sends, receives, tag):
        me = self.ranks[self.rank]
        posts = [Post(True, me, self.ranks[peer], tag, view, self.operation) for view, peer in sends]
        posts += [Post(False, me, self.ranks[peer], tag, view, self.operation) for view, peer in receives]
        for post in posts:
            self._board.post(self.context, post)
        return posts

    def wait(self, posts):
        for post in posts:
            self._board.wait(post)

    def test(self, posts):
        return all(self._board.test(post) for post in posts)

    test_lengths = test  # Board compares them

    def rest(self, posts, waited):
        """Return when a post is done or a note has come, or a moment later."""
        self._board.rest(next((post for post in posts if not post.done), posts[0]), MOMENT)

    def exchange(self, sends, receives, tag, kept=False):
        """Calls that send and receive all of these at once and return when that is done."""
        return [partial(self._exchange, sends, receives, tag)] if sends or receives else []

    def _exchange(self, sends, receives, tag):
        self.wait(self.post(sends, receives, tag))

    def arrive(self, place, ranks, arrival):
        """This rank has come to a place where `ranks` are to meet."""
        self._board.meet(place, ranks, arrival)

    def shareable(self):
        """Bytes that ranks can share: memory is all of it."""
        return math.inf

    def share(self, nbytes):
        """Memory of the ranks of this node that all of them can read. Every rank of the group must call it.

        Returns ({rank: its (nbytes,) bytes}, meeting, free). meeting(i) is the i-th of MEETINGS places where these
        ranks can wait for each other: meet() does, begin() says that this rank has come and returns requests.
        """
        self._shares += 1
        node = self.nodes[self.rank]
        mates = [rank for rank in range(self.size) if self.nodes[rank] == node]
        place = (*self.context, "share", self._shares, node)
        self._board.shared[place][self.rank] = host.empty(nbytes, np.uint8)
        first = Rendezvous(self, (*place, "first"), len(mates))
        first.meet()
        return (self._board.shared[place], lambda i: Rendezvous(self, (*place, i), len(mates)),
                lambda: self._board.shared.pop(place, None))

    def split(self, color, members):
        """The end of a new group: `members` are its ranks here, in its order; None for a rank in no group."""
        self._splits += 1
        if color is None:
            return None
        return Threads(self._board, [self.ranks[m] for m in members], members.index(self.rank),
                       [self.nodes[m] for m in members], (*self.context, self._splits, color), self.mail)


class Rendezvous:
    """Where ranks of a node wait for each other; see Threads.share."""

    def __init__(self, endpoint, place, ranks):
        self._endpoint, self._place, self._ranks = endpoint, place, ranks

    def begin(self):
        arrival = Arrival(self._endpoint.ranks[self._endpoint.rank], self._endpoint.operation)
        self._endpoint.arrive(self._place, self._ranks, arrival)
        return [arrival]

    def meet(self):
        self._endpoint.wait(self.begin())
