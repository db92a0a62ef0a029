"""Trees with classes as leaves, for `HierarchicalSoftmax`. Notes, section 4.5.1.

A tree is a nested tuple: a leaf is the number of a class, an interior vertex the tuple of its children. So
`((0, 1), 2)` asks first whether the class is 2. Vertices may have any number of children from two on.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.typing import Array, ArrayLike, KeyLike
from ...random.keys import fold_in, split
from ...random.streams import take_key
from ..functional.clustering import k_means, plus_plus

__all__ = ["flat_tree", "balanced_tree", "huffman_tree", "clustered_tree", "leaf_depths", "expected_depth"]

Tree: TypeAlias = "int | tuple[Tree, ...]"
STARTS = 3  # of k-means at every vertex


def flat_tree(classes: int) -> Tree:
    """All classes below the root: a plain softmax.

    >>> flat_tree(3)
    (0, 1, 2)
    """
    return tuple(range(as_int("flat_tree", "classes", classes, 2)))


def balanced_tree(classes: int, arity: int = 2) -> Tree:
    r"""Classes in their order, cut into `arity` parts again and again: depth \(\lceil\log_2 C\rceil\) for two.

    >>> balanced_tree(4), balanced_tree(5, arity=3)
    (((0, 1), (2, 3)), ((0, 1), (2, 3), 4))
    """
    n, k = as_int("balanced_tree", "classes", classes, 2), as_int("balanced_tree", "arity", arity, 2)

    def cut(low: int, high: int) -> Tree:
        size = high - low
        if size == 1:
            return low
        parts = min(k, size)
        edges = [low + -(-size * i // parts) for i in range(parts + 1)]
        return tuple(cut(a, b) for a, b in pairwise(edges))

    return cut(0, n)


def huffman_tree(frequencies: ArrayLike) -> Tree:
    """The binary tree with the smallest expected depth for classes with these frequencies.

    >>> tree = huffman_tree([0.5, 0.25, 0.125, 0.125])
    >>> tree, leaf_depths(tree).tolist()
    ((0, (1, (2, 3))), [1, 2, 3, 3])

    The two rarest vertices are joined until one is left. The expected depth is from H to H + 1, where H is the entropy
    of the frequencies in bits.
    """
    values = np.asarray(frequencies, np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise ShapeError(f"huffman_tree: frequencies of shape {values.shape}.", "one per class, at least two")
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise InputError("huffman_tree: a frequency is negative or not finite.", "counts or probabilities")
    # among equal frequencies the vertex made last waits, which keeps the tree shallow
    heap: list[tuple[float, int, Tree]] = [(f, i, i) for i, f in enumerate(values.tolist())]
    heapq.heapify(heap)
    for made in range(len(heap), 2 * len(heap) - 1):
        (f, _, low), (g, _, high) = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (f + g, made, (low, high) if f == g else (high, low)))
    return heap[0][2]


def clustered_tree(vectors: ArrayLike, arity: int = 2, key: KeyLike = None) -> Tree:
    """A tree that keeps similar classes together: k-means of class vectors (C, d), again within each cluster.

    >>> import wonderland as wl
    >>> tree = clustered_tree(wl.tensor([[0.0], [9.0], [0.1], [9.1]]), key=wl.random.key(0))
    >>> sorted(tuple(sorted(part)) for part in tree)
    [(0, 2), (1, 3)]

    Prediction is better when the questions at the vertices are easy ones.
    """
    points = as_real("clustered_tree", arrays.asarray(vectors))
    if points.ndim != 2 or len(points) < 2 or not points.shape[1]:
        raise ShapeError(f"clustered_tree: vectors of shape {points.shape}.", "(classes, d), at least two classes")
    if not np.isfinite(points.numpy()).all():
        raise InputError("clustered_tree: a vector is not finite.", "vectors without NaN and infinity")
    k = as_int("clustered_tree", "arity", arity, 2)
    key = take_key("clustered_tree", key)
    asked = 0

    def grow(members: Array) -> Tree:
        nonlocal asked
        if len(members) == 1:
            return int(members[0])
        if len(members) <= k:
            return tuple(int(m) for m in members)
        asked += 1
        keys = split(fold_in(key, asked), STARTS)
        labels = k_means(points[members], lambda X, shift, key: plus_plus(X, k, key), list(keys))[1].numpy()
        parts = [members[labels == i] for i in range(k)]
        if max(map(len, parts)) == len(members):  # equal vectors tell nothing
            parts = np.array_split(members, k)
        return tuple(grow(part) for part in parts if len(part))

    return grow(np.arange(len(points)))


def leaf_paths(tree: Tree) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
    """For each leaf its class and the way to it: pairs of the number of a vertex and of the child taken there.

    >>> dict(leaf_paths(((0, 1), 2)))
    {0: ((0, 0), (1, 0)), 1: ((0, 0), (1, 1)), 2: ((0, 1),)}

    Vertices are numbered from the root, each before those below it.
    """
    stack: list[tuple[Tree, tuple[tuple[int, int], ...]]] = [(tree, ())]
    vertex = 0
    while stack:
        here, path = stack.pop()
        if isinstance(here, tuple):
            stack += [(child, (*path, (vertex, i))) for i, child in reversed(list(enumerate(here)))]
            vertex += 1
        else:
            yield here, path


def arities(tree: Tree) -> list[int]:
    """The number of children of each interior vertex, in the numbering of `leaf_paths`.

    >>> arities(((0, 1), 2, 3))
    [3, 2]
    """
    found, stack = [], [tree]
    while stack:
        here = stack.pop()
        if isinstance(here, tuple):
            found.append(len(here))
            stack += reversed(here)
    return found


def leaf_depths(tree: Tree) -> Array:
    """The number of vertices above each class.

    >>> leaf_depths(balanced_tree(16)).tolist() == [4] * 16
    True
    """
    depths = {leaf: len(path) for leaf, path in leaf_paths(tree)}
    return np.array([depths[c] for c in range(len(depths))])


def expected_depth(tree: Tree, frequencies: ArrayLike) -> float:
    """The mean depth of a class that comes with these frequencies.

    >>> expected_depth(huffman_tree([0.5, 0.25, 0.125, 0.125]), [0.5, 0.25, 0.125, 0.125])
    1.75
    """
    weights = np.asarray(frequencies, np.float64)
    depths = leaf_depths(tree)
    if weights.shape != depths.shape:
        raise ShapeError(f"expected_depth: {weights.shape} frequencies for {len(depths)} classes.", "one per class")
    return float(weights @ depths / weights.sum())


def check_tree(name: str, tree: Tree) -> int:
    """The number of classes of a tree whose leaves are 0, 1, ..., C - 1, each once."""
    leaves, stack = [], [tree]
    while stack:
        here = stack.pop()
        if isinstance(here, tuple):
            if len(here) < 2:
                raise InputError(f"{name}: a vertex of the tree has {len(here)} children.", "two or more")
            stack += here
        elif isinstance(here, (int, np.integer)):
            leaves.append(int(here))
        else:
            raise InputError(f"{name}: the tree holds a {type(here).__name__}.", "nested tuples of class numbers")
    if len(leaves) < 2 or sorted(leaves) != list(range(len(leaves))):
        raise InputError(f"{name}: the leaves are not 0, ..., {max(len(leaves), 2) - 1}, each once.", "one per class")
    return len(leaves)
