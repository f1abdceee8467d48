"""One HDF5 file per prepared corpus: token ids, the tokenizer, facts, and a seal in front of it all.

The seal is the SHA-256 of everything behind it. It stands in HDF5's user block, which HDF5 itself skips, so
that it can be checked before HDF5 reads a byte: in some damaged files HDF5 loops for ever instead of failing.
"""

import hashlib
import shutil

import h5py
import numpy as np

from data import cache

BLOCK = 512                                       # bytes of the user block: HDF5 takes no less
SPARE = 1 << 15                                   # bytes that HDF5 needs beside the content, and more
SEAL = "minigpt corpus, an HDF5 file; SHA-256 of what follows these 512 bytes: "


def save(path, tokens, tokenizer_json, facts):
    """Write tokens (N,), the tokenizer and `facts` (names to numbers and strings), whole or not at all.

    Raises OSError if there is no room: asked before, since on a full disk HDF5 may end the process by a signal.
    """
    needed = tokens.nbytes + len(tokenizer_json) * 4 + SPARE
    if shutil.disk_usage(path.parent).free < needed:
        raise OSError(f"the cache folder {path.parent} has no room for {needed:,} bytes; make some, or set "
                      "MINIGPT_CACHE to another folder")
    with cache.replacing(path) as partial:
        with h5py.File(partial, "w", userblock_size=BLOCK) as file:
            file.create_dataset("tokens", data=tokens)
            file.create_dataset("tokenizer", data=np.frombuffer(tokenizer_json.encode(), np.uint8))
            file.attrs.update(facts)
        with open(partial, "r+b") as file:
            sealed = seal(file)
            file.seek(0)
            file.write(sealed)


def load(path):
    """(tokens, tokenizer_json, facts), the tokens mapped into memory read-only so that processes share them.

    Raises FileNotFoundError if there is no such file, ValueError if it is damaged.
    """
    with open(path, "rb") as file:
        if file.read(BLOCK) != seal(file):
            raise ValueError(f"{path} is damaged: its SHA-256 is not the one that it states")
    # Files appear by a rename and are never written again: no lock, which some file systems lack.
    with h5py.File(path, "r", locking=False) as file:
        facts = {name: value.item() if isinstance(value, np.generic) else value
                 for name, value in file.attrs.items()}
        return _mapped(path, file["tokens"]), bytes(file["tokenizer"][:]).decode(), facts


def seal(file):
    """What the first BLOCK bytes of an open file must be, given the others."""
    digest, block = hashlib.sha256(), bytearray(1 << 18)
    file.seek(BLOCK)
    while count := file.readinto(block):
        digest.update(memoryview(block)[:count])
    return f"{SEAL}{digest.hexdigest()}".encode().ljust(BLOCK)


def _mapped(path, dataset):
    offset = dataset.id.get_offset()                      # None if nothing is stored; counts the user block
    if offset is None:
        return dataset[:]
    return np.asarray(np.memmap(path, dataset.dtype, "r", offset, dataset.shape))
