"""What a token is: a byte or a character here, a learnt piece of a word in `data.bpe`."""

import codecs
import json

import numpy as np

CHUNK = 1 << 20                                   # characters encoded at once: bounds the scratch memory


class Tokenizer:
    """The contract. Ids are 0 .. vocab_size-1.

    encode(text)      ids, (n,) in `dtype`, the smallest unsigned type that holds them all
    decode(ids)       text; bytes that are not UTF-8 become U+FFFD, as a stopped generation may leave them
    decode_stream()   text of ids that come one by one, see DecodeStream
    to_json()         a string from which `load` makes an equal tokenizer: plain data, no code
    id_of_newline     the id of a lone newline, or None: something to begin with where there is no prompt
    """

    kind = ""                                     # its name in files and on the command line
    id_of_newline = None

    @property
    def dtype(self):
        return np.min_scalar_type(max(self.vocab_size - 1, 0))

    def decode(self, ids):
        return self.bytes_of(self.check(ids)).decode("utf-8", "replace")

    def decode_stream(self):
        return DecodeStream(self)

    def check(self, ids):
        """`ids` as a list of ints. Raises ValueError naming the first that is outside the vocabulary."""
        ids = np.atleast_1d(np.asarray(ids))
        if ids.size and ids.dtype.kind not in "iu":
            raise ValueError(f"token ids are integers, these are {ids.dtype}")
        wrong = np.flatnonzero((ids < 0) | (ids >= self.vocab_size))
        if wrong.size:
            raise ValueError(f"token id {ids[wrong[0]]} at position {wrong[0]} is outside the vocabulary of "
                             f"{self.vocab_size} tokens (0 to {self.vocab_size - 1})")
        return ids.tolist()

    def to_json(self):
        return json.dumps({"kind": self.kind, **self.state()})

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_json())

    def __eq__(self, other):
        return isinstance(other, Tokenizer) and self.to_json() == other.to_json()

    def __hash__(self):
        return hash(self.to_json())

    def __repr__(self):
        return f"{type(self).__name__}(vocab_size={self.vocab_size})"


class DecodeStream:
    """Text as its tokens arrive: joined, and with `flush` at the end, it is what `decode` gives for them all.

    A character whose bytes are spread over tokens is held back until its last byte is there (case 135).
    """

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, ids):
        """The text that `ids` (one id or several) complete; "" while a character is unfinished."""
        return self._decoder.decode(self._tokenizer.bytes_of(self._tokenizer.check(ids)))

    def flush(self):
        """The end: U+FFFD if a character was left unfinished, else "". Ready for another text afterwards."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest


class Bytes(Tokenizer):
    """Every byte of the text's UTF-8 is a token: 256 of them, any text fits, nothing is learnt."""

    kind = "bytes"
    vocab_size = 256
    id_of_newline = ord("\n")

    def encode(self, text):
        return np.frombuffer(utf8(text), np.uint8)

    def bytes_of(self, ids):
        return bytes(ids)

    def state(self):
        return {}

    @classmethod
    def from_state(cls, state):
        return cls()


class Characters(Tokenizer):
    """Every character that the corpus holds is a token, numbered in the order of Unicode."""

    kind = "chars"

    def __init__(self, characters):
        """characters: a string (or any iterable of characters); order and repeats do not matter."""
        self.characters = "".join(sorted(set(characters)))
        codes = _codes(self.characters)
        surrogate = (codes >= 0xD800) & (codes < 0xE000)
        if surrogate.any():
            raise ValueError(f"U+{codes[surrogate][0]:04X} is half of a surrogate pair, not a character")
        self.vocab_size = len(codes)
        self._utf8 = [character.encode() for character in self.characters]
        beyond = int(codes.max(initial=0)) + 1                        # stands for every greater code point
        self._id_of_code = np.full(beyond + 1, self.vocab_size, np.int32)
        self._id_of_code[codes] = np.arange(self.vocab_size)
        newline = self.characters.find("\n")
        self.id_of_newline = None if newline < 0 else newline

    def encode(self, text):
        """Raises ValueError naming a character that is not in the vocabulary, and its position."""
        ids = np.empty(len(text), self.dtype)
        for start in range(0, len(text), CHUNK):
            codes = np.minimum(_codes(text[start:start + CHUNK]), len(self._id_of_code) - 1)
            found = self._id_of_code[codes]
            unknown = np.flatnonzero(found == self.vocab_size)
            if unknown.size:
                self._refuse(text, start + int(unknown[0]))
            ids[start:start + len(found)] = found
        return ids

    def _refuse(self, text, position):
        character = text[position]
        raise ValueError(
            f"character {character!r} (U+{ord(character):04X}) at position {position} is not among the "
            f"{self.vocab_size} characters of this vocabulary; leave it out, or prepare a corpus that has "
            "it, or one with tokenizer 'bytes' or 'bpe', which take any text")

    def bytes_of(self, ids):
        return b"".join([self._utf8[i] for i in ids])

    def state(self):
        return {"characters": self.characters}

    @classmethod
    def from_state(cls, state):
        return cls(state["characters"])


def load(json_text):
    """The tokenizer that `to_json` described. Raises ValueError if it is no such description."""
    try:
        state = json.loads(json_text)
        kind = state.pop("kind")
        if kind == "bpe":
            from data.bpe import BPE  # imports the tokenizers package: only for those who use it
            return BPE.from_state(state)
        return {each.kind: each for each in (Bytes, Characters)}[kind].from_state(state)
    except (json.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"this is not the description of a tokenizer: {error!r}") from error


def utf8(text):
    """UTF-8 of `text`; what came undecodable from a terminal or a file name goes back to its own bytes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ValueError(f"U+{ord(text[error.start]):04X} at position {error.start} is half of a surrogate "
                         "pair, not a character") from None


def _codes(text):
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
