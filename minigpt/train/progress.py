"""What a person sees of a run while it goes on."""

import sys
import time

EVERY = 5.0                 # seconds between lines where they stay, such as in a file or under mpirun


class Progress:
    """Lines of step, loss, speed, learning rate, gradient norm and remaining time.

    On a terminal one line is written over again; elsewhere a line comes every few seconds. (A rank under mpirun
    writes to a terminal that may lead into a file; that it has no keyboard tells.)
    """

    def __init__(self, max_steps, stream=None, clock=time.monotonic):
        self.max_steps, self.clock = max_steps, clock
        self.stream = stream or sys.stdout
        self.overwrites = self.stream.isatty() and sys.stdin is not None and sys.stdin.isatty()
        self._last, self._width = -EVERY, 0

    def step(self, step, loss, tokens_per_second, lr, norm, seconds_left, last=False):
        """`step` is done; it is shown if the last line is old enough, or if it is the `last` one."""
        now = self.clock()
        if not (self.overwrites or last or now - self._last >= EVERY):
            return
        self._last = now
        line = (f"step {step:>{len(f'{self.max_steps:,}')},}/{self.max_steps:,}  loss {loss:.4f}  "
                f"{tokens_per_second:,.0f} tokens/s  lr {lr:.2e}  gradient {norm:.3f}  {duration(seconds_left)} left")
        self._write(line, end="" if self.overwrites and not last else "\n")

    def say(self, line=""):
        """A line that stays."""
        if self._width:
            self._write("", "")
        print(line, file=self.stream, flush=True)

    def _write(self, line, end):
        start = "\r" if self.overwrites else ""
        print(start + line.ljust(self._width), end=end or start, file=self.stream, flush=True)
        self._width = len(line) if self.overwrites and not end else 0


def duration(seconds):
    """0:07, 3:12, 1:02:03"""
    hours, rest = divmod(round(seconds), 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def size(count):
    """Bytes for a reader: 512 B, 3.4 MB, 1.2 GB (powers of 1,000)."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"
