"""How many parameters a GPT has, part by part (FACTS F10-F15)."""


def block(model):
    """Parameters of one block by part, biases included. model: a `minigpt.config.Model`."""
    d, f = model.d_model, model.d_ff
    return {
        "attention": 3 * d * d + 3 * d + d * d + d,
        "feed-forward": d * f + f + f * d + d,
        "norms": 2 * 2 * d,
    }


def count(model):
    """Parameters of the whole model by part; the head is the token embedding, and is not counted again."""
    layers = {name: model.n_layers * number for name, number in block(model).items()}
    layers["norms"] += 2 * model.d_model
    return {
        "token embedding (and head)": model.vocab_size * model.d_model,
        "positions": model.context * model.d_model,
        **layers,
    }


def describe_parameters(model):
    """Lines of text: the sum, then every part."""
    parts = count(model)
    whole = sum(parts.values())
    yield f"{whole:,} in {model.n_layers} blocks of width {model.d_model} with {model.n_heads} heads"
    for name, number in parts.items():
        yield f"  {name:<28}{number:>14,}{number / whole:>7.1%}"
