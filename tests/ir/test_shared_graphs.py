"""Graphs inside graphs inside graphs: one that many equations carry is looked at once."""

from __future__ import annotations

from typing import Any

import wonderland as wl
from wonderland.ir import Graph, verify
from wonderland.ir.cost import cost_of
from wonderland.ir.simplify import simplify


def doubling(levels: int) -> Any:
    """A function that calls another one twice, which calls another one twice, ...: 2^levels sines."""
    f = wl.jit(lambda x: wl.sin(x))
    for _ in range(levels):
        f = wl.jit(lambda x, f=f: f(f(x)))  # type: ignore[misc]
    return f


def test_passes_over_graphs_look_at_each_once() -> None:
    levels = 40
    graph: Graph = wl.make_graph(doubling(levels))(wl.ones(3))
    verify(graph)
    cost = cost_of(simplify(graph))
    assert cost.operations == {"sin": 2**levels}
    assert cost.multiply_adds == 3 * 2**levels
    assert len(str(graph).splitlines()) < 10 * levels
    assert str(graph).count("sin") == 1
    verify(wl.make_graph(wl.vmap(doubling(levels)))(wl.ones((2, 3))))


def test_a_long_chain_of_views_has_one_owner() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        for _ in range(2000):
            y = y.T
        return y.sum()

    assert wl.count(f, wl.ones((4, 5))).peak_bytes == 2 * 4 * 20 + 4
