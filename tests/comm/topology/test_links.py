"""FACTS F46: what links carry, in one convention."""

import pytest

from comm.topology import LINKS, read_link, say_links
from comm.units import read_rate


def test_fact_46_bandwidths_are_each_way():
    each_way = {name: link.bandwidth / 1e9 for name, link in LINKS.items()}
    assert each_way == {"nvlink4": 450, "nvlink5": 900, "pcie5": 64, "pcie6": 128, "ndr": 50, "xdr": 100, "roce": 50,
                        "roce800": 100}


def test_fact_46_nvlink_carries_nine_times_what_infiniband_does():
    assert LINKS["nvlink4"].bandwidth / LINKS["ndr"].bandwidth == 9


def test_fact_46_quoted_figures_agree_with_what_is_priced():
    for name, link in LINKS.items():
        quoted = read_rate(link.quoted.replace(" ", ""))
        assert quoted / link.bandwidth == (2 if "both directions" in link.counts else 1), name


def test_fact_46_the_table_shows_both_conventions_and_puts_the_article_right():
    table = say_links()
    row = next(line for line in table.splitlines() if line.startswith("nvlink4"))
    assert "900 GB/s" in row and "450 GB/s" in row and "both directions together" in row and "5 us" in row
    row = next(line for line in table.splitlines() if line.startswith("ndr"))
    assert "400 Gb/s" in row and "50 GB/s" in row and "1 us" in row
    assert "9 : 1" in table
    assert "1 us (table), 10 us (text)" in table
    assert "200 TB/s per core: wrong by about a thousand" in table


def test_fact_46_latencies_are_all_from_software_to_software():
    """So a network is slower than PCIe, which is slower than NVLink; in the article's figures it is the fastest."""
    assert LINKS["nvlink4"].latency < LINKS["pcie5"].latency < LINKS["ndr"].latency == LINKS["roce"].latency


def test_a_link_is_a_name_a_rate_or_either_with_a_latency():
    assert read_link("ndr") is LINKS["ndr"]
    assert read_link("400Gb/s").bandwidth == 50e9
    assert read_link("25GB/s@2us")[:2] == pytest.approx((25e9, 2e-6))
    assert read_link("ndr@1us")[:2] == pytest.approx((50e9, 1e-6))


@pytest.mark.parametrize("text", ["nvlink9", "400G", "", "none"])
def test_other_links_are_refused_with_what_there_is(text):
    with pytest.raises(ValueError, match="nvlink4, nvlink5.*400Gb/s"):
        read_link(text)
