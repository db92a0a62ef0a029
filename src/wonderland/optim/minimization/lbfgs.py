"""L-BFGS: Newton's direction from the last few steps, without the Hessian."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator

from ... import arrays, tree
from ...core import dtypes
from ...core.arguments import as_function, as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...nn.module.parameter import Parameter
from ...transforms.imperative import no_grad
from ..optimizer import Group, Optimizer, Parameters
from .line_search import At, strong_wolfe
from .problem import Point, dot

Pairs = deque[tuple[Tensor, Tensor]]  # a step, and how the gradient changed along it


def direction(pairs: Pairs, gradient: Tensor) -> Tensor:
    r"""\(-H g\) with the inverse Hessian \(H\) that the pairs tell of; without any, \(-g\).

    >>> g = arrays.tensor([1.0, 2.0])
    >>> direction(deque([(arrays.tensor([1.0, 0.0]), arrays.tensor([4.0, 0.0]))]), g)
    tensor([-0.25, -0.5 ])
    """
    q, shares = gradient, []
    for s, y in reversed(pairs):
        share = dot(s, q) / dot(s, y)
        shares.append(share)
        q = q - share * y
    if pairs:
        s, y = pairs[-1]
        q = q * (dot(s, y) / dot(y, y))
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        q = q + (share - dot(y, q) / dot(s, y)) * s
    return -q


def points(at: At, first: Point, pairs: Pairs, lr: float = 1.0, search: bool = True) -> Iterator[Point]:
    """The points of the method, the first one too; it ends where no step lowers f."""
    point = first
    while True:
        yield point
        p = direction(pairs, point.gradient)
        if not dot(point.gradient, p) < 0:  # the pairs mislead: start again from the gradient
            pairs.clear()
            p = -point.gradient
        size = float(arrays.sum(arrays.abs(point.gradient)).item())
        start = lr if pairs else min(1.0, 1.0 / size if size else 1.0) * lr
        if search:
            found = strong_wolfe(at, point, p, start)
            if found is None and pairs:
                pairs.clear()
                found = strong_wolfe(at, point, -point.gradient, min(1.0, 1.0 / size) * lr)
            if found is None:
                return
            new = found[1]
        else:
            new = at(point.x + start * p)
        s, y = new.x - point.x, new.gradient - point.gradient
        if dot(s, y) > 1e-10 * dot(y, y):
            pairs.append((s, y))
        point = new


class LBFGS(Optimizer):
    r"""The quasi-Newton method for losses without noise: several evaluations per step, so it takes a closure.

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([-1.2, 1.0], wl.float64)
    >>> optimizer = wl.optim.LBFGS([w], max_iter=50)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = 100 * (w[1] - w[0] ** 2) ** 2 + (1 - w[0]) ** 2
    ...     loss.backward()
    ...     return loss
    >>> first = optimizer.step(closure)
    >>> round(first.item(), 4), [round(x, 4) for x in w.tolist()]
    (24.2, [1.0, 1.0])

    The closure may also give the loss and the gradients: `lambda: wl.value_and_grad(loss_of)(model, x, y)`. Compile
    what is inside it; the search itself is ordinary Python. A step is up to `max_iter` moves, and stops early when the
    largest gradient is at most `tolerance_grad`, or value and weights move by less than `tolerance_change`.
    `line_search_fn` is "strong_wolfe", or None for moves of length `lr`. The last `history_size` moves are remembered
    between steps.
    """

    def __init__(
        self,
        parameters: Parameters,
        lr: float = 1.0,
        max_iter: int = 20,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 10,
        line_search_fn: str | None = "strong_wolfe",
    ) -> None:
        super().__init__(
            parameters,
            lr,
            max_iter=max_iter,
            tolerance_grad=tolerance_grad,
            tolerance_change=tolerance_change,
            history_size=history_size,
            line_search_fn=line_search_fn,
        )
        if len(self.groups) > 1:
            raise InputError("LBFGS: several groups of parameters.", "one group, as the method sees one vector")

    def check(self, group: Group) -> None:
        as_int("LBFGS", "max_iter", group["max_iter"], 1)
        as_int("LBFGS", "history_size", group["history_size"], 1)
        if group["line_search_fn"] not in ("strong_wolfe", None):
            raise InputError(f"LBFGS: line_search_fn={group['line_search_fn']!r}.", '"strong_wolfe" or None')
        if group["weight_decay"] or group["maximize"]:
            raise InputError("LBFGS: weight decay and maximize belong to the closure.", "a loss with the penalty")

    def init_shared(self, group: Group) -> dict[str, Tensor]:
        vector, _ = tree.ravel([p.value for p in group.params.values()])
        empty = arrays.zeros((group["history_size"], vector.size), dtype=vector.dtype)
        return {"moves": empty, "slopes": empty, "pairs": arrays.zeros((), dtype=dtypes.int64)}

    def step(self, closure: Callable[[], Tensor | tuple[Tensor, object]] | None = None) -> Tensor:  # type: ignore[override]  # needs a closure
        """Move by the closure's losses and gradients; returns the loss before."""
        if closure is None:
            raise InputError("LBFGS.step: it needs a closure.", "step(closure), which evaluates the loss again")
        as_function("optim.LBFGS.step", closure)
        group = self.groups[0]
        cells = [p for p in group.params.values() if p.trainable]
        start, back = tree.ravel([p.value for p in cells])

        def at(x: Tensor) -> Point:
            with no_grad():
                for cell, value in zip(cells, back(x), strict=True):
                    cell.assign(value)
            found = closure()
            loss, chosen = (found[0], self._matched(found[1])) if isinstance(found, tuple) else (found, None)
            chosen = self._left_by_backward() if chosen is None else chosen
            gradient, _ = tree.ravel([chosen.get(id(p), arrays.zeros_like(p.value)) for p in cells])
            return Point(x, loss.item(), gradient)

        pairs = self._load(group)
        first = point = at(start)
        moves = points(at, first, pairs, group.lr.item(), group["line_search_fn"] is not None)
        for i, new in enumerate(moves):
            change = float(arrays.max(arrays.abs(new.x - point.x)).item()) if i else math.inf
            flat = float(arrays.max(arrays.abs(new.gradient)).item()) <= group["tolerance_grad"]
            still = i and (
                change <= group["tolerance_change"] or abs(new.value - point.value) < group["tolerance_change"]
            )
            point = new
            if flat or still or i == group["max_iter"] or not math.isfinite(new.value):
                break
        with no_grad():
            for cell, value in zip(cells, back(point.x), strict=True):
                cell.assign(value)
            self.count.assign(self.count + 1)
        self._save(group, pairs)
        return arrays.asarray(first.value, dtype=start.dtype)

    def _load(self, group: Group) -> Pairs:
        known = int(group.shared["pairs"].item())
        moves, slopes = group.shared["moves"].value, group.shared["slopes"].value
        return deque([(moves[k], slopes[k]) for k in range(known)], maxlen=group["history_size"])

    def _save(self, group: Group, pairs: Pairs) -> None:
        for name, k in (("moves", 0), ("slopes", 1)):
            cell = group.shared[name]
            rows = [pair[k] for pair in pairs]
            rest = arrays.zeros((cell.shape[0] - len(rows), cell.shape[1]), dtype=cell.dtype)
            cell.assign(arrays.concat([arrays.stack(rows), rest]) if rows else rest)
        group.shared["pairs"].assign(arrays.asarray(len(pairs), dtype=dtypes.int64))

    def init(self, group: Group, parameter: Parameter) -> dict[str, Tensor]:
        return {}
