"""Write autograd/strict/cupy_api.json: the names and parameters of the installed CuPy.  Needs no GPU.

    pip install --target /tmp/cupy 'cupy-cuda12x>=14,<15'
    PYTHONPATH=/tmp/cupy python tests/tools/freeze_cupy_api.py

`autograd.strict` refuses whatever is not in this file.  Run it again when the required CuPy changes.
"""
import inspect
import json
import re
from pathlib import Path

import cupy

TARGET = Path(__file__).parents[2] / "autograd" / "strict" / "cupy_api.json"
UFUNC_KEYWORDS = ["out", "dtype", "casting"]    # cupy/_core/_kernel.pyx: ufunc.__call__ raises on others
BY_HAND = {"einsum": ["*operands", "dtype", "optimize"]}    # takes **kwargs and checks them itself


def parameters(function):
    """-> parameter names in order, stars kept; None where CuPy takes any or does not tell."""
    try:
        found = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return None
    if any(p.kind == p.VAR_KEYWORD for p in found):
        return None
    return [("*" if p.kind == p.VAR_POSITIONAL else "") + p.name for p in found]


def documented_parameters(method):
    """-> the same for a compiled method, from the signature in the first line of its docstring."""
    signature = re.match(r"[\w.]+\((.*?)\)( ->|$)", (method.__doc__ or "").split("\n")[0])
    if signature is None:
        return None
    names = [part.split("=")[0].split()[-1] for part in signature[1].split(", ")]
    return [name for name in names if name != "self"]


def public(owner):
    return {name: getattr(owner, name) for name in sorted(dir(owner)) if not name.startswith("_")}


def freeze():
    api = {"version": cupy.__version__, "ufunc_keywords": UFUNC_KEYWORDS}
    modules = {"": cupy, "linalg.": cupy.linalg, "fft.": cupy.fft}
    found = {prefix + name: x for prefix, module in modules.items() for name, x in public(module).items()}
    api["ufuncs"] = [name for name, x in found.items() if isinstance(x, cupy.ufunc)]
    api["ufuncs_with_at"] = [name for name in api["ufuncs"] if found[name]._scatter_op]
    api["functions"] = {name: parameters(x) for name, x in found.items()
                        if callable(x) and not isinstance(x, type | cupy.ufunc)}
    api["functions"].update(BY_HAND)
    api["types"] = [name for name, x in found.items() if isinstance(x, type)]
    api["constants"] = [name for name, x in found.items() if x is None or isinstance(x, float)]
    members = public(cupy.ndarray)
    api["methods"] = {name: documented_parameters(x) for name, x in members.items() if callable(x)}
    api["attributes"] = [name for name, x in members.items() if not callable(x)]
    api["generator"] = {name: documented_parameters(x) for name, x in public(cupy.random.Generator).items()}
    return api


def write(api):
    """One name a line, so that a new CuPy gives a readable difference."""
    blocks = []
    for key, value in api.items():
        if isinstance(value, dict):
            lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(names)}" for name, names in value.items())
            blocks.append(f"{json.dumps(key)}: {{\n{lines}\n}}")
        else:
            blocks.append(f"{json.dumps(key)}: {json.dumps(value)}")
    TARGET.write_text("{\n" + ",\n".join(blocks) + "\n}\n")


if __name__ == "__main__":
    write(freeze())
