"""Levels and placement: a topological order, no overlaps, arrows to the right."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland.viz.layout import arrange, levels


@st.composite
def acyclic_graphs(draw):
    count = draw(st.integers(1, 12))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=25)) if pairs else []
    order = draw(st.permutations(range(count)))
    return [order[i] for i in range(count)], [(order[a], order[b]) for a, b in edges]


@pytest.mark.book("A3-17", "A3-20", name="wl.viz.levels")
@given(acyclic_graphs())
def test_levels_are_a_topological_order_without_edges_inside(graph):
    nodes, edges = graph
    level = levels(nodes, edges)
    assert all(level[a] < level[b] for a, b in edges)
    # no level is higher than needed
    for node in nodes:
        before = [level[a] for a, b in edges if b == node]
        assert level[node] == (max(before) + 1 if before else 0)


def test_a_cycle_and_a_missing_node_are_refused():
    with pytest.raises(wl.errors.InputError, match="cycle among b, c"):
        levels("abc", [("a", "b"), ("b", "c"), ("c", "b")])
    with pytest.raises(wl.errors.InputError, match="'z', which is not a node"):
        levels("ab", [("a", "z")])


@given(acyclic_graphs())
def test_cards_do_not_overlap_and_arrows_point_right(graph):
    nodes, edges = graph
    sizes = {node: (60.0 + 10 * (node % 3), 40.0 + 5 * (node % 2)) for node in nodes}
    layout = arrange(sizes, edges)
    width, height = layout.size
    for a, (x, y) in layout.corners.items():
        assert -1e-6 <= x <= width - sizes[a][0] + 1e-6
        assert -1e-6 <= y <= height - sizes[a][1] + 1e-6
        for b, (u, v) in layout.corners.items():
            beside = x + sizes[a][0] <= u or u + sizes[b][0] <= x
            above = y + sizes[a][1] <= v + 1e-6 or v + sizes[b][1] <= y + 1e-6
            assert a == b or beside or above
    for route in layout.routes:
        assert all(p[0] <= q[0] for p, q in itertools.pairwise(route))


@given(acyclic_graphs())
def test_arrows_pass_beside_the_cards(graph):
    nodes, edges = graph
    sizes = dict.fromkeys(nodes, (60.0, 40.0))
    layout = arrange(sizes, edges)
    for route in layout.routes:
        for x, y in route[1:-1]:
            for left, top in layout.corners.values():
                assert not (left < x < left + 60 and top < y < top + 40)


def test_a_chain_is_straight_and_a_crossing_is_undone():
    chain = arrange(dict.fromkeys("abc", (10.0, 10.0)), [("a", "b"), ("b", "c")])
    assert len({y for _, y in chain.corners.values()}) == 1
    # drawn in the given order, a-d and b-c would cross
    pairs = arrange(dict.fromkeys("abcd", (10.0, 10.0)), [("a", "d"), ("b", "c")])
    corner = pairs.corners
    assert (corner["a"][1] < corner["b"][1]) == (corner["d"][1] < corner["c"][1])


def test_a_weight_stands_next_to_its_layer():
    layout = arrange(dict.fromkeys("xabcw", (10.0, 10.0)), [("x", "a"), ("a", "b"), ("b", "c"), ("w", "c")])
    assert layout.corners["w"][0] == layout.corners["b"][0]


def test_nothing_to_place():
    assert arrange({}, []).size == (0.0, 0.0)


def test_a_thousand_nodes_lie_apart_in_the_order_of_their_edges():
    count = 1000
    edges = [(i, j) for i in range(count) for j in (i + 1, i + 7) if j < count]
    found = arrange(dict.fromkeys(range(count), (60.0, 40.0)), edges)
    assert len({found.corners[i] for i in range(count)}) == count
