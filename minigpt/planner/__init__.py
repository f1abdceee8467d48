"""The arithmetic of a run: what it needs before it is started. Imports neither the tape nor MPI."""

from minigpt.planner.memory import describe_memory, memory, shortage
from minigpt.planner.parameters import count, describe_parameters

__all__ = ["count", "describe_memory", "describe_parameters", "memory", "shortage"]
