"""Stochastic gradient descent with momentum."""

from autograd.backend import xp
from minigpt.flat import empty_like
from minigpt.optim.tiles import scratch, tiles


class SGD:
    """On the buffers of a Flat:  v = momentum v + g + decay p,  p = p - lr v.  (Decay for parameters that decay.)"""

    def __init__(self, flat, momentum=0.0, weight_decay=0.0):
        self.flat, self.momentum, self.weight_decay = flat, momentum, weight_decay
        self.steps = 0
        self.moments = {"velocity": empty_like(flat)} if momentum else {}
        self._decayed = [(flat.data[run], flat.grad[run]) for run in flat.decayed()] if weight_decay else []
        self._tiles, self._scratch = tiles(flat, *self.moments.values()), scratch(flat)

    def step(self, lr, scale=1.0):
        """Update the weights by the gradient times `scale` (a number, or a 0-d array of the device)."""
        self.steps += 1
        if not (isinstance(scale, float) and scale == 1):
            xp.multiply(self.flat.grad, scale, out=self.flat.grad)
        for p, g in self._decayed:
            g += self.weight_decay * p
        for p, g, *velocity, _ in self._tiles:
            u = self._scratch[:len(p)]
            for v in velocity:
                xp.multiply(v, self.momentum, out=v)
                xp.add(v, g, out=v)
                g = v
            xp.multiply(g, lr, out=u)
            xp.subtract(p, u, out=p)
