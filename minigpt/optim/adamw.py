"""Adam with decoupled weight decay: https://arxiv.org/abs/1711.05101."""

from math import sqrt

from autograd.backend import xp
from minigpt.flat import empty_like
from minigpt.optim.tiles import scratch, tiles


class AdamW:
    """On the buffers of a Flat, for its step t = 1, 2, ...

        m = beta1 m + (1 - beta1) g        p = p (1 - lr decay)        for parameters that decay
        v = beta2 v + (1 - beta2) g²       p = p - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)

    What is kept is M = m / (1 - beta1) and V = v / (1 - beta2), so that a step takes ten passes over a tile that
    stays in the cache (and one more where the weights decay):  M = beta1 M + g,  V = beta2 V + g²,  and with
    r = sqrt((1 - beta2) / (1 - beta2^t)) the last line is

        p = p - (lr (1 - beta1) / (1 - beta1^t) / r) M / (sqrt(V) + eps / r)
    """

    def __init__(self, flat, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1):
        self.flat, self.betas, self.eps, self.weight_decay = flat, betas, eps, weight_decay
        self.steps = 0
        self.moments = {"first_moment": empty_like(flat), "second_moment": empty_like(flat)}
        self._tiles, self._scratch = tiles(flat, *self.moments.values()), scratch(flat)

    def step(self, lr, scale=1.0):
        """Update the weights by the gradient times `scale` (a number, or a 0-d array of the device)."""
        self.steps += 1
        beta1, beta2 = self.betas
        r = sqrt((1 - beta2) / (1 - beta2**self.steps))
        rate, eps = lr * (1 - beta1) / (1 - beta1**self.steps) / r, self.eps / r
        keep = 1 - lr * self.weight_decay
        scaled = not (isinstance(scale, float) and scale == 1)
        for p, g, m, v, runs in self._tiles:
            u = self._scratch[:len(p)]
            if scaled:
                xp.multiply(g, scale, out=g)
            xp.multiply(m, beta1, out=m)
            xp.add(m, g, out=m)
            xp.multiply(v, beta2, out=v)
            xp.multiply(g, g, out=u)
            xp.add(v, u, out=v)
            xp.sqrt(v, out=u)
            xp.add(u, eps, out=u)
            xp.divide(m, u, out=u)
            xp.multiply(u, rate, out=u)
            for run in runs:
                xp.multiply(run, keep, out=run)
            xp.subtract(p, u, out=p)
