"""What is raced against the peer, and the goal of each race (ratios of the same run)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One race: a training step of one model, ours beside the peer's.

    sizes      a GPT's (layers, heads, d_model, context, batch, vocabulary), or an MLP's widths
    ranks      our processes, each with `batch` samples; the peer runs ranks * batch in one process
    threads    of each of our processes; the peer has ranks * threads
    fused      the peer's fused optimizer instead of its default
    must       goal for our tokens (or steps) a second over the peer's
    memory     goal for our peak resident memory over the peer's, or None
    steps      steps in a round
    """
    name: str
    sizes: tuple
    must: float
    kind: str = "gpt"
    ranks: int = 1
    threads: int = 1
    fused: bool = False
    memory: float | None = None
    steps: int = 20

    @property
    def samples(self):
        """Samples in one of our batches."""
        return self.sizes[4] if self.kind == "gpt" else MLP_BATCH

    @property
    def unit(self):
        """What a step counts: (name, number over all ranks)."""
        return ("tokens/s", self.ranks * self.samples * self.sizes[3]) if self.kind == "gpt" else ("steps/s", 1)


MLP_BATCH = 100
CHAR, SMALL = (4, 4, 128, 64, 12, 65), (6, 6, 384, 256, 8, 512)
GPT2, TOY = (12, 12, 768, 256, 2, 50257), (2, 2, 32, 16, 4, 65)

CASES = [
    Case("char", CHAR, must=1.00, memory=0.30, steps=30),
    Case("small", SMALL, must=1.00, memory=0.75, steps=2),
    Case("gpt2", GPT2, must=1.15, memory=0.90, steps=1),
    Case("gpt2-fused", GPT2, must=1.03, fused=True, steps=1),
    Case("char-2-ranks", CHAR, must=1.10, ranks=2, steps=30),
    Case("small-2-ranks", SMALL, must=0.97, ranks=2, steps=2),
    Case("toy", TOY, must=2.5, steps=200),
    Case("mlp-16-16", (784, 16, 16, 10), must=2.5, kind="mlp", steps=1000),
    Case("mlp-128", (784, 128, 10), must=1.5, kind="mlp", steps=500),
]
BY_NAME = {case.name: case for case in CASES}
