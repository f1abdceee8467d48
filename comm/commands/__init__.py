"""The commands of `python -m comm`: one module each, whose add(commands) registers it."""

from comm.commands import bench, prove, simulate, table, why

COMMANDS = [
    table,
    why,
    bench,
    prove,
    simulate,
]
