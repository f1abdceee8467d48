"""The commands of `python -m comm`: one module each, whose add(commands) registers it."""

from comm.commands import bench, prove, simulate, table

COMMANDS = [
    table,
    bench,
    prove,
    simulate,
]
