"""A network one can feel: the same all-reduce by ring and by trees, between hosts with latency and bandwidth.

    python examples/shaped_network.py                                   four hosts, 1 ms and 100 Mbit/s between them
    python examples/shaped_network.py --hosts 8                         the longer the ring, the more latency counts
    python examples/shaped_network.py --delay 10 --sizes 64,64KiB,1MiB   farther apart
    mpirun -n 4 python examples/shaped_network.py                       without a network: ranks of this machine

Each host runs one rank, started by a real mpirun, over real TCP (examples/network_lab.py makes the hosts; it needs
root on Linux, and says why where it cannot). First alpha, the seconds that any message takes, and beta, the seconds of
a byte, are measured between two hosts. A round then takes alpha + beta * (bytes of its longest message), and that
predicts every algorithm from its rounds. A ring has many rounds of few bytes, a tree few rounds of many: where the
lines cross, the ring becomes the faster one. With Matplotlib all of it is drawn in shaped_network.png.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import comm
from comm.predict import Model, predict
from comm.units import read_bytes
from examples import network_lab
from minigpt import launch

RING = "ring_all_reduce"
RACERS = {RING: "ring", "recursive_doubling_all_reduce": "recursive doubling", "binomial_all_reduce": "binomial tree"}
SIZES = "64,1KiB,16KiB,64KiB,256KiB,1MiB,4MiB"
OPEN_MPI = {
    "pml": "ob1", "btl": "self,tcp", "osc": "^ucx", "mpi_yield_when_idle": "1",
    "btl_tcp_eager_limit": str(64 << 20),   # a longer message first asks whether it may come: 2 alpha more
}


def predictions(ranks, sizes, alpha, beta):
    """{algorithm: [seconds of each size]}: every round takes as long as its longest message."""
    model = Model.of(alpha, beta)
    return {name: [predict(name, ranks, nbytes, model) for nbytes in sizes] for name in RACERS}


def crossover(sizes, ring, other):
    """The bytes from which the ring's seconds are the lower ones, read between two sizes; None if they never are."""
    ahead = np.log(other) - np.log(ring)
    for i in range(1, len(sizes)):
        if ahead[i - 1] < 0 <= ahead[i]:
            return float(sizes[i - 1] * (sizes[i] / sizes[i - 1]) ** (ahead[i - 1] / (ahead[i - 1] - ahead[i])))
    return None


def measure_message(group, nbytes, times):
    """Seconds of one message from rank 0 to rank 1: half a ping-pong, the median of some. The others wait."""
    ball, taken = np.zeros(nbytes, np.uint8), []
    for _ in range(times):
        start = time.perf_counter()
        if group.rank == 0:
            group.send(ball, to=1)
            group.recv(1, out=ball)
        elif group.rank == 1:
            group.recv(0, out=ball)
            group.send(ball, to=0)
        taken.append((time.perf_counter() - start) / 2)
    return group.broadcast(np.median(taken))


