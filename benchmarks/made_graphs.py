"""The graphs that ours and the peers train on, made from a seed by NumPy alone: everybody gets the same numbers.

Edges are undirected, so both directions are stored; they come in the order of the nodes that receive, which is what
the formats of all frameworks like best. A few nodes have many neighbours and most have few, as in real graphs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Made:
    """Stored edges from senders to receivers, features (nodes, c), and labels of nodes or of graphs."""

    nodes: int
    senders: Integers
    receivers: Integers
    x: Floats
    y: Integers
    classes: int
    graph_of: Integers | None = None  # of which of many small graphs every node is

    def with_loops(self) -> tuple[Integers, Integers]:
        """Senders and receivers when every node hears itself too, in the order of the receivers."""
        every = np.arange(self.nodes)
        return _sorted(np.concatenate([self.senders, every]), np.concatenate([self.receivers, every]))


def _sorted(senders: Integers, receivers: Integers) -> tuple[Integers, Integers]:
    order = np.lexsort((senders, receivers))
    return senders[order], receivers[order]


def citations(nodes: int = 2708, edges: int = 10556, features: int = 1433, classes: int = 7) -> Made:
    """A graph of the size of Cora, with words that occur or do not."""
    rng = np.random.default_rng(1)
    senders, receivers = _edges(rng, nodes, edges)
    words = (rng.random((nodes, features)) < 0.0127).astype(np.float32)  # as many as Cora has
    x = words / np.maximum(words.sum(1, keepdims=True), 1)
    return Made(nodes, senders, receivers, x, rng.integers(0, classes, nodes), classes)


def network(nodes: int = 100_000, edges: int = 1_000_000, features: int = 64, classes: int = 10) -> Made:
    """A large graph with features that are not sparse."""
    rng = np.random.default_rng(2)
    senders, receivers = _edges(rng, nodes, edges)
    x = rng.normal(size=(nodes, features)).astype(np.float32)
    return Made(nodes, senders, receivers, x, rng.integers(0, classes, nodes), classes)


def molecules(graphs: int = 512, least: int = 10, most: int = 30, features: int = 7, classes: int = 2) -> Made:
    """Small graphs side by side: a tree each, with a few more edges that close rings; kinds of atoms are features."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(least, most + 1, graphs)
    pairs, first = [], 0
    for size in sizes:
        own = np.arange(1, size)
        tree = np.stack([own, np.maximum(own - rng.integers(1, 4, size - 1), 0)])
        rings = np.array([[i, i - 5] for i in range(5, size, 6)], np.int64).reshape(-1, 2).T
        pairs.append(first + np.unique(np.concatenate([tree, rings], axis=1), axis=1))
        first += size
    one = np.concatenate(pairs, axis=1)
    senders, receivers = _sorted(np.concatenate([one[0], one[1]]), np.concatenate([one[1], one[0]]))
    x = np.eye(features, dtype=np.float32)[rng.integers(0, features, first)]
    whose = np.repeat(np.arange(graphs), sizes)
    return Made(int(first), senders, receivers, x, rng.integers(0, classes, graphs), classes, whose)


def _edges(rng: np.random.Generator, nodes: int, edges: int) -> tuple[Integers, Integers]:
    """Both directions of edges / 2 different pairs; the chance of a node falls with the root of its rank."""
    chances = np.cumsum((1 + np.arange(nodes)) ** -0.5)
    found: Integers = np.zeros(0, np.int64)
    while len(found) < edges // 2:
        drawn = np.searchsorted(chances, rng.random((2, edges)) * chances[-1])
        low, high = drawn.min(0), drawn.max(0)
        found = np.unique(np.concatenate([found, (low * nodes + high)[low < high]]))
    kept = rng.permutation(found)[: edges // 2]
    names = rng.permutation(nodes)  # so that nodes with many neighbours are anywhere
    one, two = names[kept // nodes], names[kept % nodes]
    return _sorted(np.concatenate([one, two]), np.concatenate([two, one]))
