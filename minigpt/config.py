"""What a run is: frozen dataclasses <-> TOML <-> `section.key=value` on the command line.

Defaults stand here, a TOML file changes some, the command line some more. A key that does not exist names the
nearest one that does; a value of the wrong type says what was expected.
"""

import difflib
import json
import tomllib
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from minigpt.errors import UserError

MOST = 1 << 31                  # no size of a run reaches it, and every integer below it fits wherever it is used


class ConfigError(UserError, ValueError):
    """Something in a configuration that its author can mend; the message says what and how."""


@dataclass(frozen=True)
class Model:
    d_model: int = 128          # width of the residual stream
    n_layers: int = 4           # blocks
    n_heads: int = 4            # heads of attention; each is d_model / n_heads wide
    d_ff: int = 0               # width inside the feed-forward; 0: 4 d_model
    context: int = 64           # positions that the model can see
    vocab_size: int = 0         # 0: what the corpus has
    dropout: float = 0.0        # share of each branch that is dropped in training
    seed: int = 1               # of the weights and of dropout

    def __post_init__(self):
        at_least(1, self, "d_model", "n_layers", "n_heads", "context")
        at_least(0, self, "d_ff", "vocab_size", "dropout")
        if self.d_model % self.n_heads:
            raise ConfigError(f"model.d_model={self.d_model} cannot be cut into model.n_heads={self.n_heads} heads: "
                              f"choose a d_model divisible by {self.n_heads}")
        if self.dropout >= 1:
            raise ConfigError(f"model.dropout={self.dropout}: expected a share below 1")
        if self.d_ff == 0:
            object.__setattr__(self, "d_ff", 4 * self.d_model)

    @property
    def d_head(self):
        return self.d_model // self.n_heads


@dataclass(frozen=True)
class Data:
    corpus: str = "python-docs"  # a name that `python -m data list` knows, a file or a folder
    tokenizer: str = "chars"    # chars, bytes or bpe
    vocab_size: int = 0         # tokens that bpe learns; 0: its default
    encoding: str = ""          # of the user's files; "": detected
    validation: float = 0.1     # share of the text, from its end, to validate on
    batch_size: int = 12        # sequences in a micro-batch of one rank
    seed: int = 1               # of the order of samples

    def __post_init__(self):
        at_least(1, self, "batch_size")
        at_least(0, self, "vocab_size")
        if not self.corpus:
            raise ConfigError("data.corpus='': expected a name that `python -m data list` knows, a file or a folder")
        if not 0 <= self.validation < 1:
            raise ConfigError(f"data.validation={self.validation}: expected a share of at least 0 and below 1")


@dataclass(frozen=True)
class Optim:
    name: str = "adamw"         # adamw or sgd
    lr: float = 1e-3            # learning rate after the warm-up
    min_lr: float = 1e-4        # learning rate at the end of the cosine
    warmup_steps: int = 100
    beta1: float = 0.9          # adamw: how much of the mean gradient stays from step to step
    beta2: float = 0.95         # adamw: how much of the mean squared gradient stays
    eps: float = 1e-8           # adamw: added to the root of the mean square
    momentum: float = 0.9       # sgd: how much of the last step is repeated
    weight_decay: float = 0.1   # of matrices and tables, not of biases and gains
    clip: float = 1.0           # longest gradient; 0: not clipped

    def __post_init__(self):
        one_of(self, "name", "adamw", "sgd")
        at_least(0, self, "lr", "min_lr", "warmup_steps", "eps", "weight_decay", "clip")
        for key in "beta1", "beta2", "momentum":
            if not 0 <= getattr(self, key) < 1:
                raise ConfigError(f"optim.{key}={getattr(self, key)}: expected at least 0 and below 1")


@dataclass(frozen=True)
class Train:
    name: str = ""              # of the run; "": the name of the configuration file
    folder: str = "runs"        # where runs are kept
    max_steps: int = 1000       # updates of the weights
    accumulate: int = 1         # micro-batches in a step
    dtype: str = "float32"      # float32, or float64 for comparing layouts
    log_every: int = 10         # steps between lines of progress and metrics
    eval_every: int = 250       # steps between validations; 0: only at the end
    eval_batches: int = 20      # batches of a validation on the way; the last one reads everything
    save_every: int = 500       # steps between checkpoints; 0: only at the end
    keep: int = 2               # checkpoints to keep; 0: all
    debug: bool = False         # check every op for NaN, and every copy of the weights for differences

    def __post_init__(self):
        one_of(self, "dtype", "float32", "float64")
        at_least(0, self, "max_steps", "eval_every", "save_every", "keep")
        at_least(1, self, "accumulate", "log_every", "eval_batches")
        if self.name and (self.name in (".", "..") or set(self.name) & set("/\\\0")):
            raise ConfigError(f"train.name={self.name!r}: expected the name of a folder in train.folder, without '/'")


