"""Train a small GPT, with the whole loop in sight.

    python examples/train_gpt.py
    mpirun -n 2 python examples/train_gpt.py --steps 1000
    python examples/train_gpt.py --corpus my-novel.txt --prompt "It was"

`minigpt train` does the same, and saves, resumes, validates and reports on the way.
"""

import argparse

import comm
from data import corpus
from data.loader import Loader
from minigpt.config import Model
from minigpt.flat import flatten
from minigpt.generate import generate
from minigpt.models import GPT, Batch
from minigpt.module import initialize
from minigpt.optim import AdamW, clip_factor, global_norm, warmup_cosine
from minigpt.parallel.data_parallel import DataParallel, sum_over_ranks
from minigpt.train.evaluate import evaluate

BATCH, LR = 12, 3e-3


def train(group, text, config, steps, say=print):
    """A GPT on the ranks of `group`: every rank returns the same model."""
    model = initialize(GPT(config), seed=1)
    flat = flatten(model)                                   # all weights in one buffer, all gradients in another
    optimizer, sync = AdamW(flat), DataParallel(group, flat)
    loader = Loader(text.train, config.context, BATCH, seed=1, replica=group.rank, replicas=group.size)
    for step in range(steps):
        batch = Batch.of(loader.batch(step), config.vocab_size, step, total=loader.tokens_per_step)
        flat.zero_grad()
        loss = model.loss(model(batch), batch.targets, total=batch.total)
        loss.backward()
        gradient = flat.gradient()
        sync(gradient)                                      # the ring: summed over ranks, in place
        scale = clip_factor(global_norm(gradient), 1.0)
        optimizer.step(warmup_cosine(step, lr=LR, min_lr=LR / 10, warmup_steps=20, max_steps=steps), scale)
        if step % 25 == 0 or step == steps - 1:
            mean, = sum_over_ranks(group, loss.item())
            say(f"step {step:>4}  loss {mean:.4f}")
    return model


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="python-docs", help="a name that `python -m data list` knows, or a path")
    parser.add_argument("--steps", type=int, default=300, help="default 300")
    parser.add_argument("--prompt", default="", help="what the sample begins with (default: the first character of "
                        "the validation text)")
    arguments = parser.parse_args(argv)
    group = comm.world()
    say = print if group.rank == 0 else lambda line: None
    text = corpus.prepare(arguments.corpus, progress=say)
    prompt = text.tokenizer.encode(arguments.prompt) if arguments.prompt else text.validation[:1]
    config = Model(d_model=64, n_layers=2, n_heads=4, context=64, vocab_size=text.vocab_size)
    say(f"{text.describe()}; {group.size} rank(s)")
    model = train(group, text, config, arguments.steps, say)
    loss = evaluate(model, text.validation, config, BATCH, group, limit=20)
    say(f"validation loss {loss:.4f} nats a character\n")
    if group.rank == 0:
        say(text.tokenizer.decode([*prompt, *generate(model, prompt, 200, temperature=0.8, seed=1)]))


if __name__ == "__main__":
    main()
