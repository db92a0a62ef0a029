"""Networks on graphs: training steps on a graph of Cora's size, on a large one, and on many small ones; and memory.

| name | model | graph |
|---|---|---|
| gcn_cora | two graph convolutions 1433-16-7, ReLU | 2708 nodes, 10556 edges |
| gat_cora | attention 1433-8 with 8 heads, ELU, and 64-7 with one | |
| sage_cora | GraphSAGE 1433-64-7 with means, ReLU | |
| gin_cora | GIN with networks 1433-64-64 and 64-64-7, ReLU | |
| gcn_large, sage_large | the same with 64-64-10 | 100000 nodes, 1000000 edges |
| gat_large | 64-8 with 8 heads, 64-10 with one | |
| gin_large | networks 64-64-64 and 64-64-10 | |
| gin_graphs | five GIN layers 7-32 with batch normalization, sums over graphs | 512 graphs of 10 to 30 nodes |

Steps are forward pass, backward pass and update by Adam, in float32, with the labels of all nodes (graphs) and without
dropout. Graphs are made from a seed and are the same for everybody (`made_graphs.py`); what depends on them alone, as
normalised weights and self-loops, is computed before. The peers have several forms, of which the fastest is measured
(see peers/torch_graphs.py and peers/jax_graphs.py). Arguments make graphs smaller, for tests.

The second table has the memory that a compiled layer and its derivatives need, for nodes and edges that double.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import wonderland as wl
from wonderland import nn

from . import steps
from .made_graphs import Made, citations, molecules, network
from .options import Options
from .printed import Table
from .workloads import Step, training

F = nn.functional


class Layers(nn.Module):
    """Layers one after another on one graph, with an activation between them."""

    def __init__(self, layers: list[nn.Module], activation: Callable[[wl.Tensor], wl.Tensor] = wl.relu) -> None:
        self.layers, self.activation = nn.ModuleList(layers), activation

    def forward(self, x: wl.Tensor, graph: Any) -> wl.Tensor:
        *first, last = self.layers
        for layer in first:
            x = self.activation(layer(x, graph))
        return last(x, graph)


class Classifier(nn.Module):
    """Layers, the sum over the nodes of every graph, and a linear layer."""

    def __init__(self, layers: list[nn.Module], hidden: int, classes: int) -> None:
        self.layers, self.readout = nn.ModuleList(layers), nn.Readout("sum")
        self.out = nn.Linear(hidden, classes)

    def forward(self, x: wl.Tensor, graph: Any) -> wl.Tensor:
        for layer in self.layers:
            x = wl.relu(layer(x, graph))
        return self.out(self.readout(x, graph))


def classify(model: nn.Module, given: tuple[wl.Tensor, Any], y: wl.Tensor) -> wl.Tensor:
    return F.cross_entropy(model(*given), y)


def graph_of(made: Made, loops: bool = False) -> wl.graphs.Graph:
    """The graph, with self-loops among its edges if they are wanted: rows of its pattern stay in order then."""
    senders, receivers = made.with_loops() if loops else (made.senders, made.receivers)
    return wl.graphs.Graph(made.nodes, np.stack([receivers, senders], 1))


def step(made: Made, graph: Any, layers: list[nn.Module], activation: Any = wl.relu) -> Step:
    given: Any = (wl.tensor(made.x), graph)
    return training(Layers(layers, activation), classify, given, wl.tensor(made.y))


def ends(made: Made, hidden: int) -> list[tuple[int, int]]:
    """The sizes of two layers."""
    return [(made.x.shape[1], hidden), (hidden, made.classes)]


def gcn(make: Callable[..., Made], hidden: int, **sizes: int) -> Step:
    made = make(**sizes)
    shift = nn.as_shift(graph_of(made, loops=True), "sym", self_loops=True)
    return step(made, shift, [nn.GCNConv(a, b) for a, b in ends(made, hidden)])


def sage(make: Callable[..., Made], hidden: int, **sizes: int) -> Step:
    made = make(**sizes)
    shift = nn.as_shift(graph_of(made), "row")
    return step(made, shift, [nn.SAGEConv(a, b) for a, b in ends(made, hidden)])


def gat(make: Callable[..., Made], hidden: int, heads: int, **sizes: int) -> Step:
    made = make(**sizes)
    (a, _), (_, b) = ends(made, hidden)
    shift = nn.as_shift(graph_of(made, loops=True), self_loops=True)
    return step(made, shift, [nn.GATConv(a, hidden, heads), nn.GATConv(heads * hidden, b)], F.elu)


def perceptron(size: int, hidden: int, out: int) -> nn.Module:
    return nn.Sequential(nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, out))


def gin(make: Callable[..., Made], hidden: int, **sizes: int) -> Step:
    made = make(**sizes)
    return step(made, graph_of(made), [nn.GINConv(perceptron(a, hidden, b)) for a, b in ends(made, hidden)])


def gin_graphs(hidden: int = 32, layers: int = 5, **sizes: int) -> Step:
    made = molecules(**sizes)
    networks = [
        nn.Sequential(nn.Linear(c, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        for c in (made.x.shape[1], *[hidden] * (layers - 1))
    ]
    model = Classifier([nn.GINConv(f) for f in networks], hidden, made.classes)
    given: Any = (wl.tensor(made.x), batch_of(made))
    return training(model, classify, given, wl.tensor(made.y))


def batch_of(made: Made) -> wl.graphs.Batch:
    """Small graphs as a data set has them, and as a loader puts them together."""
    assert made.graph_of is not None
    sizes = np.bincount(made.graph_of)
    starts = np.cumsum(sizes) - sizes
    pairs = np.stack([made.receivers, made.senders], 1)
    bounds = np.searchsorted(made.receivers, [*starts, made.nodes])
    graphs = [
        wl.graphs.Graph(int(n), pairs[low:high] - start)
        for n, start, low, high in zip(sizes, starts, bounds[:-1], bounds[1:], strict=True)
    ]
    return wl.graphs.Batch.from_graphs(graphs)


GRAPHS: dict[str, Callable[..., Step]] = {
    "gcn_cora": functools.partial(gcn, citations, 16),
    "gat_cora": functools.partial(gat, citations, 8, 8),
    "sage_cora": functools.partial(sage, citations, 64),
    "gin_cora": functools.partial(gin, citations, 64),
    "gcn_large": functools.partial(gcn, network, 64),
    "gat_large": functools.partial(gat, network, 8, 8),
    "sage_large": functools.partial(sage, network, 64),
    "gin_large": functools.partial(gin, network, 64),
    "gin_graphs": gin_graphs,
}


# --- memory


def memory_of(f: Callable[..., Any], *args: Any) -> float:
    """The bytes that a compiled function needs beside its arguments and results."""
    return float(wl.explain(f, *args).arena_bytes)


def layers(width: int) -> dict[str, nn.Module]:
    return {
        "GCNConv": nn.GCNConv(width, width),
        "GATConv": nn.GATConv(width, width // 4, 4),
        "GATv2Conv": nn.GATv2Conv(width, width // 4, 4),
        "SAGEConv": nn.SAGEConv(width, width),
        "GINConv": nn.GINConv(perceptron(width, width, width)),
        "EdgeConv": nn.EdgeConv(perceptron(2 * width, width, width)),
    }


def growth(name: str, sizes: list[int], width: int = 32, degree: int = 8) -> list[tuple[float, float]]:
    """The memory of a layer, and of it with all derivatives, in numbers for each node and edge, for these sizes."""

    def forward(layer: nn.Module, x: wl.Tensor, graph: Any) -> wl.Tensor:
        return layer(x, graph)

    def squares(layer: nn.Module, x: wl.Tensor, graph: Any) -> wl.Tensor:
        return (layer(x, graph) ** 2).sum()

    layer, found = layers(width)[name], []
    for nodes in sizes:
        made = network(nodes, degree * nodes, width)
        given = layer, wl.tensor(made.x), graph_of(made)
        ways = (wl.jit(forward), wl.jit(wl.value_and_grad(squares, (0, 1))))
        once, both = (memory_of(f, *given) / 4 / (nodes + len(made.senders)) for f in ways)
        found.append((once, both))
    return found


def memory(options: Options, sizes: tuple[int, ...] = (2000, 8000, 32000)) -> None:
    columns = ["layer", *[f"{what}, {n} nodes" for what in ("forward", "with derivatives") for n in sizes]]
    title = (
        "Memory of a compiled layer, width 32, 8 edges for each node: numbers for each node and edge (aim: constant)"
    )
    table = Table(title, columns, options)
    for name in layers(4):
        found = growth(name, list(sizes))
        table.row(name, *[f"{pair[way]:.1f}" for way in (0, 1) for pair in found])


def main(options: Options | None = None) -> None:
    options = options or Options()
    steps.main(options, GRAPHS, measures=1)
    memory(options)


if __name__ == "__main__":
    main()
