"""Printing, drawing and weighing graphs; finding what is not finite."""

import numpy as np

from autograd import graph, ops
from autograd.backend import xp
from tests.autograd.leaves import leaf, normal


def example():
    x, w = normal(3, 4), normal(4, 2)
    h = ops.linear(x, w)
    return x, w, (h * h).sum()


def test_the_tree_shows_every_node_once_with_names_and_shapes():
    x, w, y = example()
    lines = graph.text(y, {x: "x", w: "w"}).splitlines()
    assert [line.split(" #")[0] for line in lines[:3]] == ["sum", "  mul", "    linear"]
    assert lines[3:5] == ["      x (3, 4) float32", "      w (4, 2) float32"]
    assert lines[5].startswith("    linear #") and lines[5].endswith("(above)")
    assert "released" not in graph.text(y)
    y.backward()
    assert "released" in graph.text(y)


def test_a_leaf_has_a_tree_too():
    assert graph.text(normal(2)) == "leaf (2,) float32\n"
    assert graph.dot(normal(2)).startswith("digraph")
    assert graph.kept_bytes(normal(2)) == 0


def test_dot_has_an_edge_for_every_input():
    x, w, y = example()
    lines = graph.dot(y, [('the "x"', x), ("w", w)]).splitlines()
    assert lines[0] == "digraph {" and lines[-1] == "}"
    assert sum("->" in line for line in lines) == 5             # x, w -> linear => mul -> sum
    assert any(r'label="the \"x\" (3, 4) float32"' in line for line in lines)


def test_nodes_come_in_the_order_of_forward_and_leaves_in_that_of_their_use():
    x, w, y = example()
    assert [n.name for n in graph.nodes(y)] == ["linear", "mul", "sum"]
    assert [t is s for t, s in zip(graph.leaves(y), (x, w))] == [True, True]


def test_lists_of_inputs_are_followed():
    x, y = normal(2), normal(2)
    z = ops.concat([x * 2, ops.stack([y, y])[0]]).sum()
    assert [t is s for t, s in zip(graph.leaves(z), (x, y))] == [True, True]
    assert "stack" in graph.text(z)


def test_bytes_are_counted_once_and_as_the_memory_behind_views():
    x = leaf(np.ones(1000))
    y = ops.exp(x)
    assert graph.kept_bytes(y) == 4000                          # exp keeps its output
    assert graph.kept_bytes(y * y) == 4000                      # and the product the same array, twice
    assert graph.kept_bytes(ops.sqrt(y)[:2] * 3) == 8000        # a view does not count, its base does
    a, b = ops.exp(x), ops.exp(x)
    assert graph.kept_bytes(a, b) == 8000
    assert graph.kept_bytes(x + x) == 0
    y.sum().backward()
    assert graph.kept_bytes(y) == 0                             # released


def test_every_node_weighs_what_it_is_the_first_to_keep():
    x = leaf(np.ones(100))
    y = ops.exp(x)
    weights = graph.kept_by_node(ops.tanh(y * y))
    assert {node.name: n for node, n in weights.items()} == {"exp": 400, "mul": 0, "tanh": 400}


def test_a_deep_graph_is_walked_without_recursion():
    y = leaf([1.0])
    for _ in range(5000):
        y = y + 1
    assert graph.text(y).count("add") == 5000
    assert len(graph.nodes(y)) == 5000
    assert graph.kept_bytes(y) == 0


def test_describe_adds_the_sums():
    _, _, y = example()
    assert "3 nodes keep 24 bytes alive, leaves hold 80" in graph.describe(y)


def test_the_first_producer_of_something_not_finite_is_named():
    x = leaf([0.0, 1.0])
    with np.errstate(all="ignore"):
        assert "log produced" in graph.find_nonfinite(lambda t: ops.exp(ops.log(t)).sum(), x)
        message = graph.find_nonfinite(lambda t: (t / 1e-30 / 1e-30 * 0 + t).sum(), x)
        assert message.startswith("div produced")
        tiny = xp.asarray(np.float32(1e-45))
        assert "backward of log" in graph.find_nonfinite(lambda t: ops.log(t * 0 + tiny).sum(), x * 1)
    assert graph.find_nonfinite(lambda t: (t * 2).sum(), x) is None
    assert x.grad is None