@dataclass(frozen=True)
class Sample:
    prompt: str = ""            # what the sample at the end goes on from; "": a new line
    tokens: int = 300           # its length
    temperature: float = 0.8
    top_k: int = 40             # 0: any token may come
    seed: int = 1

    def __post_init__(self):
        at_least(0, self, "tokens", "temperature", "top_k")


@dataclass(frozen=True)
class Config:
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    optim: Optim = field(default_factory=Optim)
    train: Train = field(default_factory=Train)
    sample: Sample = field(default_factory=Sample)


def load(path, overrides=()):
    """The Config of a TOML file, changed by `section.key=value` words. Raises ConfigError, naming the file."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")     # Windows' editors begin a file with a mark
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read the configuration {path}: byte 0x{error.object[error.start]:02x} at offset "
                          f"{error.start} is not UTF-8, which TOML is written in: save the file as UTF-8") from None
    except (OSError, ValueError) as error:              # ValueError: a NUL in the path
        raise ConfigError(f"cannot read the configuration {path}: {getattr(error, 'strerror', error)}; expected a "
                          "TOML file, such as examples/configs/python-docs.toml") from None
    try:
        config = override(loads(text), overrides)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    name = config.train.name or path.stem
    return replace(config, train=replace(config.train, name=name))


def loads(text):
    """The Config of TOML text. Raises ConfigError."""
    try:
        sections = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"this is not TOML: {error}") from None
    return changed(Config(), sections)


def dumps(config):
    """TOML text from which `loads` makes an equal Config."""
    lines = []
    for section, values in asdict(config).items():
        lines += [f"[{section}]", *(f"{key} = {toml_of(value)}" for key, value in values.items()), ""]
    return "\n".join(lines)


def toml_of(value):
    """JSON writes numbers, true, false and strings as TOML does, but for one control character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def override(config, words):
    """`config` with every `section.key=value` of `words`; values as in TOML, text also without quotes."""
    sections = {}
    for word in words:
        name, equals, text = word.partition("=")
        section, dot, key = name.partition(".")
        if not (equals and dot):
            raise ConfigError(f"{word!r} is not section.key=value, such as train.max_steps=500")
        sections.setdefault(section, {})[key] = value_of(text)
    return changed(config, sections)


def value_of(text):
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def changed(config, sections):
    """`config` with the values of {section: {key: value}}, checked."""
    updates = {}
    for section, values in sections.items():
        known(section, config, "section")
        if not isinstance(values, dict):
            raise ConfigError(f"{section}={values!r}: {section} is a section, write [{section}] and its keys below")
        old = getattr(config, section)
        for key in values:
            known(key, old, "key", f"{section}.")
        typed = {f.name: value_for(f"{section}.{f.name}", f.type, values[f.name])
                 for f in fields(old) if f.name in values}
        if section == "model" and "d_model" in typed and old.d_ff == 4 * old.d_model:
            typed.setdefault("d_ff", 0)         # it was never chosen: it follows d_model
        updates[section] = replace(old, **typed)
    return replace(config, **updates)


def known(name, holder, kind, prefix=""):
    names = [f.name for f in fields(holder)]
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
        advice = f"did you mean {prefix}{near[0]}?" if near else "there are: " + ", ".join(names)
        raise ConfigError(f"there is no {kind} {prefix}{name}; {advice}")


def value_for(name, kind, value):
    """`value` as `kind` (int, float, bool or str); an int may stand for a float. Raises ConfigError."""
    if kind is float and type(value) is int:
        return float(value)
    if kind is str and type(value) in (int, float):
        return str(value)
    if type(value) is not kind:
        words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
        raise ConfigError(f"{name}={value!r}: expected {words[kind]}")
    return value


def at_least(low, section, *keys):
    for key in keys:
        value = getattr(section, key)
        if not low <= value < MOST:
            raise ConfigError(f"{type(section).__name__.lower()}.{key}={value}: expected at least {low}"
                              + (f" and below {MOST:,}" if value >= MOST else ""))


def one_of(section, key, *values):
    if getattr(section, key) not in values:
        raise ConfigError(f"{type(section).__name__.lower()}.{key}={getattr(section, key)!r}: expected "
                          + " or ".join(map(repr, values)))


def differences(before, after):
    """Lines such as "optim.lr: 0.001 -> 0.0005" for every value that differs."""
    before, after = asdict(before), asdict(after)
    return [f"{section}.{key}: {value!r} -> {after[section][key]!r}" for section, values in before.items()
            for key, value in values.items() if value != after[section][key]]
