"""Explicit Runge-Kutta methods: their tables, and one step of any of them. Book, section 9.4.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .. import arrays
from ..core.tensor import Tensor

Leaves = list[Tensor]  # the tensors of a state
Slopes = Callable[[Leaves, Tensor], Leaves]  # (state, time) -> its derivative


@dataclass(frozen=True)
class Tableau:
    r"""Butcher's table: \(k_i = f(x + h \sum_{j<i} a_{ij} k_j,\ t + c_i h)\) and \(x' = x + h \sum_i b_i k_i\).

    `error` holds the differences of b from the weights of an embedded method of order `order - 1`; with them a step
    knows its own error. All tables with `error` here have \(a_s = b\): the last slope of a step is the first one of the
    next.
    """

    order: int
    a: tuple[tuple[float, ...], ...]  # without the empty first row
    b: tuple[float, ...]
    error: tuple[float, ...] | None = None

    @property
    def c(self) -> tuple[float, ...]:
        """The times of the stages, as shares of the step."""
        return (0.0, *(sum(row) for row in self.a))


METHODS = {
    "euler": Tableau(1, (), (1.0,)),
    "midpoint": Tableau(2, ((1 / 2,),), (0.0, 1.0)),
    "heun": Tableau(2, ((1.0,),), (1 / 2, 1 / 2)),
    "rk4": Tableau(4, ((1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
    # Bogacki and Shampine (1989)
    "bosh3": Tableau(
        3,
        ((1 / 2,), (0.0, 3 / 4), (2 / 9, 1 / 3, 4 / 9)),
        (2 / 9, 1 / 3, 4 / 9, 0.0),
        (2 / 9 - 7 / 24, 1 / 3 - 1 / 4, 4 / 9 - 1 / 3, -1 / 8),
    ),
    # Dormand and Prince (1980)
    "dopri5": Tableau(
        5,
        (
            (1 / 5,),
            (3 / 40, 9 / 40),
            (44 / 45, -56 / 15, 32 / 9),
            (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
            (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
            (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
        ),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
        (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
    ),
}


def stages(table: Tableau, f: Slopes, x: Leaves, t: Tensor, h: Tensor, first: Leaves | None = None) -> list[Leaves]:
    """The slopes of one step of size h; the first one may be known."""
    ks = [f(x, t) if first is None else first]
    for row, c in zip(table.a, table.c[1:], strict=True):
        ks.append(f(moved(x, h, row, ks), t + c * h))
    return ks


def moved(x: Leaves, h: Tensor, weights: Sequence[float], ks: list[Leaves]) -> Leaves:
    """x + h times a combination of slopes."""
    return [leaf + arrays.astype(h, leaf.dtype) * k for leaf, k in zip(x, combined(weights, ks), strict=True)]


def combined(weights: Sequence[float], ks: list[Leaves]) -> Leaves:
    """A combination of slopes, leaf by leaf."""
    used = [(w, k) for w, k in zip(weights, ks, strict=False) if w]
    return [_sum([k[i] if w == 1.0 else w * k[i] for w, k in used]) for i in range(len(ks[0]))]


def _sum(terms: list[Tensor]) -> Tensor:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
