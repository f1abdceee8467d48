"""The rules of the architecture that can be read off the source, checked with `ast`.

A rule takes a path, relative to the repository, and its tree, and yields (line, complaint). Every rule also has
examples of what it must find and of what it must let pass, so no rule can silently check nothing.
"""

import ast
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("autograd", "comm", "data", "minigpt")
SOURCES = sorted(path.relative_to(ROOT).as_posix() for name in PACKAGES for path in (ROOT / name).rglob("*.py"))


def under(path, *patterns):
    """Does the path match one of these patterns, or lie in a folder that does?"""
    return any(fnmatch(path, pattern) or fnmatch(path, f"{pattern}/*") for pattern in patterns)


# ------------------------------------------------------------------------------------ who imports what

FORBIDDEN = [     # (files, except these, must not import, because)
    (("*",), ("autograd/backend.py", "autograd/fused"), ("cupy", "cupyx"), "only the backend and twins know CuPy"),
    (("*",), ("comm/transport.py",), ("mpi4py",), "only comm/transport.py knows MPI"),
    (("autograd",), (), ("comm", "data", "minigpt"), "the rooms are independent"),
    (("comm",), (), ("autograd", "data", "minigpt"), "the rooms are independent"),
    (("data",), (), ("autograd", "comm", "minigpt"), "the rooms are independent"),
    (("autograd/ops",), (), ("autograd.fused",), "a formula never needs its twin"),
    (("minigpt/module.py", "minigpt/layers", "minigpt/models", "minigpt/optim"), (),
     ("minigpt.parallel", "minigpt.train", "minigpt.cli"), "a model knows nothing of how it is run"),
    (("minigpt/module.py", "minigpt/layers"), (), ("minigpt.models",), "layers know no model"),
    (("minigpt/planner",), (),
     ("autograd", "comm.transport", "comm.world", "comm.group", "comm.execute", "minigpt.train", "minigpt.parallel"),
     "a plan is arithmetic"),
    (("*simulate.py", "*render.py", "*schedule.py", "comm/algorithms", "comm/topology", "comm/pricing",
      "comm/player.py", "comm/space_time.py"), ("minigpt/optim/*",),
     ("autograd", "mpi4py", "comm.transport", "comm.world", "comm.execute", "comm.threads"),
     "what is done on paper needs no ranks"),
    (PACKAGES, ("minigpt/bench", "comm/bench/gloo.py"), ("torch", "jax", "tensorflow"),
     "there is no framework underneath"),
    (PACKAGES, (), ("tests", "examples"), "the library does not lean on its users"),
]


def imported(path, tree):
    """(line, full dotted name) of everything that this file imports, by statement or by name."""
    package = path.removesuffix(".py").split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and name_of(node.func).split(".")[-1] in ("import_module", "__import__"):
            if node.args and isinstance(node.args[0], ast.Constant):
                yield node.lineno, str(node.args[0].value)


def imports_stay_in_their_rooms(path, tree):
    for files, exceptions, names, reason in FORBIDDEN:
        if under(path, *files) and not under(path, *exceptions):
            for line, name in imported(path, tree):
                if any(f"{name}.".startswith(f"{forbidden}.") for forbidden in names):
                    yield line, f"imports {name}: {reason}"


# ------------------------------------------------------------------------------------ what a library never does

PROGRAMS = ("minigpt/cli.py", "minigpt/launch.py", "minigpt/supervise.py", "minigpt/serve", "*/__main__.py")
PURE_RANDOM = {"default_rng", "Generator", "SeedSequence", "BitGenerator", "Philox", "PCG64", "Random", "SystemRandom"}
FILTERS = {"filterwarnings", "simplefilter", "resetwarnings", "catch_warnings"}
WRITES = {"setdefault", "update", "pop", "popitem", "clear", "__setitem__"}


