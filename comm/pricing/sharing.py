"""How messages that are under way at the same time share the links: max-min fairness.

All rates grow alike until a link is full; the messages on it keep their rate, the others grow on (progressive
filling: Bertsekas and Gallager, "Data Networks" (1992), section 6.5.2). No message could be faster without
slowing one that is no faster. When a message ends, what it used is shared anew.
"""

from typing import NamedTuple

import numpy as np

ROUNDING = 1e-9  # shares of a link that differ by less are the same


def smallest(keys, values, count):
    """(count,) the smallest of the values that share a key, inf for a key without any. keys: ascending."""
    found = np.full(count, np.inf)
    if len(keys):
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        found[keys[starts]] = np.minimum.reduceat(values, starts)
    return found


class Ways(NamedTuple):
    """Message flows[i] goes over link links[i]: once in ascending order of messages, once in that of links."""

    flows: np.ndarray
    links: np.ndarray
    flows_by_link: np.ndarray
    links_by_link: np.ndarray

    def of(self, chosen):
        """Only those of the messages that are `chosen` (booleans)."""
        stays, stays_by_link = chosen[self.flows], chosen[self.flows_by_link]
        return Ways(self.flows[stays], self.links[stays], self.flows_by_link[stays_by_link],
                    self.links_by_link[stays_by_link])


def ways(flows, links):
    """Ways of messages `flows`, in ascending order, over `links`."""
    order = np.argsort(links, kind="stable")
    return Ways(flows, links, flows[order], links[order])


def rates(going, bandwidth, count):
    """(count,) bytes per second of every message in `going`, Ways; 0 for the others. bandwidth (L,): bytes per second.

    A link is full first if no message on it has a narrower link elsewhere: all such links at once.
    """
    rate, left = np.zeros(count), bandwidth.astype(float)
    while len(going.flows):
        crossing = np.bincount(going.links, minlength=len(left))
        share = np.full(len(left), np.inf)
        np.divide(left, crossing, out=share, where=crossing > 0)
        narrowest = smallest(going.flows, share[going.links], count)  # the share of a message on its narrowest link
        least = smallest(going.links_by_link, narrowest[going.flows_by_link], len(left))  # of the slowest on a link
        full = least >= share * (1 - ROUNDING)
        settled = np.zeros(count, bool)
        settled[going.flows[full[going.links]]] = True
        rate[settled] = narrowest[settled]
        left = np.maximum(left - np.bincount(going.links, rate[going.flows], len(left)), 0)
        going = going.of(~settled)
    return rate


def finish(routes, sizes, bandwidth, grain=0.0):
    """(F,) seconds until each message has arrived, all beginning at 0.

    routes (F, H): numbers of links, negative for none; sizes (F,) bytes; bandwidth (L,) bytes per second.
    grain: ends that lie closer together than this share of the time are taken for one, at their mean, when what
    they leave free is shared anew: so thousands of different ends cost hundreds of steps, and ends are right to
    about so much.
    A message without bytes, or without a link on its way, arrives at once.
    """
    ends, left = np.zeros(len(sizes)), sizes.astype(float)
    on_way = (routes >= 0) & (left > 0)[:, None]
    used, links = np.unique(routes[on_way], return_inverse=True)
    going, clock, bandwidth = ways(np.nonzero(on_way)[0], links), 0.0, bandwidth[used]
    while len(going.flows):
        rate = rates(going, bandwidth, len(left))
        moving = np.flatnonzero(rate)
        needs = left[moving] / rate[moving]
        over = clock + needs <= (clock + needs.min()) * (1 + max(grain, ROUNDING))
        ends[moving[over]] = clock + needs[over]
        passed = needs[over].mean()
        left[moving] = np.where(over, 0, left[moving] - rate[moving] * passed)
        clock += passed
        going = going.of(left > 0)
    return ends
