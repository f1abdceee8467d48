"""One HDF5 file per prepared corpus: token ids, the tokenizer, facts, and a checksum over all of it."""

import hashlib
import json

import h5py
import numpy as np

from data import cache


def save(path, tokens, tokenizer_json, facts):
    """Write tokens (N,), the tokenizer and `facts` (names to numbers and strings), whole or not at all."""
    with cache.replacing(path) as partial, h5py.File(partial, "w") as file:
        file.create_dataset("tokens", data=tokens)
        file.create_dataset("tokenizer", data=np.frombuffer(tokenizer_json.encode(), np.uint8))
        file.attrs.update(facts)
        file.attrs["checksum"] = checksum(tokens, tokenizer_json, facts)


def load(path):
    """(tokens, tokenizer_json, facts), the tokens mapped into memory read-only so that processes share them.

    Raises OSError if there is no such file, ValueError if it is damaged.
    """
    if not path.is_file():
        raise FileNotFoundError(path)
    try:
        # Files appear by a rename and are never written again: no lock, which some file systems lack.
        with h5py.File(path, "r", locking=False) as file:
            tokens = _mapped(path, file["tokens"])
            tokenizer_json = bytes(file["tokenizer"][:]).decode()
            facts = {name: _plain(value) for name, value in file.attrs.items()}
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if facts.pop("checksum", None) != checksum(tokens, tokenizer_json, facts):
        raise ValueError(f"{path} is damaged: its checksum is not that of its contents")
    return tokens, tokenizer_json, facts


def checksum(tokens, tokenizer_json, facts):
    """SHA-256 over all three, as a hexadecimal string."""
    digest = hashlib.sha256(json.dumps([str(tokens.dtype), tokenizer_json, facts], sort_keys=True).encode())
    digest.update(tokens.data)
    return digest.hexdigest()


def _mapped(path, dataset):
    offset = dataset.id.get_offset()                      # None if nothing is stored
    if offset is None:
        return dataset[:]
    return np.asarray(np.memmap(path, dataset.dtype, "r", offset, dataset.shape))


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value
