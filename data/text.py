"""Bytes of a file to text: the encoding is detected or named, what is no text is reported by offset."""

import codecs

BYTE_ORDER_MARKS = (                              # UTF-32's little-endian mark begins with UTF-16's
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode(data, name, encoding=None):
    r"""The text of `data`, with line ends as "\n" and without a byte order mark.

    Without `encoding` a byte order mark decides, and UTF-8 is meant where there is none.
    Raises ValueError naming `name`, the offset in bytes and the line of what is not text.
    """
    found = [(mark, marked) for mark, marked in BYTE_ORDER_MARKS if data.startswith(mark)]
    mark, marked = found[0] if found and encoding is None else (b"", encoding or "utf-8")
    if marked == "utf-8":
        _refuse_binary(data, name)
    try:
        text = str(memoryview(data)[len(mark):], marked)
    except UnicodeDecodeError as error:
        raise ValueError(_undecodable(error, data, len(mark), name, marked, encoding)) from None
    except LookupError:
        raise ValueError(f"encoding={encoding!r} is not a text encoding that Python knows; "
                         "for example utf-8, utf-16, latin-1, cp1251, koi8-r, shift_jis") from None
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _refuse_binary(data, name):
    nul = data.find(b"\0")
    if nul >= 0:
        raise ValueError(f"{name}: byte {nul} is 0x00, so this is a binary file, or UTF-16 or UTF-32 text "
                         "without a byte order mark; if so, name it, for example encoding='utf-16-le'")


def _undecodable(error, data, skipped, name, used, named):
    offset = skipped + error.start
    line = data.count(b"\n", 0, offset) + 1
    advice = ("is that the file's encoding?" if named else
              "name the file's encoding, for example encoding='cp1251' (Russian), 'latin-1' or 'utf-16'")
    return (f"{name}: byte 0x{data[offset]:02x} at offset {offset} (line {line}) is not {used} "
            f"({error.reason}); {advice}")