def name_of(node):
    """"np.random.seed" for that expression; "" where a part is no plain name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def calls(tree):
    return ((node, name_of(node.func)) for node in ast.walk(tree) if isinstance(node, ast.Call))


def libraries_leave_signals_alone(path, tree):
    if not under(path, *PROGRAMS):
        for line, name in imported(path, tree):
            if name.split(".")[0] == "signal":
                yield line, "signals belong to the program: only the command line listens"


def libraries_do_not_write_the_environment(path, tree):
    if under(path, *PROGRAMS):
        return
    for node in ast.walk(tree):
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Delete):
            for target in targets:
                if isinstance(target, ast.Subscript) and name_of(target.value).endswith("environ"):
                    yield node.lineno, "writes to os.environ, which belongs to the program"
    for node, name in calls(tree):
        if name in ("os.putenv", "os.unsetenv") or any(name.endswith(f"environ.{write}") for write in WRITES):
            yield node.lineno, f"calls {name}: the environment belongs to the program"


def libraries_set_no_global_state(path, tree):
    for node, name in calls(tree):
        *owner, last = name.split(".")
        if owner == ["warnings"] and last in FILTERS:
            yield node.lineno, f"calls {name}: filters of warnings belong to the program"
        if last in ("seterr", "seterrcall") and owner in (["np"], ["numpy"]):
            yield node.lineno, f"calls {name}: use `with np.errstate(...)`"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr not in PURE_RANDOM:
            if name_of(node.value) in ("np.random", "numpy.random", "xp.random", "cupy.random"):
                yield node.lineno, f"uses {name_of(node)}, a global random generator"
    for line, name in imported(path, tree):
        module, _, last = name.partition(".")
        if module == "random" and last not in PURE_RANDOM:
            yield line, f"imports {name}: draw from a stream or a Generator"


# ------------------------------------------------------------------------------------ what costs time

ARRAYS = ("np", "numpy", "xp", "cupy")
HOT = ("autograd/ops", "autograd/fused", "minigpt/layers", "minigpt/optim", "minigpt/models")
UFUNCS = {"add", "subtract", "multiply", "maximum", "minimum"}


def is_integer(node, least=-10**9):
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value >= least


def powers_are_products(path, tree):
    """x**3 costs 64 ns an element, x*x*x less than one."""
    for node, name in calls(tree):
        if name.endswith(".power") and name.split(".")[0] in ARRAYS and len(node.args) > 1 and is_integer(node.args[1]):
            yield node.lineno, "power with an integer exponent: write the product"
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and under(path, *HOT):
            if is_integer(node.right, least=3) and not isinstance(node.left, ast.Constant):
                yield node.lineno, "a power above 2: write the product"


def einsum_has_a_path(path, tree):
    """Without `optimize` NumPy loops where it could call BLAS: 62 ms against 3.7. The formula may."""
    if not under(path, "autograd/ops/matmul.py", "autograd/strict"):
        for node, name in calls(tree):
            if name.endswith(".einsum") and name.split(".")[0] in ARRAYS:
                if not any(keyword.arg == "optimize" for keyword in node.keywords):
                    yield node.lineno, "einsum without optimize: use matmul, or give it a path"


def scatter_goes_through_the_backend(path, tree):
    """ufunc.at is 5 to 15 times slower than sorted segments; backend.add_at chooses."""
    if not under(path, "autograd/backend.py", "autograd/strict", "autograd/gradcheck"):
        for node, name in calls(tree):
            if name.split(".")[-1] == "at" and UFUNCS & set(name.split(".")):
                yield node.lineno, f"calls {name}: use backend.add_at"


def no_scalar_of_float64_in_float32_code(path, tree):
    """np.float64(2) * x makes a float32 x a float64; the Python number 2.0 does not."""
    if under(path, *HOT):
        for node, name in calls(tree):
            if name in {f"{module}.{kind}" for module in ARRAYS for kind in ("float64", "double")}:
                yield node.lineno, "a float64 scalar promotes float32 arrays: use a Python number"


def masks_are_infinite(path, tree):
    """exp(-1e4) is a denormal's neighbourhood in half precision and a wrong weight in others; exp(-inf) is 0."""
    if not under(path, *HOT):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            if isinstance(node.operand.value, int | float) and 1e4 <= node.operand.value < float("inf"):
                yield node.lineno, f"-{node.operand.value} looks like a mask: use -xp.inf"
        if isinstance(node, ast.Attribute) and node.attr == "min" and isinstance(node.value, ast.Call):
            if name_of(node.value.func).endswith("finfo"):
                yield node.lineno, "finfo(...).min looks like a mask: use -xp.inf"


