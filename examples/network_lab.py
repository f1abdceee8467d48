"""Several hosts on one machine, joined by a network whose latency and bandwidth you choose.

    python examples/network_lab.py ip -brief address                          what host h0 has
    python examples/network_lab.py --hosts 4 --delay 5 --rate 10 bash    a shell on h0; h1 to h3 are there too

Needs root on Linux with /dev/net/tun. A host is a set of namespaces (network, name, mounts, processes) that ends when
this program ends, however it ends, and with it all that runs there. Each host has a TUN device: what it sends is read
here, kept for as long as the wire would take, and written to the device of the host that it is meant for.
"""

import argparse
import contextlib
import fcntl
import os
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from pathlib import Path

TUN = "/dev/net/tun"
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
PROGRAMS = ("ip", "unshare", "nsenter", "mount", "hostname", "sh")
MTU = 9000                  # bytes of a packet: few of them, as each one passes through Python
QUEUE = 0.5                 # seconds that a packet may wait to leave its host, before it is dropped

HOLD = """hostname {name} && mount --bind {hosts} /etc/hosts && ip link set lo up && echo up && exec cat"""
AGENT = """#!/bin/sh
# What ssh does for others: run a command on a host, `agent HOST COMMAND...`.
while case $1 in -*) true;; *) false;; esac; do shift; done
host=$1; shift
pid=$(cat {folder}/$host)
export TMPDIR={folder}/tmp.$host   # two hosts may have the same process numbers, which name files in there
mkdir -p $TMPDIR
exec nsenter --net=/proc/$pid/ns/net --uts=/proc/$pid/ns/uts --mount=/proc/$pid/ns/mnt \\
    --pid=/proc/$pid/ns/pid_for_children sh -c "$*"
"""


class Unavailable(RuntimeError):
    """This machine cannot be several hosts; the message says why."""


class Lab:
    """Hosts h0, h1, ... at 10.77.0.1, 10.77.0.2, ... while a `with` statement lasts.

    delay: seconds one way. rate: bytes per second that leave a host. Raises Unavailable.
    agent: a program that runs a command on a host, as ssh would; mpirun can use it.
    """

    def __init__(self, hosts, delay, rate):
        self.names = [f"h{i}" for i in range(hosts)]
        self.delay, self.rate = delay, rate
        self._open = contextlib.ExitStack()

    def __enter__(self):
        check()
        with self._open as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="network_lab.")))
            self._write_files()
            self._pids = [stack.enter_context(self._host(name)) for name in self.names]
            devices = [stack.enter_context(self._device(i)) for i in range(len(self.names))]
            stack.enter_context(switching(devices, self.delay, self.rate))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *error):
        self._open.close()

    def command(self, words):
        """The words that run `words` on host h0. Of its processes they see all, to start some on other hosts."""
        pid = self._pids[0]
        return ["nsenter", f"--net=/proc/{pid}/ns/net", f"--uts=/proc/{pid}/ns/uts", f"--mount=/proc/{pid}/ns/mnt",
                "sh", "-c", f"cd {shlex.quote(os.getcwd())} && exec {shlex.join(words)}"]

    def _write_files(self):
        lines = [f"10.77.0.{i} {name}\n" for i, name in enumerate(self.names, 1)]
        (self._folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))
        self.agent = self._folder / "agent"
        self.agent.write_text(AGENT.format(folder=self._folder))
        self.agent.chmod(0o755)

    @contextlib.contextmanager
    def _host(self, name):
        """A process that holds the namespaces of a host; they end with it, and it when its input is closed."""
        script = HOLD.format(name=name, hosts=self._folder / "hosts")
        holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        with holder:
            try:
                if holder.stdout.readline() != "up\n":
                    raise Unavailable(f"a host cannot be made: {holder.stderr.read().strip()}")
                (self._folder / name).write_text(str(holder.pid))
                yield holder.pid
            finally:
                holder.kill()

    @contextlib.contextmanager
    def _device(self, number):
        """The file of a TUN device that stands in host `number`."""
        device, pid, name = os.open(TUN, os.O_RDWR | os.O_NONBLOCK), self._pids[number], f"lab{os.getpid()}.{number}"
        try:
            fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
            call("ip", "link", "set", name, "netns", str(pid))
            inside = ["nsenter", f"--net=/proc/{pid}/ns/net", "ip"]
            call(*inside, "address", "add", f"10.77.0.{number + 1}/24", "dev", name)
            call(*inside, "link", "set", name, "mtu", str(MTU), "txqueuelen", "5000", "up")
            yield device
        except OSError as error:
            raise Unavailable(f"a TUN device cannot be made: {error}") from error
        finally:
            os.close(device)


