import hashlib
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from data import download
from data.download import DownloadError, fetch
from tests.data.server import CONTENT, serving

SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def quick_and_direct(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "TIMEOUT", 0.5)
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)


def get(path, *addresses, say=lambda line: None):
    return fetch(addresses, path, SHA256, "Give a path instead.", say)


def test_a_file_arrives_once_and_is_not_asked_for_again(tmp_path):
    path = tmp_path / "new" / "folder" / "file"
    lines = []
    with serving("good") as server:
        for _ in range(2):
            assert get(path, server.url(), say=lines.append).read_bytes() == CONTENT
    assert server.requests == ["file"]
    assert lines[-1].endswith("256,000 bytes of 256,000")
    assert {each.name for each in path.parent.iterdir()} <= {"file", "file.lock"}


@pytest.mark.parametrize("first", ["short", "reset", "drip", 503])
def test_what_may_pass_is_tried_again(tmp_path, first):
    with serving(first, "good") as server:
        assert get(tmp_path / "file", server.url()).read_bytes() == CONTENT
    assert len(server.requests) == 2


@pytest.mark.parametrize("fault, message, requests", [
    ("short", "connection ended 128,000 bytes before the end", download.ATTEMPTS),
    ("reset", "reset by peer", download.ATTEMPTS),
    ("drip", "timed out", download.ATTEMPTS),
    ("wrong", f"not the file that is meant: .* expected {SHA256}", 1),
    (404, "HTTP Error 404", 1),
    (500, "HTTP Error 500", download.ATTEMPTS)])
def test_what_stays_wrong_is_said_with_the_way_out_and_leaves_nothing(tmp_path, fault, message, requests):
    with serving(fault) as server:
        with pytest.raises(DownloadError, match=f"(?s)not download file:.*{message}.*Give a path instead"):
            get(tmp_path / "file", server.url())
    assert len(server.requests) == requests
    assert not (tmp_path / "file").exists() and not list(tmp_path.glob("*.part"))


def test_a_server_that_does_not_say_the_length_is_fine(tmp_path):
    with serving("unsized") as server:
        assert get(tmp_path / "file", server.url()).read_bytes() == CONTENT


def test_the_next_mirror_is_asked(tmp_path):
    with serving(404) as bad, serving("good") as good:
        assert get(tmp_path / "file", bad.url(), good.url()).read_bytes() == CONTENT
        assert len(bad.requests) == len(good.requests) == 1


def test_a_server_that_is_gone_and_a_host_that_is_none_are_named_at_once(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{free.getsockname()[1]}/file"
        with pytest.raises(DownloadError, match=r"(?s)127\.0\.0\.1.*refused.*unknown url type.*Give a path"):
            get(tmp_path / "file", gone, "nonsense://host/file")


def test_a_server_that_drips_for_ever_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "PATIENCE", -1)
    monkeypatch.setattr(download, "SLOWEST", 10**9)
    with serving("good") as server, pytest.raises(DownloadError, match="bytes came in"):
        get(tmp_path / "file", server.url())


def test_a_damaged_file_is_downloaded_again(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(CONTENT[:-1])
    with serving("good") as server:
        assert get(path, server.url()).read_bytes() == CONTENT


def test_what_was_left_by_a_killed_download_does_no_harm(tmp_path):
    (tmp_path / "file.part").write_bytes(b"half")
    with serving("good") as server:
        assert get(tmp_path / "file", server.url()).read_bytes() == CONTENT
    assert not (tmp_path / "file.part").exists()


def test_several_at_once_download_once(tmp_path):
    with serving("good") as server, ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: get(tmp_path / "file", server.url()), range(4)))
        assert all(path.read_bytes() == CONTENT for path in paths) and len(server.requests) == 1


def test_a_cache_that_cannot_be_written_is_named_with_what_to_set(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="cannot write to the cache folder .* set MINIGPT_CACHE"):
        get(tmp_path / "file" / "below", "http://127.0.0.1:9/")
