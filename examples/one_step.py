"""One step of training, with every stop printed.

    python examples/one_step.py

Two ranks, threads of this process, train a tiny GPT for one step. What is printed is what rank 0 sees on its way
through ten files, in the order in which the project is best read:

    minigpt/train/step.py -> minigpt/models/gpt.py -> minigpt/layers/attention.py -> autograd/ops/attention.py
    -> autograd/tape.py -> minigpt/parallel/data_parallel.py -> comm/group.py -> comm/algorithms/ring.py
    -> comm/execute.py -> minigpt/optim/adamw.py

At the end both ranks run the same step by `train_step`, and arrive at the same bits.
"""

from math import log, sqrt

import numpy as np

import comm
from autograd import accumulation, graph, no_grad, ops
from autograd.backend import to_host
from comm.algorithms.ring import ring_all_reduce
from data.loader import Loader
from data.tokenizer import Characters
from minigpt import planner
from minigpt.config import Model
from minigpt.flat import flatten
from minigpt.models import GPT, Batch
from minigpt.module import initialize
from minigpt.optim import AdamW, clip_factor, global_norm
from minigpt.parallel.data_parallel import DataParallel, sum_over_ranks
from minigpt.train.step import train_step

RANKS, BATCH, LR = 2, 4, 1e-2
TEXT = "a neuron multiplies its inputs by weights, adds a bias and bends the sum. " * 8


class Printer:
    """Numbers the stops; only rank 0 is heard."""

    def __init__(self, rank):
        self.rank, self.number = rank, 0

    def stop(self, file):
        self.number += 1
        if self.rank == 0:
            print(f"\n{self.number:>2}  {file}")

    def say(self, line):
        if self.rank == 0:
            print(f"    {line}")


def prepare(group):
    """(model, optimizer, sync, this rank's batch), as minigpt.train.trainer makes them."""
    tokenizer = Characters(TEXT)
    config = Model(d_model=16, n_layers=2, n_heads=2, context=6, vocab_size=tokenizer.vocab_size)
    model = initialize(GPT(config), seed=1)
    optimizer = AdamW(flatten(model))
    sync = DataParallel(group, optimizer.flat)
    loader = Loader(tokenizer.encode(TEXT), config.context, BATCH, seed=1, replica=group.rank, replicas=group.size)
    batch = Batch.of(loader.batch(0), config.vocab_size, step=0, total=loader.tokens_per_step)
    return model, optimizer, sync, batch, tokenizer


def forward(model, batch, tokenizer, out):
    out.stop("minigpt/train/step.py: train_step")
    first = tokenizer.decode(to_host(batch.tokens)[0]), tokenizer.decode(to_host(batch.targets)[0])
    out.say(f"this rank's tokens {batch.tokens.shape} of the {batch.total} of the whole step; the first row reads "
            f"{first[0]!r}, and its targets {first[1]!r}")

    out.stop("minigpt/models/gpt.py: GPT.forward")
    out.say(f"{sum(planner.count(model.config).values()):,} parameters in {len(model.blocks)} blocks")
    logits = model(batch)
    loss = model.loss(logits, batch.targets, total=batch.total)
    vocabulary = logits.shape[-1]
    stream = *batch.tokens.shape, model.config.d_model
    out.say(f"tokens {batch.tokens.shape} -> stream {stream} -> logits {logits.shape}")
    out.say(f"loss: this rank's summand {loss.item():.4f}; {RANKS} such add up to about log {vocabulary} = "
            f"{log(vocabulary):.4f}, a guess among {vocabulary} characters")
    look_into_attention(model, batch, out)
    return loss


def look_into_attention(model, batch, out):
    """The first block's attention once more, slowly; nothing of it is recorded."""
    layer = model.blocks[0].attention
    with no_grad():
        x = model.embedding(batch.tokens) + model.position_embedding(batch.positions)
        _, y = model.blocks[0].norm1(x)
        qkv = layer.query_key_value(y)
        heads = qkv.shape[-1] // 3 // layer.d_head
        out.stop("minigpt/layers/attention.py: Attention.forward, block 0")
        out.say(f"x {y.shape} -> query, key, value side by side {qkv.shape} -> {heads} heads of {layer.d_head} -> "
                f"{layer(y).shape}")

        out.stop("autograd/ops/attention.py: softmax(q k^T / sqrt(d_head)) v, head 0 of the first row")
        q, k = qkv[0, :, :layer.d_head], qkv[0, :, heads * layer.d_head:(heads + 1) * layer.d_head]
        scores = q @ k.T / sqrt(layer.d_head)
        seen = np.tri(scores.shape[0], dtype=bool)
        for row in ops.where(seen, scores, -np.inf).softmax().numpy():
            out.say(" ".join(f"{p:.3f}" for p in row))
    out.say("each position shares its attention among itself and what came before; with fresh weights, evenly")


