import os
import signal
import subprocess
import sys
import time
from argparse import Namespace

import pytest

from examples import network_lab as example
from tests.examples.running import EXAMPLES, run


@pytest.fixture
def hosts():
    """A Lab of three hosts, 20 ms apart; a skipped test where this machine cannot be several hosts."""
    try:
        with example.Lab(3, delay=0.02, rate=1e6) as lab:
            yield lab
    except example.Unavailable as reason:
        pytest.skip(str(reason))


SLEEP = f"sleep 61.{os.getpid()}"        # no other test's
ECHO = """
import socket, sys, time
here = socket.create_server(("", 5000))
print("up", flush=True)
wire, _ = here.accept()
got = b""
while len(got) < int(sys.argv[1]):
    got += wire.recv(1 << 16)
wire.sendall(b"!")
"""
CALL = """
import socket, sys, time
start = time.perf_counter()
wire = socket.create_connection(("h1", 5000))
met = time.perf_counter()
wire.sendall(bytes(int(sys.argv[1])))
wire.recv(1)
print(met - start, time.perf_counter() - met)
"""


def test_a_message_takes_the_delay_both_ways_and_its_bytes_their_time(hosts):
    nbytes = 300_000
    there = subprocess.Popen([str(hosts.agent), "h1", f"{sys.executable} -c '{ECHO}' {nbytes}"],
                             stdout=subprocess.PIPE, text=True)
    assert there.stdout.readline() == "up\n"
    said = subprocess.run(hosts.command([sys.executable, "-c", CALL, str(nbytes)]), stdout=subprocess.PIPE, text=True,
                          check=True, timeout=30).stdout
    meeting, sending = map(float, said.split())
    assert meeting >= 0.04
    assert sending >= 0.3
    assert there.wait(10) == 0


def test_each_host_has_its_own_name_and_knows_the_others(hosts):
    ask = lambda words: subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=30).stdout
    assert ask(hosts.command(["hostname"])) == "h0\n"
    assert ask([str(hosts.agent), "-x", "h2", "hostname; getent hosts h1"]).split() == ["h2", "10.77.0.2", "h1"]
    assert "10.77" not in ask(["cat", "/etc/hosts"])


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_hosts_end_with_the_program_however_it_ends(end, hosts, tmp_path):
    """`hosts` is here for its skip only."""
    note = tmp_path / "pid"
    on_another = f"{{agent}} h1 '{SLEEP}' & echo $! > {note}; wait"
    program = (f"from examples import network_lab as n; import subprocess, signal\n"
               f"signal.signal(signal.SIGINT, signal.default_int_handler)\n"
               f"with n.Lab(2, 0.001, 1e6) as lab:\n"
               f"    subprocess.run(lab.command(['sh', '-c', {on_another!r}.replace('{{agent}}', str(lab.agent))]))")
    process = subprocess.Popen([sys.executable, "-c", program], cwd=EXAMPLES.parent, stderr=subprocess.DEVNULL,
                               env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent), "TMPDIR": str(tmp_path)},
                               start_new_session=True)
    until(lambda: note.exists() and note.read_text().strip() and sleepers())
    process.send_signal(end)
    process.wait(20)
    until(lambda: not sleepers())


def sleepers():
    return subprocess.run(["pgrep", "-f", f"^{SLEEP}"], stdout=subprocess.PIPE, check=False).stdout


def until(happens, seconds=20):
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


@pytest.mark.parametrize("wrong", [{"hosts": 1}, {"hosts": 65}, {"delay": -1.0}, {"rate": 0.0}])
def test_numbers_that_make_no_network_are_refused(wrong):
    with pytest.raises(ValueError, match="expected 2 to 64 hosts"):
        example.lab_of(Namespace(**{"hosts": 4, "delay": 1.0, "rate": 100.0, **wrong}))


def test_where_there_is_no_right_to_make_hosts_the_reason_is_said(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(example.Unavailable, match="need root"):
        example.check()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(example.Unavailable, match="this is darwin"):
        example.check()


def test_a_command_runs_on_the_first_host():
    assert run("network_lab.py", "hostname").startswith(("h0\n", "Skipped: "))
