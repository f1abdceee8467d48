"""Messages between two ranks, for arrays of any kind."""

from operator import index

import numpy as np

from comm import buffers
from comm.device import device_of, host
from comm.execute import COLLECTIVE_TAG


class PointToPoint:
    """send, recv and sendrecv of a Group, which gives it an endpoint, a ledger and what is in flight."""

    def send(self, array, to, tag=0):
        """Send to rank `to`; returns when the array may be changed, which may be when it has been received.

        tag: 0 to 16383; messages between two ranks with one tag arrive in order. Raises ValueError for an
        unknown rank or tag.
        """
        self._message("send", buffers.as_array(array), to, None, None, tag)

    def recv(self, source, out=None, shape=None, dtype=None, tag=0):
        """The array that rank `source` sends with this tag, in `out`, or new with this shape and dtype.

        Raises ValueError if what comes has another number of bytes.
        """
        if out is None:
            if shape is None or dtype is None:
                raise ValueError("recv must know what comes: pass out=, or shape= and dtype=")
            out = host.like(shape_of(shape), dtype)
        return self._message("recv", None, None, out, source, tag)

    def sendrecv(self, array, to, source, out=None, shape=None, dtype=None, tag=0):
        """Send `array` and receive at the same time; what comes is shaped like `array` unless told."""
        array = buffers.as_array(array)
        if out is None:
            shape = array.shape if shape is None else shape_of(shape)
            out = device_of(array).like(shape, array.dtype if dtype is None else dtype)
        return self._message("sendrecv", array, to, out, source, tag)

    def _message(self, operation, array, to, out, source, tag):
        if not 0 <= index(tag) < COLLECTIVE_TAG:
            raise ValueError(f"tag={tag}: expected 0 to {COLLECTIVE_TAG - 1}")
        endpoint, sends, receives, devices = self._endpoint, [], [], []
        endpoint.operation = operation
        if array is not None:
            there = buffers.contiguous(array, endpoint.takes_devices)
            if out is not None and buffers.overlap(there, out):
                there = buffers.copy_of(there)  # what comes must not replace what has yet to go
            sends = [(there.reshape(-1), self._peer(to))]
            devices.append(device_of(there))
        if out is not None:
            buffers.check_writable(out)
            here = buffers.landing(out, endpoint.takes_devices)
            receives = [(here.reshape(-1), self._peer(source))]
            devices.append(device_of(out))
        for device in devices:
            device.synchronize()
        if self._flights:
            requests = endpoint.post(sends, receives, tag)
            self._flights.carry_on(lambda: endpoint.test(requests))
        else:
            for call in endpoint.exchange(sends, receives, tag):
                call()
        if sends:
            view, peer = sends[0]
            self.ledger.message(operation, self.ranks[peer], endpoint.pieces(view), view.nbytes)
        else:
            self.ledger.message(operation, None, 0, 0)
        if out is not None and here is not out:
            device_of(out).copy(out, here)
        return out

    def _peer(self, rank):
        rank = index(rank)
        if not 0 <= rank < self.size:
            raise ValueError(f"rank {rank} is not in this group: expected 0 to {self.size - 1}")
        return rank


def shape_of(shape):
    lengths = tuple(map(index, np.atleast_1d(shape).tolist()))
    if min(lengths, default=0) < 0:
        raise ValueError(f"shape={shape}: expected lengths from 0")
    return lengths
