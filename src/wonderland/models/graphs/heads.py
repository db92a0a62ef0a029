"""Heads: predictions for nodes, for edges and for graphs, from what a backbone says of nodes. Book, section 12.2.3."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.errors import InputError, ShapeError
from ...core.tensor import VALUES, Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.graphs.readout import AttentionReadout, Readout
from ...nn.graphs.shift import DenseShift, GraphLike, shift_of
from ...nn.layers.fully_connected import ActivationLike
from ...nn.layers.linear import Linear
from ...nn.module.module import Module
from ..networks.mlp import MLP

__all__ = ["EdgeHead", "GraphHead", "GraphModel", "NodeHead", "link_scores"]


class NodeHead(Module):
    r"""\(y_i = \mathrm{MLP}(H_i)\): logits (n, out) of the classes of nodes. Book, section 12.2.3.

    >>> import wonderland as wl
    >>> head = wl.models.NodeHead(8, 3)
    >>> head(wl.ones((5, 8)), wl.graphs.path_graph(5)).shape
    (5, 3)

    `hidden` are the widths of hidden layers, none by default. `probabilities` puts a softmax behind it, which the
    cross-entropy of logits has already.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden: int | Sequence[int] = (),
        activation: ActivationLike = "relu",
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.nn = MLP(in_features, hidden, out_features, activation, dropout, dtype=dtype, key=key)

    def forward(self, h: ArrayLike, graph: GraphLike | None = None) -> Tensor:
        return self.nn(h)

    def probabilities(self, h: ArrayLike, graph: GraphLike | None = None) -> Tensor:
        """softmax(MLP(H_i))."""
        return arrays.softmax(self(h, graph), axis=-1)


def as_pairs(name: str, pairs: ArrayLike, n: int) -> tuple[Tensor, Tensor]:
    """The two ends of pairs (k, 2) of nodes."""
    found = arrays.asarray(pairs)
    if found.ndim != 2 or found.shape[1] != 2 or not dtypes.is_integer(found.dtype):
        raise ShapeError(f"{name}: pairs {found.dtype}{list(found.shape)}.", "integers (k, 2), such as graph.edges")
    if type(found) in VALUES and found.size:
        low, high = int(np.asarray(found).min()), int(np.asarray(found).max())
        if low < 0 or high >= n:
            raise InputError(f"{name}: pairs with nodes from {low} to {high}, of {n}.", f"0 to {n - 1}")
    return found[:, 0], found[:, 1]


def link_scores(h: ArrayLike, pairs: ArrayLike) -> Tensor:
    r"""\(h_i \cdot h_j\) for pairs (k, 2): logits of whether they are linked, (k,). Book, section 12.2.3.

    >>> import wonderland as wl
    >>> wl.models.link_scores(wl.tensor([[1.0, 2.0], [3.0, 4.0]]), [[0, 1], [1, 1]])
    tensor([11., 25.])
    """
    h = as_real("link_scores", h)
    i, j = as_pairs("link_scores", pairs, h.shape[0])
    return arrays.sum(arrays.take(h, i, axis=0) * arrays.take(h, j, axis=0), axis=-1)


