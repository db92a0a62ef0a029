"""Layers with names of PyTorch Geometric have its numbers: outputs and gradients, made by tools/pyg_reference.py."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from tools.pyg_reference import MLP
from wonderland import nn

FILE = json.loads((Path(__file__).parents[2] / "reference/graphs.json").read_text(encoding="utf-8"))
GRAPH = FILE["graph"]
EDGE_INDEX = np.array(GRAPH["edges"])
N = GRAPH["nodes"]


def label(case):
    return f"{case['name']}({','.join(map(str, [*case['args'], *case.get('settings', {}).items()]))})".replace(" ", "")


def made(case):
    networks = {"mlp": MLP, "edge_mlp": [6, 5, 4]}
    args = [wl.models.MLP(networks[a], activation="tanh") if isinstance(a, str) else a for a in case["args"]]
    settings = dict(case.get("settings", {}))
    if case["name"] == "GINEConv":
        settings["in_features"] = MLP[0]
    layer = getattr(nn, case["name"])(*args, **settings).astype(wl.float64)
    state = dict(layer.state_dict())
    layer.load_state_dict({**state, **{path: wl.asarray(np.array(v)) for path, v in case["state"].items()}})
    trained = {path for path, p in layer.named_parameters()}
    assert trained == set(case["state"])  # nothing is left as it was drawn
    return layer


def graph_of(case, form):
    pairs = EDGE_INDEX[::-1].T
    takes = case.get("takes", [])
    weights = np.array(GRAPH["weight"]) if "weight" in takes else None
    attr = np.array(GRAPH["attr"]) if "attr" in takes else None
    if "batch" in takes:
        sizes = np.bincount(GRAPH["batch"])
        assert (sizes[0] > EDGE_INDEX).all()  # all edges are of the first graph
        return wl.graphs.Batch.from_graphs([wl.graphs.Graph(sizes[0], pairs), wl.graphs.Graph(sizes[1])])
    graph = wl.graphs.Graph(N, pairs, weights, edge_attr=attr)
    return graph if form == "graph" else (wl.asarray(EDGE_INDEX), attr, weights)


def called(case, layer, x, graph):
    if case["name"] == "TopKPooling":
        return layer.select(x, graph[0] if isinstance(graph, tuple) else graph)[0]
    if isinstance(graph, tuple):
        return layer(x, graph[0], *(graph[1:] if any(a is not None for a in graph[1:]) else ()))
    return layer(x, graph)


def agree(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("case", FILE["cases"], ids=label)
def test_outputs_and_gradients(case, compiled):
    layer, x = made(case), wl.asarray(np.array(case["x"]))
    ct = wl.asarray(np.array(case["cotangent"]))
    graph = graph_of(case, "graph")

    def loss(layer, x):
        y = called(case, layer, x, graph)
        return (y * ct).sum(), y

    step = wl.value_and_grad(loss, argnums=(0, 1), has_aux=True)
    (_, y), (grads, x_grad) = (wl.jit(step) if compiled else step)(layer, x)
    agree(y, case["output"])
    agree(x_grad, case["x_grad"])
    assert set(grads) == set(case["grads"])
    for path, expected in case["grads"].items():
        agree(grads[path], expected)
    if "places" in case:
        assert layer.select(x, graph)[1].tolist() == case["places"]


@pytest.mark.parametrize("case", [c for c in FILE["cases"] if "batch" not in c.get("takes", [])], ids=label)
@pytest.mark.book("12.56", name="nn.GCNConv")
def test_the_graph_may_be_an_argument_or_an_edge_index(case):
    """A traced pattern takes another way: self-loops are put into it by array operations."""
    layer, x = made(case), wl.asarray(np.array(case["x"]))
    agree(
        wl.jit(lambda layer, x, graph: called(case, layer, x, graph))(layer, x, graph_of(case, "graph")), case["output"]
    )
    agree(called(case, layer, x, graph_of(case, "index")), case["output"])
    agree(
        wl.jit(lambda layer, x, graph: called(case, layer, x, graph))(layer, x, graph_of(case, "index")), case["output"]
    )
