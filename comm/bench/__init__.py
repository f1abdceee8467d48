"""Collectives measured beside MPI's own, in one run, with every result checked: `python -m comm bench`."""
