"""How a program of tests.comm.programs ends, on threads or under mpirun."""

import re
import time

import pytest

import comm
from tests.comm import programs
from tests.ranks import mpirun

SECONDS = 5  # that a job which is lost may go on


def end_of(program, size=3, **environment):
    """(exit status, what was printed) of a program under mpirun, which must end soon."""
    start = time.time()
    ended = mpirun(size, "-m", "tests.comm.programs", program, timeout=40, **environment)
    began = max(map(float, re.findall("began at ([0-9.]+)", ended.stdout)), default=start)
    assert time.time() - began < SECONDS, ended.stdout
    return ended.returncode, ended.stdout


def what_is_said(program, size, transport, monkeypatch, timeout=60):
    """What a program that goes wrong is told, with checks on: an exception on threads, all output of mpirun."""
    if transport == "mpi":
        status, output = end_of(program, size, MINIGPT_COMM_TIMEOUT=str(timeout))
        assert status == 1, output
        return output
    monkeypatch.setenv("MINIGPT_COMM_TIMEOUT", str(timeout))
    start = time.monotonic()
    with pytest.raises(Exception) as caught:
        comm.run(size, getattr(programs, program), checked=True)
    assert time.monotonic() - start < SECONDS
    return "\n".join([f"{caught.typename}: {caught.value}", *caught.value.__notes__])


both_transports = pytest.mark.parametrize("transport", ["threads", pytest.param("mpi", marks=pytest.mark.mpi)])
