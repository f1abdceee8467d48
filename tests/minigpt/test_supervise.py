import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from minigpt import launch, mpi_settings, supervise

SUPERVISE = Path(supervise.__file__)
STUBBORN = Path(__file__).with_name("stubborn_rank.py")

supervised_only = pytest.mark.skipif(
    not mpi_settings.is_supervised(), reason="this environment was not made by `make install`"
)

PROGRAM = """
import pathlib, signal, sys, time
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
pathlib.Path(sys.argv[1]).touch()
while not asked: time.sleep(0.01)
time.sleep(float(sys.argv[2]))
print("saved")
"""


def wait_for(process, *paths, seconds=30):
    end = time.monotonic() + seconds
    while missing := [str(path) for path in paths if not path.exists()]:
        assert process.poll() is None, f"ended with {process.returncode}: {process.communicate()}"
        assert time.monotonic() < end, f"no {missing} after {seconds} s"
        time.sleep(0.02)


@contextmanager
def started(words, environment=None):
    """The process that runs these words, killed at the end if it is still there."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(list(map(str, words)), env=environment, text=True, **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def supervised(*words, **environment):
    return started([sys.executable, "-IS", SUPERVISE, sys.executable, *words], os.environ | environment)


def stubborn_ranks(folder, seconds):
    command = [launch.find_mpirun(), "-n", "2", sys.executable, STUBBORN, folder, seconds]
    return started(command, launch.environment(2))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_to_stop_is_passed_on_as_a_request(tmp_path, number):
    with supervised("-c", PROGRAM, tmp_path / "ready", 0.2) as process:
        wait_for(process, tmp_path / "ready")
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "saved\n")
    assert "60 s to save" in err


def test_the_second_signal_ends_it_at_once(tmp_path):
    with supervised("-c", PROGRAM, tmp_path / "ready", 60) as process:
        wait_for(process, tmp_path / "ready")
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (128 + signal.SIGTERM, "")


def test_who_does_not_save_in_time_is_ended(tmp_path):
    with supervised("-c", PROGRAM, tmp_path / "ready", 60, MINIGPT_SECONDS_TO_SAVE="0.3") as process:
        wait_for(process, tmp_path / "ready")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM


@pytest.mark.parametrize("status", [0, 3])
def test_the_exit_status_is_the_programs(status):
    with supervised("-c", f"raise SystemExit({status})") as process:
        process.communicate(timeout=20)
    assert process.returncode == status


def test_a_program_that_is_not_there_is_named():
    with started([sys.executable, "-IS", SUPERVISE, "/no/prterun"]) as process:
        _, err = process.communicate(timeout=20)
    assert process.returncode == 127 and "/no/prterun" in err


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux can bind a child to its parent's death")
def test_killing_the_supervisor_kills_what_it_supervises(tmp_path):
    program = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
    with supervised("-c", program, tmp_path / "ready") as process:
        wait_for(process, tmp_path / "ready")
        process.kill()
        process.communicate(timeout=10)         # returns only when the child, too, has closed its output


@pytest.mark.mpi
@supervised_only
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ranks_save_when_mpirun_itself_is_told_to_stop(tmp_path, number):
    """Open MPI alone kills ranks 0.25 s after the signal; these need 3 s to save."""
    with stubborn_ranks(tmp_path, 3) as process:
        wait_for(process, tmp_path / "ready.0", tmp_path / "ready.1")
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    told = [(tmp_path / f"saved.{rank}").read_text() for rank in range(2)]
    assert told[0].split()[0] == told[1].split()[0], "the ranks stopped at different steps"


@pytest.mark.mpi
@supervised_only
def test_a_second_signal_to_mpirun_ends_the_ranks_at_once(tmp_path):
    with stubborn_ranks(tmp_path, 60) as process:
        wait_for(process, tmp_path / "ready.0", tmp_path / "ready.1")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=15)
    assert process.returncode != 0 and not list(tmp_path.glob("saved.*"))
