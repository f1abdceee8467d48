"""Five lines: mpirun -n 2 python examples/all_reduce.py"""
import numpy as np

import comm

group = comm.world()
total = group.all_reduce(np.array([1, 2, 3]))
print(f"rank {group.rank} of {group.size}: {total}")
