"""Softmax over many classes as a walk down a tree. Notes, section 4.5.1."""

from __future__ import annotations

import math

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real, as_tensor
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import DTypeError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.continuous import uniform
from ...random.streams import take_key
from ..functional.lookup import counted_from_zero
from ..module.lazy import at_once
from ..module.module import Module
from ..module.parameter import Buffer, Parameter
from .class_trees import Tree, arities, balanced_tree, check_tree, leaf_paths

__all__ = ["HierarchicalSoftmax"]


class HierarchicalSoftmax(Module):
    r"""\(p(y \mid z) = \prod_{(v, i)} \mathrm{softmax}(W_v z + b_v)_i\) along the path from the root to y.

    >>> import wonderland as wl
    >>> layer = wl.nn.HierarchicalSoftmax(8, 16)
    >>> layer
    HierarchicalSoftmax(in_features=8, classes=16, depth=4)
    >>> z = wl.random.normal((5, 8), key=wl.random.key(0))
    >>> layer.log_prob(z, wl.tensor([0, 3, 5, 15, 5])).shape, layer.probs(z).shape
    ((5,), (5, 16))
    >>> print(layer(z, wl.tensor([0, 3, 5, 15, 5])).shape, layer.cost(5))
    () 4

    `tree` is a number of classes (then `balanced_tree`) or a tree of `class_trees`: `flat_tree`, `balanced_tree`,
    `huffman_tree`, `clustered_tree`, or any nested tuple. A vertex with k children has k - 1 vectors; the logit of its
    first child is 0, so that a binary vertex goes right with probability \(\sigma(w^\top z + b)\). Whatever the tree,
    there are C - 1 vectors: `weight` (C - 1, in_features) and `bias` (C - 1,).

    For one class only the vectors on its path are read, and only they get gradients: `cost(y)` counts them, about
    \(\log_2 C\) for a balanced tree and C - 1 for a flat one. `probs` and `predict` need all. The layer called with
    z and y is the mean of \(-\ln p(y \mid z)\).
    """

    def __init__(self, in_features: int, tree: Tree, dtype: DTypeLike | None = None, key: KeyLike = None) -> None:
        self.in_features = as_int("HierarchicalSoftmax", "in_features", in_features, 1)
        tree = balanced_tree(tree) if isinstance(tree, int) else tree
        self.classes = check_tree("HierarchicalSoftmax", tree)
        self.tree = tree
        sizes = arities(tree)
        first = np.concatenate([[0], np.cumsum(np.array(sizes) - 1)])  # where the vectors of a vertex begin
        paths = dict(leaf_paths(tree))
        self.depth = max(map(len, paths.values()))
        widest = max(sizes)
        # for vertex v and child i the number of its vector; C - 1, a logit of 0, for the first; C, -inf, for none
        rows = np.full((len(sizes), widest), self.classes)
        for v, size in enumerate(sizes):
            rows[v, :size] = [self.classes - 1, *range(first[v], first[v + 1])]
        # vertices and children along each path; past its end, vertex 0 and child -1
        vertices = np.zeros((self.classes, self.depth), int)
        children = np.full((self.classes, self.depth), -1)
        for leaf, path in paths.items():
            vertices[leaf, : len(path)], children[leaf, : len(path)] = np.array(path).T
        self._rows = Buffer(rows, persistent=False)
        self._vertices = Buffer(vertices, persistent=False)
        self._turns = Buffer(children, persistent=False)
        costs = np.where(children >= 0, np.array(sizes)[vertices] - 1, 0).sum(axis=1)
        self._costs = Buffer(costs, persistent=False)
        key = take_key("HierarchicalSoftmax", key)
        with at_once(key):
            bound = 1 / math.sqrt(self.in_features)
            kind = dtypes.default_float if dtype is None else dtype
            shape = (self.classes - 1, self.in_features)
            self.weight = Parameter(uniform(shape, -bound, bound, key=key, dtype=kind))
            self.bias = Parameter(arrays.zeros(self.classes - 1, dtype=kind))

    def forward(self, z: ArrayLike, y: ArrayLike) -> Tensor:
        return -arrays.mean(self.log_prob(z, y))

    def log_prob(self, z: ArrayLike, y: ArrayLike) -> Tensor:
        r"""\(\ln p(y \mid z)\) (...) of codes z (..., in_features) and classes y (...)."""
        z, y = self._codes(z), as_tensor("HierarchicalSoftmax", y)
        if not dtypes.is_integer(y.dtype):
            raise DTypeError(f"HierarchicalSoftmax: classes of {y.dtype}.", "integers")
        if y.shape != z.shape[:-1]:
            raise ShapeError(f"HierarchicalSoftmax: classes {y.shape} for codes {z.shape}.", f"shape {z.shape[:-1]}")
        y = counted_from_zero(y, self.classes)
        widest = self._rows.shape[1]
        if self.depth * (widest - 1) >= self.classes - 1:  # as many vectors on a path as there are
            return arrays.squeeze(arrays.take_along_axis(self.log_probs(z), y[..., None], axis=-1), -1)
        chosen = arrays.take(self._turns, y, axis=0)  # (..., depth)
        rows = arrays.take(self._rows, arrays.take(self._vertices, y, axis=0), axis=0)  # (..., depth, widest)
        there = rows < self.classes - 1
        index = arrays.where(there, rows, 0)[..., 1:]  # the first child has no vector
        logits = arrays.sum(arrays.take(self.weight, index, axis=0) * z[..., None, None, :], axis=-1)
        logits = logits + arrays.take(self.bias, index, axis=0)
        logits = arrays.where(there[..., 1:], logits, -arrays.inf)
        logits = arrays.concat([arrays.zeros((*logits.shape[:-1], 1), dtype=logits.dtype), logits], axis=-1)
        steps = arrays.log_softmax(logits, axis=-1)
        on_path = chosen >= 0
        taken = arrays.take_along_axis(steps, arrays.where(on_path, chosen, 0)[..., None], axis=-1)
        return arrays.sum(arrays.where(on_path, arrays.squeeze(taken, -1), 0.0), axis=-1)

    def log_probs(self, z: ArrayLike) -> Tensor:
        r"""\(\ln p(c \mid z)\) of all classes, (..., classes)."""
        z = self._codes(z)
        logits = z @ self.weight.mT + self.bias
        lead = logits.shape[:-1]
        first = arrays.zeros((*lead, 1), dtype=logits.dtype)
        padded = arrays.concat([logits, first, arrays.full_like(first, -arrays.inf)], axis=-1)
        steps = arrays.log_softmax(arrays.take(padded, self._rows, axis=-1), axis=-1)  # (..., vertices, widest)
        steps = arrays.reshape(steps, (*lead, self._rows.size))
        on_path = self._turns >= 0
        place = self._vertices * self._rows.shape[1] + arrays.where(on_path, self._turns, 0)
        return arrays.sum(arrays.where(on_path, arrays.take(steps, place, axis=-1), 0.0), axis=-1)

    def probs(self, z: ArrayLike) -> Tensor:
        r"""\(p(c \mid z)\) of all classes, (..., classes), with sum 1."""
        return arrays.exp(self.log_probs(z))

    def predict(self, z: ArrayLike) -> Tensor:
        """The most probable class (...)."""
        return arrays.argmax(self.log_probs(z), axis=-1)

    def cost(self, y: int | None = None) -> Tensor | int:
        """How many vectors `log_prob` of a class reads; of all classes, if none is named."""
        return arrays.asarray(self._costs) if y is None else int(self._costs.numpy()[y])

    def _codes(self, z: ArrayLike) -> Tensor:
        z = as_real("HierarchicalSoftmax", z)
        if not z.ndim or z.shape[-1] != self.in_features:
            raise ShapeError(f"{self._describe()}: codes of shape {z.shape}.", f"(..., {self.in_features})")
        return z

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, classes={self.classes}, depth={self.depth}"
