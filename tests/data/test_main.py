import subprocess
import sys

import pytest

from data import sources
from data.__main__ import main


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIGPT_CACHE", str(tmp_path / "cache"))


def test_prepare_tells_what_came_of_it_and_what_to_beat(capsys, tmp_path):
    (tmp_path / "a.txt").write_text("to be or not to be\n" * 200)
    assert main(["prepare", str(tmp_path / "a.txt"), "--tokenizer", "bpe", "--vocab-size", "260"]) == 0
    out, err = capsys.readouterr()
    assert "a: 3,800 characters, vocabulary of 260 (bpe)" in out and "begins with 'to be" in out
    assert "nats a token by counting tokens" in out and "learning 260 tokens" in err


def test_list_names_every_corpus_and_what_is_in_the_cache(capsys, tmp_path):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in [*sources.NAMED, "mnist"]) and "nothing yet" in out
    (tmp_path / "a.txt").write_text("abc")
    main(["prepare", str(tmp_path / "a.txt")])
    main(["list"])
    out = capsys.readouterr().out
    assert "1 files:" in out and "corpora/a-" in out and ".lock" not in out


def test_get_has_nothing_to_do_for_what_is_there(capsys):
    assert main(["get", "python-docs"]) == 0
    assert "python-docs is there, SHA-256" in capsys.readouterr().out


def test_faults_are_one_message_and_a_status(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "SHAKESPEARE", "http://127.0.0.1:9/input.txt")
    (tmp_path / "binary").write_bytes(b"ab\0")
    for arguments, message in [(["prepare", "python-dosc"], "did you mean 'python-docs'"),
                               (["prepare", str(tmp_path / "binary")], "byte 2 is 0x00"),
                               (["prepare", "python-docs", "--vocab-size", "9"], "vocab_size=9"),
                               (["get", "shakespeare"], "Without internet")]:
        assert main(arguments) == 1
        out, err = capsys.readouterr()
        assert message in err and "error: " in err and "Traceback" not in err and not out


@pytest.mark.parametrize("command", [[], ["list"], ["get"], ["prepare"]])
def test_help_shows_examples(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([*command, "--help"])
    assert end.value.code == 0
    assert "python -m data prepare python-stdlib --tokenizer bpe" in capsys.readouterr().out


def test_it_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "data", "list"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "python-docs" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error():
    code = "import sys; from data.__main__ import main; sys.exit(main(['list']))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        job.stdout.close()
        assert job.stderr.read() == b"" and job.wait() == 141
