"""How messages that are under way at the same time share the links: max-min fairness.

All rates grow alike until a link is full; the messages on it keep their rate, the others grow on (progressive
filling: Bertsekas and Gallager, "Data Networks" (1992), section 6.5.2). No message could be faster without
slowing one that is no faster. When a message ends, what it used is shared anew.
"""

import numpy as np

ROUNDING = 1e-9  # shares of a link that differ by less are the same


def smallest(keys, values, count):
    """(count,) the smallest of the values that share a key, inf for a key without any. keys: ascending."""
    found = np.full(count, np.inf)
    if len(keys):
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        found[keys[starts]] = np.minimum.reduceat(values, starts)
    return found


def rates(flows, links, bandwidth, count):
    """(count,) bytes per second of every message; 0 for one that is on no link.

    flows, links: message flows[i] goes over link links[i], flows ascending. bandwidth (L,): bytes per second.
    A link is full first if no message on it has a narrower link elsewhere: all such links at once.
    """
    rate, left = np.zeros(count), bandwidth.astype(float)
    order = np.argsort(links, kind="stable")
    flows_by_link, links_by_link = flows[order], links[order]
    while len(flows):
        crossing = np.bincount(links, minlength=len(left))
        share = np.full(len(left), np.inf)
        np.divide(left, crossing, out=share, where=crossing > 0)
        narrowest = smallest(flows, share[links], count)  # the share of a message on its narrowest link
        least = smallest(links_by_link, narrowest[flows_by_link], len(left))  # of the slowest message on a link
        full = least >= share * (1 - ROUNDING)
        settled = np.zeros(count, bool)
        settled[flows[full[links]]] = True
        rate[settled] = narrowest[settled]
        gone = settled[flows]
        left = np.maximum(left - np.bincount(links[gone], rate[flows[gone]], len(left)), 0)
        flows, links = flows[~gone], links[~gone]
        stay = ~settled[flows_by_link]
        flows_by_link, links_by_link = flows_by_link[stay], links_by_link[stay]
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
    flows, links = np.nonzero(on_way)[0], routes[on_way]
    used, links = np.unique(links, return_inverse=True)
    clock, bandwidth = 0.0, bandwidth[used]
    while len(flows):
        rate = rates(flows, links, bandwidth, len(left))
        moving = np.flatnonzero(rate)
        needs = left[moving] / rate[moving]
        over = clock + needs <= (clock + needs.min()) * (1 + max(grain, ROUNDING))
        ends[moving[over]] = clock + needs[over]
        passed = needs[over].mean()
        left[moving] = np.where(over, 0, left[moving] - rate[moving] * passed)
        clock += passed
        flows, links = flows[left[flows] > 0], links[left[flows] > 0]
    return ends
