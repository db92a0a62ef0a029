"""A set of graphs to train on if there is none at hand: trees with one of a few shapes in them."""

from __future__ import annotations

import numpy as np

from ..core.arguments import as_int
from ..graphs import Graph
from ..graphs.datasets import GraphList

SHAPES: dict[str, list[tuple[int, int]]] = {
    "ring": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
    "house": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)],
    "clique": [(i, j) for i in range(5) for j in range(i)],
}


def motifs(graphs: int = 300, seed: int = 0) -> GraphList:
    """Random trees of 10 to 20 nodes, each with a ring, a house or a clique of five nodes hung on: the class.

    >>> found = motifs(6)
    >>> found, found.y.tolist()
    (GraphList('motifs', 6 graphs, 3 classes), [0, 1, 2, 0, 1, 2])
    """
    rng = np.random.default_rng(seed)
    made = []
    for k in range(as_int("motifs", "graphs", graphs, 5)):
        n = int(rng.integers(10, 21))
        tree = [(i, int(rng.integers(max(0, i - 6), i))) for i in range(1, n)]
        shape = [(n + i, n + j) for i, j in list(SHAPES.values())[k % len(SHAPES)]]
        edges = [*tree, *shape, (int(rng.integers(n)), n + int(rng.integers(5)))]
        order = rng.permutation(n + 5)  # the place of a node tells nothing
        made.append(Graph(n + 5, order[np.array(edges)], y=k % len(SHAPES), directed=False))
    return GraphList(made, target_names=tuple(SHAPES), name="motifs")
