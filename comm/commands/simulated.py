"""The answers of `python -m comm simulate`, line by line."""

import numpy as np

from comm.algorithms import ALGORITHMS
from comm.pricing.effort import TooMuch
from comm.pricing.lost import lose, say_ranks
from comm.pricing.placement import FITTED, ORDERS, fit, place, priced_in, priced_in_each
from comm.pricing.price import default_options, options_of
from comm.units import say_bytes, say_number, say_rate, say_seconds, unit_of

SEGMENTS = (4, 16, 64, 256)
"""Into how many pieces a pipelined algorithm cuts the message if it is not told."""

MOST_LINES = 8


def compare(names, message, size, topology, order, gamma, segments, report):
    """Lines of a table of algorithms, the fastest first."""
    yield _heading(message, size, topology, order, gamma)
    prices, skipped = [], []
    for name in names:
        try:
            prices += list(_tried(name, message, size, topology, order, gamma, segments, report))
        except TooMuch as error:
            skipped.append((name, error))
    unit = unit_of(message)
    prices.sort(key=lambda pair: pair[1].time)
    rows = [("algorithm", "rounds", "time", "algbw", "busbw", "leaves a rank", "all ranks send", "busiest link")]
    yield from aligned(rows + [_row(found, price, topology, unit) for found, price in prices])
    yield ""
    rows = [("bytes by tier of links", *topology.tiers)]
    yield from aligned(rows + [(found, *(say_bytes(carried, unit) for carried in price.tiers.values()))
                               for found, price in prices])
    yield ""
    for name, error in skipped:
        yield f"not priced: {error}. By its formula: {_formula(name, message, size, topology, segments)}."
    yield ("algbw = M / time; busbw = algbw x what any algorithm must move per rank (nccl-tests); what really left is "
           "beside them.")


def _formula(name, message, size, topology, segments):
    """Rounds and bytes of an algorithm that is too large to price, in words."""
    algorithm, options = ALGORITHMS[name], default_options(name, topology, np.arange(size))
    if "segments" in options_of(name):
        options["segments"] = segments or 1
    total = algorithm.total(size, **options) / algorithm.chunks(size, **options) * message
    return f"{algorithm.rounds(size, **options):,} rounds, {say_bytes(total, unit_of(message))} in all"


def _tried(name, message, size, topology, order, gamma, segments, report):
    """((name and options in words, Price)) of an algorithm: once, or in one piece and in the best number of pieces."""
    takes = "segments" in options_of(name)
    progress = _progress(name, report)
    counts = ((segments,) if segments else (1, *SEGMENTS)) if takes else (None,)
    prices = []
    for count in counts:
        options = {"segments": count} if count else {}
        try:
            if order == "fitted":
                found, price = fit(name, message, size, topology, gamma, progress, **options)
                prices.append((f"{name}{_said(options)} ({found})", price))
            else:
                price = priced_in(order, name, message, size, topology, gamma, progress, **options)
                prices.append((name + _said(options), price))
        except TooMuch:
            if not prices:
                raise
    one, *pieces = prices
    return [one] + ([min(pieces, key=lambda pair: pair[1].time)] if pieces else [])


def _progress(name, report):
    """What `price` calls now and then."""
    report(f"pricing {name}")
    return lambda done, rounds: report(f"pricing {name}: round {done:,} of {rounds:,}")


def _said(options):
    return "".join(f" {key}={value}" for key, value in options.items() if key != "nodes")


def _row(found, price, topology, unit):
    busiest = price.busiest
    link = f"{topology.link(busiest[0])}, {busiest[2]:.0%} busy" if busiest else "none"
    return (found, f"{price.rounds:,}", say_seconds(price.time), say_rate(price.algbw), say_rate(price.busbw),
            say_bytes(price.sent.max(initial=0), unit), say_bytes(price.sent.sum(), unit), link)


def _heading(message, size, topology, order, gamma):
    adding = f"adding {gamma:g} s a byte" if gamma else "adding not counted (--gamma)"
    return (f"M = {say_bytes(message)} on {size:,} ranks, {order} order, {adding}\n"
            f"cluster: {topology.title}, {topology.gpus:,} GPUs\n")


def detail(name, message, size, topology, order, gamma, segments, report):
    """Lines about one algorithm: phases, tiers, what left, and the orders of the ranks."""
    if segments and "segments" not in options_of(name):
        raise ValueError(f"--segments {segments}: {name} takes no segments")
    yield _heading(message, size, topology, order, gamma)
    tried = _tried(name, message, size, topology, order, gamma, segments, report)
    found, price = min(tried, key=lambda pair: pair[1].time)
    options = {key: value for key, value in price.options.items() if key != "nodes"}
    unit = unit_of(message)
    yield f"{found}: {say_seconds(price.time)} in {price.rounds:,} rounds"
    yield f"  {ALGORITHMS[name].rule.__doc__.splitlines()[0]}"
    yield (f"  algbw {say_rate(price.algbw)}, busbw {say_rate(price.busbw)}; really sent: at most "
           f"{say_bytes(price.sent.max(initial=0), unit)} and {price.messages.max(initial=0):,} messages from a rank, "
           f"{say_bytes(price.sent.sum(), unit)} and {price.messages.sum():,} messages in all")
    yield ""
    yield from aligned(_phases(price, topology, unit))
    yield ""
    yield from aligned(_tiers(price, topology, unit))
    yield ""
    yield from aligned(_orders(name, message, size, topology, gamma, options, report))


