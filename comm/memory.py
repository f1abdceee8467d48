"""Where the chunks of a plan lie: from slot numbers to runs of memory."""

from itertools import pairwise
from typing import NamedTuple

SOURCE = -1  # the number of the array that is only read


class Place(NamedTuple):
    """Elements start to stop of one of the arrays of a plan."""

    array: int
    start: int
    stop: int


class Memory:
    """The arrays that one rank's plan works on, cut into slots.

    flat: (n,) the array that is worked in; cuts: offsets of its slots. source: None, or an array like `flat`
    that is read instead of it and never written: a slot is *fresh* as long as its contents are still there.
    So a collective out of place needs no copy of its input first. out, out_cuts: the second array of
    all-to-all, whose slots follow those of `flat`.
    """

    def __init__(self, flat, cuts, source=None, out=None, out_cuts=()):
        self.arrays = [flat] if out is None else [flat, out]
        self.source = source
        self.places = [Place(0, *ends) for ends in pairwise(cuts)] + [Place(1, *ends) for ends in pairwise(out_cuts)]
        self.fresh = set() if source is None else set(range(len(self.places)))

    def view(self, place):
        """The elements at a place, to be read."""
        array = self.source if place.array == SOURCE else self.arrays[place.array]
        return array[place.start:place.stop]

    def target(self, place):
        """The elements at a place, to be written: what is still in the source goes to `flat`."""
        return self.arrays[max(place.array, 0)][place.start:place.stop]

    def runs(self, slots):
        """The places of these slots, neighbours joined, empty ones left out; a fresh one is in the source."""
        found = []
        for slot in slots:
            array, start, stop = self.places[slot]
            if start == stop:
                continue
            array = SOURCE if slot in self.fresh else array
            if found and found[-1].array == array and found[-1].stop == start:
                start = found.pop().start
            found.append(Place(array, start, stop))
        return found


def segments(runs, longest):
    """The runs as pieces of one message after another: lists of places with `longest` elements at most in all.

    Only the total counts, so both sides of a message cut it alike, however its chunks are scattered.
    """
    parts, room = [], longest
    for array, start, stop in runs:
        while start < stop:
            end = min(stop, start + room)
            parts.append(Place(array, start, end))
            room -= end - start
            start = end
            if not room:
                yield parts
                parts, room = [], longest
    if parts:
        yield parts


def size_of(places):
    return sum(place.stop - place.start for place in places)
