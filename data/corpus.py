"""A text, by name or path, as one array of token ids that is made once and read from the cache ever after."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data import cache as caching
from data import sources, store
from data import tokenizer as tokenizers

FORMAT = 1                                    # of cached files and of how they are made: others are rebuilt
DEFAULT_BPE_SIZE = 1024


@dataclass(frozen=True, eq=False)             # arrays have no one truth value to compare by
class Corpus:
    name: str
    tokenizer: tokenizers.Tokenizer
    train: np.ndarray                             # (N,) uint8, uint16 or uint32, read-only
    validation: np.ndarray                        # the end of the text
    characters: int
    sha256: str                                   # of the whole text in UTF-8
    path: Path                                    # the cached file

    @property
    def vocab_size(self):
        return self.tokenizer.vocab_size

    def describe(self):
        return (f"{self.name}: {self.characters:,} characters, vocabulary of {self.vocab_size:,} "
                f"({self.tokenizer.kind}), {len(self.train):,} tokens to train on, "
                f"{len(self.validation):,} to validate")


def prepare(name_or_path, tokenizer="chars", *, validation=0.1, encoding=None, vocab_size=None, cache=None,
            progress=None):
    """The Corpus of a name (`sources.NAMED`) or of any text file or folder of the user's.

    tokenizer: "chars", "bytes", "bpe" (learnt from the training text, `vocab_size` tokens) or a Tokenizer,
    such as a checkpoint's. validation: share of the text, cut from its end. encoding: of the user's files;
    without it a byte order mark decides, else UTF-8. cache: a folder instead of $MINIGPT_CACHE. progress:
    called with lines of text that say what is going on.

    Several processes may call this at once: one prepares, the others wait. A damaged file is made again, and
    one made from another text, tokenizer or split is never taken for this. Raises ValueError for what is no
    text (with the offset of the bad byte), empty or cannot be tokenised, OSError for what cannot be read or
    written.
    """
    say = progress or (lambda line: None)
    if not 0 <= validation < 1:
        raise ValueError(f"validation={validation} must be a share of the text: at least 0 and below 1")
    make, label = _tokenizer(tokenizer, vocab_size)
    source = sources.find(name_or_path, encoding, caching.folder(cache), say)
    digest = source.digest()
    key = _hash(json.dumps([FORMAT, digest, encoding, label, float(validation)]))
    path = caching.folder(cache) / "corpora" / f"{_file_name(source.name)}-{key[:16]}.h5"
    found = _open(path, say)
    if found is None:
        with caching.locked(path, say):
            found = _open(path, lambda line: None)        # another process may have made it meanwhile
            if found is None:
                _build(source, digest, make, validation, path, say)
                found = _open(path, say)
    return found


def _tokenizer(tokenizer, vocab_size):
    """(a function from the text and its training part to a tokenizer, what names it in a cache key)."""
    if vocab_size is not None and tokenizer != "bpe":
        raise ValueError(f"vocab_size={vocab_size} is for tokenizer='bpe'; {tokenizer!r} has the size it has")
    if isinstance(tokenizer, tokenizers.Tokenizer):
        return (lambda whole, train, say: tokenizer), tokenizer.to_json()
    if tokenizer == "chars":
        return (lambda whole, train, say: tokenizers.Characters(whole)), "chars"
    if tokenizer == "bytes":
        return (lambda whole, train, say: tokenizers.Bytes()), "bytes"
    if tokenizer == "bpe":
        from data.bpe import BPE  # imports the tokenizers package: only for those who use it
        size = DEFAULT_BPE_SIZE if vocab_size is None else vocab_size
        return (lambda whole, train, say: BPE.learn(train, int(size), say)), f"bpe {size}"
    raise ValueError(f"tokenizer={tokenizer!r} must be 'chars', 'bytes', 'bpe' or a Tokenizer")


def _open(path, say):
    """The Corpus in that file, or None if there is none or it is damaged."""
    try:
        tokens, description, facts = store.load(path)
        train, validation = np.split(tokens, [facts["split"]])
        return Corpus(facts["name"], tokenizers.load(description), train, validation, facts["characters"],
                      facts["sha256"], path)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, OSError) as error:
        say(f"{error}; making it again")
        return None


def _build(source, digest, make, validation, path, say):
    say(f"reading {source.name}")
    whole = source.read()
    if source.digest() != digest:
        raise OSError(f"{source.name} was changed while it was read; prepare it again")
    if not whole:
        raise ValueError(f"{source.name} is empty: there is no text to learn from")
    cut = int(len(whole) * (1 - validation))
    train, rest = whole[:cut], whole[cut:]
    tokenizer = make(whole, train, say)
    say(f"tokenising {len(whole):,} characters")
    pieces = [tokenizer.encode(train), tokenizer.encode(rest)]        # apart: no token reaches over the cut
    facts = {"name": source.name, "characters": len(whole), "sha256": _hash(whole), "split": len(pieces[0]),
             "count": len(pieces[0]) + len(pieces[1]), "vocab_size": tokenizer.vocab_size}
    store.save(path, np.concatenate(pieces), tokenizer.to_json(), facts)


def _hash(text):
    return hashlib.sha256(tokenizers.utf8(text)).hexdigest()


def _file_name(name):
    return re.sub(r"[^\w.-]+", "_", name)[:60]
