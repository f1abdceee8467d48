"""Bytes, rates and times as people write them."""

import pytest

from comm.units import read_bytes, read_rate, read_seconds, say_bytes, say_number, say_rate, say_seconds, unit_of


@pytest.mark.parametrize("text, count", [
    ("4", 4), ("0", 0), ("1K", 1000), ("1k", 1000), ("1M", 10 ** 6), ("350G", 350 * 10 ** 9), ("350GB", 350 * 10 ** 9),
    ("2.5 T", 25 * 10 ** 11), ("1KiB", 1024), ("1Ki", 1024), ("64MiB", 2 ** 26), ("1.5KiB", 1536), ("1e3", 1000),
    (".5K", 500), ("8B", 8),
])
def test_bytes_count_by_thousands_or_by_1024(text, count):
    assert read_bytes(text) == count
    assert isinstance(read_bytes(text), int)


@pytest.mark.parametrize("text", ["", "G", "-4", "4Gb", "1.5", "350 Gigs", "1KIB", "nan", "inf", "1e400", "0x10"])
def test_other_bytes_are_refused_with_an_example(text):
    with pytest.raises(ValueError, match="expected"):
        read_bytes(text)


def test_a_small_b_is_a_bit():
    assert read_rate("400Gb/s") == read_rate("50GB/s") == 50e9
    assert read_rate("400Gbps") == 50e9


@pytest.mark.parametrize("text", ["400G", "400", "0GB/s", "-1GB/s", "GB/s", ""])
def test_rates_without_their_unit_are_refused(text):
    with pytest.raises(ValueError, match="50GB/s"):
        read_rate(text)


def test_times_are_read_in_their_unit():
    assert [read_seconds(text) for text in ("1us", "1µs", "250ns", "2 ms", "3s", "0")] == pytest.approx(
        [1e-6, 1e-6, 2.5e-7, 2e-3, 3, 0])
    for text in ("1", "-1us", "us", "1 min"):
        with pytest.raises(ValueError, match="expected a time"):
            read_seconds(text)


def test_numbers_are_said_in_one_unit_without_needless_digits():
    unit = unit_of(350 * 10 ** 9)
    assert say_bytes(1_411_200e9, unit) == "1,411,200 GB"
    assert say_bytes(689.0625e9, unit) == "689.0625 GB"
    assert say_bytes(5.0, unit) == "5e-09 GB"
    assert say_bytes(0) == "0 B"
    assert say_bytes(1500) == "1.5 kB"
    assert say_number(100.0) == "100"
    assert say_rate(49.95e9) == "49.95 GB/s"
    assert [say_seconds(s) for s in (13.78, 882, 1.2e-3, 2.5e-6, 0, 20_000)] == [
        "13.78 s", "882 s", "1.2 ms", "2.5 us", "0 ns", "20,000 s"]
