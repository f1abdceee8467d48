"""What one rank does on its pretended GPU: current device, unfinished work, transfers counted."""
import contextlib
import threading


class Rank(threading.local):
    """What one rank (thread) did: transfers and launches, its device, the devices with unfinished work."""

    d2h = h2d = launches = device = 0
    forbidden = False

    def __init__(self):
        self.dirty = set()

    def wait(self, what):
        """Count a device-to-host transfer: the host waits until the stream is empty."""
        if self.forbidden:
            raise RuntimeError(f"{what} waits for the device where no_synchronization() forbids it: "
                               "keep the value on the device, or read it later")
        self.d2h += 1
        self.dirty.discard(self.device)


stats = Rank()


@contextlib.contextmanager
def no_synchronization():
    """Inside, a device-to-host transfer of this rank, also a hidden one, raises RuntimeError."""
    before, stats.forbidden = stats.forbidden, True
    try:
        yield
    finally:
        stats.forbidden = before


class Device:
    """cupy.cuda.Device: `with Device(1):` or `.use()` makes it this rank's current one."""

    def __init__(self, device=None):
        self.id = stats.device if device is None else device

    def use(self):
        stats.device = self.id

    def __enter__(self):
        self._before, stats.device = stats.device, self.id
        return self

    def __exit__(self, *exception):
        stats.device = self._before

    def __eq__(self, other):
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self):
        return hash(self.id)

    def __repr__(self):
        return f"<strict Device {self.id}>"

    def synchronize(self):
        stats.dirty.discard(self.id)


class Stream:
    """The current stream of this rank's current device."""

    ptr = 0

    def synchronize(self):
        stats.dirty.discard(stats.device)


class Cuda:
    """The part of cupy.cuda that needs no kernel."""

    Device, Stream = Device, Stream
    get_current_stream = staticmethod(Stream)

    @staticmethod
    def is_available():
        return True
