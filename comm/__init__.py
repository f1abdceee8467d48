"""Collectives from sends and receives: `comm.world()` under mpirun, `comm.run(n, function)` in one process.

    import comm
    group = comm.world()
    print(group.all_reduce([1, 2, 3]))      # on 2 ranks: [2 4 6]
"""

from comm import device
from comm.check import Mismatch
from comm.group import Group
from comm.ledger import Ledger
from comm.schedule import bounds
from comm.threads import Deadlock
from comm.world import run, world

__all__ = ["Deadlock", "Group", "Ledger", "Mismatch", "bounds", "device", "run", "world"]
