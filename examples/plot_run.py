"""The losses of a run, as a picture, beside what counting reaches.

    python examples/plot_run.py runs/python-docs                    writes runs/python-docs/losses.png
    python examples/plot_run.py runs/python-docs --out picture.svg

`minigpt train` writes a line of metrics.jsonl for every step that it logs and every validation. Two baselines say
whether the model has learnt anything: the loss of the counts of single characters and of pairs of them.
"""

import argparse
from pathlib import Path

from data import baselines, corpus, tokenizer
from minigpt import checkpoint, config
from minigpt.train import metrics


def losses(folder):
    """([steps], [losses]) of training, and the same of validation, from the metrics of a run."""
    lines = metrics.read(Path(folder, "metrics.jsonl"))
    if not lines:
        raise SystemExit(f"{folder} has no metrics.jsonl with a line in it: expected the folder of a run, such as "
                         "runs/python-docs, which `make train` makes")
    return [tuple(zip(*((line["step"], line[key]) for line in lines if key in line))) or ((), ())
            for key in ("loss", "validation_loss")]


def counted(folder):
    """{name: loss in nats} of counting on the text that the run's newest checkpoint names."""
    snapshot = checkpoint.Snapshot(checkpoint.find(folder))
    settings = config.loads(snapshot.config).data
    text = corpus.prepare(settings.corpus, tokenizer.load(snapshot.tokenizer), validation=settings.validation,
                          encoding=settings.encoding or None)
    arrays = text.train, text.validation, text.vocab_size
    return {"counts of single tokens": baselines.unigram(*arrays), "counts of pairs": baselines.bigram(*arrays)}


def draw(training, validation, lines, out):
    """Write the picture; its form is that of the name's end, .png or .svg. ImportError without Matplotlib."""
    from matplotlib.figure import Figure
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(*training, color="tab:blue", alpha=0.45, lw=1, label="training")
    axes.plot(*validation, "o-", color="tab:orange", ms=4, label="validation")
    for name, height in lines.items():
        axes.axhline(height, color="0.55", ls="--", lw=1)
        axes.annotate(f"{name} {height:.2f}", (1, height), xycoords=("axes fraction", "data"), xytext=(-6, 4),
                      textcoords="offset points", ha="right", color="0.35")
    if validation[1]:
        axes.annotate(f"{validation[1][-1]:.2f}", (validation[0][-1], validation[1][-1]), xytext=(0, 7),
                      textcoords="offset points", ha="center", color="tab:orange")
    axes.set(xlabel="step", ylabel="nats a token", xlim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper center", ncols=2)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=120)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a run, such as runs/python-docs")
    parser.add_argument("--out", type=Path, help="the picture, .png or .svg (default: losses.png in the run's folder)")
    arguments = parser.parse_args(argv)
    training, validation = losses(arguments.run)
    lines = counted(arguments.run)
    out = arguments.out or arguments.run / "losses.png"
    print(f"{len(training[0])} training losses, {len(validation[0])} validations")
    for name, height in lines.items():
        print(f"{name:<26}{height:.4f}")
    if validation[1]:
        print(f"{'validation, at the end':<26}{validation[1][-1]:.4f}")
    try:
        draw(training, validation, lines, out)
    except ImportError:
        print("No picture: Matplotlib is not installed (pip install matplotlib)")
    else:
        print(f"Picture: {out}")


if __name__ == "__main__":
    main()
