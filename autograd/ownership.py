"""Who else can see this array?

A tuned twin may overwrite its input, or the gradient it is given, if nobody else refers to that
memory.  Reference counts answer: a Tensor, a saved activation, a view or a lazy gradient each hold
one.  False is always a safe answer; the counts that mean "alone" are measured at import on arrays
that are alone, so an interpreter that counts otherwise is followed.
"""

from sys import getrefcount

import numpy as np

from autograd.rank import rank

_holder = [object()]
_HELD_ONCE = getrefcount(_holder[0])           # by its list, and by getrefcount's own argument


def alone(holder, index):
    """Whether `holder[index]` and its memory are referred to by `holder` only, and may be written."""
    return getrefcount(holder[index]) == _HELD_ONCE and _memory_alone(holder[index])


def _memory_alone(array):
    """Whether no other array refers to the memory of this one."""
    if type(array) is not np.ndarray or not array.flags.writeable:
        return False
    base = array.base
    if base is None:
        return True
    kept = 2 if rank.arena is not None and rank.arena.owns(base) else 0      # by the arena's list and table
    return type(base) is np.ndarray and getrefcount(base) == _HELD_ONCE + 1 + kept


class HandedOver:
    """Whether the first input of an op was made for this call alone, as in `cross_entropy(model(x), y)`.

    Three counts must be as low as in such a call: of the tuple of inputs (a caller's own tuple may
    arrive as it is), of the first tensor in it, and of that tensor's array.
    """

    def __init__(self):
        self.expected = None

    def __call__(self, inputs):
        counts = getrefcount(inputs), getrefcount(inputs[0]), getrefcount(inputs[0].data)
        if self.expected is None:
            self.expected = counts
        return counts == self.expected and _memory_alone(inputs[0].data)


handed_over = HandedOver()
