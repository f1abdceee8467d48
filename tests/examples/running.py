"""Run an example as a reader does."""

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"
DIGITS = REPOSITORY.parent / "shared" / "data" / "mnist10k.npz"


def run(name, *words, cwd=REPOSITORY, **environment):
    """What `python examples/NAME` printed. Raises AssertionError with all of it if it fails."""
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY), **environment}
    ended = subprocess.run([sys.executable, str(EXAMPLES / name), *map(str, words)], cwd=cwd, env=variables,
                           text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, check=False)
    assert ended.returncode == 0, f"{name} ended with {ended.returncode}:\n{ended.stdout}"
    return ended.stdout
