"""Graphs from graphs: self-loops, both directions, duplicates summed, other orders of the nodes, parts.

Weights stay differentiable through all of them. Book, sections 12.1.1 and 12.2.1.
"""

from __future__ import annotations

import numpy as np

from ..arrays import asarray, concat, full, maximum, ones
from ..core.arguments import as_int
from ..core.dtypes import float32, is_floating
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike
from ..data.masking import IGNORED
from ..sparse import Incidence, segment_sum
from .checking import as_permutation
from .graph import Graph


def edge_subset(graph: Graph, keep: Array) -> Graph:
    """The graph with the edges at some places (integers or a mask), in that order, and all nodes."""
    rows, cols = graph.ends()
    return graph._copy(
        _ends=(rows[keep], cols[keep]),
        _pattern=None,
        _undirected=None,
        weight=_rows(graph.weight, keep),
        edge_attr=_rows(graph.edge_attr, keep),
        edge_y=_rows(graph.edge_y, keep),
    )


def _rows(values: Tensor | None, places: Array) -> Tensor | None:
    return None if values is None else values[np.flatnonzero(places) if places.dtype == np.bool_ else places]


def weights_of(graph: Graph, dtype: object = None) -> Tensor:
    """The weights (m,), ones where there are none."""
    if graph.weight is None:
        return ones((graph.num_edges,), dtype=dtype or float32)  # type: ignore[arg-type]
    return graph.weight if dtype is None else graph.weight.astype(dtype)  # type: ignore[arg-type]


def add_self_loops(graph: Graph, weight: float = 1.0, fill: float = 0.0) -> Graph:
    r"""\(A \leftarrow A + I\) for the nodes without a self-loop, so calling it twice changes nothing more.

    >>> import wonderland as wl
    >>> wl.graphs.Graph(3, [(0, 1), (2, 2)]).add_self_loops().add_self_loops().edges.tolist()
    [[0, 1], [2, 2], [0, 0], [1, 1]]

    The new edges come last; their features are `fill`, and their labels count for nothing (-100, or NaN).
    Book, section 12.1.1.
    """
    rows, cols = graph.ends()
    bare = np.ones(graph.n, bool)
    bare[rows[rows == cols]] = False
    new = np.flatnonzero(bare)
    changes: dict[str, object] = {
        "_ends": (np.concatenate([rows, new]), np.concatenate([cols, new])),
        "_pattern": None,
        "edge_attr": _extended(graph.edge_attr, len(new), fill),
    }
    if graph.weight is not None or weight != 1.0:
        changes["weight"] = _extended(weights_of(graph), len(new), weight)
    if graph.edge_y is not None:
        changes["edge_y"] = _extended(graph.edge_y, len(new), np.nan if is_floating(graph.edge_y.dtype) else IGNORED)
    return graph._copy(**changes) if len(new) else graph._copy()


def _extended(values: Tensor | None, count: int, fill: float) -> Tensor | None:
    if values is None:
        return None
    return concat([values, full((count, *values.shape[1:]), fill, dtype=values.dtype)])


def remove_self_loops(graph: Graph) -> Graph:
    """The graph without edges from a node to itself.

    >>> import wonderland as wl
    >>> wl.graphs.Graph(2, [(0, 0), (0, 1)]).remove_self_loops().edges.tolist()
    [[0, 1]]
    """
    rows, cols = graph.ends()
    found = edge_subset(graph, rows != cols)
    return found._copy(_undirected=True) if graph._undirected else found


def coalesce(graph: Graph) -> Graph:
    """The graph in which each pair is there once, sorted: weights and features of equal pairs are summed.

    >>> import wonderland as wl
    >>> graph = wl.graphs.Graph(2, [(1, 0), (0, 1), (1, 0)]).coalesce()
    >>> graph.edges.tolist(), graph.weight.tolist()
    ([[0, 1], [1, 0]], [1.0, 2.0])

    Of labels of edges the first is kept. Without weights and duplicates there are none afterwards, too.
    """
    rows, cols = graph.ends()
    keys, first, of = np.unique(rows * graph.n + cols, return_index=True, return_inverse=True)
    if len(keys) == len(rows):
        return edge_subset(graph, first)._copy(_undirected=graph._undirected)
    lines = Incidence.of(of, len(keys))
    return graph._copy(
        _ends=(rows[first], cols[first]),
        _pattern=None,
        weight=segment_sum(weights_of(graph), lines),
        edge_attr=None if graph.edge_attr is None else segment_sum(graph.edge_attr, lines),
        edge_y=_rows(graph.edge_y, first),
    )


