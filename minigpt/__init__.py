"""minigpt: a GPT from the tape to the bytes on the wire, on NumPy and MPI."""

from importlib.util import find_spec
from pathlib import Path

NEIGHBOURS = ("autograd", "comm", "data")


def foreign_neighbours():
    """{name: where Python finds it, "in ..." or "nowhere"} for each neighbour that is not this project's own.

    Asks the finders and imports nothing. A folder without `__init__.py` (a user's ./data) is a namespace
    package; it has no origin and counts as foreign too, as does a neighbour that is nowhere.
    """
    home = Path(__file__).resolve().parent.parent
    foreign = {}
    for name in NEIGHBOURS:
        spec = find_spec(name)
        if spec is None:
            foreign[name] = "nowhere"
        elif spec.origin is None:
            foreign[name] = f"in {', '.join(spec.submodule_search_locations or ['an unknown place'])}"
        elif Path(spec.origin).resolve().parent.parent != home:
            foreign[name] = f"in {spec.origin}"
    return foreign


def refuse_foreign_neighbours():
    """Raise ImportError with what to do if Python would import another project's autograd, comm or data."""
    foreign = foreign_neighbours()
    if foreign:
        found = "; ".join(f"{name} is found {place}" for name, place in foreign.items())
        raise ImportError(
            f"minigpt needs its own packages autograd, comm and data beside {Path(__file__).parent}, but {found}. "
            "Install minigpt in an environment of its own (`make install` in its folder makes one), leave out "
            "of PYTHONPATH what holds those names, or start Python in another folder."
        )


refuse_foreign_neighbours()
