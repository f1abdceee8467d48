"""A network 784-16-16-10 learns to read handwritten digits.

    python examples/mlp_digits.py                           scikit-learn's digits, scaled to 28 x 28
    mpirun -n 2 python examples/mlp_digits.py               the same on two ranks, with the same result
    python examples/mlp_digits.py --data mnist.npz          digits of your own: arrays x (N, 784) and y (N,)
    python examples/mlp_digits.py --data some/folder        the four IDX files of MNIST

Every image is 784 brightnesses, every output one digit. The two layers of 16 neurons between them make 13,002
parameters: 784*16 + 16*16 + 16*10 = 12,960 weights and 16 + 16 + 10 = 42 biases.

Data parallel: each rank holds the whole network and reads its part of every batch. Losses are divided by the size
of the whole batch, so the sum of the ranks' gradients is the gradient of the mean loss.
"""

import argparse
from pathlib import Path

import numpy as np

import comm
from autograd import Tensor, no_grad, ops
from data import digits
from minigpt.flat import flatten
from minigpt.models import MLP
from minigpt.module import initialize
from minigpt.optim import SGD
from minigpt.parallel.data_parallel import DataParallel, sum_over_ranks

SIZES = 784, 16, 16, 10
HELD_OUT = 0.15


def load(path=None):
    """(train_x, train_y, test_x, test_y): images (N, 784) in 0..1, digits (N,)."""
    if path is None:
        return digits.small()
    if Path(path).suffix != ".npz":
        return digits.load(path)
    with np.load(path) as arrays:
        x, y = arrays["x"].reshape(-1, SIZES[0]), arrays["y"].astype(np.int64)
    x = x.astype(np.float32) / 255 if x.dtype == np.uint8 else x.astype(np.float32)
    order = np.random.default_rng(0).permutation(len(x))            # files are often sorted by digit
    test, train = np.split(order, [int(len(x) * HELD_OUT)])
    return x[train], y[train], x[test], y[test]


def centred(arrays):
    """The same with the mean image of the training digits taken off.

    Where most pixels are bright in every image, all weights of a neuron are pushed the same way at every step; around
    0 they learn apart, and much faster.
    """
    train_x, train_y, test_x, test_y = arrays
    mean = train_x.mean(0)
    return train_x - mean, train_y, test_x - mean, test_y


def count(model):
    """(weights, biases)"""
    return sum(layer.weight.size for layer in model.layers), sum(layer.bias.size for layer in model.layers)


def train_epoch(model, optimizer, sync, group, x, y, lr, batch_size, epoch):
    """Once over all digits, in an order that every rank draws alike; returns the mean loss over all ranks."""
    order = np.random.default_rng(epoch).permutation(len(x))
    total = 0.0
    for start in range(0, len(order), batch_size):
        batch = order[start:start + batch_size]
        cuts = comm.bounds(len(batch), group.size)
        mine = batch[cuts[group.rank]:cuts[group.rank + 1]]
        optimizer.flat.zero_grad()
        loss = ops.cross_entropy(model(Tensor(x[mine])), y[mine], total=len(batch))
        loss.backward()
        sync(optimizer.flat.gradient())
        optimizer.step(lr)
        total += loss.item() * len(batch)
    return sum_over_ranks(group, total)[0] / len(x)


def accuracy(model, x, y):
    """Share of images whose digit the model names."""
    with no_grad():
        return float((model(Tensor(x)).numpy().argmax(1) == y).mean())


def train(group, arrays, epochs=9, lr=0.05, batch_size=32, seed=1, say=print):
    """Train on the ranks of `group`; returns (model, accuracy on the digits that were held out)."""
    train_x, train_y, test_x, test_y = centred(arrays)
    model = initialize(MLP(SIZES), seed)
    flat = flatten(model)
    optimizer, sync = SGD(flat, momentum=0.9), DataParallel(group, flat)
    for epoch in range(epochs):
        loss = train_epoch(model, optimizer, sync, group, train_x, train_y, lr, batch_size, epoch)
        if group.rank == 0 and epoch % 3 == 2:
            say(f"epoch {epoch + 1:>2}  loss {loss:.4f}  held-out accuracy {accuracy(model, test_x, test_y):.1%}")
        sync.check_copies(epoch)
    return model, accuracy(model, test_x, test_y)


def picture(image):
    """An image as text, two rows of pixels in a line."""
    rows = image.reshape(28, 28)[::2]
    return "\n".join("".join(" .:-=+*#%@"[min(9, int(v * 10))] for v in row).rstrip() for row in rows)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="PATH", help="an .npz file with x and y, or a folder of IDX files")
    parser.add_argument("--epochs", type=int, default=9, help="times over all digits (default 9)")
    arguments = parser.parse_args(argv)
    group, arrays = comm.world(), load(arguments.data)
    say = print if group.rank == 0 else lambda *words: None
    weights, biases = count(MLP(SIZES))
    say(f"784-16-16-10 has {weights:,} weights + {biases} biases = {weights + biases:,} parameters")
    say(f"{len(arrays[0]):,} digits to learn from, {len(arrays[2]):,} held out, on {group.size} rank(s)")
    model, reached = train(group, arrays, arguments.epochs)
    with no_grad():
        guess = model(Tensor(centred(arrays)[2][:1])).softmax().numpy()[0]
    say(f"\n{picture(arrays[2][0])}\nis a {arrays[3][0]}; the network says {guess.argmax()} ({guess.max():.0%} sure)\n")
    say(f"Held-out accuracy {reached:.1%}")


if __name__ == "__main__":
    main()
