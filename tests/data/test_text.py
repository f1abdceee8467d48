import codecs

import pytest

from data.text import decode

RUSSIAN = "Мой дядя самых честных правил\n"


MARKS = {"utf-8": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE,
         "utf-32-le": codecs.BOM_UTF32_LE, "utf-32-be": codecs.BOM_UTF32_BE}


@pytest.mark.parametrize("encoding, mark", [("utf-8", b""), *MARKS.items()])
def test_an_encoding_is_detected_by_its_byte_order_mark(encoding, mark):
    assert decode(mark + RUSSIAN.encode(encoding), "a.txt") == RUSSIAN


@pytest.mark.parametrize("encoding", ["cp1251", "koi8-r", "utf-16", "utf-16-be", "utf-8", "utf-8-sig"])
def test_an_encoding_can_be_named(encoding):
    assert decode(RUSSIAN.encode(encoding), "a.txt", encoding) == RUSSIAN


def test_a_named_utf8_may_have_a_mark():
    assert decode(codecs.BOM_UTF8 + b"abc", "a.txt", "utf-8") == "abc"


def test_bytes_that_are_no_utf8_are_named_with_offset_and_line_and_advice():
    message = r"a\.txt: byte 0xcc at offset 3 \(line 2\) is not utf-8.*encoding='cp1251'"
    with pytest.raises(ValueError, match=message):
        decode(b"ok\n" + RUSSIAN.encode("cp1251"), "a.txt")


def test_the_offset_counts_the_mark():
    with pytest.raises(ValueError, match="offset 5 "):
        decode(codecs.BOM_UTF8 + b"ab\xff", "a.txt")
    with pytest.raises(ValueError, match="offset 6 .*utf-16-le"):
        decode(codecs.BOM_UTF16_LE + "ab".encode("utf-16-le") + b"\0", "a.txt")     # half a unit too much


def test_a_character_cut_off_at_the_end_is_reported():
    with pytest.raises(ValueError, match=r"byte 0xd0 at offset 2 .*unexpected end"):
        decode(b"ab\xd0", "a.txt")


def test_a_wrong_encoding_that_was_named_is_questioned():
    with pytest.raises(ValueError, match="is not ascii .*is that the file's encoding"):
        decode(RUSSIAN.encode(), "a.txt", "ascii")


@pytest.mark.parametrize("encoding", ["no-such", "hex", "rot13"])
def test_what_is_no_text_encoding_is_refused(encoding):
    with pytest.raises(ValueError, match=f"encoding='{encoding}' is not a text encoding"):
        decode(b"abc", "a.txt", encoding)


@pytest.mark.parametrize("data", [b"\x7fELF\x02\x01\x01\0\0", "text".encode("utf-16-le")])
def test_binary_junk_is_reported_with_its_offset(data):
    with pytest.raises(ValueError, match=f"byte {data.index(0)} is 0x00"):
        decode(data, "a.out")


def test_line_ends_of_any_system_become_one_character():
    assert decode(b"a\r\nb\rc\nd", "a.txt") == "a\nb\nc\nd"
