"""A polynomial found by gradient descent, and pictures of the way down.

    python examples/polynomial.py                   prints, and draws into runs/examples
    python examples/polynomial.py --out pictures    draws there

A model with 6 weights, y = c0 + c1 x + ... + c5 x^5 (degree 5 has 6 coefficients), is fitted to 34 noisy points.
The loss is the mean of the squared errors. Its gradient points uphill, so a step is -lr times the gradient. Too
short a step is slow; one longer than 2 / (the largest curvature of the loss) climbs out of the valley.
"""

import argparse
from pathlib import Path

import numpy as np

from autograd import Tensor, ops
from autograd.backend import to_host

TRUE = np.array([3, 2, 8.3, 4.1, 1, 0.23])              # y = 3 + 2x + 8.3x² + 4.1x³ + x⁴ + 0.23x⁵
POINTS, LEFT, RIGHT, NOISE = 34, -2.5, 1.5, 1.5
UNIT = 2.5                                              # powers of x / UNIT stay between -1 and 1


def polynomial(x, coefficients=TRUE):
    """c0 + c1 x + c2 x² + ..., by Horner's rule: ((c5 x + c4) x + c3) x + ..."""
    y = 0
    for c in coefficients[::-1]:
        y = y * x + c
    return y


def share_of_loss(y, target, points=POINTS):
    """What one of 34 points adds to the mean squared error."""
    return (y - target) ** 2 / points


def noisy_points(seed=1):
    """(x, y), each (34,): the polynomial with noise on top."""
    x = np.linspace(LEFT, RIGHT, POINTS)
    return x, polynomial(x) + np.random.default_rng(seed).normal(0, NOISE, POINTS)


def powers(x):
    """(34, 6): 1, u, u², ... of u = x / UNIT.

    Of x itself the highest power would be a thousand times the lowest, the valley of the loss as much longer than
    wide, and no length of step good for both.
    """
    return (x[:, None] / UNIT) ** np.arange(len(TRUE))


def largest_step(table):
    """2 / (largest curvature): the loss is a quadratic bowl with the Hessian 2/n P^T P."""
    return 2 / np.linalg.eigvalsh(2 / len(table) * table.T @ table)[-1]


def descend(table, y, start, lr, steps):
    """Gradient descent on the mean squared error of table @ c: the losses, and all places c it came by."""
    table, y, c = Tensor(table), Tensor(y), Tensor(np.array(start, np.float64), requires_grad=True)
    losses, places = [], []
    for _ in range(steps + 1):
        c.grad = None
        loss = ops.mse(table @ c, y)
        loss.backward()
        losses.append(loss.item())
        places.append(c.numpy().copy())
        c.data = c.data - lr * c.grad
    return losses, np.array(places)


def gradient_by_hand(table, y, c):
    """The mean over points of 2 (prediction - y) times each power."""
    return 2 / len(y) * table.T @ (table @ c - y)


def show_values():
    print("y = 3 + 2x + 8.3x² + 4.1x³ + x⁴ + 0.23x⁵, and what a point adds to the mean squared error of 34")
    print(f"{'x':>8}{'y':>14}{'target':>9}{'(y - target)²/34':>20}")
    for x, target in (6.1, -0.22), (0, -1.2), (8, -0.8):
        y = polynomial(x)
        print(f"{x:>8}{y:>14,.4f}{target:>9}{share_of_loss(y, target):>20,.4f}")
    print("  The article prints 617,502.66 for the first: it squares the rounded y = 4,581.82, which gives")
    print(f"  {share_of_loss(4581.82, -0.22):,.4f}. Its 0.52 and 5,999,985.83 are the others, cut to two places.\n")


