"""The steps of `benchmarks/graphs.py` in PyTorch: layers of PyTorch Geometric, or products with CSR matrices.

Each workload has several forms, and the fastest one is measured: layers with an `edge_index` (gathers and scatters,
which `torch.compile` can fuse), layers with the adjacency as a `torch.sparse` CSR matrix, and the formulas written with
`torch.sparse.mm`, whose derivative is a product with the transpose that is stored, and with the matrix product before
or after it, whichever is less work. What depends on the graph alone (normalisation, self-loops) is computed once.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, global_add_pool

from ..made_graphs import Made, citations, molecules, network
from ..measuring import Step, faster
from .torch_workloads import classify, training

Maker = Callable[[], Step]


def best(*makers: Maker) -> Step:
    """The fastest form; those that this version or its compiler cannot run are left out."""
    steps = []
    for make in makers:
        try:
            step = make()
            step()
        except Exception as error:
            print(f"left out: {getattr(make, 'func', make)}: {type(error).__name__} {error}"[:300], file=sys.stderr)
        else:
            steps.append(step)
    return faster(*steps)


# --- graphs


def edge_index(made: Made, loops: bool = False) -> Tensor:
    ends = made.with_loops() if loops else (made.senders, made.receivers)
    return torch.from_numpy(np.stack(ends))


def values(made: Made, norm: str | None, loops: bool = False) -> Tensor:
    """The entries of the adjacency matrix in the order of the edges: 1, or normalised."""
    senders, receivers = edge_index(made, loops)
    degree = torch.bincount(receivers, minlength=made.nodes).clamp(min=1).float()
    if norm == "sym":
        return (degree[senders] * degree[receivers]) ** -0.5
    return 1 / degree[receivers] if norm == "row" else torch.ones(len(senders))


def matrix(made: Made, norm: str | None, loops: bool = False, transposed: bool = False) -> Tensor:
    senders, receivers = edge_index(made, loops)
    ends = [senders, receivers] if transposed else [receivers, senders]
    size = (made.nodes, made.nodes)
    return torch.sparse_coo_tensor(torch.stack(ends), values(made, norm, loops), size).coalesce().to_sparse_csr()


class Product(torch.autograd.Function):
    """A x, with the transpose of A at hand for the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, a: Tensor, transposed: Tensor) -> Tensor:
        ctx.transposed = transposed
        return torch.sparse.mm(a, x)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, None, None]:
        return torch.sparse.mm(ctx.transposed, slopes[0]) if ctx.needs_input_grad[0] else None, None, None


class Spread(nn.Module):
    def __init__(self, made: Made, norm: str | None, loops: bool = False) -> None:
        super().__init__()
        self.a, self.transposed = matrix(made, norm, loops), matrix(made, norm, loops, True)

    def forward(self, x: Tensor) -> Tensor:
        return Product.apply(x, self.a, self.transposed)


# --- layers written with products


class GCNLayer(nn.Module):
    def __init__(self, spread: Spread, size: int, out: int) -> None:
        super().__init__()
        self.lin, self.bias, self.spread = nn.Linear(size, out, bias=False), nn.Parameter(torch.zeros(out)), spread

    def forward(self, x: Tensor) -> Tensor:
        return self.spread(self.lin(x)) + self.bias


class SAGELayer(nn.Module):
    def __init__(self, spread: Spread, size: int, out: int) -> None:
        super().__init__()
        self.left, self.right, self.spread = nn.Linear(size, out), nn.Linear(size, out, bias=False), spread

    def forward(self, x: Tensor) -> Tensor:
        if self.left.in_features <= self.left.out_features:
            return self.left(self.spread(x)) + self.right(x)
        return self.spread(F.linear(x, self.left.weight)) + self.left.bias + self.right(x)


class GINLayer(nn.Module):
    def __init__(self, spread: Spread, network: nn.Sequential) -> None:
        super().__init__()
        self.nn, self.spread = network, spread

    def forward(self, x: Tensor) -> Tensor:
        first = self.nn[0]
        if first.in_features <= first.out_features:
            return self.nn(x + self.spread(x))
        h = F.linear(x, first.weight)
        return self.nn[1:](h + self.spread(h) + first.bias)


