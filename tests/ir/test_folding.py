"""Folding keeps the meaning of a graph, and takes the scales of channels out of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.engines.numpy.evaluate import evaluate
from wonderland.ir.folding import folded
from wonderland.ir.graph import Graph
from wonderland.ir.simplify import remove_dead, simplify
from wonderland.ir.verify import verify


def traced(model: Any, x: Any) -> tuple[Graph, Graph, list[Any]]:
    """The graph of a forward pass, the same one folded, and the arrays of its inputs."""
    f = wl.jit(lambda model, x: model(x))
    with wl.no_grad(), wl.using_backend("numpy"):
        f(model, x)
    found = f.last_trace
    graph = simplify(found.graph)
    # cells are told by their position among those of the arguments
    _, arguments, _ = f._find((model, x), {})
    cells = [arguments.cells[c] if type(c) is int else c for c in found.read_cells]
    arrays = [np.asarray(v) for v in [*found.captured, *cells, *arguments.operands]]
    return graph, folded(graph, found.graph.steady), arrays


def random_statistics(model: nn.Module) -> nn.Module:
    for i, cell in enumerate([*model.parameters(), *model.buffers()]):
        if cell.ndim == 1 and cell.dtype in (wl.float32, wl.float64):
            cell.assign(wl.random.uniform(cell.shape, 0.5, 2.0, dtype=cell.dtype, key=wl.random.key(i)))
    return model.eval()


def names(graph: Graph, rank: int) -> list[str]:
    """The operations that give results of a rank."""
    return [e.primitive.name for e in graph.equations if e.outputs[0].ndim == rank]


class Scaled(nn.Module):
    """A convolution, and what may stand behind it."""

    def __init__(self, form: str) -> None:
        self.conv = nn.Conv2d(4, 6, 3, groups=2)
        self.scale, self.shift = nn.Buffer(wl.ones(6)), nn.Buffer(wl.ones(6))
        self.form = form

    def forward(self, x: Any) -> Any:
        y = self.conv(x)
        forms = {
            "scaled": lambda: self.scale * y,
            "twice": lambda: ((y - self.shift) * self.scale + self.shift) * self.scale,
            "number": lambda: 3.0 * (y + 1.0),
            "turned": lambda: (self.shift - y) * self.scale,  # stays
            "seen": lambda: (y * self.scale) + y,  # stays
            "places": lambda: y * wl.reshape(self.scale, (6, 1)),  # stays: it is along another axis
        }
        return forms[self.form]()


@pytest.mark.parametrize("form", ["scaled", "twice", "number", "turned", "seen", "places"])
def test_a_folded_graph_gives_the_same(form: str) -> None:
    model = random_statistics(Scaled(form).astype(wl.float64))
    graph, better, arrays = traced(model, wl.random.normal((2, 8, 8, 4), dtype=wl.float64))
    verify(better)
    for a, b in zip(evaluate(graph, arrays), evaluate(better, arrays), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)
    if form in ("scaled", "twice", "number"):
        assert names(remove_dead(better), 4).count("multiply") == 1  # of the filter
        assert names(remove_dead(better), 4).count("add") == 1
    else:
        assert names(better, 4).count("convolution") == 1


def test_batch_normalisation_is_a_bias_and_nothing_else() -> None:
    block = nn.BasicBlock(6, 8, stride=2).astype(wl.float64)
    model = random_statistics(nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), block).astype(wl.float64))
    graph, better, arrays = traced(model, wl.random.normal((2, 9, 9, 3), dtype=wl.float64))
    verify(better)
    convolutions = names(graph, 4).count("convolution")
    assert names(graph, 4).count("subtract") == names(graph, 4).count("multiply") == convolutions
    assert names(better, 4).count("subtract") == 0
    assert names(better, 4).count("multiply") == convolutions  # filters
    for a, b in zip(evaluate(graph, arrays), evaluate(better, arrays), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-11)


def test_half_precision_stays_as_it_is() -> None:
    model = random_statistics(nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6)).astype(wl.float16))
    graph, better, _ = traced(model, wl.random.normal((2, 9, 9, 3), dtype=wl.float16))
    assert sorted(names(graph, 4)) == sorted(names(better, 4))
