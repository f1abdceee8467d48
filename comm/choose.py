"""Interim: fixed choices, until the measured ones are here (Choice has a third field: window; Chooser.named gives options)."""
from typing import NamedTuple
class Choice(NamedTuple):
    algorithm: str
    options: dict = {}
    window: bool = False
D = {"all_reduce": "ring", "reduce": "binomial", "broadcast": "binomial", "all_gather": "ring", "reduce_scatter": "ring",
     "all_to_all": "pairwise", "gather": "binomial", "scatter": "binomial"}
class Chooser:
    def __init__(self, endpoint): self.endpoint = endpoint
    def pick(self, collective, nbytes, window=False):
        from comm.algorithms import ALGORITHMS
        if collective == "all_reduce" and nbytes <= 8192: return Choice("recursive_doubling_all_reduce")
        if window and nbytes >= 65536 and f"direct_{collective}" in ALGORITHMS: return Choice(f"direct_{collective}", {}, True)
        return Choice(f"{D[collective]}_{collective}")
    def named(self, name, nbytes):
        return Choice(name, {"nodes": self.endpoint.nodes} if name.startswith("hier") else {"segments": 4} if name.startswith(("chain", "double")) else {})
