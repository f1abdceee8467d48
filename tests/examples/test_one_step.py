import re

import numpy as np

import comm
from examples import one_step
from tests.examples.running import REPOSITORY, run

READING_ORDER = ["minigpt/train/step.py", "minigpt/models/gpt.py", "minigpt/layers/attention.py",
                 "autograd/ops/attention.py", "autograd/tape.py", "minigpt/parallel/data_parallel.py",
                 "comm/group.py", "comm/algorithms/ring.py", "comm/execute.py", "minigpt/optim/adamw.py"]


def test_the_walk_takes_the_step_that_the_library_takes():
    walked, ran = comm.run(2, one_step.walk), comm.run(2, one_step.run)
    assert len({loss for loss, _ in walked + ran}) == 1
    for _, weights in walked + ran:
        np.testing.assert_array_equal(weights, walked[0][1])


def test_it_stops_at_ten_files_in_reading_order():
    said = run("one_step.py")
    stops = re.findall(r"^ ?\d+  ([\w/]+\.py)", said, re.MULTILINE)
    assert stops == READING_ORDER and all((REPOSITORY / stop).is_file() for stop in stops)
    assert "equal to the last bit: True" in said
    assert "1.000 0.000 0.000 0.000 0.000 0.000" in said            # the first position sees itself only
