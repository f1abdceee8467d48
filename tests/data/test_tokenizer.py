import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.bpe import BPE
from data.tokenizer import CHUNK, Bytes, Characters, Tokenizer, load

ENGLISH = "the cat sat on the mat. The mat sat under the cat.\n" * 20
HARD = "A. 单发\n\U0001f469\u200d\U0001f680 naïve ¿ё?"    # an astronaut: three code points, eleven bytes
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@cache
def learnt():
    return BPE.learn(ENGLISH, 300)


def every(text):
    return [Bytes(), Characters(text), learnt()]


@given(TEXT)
def test_decoding_gives_back_what_was_encoded(text):
    for tokenizer in every(text):
        ids = tokenizer.encode(text)
        assert isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype == tokenizer.dtype
        assert tokenizer.decode(ids) == text


@given(TEXT)
def test_a_tokenizer_comes_back_from_its_json(text):
    for tokenizer in every(text):
        again = load(tokenizer.to_json())
        assert again == tokenizer and type(again) is type(tokenizer)
        assert np.array_equal(again.encode(text), tokenizer.encode(text))


@given(st.lists(st.integers(0, 255), max_size=40), st.data())
def test_case_135_a_stream_joined_is_the_whole_whatever_the_bytes(ids, data):
    """Ids that a model draws need not be UTF-8, and may arrive in groups of any size."""
    for tokenizer in (Bytes(), learnt()):
        stream, text, rest = tokenizer.decode_stream(), "", ids
        while rest:
            size = data.draw(st.integers(1, len(rest)))
            text, rest = text + stream.feed(rest[:size]), rest[size:]
        assert text + stream.flush() == tokenizer.decode(ids)


@pytest.mark.parametrize("tokenizer", [Bytes(), Characters(HARD), learnt()], ids=lambda each: each.kind)
def test_case_135_characters_spread_over_tokens_appear_whole(tokenizer):
    stream, seen = tokenizer.decode_stream(), ""
    for each in tokenizer.encode(HARD):
        seen += stream.feed(each)
        assert HARD.startswith(seen)                              # never a U+FFFD that later proves wrong
    assert seen == HARD and stream.flush() == ""


def test_case_135_stopping_in_the_middle_of_a_character_does_not_raise():
    stream = Bytes().decode_stream()
    assert stream.feed([0xC3]) == "" and stream.flush() == "\ufffd"        # the first byte of two
    assert stream.feed([0xA9]) == "\ufffd" and stream.flush() == ""       # and the next text begins afresh
    assert Bytes().decode([0xC3]) == "\ufffd"


def test_characters_are_numbered_in_the_order_of_unicode():
    tokenizer = Characters("banana\n")
    assert tokenizer.characters == "\nabn" and tokenizer.vocab_size == 4
    assert tokenizer.encode("nab").tolist() == [3, 1, 2]


@pytest.mark.parametrize("stranger", ["z", "\0", "ё", "\U0010ffff", "\udce9"])
def test_an_unknown_character_is_named_with_its_position(stranger):
    with pytest.raises(ValueError, match=rf"U\+{ord(stranger):04X}\) at position 3 is not among the 2 char"):
        Characters("ab").encode("aba" + stranger)


def test_the_position_is_right_beyond_the_first_chunk():
    with pytest.raises(ValueError, match=f"at position {CHUNK + 5} "):
        Characters("a").encode("a" * (CHUNK + 5) + "z")


@pytest.mark.parametrize("tokenizer", every(ENGLISH), ids=lambda each: each.kind)
def test_ids_outside_the_vocabulary_are_named(tokenizer):
    for wrong in (-1, tokenizer.vocab_size):
        with pytest.raises(ValueError, match=f"id {wrong} at position 1 .*of {tokenizer.vocab_size} tokens"):
            tokenizer.decode([0, wrong])
    with pytest.raises(ValueError, match="float64"):
        tokenizer.decode(np.array([0.5]))
    assert tokenizer.decode([]) == "" and tokenizer.encode("").size == 0


@pytest.mark.parametrize("size, dtype", [(1, "u1"), (256, "u1"), (257, "u2"), (65_537, "u4")])
def test_ids_take_the_smallest_type_that_holds_them(size, dtype):
    start = 0x10000
    tokenizer = Characters(map(chr, range(start, start + size)))
    ids = tokenizer.encode(chr(start + size - 1))
    assert ids.dtype == dtype and ids[0] == size - 1


@pytest.mark.parametrize("tokenizer", every(ENGLISH), ids=lambda each: each.kind)
def test_the_id_of_a_newline_decodes_to_a_newline(tokenizer):
    assert tokenizer.decode([tokenizer.id_of_newline]) == "\n"


def test_a_vocabulary_without_newline_has_no_id_for_it():
    assert Characters("ab").id_of_newline is None
    assert Characters("").vocab_size == 0


def test_bytes_of_a_terminal_that_are_no_utf8_stay_what_they_were():
    assert Bytes().encode("\udcff").tolist() == [0xFF]
    with pytest.raises(ValueError, match=r"U\+D800 at position 1"):
        Bytes().encode("a\ud800")
    with pytest.raises(ValueError, match=r"U\+D800"):
        Characters("a\ud800")


@pytest.mark.parametrize("wrong", ["", "[]", "null", "{}", '{"kind": "pickle"}', '{"kind": "chars"}',
                                   '{"kind": "chars", "characters": 3}', '{"kind": "bpe"}',
                                   '{"kind": "bpe", "model": {"version": "1.0"}}', '{"kind": ["bpe"]}'])
def test_what_is_no_tokenizer_is_refused(wrong):
    with pytest.raises(ValueError, match="not "):
        load(wrong)


def test_save_writes_plain_json(tmp_path):
    Characters("ab").save(tmp_path / "tokenizer.json")
    text = (tmp_path / "tokenizer.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"kind": "chars", "characters": "ab"} and load(text) == Characters("ba")
    assert Characters("ab") != Bytes() and len({Characters("ab"), Characters("ba")}) == 1
    assert issubclass(BPE, Tokenizer)
