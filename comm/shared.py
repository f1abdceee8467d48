"""Memory that the ranks of a node share: a transport on which a message is read where it lies.

A `Block` is shared memory, one piece for each rank. A `Window` is a plan's view of a block: in a round, the
ranks of a node meet at a barrier, and each takes what it is to receive out of the others' pieces. The barrier
stands for all messages of the round, so a round must not change what it shows: see `fits`.
"""

import weakref
from itertools import accumulate
from math import inf, prod

import numpy as np

from comm import buffers
from comm.device import ALIGNMENT, host
from comm.meeting import MEETINGS
from comm.memory import SOURCE
from comm.schedule import NONE, Recv, Send

SPARE = 64 << 10  # bytes of shared memory that a block may need beside what a rank gets
MARGIN = 1.1  # Open MPI leaves a twentieth free


class Block:
    """`nbytes` of each rank that the ranks of its node can read: `pieces` {rank of the group: (nbytes,) u1}.

    Every rank of the group makes one at the same time. free(): give the memory back; for all ranks, when nobody
    uses it.
    """

    def __init__(self, endpoint, nbytes):
        self.nbytes = nbytes
        self.pieces, self._meeting, self.free = endpoint.share(nbytes)
        self._meetings = [self._meeting(0)]
        self._address = buffers.address_of(self.pieces[endpoint.rank])

    def offset(self, array):
        """Where `array` begins in this rank's piece, in bytes; None if it does not lie in it."""
        at = buffers.address_of(array) - self._address
        return at if 0 <= at <= self.nbytes - array.nbytes else None

    def meeting(self, own):
        """Where a plan's ranks meet. own: a place of its own, until there are MEETINGS such plans.

        Without, the plan must not be in flight beside another, but ranks need not make the same plans.
        """
        if not own:
            return self._meetings[0]
        if len(self._meetings) < MEETINGS:
            self._meetings.append(self._meeting(len(self._meetings)))
        else:
            self._meetings.append(self._meetings.pop(1))
        return self._meetings[-1]

    def hand_out(self, shape, dtype):
        """This rank's piece as an array, and a weak reference that dies when neither it nor a view is in use."""
        owner = buffers.At(self._address, self.nbytes)
        array = np.asarray(owner)[:prod(shape) * dtype.itemsize].view(dtype).reshape(shape)
        return array, weakref.ref(owner)


class Windows:
    """The shared memory of one group: what its users asked for, and a block to stage in.

    all_agree(flags): which of these hold on all ranks.
    """

    def __init__(self, endpoint, all_agree):
        self._endpoint, self._all_agree = endpoint, all_agree
        self._blocks = []  # (block, weak reference to what the user holds)
        self._staging, self._too_much = None, inf
        self.version = 0  # of the block to stage in

    def empty(self, shape, dtype):
        """A new array in shared memory; what no rank uses any more is given back first.

        Where a node has too little of it the array is in every rank's own memory.
        """
        if self._blocks:
            unused = self._all_agree([user() is None for _, user in self._blocks])
            for block in (block for (block, _), gone in zip(self._blocks, unused) if gone):
                block.free()
            self._blocks = [entry for entry, gone in zip(self._blocks, unused) if not gone]
        nbytes = max(1, prod(shape) * dtype.itemsize)
        if not self._has_room(nbytes):
            return host.like(shape, dtype)
        block = Block(self._endpoint, nbytes)
        array, user = block.hand_out(shape, dtype)
        self._blocks.append((block, user))
        return array

    def _has_room(self, nbytes):
        """Do all nodes have so much shared memory left, for each of their ranks?"""
        ranks = self._endpoint.nodes.count(self._endpoint.nodes[self._endpoint.rank])
        return bool(self._all_agree([MARGIN * ranks * (nbytes + SPARE) <= self._endpoint.shareable()])[0])

    def where(self, arrays):
        """(block, offset of each array in it) as numbers that ranks can compare; (-1, ...) if not in one block."""
        for number, (block, _) in enumerate(self._blocks):
            places = [block.offset(array) for array in arrays]
            if None not in places:
                return number, *places
        return (-1,) * (1 + len(arrays))

    def block(self, number):
        return self._blocks[number][0]

    def staging(self, nbytes):
        """A block of at least this size that belongs to the group, or None if there is too little shared memory.

        A block that was too small is not used again.
        """
        if self._staging is None or self._staging.nbytes < nbytes:
            wanted = 1 << max(20, (nbytes - 1).bit_length())
            if wanted >= self._too_much or not self._has_room(wanted):
                self._too_much = min(wanted, self._too_much)
                return None
            self.version += 1
            self._staging = Block(self._endpoint, wanted)
        return self._staging


class Window:
    """What a plan needs to know of the others on its node: who they are, what they show, where it lies.

    all_rounds: those of `comm.schedule.everyone`. arrays: those of the plan, which lie in the block at the same
    offsets on every rank; if staged, they lie elsewhere, and what is shown is copied to the block first.
    """

    def __init__(self, endpoint, all_rounds, block, arrays, staged, own_meeting):
        self._rank, self._block, self._dtype = endpoint.rank, block, arrays[0].dtype
        self._rounds, self._staged = all_rounds, staged
        self.mates = set(block.pieces) - {endpoint.rank}
        self._offsets = offsets(arrays) if staged else [block.offset(array) for array in arrays]
        meeting = block.meeting(own_meeting)
        self.barrier, self.post = meeting.meet, meeting.begin

    def meets(self, number):
        """Does any rank of this node send to another one of it in this round?"""
        node = self._block.pieces
        return any(item.to[rank] in node for item in self._rounds[number] if isinstance(item, Send) for rank in node)

    def shown(self, number, source):
        """The slots that `source` sends to this rank in this round."""
        return next(item.chunks[source].tolist() for item in self._rounds[number]
                    if isinstance(item, Send) and item.to[source] == self._rank)

    def mine(self, place):
        """Where to copy what is shown at a place; None: it can be read where it is."""
        return self.view(self._rank, place) if self._staged else None

    def view(self, rank, place):
        """The elements at a place in the memory of `rank`."""
        width, at = self._dtype.itemsize, self._offsets[0 if place.array == SOURCE else place.array]
        return self._block.pieces[rank][at + place.start * width:at + place.stop * width].view(self._dtype)


def offsets(arrays):
    """Where the arrays of a plan lie in a block that they are staged in, each on a cache line; and the end."""
    return [0, *accumulate(-(-array.nbytes // ALIGNMENT) * ALIGNMENT for array in arrays)]


def fits(all_rounds, staged, several=False):
    """May these rounds run on shared memory? No rank may overwrite what others might still be reading.

    Not staged: no rank receives into a slot that it sends in the same round. Staged: no rank sends a slot in
    two rounds that follow each other, as the second copy might be made while the first is read. On several nodes
    what goes to others is sent after what comes from mates is there, so the first must hold in any case.
    """
    earlier = set()
    for items in all_rounds:
        sent, received = (_slots(items, kind) for kind in (Send, Recv))
        if staged and sent & earlier or (several or not staged) and sent & received:
            return False
        earlier = sent
    return True


def _slots(items, kind):
    """{(rank, slot)} of all that is sent, or received, in a round."""
    return {(rank, slot) for item in items if isinstance(item, kind)
            for rank in np.flatnonzero(item[0] != NONE).tolist() for slot in item.chunks[rank].tolist()}
