"""Places for the nodes of a graph on paper: springs between neighbours, and nodes that push each other away."""

from __future__ import annotations

import math

import numpy as np

from ..core.arguments import as_int
from ..core.errors import SizeError
from ..core.typing import Array
from .graph import Graph
from .paths import connected_components

LARGEST = 3000  # nodes; every one pushes every other


def spring_layout(graph: Graph, iterations: int = 150, seed: int = 0) -> Array:
    r"""Places (n, 2) in the unit square, by the method of Fruchterman and Reingold; the same for the same graph.

    >>> import wonderland as wl
    >>> wl.graphs.spring_layout(wl.graphs.path_graph(3)).shape
    (3, 2)

    Neighbours pull with the force \(d^2/k\) and all nodes push with \(k^2/d\) at distance d; steps become shorter until
    nothing moves. Each component is laid out for itself, from the eigenvectors of its Laplacian, and then they are put
    side by side.
    """
    n = graph.n
    if n > LARGEST:
        raise SizeError(
            f"spring_layout: {n:,} nodes are more than can be told apart.", "a part: graph.subgraph(graph.k_hop(i, 2))"
        )
    count, labels = connected_components(graph)
    rows, cols = graph.ends()
    rng = np.random.default_rng(as_int("spring_layout", "seed", seed))
    boxes = []
    for label in range(count):
        nodes = np.flatnonzero(labels == label)
        place = np.full(n, -1)
        place[nodes] = np.arange(len(nodes))
        inside = (labels[rows] == label) & (rows != cols)
        boxes.append((nodes, _component(len(nodes), place[rows[inside]], place[cols[inside]], iterations, rng)))
    return _packed(n, boxes)


def _component(n: int, rows: Array, cols: Array, iterations: int, rng: np.random.Generator) -> Array:
    """Places of a connected graph, about a unit apart from neighbours, turned to lie on its longer side."""
    if n <= 2:
        return np.array([[0.0, 0.0], [1.0, 0.0]])[:n]
    A = np.zeros((n, n))
    A[rows, cols] = A[cols, rows] = 1
    # the slowest vibrations unfold long and flat graphs, which springs alone would leave crumpled
    scale = 1 / np.sqrt(A.sum(axis=1))
    _, vectors = np.linalg.eigh(np.eye(n) - scale[:, None] * A * scale)
    at = vectors[:, 1:3] * scale[:, None]
    at = at / np.abs(at).max(axis=0) * math.sqrt(n) / 2 + 1e-3 * rng.standard_normal((n, 2))
    heat = 0.1 * math.sqrt(n)
    for step in range(iterations):
        apart = at[:, None] - at[None]  # (n, n, 2)
        squares = np.maximum((apart**2).sum(axis=2), 1e-4)
        force = 1 / squares - A * np.sqrt(squares)  # along `apart`: k = 1
        np.fill_diagonal(force, 0)
        move = np.einsum("ij,ijd->id", force, apart) - 0.01 * (at - at.mean(axis=0))
        length = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-9)
        at = at + move / length * np.minimum(length, heat * (1 - step / iterations))
    at = at - at.mean(axis=0)
    _, _, axes = np.linalg.svd(at, full_matrices=False)
    turned = at @ axes.T
    return turned * np.where(turned[np.argmax(np.abs(turned), axis=0), [0, 1]] < 0, -1, 1)


def _packed(n: int, boxes: list[tuple[Array, Array]]) -> Array:
    """Components in rows from the upper left, large ones first, scaled to the unit square with one scale."""
    found = np.zeros((n, 2))
    if not boxes:
        return found
    gap = 1.2
    sizes = [np.ptp(at, axis=0) + gap for _, at in boxes]
    widest = max(math.sqrt(1.4 * sum(float(s[0] * s[1]) for s in sizes)), max(float(s[0]) for s in sizes))
    x = y = row = 0.0
    for k in sorted(range(len(boxes)), key=lambda k: (-len(boxes[k][0]), k)):
        (nodes, at), (width, height) = boxes[k], sizes[k]
        if x and x + width > widest + 1e-9:
            x, y, row = 0.0, y + row, 0.0
        found[nodes] = at - at.min(axis=0) + [x + gap / 2, y + gap / 2]
        x, row = x + float(width), max(row, float(height))
    found = (found - found.min(axis=0)) * [1, -1]  # the first row is the upper one
    found -= found.min(axis=0)
    extent = np.ptp(found, axis=0)
    scale = max(float(extent.max()), 1e-9)
    return found / scale + (1 - extent / scale) / 2
