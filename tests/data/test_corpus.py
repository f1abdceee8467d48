import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data import corpus, download, sources
from data.corpus import prepare
from data.tokenizer import Bytes, Characters
from tests.data.server import serving
from tests.data.shared import path_of


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to write texts to; the cache is elsewhere."""
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "texts").mkdir()
    return tmp_path / "texts"


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def whole(made):
    return made.tokenizer.decode(np.concatenate([made.train, made.validation]))


def builds(monkeypatch):
    """A list that grows by one with every corpus that is made rather than found."""
    made, build = [], corpus._build
    monkeypatch.setattr(corpus, "_build", lambda *arguments: made.append(1) or build(*arguments))
    return made


@pytest.mark.parametrize("tokenizer, dtype", [("chars", np.uint8), ("bytes", np.uint8), ("bpe", np.uint16)])
def test_the_language_reference_is_there_without_a_download(here, tokenizer, dtype):
    made = prepare("python-docs", tokenizer)
    from pydoc_data.topics import topics
    text = whole(made)
    assert all(topic in text for topic in topics.values()) and len(text) == made.characters > 400_000
    assert made.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert made.train.dtype == made.validation.dtype == dtype
    assert max(made.train.max(), made.validation.max()) < made.vocab_size == made.tokenizer.vocab_size
    assert made.describe().startswith(f"python-docs: {made.characters:,} characters, vocabulary of ")


def test_the_standard_library_comes_without_its_tests(here):
    made = prepare("python-stdlib", "bytes")
    text = whole(made)
    assert 5e6 < made.characters < 30e6
    assert "def dataclass(" in text and "class OrderedDict(" in text
    assert "class HashLibTestCase(" not in text


def test_the_second_time_it_is_found_not_made(here, monkeypatch):
    made = builds(monkeypatch)
    path = write(here / "a.txt", "hello world\n" * 20)
    first, second = prepare(path), prepare(str(path))
    assert len(made) == 1 and first.path == second.path
    assert np.array_equal(first.train, second.train) and first.tokenizer == second.tokenizer


def test_the_split_cuts_characters_as_nanogpt_does(here):
    made = prepare(write(here / "a.txt", "ж" * 1000 + "ф" * 101), "bytes")
    assert len(made.train) == 2 * int(1101 * 0.9) and len(made.train) + len(made.validation) == 2202
    assert len(prepare(here / "a.txt", validation=0).validation) == 0
    for wrong in (-0.1, 1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="validation="):
            prepare(here / "a.txt", validation=wrong)


def test_bpe_learns_from_the_training_part_only(here):
    made = prepare(write(here / "a.txt", "ab" * 450 + "cd" * 50), "bpe", vocab_size=300)
    pieces = {made.tokenizer.decode([i]) for i in range(256, made.vocab_size)}
    assert "abab" in pieces and not any("c" in piece for piece in pieces)


def test_another_text_tokenizer_size_split_or_encoding_is_another_file(here):
    path = write(here / "a.txt", "abc é\n" * 50)
    variants = [{}, {"tokenizer": "bytes"}, {"tokenizer": "bpe", "vocab_size": 260},
                {"tokenizer": "bpe", "vocab_size": 261}, {"validation": 0.2}, {"encoding": "latin-1"},
                {"tokenizer": Characters("abc é\n!")}]
    paths = [prepare(path, **variant).path for variant in variants]
    write(path, "abd é\n" * 50)
    assert len({*paths, prepare(path).path}) == len(variants) + 1
    assert "abd" in whole(prepare(path))


def test_a_tokenizer_that_is_at_hand_is_used_as_it_is(here):
    path = write(here / "a.txt", "abcabc")
    own = Characters("abcdef")
    assert prepare(path, own).tokenizer == own and prepare(path, Bytes()).vocab_size == 256
    with pytest.raises(ValueError, match="character 'b'"):
        prepare(path, Characters("a"))


def test_options_that_mean_nothing_are_refused(here):
    path = write(here / "a.txt", "abc")
    with pytest.raises(ValueError, match="'chars', 'bytes', 'bpe' or a Tokenizer"):
        prepare(path, "words")
    for tokenizer in ("chars", Bytes()):
        with pytest.raises(ValueError, match="vocab_size=5 is for tokenizer='bpe'"):
            prepare(path, tokenizer, vocab_size=5)
    with pytest.raises(ValueError, match="256 or more"):
        prepare(path, "bpe", vocab_size=5)


def test_a_full_disk_is_told_before_anything_is_written(here, monkeypatch):
    path = write(here / "a.txt", "a text that needs room\n" * 100)
    monkeypatch.setattr("shutil.disk_usage", lambda place: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match="has no room for .* MINIGPT_CACHE"):
        prepare(path)
    monkeypatch.undo()
    assert len(whole(prepare(path, cache=here.parent / "cache"))) == 2300


def test_no_name_at_all_is_not_the_current_folder(here):
    with pytest.raises(ValueError, match="no corpus was named.*python-docs"):
        corpus.prepare("", cache=here)


def test_an_unknown_name_is_answered_with_the_nearest(here):
    with pytest.raises(FileNotFoundError, match="'shakspeare'; did you mean 'shakespeare'"):
        prepare("shakspeare")
    with pytest.raises(FileNotFoundError, match="no corpus, file or folder 'x/y.txt'.*python-docs"):
        prepare("x/y.txt")


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_an_empty_file_is_refused(here, content):
    with pytest.raises(ValueError, match="empty is empty"):
        prepare(write(here / "empty.txt", content))


def test_a_text_of_one_character_is_prepared(here):
    made = prepare(write(here / "a.txt", "a"))
    assert made.vocab_size == 1 and len(made.train) == 0 and len(made.validation) == 1


def test_russian_in_any_encoding_is_the_same_text(here):
    text = path_of("onegin.txt").read_text(encoding="utf-8")
    known = "".join(c for c in text if c in "\n .,!?" or "а" <= c.lower() <= "я")
    made = [prepare(write(here / encoding / "onegin.txt", known.encode(encoding)), encoding=named)
            for encoding, named in [("utf-8", None), ("cp1251", "cp1251"), ("koi8-r", "koi8-r"),
                                    ("utf-16", None), ("utf-16-be", "utf-16-be")]]
    assert {each.sha256 for each in made} == {hashlib.sha256(known.encode()).hexdigest()}
    assert {each.name for each in made} == {"onegin"}
    with pytest.raises(ValueError, match=r"onegin\.txt: byte 0x.* at offset \d+ \(line \d+\) is not utf-8"):
        prepare(here / "cp1251" / "onegin.txt")


def test_a_folder_is_its_texts_in_order_without_what_is_hidden_or_binary(here):
    for name, content in {"b.md": "second", "a/z.txt": "first\r\n", ".git/config": "hidden", ".env": "secret",
                          "__pycache__/a.pyc": "compiled", "c.png": b"\x89PNG\r\n\x1a\n\0\0\0",
                          "d.txt": "third".encode("utf-16")}.items():
        write(here / name, content)
    lines = []
    made = prepare(here, progress=lines.append)
    assert whole(made) == "first\n\nsecond\nthird" and made.name == "texts"
    assert any("left out 1 files that are not text" in line and "c.png" in line for line in lines)
    write(here / "bad.txt", b"abc\xff")
    with pytest.raises(ValueError, match=r"bad\.txt: byte 0xff at offset 3"):
        prepare(here)


def test_a_folder_that_changes_is_read_again(here):
    write(here / "a.txt", "one")
    assert whole(prepare(here)) == "one"
    write(here / "b.txt", "two")
    assert whole(prepare(here)) == "one\ntwo"
    (here / "a.txt").rename(here / "c.txt")
    assert whole(prepare(here)) == "two\none"


def test_a_cache_inside_the_folder_is_no_part_of_it(here, monkeypatch):
    made = builds(monkeypatch)
    write(here / "a.txt", "one")
    for _ in range(3):
        assert whole(prepare(here, cache=here / "cache")) == "one"
    assert len(made) == 1


def test_a_folder_that_cannot_be_looked_into_is_an_error_not_an_omission(here, monkeypatch):
    write(here / "a.txt", "one")
    write(here / "locked" / "b.txt", "two")
    scan = os.scandir

    def refuse(folder):
        if str(folder).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(folder))
        return scan(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(PermissionError, match="locked"):
        prepare(here)


def test_a_file_name_may_be_any_bytes(here):
    path = os.fsencode(here) + b"/caf\xe9.txt"
    with open(path, "wb") as file:
        file.write(b"abc" * 20)
    for given_as in (os.fsdecode(path), here):
        made = prepare(given_as)
        assert whole(made) == "abc" * 20 and made.describe().encode()
    with pytest.raises(FileNotFoundError):
        prepare("~nobody-of-that-name/a.txt")


def test_a_folder_without_texts_and_a_pipe_are_refused(here, tmp_path):
    write(here / "c.png", b"\0")
    with pytest.raises(ValueError, match=r"holds no text files \(1 files that are not text\)"):
        prepare(here)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="neither a file nor a folder"):
        prepare(tmp_path / "pipe")


def test_a_text_that_changes_while_it_is_read_is_not_kept(here, monkeypatch):
    path = write(here / "a.txt", "before")
    read = sources._read
    monkeypatch.setattr(sources, "_read", lambda *arguments: (read(*arguments), write(path, "after"))[0])
    with pytest.raises(OSError, match="changed while it was read"):
        prepare(path)


@given(st.data())
def test_a_damaged_file_is_made_again(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    source = write(folder / "a.txt", "to be or not to be\n" * 30)
    good = prepare(source, cache=folder)
    content = bytearray(good.path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)):]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    expected = np.array(good.train)
    (folder / "new").write_bytes(content)
    (folder / "new").rename(good.path)
    again = prepare(source, cache=folder)
    assert np.array_equal(again.train, expected) and again.tokenizer == good.tokenizer


def test_damage_is_found_before_hdf5_reads_the_file(here, monkeypatch):
    """HDF5 loops for ever in some damaged files: of 2,500 with a changed byte or two, one did."""
    source = write(here / "a.txt", "abc" * 100)
    good = prepare(source).path
    content = bytearray(good.read_bytes())
    content[-1] ^= 1
    monkeypatch.setattr(h5py, "File", lambda *arguments, **options: pytest.fail("HDF5 was asked"))
    for damaged in (content, content[:100], b""):
        (here / "new").write_bytes(damaged)
        (here / "new").rename(good)
        with pytest.raises(ValueError, match="damaged"):
            corpus.store.load(good)


@pytest.mark.parametrize("harm", ["tokens", "tokenizer", "split", "dtype"])
def test_a_changed_part_of_the_file_is_noticed(here, harm, monkeypatch):
    source = write(here / "a.txt", "to be or not to be\n" * 30)
    good = prepare(source)
    copy = good.path.with_suffix(".copy")
    copy.write_bytes(good.path.read_bytes())
    with h5py.File(copy, "r+") as file:
        if harm == "split":
            file.attrs["split"] = 5
        elif harm == "dtype":
            tokens = file["tokens"][:]
            del file["tokens"]
            file["tokens"] = tokens.astype(np.int8)
        else:
            file[harm][0] ^= 1
    copy.rename(good.path)
    lines, made = [], builds(monkeypatch)
    assert whole(prepare(source, progress=lines.append)) == source.read_text()
    assert len(made) == 1 and any("damaged" in line and "making it again" in line for line in lines)


def test_processes_that_start_at_once_make_one_corpus(here, tmp_path):
    source = write(here / "a.txt", "all together now\n" * 2000)
    code = ("from data.corpus import prepare\n"
            f"made = prepare({str(source)!r}, progress=print); print(len(made.train) + len(made.validation))")
    ranks = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
             for _ in range(3)]
    outputs = [rank.communicate(timeout=60)[0] for rank in ranks]
    assert all(rank.returncode == 0 for rank in ranks)
    assert all(output.splitlines()[-1] == "34000" for output in outputs)
    assert sum("tokenising" in output for output in outputs) == 1
    assert not list((tmp_path / "cache").rglob("*.part"))


def test_threads_that_start_at_once_make_one_corpus(here, monkeypatch):
    made = builds(monkeypatch)
    source = write(here / "a.txt", "all together now\n" * 2000)
    with ThreadPoolExecutor(4) as pool:
        assert len({found.path for found in pool.map(lambda _: prepare(source), range(4))}) == 1
    assert len(made) == 1


def test_a_process_killed_while_writing_leaves_no_corpus(here, monkeypatch):
    source = write(here / "a.txt", "abc" * 100)
    monkeypatch.setattr(corpus.store, "seal", lambda file: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        prepare(source)
    monkeypatch.undo()
    monkeypatch.setenv("MINIGPT_CACHE", str(here.parent / "cache"))
    assert not list((here.parent / "cache").rglob("*.h5")) and whole(prepare(source)) == "abc" * 100


def test_tokens_are_mapped_read_only(here):
    made = prepare(write(here / "a.txt", "abc" * 100))
    assert type(made.train) is np.ndarray
    with pytest.raises(ValueError, match="read-only"):
        made.train[0] = 1


def test_the_cache_may_be_given_and_is_never_the_package(here, tmp_path):
    made = prepare(write(here / "a b?.txt", "abc"), cache=tmp_path / "other")
    assert made.path.is_relative_to(tmp_path / "other") and made.path.name.startswith("a_b_-")
    assert not (tmp_path / "cache").exists()


def test_shakespeare_is_downloaded_checked_and_the_same_as_ever(here, monkeypatch):
    content = path_of("tinyshakespeare.txt").read_bytes()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving("good", **{"input.txt": content}) as server:
        monkeypatch.setattr(sources, "SHAKESPEARE", server.url("input.txt"))
        made = prepare("shakespeare")
        assert prepare("shakespeare").path == made.path and server.requests == ["input.txt"]
    assert (made.characters, made.vocab_size) == (1_115_394, 65)
    assert (len(made.train), len(made.validation)) == (1_003_854, 111_540)             # nanoGPT's figures
    assert made.sha256 == sources.SHAKESPEARE_SHA256


def test_shakespeare_without_internet_says_what_to_do(here, monkeypatch):
    monkeypatch.setattr(sources, "SHAKESPEARE", "http://127.0.0.1:9/input.txt")
    with pytest.raises(download.DownloadError, match="(?s)refused.*give the path .* python-docs"):
        prepare("shakespeare")
