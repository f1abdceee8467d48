"""Puts a development install in front of site-packages.

`autograd` and `comm` are also the names of packages that others publish (HIPS autograd, Jupyter's comm). The
plain path file that hatchling writes comes after site-packages, so theirs would win; a path file may also hold
one line of code, and this one inserts the project's folder just before the first site-packages.
"""

import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LINE = (                                               # `site` runs it twice in a virtual environment
    "import sys; root = {root}; i = [p.endswith('-packages') for p in sys.path].index(True); "
    "sys.path[i:i] = [root] * (root not in sys.path[:i])\n"
)


class FirstOnThePath(BuildHookInterface):
    """Adds `minigpt-first.pth` to an editable wheel and nothing to an ordinary one."""

    def initialize(self, version, build_data):
        if version != "editable":
            return
        self.folder = tempfile.TemporaryDirectory()
        pth = Path(self.folder.name, "minigpt-first.pth")
        pth.write_text(LINE.format(root=ascii(self.root)))
        build_data["force_include_editable"][str(pth)] = pth.name

    def finalize(self, version, build_data, artifact_path):
        if version == "editable":
            self.folder.cleanup()
