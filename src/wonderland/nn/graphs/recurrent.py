r"""Recurrent graph networks: states that are stable under messages between neighbours. Notes, section 7.7.

\(h_v(t) = \sum_{u \in N(v)} f(x_v, e_{vu}, x_u, h_u(t-1))\) until nothing changes. The limit has a gradient without the
way to it, by a second iteration (Almeida, Pineda), so memory does not grow with the number of steps.
"""

from __future__ import annotations

import dataclasses

from ... import arrays, linalg, sparse
from ...core.arguments import as_int, as_number
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..implicit.fixed_point import Settings, find
from ..implicit.solvers import FixedPointSolution
from ..layers.linear import Linear
from ..module.module import Module
from .layer import GraphLayer, edge_features
from .shift import GraphLike, Shift

__all__ = ["GRN"]


class GraphTransition(Module):
    r"""One step: \(\sum_u A_{vu} \tanh([x_v ; e_{vu} ; x_u] U + b + h_u W)\)."""

    def __init__(self, inputs: Linear, weight: Linear, limit: float | None, state: str) -> None:
        self.inputs, self.weight = inputs, weight
        self.limit, self.state = limit, state

    def matrix(self) -> Tensor:
        """W, made shorter if its spectral norm is above the limit."""
        w = self.weight.weight + 0
        if self.limit is None:
            return w
        return w * arrays.minimum(self.limit / arrays.maximum(linalg.matrix_norm(w, ord=2), 1e-12), 1.0)

    def forward(self, h: Tensor, given: Tensor, shift: Shift) -> Tensor:
        """The state after a step, with what edges say besides, [x_v ; e ; x_u], in `given` (m, ...)."""
        from_states = arrays.matmul(h, self.matrix())
        line = shift.pattern.cols if self.state == "neighbour" else shift.pattern.rows
        told = arrays.tanh(self.inputs(given) + sparse.gather(from_states, line))
        if shift.weight is not None:
            told = told * arrays.astype(shift.weight, told.dtype)[:, None]
        return sparse.segment_sum(told, shift.pattern.rows)


class GRN(GraphLayer):
    r"""\(h_v = \sum_{u \in N(v)} f(x_v, e_{vu}, x_u, h_u)\), a fixed point: (n, c) to (n, features). Notes, 7.7.

    >>> import wonderland as wl
    >>> layer = wl.nn.GRN(4, 6)
    >>> path = wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> layer(wl.ones((3, 4)), path).shape, float(layer.solve(wl.ones((3, 4)), path).residual[0]) <= 1e-6
    ((3, 6), True)

    f is \(\tanh([x_v ; e_{vu} ; x_u] U + b + h_u W)\), and messages are averaged over neighbours (`norm="row"`), with
    `norm=None` added up as the notes have it. There is one solution, whatever the start, if f is a contraction: means,
    and a W that is scaled to a spectral norm of `limit` at most, see to it for every graph. With `limit=None` or sums
    there may be none, and then `on_failure` says what happens ("warn", "raise" or "ignore"; compiled code gives NaN).
    `tol`, `max_iter` and `solver` are those of `fixed_point`.

    The state is that of the neighbour. The notes print \(h_v(t-1)\), with which nothing travels further than one hop:
    `state="own"` is that. `edge_dim` is the number of features of edges.
    """

    def __init__(
        self,
        in_features: int,
        features: int,
        edge_dim: int | None = None,
        limit: float | None = 0.9,
        norm: str | None = "row",
        state: str = "neighbour",
        tol: float | None = None,
        max_iter: int = 500,
        solver: str = "iteration",
        on_failure: str = "warn",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        self.in_features = as_int(name, "in_features", in_features, 1)
        self.features = as_int(name, "features", features, 1)
        self.edge_dim = None if edge_dim is None else as_int(name, "edge_dim", edge_dim, 1)
        if limit is not None and not 0 <= as_number(name, "limit", limit) < 1:
            raise InputError(f"{name}: limit={limit}.", "a number from 0 to below 1, or None")
        if norm not in ("row", "sym", None):
            raise InputError(f"{name}: norm={norm!r}.", '"row", "sym" or None')
        if state not in ("neighbour", "own"):
            raise InputError(f"{name}: state={state!r}.", '"neighbour" or "own"')
        self.norm = norm
        keys = split(take_key(name, key), 2)
        inputs = Linear(2 * self.in_features + (self.edge_dim or 0), self.features, dtype=dtype, key=keys[0])
        weight = Linear(self.features, self.features, bias=False, dtype=dtype, key=keys[1])
        self.step = GraphTransition(inputs, weight, limit, state)
        self.settings = Settings(solver, "auto", tol, max_iter, 5, False, on_failure).checked()

    def channels(self) -> int:
        return self.in_features

    def compute(self, x: Tensor, shift: Shift) -> Tensor:
        return self._solved(x, shift).value

    def solve(
        self,
        x: ArrayLike,
        graph: GraphLike,
        edge_attr: ArrayLike | None = None,
        start: ArrayLike | None = None,
    ) -> FixedPointSolution:
        """The states (n, features) with the residual and the number of evaluations, from `start` or zeros."""
        x, shift, _ = self.arranged(x, graph, edge_attr)
        return self._solved(x, shift, start)

    def unrolled(self, x: ArrayLike, graph: GraphLike, steps: int, edge_attr: ArrayLike | None = None) -> Tensor:
        """The states after so many steps from zeros, whose gradient goes back through all of them."""
        x, shift, _ = self.arranged(x, graph, edge_attr)
        given, shift, h = self._prepared(x, shift)
        for _ in range(as_int(type(self).__name__, "steps", steps, 0)):
            h = self.step(h, given, shift)
        return h

    def _prepared(self, x: Tensor, shift: Shift) -> tuple[Tensor, Shift, Tensor]:
        parts = [sparse.gather(x, shift.pattern.rows), sparse.gather(x, shift.pattern.cols)]
        if self.edge_dim is not None:
            parts.insert(1, arrays.astype(edge_features(self._describe(), shift, self.edge_dim), x.dtype))
        given = arrays.concat(parts, axis=-1)
        shift = dataclasses.replace(shift.normalized(self.norm, dtype=x.dtype), edge_attr=None, nodes=None)
        kind = arrays.result_type(x, self.step.weight.weight)
        return given, shift, arrays.zeros((shift.n, self.features), dtype=kind)

    def _solved(self, x: Tensor, shift: Shift, start: ArrayLike | None = None) -> FixedPointSolution:
        given, shift, zeros = self._prepared(x, shift)
        first = zeros if start is None else arrays.asarray(start, dtype=zeros.dtype)
        return find(self.step, first, (given, shift), self.settings)

    def extra_repr(self) -> str:
        return ", ".join([f"{self.in_features}, {self.features}", *self._changed(norm="row", edge_dim=None)])
