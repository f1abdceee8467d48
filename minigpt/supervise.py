"""Stand in front of mpirun, and turn Ctrl-C and SIGTERM into a stop in which the ranks can save.

Open MPI's mpirun (prterun, since version 5) answers SIGINT and SIGTERM by SIGTERM to the ranks and SIGKILL a
quarter of a second later; no setting changes that. SIGUSR1, though, it passes on to every rank on every host and
goes on waiting. So the real prterun runs as a child in a session of its own, where the terminal's Ctrl-C does
not reach it, and this process, which has the pid that the user knows, answers signals:

    the first SIGINT, SIGTERM or SIGHUP    SIGUSR1 to the ranks; they have `seconds` to save and leave
    the second, or `seconds` later         SIGTERM to prterun: the ranks die within a second
    SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT     passed on

A rank that has no handler for SIGUSR1 dies of it, as it would of SIGTERM. The exit status is prterun's: 0 when
every rank left with 0. If this process is killed outright, so is prterun (Linux), and with it the ranks.

`make install` puts a shell script that runs this file in the place of the environment's `bin/prterun`
(minigpt.mpi_settings.install_supervisor), so this file imports nothing but the standard library.
"""

import contextlib
import ctypes
import os
import signal
import sys

STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PASSED_ON = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP, signal.SIGCONT)
SECONDS_TO_SAVE = 60
PR_SET_PDEATHSIG = 1                            # linux/prctl.h


def supervise(program, arguments, environment=None, seconds=SECONDS_TO_SAVE):
    """Run `program` with `arguments` (argv, its name included) and return its exit status, 128 + n for signal n.

    `seconds`: how long ranks may take to save and leave after the first request to stop.
    """
    process = start(program, arguments, os.environ if environment is None else environment)
    requests = []

    def stop(number, frame):
        requests.append(number)
        if len(requests) == 1:
            print(
                f"\nStopping: the ranks have {seconds:g} s to save. Once more to stop them at once.",
                file=sys.stderr, flush=True,
            )
            signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
            send(process, signal.SIGUSR1)
        else:
            send(process, signal.SIGTERM)

    def pass_on(number, frame):
        send(process, number)
        if number == signal.SIGTSTP:            # the shell expects that what it stopped is stopped
            os.kill(os.getpid(), signal.SIGSTOP)

    for number in STOP:
        signal.signal(number, stop)
    for number in PASSED_ON:
        signal.signal(number, pass_on)
    signal.signal(signal.SIGALRM, lambda number, frame: send(process, signal.SIGTERM))
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    signal.setitimer(signal.ITIMER_REAL, 0)
    return status if status >= 0 else 128 - status


def start(program, arguments, environment):
    """The pid of `program`, started in a session of its own and bound to die with this process."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    parent = os.getpid()
    process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        if prctl:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:              # else the parent died before prctl could bind us to it
            os.execve(program, arguments, environment)
    except OSError as error:
        print(f"cannot start {program}: {error.strerror}", file=sys.stderr, flush=True)
    os._exit(127)


def send(process, number):
    with contextlib.suppress(ProcessLookupError):     # it has just ended
        os.kill(process, number)


if __name__ == "__main__":
    wait = float(os.environ.get("MINIGPT_SECONDS_TO_SAVE", SECONDS_TO_SAVE))
    sys.exit(supervise(sys.argv[1], sys.argv[1:], seconds=wait))