# ------------------------------------------------------------------------------------ the rules, and their proof

EXAMPLES = {      # rule: ((path, source that it must find), ...), ((path, source that it must let pass), ...)
    imports_stay_in_their_rooms: ([
        ("minigpt/train/step.py", "import cupy as cp"),
        ("comm/device.py", "from cupyx import empty_pinned"),
        ("autograd/tensor.py", "def f():\n    import cupy.cuda"),
        ("minigpt/doctor.py", "from mpi4py import MPI"),
        ("comm/group.py", "import importlib\nMPI = importlib.import_module('mpi4py.MPI')"),
        ("autograd/tape.py", "import comm"),
        ("comm/ledger.py", "from autograd.backend import xp"),
        ("data/loader.py", "from minigpt import config"),
        ("data/loader.py", "from comm import world"),
        ("autograd/ops/softmax.py", "from autograd.fused import tiles"),
        ("minigpt/models/gpt.py", "from minigpt.parallel import plan"),
        ("minigpt/models/gpt.py", "from minigpt import parallel"),
        ("minigpt/models/gpt.py", "from ..parallel import plan"),
        ("minigpt/models/gpt.py", "from .. import parallel"),
        ("minigpt/layers/linear.py", "from minigpt.models import gpt"),
        ("minigpt/planner/memory.py", "from autograd import Tensor"),
        ("minigpt/planner/memory.py", "from comm import transport"),
        ("comm/simulate.py", "from comm.transport import MPIRanks"),
        ("comm/algorithms/ring.py", "from comm import execute"),
        ("minigpt/parallel/pipeline/render.py", "import autograd.ops"),
        ("minigpt/train/step.py", "import torch"),
        ("comm/bench/sweep.py", "import torch"),
        ("minigpt/config.py", "from tests.ranks import run"),
    ], [
        ("autograd/backend.py", "import cupy"),
        ("autograd/fused/attention.py", "import cupy"),
        ("comm/transport.py", "from mpi4py import MPI"),
        ("minigpt/train/run.py", "import comm, autograd, data\nfrom minigpt.parallel import data_parallel"),
        ("autograd/tape.py", "from . import rank\nimport communism"),
        ("minigpt/optim/lr_schedule.py", "from autograd.backend import xp"),
        ("minigpt/planner/time.py", "from comm import simulate, topology"),
        ("minigpt/bench/torch_worker.py", "import torch"),
        ("comm/bench/gloo.py", "import torch.distributed"),
    ]),
    libraries_leave_signals_alone: ([
        ("minigpt/train/run.py", "import signal"),
        ("comm/transport.py", "from signal import SIGTERM"),
    ], [
        ("minigpt/cli.py", "import signal"),
        ("data/text.py", "import signals"),
    ]),
    libraries_do_not_write_the_environment: ([
        ("autograd/backend.py", "import os\nos.environ['OMP_NUM_THREADS'] = '1'"),
        ("autograd/backend.py", "from os import environ\nenviron['A'] += '1'"),
        ("comm/transport.py", "import os\nos.environ.setdefault('A', '1')"),
        ("data/cache.py", "import os\ndel os.environ['A']"),
        ("data/cache.py", "import os\nos.environ.update(A='1')"),
        ("data/cache.py", "import os\nos.putenv('A', '1')"),
    ], [
        ("minigpt/cli.py", "import os\nos.environ['A'] = '1'"),
        ("data/cache.py", "import os\npath = os.environ.get('MINIGPT_CACHE') or os.environ['HOME']"),
        ("minigpt/doctor.py", "import os\nhere = {**os.environ}\nhere['A'] = '1'"),
    ]),
    libraries_set_no_global_state: ([
        ("data/text.py", "import warnings\nwarnings.filterwarnings('ignore')"),
        ("data/text.py", "import warnings\nwith warnings.catch_warnings():\n    pass"),
        ("minigpt/train/step.py", "import numpy as np\nnp.seterr(all='ignore')"),
        ("minigpt/train/step.py", "import numpy as np\nnp.random.seed(0)"),
        ("autograd/streams.py", "from autograd.backend import xp\nx = xp.random.standard_normal(3)"),
        ("data/shuffle.py", "import random\nrandom.shuffle([])"),
        ("data/shuffle.py", "from random import choice"),
    ], [
        ("data/text.py", "import warnings\nwarnings.warn('this')"),
        ("data/shuffle.py", "from random import Random\nimport numpy as np\nnp.random.default_rng(0).normal()"),
        ("minigpt/train/step.py", "import numpy as np\nwith np.errstate(all='ignore'):\n    pass"),
    ]),
    powers_are_products: ([
        ("data/synthetic.py", "y = np.power(x, 2)"),
        ("autograd/strict/array.py", "y = xp.power(x, -3)"),
        ("autograd/ops/activation.py", "y = x ** 3"),
    ], [
        ("autograd/ops/arithmetic.py", "y = xp.power(x, exponent)"),
        ("autograd/ops/activation.py", "y = x ** 2 + 2 ** 31"),
        ("minigpt/planner/time.py", "y = n ** 3"),
    ]),
    einsum_has_a_path: ([
        ("minigpt/layers/attention.py", "y = xp.einsum('ij,jk->ik', a, b)"),
    ], [
        ("minigpt/layers/attention.py", "y = np.einsum('ij,jk->ik', a, b, optimize=True)"),
        ("autograd/ops/matmul.py", "y = xp.einsum('ij,jk->ik', a, b)"),
        ("minigpt/layers/attention.py", "y = ops.einsum('ij,jk->ik', a, b)"),
    ]),
    scatter_goes_through_the_backend: ([
        ("autograd/ops/embedding.py", "xp.add.at(dw, ids, dy)"),
        ("minigpt/layers/embedding.py", "np.maximum.at(w, ids, y)"),
    ], [
        ("autograd/backend.py", "xp.add.at(dw, ids, dy)"),
        ("autograd/ops/embedding.py", "add_at(dw, ids, dy)\nplace.at(3)"),
    ]),
    no_scalar_of_float64_in_float32_code: ([
        ("autograd/fused/activation.py", "c = np.float64(0.044715)"),
        ("minigpt/optim/adamw.py", "c = xp.float64(1)"),
    ], [
        ("autograd/fused/loss.py", "total = losses.sum(dtype=np.float64)"),
        ("autograd/gradcheck/difference.py", "c = np.float64(1)"),
    ]),
    masks_are_infinite: ([
        ("autograd/ops/attention.py", "y = xp.where(allowed, scores, -1e9)"),
        ("autograd/fused/attention.py", "y = np.where(allowed, scores, -65504)"),
        ("minigpt/layers/attention.py", "y = np.where(allowed, scores, np.finfo(np.float32).min)"),
    ], [
        ("autograd/ops/attention.py", "y = xp.where(allowed, scores, -xp.inf) * -100"),
        ("autograd/fused/attention.py", "y = x.min()"),
    ]),
}