def to_undirected(graph: Graph, how: str = "max") -> Graph:
    r"""Both directions of every edge, and equal weights: the larger of \(A_{ij}, A_{ji}\) ("max"), "mean" or "sum".

    >>> import wonderland as wl
    >>> wl.graphs.Graph(3, [(0, 1), (1, 2)], [1.0, 3.0]).to_undirected().to_dense().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 3.0], [0.0, 3.0, 0.0]]

    A direction that is missing counts as the same edge for "max", and as 0 for "mean" and "sum". It takes the features
    of the one that is there. Duplicates are summed first. Book, section 12.1.1.
    """
    if how not in ("max", "mean", "sum"):
        raise InputError(f"to_undirected: how={how!r}.", '"max", "mean" or "sum"')
    graph = coalesce(graph)
    rows, cols = graph.ends()
    keys, mirrors = rows * graph.n + cols, cols * graph.n + rows
    place = np.minimum(np.searchsorted(keys, mirrors), max(len(keys) - 1, 0))  # keys are sorted
    there = keys[place] == mirrors if len(keys) else np.zeros(0, bool)
    lone = np.flatnonzero(~there)
    every = np.concatenate([np.arange(len(rows)), lone])
    weight = graph.weight
    if weight is not None or how != "max":
        weight = weights_of(graph)
        other = weight[np.where(there, place, np.arange(len(rows)))]
        if how == "max":
            weight = maximum(weight, other)
        else:  # a self-loop is its own mirror
            other = other * asarray((there & (rows != cols)).astype(weight.dtype))
            loops = asarray(np.where(rows == cols, 1.0 if how == "sum" else 2.0, 1.0).astype(weight.dtype))
            weight = (weight * loops + other) * (1.0 if how == "sum" else 0.5)
    whole = graph._copy(weight=weight, _ends=(rows, cols))
    made = edge_subset(whole, every)
    ends = np.concatenate([rows, cols[lone]]), np.concatenate([cols, rows[lone]])
    return made._copy(_ends=ends, _undirected=True)


def permute(graph: Graph, perm: ArrayLike) -> Graph:
    r"""The same graph with its nodes in another order: node i is the former node `perm[i]`.

    >>> import wonderland as wl
    >>> wl.graphs.Graph(3, [(0, 1)], x=[[0.0], [1.0], [2.0]]).permute([2, 0, 1]).edges.tolist()
    [[1, 2]]

    \(A'_{ij} = A_{\pi(i)\pi(j)}\) and \(X'_i = X_{\pi(i)}\), that is \((PX, PAP^T)\). Book, section 12.1.2.
    """
    order = as_permutation("permute", perm, graph.n)
    places = np.argsort(order)
    rows, cols = graph.ends()
    return graph._copy(_ends=(places[rows], places[cols]), _pattern=None, **graph._at_nodes(order))


def subgraph(graph: Graph, nodes: ArrayLike) -> Graph:
    r"""The induced subgraph \((X_T, A_T)\): some nodes, numbered anew in the given order, and all edges among them.

    >>> import wonderland as wl
    >>> graph = wl.graphs.Graph(4, [(0, 1), (1, 2), (2, 3)], [1.0, 2.0, 3.0])
    >>> part = graph.subgraph([3, 2, 1])
    >>> part.edges.tolist(), part.weight.tolist()
    ([[2, 1], [1, 0]], [2.0, 3.0])

    `nodes` are integers, each at most once, or a mask (n,). Edges keep their order. Book, section 12.2.1.
    """
    chosen = graph.select_nodes(nodes)
    place = np.full(graph.n, -1)
    place[chosen] = np.arange(len(chosen))
    if (place[chosen] != np.arange(len(chosen))).any():
        values, counts = np.unique(chosen, return_counts=True)
        raise InputError(f"subgraph: node {values[counts > 1][0]} is asked for more than once.", "each node once")
    rows, cols = graph.ends()
    part = edge_subset(graph, (place[rows] >= 0) & (place[cols] >= 0))
    rows, cols = part.ends()
    kept = True if graph._undirected else None
    return part._copy(n=len(chosen), _ends=(place[rows], place[cols]), _undirected=kept, **graph._at_nodes(chosen))


def lines_of(graph: Graph) -> tuple[Array, Array]:
    """Where the neighbours of each node begin and end, (n + 1,), and the neighbours, (m,)."""
    lines = graph.pattern.rows
    graph.ends()  # says it if the graph is traced
    return np.asarray(lines.ptr).astype(np.int64), np.asarray(lines.other).astype(np.int64)


def neighbors(graph: Graph, i: int) -> Array:
    r"""\(N(i) = \{j : (i, j) \in E\}\), in rising order. Book, section 12.1.3.

    >>> import wonderland as wl
    >>> wl.graphs.Graph(3, [(0, 2), (0, 1), (1, 0)]).neighbors(0)
    array([1, 2])
    """
    node = int(graph.select_nodes([i])[0])
    starts, others = lines_of(graph)
    return np.unique(others[starts[node] : starts[node + 1]])


def neighbors_of(starts: Array, others: Array, nodes: Array) -> tuple[Array, Array]:
    """For several nodes: the places of their entries in the order of the rows, and to which of them each belongs."""
    counts = starts[nodes + 1] - starts[nodes]
    owner = np.repeat(np.arange(len(nodes)), counts)
    first = np.cumsum(counts) - counts
    return np.arange(len(owner)) - np.repeat(first - starts[nodes], counts), owner


def k_hop(graph: Graph, i: int | ArrayLike, k: int) -> Array:
    r"""The nodes at distance at most k from a node (or from some), which is \(N^k(i)\) with self-loops.

    >>> import wonderland as wl
    >>> graph = wl.graphs.Graph(4, [(0, 1), (0, 2), (1, 2), (1, 3)], directed=False)
    >>> graph.k_hop(3, 1), graph.k_hop(3, 2)
    (array([1, 3]), array([0, 1, 2, 3]))

    They are the nonzeros of row i of \((A + I)^k\), in rising order. Book, section 12.2.1.
    """
    front = graph.select_nodes(np.atleast_1d(np.asarray(i)))
    starts, others = lines_of(graph)
    seen = np.zeros(graph.n, bool)
    seen[front] = True
    for _ in range(as_int("k_hop", "k", k, least=0)):
        places, _ = neighbors_of(starts, others, front)
        reached = np.unique(others[places])
        front = reached[~seen[reached]]
        if not len(front):
            break
        seen[front] = True
    return np.flatnonzero(seen)
