"""The commands of `python -m comm`: one module each, whose add(commands) registers it."""

from comm.commands import bench, draw, prove, simulate, table, why

COMMANDS = [
    table,
    draw,
    why,
    bench,
    prove,
    simulate,
]
