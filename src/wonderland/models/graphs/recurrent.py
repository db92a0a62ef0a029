"""Classifiers of nodes by states that are stable under messages, or by a fixed number of gated steps. Notes, 7.7."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.graphs.gated import GatedGNN
from ...nn.graphs.recurrent import GRN
from ...nn.graphs.shift import GraphLike
from ...nn.module.module import Module
from ...random.keys import split
from ...random.streams import take_key
from .heads import NodeHead

__all__ = ["GRNClassifier", "GatedGraphClassifier"]


class GRNClassifier(Module):
    r"""\(W^\top h_v\) of the fixed point \(h\) of a recurrent graph network: logits of nodes. Notes, section 7.7.

    >>> import wonderland as wl
    >>> model = wl.models.GRNClassifier(4, 16, 3)
    >>> model(wl.ones((5, 4)), wl.graphs.path_graph(5)).shape
    (5, 3)

    The loss is the cross-entropy of nodes with labels, \(\sum_v -\log S(W^\top h_v)_{y_v}\); its gradient goes through
    the fixed point by a second iteration. Settings are those of `wl.nn.GRN`.
    """

    def __init__(
        self,
        in_features: int,
        features: int,
        classes: int,
        hidden: int | Sequence[int] = (),
        limit: float | None = 0.9,
        norm: str | None = "row",
        tol: float | None = None,
        max_iter: int = 500,
        solver: str = "iteration",
        on_failure: str = "warn",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        keys = split(take_key("GRNClassifier", key), 2)
        self.states = GRN(
            in_features, features, limit=limit, norm=norm, tol=tol, max_iter=max_iter, solver=solver,
            on_failure=on_failure, dtype=dtype, key=keys[0],
        )  # fmt: skip
        self.head = NodeHead(features, classes, hidden, dtype=dtype, key=keys[1])

    def forward(self, x: ArrayLike, graph: GraphLike) -> Tensor:
        return self.head(self.states(x, graph))


class GatedGraphClassifier(Module):
    """A `GatedGNN` of T steps and a head: logits of nodes. Notes, section 7.7.

    >>> import wonderland as wl
    >>> model = wl.models.GatedGraphClassifier(4, 16, 3, T=2)
    >>> model(wl.ones((5, 4)), wl.graphs.path_graph(5)).shape
    (5, 3)
    """

    def __init__(
        self,
        in_features: int,
        features: int,
        classes: int,
        T: int = 4,
        hidden: int | Sequence[int] = (),
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        keys = split(take_key("GatedGraphClassifier", key), 2)
        self.states = GatedGNN(in_features, features, T, "mean", dtype, keys[0])
        self.head = NodeHead(features, classes, hidden, dtype=dtype, key=keys[1])

    def forward(self, x: ArrayLike, graph: GraphLike) -> Tensor:
        return self.head(self.states(x, graph))
