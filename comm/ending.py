"""How a job of several processes ends: all ranks or none, with the status of the rank that failed.

A rank that is gone leaves the others waiting, and is itself kept by them in MPI_Finalize. So:
an uncaught exception, in any thread, ends all ranks with its traceback and status 1 (Ctrl-C: 130);
`raise SystemExit(n)`, `sys.exit(n)` and `exit(n)` that nobody catches end all ranks with status n;
a rank whose program has ended well says goodbye and waits until all have. If another rank turns out to wait for
it, all end with status 1. Checks (comm/check.py) always find that out. Without them it is seen only by a
message that was sent to the rank and never taken: not by a broadcast from it, nor in shared memory. Then the
rank says after MINIGPT_COMM_TIMEOUT seconds whom it waits for, and goes on waiting: they may be busy.
What no program can do after its death, mpirun does: it ends the job when a rank is killed or calls os._exit.
Not seen is an exit by a reference to sys.exit that was taken before `comm.world()`, on Python 3.11.
"""

import atexit
import ctypes
import gc
import os
import sys
import threading
import time
import traceback

from comm.desk import desk_of

_jobs = []  # (process id, job) of this process, which is a rank; a child that was forked off it has another id
_status = []  # what this process exits with, once the interpreter has asked an exception that nobody caught


def watch(job):
    """End all ranks of `job` when this one fails or leaves. Call it once.

    job: rank, size, mail (comm.desk), abort(status), which ends all ranks, and strays(), a text for every
    message that has come and was not taken. Raises ValueError if MINIGPT_COMM_TIMEOUT is no number above 0.
    """
    _jobs.append((os.getpid(), job))
    sys.excepthook = _tell
    threading.excepthook = _tell_of_thread
    sys.exit = _exit
    _learn_statuses()
    atexit.register(_at_exit)  # runs before MPI_Finalize, which mpi4py calls
    desk_of(job.mail)


def abort(status=1):
    """End every rank of the job now. A child that was forked off a rank ends only itself.

    The child must not end as Python does, which would have it wait for the ranks in MPI_Finalize.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    pid, job = _jobs[0]
    if pid == os.getpid():
        job.abort(status)
    else:
        os._exit(status)


def _tell(kind, value, trace):
    text = "".join(traceback.format_exception(kind, value, trace))
    job = _jobs[0][1]
    sys.stderr.write(f"rank {job.rank} of {job.size} failed, all ranks end:\n{text}")
    abort(130 if issubclass(kind, KeyboardInterrupt) else 1)


def _tell_of_thread(args):
    if args.exc_type is not SystemExit:  # which ends only its thread
        _tell(args.exc_type, args.exc_value, args.exc_traceback)


def _exit(status=None, /):
    """sys.exit, whose own exception is in no Python code and so has no `code` to be asked for (Python 3.11)."""
    raise SystemExit(status)


def _learn_statuses():
    """Have SystemExit.code note what it answers when no Python code is left that could have caught the exit.

    The interpreter hands the status to nobody: it calls no excepthook for SystemExit, and atexit does not see
    it. What it does is to ask the exception for its `code`.
    """
    original = SystemExit.code

    def code(self):
        status = original.__get__(self)
        if sys._getframe().f_back is None:
            _status[:] = [status]
        return status

    for names in gc.get_referents(SystemExit.__dict__):  # one dictionary, in CPython
        names["code"] = property(code, original.__set__, doc=original.__doc__)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(SystemExit))


def _at_exit():
    pid, job = _jobs[0]
    status = _status[0] if _status else None
    if status not in (None, 0):
        abort(status if isinstance(status, int) else 1)
    if pid != os.getpid():
        abort(0)
    try:
        _part(job)
    except Exception:
        _tell(*sys.exc_info())


def _part(job):
    """Say goodbye, and wait until every rank has. Raises RuntimeError if one waits for this rank meanwhile."""
    desk, start, told = desk_of(job.mail), time.monotonic(), False
    desk.say_goodbye()
    while len(desk.ended) < job.size - 1:
        desk.read()
        waited = time.monotonic() - start
        claims = desk.claims(waited) + job.strays()
        if claims:
            raise RuntimeError("\n  ".join([f"the program of rank {job.rank} has ended, but:", *claims]))
        if waited > desk.patience and not told:
            others = sorted({*range(job.size)} - {job.rank, *desk.ended})
            sys.stderr.write(f"rank {job.rank} of {job.size} has ended its program {waited:.0f} s ago and waits "
                             f"for the others to end: {', '.join(map(str, others))}\n")
            told = True
        time.sleep(min(0.01, waited / 10))
