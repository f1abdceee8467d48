"""gloo, the CPU backend of torch.distributed, among the contenders if torch is installed. It talks over TCP."""

import socket

import numpy as np

from comm.bench.contenders import Contender, nothing

ADDRESS = "127.0.0.1"


class Gloo:
    """The ranks of `group`, all of one host, connected by gloo as well; `available` says whether that worked."""

    def __init__(self, group):
        self.reason, self._dist, self._torch = "", None, None
        try:
            import torch
            import torch.distributed as dist
        except ImportError:
            self.reason = "torch is not installed"
        if len(set(group.nodes)) > 1:
            self.reason = "the ranks are on several hosts"
        if group.all_reduce(int(bool(self.reason)), "max"):
            self.reason = self.reason or "not on all ranks"
            return
        torch.set_num_threads(1)
        port = group.broadcast(np.array(_free_port() if group.rank == 0 else 0))
        store = dist.TCPStore(ADDRESS, int(port), group.size, group.rank == 0)
        dist.init_process_group("gloo", store=store, rank=group.rank, world_size=group.size)
        self._torch, self._dist = torch, dist

    @property
    def available(self):
        return self._dist is not None

    def contender(self, data, arena):
        """gloo's own collective on private memory, or None if it has none."""
        if not self.available or data.collective in ("reduce_scatter", "all_to_all", "gather", "scatter"):
            return None
        buffer, out = (row[:data.count] for row in arena.private)
        tensor, dist = self._torch.from_numpy(buffer), self._dist
        parts = list(self._torch.from_numpy(out.reshape(data.size, -1))) if data.count % data.size == 0 else []
        run = {"all_reduce": lambda: dist.all_reduce(tensor),
               "reduce": lambda: dist.reduce(tensor, data.root),
               "broadcast": lambda: dist.broadcast(tensor, data.root),
               "all_gather": lambda: dist.all_gather(parts, parts[data.rank]),
               "barrier": dist.barrier}[data.collective]
        silent = data.collective == "barrier" or data.collective == "reduce" and data.rank != data.root
        work = out if data.collective == "all_gather" else buffer
        return Contender("gloo", "tcp", run, lambda: data.fill(work), nothing if silent else lambda: work,
                         lambda: work.fill(0))

    def close(self):
        if self.available:
            self._dist.destroy_process_group()


def _free_port():
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return probe.getsockname()[1]
