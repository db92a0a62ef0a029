"""What layers on graphs promise, as checks that anybody can apply to one. Book, sections 12.2.1 and 12.2.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ... import arrays
from ...arrays.conversion import as_inexact
from ...core.arguments import as_function, as_int
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike
from ...graphs import Batch, Graph
from ...transforms.derivatives import jacobian

__all__ = [
    "check_batched_graphs", "check_dense_graph", "check_graph_equivariance", "check_graph_invariance",
    "graph_receptive_field", "is_graph_local",
]  # fmt: skip

Layer: TypeAlias = Callable[..., Tensor]


def _largest(left: ArrayLike, right: ArrayLike) -> float:
    return float(np.abs(np.asarray(left) - np.asarray(right)).max(initial=0.0))


def check_graph_equivariance(layer: Layer, x: ArrayLike, graph: Graph, seed: int = 0) -> float:
    r"""The largest \(|f(PX, PAP^\top) - P f(X, A)|\) for a permutation of the nodes. Book, section 12.2.1.

    >>> import wonderland as wl
    >>> layer, path = wl.nn.GraphConv(3, 2, dtype=wl.float64), wl.graphs.path_graph(5)
    >>> x = wl.random.normal((5, 3), dtype=wl.float64)
    >>> wl.nn.check_graph_equivariance(layer, x, path) < 1e-12
    True
    >>> wl.nn.check_graph_equivariance(lambda x, g: x * wl.arange(5)[:, None], x, path) > 0.1
    True

    Layers draw nothing at random here: call `layer.eval()` before.
    """
    as_function("check_graph_equivariance", layer)
    order = np.random.default_rng(seed).permutation(graph.n)
    x = arrays.asarray(x)
    return _largest(layer(arrays.take(x, order, axis=0), graph.permute(order)), np.asarray(layer(x, graph))[order])


def check_graph_invariance(readout: Layer, x: ArrayLike, graph: Graph, seed: int = 0) -> float:
    r"""The largest \(|f(PX, PAP^\top) - f(X, A)|\) for a permutation of the nodes. Book, section 12.2.3.

    >>> import wonderland as wl
    >>> wl.nn.check_graph_invariance(wl.nn.Readout("sum"), wl.arange(5.0)[:, None], wl.graphs.path_graph(5))
    0.0
    """
    as_function("check_graph_invariance", readout)
    order = np.random.default_rng(seed).permutation(graph.n)
    x = arrays.asarray(x)
    return _largest(readout(arrays.take(x, order, axis=0), graph.permute(order)), readout(x, graph))


def graph_receptive_field(model: Layer, x: ArrayLike, graph: Graph, i: int) -> Array:
    r"""The nodes j with \(\partial h_i / \partial x_j \ne 0\), in rising order. Book, D.12.3; notes, section 7.6.

    >>> import wonderland as wl
    >>> layer = wl.nn.PolyGraphConv(3, 2, order=2)
    >>> wl.nn.graph_receptive_field(layer, wl.random.normal((6, 3)), wl.graphs.path_graph(6), 0).tolist()
    [0, 1, 2]

    Layers see neighbours, so k of them see k hops: `graph.k_hop(i, k)` where nodes are their own neighbours. A
    derivative that happens to be 0 at x, as behind a ReLU, hides a node: use smooth activations.
    """
    x = as_inexact("graph_receptive_field", x)
    at = as_int("graph_receptive_field", "i", i, 0)
    found = np.asarray(jacobian(lambda x: model(x, graph)[at])(x))  # (out, n, c)
    return np.flatnonzero((found != 0).any(axis=tuple(a for a in range(found.ndim) if a != found.ndim - x.ndim)))


def is_graph_local(layer: Layer, x: ArrayLike, graph: Graph, hops: int = 1, tolerance: float = 1e-9) -> bool:
    r"""Whether \(H_i = f(X_{N(i)}, A_{N(i)})\): the neighbourhood alone gives the same result. Book, D.12.1.

    >>> import wonderland as wl
    >>> x, path = wl.random.normal((6, 3), dtype=wl.float64), wl.graphs.path_graph(6).add_self_loops()
    >>> raw = wl.nn.GraphConv(3, 2, norm=None, dtype=wl.float64)
    >>> inside = wl.nn.GraphConv(3, 2, norm="sym", dtype=wl.float64)
    >>> wl.nn.is_graph_local(raw, x, path.normalize("sym")), wl.nn.is_graph_local(inside, x, path)
    (True, False)

    Every node is computed again on the graph of the nodes up to `hops` steps away from it. A layer that normalises
    inside sees other degrees there and is not local in this sense; one with a shift that was computed before is.
    """
    x = arrays.asarray(x)
    whole = np.asarray(layer(x, graph))
    for i in range(graph.n):
        near = np.union1d(graph.k_hop(i, hops), [i])
        part = np.asarray(layer(arrays.take(x, near, axis=0), graph.subgraph(near)))
        if np.abs(part[np.flatnonzero(near == i)[0]] - whole[i]).max(initial=0.0) > tolerance:
            return False
    return True


def check_dense_graph(layer: Layer, x: ArrayLike, graph: Graph) -> float:
    """The largest difference between a layer on a graph and on its matrix A. Book, section 12.2.4.

    >>> import wonderland as wl
    >>> wl.nn.check_dense_graph(wl.nn.GCNConv(3, 2), wl.ones((4, 3)), wl.graphs.path_graph(4)) < 1e-6
    True
    """
    return _largest(layer(x, graph), layer(x, graph.to_dense(arrays.asarray(x).dtype)))


def check_batched_graphs(layer: Layer, parts: list[tuple[ArrayLike, Graph]]) -> float:
    """The largest difference between graphs as a block-diagonal batch and one by one. Book, E.12.8.

    >>> import wonderland as wl
    >>> parts = [(wl.ones((n, 3)), wl.graphs.path_graph(n)) for n in (4, 2)]
    >>> wl.nn.check_batched_graphs(wl.nn.GCNConv(3, 2), parts) < 1e-6
    True
    """
    batch = Batch.from_graphs([graph for _, graph in parts])
    together = np.asarray(layer(arrays.concat([arrays.asarray(x) for x, _ in parts]), batch))
    alone = [np.asarray(layer(x, graph)) for x, graph in parts]
    whole = np.concatenate(alone) if alone[0].ndim == together.ndim else np.stack(alone)
    return _largest(together, whole)
