"""Where groups come from: the ranks of mpirun, or threads of this process."""

import threading
import time

from comm import check, transport
from comm.group import Group
from comm.threads import Board, Threads

GRACE = 2.0  # seconds that ranks which are busy have to come to their next communication when one has failed

_here = threading.local()  # .world: the group of a rank that is a thread
_lock = threading.Lock()
_process = []  # the group of this process, once made


def world():
    """The group of all ranks.

    Under mpirun (mpiexec, srun) it is over MPI, and every rank must ask for it. Inside `run` it is the group
    of the threads. Otherwise this process is the only rank, and mpi4py is not imported. One object. Collectives
    are checked if MINIGPT_COMM_CHECK says so on any rank: mpirun does not take it to other hosts by itself.
    """
    group = getattr(_here, "world", None)
    if group is not None:
        return group
    with _lock:
        if not _process:
            if transport.launched():
                endpoint = transport.world()
                _process.append(Group(endpoint, endpoint.any_says(check.wanted())))
            else:
                _process.append(Group(Threads(Board(1), (0,), 0)))
        return _process[0]


def run(size, function, checked=None, nodes=None):
    """Run function(group) on `size` ranks, threads of this process; returns the results in order of rank.

    If a rank raises, the others are stopped at their next communication and its exception is raised here,
    with a note that names the rank; a rank that is busy for more than 2 s is left behind. If no rank can go on,
    Deadlock is raised and says who waits for whom.
    checked: compare the calls of all ranks before each collective; None: as MINIGPT_COMM_CHECK says.
    nodes: the number of every rank's node, for ranks that play several hosts; None: all are on one.
    """
    if size < 1:
        raise ValueError(f"size={size}: expected at least one rank")
    if nodes is not None and len(nodes) != size:
        raise ValueError(f"nodes={nodes}: expected the node of each of {size} ranks")
    board, results = Board(size), [None] * size

    def body(rank):
        try:
            _here.world = Group(Threads(board, range(size), rank, nodes), checked)
            results[rank] = function(_here.world)
            _here.world.farewell()
        except BaseException as error:
            board.end(rank, error)
        else:
            board.end(rank)

    ranks = [threading.Thread(target=body, args=(r,), name=f"rank {r}", daemon=True) for r in range(size)]
    for thread in ranks:
        thread.start()
    try:
        _join(ranks, board)
    except BaseException as error:  # Ctrl-C: the ranks must not go on behind the caller's back
        board.fail(None, error)
        raise
    if board.failure is not None:
        rank, error = board.failure
        error.add_note(f"This was raised on rank {rank} of {size}.")
        if busy := [str(r) for r, thread in enumerate(ranks) if thread.is_alive()]:
            error.add_note(f"Still busy with something else, and not stopped: rank {', '.join(busy)}.")
        raise error
    return results


def _join(ranks, board):
    """Wait for the threads to end; when a rank has failed, not longer than GRACE for those that are busy."""
    end = None
    while any(thread.is_alive() for thread in ranks):
        if board.failure is not None:
            end = end or time.monotonic() + GRACE
            if time.monotonic() > end:
                return
        next(thread for thread in ranks if thread.is_alive()).join(0.1)
