"""Bytes, rates and times as people write them: 350G, 400Gb/s, 50GB/s, 2us.

Decimal prefixes count by thousands (1K = 1000, as the article and network vendors do), KiB, MiB, GiB by 1024.
A small b is a bit, a capital B a byte: 400 Gb/s are 50 GB/s.
"""

import math
import re

DECIMAL = {"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
BINARY = {"Ki": 2 ** 10, "Mi": 2 ** 20, "Gi": 2 ** 30, "Ti": 2 ** 40, "Pi": 2 ** 50}
SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
UNSIGNED = r"(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)"


def read_bytes(text):
    """"4", "1K", "350G", "1MiB", "2.5 GB" as a whole number of bytes. Raises ValueError."""
    found = re.fullmatch(UNSIGNED + r"\s*([kKMGTP]?|[KMGTP]i)B?", text.strip())
    if not found:
        raise ValueError(f"{text!r}: expected bytes, as in 4, 1K, 350G (thousands) or 1KiB, 1MiB (by 1024)")
    number, prefix = found.groups()
    count = float(number) * {**DECIMAL, **BINARY}[prefix]
    if not math.isfinite(count) or count != int(count):
        raise ValueError(f"{text!r}: expected a whole number of bytes, these are {count:g}")
    return int(count)


def read_rate(text):
    """"50GB/s" or "400Gb/s" in bytes per second. Raises ValueError."""
    found = re.fullmatch(UNSIGNED + r"\s*([kKMGTP]?)([bB])(?:/s|ps)", text.strip())
    rate = float(found[1]) * DECIMAL[found[2]] / (8 if found[3] == "b" else 1) if found else 0
    if not 0 < rate < math.inf:
        raise ValueError(f"{text!r}: expected a rate above 0, as in 50GB/s (bytes) or 400Gb/s (bits)")
    return rate


def read_seconds(text):
    """"1us", "250ns", "0" in seconds. Raises ValueError."""
    found = re.fullmatch(UNSIGNED + r"\s*(ns|us|µs|ms|s)", text.strip())
    if found and math.isfinite(float(found[1])):
        return float(found[1]) * SECONDS[found[2]]
    if text.strip() == "0":
        return 0.0
    raise ValueError(f"{text!r}: expected a time, as in 1us, 250ns or 0")


def say_number(number):
    """1234567.5 as 1,234,567.5: no more than four decimals, no zeros at the end."""
    if number and abs(number) < 1e-4:
        return f"{number:.3g}"
    return f"{number:,.4f}".rstrip("0").rstrip(".")


def unit_of(count):
    """(factor, name) of the largest decimal unit that is not above `count` bytes."""
    prefix = [p for p in "PTGMK" if DECIMAL[p] <= count]
    return (DECIMAL[prefix[0]], f"{prefix[0]}B".replace("K", "k")) if prefix else (1, "B")


def say_bytes(count, unit=None):
    """In `unit` (of unit_of), so that a table has one unit; by default in its own."""
    factor, name = unit or unit_of(count)
    return f"{say_number(count / factor)} {name}"


def say_rate(rate):
    """Bytes per second in three digits or more: 49.95 GB/s."""
    factor, name = unit_of(rate)
    return f"{rate / factor:,.4g} {name}/s"


def say_seconds(seconds):
    """Four digits: 13.78 s, 882 s, 2.5 us."""
    for name in ("s", "ms", "us", "ns"):
        if seconds >= SECONDS[name]:
            break
    scaled = seconds / SECONDS[name]
    return f"{scaled:,.0f} {name}" if scaled >= 1000 else f"{scaled:.4g} {name}"