class GATLayer(nn.Module):
    """The formula of attention with sums over segments that are ranges of edges."""

    def __init__(self, made: Made, size: int, out: int, heads: int) -> None:
        super().__init__()
        self.heads, self.nodes = heads, made.nodes
        self.senders, self.receivers = edge_index(made, loops=True)
        self.lin, self.bias = nn.Linear(size, heads * out, bias=False), nn.Parameter(torch.zeros(heads * out))
        self.source, self.target = (nn.Parameter(torch.randn(heads, out) / out**0.5) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        h = self.lin(x).view(self.nodes, self.heads, -1)
        source, target = (h * self.source).sum(-1), (h * self.target).sum(-1)
        scores = F.leaky_relu(source[self.senders] + target[self.receivers], 0.2)
        index = self.receivers[:, None].expand_as(scores)
        top = torch.full_like(source, -torch.inf).scatter_reduce(0, index, scores.detach(), "amax")
        terms = torch.exp(scores - top[self.receivers])
        total = torch.zeros_like(source).index_add(0, self.receivers, terms)
        weighted = h[self.senders] * (terms / total[self.receivers])[..., None]
        return torch.zeros_like(h).index_add(0, self.receivers, weighted).flatten(1) + self.bias


# --- models


class Layers(nn.Module):
    def __init__(self, layers: list[nn.Module], activation: Any, *given: Any) -> None:
        super().__init__()
        self.layers, self.activation, self.given = nn.ModuleList(layers), activation, given

    def forward(self, x: Tensor) -> Tensor:
        *first, last = self.layers
        for layer in first:
            x = self.activation(layer(x, *self.given))
        return last(x, *self.given)


def step(made: Made, layers: list[nn.Module], *given: Any, activation: Any = F.relu) -> Step:
    model = Layers(layers, activation, *given)
    return training(model, classify, torch.from_numpy(made.x), torch.from_numpy(made.y))


def sizes(made: Made, hidden: int) -> list[tuple[int, int]]:
    return [(made.x.shape[1], hidden), (hidden, made.classes)]


def gcn(make: Callable[[], Made], hidden: int) -> Step:
    made = make()
    pairs = sizes(made, hidden)

    def by_edges() -> Step:
        return step(made, [GCNConv(a, b, cached=True) for a, b in pairs], edge_index(made))

    def by_matrix() -> Step:
        return step(made, [GCNConv(a, b, normalize=False) for a, b in pairs], matrix(made, "sym", True))

    def by_products() -> Step:
        spread = Spread(made, "sym", True)
        return step(made, [GCNLayer(spread, a, b) for a, b in pairs])

    return best(by_edges, by_matrix, by_products)


def sage(make: Callable[[], Made], hidden: int) -> Step:
    made = make()
    pairs = sizes(made, hidden)

    def by_edges() -> Step:
        return step(made, [SAGEConv(a, b) for a, b in pairs], edge_index(made))

    def by_matrix() -> Step:
        return step(made, [SAGEConv(a, b) for a, b in pairs], matrix(made, None))

    def by_products() -> Step:
        spread = Spread(made, "row")
        return step(made, [SAGELayer(spread, a, b) for a, b in pairs])

    return best(by_edges, by_matrix, by_products)


def perceptron(size: int, hidden: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, out))


def gin(make: Callable[[], Made], hidden: int) -> Step:
    made = make()

    def networks() -> list[nn.Sequential]:
        return [perceptron(a, hidden, b) for a, b in sizes(made, hidden)]

    def by_edges() -> Step:
        return step(made, [GINConv(f) for f in networks()], edge_index(made))

    def by_matrix() -> Step:
        return step(made, [GINConv(f) for f in networks()], matrix(made, None))

    def by_products() -> Step:
        spread = Spread(made, None)
        return step(made, [GINLayer(spread, f) for f in networks()])

    return best(by_edges, by_matrix, by_products)


def gat(make: Callable[[], Made], hidden: int, heads: int) -> Step:
    made = make()
    (a, _), (_, b) = sizes(made, hidden)

    def by_edges() -> Step:
        layers = [GATConv(a, hidden, heads, add_self_loops=False), GATConv(heads * hidden, b, add_self_loops=False)]
        return step(made, layers, edge_index(made, loops=True), activation=F.elu)

    def by_formula() -> Step:
        layers = [GATLayer(made, a, hidden, heads), GATLayer(made, heads * hidden, b, 1)]
        return step(made, layers, activation=F.elu)

    return best(by_edges, by_formula)


class Classifier(nn.Module):
    """GIN with batch normalization, and the sum over the nodes of every graph."""

    def __init__(self, made: Made, layers: list[nn.Module], hidden: int, *given: Any) -> None:
        super().__init__()
        assert made.graph_of is not None
        self.layers, self.given, self.out = nn.ModuleList(layers), given, nn.Linear(hidden, made.classes)
        self.graph_of, self.graphs = torch.from_numpy(made.graph_of), len(made.y)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = F.relu(layer(x, *self.given))
        return self.out(global_add_pool(x, self.graph_of, self.graphs))


def gin_graphs(hidden: int = 32, layers: int = 5) -> Step:
    made = molecules()

    def networks() -> list[nn.Sequential]:
        widths = [made.x.shape[1], *[hidden] * (layers - 1)]
        return [
            nn.Sequential(nn.Linear(c, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, hidden))
            for c in widths
        ]

    def classifier(parts: list[nn.Module], *given: Any) -> Step:
        model = Classifier(made, parts, hidden, *given)
        return training(model, classify, torch.from_numpy(made.x), torch.from_numpy(made.y))

    def by_edges() -> Step:
        return classifier([GINConv(f) for f in networks()], edge_index(made))

    def by_matrix() -> Step:
        return classifier([GINConv(f) for f in networks()], matrix(made, None))

    def by_products() -> Step:
        spread = Spread(made, None)
        return classifier([GINLayer(spread, f) for f in networks()])

    return best(by_edges, by_matrix, by_products)


GRAPHS: dict[str, Callable[[], Step]] = {
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
