"""Short notes between all ranks, sent without waiting: what comm/desk.py reads and writes.

Notes from one rank arrive in the order in which they were sent. A mail has rank and size (of the world),
put(ranks, note), take() -> [(rank, note)] of all that have come since, and desk: who reads it.
"""

from collections import deque


class ProcessMail:
    """Over MPI. mpi: mpi4py.MPI; comm: a communicator of all ranks that nothing else uses."""

    def __init__(self, mpi, comm):
        self._mpi, self._comm, self._under_way, self.desk = mpi, comm, deque(), None
        self.rank, self.size = comm.Get_rank(), comm.Get_size()

    def put(self, ranks, note):
        while self._under_way and self._under_way[0].Test():
            self._under_way.popleft()
        self._under_way.extend(self._comm.Isend([note, self._mpi.BYTE], rank) for rank in ranks)

    def take(self):
        notes, status = [], self._mpi.Status()
        while (message := self._comm.Improbe(status=status)) is not None:
            note = bytearray(status.Get_count(self._mpi.BYTE))
            message.Recv([note, self._mpi.BYTE])
            notes.append((status.Get_source(), bytes(note)))
        return notes


class ThreadMail:
    """Between threads of this process, whose board (comm/threads.py) holds the notes."""

    def __init__(self, board, rank):
        self._board, self.rank, self.size, self.desk = board, rank, board.size, None

    def put(self, ranks, note):
        self._board.note(self.rank, ranks, note)

    def take(self):
        return self._board.notes(self.rank)
