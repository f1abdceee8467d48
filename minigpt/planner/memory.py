"""How much memory a rank needs."""

from minigpt.planner.parameters import count

WIDTH = {"float32": 4, "float64": 8}            # bytes
MOMENTS = {"adamw": 2, "sgd": 1}
RUNTIME = 60e6                                  # bytes: Python, NumPy, HDF5 and MPI before the first array


def memory(config):
    """Bytes of one rank by purpose. config: a `minigpt.config.Config` whose vocab_size is known."""
    model, width = config.model, WIDTH[config.train.dtype]
    weights = sum(count(model).values()) * width
    tokens = config.data.batch_size * model.context
    return {
        "weights": weights,
        "gradients": weights,
        "moments": MOMENTS[config.optim.name] * weights,
        "activations": tokens * (model.n_layers * per_block(model) + 4 * model.d_model + 2 * model.vocab_size) * width,
        "Python and libraries": RUNTIME,
    }


def per_block(model):
    """Numbers that a block keeps of every token for its backward.

    Two norms keep the normalised stream and their output, (2 + 2) d; attention keeps query, key, value and output,
    4 d, and a causal row of scores, context / 2 for each head; the feed-forward its two inner results, 2 d_ff.
    """
    return 8 * model.d_model + model.n_heads * (model.context + 1) // 2 + 2 * model.d_ff


def describe_memory(config):
    """Lines of text: the prediction for one rank, and of what it consists."""
    parts = memory(config)
    yield f"about {sum(parts.values()) / 1e6:,.0f} MB a rank is predicted"
    yield "  " + ", ".join(f"{name} {number / 1e6:,.1f}" for name, number in parts.items())