def measure_all_reduce(group, name, nbytes):
    """Seconds of an all-reduce of `nbytes` of float32, as the slowest rank sees some in a row. The sum is checked.

    Where every rank has a part of every round, nobody can begin the next one early. (With fewer numbers than ranks a
    ring can, as empty messages are not sent.)
    """
    x = np.full(max(1, nbytes // 4), group.rank + 1, np.float32)
    out, calls = np.empty_like(x), 5 if nbytes <= 64 << 10 else 1
    group.barrier()
    start = time.perf_counter()
    for _ in range(calls):
        group.all_reduce(x, out=out, algorithm=name)
    taken = (time.perf_counter() - start) / calls
    if not (out == group.size * (group.size + 1) / 2).all():
        raise ArithmeticError(f"{name}: the sum of {nbytes} bytes over {group.size} ranks is wrong")
    return float(group.all_reduce(taken, op="max"))


def race(group, sizes, turns):
    """What every rank runs: alpha, beta, and seconds by size and algorithm, measured and predicted."""
    for name in RACERS:
        measure_all_reduce(group, name, 4)                  # makes the connections
    alpha = float(measure_message(group, 1, 15))
    beta = float(measure_message(group, 1 << 20, 3) - alpha) / (1 << 20)
    figures = {"ranks": group.size, "alpha": alpha, "beta": beta, "sizes": sizes,
               "measured": {name: [] for name in RACERS},
               "predicted": predictions(group.size, sizes, alpha, beta)}
    for nbytes in sizes:                                    # in turns, so that a busy moment is unfair to none
        taken = [[measure_all_reduce(group, name, nbytes) for name in RACERS] for _ in range(turns)]
        for name, median in zip(RACERS, np.median(taken, axis=0)):
            figures["measured"][name].append(float(median))
    return figures


def say(nbytes):
    """1 KiB, 1.5 MiB."""
    for factor, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= factor:
            return f"{nbytes / factor:.3g} {unit}"
    return f"{nbytes:.3g} B"


def crossovers(figures, kind):
    """{algorithm: bytes from which the ring is faster than it}, "measured" or "predicted"."""
    lines = figures[kind]
    return {name: crossover(figures["sizes"], lines[RING], lines[name]) for name in RACERS if name != RING}


def report(figures):
    """The table of measured and predicted milliseconds, and where the lines cross."""
    print(f"{figures['ranks']} ranks; a message takes {figures['alpha'] * 1e3:.3g} ms, and "
          f"{8e-6 / figures['beta']:.4g} Mbit/s\n\nmilliseconds,\nmeasured (predicted)"
          + "".join(f"{title:>22}" for title in RACERS.values()))
    for i, nbytes in enumerate(figures["sizes"]):
        cells = (f"{figures['measured'][name][i] * 1e3:10.2f} ({figures['predicted'][name][i] * 1e3:8.2f})"
                 for name in RACERS)
        print(f"{say(nbytes):>20}" + "".join(f"{cell:>22}" for cell in cells))
    found, expected = crossovers(figures, "measured"), crossovers(figures, "predicted")
    print()
    for name, at in found.items():
        where = "at no size here" if at is None else f"from {say(at)}"
        model = "never" if expected[name] is None else f"from {say(expected[name])}"
        print(f"The ring beats {RACERS[name]} {where} (predicted: {model})")


def draw(figures, out):
    """Write the picture; its form is that of the name's end, .png or .svg. ImportError without Matplotlib."""
    from matplotlib.figure import Figure
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for (name, title), color in zip(RACERS.items(), ("tab:blue", "tab:orange", "tab:green")):
        axes.loglog(figures["sizes"], np.multiply(figures["predicted"][name], 1e3), "--", color=color, lw=1)
        axes.loglog(figures["sizes"], np.multiply(figures["measured"][name], 1e3), "o-", color=color, label=title)
    for i, (name, at) in enumerate(crossovers(figures, "measured").items()):
        if at is not None:
            axes.axvline(at, color="0.6", lw=1, ls=":")
            axes.annotate(f"ring beats {RACERS[name]}\nfrom {say(at)}", (at, 0.02 + 0.09 * i),
                          xycoords=("data", "axes fraction"), xytext=(4, 0), textcoords="offset points",
                          color="0.35", fontsize=8)
    axes.plot([], [], "--", color="0.4", lw=1, label="predicted")
    axes.set(xlabel="bytes", ylabel="milliseconds of an all-reduce",
             title=f"{figures['ranks']} hosts: {figures['alpha'] * 1e3:.3g} ms a message, "
                   f"{8e-6 / figures['beta']:.3g} Mbit/s")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(out, dpi=120)


def run_on_hosts(lab, words):
    """Run this file under mpirun, one rank on each host; returns the exit status. Ctrl-C ends all of it."""
    settings = [word for key, value in OPEN_MPI.items() for word in ("--mca", key, value)]
    command = [launch.find_mpirun(), "--host", ",".join(f"{name}:1" for name in lab.names), "--map-by", "ppr:1:node",
               "--bind-to", "none", "--mca", "plm_ssh_agent", str(lab.agent), *settings,
               "-n", str(len(lab.names)), sys.executable, "-m", "mpi4py", str(Path(__file__).resolve()), *words]
    variables = launch.environment(1) | {"OPENBLAS_NUM_THREADS": "1"}
    variables.pop("PRTE_MCA_rmaps_default_mapping_policy", None)        # else all ranks go to the first host
    process = subprocess.Popen(lab.command(command), env=variables, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        for line in process.stderr:
            if "setpgid" not in line:                                   # the agent was quick, which does no harm
                sys.stderr.write(line)
        return process.wait()
    finally:
        stop(process)


def stop(process, patience=10):
    """End mpirun and with it the ranks, if it is still there."""
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def options_of(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    network_lab.add_options(parser)
    parser.add_argument("--sizes", default=SIZES, metavar="BYTES", help=f"of the messages (default {SIZES})")
    parser.add_argument("--turns", type=int, default=3, help="measurements, whose median counts (default 3)")
    parser.add_argument("--out", type=Path, default="shaped_network.png", help="the picture (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args(argv)
    try:
        options.sizes = sorted({4 * -(-read_bytes(size) // 4) for size in options.sizes.split(",")})    # whole floats
        if options.sizes[0] == 0 or options.turns < 1:
            raise ValueError("expected --sizes of 1 byte or more and 1 of --turns or more")
        options.lab = network_lab.lab_of(options)
    except ValueError as error:
        parser.error(str(error))
    return options


def main(argv=None):
    options, group = options_of(argv), comm.world()
    if group.size == 1:
        try:
            with options.lab as lab:
                return run_on_hosts(lab, sys.argv[1:] if argv is None else argv)
        except network_lab.Unavailable as reason:
            print(f"Skipped: {reason}")
            return 0
        except KeyboardInterrupt:
            return 130
    figures = race(group, options.sizes, options.turns)
    if group.rank == 0:
        report(figures)
        if options.json:
            options.json.write_text(json.dumps(figures))
        try:
            draw(figures, options.out)
            print(f"Picture: {options.out}")
        except ImportError:
            print("No picture: Matplotlib is not installed (pip install matplotlib)")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))     # by way of every `with` and `finally`
    sys.exit(main())
