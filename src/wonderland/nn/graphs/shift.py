r"""Shift operators: what layers diffuse with, \(h_i = \sum_{j \in N(i)} A_{ij} x_j\). Book, sections 12.1.3 and 12.2.2.

A `Shift` has the places of the nonzeros of A and their values, a `DenseShift` the whole matrix. Layers get one from
`shift_of`, the one place that knows in how many ways a graph can be given:

    Graph, Batch                     edges, weights, edge features, which nodes are of which graph
    CSR, COO (n, n)                  the matrix A
    integers (2, m)                  an edge_index of PyTorch Geometric: senders j, then receivers i
    real numbers (n, n), (b, n, n)   a dense A, or one for each graph of a padded batch
    Shift, DenseShift                what `as_shift` made of one of these, once for many calls
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import TypeAlias

import numpy as np

from ... import arrays, sparse
from ...arrays.conversion import as_tensor
from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor, wrap
from ...core.typing import Array, ArrayLike, DTypeLike
from ...graphs import Batch, Graph
from ...sparse import Incidence, Pattern, Sparse
from .loops import Made, is_constant, is_known, known, looped, once

__all__ = ["DenseShift", "GraphLike", "Shift", "as_shift"]

NORMS = (None, "sym", "row", "col")


def inverse(x: Tensor, power: float) -> Tensor:
    """1 / x**power where x is above 0, else 0: what degrees are divided by."""
    above = x > 0
    safe = arrays.where(above, x, arrays.ones_like(x))
    found = 1.0 / (arrays.sqrt(safe) if power == 0.5 else safe)
    return arrays.where(above, found, arrays.zeros_like(found))


def as_norm(name: str, norm: str | None) -> str | None:
    """One of the ways to normalise."""
    if norm not in NORMS:
        raise InputError(f"{name}: norm={norm!r}.", '"sym", "row", "col" or None')
    return norm


@dataclasses.dataclass(frozen=True)
class Shift:
    r"""A sparse shift operator A (n, n): \((A x)_i = \sum_{j \in N(i)} A_{ij} x_j\). Book, section 12.1.3.

    >>> import wonderland as wl
    >>> path = wl.nn.as_shift(wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), nodes=3)
    >>> path.apply(wl.tensor([[1.0], [10.0], [100.0]])).tolist()
    [[10.0], [101.0], [10.0]]
    >>> path.normalized("row").apply(wl.tensor([[1.0], [10.0], [100.0]])).tolist()
    [[10.0], [50.5], [10.0]]

    `pattern` has the m places, `weight` (m,) the values (None: ones), `edge_attr` (m, d) the features of edges, `nodes`
    which graph of a batch a node is of. A layer takes a shift with a `norm` as it is, and normalises others as it is
    told to; `loops` says that every node is its own neighbour. It is a tree, so a compiled function may take it.
    """

    pattern: Pattern
    weight: Tensor | None = None
    edge_attr: Tensor | None = None
    nodes: Incidence | None = None
    loops: bool = dataclasses.field(default=False, metadata={"static": True})
    norm: str | None = dataclasses.field(default=None, metadata={"static": True})

    @property
    def n(self) -> int:
        """The number of nodes."""
        return self.pattern.shape[0]

    def apply(self, x: Tensor) -> Tensor:
        """A x for x (n, ...)."""
        weight = self.weight
        if weight is not None and weight.dtype != x.dtype:
            weight = arrays.astype(weight, x.dtype)
        return sparse.matmul(weight, self.pattern, x)

    def values(self, kind: DType | None = None) -> Tensor:
        """The values (m,), also where all are 1."""
        if self.weight is None:
            return arrays.ones((self.pattern.nnz,), dtype=kind or dtypes.default_float)
        return self.weight if kind is None else arrays.astype(self.weight, kind)

    def degree(self, kind: DType | None = None) -> Tensor:
        r"""\(D_{ii} = \sum_j A_{ij}\)."""
        return line_sums(self.weight, self.pattern.rows, kind)

    def normalized(
        self, norm: str | None = "sym", self_loops: bool = False, fill: float = 1.0, dtype: DTypeLike | None = None
    ) -> Shift:
        r"""\(D^{-1/2} A D^{-1/2}\) ("sym"), \(D^{-1} A\) ("row"), \(A D^{-1}\) ("col"), or A; see `as_shift`."""
        if self.norm is not None:
            return self
        kind = _float_of(self.weight) if dtype is None else dtypes.as_dtype(dtype)
        if as_norm("normalized", norm) is None:
            return self.with_loops(fill) if self_loops else self
        if not is_constant(self.pattern, self.weight):
            return self._normalized(norm, self_loops, fill, kind)
        pattern, weight = once(
            (norm, self_loops, fill, kind), self.pattern, self.weight, partial(_normal, norm, self_loops, fill, kind)
        )
        attr = (
            looped(self.pattern, replace=False).with_ends(self.edge_attr)
            if self_loops and not self.loops
            else self.edge_attr
        )
        return dataclasses.replace(
            self, pattern=pattern, weight=weight, edge_attr=attr, loops=self.loops or self_loops, norm=norm
        )

    def _normalized(self, norm: str | None, self_loops: bool, fill: float, kind: DType) -> Shift:
        shift = self.with_loops(fill) if self_loops else self
        rows, cols = shift.pattern.rows, shift.pattern.cols
        values = shift.values(kind)
        if norm == "sym":
            scale = inverse(shift.degree(kind), 0.5)
            values = values * sparse.gather(scale, rows) * sparse.gather(scale, cols)
        else:
            line = rows if norm == "row" else cols
            values = values * sparse.gather(inverse(line_sums(shift.weight, line, kind), 1), line)
        return dataclasses.replace(shift, weight=values, norm=norm)

    def with_loops(self, fill: float = 1.0) -> Shift:
        """Every node its own neighbour: what has no self-loop gets one with the weight `fill`."""
        if self.loops:
            return self
        found = looped(self.pattern, replace=False)
        weight = self.weight
        if weight is not None or fill != 1.0 or found.fills is not None:  # else all are 1 again
            values = self.values()
            ends: Tensor | float = fill
            if found.fills is not None:
                ends = arrays.where(found.fills, arrays.full((self.n,), fill, dtype=values.dtype), 0.0)
            weight = found.with_ends(values, ends)
        attr = found.with_ends(self.edge_attr)
        return dataclasses.replace(self, pattern=found.pattern, weight=weight, edge_attr=attr, loops=True)

    def with_own_loops(self) -> Shift:
        """Every node its own neighbour exactly once, all edges alike; features of edges are left out."""
        if self.loops:
            return self
        found = looped(self.pattern, replace=True)
        if found.hidden is not None:
            return self  # traced: some edges would have to be left out
        return Shift(found.pattern, nodes=self.nodes, loops=True)

    def as_mean(self, dtype: DTypeLike | None = None) -> Shift:
        """The shift that takes means over neighbours, whatever the weights are; one that is prepared stays as it is."""
        if self.norm is not None:
            return self
        return dataclasses.replace(self, weight=None).normalized("row", dtype=dtype)

    def todense(self) -> Tensor:
        """A as a matrix (n, n), where entries that are there twice are added up."""
        return self.apply(arrays.eye(self.n, dtype=_float_of(self.weight)))


def _normal(
    norm: str | None, self_loops: bool, fill: float, kind: DType, pattern: Pattern, weight: Array | None
) -> Made:
    """What `Shift.normalized` computes, of numbers that do not change: once for all calls."""
    values = np.ones(pattern.nnz) if weight is None else weight.astype(np.float64)
    if self_loops:
        found = looped(pattern, replace=False)
        pattern, values = found.pattern, np.concatenate([values, np.full(found.count, fill)])
    rows, cols = known(pattern.rows.owner), known(pattern.cols.owner)
    line = cols if norm == "col" else rows
    sums = np.bincount(line, values, pattern.shape[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(sums > 0, 1 / (np.sqrt(sums) if norm == "sym" else sums), 0.0)
    values = values * scale[line] * (scale[cols] if norm == "sym" else 1.0)
    return pattern, wrap(values.astype(kind))


@dataclasses.dataclass(frozen=True)
class DenseShift:
    """A shift operator as a matrix (n, n), or one for each graph of a batch (b, n, n); methods are those of `Shift`.

    >>> import wonderland as wl
    >>> wl.nn.as_shift(wl.tensor([[0.0, 1.0], [1.0, 0.0]]), "row", self_loops=True).matrix[0]
    tensor([0.5, 0.5])
    """

    matrix: Tensor
    norm: str | None = dataclasses.field(default=None, metadata={"static": True})

    @property
    def n(self) -> int:
        """The number of nodes, of each graph if there are several."""
        return self.matrix.shape[-1]

    def apply(self, x: Tensor) -> Tensor:
        """A x for x (n, ...), or (b, n, ...)."""
        lead = x.shape[: self.matrix.ndim - 1]
        a = arrays.astype(self.matrix, x.dtype)
        return arrays.reshape(arrays.matmul(a, arrays.reshape(x, (*lead, math.prod(x.shape[len(lead) :])))), x.shape)

    def normalized(
        self, norm: str | None = "sym", self_loops: bool = False, fill: float = 1.0, dtype: DTypeLike | None = None
    ) -> DenseShift:
        """As for a `Shift`."""
        if self.norm is not None:
            return self
        a = self.matrix if dtype is None else arrays.astype(self.matrix, dtypes.as_dtype(dtype))
        if self_loops:
            missing = arrays.eye(self.n, dtype=bool) & (a == 0)
            a = arrays.where(missing, arrays.full_like(a, fill), a)
        if as_norm("normalized", norm) is None:
            return DenseShift(a)
        if norm == "sym":
            scale = inverse(arrays.sum(a, axis=-1), 0.5)
            a = a * scale[..., :, None] * scale[..., None, :]
        else:
            a = a * inverse(arrays.sum(a, axis=-1 if norm == "row" else -2, keepdims=True), 1)
        return DenseShift(a, norm)

    def sparse(self) -> Shift:
        """The nonzeros alone; graphs of a batch become blocks along the diagonal of one matrix."""
        a = self.matrix
        if not is_known(a):
            raise InputError(
                f"DenseShift: the nonzeros of a traced matrix of shape {a.shape} are not known.",
                "a Graph, wl.graphs.Graph.from_dense(a), made before the function is compiled",
            )
        places = np.nonzero(known(a))
        offsets = places[0] * self.n if a.ndim == 3 else 0
        total = self.n * (a.shape[0] if a.ndim == 3 else 1)
        pattern = Pattern.of(places[-2] + offsets, places[-1] + offsets, (total, total))
        nodes = Incidence.of(np.repeat(np.arange(a.shape[0]), self.n), a.shape[0]) if a.ndim == 3 else None
        return Shift(pattern, a[tuple(places)], nodes=nodes, norm=self.norm)

    def todense(self) -> Tensor:
        """The matrix."""
        return self.matrix


GraphLike: TypeAlias = "Graph | Sparse | Shift | DenseShift | ArrayLike"


def as_shift(
    graph: GraphLike,
    norm: str | None = None,
    self_loops: bool = False,
    nodes: int | None = None,
    dtype: DTypeLike | None = None,
) -> Shift | DenseShift:
    r"""The shift operator of a graph, made once for many calls. Book, sections 12.1.3 and 12.2.2.

    >>> import wonderland as wl
    >>> star = wl.graphs.Graph(4, [(0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (3, 0)])
    >>> shift = wl.nn.as_shift(star, "sym", self_loops=True)
    >>> layer = wl.nn.GCNConv(5, 2)
    >>> bool(abs(layer(wl.ones((4, 5)), shift) - layer(wl.ones((4, 5)), star)).max() < 1e-6)
    True

    `norm` is "sym", \(D^{-1/2} A D^{-1/2}\), "row", \(D^{-1} A\), "col", \(A D^{-1}\), with the row sums D (column sums
    for "col"), or None; a degree of 0 gives 0. `self_loops` adds those that are missing before that, with weight 1.
    `nodes` is how many there are, where an edge_index cannot tell. What has been normalised is normalised no more, so
    layers compute nothing of this again; without it they do so in every call.
    """
    shift = shift_of("as_shift", graph, nodes)
    return shift.normalized(norm, self_loops, dtype=dtype)


def shift_of(name: str, graph: GraphLike, nodes: int | None = None) -> Shift | DenseShift:
    """What a layer called `name` diffuses with, of `nodes` nodes if that is known."""
    found = _converted(name, graph, nodes)
    if nodes is not None and found.n != nodes:
        raise ShapeError(
            f"{name}: features of {nodes} nodes for a graph of {found.n}.",
            "a row of features for each node, isolated ones too",
        )
    return found


def _converted(name: str, graph: GraphLike, nodes: int | None) -> Shift | DenseShift:
    if isinstance(graph, Shift | DenseShift):
        return graph
    if isinstance(graph, Graph):
        return Shift(graph.pattern, graph.weight, graph.edge_attr, graph.nodes if isinstance(graph, Batch) else None)
    if isinstance(graph, Sparse):
        if graph.pattern.shape[0] != graph.pattern.shape[1]:
            raise ShapeError(f"{name}: a matrix of shape {graph.pattern.shape}.", "one row and column for each node")
        return Shift(graph.pattern, graph.data)
    a = as_tensor(name, arrays.asarray(graph))
    if dtypes.is_integer(a.dtype):
        if a.ndim != 2 or a.shape[0] != 2:
            raise ShapeError(
                f"{name}: integers of shape {a.shape} are no graph.",
                "an edge_index (2, m) of senders and receivers, wl.graphs.Graph(n, pairs), or a floating matrix (n, n)",
            )
        return Shift(_pattern_of(name, a, nodes))
    if not dtypes.is_floating(a.dtype) and a.dtype != dtypes.bool_:
        raise DTypeError(f"{name}: a graph of {a.dtype}.", "a Graph, an integer edge_index or a real matrix")
    if a.ndim not in (2, 3) or a.shape[-1] != a.shape[-2]:
        raise ShapeError(
            f"{name}: a matrix of shape {a.shape} is no graph.", "(nodes, nodes), or (batch, nodes, nodes)"
        )
    return DenseShift(arrays.astype(a, dtypes.default_float) if a.dtype == dtypes.bool_ else a)


def _pattern_of(name: str, edge_index: Tensor, nodes: int | None) -> Pattern:
    """The places of an edge_index; inside compiled functions they are sorted there."""
    if is_known(edge_index):
        senders, receivers = known(edge_index)
        n = int(known(edge_index).max(initial=-1)) + 1 if nodes is None else nodes
        bad = (senders < 0) | (senders >= n) | (receivers < 0) | (receivers >= n)
        if bad.any():
            pairs = ", ".join(f"{s} -> {r}" for s, r in edge_index[:, np.flatnonzero(bad)[:3]].numpy().T)
            raise InputError(
                f"{name}: {int(bad.sum())} of {bad.size} edges leave the nodes 0 to {n - 1}: {pairs}.",
                "indices below the number of nodes",
            )
        return Pattern.of(receivers, senders, (n, n))
    if nodes is None:
        raise InputError(f"{name}: a traced edge_index does not tell the number of nodes.", "nodes=...")
    return Pattern(
        _sorted(edge_index[1], edge_index[0], nodes), _sorted(edge_index[0], edge_index[1], nodes), (nodes, nodes)
    )


def _sorted(owner: Tensor, other: Tensor, lines: int) -> Incidence:
    order = arrays.argsort(owner)
    counts = arrays.segment_sum(arrays.ones(owner.shape, dtype=owner.dtype), owner, lines)
    ptr = arrays.concat([arrays.zeros((1,), dtype=owner.dtype), arrays.cumulative_sum(counts)])
    return Incidence(arrays.astype(ptr, owner.dtype), owner, order, arrays.take(other, order), False)


def line_sums(weight: Tensor | None, line: Incidence, kind: DType | None = None) -> Tensor:
    """The sums of values along lines; without values, how many there are."""
    if weight is None:
        return arrays.astype(line.ptr[1:] - line.ptr[:-1], kind or dtypes.default_float)
    return sparse.segment_sum(weight if kind is None else arrays.astype(weight, kind), line)


def _float_of(weight: Tensor | None) -> DType:
    return weight.dtype if weight is not None and dtypes.is_floating(weight.dtype) else dtypes.default_float
