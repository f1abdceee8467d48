"""How much memory a rank needs."""

from minigpt.planner.parameters import count

WIDTH = {"float32": 4, "float64": 8}            # bytes
RUNTIME = 100e6                                 # bytes: Python, NumPy, HDF5 and MPI, before the first array is made
BLOCK = 64                                      # queries whose scores attention keeps together


def memory(config):
    """Bytes of one rank by purpose. config: a `minigpt.config.Config` whose vocab_size is known."""
    model, width = config.model, WIDTH[config.train.dtype]
    weights = sum(count(model).values()) * width
    tokens = config.data.batch_size * model.context
    return {
        "weights": weights,
        "gradients": weights,
        "moments": moments(config.optim) * weights,
        "activations": int(tokens * (model.n_layers * kept(model) + passing(model)) * width),
        "Python and libraries": RUNTIME,
    }


def shortage(config, available):
    """What is wrong if one rank alone needs more than the `available` bytes of this machine, else None."""
    needed = sum(memory(config).values())
    if needed <= available:
        return None
    return (f"about {needed / 1e9:,.1f} GB a rank is predicted, and this machine has {available / 1e9:,.1f} GB: make "
            "data.batch_size, model.context or the model smaller")


def moments(optim):
    """How many numbers the optimizer keeps for each weight."""
    return 2 if optim.name == "adamw" else int(optim.momentum > 0)


def kept(model):
    """Numbers that a block keeps of every token for its backward.

    Two norms keep the normalised stream and their output, 4 d, attention its packed input, 3 d, its output, d, and
    the block's sums 2 d; the feed-forward keeps its inner result and the derivative of the GELU, 2 d_ff. Of its
    scores every head keeps a row for every token: all of `context` if that is one block of queries, and half of it
    if there are many, because blocks leave out what lies above the diagonal.
    """
    blocks = max(1, model.context // BLOCK)
    return 10 * model.d_model + 2 * model.d_ff + model.n_heads * model.context * (1 + 1 / blocks) / 2


def passing(model):
    """Numbers a token that are not kept for each block: gradients on their way back, the last norm, the logits."""
    return 8 * model.d_model + model.d_ff + 2 * model.vocab_size


def describe_memory(config):
    """Lines of text: the prediction for one rank, and of what it consists."""
    parts = memory(config)
    yield f"about {sum(parts.values()) / 1e6:,.0f} MB a rank is predicted"
    yield "  " + ", ".join(f"{name} {number / 1e6:,.1f}" for name, number in parts.items())
