"""A flat buffer in pieces that stay in the cache while several ufuncs pass over them."""

from autograd.backend import aligned_empty, device

TILE = 32 * 1024            # elements: what a step touches of one tile fits in L2


def tiles(flat, *buffers):
    """For every tile of `flat`: views of data, grad, each of `buffers`, and the tile's decayed runs of data.

    On a device a tile is everything: there, launches cost and caches do not help.
    """
    width = TILE if device == "cpu" else max(1, flat.size)
    decayed = flat.decayed()
    cut = []
    for start in range(0, flat.size, width):
        stop = min(start + width, flat.size)
        runs = [flat.data[max(start, r.start):min(stop, r.stop)] for r in decayed if r.start < stop and r.stop > start]
        cut.append((*(buffer[start:stop] for buffer in (flat.data, flat.grad, *buffers)), runs))
    return cut


def scratch(flat):
    """Room for one tile."""
    width = min(TILE, flat.size) if device == "cpu" else flat.size
    return aligned_empty(width, flat.data.dtype)