class EdgeHead(Module):
    r"""Predictions for pairs of nodes, from both of them. Book, section 12.2.3.

    >>> import wonderland as wl
    >>> h, path = wl.random.normal((3, 8)), wl.graphs.path_graph(3)
    >>> wl.models.EdgeHead(8, 2)(h, path).shape, wl.models.EdgeHead(mode="dot")(h, path, [[0, 2]]).shape
    ((4, 2), (1,))

    - "concat": \(\mathrm{MLP}([H_i ; H_j])\), which is another one for (j, i), as for directed edges
    - "symmetric": the mean of both orders, the same for (i, j) and (j, i)
    - "dot": \(H_i \cdot H_j\), one logit without parameters: a sigmoid of it is the probability of a link

    The pairs (k, 2) are the graph's edges unless they are given, as those whose labels are known, or pairs that are no
    edges. Results are logits (k, out), or (k,) for "dot".
    """

    def __init__(
        self,
        in_features: int | None = None,
        out_features: int = 1,
        mode: str = "concat",
        hidden: int | Sequence[int] = (),
        activation: ActivationLike = "relu",
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        if mode not in ("concat", "symmetric", "dot"):
            raise InputError(f"EdgeHead: mode={mode!r}.", '"concat", "symmetric" or "dot"')
        if mode != "dot" and in_features is None:
            raise InputError(f"EdgeHead: no in_features for mode={mode!r}.", "EdgeHead(features, out)")
        self.mode = mode
        self.nn = None
        if mode != "dot" and in_features is not None:
            self.nn = MLP(2 * in_features, hidden, out_features, activation, dropout, dtype=dtype, key=key)

    def forward(self, h: ArrayLike, graph: GraphLike | None = None, pairs: ArrayLike | None = None) -> Tensor:
        h = as_real("EdgeHead", h)
        if pairs is None:
            if graph is None:
                raise InputError("EdgeHead: neither a graph nor pairs.", "head(h, graph) or head(h, pairs=pairs)")
            shift = shift_of("EdgeHead", graph, h.shape[0])
            pattern = (shift.sparse() if isinstance(shift, DenseShift) else shift).pattern
            pairs = arrays.stack([pattern.rows.owner, pattern.cols.owner], axis=1)
        if self.nn is None:
            return link_scores(h, pairs)
        ends = [arrays.take(h, at, axis=0) for at in as_pairs("EdgeHead", pairs, h.shape[0])]
        found = self.nn(arrays.concat(ends, axis=-1))
        if self.mode == "symmetric":
            found = 0.5 * (found + self.nn(arrays.concat(ends[::-1], axis=-1)))
        return found

    def extra_repr(self) -> str:
        return f"mode={self.mode!r}"


class GraphHead(Module):
    r"""\(y = \mathrm{MLP}(\frac{1}{n} \sum_i H_i)\): (n, c) to (out,), of a batch (graphs, out). Book, section 12.2.3.

    >>> import wonderland as wl
    >>> head = wl.models.GraphHead(8, 3)
    >>> batch = wl.graphs.Batch.from_graphs([wl.graphs.path_graph(4), wl.graphs.path_graph(3)])
    >>> head(wl.ones((4, 8)), wl.graphs.path_graph(4)).shape, head(wl.ones((7, 8)), batch).shape
    ((3,), (2, 3))

    `pool` is "mean" as in the book's formula, "sum" as in its text, which tells apart graphs of different sizes, "max",
    "attention", or a readout of your own. The result does not depend on the order of nodes.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        pool: str | Module = "mean",
        hidden: int | Sequence[int] = (),
        activation: ActivationLike = "relu",
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.pool: Module
        if isinstance(pool, Module):
            self.pool = pool
        elif pool == "attention":
            self.pool = AttentionReadout(Linear(in_features, 1, dtype=dtype))
        else:
            self.pool = Readout(pool)
        self.nn = MLP(in_features, hidden, out_features, activation, dropout, dtype=dtype, key=key)

    def forward(self, h: ArrayLike, graph: GraphLike, mask: ArrayLike | None = None) -> Tensor:
        return self.nn(self.pool(h, graph) if mask is None else self.pool(h, graph, mask))


class GraphModel(Module):
    r"""\(y = (g \circ f)(X, A)\): a backbone f for nodes, and a head g for nodes, edges or graphs. Book, 12.2.3.

    >>> import wonderland as wl
    >>> model = wl.models.GraphModel(wl.models.GIN([4, 16, 16]), wl.models.GraphHead(16, 2, pool="sum"))
    >>> model(wl.ones((5, 4)), wl.graphs.path_graph(5)).shape
    (2,)

    What is given besides features and graph goes to the head, as the pairs of an `EdgeHead`.
    """

    def __init__(self, backbone: Module, head: Module) -> None:
        self.backbone, self.head = backbone, head

    def forward(self, x: ArrayLike, graph: GraphLike, *given: ArrayLike) -> Tensor:
        return self.head(self.backbone(x, graph), graph, *given)
