"""Several ranks in a test: threads of this process, or processes under a real mpirun.

    run(4, function)                  [function(group) on each of 4 threads]
    run(4, function, mpi=True)        the same on 4 processes; function must be at the top of a module
    mpirun(4, "script.py")            any command of Python, with what it printed and its exit status
"""

import importlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import comm
from minigpt import launch

REPOSITORY = Path(__file__).resolve().parent.parent


def run(size, function, mpi=False, timeout=60, nodes=None):
    """[function(group)] of all ranks, in order of rank, with checked collectives. nodes: the node of each rank.

    A rank that sends a byte more than its algorithms' formulas allow fails.

    Raises AssertionError with all that was printed if a rank under mpirun fails or `timeout` seconds pass.
    """
    if not mpi:
        return comm.run(size, lambda group: within_formulas(group, function), checked=True, nodes=nodes)
    with tempfile.TemporaryDirectory() as folder:
        name = f"{function.__module__}:{function.__qualname__}"
        told = nodes and ",".join(map(str, nodes))
        ended = mpirun(size, "-m", "tests.ranks", name, folder, timeout=timeout, MINIGPT_NODES=told)
        assert ended.returncode == 0, f"{name} on {size} ranks ended with {ended.returncode}:\n{ended.stdout}"
        return [pickle.loads(Path(folder, str(rank)).read_bytes()) for rank in range(size)]


def within_formulas(group, function):
    """function(group), after which nothing that this rank sent may be above the formula of its algorithm."""
    result = function(group)
    excess = {row: entry for row, entry in group.ledger.everything().items() if entry.excess}
    assert not excess, f"rank {group.rank} sent more than the formulas allow: {excess}"
    return result


def mpirun(size, *arguments, timeout=60, **environment):
    """Run `python ARGUMENTS` on `size` ranks; a CompletedProcess whose stdout holds all that was printed.

    A variable given as None is taken out of the environment. After `timeout` seconds all that was started is
    killed and the status is -9.
    """
    chosen = {**launch.environment(size), "MINIGPT_COMM_CHECK": "1", **environment}
    chosen["PYTHONPATH"] = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    command = [launch.find_mpirun(), "-n", str(size), sys.executable, *map(str, arguments)]
    chosen = {name: value for name, value in chosen.items() if value is not None}
    process = subprocess.Popen(command, cwd=REPOSITORY, env=chosen, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        output += f"\n(killed after {timeout} s)"
    return subprocess.CompletedProcess(command, process.returncode, output)


def main(name, folder):
    module, _, qualname = name.partition(":")
    group = comm.world()
    result = within_formulas(group, getattr(importlib.import_module(module), qualname))
    Path(folder, str(group.rank)).write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