def complaints(rule, path, source):
    return [f"{path}:{line} {text}" for line, text in rule(path, ast.parse(source))]


@pytest.mark.parametrize("rule", EXAMPLES, ids=lambda rule: rule.__name__)
def test_our_sources_keep_the_rule(rule):
    found = [text for path in SOURCES for text in complaints(rule, path, (ROOT / path).read_text())]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "rule, path, source", [(rule, *bad) for rule, (bads, _) in EXAMPLES.items() for bad in bads],
)
def test_a_breach_is_found(rule, path, source):
    assert complaints(rule, path, source)


@pytest.mark.parametrize(
    "rule, path, source", [(rule, *good) for rule, (_, goods) in EXAMPLES.items() for good in goods],
)
def test_what_is_allowed_passes(rule, path, source):
    assert complaints(rule, path, source) == []


@pytest.mark.parametrize("files, exceptions, names, reason", FORBIDDEN)
def test_every_line_of_the_import_table_speaks_of_files_that_exist(files, exceptions, names, reason):
    assert any(under(path, *files) for path in SOURCES), f"no file matches {files}"


@pytest.mark.parametrize("folder", [*PACKAGES, "tests"])
def test_every_folder_of_sources_is_a_package(folder):
    folders = {path.parent for path in (ROOT / folder).rglob("*.py")}
    assert [str(path) for path in folders if not (path / "__init__.py").exists()] == []
