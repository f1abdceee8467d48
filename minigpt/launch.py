"""Start ranks with every setting that they need."""

import sys
from pathlib import Path

SETTINGS = {
    "prte-mca-params.conf": {
        "rmaps_default_mapping_policy": ":oversubscribe",
        "hwloc_default_binding_policy": "none",
    },
    "openmpi-mca-params.conf": {
        "mpi_yield_when_idle": "1",
        "pml": "ob1",
        "btl": "self,sm,tcp",
        "osc": "^ucx",
    },
}


def write_settings(environment=sys.prefix):
    for name, settings in SETTINGS.items():
        path = Path(environment, "etc", name)
        path.parent.mkdir(exist_ok=True)
        text = path.read_text() if path.exists() else ""
        present = {line.split("=")[0].strip() for line in text.splitlines() if not line.lstrip().startswith("#")}
        lines = [f"{key} = {value}\n" for key, value in settings.items() if key not in present]
        if lines:
            path.write_text(text + "\n# Written by minigpt\n" + "".join(lines))


if __name__ == "__main__":
    write_settings()