def check():
    """Raises Unavailable if it is known at once that this machine cannot be several hosts."""
    if not sys.platform.startswith("linux"):
        raise Unavailable(f"network namespaces are Linux's; this is {sys.platform}")
    if os.geteuid() != 0:
        raise Unavailable("network namespaces and TUN devices need root")
    if not os.access(TUN, os.R_OK | os.W_OK):
        raise Unavailable(f"there is no {TUN} to write to")
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        raise Unavailable(f"not installed: {', '.join(missing)} (Debian: apt install iproute2 util-linux)")


def call(*words):
    """Run a program. Raises Unavailable with what it says if it fails."""
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise Unavailable(f"{shlex.join(words)}: {ended.stderr.strip()}")


@contextlib.contextmanager
def switching(devices, delay, rate):
    """A thread that carries packets between the devices as long as the `with` statement lasts."""
    wake, end = os.pipe()
    thread = threading.Thread(target=Switch(devices, wake, delay, rate).run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.close(end)
        thread.join()
        os.close(wake)


class Switch:
    """Packets leave a host at `rate` bytes a second, one after the other, and arrive `delay` seconds later."""

    def __init__(self, devices, stop, delay, rate):
        self._devices, self._stop, self._delay, self._rate = devices, stop, delay, rate
        self._free = [0.0] * len(devices)                   # when the wire of each host is free again
        self._flying = [deque() for _ in devices]           # of each source: (arrival, target, packet), in order

    def run(self):
        with contextlib.suppress(OSError):                  # first in line for a core, if that is allowed
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        while True:
            wait = self._deliver()
            ready, _, _ = select.select([*self._devices, self._stop], [], [], wait)
            if self._stop in ready:
                return
            for source, device in enumerate(self._devices):
                if device in ready:
                    self._take(source, device)

    def _deliver(self):
        """Write what has arrived; returns the seconds until the next packet will have, or None."""
        for flying in self._flying:
            while flying and flying[0][0] <= time.monotonic():
                _, target, packet = flying.popleft()
                with contextlib.suppress(BlockingIOError):  # the host does not keep up: its packet is lost
                    os.write(self._devices[target], packet)
        arrivals = [flying[0][0] for flying in self._flying if flying]
        return max(0.0, min(arrivals) - time.monotonic()) if arrivals else None

    def _take(self, source, device):
        """Read what a host sends, at most 32 packets at a time."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(32):
                packet = os.read(device, 65535)
                target = packet[19] - 1                     # the last byte of the IPv4 address that it goes to
                now = time.monotonic()
                left = max(self._free[source], now) + len(packet) / self._rate
                if packet[0] >> 4 == 4 and 0 <= target < len(self._devices) and left - now <= QUEUE:
                    self._free[source] = left
                    self._flying[source].append((left + self._delay, target, packet))


def add_options(parser):
    parser.add_argument("--hosts", type=int, default=4, help="how many (default 4)")
    parser.add_argument("--delay", type=float, default=1.0, metavar="MS", help="milliseconds one way (default 1)")
    parser.add_argument("--rate", type=float, default=100.0, metavar="MBIT",
                        help="million bits per second that leave a host (default 100)")


def lab_of(options):
    """The Lab of parsed options. Raises ValueError for numbers that make none."""
    if not (2 <= options.hosts <= 64 and options.delay >= 0 and options.rate > 0):
        raise ValueError(f"--hosts {options.hosts} --delay {options.delay:g} --rate {options.rate:g}: expected 2 to 64 "
                         "hosts, a delay of 0 or more and a rate above 0")
    return Lab(options.hosts, options.delay / 1e3, options.rate * 1e6 / 8)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what host h0 runs, such as: ping h1")
    options = parser.parse_args(argv)
    if not options.command:
        parser.error("what shall host h0 run? For example: ping -c 3 h1")
    try:
        with lab_of(options) as lab:
            return subprocess.run(lab.command(options.command), check=False).returncode
    except ValueError as error:
        parser.error(str(error))
    except Unavailable as reason:
        print(f"Skipped: {reason}")
        return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))     # by way of every `with` and `finally`
    sys.exit(main())