def _phases(price, topology, unit):
    rows, first = [("rounds", "each", "together", "bytes a round", "", "busiest link")], 1
    for phase in price.phases[:MOST_LINES]:
        last = first + phase.rounds - 1
        rows.append((f"{first:,}-{last:,}" if last > first else f"{first:,}", say_seconds(phase.each),
                     say_seconds(phase.each * phase.rounds), say_bytes(phase.sent, unit),
                     "add" if phase.adds else "move",
                     topology.link(phase.busiest) if phase.busiest >= 0 else "none"))
        first = last + 1
    rest = price.phases[MOST_LINES:]
    if rest:
        each = [phase.each for phase in rest]
        rows.append((f"{first:,}-{price.rounds:,}", f"{say_seconds(min(each))} to {say_seconds(max(each))}",
                     say_seconds(sum(phase.each * phase.rounds for phase in rest)), "", "", ""))
    return rows


def _tiers(price, topology, unit):
    rows = [("tier", "bytes over it", "links", "each way", "busiest link", "carries", "busy")]
    for number, (tier, carried) in enumerate(price.tiers.items()):
        of_tier = topology.tier == number
        busiest = price.busiest_of([number])
        rows.append((tier, say_bytes(carried, unit), f"{of_tier.sum():,}",
                     say_rate(topology.bandwidth[of_tier].max()),
                     *((topology.link(busiest[0]), say_bytes(busiest[1], unit), f"{busiest[2]:.1%}") if busiest
                       else ("none", "", ""))))
    return rows


def _orders(name, message, size, topology, gamma, options, report):
    """The same ranks in other orders: before and after they are fitted to the cluster."""
    prices = priced_in_each(ORDERS, name, message, size, topology, gamma, _progress(name, report), **options)
    best = min(FITTED, key=lambda order: prices[order].time)
    rows = [("order of the ranks", "time", "")]
    rows += [(order, say_seconds(price.time), ("fitted: " if order == best else "") + ORDERS[order])
             for order, price in prices.items()]
    return rows


def losses(names, size, lost, topology, order, segments):
    """One line for each algorithm: how many ranks still complete when one is lost."""
    yield f"rank {lost} of {size} is lost before the first round\n"
    skipped = []
    rows = [("algorithm", "living ranks that complete", "stuck from round", "what becomes of the data")]
    for name in names:
        try:
            told = lose(name, size, lost, **_lost_options(name, size, topology, order, segments))
        except TooMuch as error:
            skipped.append(f"not followed: {error}")
            continue
        rows.append((name, f"{len(told.completes):,} of {size - 1:,}",
                     f"{min(number for number, _ in told.stuck.values()):,}" if told.stuck else "none", _data(told)))
    yield from aligned(rows)
    yield from skipped


def _lost_options(name, size, topology, order, segments):
    takes = {"segments": segments} if segments and "segments" in options_of(name) else {}
    return {**default_options(name, topology, place(order, size, topology)), **takes}


def loss(name, size, lost, topology, order, segments):
    """Who completes, and who waits for whom, when one rank is lost."""
    told = lose(name, size, lost, **_lost_options(name, size, topology, order, segments))
    yield f"{name} on {size} ranks, rank {lost} lost before the first round"
    yield f"  completes: {say_ranks(told.completes) if told.completes else 'nobody'}"
    groups = {}
    for rank, (number, peers) in told.stuck.items():
        groups.setdefault((number, tuple(peers)), []).append(rank)
    for (number, peers), stuck in sorted(groups.items())[:4 * MOST_LINES]:
        verb = "waits" if len(stuck) == 1 else "wait"
        dead = " (lost)" if lost in peers else ""
        yield f"  round {number}: {say_ranks(stuck)} {verb} for {say_ranks(peers)}{dead}"
    if len(groups) > 4 * MOST_LINES:
        yield f"  ... and {len(groups) - 4 * MOST_LINES} more such lines"
    yield f"  {_data(told)}"


def _data(told):
    """What is lost, and what is saved, in words."""
    if told.missing is not None:
        return f"{told.missing:,} blocks are held by no living rank" if told.missing else "every block lives on"
    if told.largest is None:
        return "not followed at this size"
    alone = f"; nobody else has that of {say_ranks(told.lonely)}" if told.lonely else ""
    return f"summand of rank {told.lost} lost{alone}; the largest sum anywhere holds {say_number(told.largest)}"


def aligned(rows):
    """Rows of cells as lines: the first and the last column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        yield "  ".join(cell.ljust(width) if not cell[:1].isdigit() else cell.rjust(width)
                        for cell, width in zip(row, widths)).rstrip()
