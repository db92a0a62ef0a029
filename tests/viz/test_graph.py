"""The picture of a graph is well-formed, self-contained SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

import wonderland as wl
from wonderland.viz import Edge, Node, draw

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    return ["".join(t.itertext()) for t in ET.fromstring(svg).iter(f"{SVG}text")]


def diamond():
    nodes = [
        Node("x", "x", [("value", "1")], "input"),
        Node("a", "sin(x)", [("value", "0.84")], name="a"),
        Node("b", "cos(x)", [("value", "0.54")], name="b"),
        Node("y", "a * b", [("value", "0.45")], "output", name="y"),
    ]
    return nodes, [("x", "a"), Edge("x", "b"), Edge("a", "y", "0.54"), ("b", "y")]


def test_cards_arrows_and_labels():
    nodes, edges = diamond()
    svg = draw(nodes, edges, title="diamond")
    found = texts(svg)
    assert {"x", "a  sin(x)", "y  a * b", "0.45", "0.54", "value"} <= set(found)
    root = ET.fromstring(svg)
    assert sum(p.get("class") == "edge" for p in root.iter(f"{SVG}path")) == 4
    assert root.find(f"{SVG}title").text == "diamond"
    assert root.get("aria-label") == "diamond"


def test_text_is_escaped():
    svg = draw([Node("n", "a < b & c", [("<label>", '"quoted"')], name="n&m")], [], title='<script>"')
    assert {"n&m  a < b & c", "<label>", '"quoted"'} <= set(texts(svg))
    assert "<script>" not in svg


def test_nothing_is_loaded_from_elsewhere():
    svg = draw(*diamond())
    assert svg.count("http") == 1, "the name of the format only"
    assert not {"script", "image", "foreignObject"} & {e.tag.removeprefix(SVG) for e in ET.fromstring(svg).iter()}


def test_cards_are_wide_enough_for_their_text():
    short, long = Node("a", "x"), Node("b", "x" * 50)
    assert long.size[0] > 50 * 7.8 > short.size[0]
    assert Node("c", "x", [("label", "y" * 60)]).size[0] > 60 * 7.8


def test_bad_graphs_are_refused():
    nodes, edges = diamond()
    with pytest.raises(wl.errors.InputError, match="kind 'colourful'"):
        draw([Node("a", "a", kind="colourful")], [])
    with pytest.raises(wl.errors.InputError, match="same id"):
        draw([*nodes, nodes[0]], edges)
    with pytest.raises(wl.errors.InputError, match="cycle"):
        draw(nodes, [*edges, ("y", "x")])


def test_an_empty_graph_is_an_empty_picture():
    assert texts(draw([], [])) == []


def test_a_graph_can_go_downwards():
    nodes, edges = diamond()
    root = ET.fromstring(draw(nodes, edges, down=True))
    assert sorted(texts(draw(nodes, edges, down=True))) == sorted(texts(draw(nodes, edges)))
    groups = [g for g in root.iter(f"{SVG}g") if g.find(f"{SVG}rect") is not None and len(list(g)) > 3]
    corners = [tuple(map(float, g.get("transform")[10:-1].split())) for g in groups]
    x, a, b, y = corners
    assert x[1] < a[1] == b[1] < y[1], "one level below the other"
    assert a[0] != b[0], "side by side"
    for path in (p for p in root.iter(f"{SVG}path") if p.get("class") == "edge"):
        ends = re.findall(r"(-?[\d.]+),(-?[\d.]+)", path.get("d"))
        assert float(ends[0][1]) < float(ends[-1][1])
    width, height = float(root.get("width")), float(root.get("height"))
    assert height > width
