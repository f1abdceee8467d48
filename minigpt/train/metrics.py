"""One JSON object a line for every step that is logged and every validation: runs/<name>/metrics.jsonl."""

import json
from pathlib import Path


class Metrics:
    """The file `path` of a run that has done `step` steps; what it wrote beyond them before it was interrupted is cut
    off, and if the run is at its `end`, so is its last validation, which comes again."""

    def __init__(self, path, step=0, end=False):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        again = {step} if end else set()
        kept = [line for line in read(self.path) if line["step"] <= step
                and not ("validation_loss" in line and line["step"] in again)] if step else []
        draft = self.path.with_name(self.path.name + ".draft")      # a kill now loses nothing
        draft.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        draft.replace(self.path)

    def write(self, **values):
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")


def read(path):
    """The lines of a metrics file as dicts; what is no such line, as the last one that a kill cut short, is left
    out."""
    lines = []
    if Path(path).exists():
        for text in Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                continue
            if isinstance(line, dict) and isinstance(line.get("step"), int):
                lines.append(line)
    return lines
