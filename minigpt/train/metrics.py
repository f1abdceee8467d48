"""One JSON object a line for every step that is logged and every validation: runs/<name>/metrics.jsonl."""

import json
from pathlib import Path


class Metrics:
    """The file `path` of a run that has done `step` steps; what it wrote beyond them before it was interrupted is cut
    off."""

    def __init__(self, path, step=0):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept = [line for line in read(self.path) if line["step"] <= step] if step else []
        self.path.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")

    def write(self, **values):
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")


def read(path):
    """The lines of a metrics file as dicts; a last line that a kill cut short is left out."""
    lines = []
    if Path(path).exists():
        for text in Path(path).read_text(encoding="utf-8").splitlines():
            try:
                lines.append(json.loads(text))
            except json.JSONDecodeError:
                break
    return lines
