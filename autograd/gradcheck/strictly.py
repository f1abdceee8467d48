"""Run a check of an op again in a child process, on the array module that refuses to mix with NumPy.

    python -m autograd.gradcheck.strictly FILE      what the child runs
"""

import os
import pickle
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from autograd.backend import device, is_array, to_host
from autograd.tensor import Tensor


def run_on_strict(op, inputs, options):
    """Run `gradcheck` of op in a child process under MINIGPT_DEVICE=strict.

    Raises AssertionError with the child's message, ValueError if the child could not import the op.
    """
    if device == "strict":
        return
    module, name = op.__module__, op.__qualname__
    if module == "__main__" or "<locals>" in name:
        raise ValueError(f"strict=True: {module}.{name} cannot be imported by a child process: put it at the top "
                         "level of a module, or run the whole test under MINIGPT_DEVICE=strict")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "call"
        path.write_bytes(pickle.dumps((module, name, [_on_host(x) for x in inputs], options)))
        child = subprocess.run([sys.executable, "-m", "autograd.gradcheck.strictly", str(path)],
                               capture_output=True, text=True, timeout=120, check=False,
                               env={**os.environ, "MINIGPT_DEVICE": "strict",
                                    "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
    if child.returncode:
        raise AssertionError(f"{name} fails on the strict device:\n{child.stderr.strip()[-2000:]}")


def _on_host(x):
    x = x.data if isinstance(x, Tensor) else x
    if isinstance(x, (list, tuple)):
        return [_on_host(y) for y in x]
    return to_host(x) if is_array(x) else x


def main(path):
    from autograd.gradcheck.difference import gradcheck

    module, name, inputs, options = pickle.loads(Path(path).read_bytes())
    op = import_module(module)
    for part in name.split("."):
        op = getattr(op, part)
    gradcheck(lambda *args: op(*args, **options), inputs)


if __name__ == "__main__":
    main(sys.argv[1])
