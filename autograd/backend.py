"""The array module, chosen once."""

import numpy as xp

device = "cpu"