def backward(flat, loss, out):
    out.stop("autograd/tape.py: backpropagate")
    nodes = graph.nodes(loss)
    names = [node.name for node in nodes]
    out.say(f"forward recorded {len(nodes)} nodes: {', '.join(names[:4])}, ..., {', '.join(names[-2:])}")
    out.say(f"they keep {graph.kept_bytes(loss):,} bytes for backward, which now runs from the last to the first")
    complete = []
    with accumulation(flat.parameters.values(), on_complete=lambda leaf: complete.append(leaf.name)):
        loss.backward()
    out.say(f"gradients complete first: {', '.join(complete[:3])}")
    out.say(f"and last: {', '.join(complete[-2:])} (the embedding is used twice, at both ends)")
    out.say(f"the graph is gone: its last node's backward is {nodes[-1].backward}")


def reduce(group, sync, gradient, out):
    out.stop("minigpt/parallel/data_parallel.py: DataParallel")
    before = float(global_norm(gradient))
    mine, theirs = group.all_gather(np.array([before]))
    sync(gradient)
    sent, formula = sync.traffic()
    out.say(f"one flat gradient of {gradient.size:,} numbers, {gradient.nbytes:,} bytes; its length is {mine:.4f} "
            f"here, {theirs:.4f} on rank 1")

    out.stop("comm/group.py: Group.all_reduce")
    out.say(f"summed, its length is {float(global_norm(gradient)):.4f} on both; {sent:,} bytes left this rank, "
            f"2 M (N-1)/N = {formula:,}")

    out.stop("comm/algorithms/ring.py: ring_all_reduce(rank=0, size=2)")
    for step in ring_all_reduce(0, group.size):
        out.say(f"send chunk {step.send} to rank {step.to}, receive chunk {step.recv} from rank {step.source} and "
                f"{'add' if step.reduce else 'keep'} it")

    out.stop("comm/execute.py: Plan")
    cuts = comm.bounds(gradient.size, group.size)
    chunks = (f"chunk {i} is numbers {cuts[i]:,} to {cuts[i + 1] - 1:,}" for i in range(group.size))
    out.say(f"these rules bound to memory: {', '.join(chunks)}; "
            f"{sync.ring.ledger['all_reduce'].messages} messages left this rank")


def update(optimizer, gradient, out):
    out.stop("minigpt/optim/adamw.py: AdamW.step")
    norm = global_norm(gradient)
    name, weight = next(iter(optimizer.flat.parameters.items()))
    before = to_host(weight.data)[0, :3].copy()
    slope = to_host(weight.grad)[0, :3].copy()
    optimizer.step(LR, clip_factor(norm, 1.0))
    after = to_host(weight.data)[0, :3]
    out.say(f"the gradient of length {float(norm):.4f} is clipped to at most 1; lr {LR}")
    for label, values in (("gradient", slope), ("before", before), ("after", after)):
        out.say(f"{name}[0, :3] {label:<9}" + " ".join(f"{v:+.5f}" for v in values))
    out.say("the first step of Adam is about lr long along every weight, whatever the gradient's size")


def walk(group):
    """The step, stop by stop: (loss over all ranks, weights afterwards)."""
    out = Printer(group.rank)
    model, optimizer, sync, batch, tokenizer = prepare(group)
    flat = optimizer.flat
    flat.zero_grad()
    loss = forward(model, batch, tokenizer, out)
    backward(flat, loss, out)
    gradient = flat.gradient()
    reduce(group, sync, gradient, out)
    update(optimizer, gradient, out)
    sync.check_copies(0)
    return sum_over_ranks(group, loss.item())[0], to_host(flat.data).copy()


def run(group):
    """The same step by the library."""
    model, optimizer, sync, batch, _ = prepare(group)
    loss, _ = train_step(model, optimizer, [batch], sync, LR, longest=1.0)
    return sum_over_ranks(group, float(loss))[0], to_host(optimizer.flat.data).copy()


def main():
    print(f"One step on {RANKS} ranks; rank 0 tells")
    walked, ran = comm.run(RANKS, walk), comm.run(RANKS, run)
    same = all(np.array_equal(a, walked[0][1]) for _, a in walked + ran)
    print(f"\nLoss {walked[0][0]:.6f}; by train_step {ran[0][0]:.6f}. All four copies of the weights are equal to the "
          f"last bit: {same}")


if __name__ == "__main__":
    main()
