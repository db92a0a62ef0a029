"""Primitives that are formulas over others: the meaning is the formula on NumPy arrays, native code is its expansion.

A formula `f(m, x, ...)` takes its functions from `m`: NumPy's when it is computed, those on tensors when the compiler
asks what the primitive consists of, or when a derivative is that of the formula itself. It is computed in float64 and
rounded once. Derivatives are given by factors, as for other elementwise primitives, so they are as exact as values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..broadcasting import broadcast_shapes
from ..errors import DTypeError
from . import special
from .elementwise import FLOATING, check_kind, elementwise_batch, multiply
from .primitive import Aval, Marker, Primitive

Formula = Callable[..., Any]

NUMPY = SimpleNamespace(
    **{name: getattr(np, name) for name in ("abs", "cos", "exp", "expm1", "floor", "log", "log1p", "round", "sin")},
    **{name: getattr(np, name) for name in ("maximum", "minimum", "sign", "sqrt", "sum", "tan", "where")},
    constant=lambda data: data,
    constant_part=lambda x: x,
    erfc=special.erfc,
    erfinv=special.erfinv,
    power=np.power,
    reshape=np.reshape,
)


class Composed(Primitive):
    """An elementwise primitive with a formula."""

    __slots__ = ("formula", "graphs")

    def __init__(self, name: str, formula: Formula, factors: Sequence[Any]) -> None:
        def impl(*args: Any, **params: Any) -> Any:
            check_kind(name, FLOATING, *args)
            with np.errstate(all="ignore"):
                found = formula(NUMPY, *[a.astype(np.float64) for a in args], **params)
            return np.asarray(found).astype(args[0].dtype)

        def abstract(*args: Any, **params: Any) -> Aval:
            check_kind(name, FLOATING, *args)
            if any(a.dtype != args[0].dtype for a in args):
                raise DTypeError(f"{name}: dtypes {', '.join(str(a.dtype) for a in args)} differ.", "x.astype(...)")
            return Aval(broadcast_shapes(name, *[a.shape for a in args]), args[0].dtype)

        super().__init__(name, impl, abstract, jvp=tuple(map(rule_of, factors)), elementwise=True)
        self.batch = elementwise_batch(self)
        self.formula = formula
        self.graphs: dict[Any, Any] = {}  # see graph/expansion.py


def rule_of(factor: Any) -> Any:
    """A jvp rule from a factor `d(out, *args, **params)`."""
    if factor is None or isinstance(factor, Marker):
        return factor
    return lambda t, out, *args, **params: multiply(t, factor(out, *args, **params))


def series(t: Any, coefficients: Sequence[float]) -> Any:
    """A Chebyshev series at t in [-1, 1], by Clenshaw's recurrence."""
    twice = t + t
    before: Any = 0.0
    now: Any = coefficients[-1] + 0 * t
    for c in coefficients[-2:0:-1]:
        now, before = twice * now - before + c, now
    return t * now - before + coefficients[0]
