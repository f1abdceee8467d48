"""Tuned twins of ops, tried where their `when` says so; every one equals its formula (tests/autograd/fused).

Imported by `autograd` on the CPU.  The formulas in `autograd/ops` stay what a reader reads and what
every other device runs.
"""

from autograd.fused import activation, attention, linear, loss, normalization

__all__ = ["activation", "attention", "linear", "loss", "normalization"]
