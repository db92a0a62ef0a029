"""Graphs of regular shape: sets, sequences, rings, stars, images. Book, section 12.1.1 (figure 12.1)."""

from __future__ import annotations

import numpy as np

from ..core.arguments import as_int
from ..core.typing import Array, ArrayLike
from .graph import Graph


def undirected(n: int, first: Array, second: Array, **fields: ArrayLike | None) -> Graph:
    """The graph of edges that are known to be different and given once each."""
    pairs = np.concatenate([np.stack([first, second], axis=1), np.stack([second, first], axis=1)])
    return Graph(n, pairs, **fields)._copy(_undirected=True)  # type: ignore[arg-type]


def set_graph(n: int) -> Graph:
    """A set: n nodes that see nobody but themselves, A = I.

    >>> import wonderland as wl
    >>> wl.graphs.set_graph(2).to_dense().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    nodes = np.arange(as_int("set_graph", "n", n, least=0))
    return Graph(len(nodes), np.stack([nodes, nodes], axis=1))._copy(_undirected=True)


def complete_graph(n: int, self_loops: bool = False) -> Graph:
    """Every node sees every other one; with self-loops A is all ones, which is what self-attention looks at.

    >>> import wonderland as wl
    >>> wl.graphs.complete_graph(4)
    Graph(4 nodes, 6 undirected edges)
    """
    n = as_int("complete_graph", "n", n, least=0)
    rows, cols = np.divmod(np.arange(n * n), max(n, 1))
    keep = slice(None) if self_loops else rows != cols
    return Graph(n, np.stack([rows[keep], cols[keep]], axis=1))._copy(_undirected=True)


def path_graph(n: int) -> Graph:
    """A sequence: each node sees the one before and the one after. Its A is a Toeplitz matrix.

    >>> import wonderland as wl
    >>> wl.graphs.path_graph(4).degree().tolist()
    [1.0, 2.0, 2.0, 1.0]
    """
    nodes = np.arange(as_int("path_graph", "n", n, least=0))
    return undirected(len(nodes), nodes[:-1], nodes[1:])


def ring_graph(n: int) -> Graph:
    """A path whose ends meet; its eigenvectors are those of the discrete Fourier transform.

    >>> import wonderland as wl
    >>> wl.graphs.ring_graph(5)
    Graph(5 nodes, 5 undirected edges)
    """
    nodes = np.arange(as_int("ring_graph", "n", n, least=3))
    return undirected(len(nodes), nodes, np.roll(nodes, -1))


cycle_graph = ring_graph


def star_graph(n: int) -> Graph:
    """Node 0 and n - 1 others that see it alone.

    >>> import wonderland as wl
    >>> wl.graphs.star_graph(4).degree().tolist()
    [3.0, 1.0, 1.0, 1.0]
    """
    others = np.arange(1, as_int("star_graph", "n", n, least=1))
    return undirected(len(others) + 1, np.zeros_like(others), others)


def grid_graph(height: int, width: int, diagonals: bool = False) -> Graph:
    """The pixels of an image, row by row: each sees the 4 that it shares a border with, or 8 with `diagonals`.

    >>> import wonderland as wl
    >>> wl.graphs.grid_graph(8, 8)
    Graph(64 nodes, 112 undirected edges)

    A is block-Toeplitz, and no Toeplitz matrix: the last pixel of a row does not see the first of the next.
    """
    h, w = as_int("grid_graph", "height", height, least=1), as_int("grid_graph", "width", width, least=1)
    place = np.arange(h * w).reshape(h, w)
    pairs = [(place[:, :-1], place[:, 1:]), (place[:-1], place[1:])]
    if diagonals:
        pairs += [(place[:-1, :-1], place[1:, 1:]), (place[:-1, 1:], place[1:, :-1])]
    first, second = (np.concatenate([pair[k].reshape(-1) for pair in pairs]) for k in (0, 1))
    return undirected(h * w, first, second)


def patch_graph(height: int, width: int) -> Graph:
    """The patches of an image as nodes, row by row; two see each other if they share a border. Book, figure 12.10.

    >>> import wonderland as wl
    >>> graph = wl.graphs.patch_graph(8, 8)
    >>> graph.num_undirected_edges, graph.num_edges, sorted(set(graph.degree().tolist()))
    (112, 224, [2.0, 3.0, 4.0])

    `height` and `width` are counted in patches. Patches that touch at a corner do not see each other.
    """
    return grid_graph(height, width)


def bipartite_graph(n: int, k: int) -> Graph:
    """Two sets of n and k nodes: each node sees all of the other set and none of its own.

    >>> import wonderland as wl
    >>> wl.graphs.bipartite_graph(2, 3)
    Graph(5 nodes, 6 undirected edges)
    """
    n, k = as_int("bipartite_graph", "n", n, least=0), as_int("bipartite_graph", "k", k, least=0)
    return undirected(n + k, np.repeat(np.arange(n), k), n + np.tile(np.arange(k), n))
