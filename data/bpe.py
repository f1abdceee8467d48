"""Byte-level byte-pair encoding, learnt from the corpus by Hugging Face's `tokenizers`."""

import json
import re

import numpy as np
from tokenizers import Tokenizer as HuggingFace
from tokenizers import models, pre_tokenizers, trainers

from data.tokenizer import Tokenizer, utf8

PIECE = 1 << 16                                   # characters given to the library at once: bounds its memory
BORDER = re.compile(r"(?<=\S\n)(?=\S)")           # no token reaches over it or depends on what lies beyond


class BPE(Tokenizer):
    """Bytes, and pieces of words that were frequent in the text it learnt from. Any text fits.

    Words are cut out with GPT-2's rule, then the most frequent pair of tokens is merged, again and again
    (Sennrich et al. 2016; on bytes: Radford et al. 2019).
    """

    kind = "bpe"

    def __init__(self, model):
        """model: a byte-level BPE Tokenizer of the `tokenizers` package."""
        self._model = model
        self.vocab_size = model.get_vocab_size()
        byte_of = {character: byte for byte, character in enumerate(_letters_of_bytes())}
        self._bytes = [bytes(byte_of[c] for c in model.id_to_token(i)) for i in range(self.vocab_size)]
        self.id_of_newline = self._bytes.index(b"\n")

    @classmethod
    def learn(cls, text, vocab_size, say=lambda line: None):
        """Learn from `text`; a small one may have fewer than `vocab_size` pieces. Below 256: ValueError."""
        if vocab_size < 256:
            raise ValueError(f"vocab_size={vocab_size} must be 256 or more: each byte is a token itself")
        model = HuggingFace(models.BPE())
        model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(vocab_size=vocab_size, show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        say(f"learning {vocab_size} tokens from {len(text):,} characters")
        model.train_from_iterator(pieces(text), trainer)
        return cls(model)

    def encode(self, text):
        text = utf8(text).decode("utf-8", "replace")      # the library takes no stray bytes
        found = [np.array(self._model.encode(piece).ids, self.dtype) for piece in pieces(text)]
        return np.concatenate(found) if found else np.empty(0, self.dtype)

    def bytes_of(self, ids):
        return b"".join([self._bytes[i] for i in ids])

    def state(self):
        return {"model": json.loads(self._model.to_str())}

    @classmethod
    def from_state(cls, state):
        try:
            return cls(HuggingFace.from_str(json.dumps(state["model"])))
        except Exception as error:                # the library raises nothing narrower
            raise ValueError(f"this is not a byte-level BPE tokenizer: {error!r}") from error


def pieces(text):
    """Cut `text` near every PIECE characters where a line begins without a space: no token changes."""
    start = 0
    while start < len(text):
        border = BORDER.search(text, start + PIECE)
        end = border.start() if border else len(text)
        yield text[start:end]
        start = end


def _letters_of_bytes():
    """The character that stands for each byte 0..255 in GPT-2's vocabulary: itself if it can be printed."""
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(256, 512))
    return [chr(byte if byte in printable else next(spare)) for byte in range(256)]
