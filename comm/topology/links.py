"""What one link carries: the article's table (FACTS F46), put right and in one convention.

The article takes its figures from data sheets, which count in two ways. NVLink and PCIe are quoted with both
directions added up (900 GB/s is 450 each way), networks in bits per second each way (400 Gb/s is 50 GB/s). So
NVLink 4 carries nine times what NDR InfiniBand does, and not 18 or 2.25 times. Here `bandwidth` is always bytes
per second *each way*.

Its latencies mean different things too: 100 ns of HBM is a load instruction, 1 us of InfiniBand an RDMA write
between idle hosts, 5 us of NVLink a message from software to software; PCIe is given twice, with 1 us (hardware)
in a table and 10 us (software) in the text. Here `latency` is always from the call of one rank to the end of the
receive of another, for GPUs, all from one source: the ring column (protocol Simple) of NCCL's own cost model,
https://github.com/NVIDIA/nccl/blob/v2.20.5-1/src/graph/tuning.cc: NVLink 3.4, PCIe 5.7, network 14 us.
"""

from typing import NamedTuple

from comm.units import read_rate, read_seconds

GB, US = 1e9, 1e-6


class Link(NamedTuple):
    """A kind of link."""

    bandwidth: float  # bytes per second each way
    latency: float  # seconds from software to software of a message that goes over it
    quoted: str = ""  # the article's figure for the bandwidth
    quoted_latency: str = ""
    counts: str = ""  # what the quoted figure counts


BOTH, EACH = "both directions together", "bits, each way"

LINKS = {
    "nvlink4": Link(450 * GB, 3.4 * US, "900 GB/s", "5 us", BOTH),
    "nvlink5": Link(900 * GB, 3.4 * US, "1.8 TB/s", "", BOTH),
    "pcie5": Link(64 * GB, 5.7 * US, "128 GB/s", "1 us (table), 10 us (text)", BOTH),
    "pcie6": Link(128 * GB, 5.7 * US, "256 GB/s", "", BOTH),
    "ndr": Link(50 * GB, 14 * US, "400 Gb/s", "1 us", EACH),
    "xdr": Link(100 * GB, 14 * US, "800 Gb/s", "", EACH),
    "roce": Link(50 * GB, 14 * US, "400 Gb/s", "1-3 us", EACH),
    "roce800": Link(100 * GB, 14 * US, "800 Gb/s", "", EACH),
}
"""Links between GPUs."""

MEMORY = {
    "HBM": ("3 TB/s", "100 ns, a load instruction: no software in it"),
    "L2": ("10 TB/s", ""),
    "L1": ("0.22 TB/s per SM, 30 TB/s per H100",
           "the article says 200 TB/s per core: wrong by about a thousand"),
}
"""What the article's table says of memory; no link between ranks, so nothing here is priced by it."""


def read_link(text):
    """A name of LINKS, or "400Gb/s", "50GB/s@2us": rate each way and latency (14 us if not given), as a Link.

    "ndr@1us" is a preset with another latency. Raises ValueError.
    """
    rate, at, latency = text.partition("@")
    if rate in LINKS:
        link = LINKS[rate]
    else:
        try:
            link = Link(read_rate(rate), LINKS["ndr"].latency)
        except ValueError:
            raise ValueError(f"{text!r}: expected a link: {', '.join(LINKS)}, or a rate each way as in 400Gb/s, "
                             "50GB/s or 50GB/s@2us") from None
    return link._replace(latency=read_seconds(latency)) if at else link


def say_links():
    """The table of F46 as text, both conventions side by side."""
    rows = [("link", "the article says", "which counts", "each way", "its latency", "software to software")]
    rows += [(name, link.quoted, link.counts, f"{link.bandwidth / GB:g} GB/s", link.quoted_latency,
              f"{link.latency / US:g} us") for name, link in LINKS.items()]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    lines += ["", "NVLink 4 : InfiniBand NDR = 450 : 50 = 9 : 1. Latencies: NCCL's own cost model.", "",
              "Memory, for scale:"]
    lines += [f"  {name:<4} {rate}{'; ' if said else ''}{said}" for name, (rate, said) in MEMORY.items()]
    return "\n".join(lines)
