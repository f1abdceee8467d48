"""Texts of the workplace, where there are any: they lie beside the repository, never in it."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "shared" / "data"


def path_of(name):
    """The path of ../shared/data/<name>; the test is skipped where it is missing."""
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"needs {path}, which is not here")
    return path
