import subprocess
import sys

import numpy as np
import pytest

from data import bpe
from data.bpe import BPE
from tests.data.shared import path_of

TEXT = "low lower lowest\nnew newer newest\n\n  wide wider\twidest  \n" * 30


def test_the_vocabulary_has_the_size_asked_for_and_longer_pieces_with_more_of_it():
    small, large = BPE.learn(TEXT, 256), BPE.learn(TEXT, 280)
    assert (small.vocab_size, large.vocab_size) == (256, 280)
    assert len(small.encode(TEXT)) == len(TEXT.encode()) > len(large.encode(TEXT))


def test_the_most_frequent_pair_is_merged_first():
    tokenizer = BPE.learn("ababab" * 50, 257)
    assert tokenizer.decode([256]) == "ab" and tokenizer.encode("abab").tolist() == [256, 256]


def test_learning_twice_gives_the_same():
    assert BPE.learn(TEXT, 290) == BPE.learn(TEXT, 290)


def test_a_small_text_has_fewer_pieces_than_asked_for():
    assert BPE.learn("aa", 1000).vocab_size == 257
    assert BPE.learn("", 1000).vocab_size == 256


def test_a_vocabulary_below_the_bytes_is_refused():
    with pytest.raises(ValueError, match="vocab_size=255 must be 256 or more"):
        BPE.learn(TEXT, 255)


def test_every_byte_is_a_token():
    tokenizer = BPE.learn(TEXT, 260)
    assert sorted(tokenizer.bytes_of([i]) for i in range(260))[:1] == [b"\0"]
    assert {tokenizer.bytes_of([i]) for i in range(260)} >= {bytes([byte]) for byte in range(256)}


def test_our_decoding_is_that_of_the_library():
    from tokenizers import decoders
    tokenizer = BPE.learn(TEXT, 300)
    tokenizer._model.decoder = decoders.ByteLevel()
    ids = tokenizer.encode("newest ёж 单发 wide")
    assert tokenizer.decode(ids) == tokenizer._model.decode(ids.tolist()) == "newest ёж 单发 wide"


@pytest.mark.parametrize("piece", [1, 7, 40])
def test_cutting_a_text_into_pieces_changes_no_token(piece, monkeypatch):
    tokenizer = BPE.learn(TEXT, 300)
    whole = tokenizer.encode(TEXT)
    monkeypatch.setattr(bpe, "PIECE", piece)
    pieces = list(bpe.pieces(TEXT))
    assert len(pieces) > 10 and "".join(pieces) == TEXT
    assert np.array_equal(tokenizer.encode(TEXT), whole)


def test_cutting_real_text_changes_no_token(monkeypatch):
    text = path_of("tinyshakespeare.txt").read_text(encoding="utf-8")[:60_000]
    tokenizer = BPE.learn(text, 400)
    whole = tokenizer.encode(text)
    monkeypatch.setattr(bpe, "PIECE", 100)
    assert len(list(bpe.pieces(text))) > 300 and np.array_equal(tokenizer.encode(text), whole)


def test_stray_bytes_of_a_terminal_become_replacement_characters():
    tokenizer = BPE.learn(TEXT, 260)
    assert tokenizer.decode(tokenizer.encode("low\udcff")) == "low\ufffd"


def test_who_does_not_ask_for_bpe_does_not_load_its_library():
    """It costs memory in every rank."""
    code = "import sys, data.corpus, data.loader, data.baselines; assert 'tokenizers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
