"""Drawings: every node on the paper, apart from the others, in the colour of its class."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import wonderland as wl
from tests.graphs.test_graph import worked
from wonderland.errors import ShapeError, SizeError
from wonderland.graphs import Graph

SVG = "{http://www.w3.org/2000/svg}"


def circles(svg: str) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter(f"{SVG}circle"))


@pytest.mark.parametrize(
    "graph", [worked(), wl.graphs.grid_graph(6, 6), Graph(5), wl.graphs.star_graph(30), Graph(0), Graph(1, [(0, 0)])]
)
def test_nodes_are_on_the_paper_and_apart(graph):
    svg = wl.graphs.draw(graph, labels=True, title="a graph", size=(500, 400))
    found = circles(svg)
    assert len(found) == graph.n
    at = np.array([[float(c.get("cx")), float(c.get("cy"))] for c in found]).reshape(-1, 2)
    radius = float(found[0].get("r")) if found else 0
    assert ((at > radius) & (at < np.array([500, 400]) - radius)).all()
    gaps = np.linalg.norm(at[:, None] - at[None], axis=2) + 1e9 * np.eye(graph.n)
    assert gaps.min(initial=1e9) > 1.5 * radius
    assert svg == wl.graphs.draw(graph, labels=True, title="a graph", size=(500, 400))


def test_neighbours_are_nearer_than_others():
    graph = wl.graphs.stochastic_block_model([12, 12], 0.6, 0.05)
    at = wl.graphs.spring_layout(graph)
    assert at.min() >= 0
    assert at.max() <= 1
    rows, cols = graph.ends()
    every = np.linalg.norm(at[:, None] - at[None], axis=2)
    assert every[rows, cols].mean() < 0.7 * every.mean()
    with pytest.raises(SizeError, match="k_hop"):
        wl.graphs.spring_layout(Graph(5000))


def test_colours_of_classes_values_and_mistakes():
    graph = worked()
    svg = wl.graphs.draw(
        graph, ["cat", "dog", "cat", "dog"], predictions=["cat", "cat", "cat", "dog"], names=["C", "D"]
    )
    fills = [c.get("fill") for c in circles(svg)]
    assert fills[0] == fills[1] == fills[2] != fills[3]
    assert [c.get("stroke") == "#dc2626" for c in circles(svg)] == [False, True, False, False]
    for name in ("C", "D", "wrong"):
        assert re.search(f">{name}<", svg)
    shades = [c.get("fill") for c in circles(wl.graphs.draw(graph, [0.0, 1.0, np.nan, 0.5]))]
    assert shades[:3] == ["#dbeafe", "#024a86", "#e2e8f0"]
    labelled = wl.graphs.draw(graph.with_(y=[0, 1, 1, 0]))
    assert len({c.get("fill") for c in circles(labelled)}) == 2


def test_edges_are_as_wide_as_they_matter():
    graph = Graph(3, [(0, 1), (1, 2)])
    svg = wl.graphs.draw(graph, edge_values=[0.1, 0.9])
    widths = [float(e.get("stroke-width")) for e in ET.fromstring(svg).iter(f"{SVG}line")]
    assert len(widths) == 2
    assert widths[1] > 2 * widths[0]
    assert len(list(ET.fromstring(svg).iter(f"{SVG}polyline"))) == 2  # arrows
    both = wl.graphs.draw(worked())
    assert len(list(ET.fromstring(both).iter(f"{SVG}line"))) == 4
    attention = wl.graphs.draw(worked(), edge_values=np.arange(8) / 8)
    assert len(list(ET.fromstring(attention).iter(f"{SVG}line"))) == 8  # each direction has its own
    loops = wl.graphs.draw(worked().add_self_loops())
    assert len(list(ET.fromstring(loops).iter(f"{SVG}polyline"))) == 4


def test_what_does_not_fit():
    graph = worked()
    for wrong in (
        {"colours": [0, 1]},
        {"predictions": [0]},
        {"edge_values": [1.0]},
        {"labels": ["a"]},
        {"places": np.zeros((2, 2))},
    ):
        with pytest.raises(ShapeError):
            wl.graphs.draw(graph, **wrong)
    marks = wl.graphs.drawing(graph).marks
    assert len(marks) == 8
