"""The line of text that describes a cluster, and what is said to mistakes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comm.topology import KEYS, KINDS, PRESETS, describe
from comm.topology.describe import read


@pytest.mark.parametrize("text, words", [
    ("drgonfly", "did you mean dragonfly?"),
    ("nodes=2,oversubscripton=2", "did you mean oversubscription?"),
    ("torus,leaf=4", "a torus takes no leaf; it takes gpus"),
    ("kind=tours", "did you mean torus?"),
    ("nodes=0", "expected a whole number from 1"),
    ("nodes=2.5", "expected a whole number"),
    ("nodes=-3", "expected a whole number"),
    ("nodes=2,nodes=3", "given twice"),
    ("nodes", "no such cluster"),
    ("torus,nodes", "expected nodes=value"),
    ("nic=ndr9", "expected a link"),
    ("nvlink=none", "expected a link"),
    ("hop=3", "expected a time"),
    ("oversubscription=0.5", "expected a number from 1"),
    ("oversubscription=two", "expected a number from 1"),
    ("torus,sides=4x", "as in 4x4x4"),
    ("torus,sides=0x4", "as in 4x4x4"),
    ("torus,sides=4x4,nodes=8", "has 16"),
    ("hypercube,nodes=6", "has 8; say nodes=8"),
    ("gpus=4,nics=8", "at most so many NICs"),
    ("gpus=4,nics=2,pcie=none", "must equal gpus=4"),
    ("butterfly,nodes=8,gpus=8,leaf=2,sides=4x4", "room for 32 NICs, the servers have 64"),
    ("rails=2", "from 0 to 1"),
    ("nodes=99999999", "at most 1,048,576 GPUs"),
    ("torus,sides=100000x100000", "at most 1,048,576 GPUs"),
    ("leaf=100000000000000000000000", "expected a whole number"),
    ("dragonfly,gpus=1,nodes=1000000,leaf=1,routers=1", "say other routers"),
    ("butterfly,gpus=1,nodes=1000000,sides=1000000", "say shorter sides"),
])
def test_mistakes_are_answered_with_what_was_expected(text, words):
    with pytest.raises(ValueError, match=".*" + words.replace("?", r"\?")):
        describe(text)


def test_what_follows_a_preset_overrides_it():
    assert describe("dragonfly,nodes=4,gpus=2,leaf=4").gpus == 8
    assert describe("article,nic=25GB/s", 4).bandwidth.tolist() == [25e9] * 8


def test_spaces_and_an_empty_description_are_allowed():
    assert describe(" torus , sides = 2x3 ").gpus == 6
    assert describe("").gpus == 64


def test_a_cluster_without_nodes_grows_with_the_ranks():
    assert describe("dgx-h100", 100).gpus == 104
    assert describe("hypercube", 100).gpus == 128
    assert describe("torus", 100).gpus == 5 * 5 * 4
    assert describe("dgx-h100,nodes=2", 100).gpus == 16


def test_every_preset_is_read_and_every_key_is_taken_by_some_kind():
    for name in PRESETS:
        given = read(name)
        assert given.keys() <= KEYS.keys()
    assert set().union(*KINDS.values()) == KEYS.keys()


VALUES = st.one_of(st.text(max_size=6), st.integers(-2, 40).map(str),
                   st.sampled_from(["ndr", "none", "pcie5", "4x2", "2x2x2", "0", "1us", "50GB/s@1us", "1e400",
                                    "nan", "²"]))
PARTS = st.one_of(st.sampled_from([*PRESETS, *KINDS]), st.text(max_size=8),
                  st.tuples(st.sampled_from([*KEYS]), VALUES).map("=".join))


@settings(max_examples=300, deadline=None)
@given(st.lists(PARTS, max_size=5).map(",".join), st.integers(1, 40))
def test_any_text_is_a_cluster_or_a_mistake_that_is_explained(text, ranks):
    try:
        topology = describe(text, ranks)
    except ValueError as error:
        assert len(str(error)) > 20
    else:
        assert topology.routes([0], [topology.gpus - 1]).shape[0] == 1