def show_fit(x, y):
    """Descend with three lengths of step; returns (losses, places) of the one that fits."""
    table = powers(x)
    limit = largest_step(table)
    c = np.zeros(len(TRUE))
    tape = Tensor(c, requires_grad=True)
    ops.mse(Tensor(table) @ tape, Tensor(y)).backward()
    error = abs(to_host(tape.grad) - gradient_by_hand(table, y, c)).max()
    print(f"{POINTS} noisy points, {len(TRUE)} coefficients; the tape's gradient equals the formula's to {error:.0e}")
    print(f"No step may be longer than 2 / (largest curvature) = {limit:.3f}:")
    for share, steps in ((0.1, 4000), (0.9, 4000), (1.1, 60)):
        losses, places = descend(table, y, c, share * limit, steps)
        says = "diverges" if losses[-1] > losses[0] else "falls"
        print(f"  lr {share * limit:.3f}: the loss {says} from {losses[0]:.2f} to {losses[-1]:,.2f} in {steps} steps")
        if share == 0.9:
            kept = losses, places
    best = np.linalg.lstsq(table, y, rcond=None)[0]
    print(f"  The least possible is {np.mean((table @ best - y) ** 2):.2f}; the noise alone is {NOISE**2:.2f}.")
    print("  found ", " ".join(f"{v:6.2f}" for v in kept[1][-1] / UNIT ** np.arange(len(TRUE))))
    print("  true  ", " ".join(f"{v:6.2f}" for v in TRUE), "\n")
    return kept


# ------------------------------------------------------------------------------------ pictures

STRIDES = (0.1, "short"), (0.8, "good"), (1.05, "too long")

def draw(folder, x, y, losses, places):
    """Write fit.png and loss-surface.png; returns their paths. ImportError without Matplotlib."""
    from matplotlib.figure import Figure
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, draw_on in (("fit", draw_fit), ("loss-surface", draw_surface)):
        figure = Figure(figsize=(10, 4.4), layout="constrained")
        draw_on(figure, x, y, losses, places)
        made.append(folder / f"polynomial-{name}.png")
        figure.savefig(made[-1], dpi=120)
    return made


def draw_fit(figure, x, y, losses, places):
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    fine = np.linspace(LEFT, RIGHT, 200)
    left.plot(fine, polynomial(fine), color="0.6", lw=5, alpha=0.5, label="the true polynomial")
    for step, shade in ((0, 0.25), (10, 0.45), (100, 0.65), (len(places) - 1, 1.0)):
        left.plot(fine, powers(fine) @ places[step], color="tab:blue", alpha=shade, label=f"after {step:,} steps")
    left.plot(x, y, "o", color="tab:orange", ms=4, label=f"{POINTS} noisy points", zorder=3)
    left.set(xlabel="x", ylabel="y", title="The fit")
    left.legend(frameon=False)
    right.loglog(np.arange(1, len(losses)), losses[1:], color="tab:blue")
    right.axhline(NOISE**2, color="0.6", ls="--")
    right.text(1, NOISE**2 * 1.05, "variance of the noise", color="0.4", va="bottom")
    right.set(xlabel="step", ylabel="mean squared error", title="The loss falls")


def draw_surface(figure, x, y, losses, places):
    """Two coefficients are free, the others stay where the descent ended: the loss is then a surface to look at."""
    table, end = powers(x), places[-1]
    free, rest = table[:, :2], y - table[:, 2:] @ end[2:]
    limit, start, best = largest_step(free), (end[0] - 14, end[1] + 16), np.linalg.lstsq(free, rest, rcond=None)[0]
    a, b = np.meshgrid(best[0] + np.linspace(-22, 22, 121), best[1] + np.linspace(-22, 22, 121))
    height = np.mean((a[..., None] * free[:, 0] + b[..., None] * free[:, 1] - rest) ** 2, axis=-1)
    for place, (share, word), steps in zip(figure.subplots(1, 3, sharey=True), STRIDES, (40, 40, 5)):
        path = descend(free, rest, start, share * limit, steps)[1]
        place.contourf(a, b, np.log10(height), levels=24, cmap="YlGnBu_r")
        place.plot(*path.T, "o-", color="tab:red", ms=3, lw=1)
        place.plot(*best, "*", color="white", ms=12)
        place.set(xlim=(a.min(), a.max()), ylim=(b.min(), b.max()), xlabel="c0",
                  title=f"{word}: {share:g} of the longest")
    figure.axes[0].set_ylabel("c1, per unit of x / 2.5")
    figure.suptitle("The loss over two coefficients (dark: low), and where steps of three lengths lead")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/examples"), metavar="FOLDER",
                        help="where the pictures go (default runs/examples)")
    arguments = parser.parse_args(argv)
    show_values()
    x, y = noisy_points()
    losses, places = show_fit(x, y)
    try:
        pictures = draw(arguments.out, x, y, losses, places)
    except ImportError:
        print("No pictures: Matplotlib is not installed (pip install matplotlib)")
    else:
        print("Pictures:", *pictures)


if __name__ == "__main__":
    main()
