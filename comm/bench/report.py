"""Results of a benchmark for people (a table), for programs (CSV), and as a picture."""

import csv
import math
from itertools import groupby

from comm.bench.sweep import Result

MARKS = "chosen: what Group takes for arrays of group.empty (window), for others (private), without sharing (messages)"


def head():
    return (f"{'bytes':>12}  {'algorithm':<34}{'transport':<10}{'us':>12}{'algbw GB/s':>12}{'busbw GB/s':>12}"
            f"{'sent/rank':>14}{'to MPI':>8}  chosen")


def row(result):
    """One line of the table."""
    sent = "" if result.sent is None else f"{result.sent:,.0f}"
    bad = f"  WRONG: {result.wrong:,} elements" if result.wrong else ""
    return (f"{result.nbytes:>12,}  {result.algorithm:<34}{result.transport:<10}{result.seconds * 1e6:>12,.1f}"
            f"{result.algbw / 1e9:>12.3f}{result.busbw / 1e9:>12.3f}{sent:>14}{result.ratio:>8.2f}"
            f"  {result.chosen}{bad}")


def write_csv(path, results):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Result._fields)
        writer.writerows(results)


def plot(path, results, title):
    """Time by size for each contender, a panel for each collective, both axes logarithmic. Needs matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = {kind: list(group) for kind, group in groupby(results, lambda r: r.collective) if kind != "barrier"}
    down, across = math.ceil(len(panels) / 2), min(2, len(panels)) or 1
    figure = Figure(figsize=(9 * across, 5.5 * max(1, down)), layout="constrained")
    FigureCanvasAgg(figure)
    for number, (kind, rows) in enumerate(panels.items(), 1):
        _panel(figure.add_subplot(down, across, number), rows, f"{kind}, {title}")
    figure.savefig(path, dpi=120)


def _panel(axes, rows, title):
    """One collective: a colour for each algorithm, a line style for each transport."""
    names = sorted({r.algorithm for r in rows} - {"MPI"})
    for name, transport in sorted({(r.algorithm, r.transport) for r in rows}, key=lambda key: (key[0] != "MPI", key)):
        points = [(r.nbytes, r.seconds * 1e6) for r in rows if (r.algorithm, r.transport) == (name, transport)]
        style = {"color": "black", "linewidth": 3} if name == "MPI" else {
            "color": f"C{names.index(name)}" if len(names) <= 10 else _colour(names.index(name)),
            "linestyle": {"window": "-", "staged": ":", "messages": "--"}.get(transport, "-.")}
        label = " ".join(filter(None, [name.removesuffix(f"_{rows[0].collective}"), transport]))
        axes.plot(*zip(*points), marker="o", markersize=3, label=label, **style)
    taken = [r for r in rows if "window" in r.chosen.split()]
    axes.plot([r.nbytes for r in taken], [r.seconds * 1e6 for r in taken], "o", markersize=10, fillstyle="none",
              color="black", label="what Group takes\nfor group.empty")
    axes.set(xscale="log", yscale="log", xlabel="bytes", ylabel="microseconds", title=title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))


def _colour(number):
    from matplotlib import colormaps

    return colormaps["tab20"](number % 20)
