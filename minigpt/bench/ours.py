"""Our competitor: forward, backward and update as in `minigpt.train.step`, on seeded data."""

import sys

import numpy as np

from autograd import ops
from autograd.backend import to_device, to_host
from minigpt.bench.worker import data, orders, print_answer, run
from minigpt.config import Model
from minigpt.flat import flatten
from minigpt.models import GPT, MLP, Batch
from minigpt.module import initialize
from minigpt.optim import SGD, AdamW


class Classifier(MLP):
    """An MLP that takes a Batch, as `train_step` gives it."""
    loss = staticmethod(ops.cross_entropy)

    def forward(self, batch):
        return super().forward(batch.tokens)


class Ours:
    """Trains the case: `step()` -> the loss over all ranks."""

    def __init__(self, case, weights, rank=0):
        inputs, targets = map(to_device, data(case, rank))
        total = case.ranks * targets.size
        if case.kind == "gpt":
            layers, heads, width, context, _, vocabulary = case.sizes
            model = GPT(Model(d_model=width, n_layers=layers, n_heads=heads, context=context, vocab_size=vocabulary))
            batch = Batch(inputs, targets, to_device(np.arange(context)), None, 0, total)
        else:
            model, batch = Classifier(case.sizes), Batch(inputs, targets, total=total, step=0)
        self.model, self.flat = initialize(model, seed=1), flatten(model)
        if rank == 0:
            np.savez(weights, **{name: to_host(p.data) for name, p in self.flat.parameters.items()})
        self.optimizer = AdamW(self.flat) if case.kind == "gpt" else SGD(self.flat)
        self.lr, self.batch, self.sync = 1e-3 if case.kind == "gpt" else 0.1, batch, lambda gradient: None

    def step(self):
        """Forward, backward, sum over ranks, update: what the peer's step does too (no norm, no clipping)."""
        self.flat.zero_grad()
        batch = self.batch
        loss = self.model.loss(self.model(batch), batch.targets, total=batch.total)
        loss.backward()
        gradient = self.flat.gradient()
        self.sync(gradient)
        self.optimizer.step(self.lr)
        return loss.item()


def compete(case, folder):
    """Serve rounds alone, or on every rank of `mpirun`; rank 0 answers."""
    given = orders(folder / "ours.orders")
    if case.ranks == 1:
        run(Ours(case, folder / "weights.npz").step, given, print_answer)
        return
    import comm
    from minigpt.parallel.data_parallel import DataParallel
    group = comm.world()
    if group.size != case.ranks:
        sys.exit(f"{case.name} is for {case.ranks} ranks, {group.size} came: start it with mpirun -n {case.ranks}")
    ours = Ours(case, folder / "weights.npz", group.rank)
    ours.sync = DataParallel(group, ours.flat)

    def step():
        return float(group.all_reduce(np.array([ours.step()]))[0])

    run(step, given, print_answer if group.rank == 0 else lambda answer: None)
