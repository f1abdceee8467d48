"""A rank that, asked to stop, still works for a while, saves, and leaves with 0.

    stubborn_rank.py FOLDER SECONDS     writes FOLDER/ready.R at once, FOLDER/saved.R SECONDS after the signal
"""

import signal
import sys
import time
from pathlib import Path

import numpy as np

import comm
from minigpt.launch import STOP_SIGNALS

folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
asked = []
for number in STOP_SIGNALS:
    signal.signal(number, lambda number, frame: asked.append(signal.Signals(number).name))

group = comm.world()
group.barrier()
(folder / f"ready.{group.rank}").touch()
step = 0
while not group.all_reduce(np.array([len(asked)]))[0]:      # every rank stops at the same step
    step += 1
    time.sleep(0.02)
time.sleep(seconds)
(folder / f"saved.{group.rank}").write_text(f"{step} {asked}")
