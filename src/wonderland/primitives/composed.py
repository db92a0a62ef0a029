"""Primitives that are formulas over others: the meaning is the formula on NumPy arrays, native code is its expansion.

A formula `f(m, x, ...)` takes its functions from `m`: NumPy's when it is computed, those on tensors when the compiler
asks what the primitive consists of, or when a derivative is that of the formula itself. It is computed in float64 and
rounded once. Derivatives are given by factors, as for other elementwise primitives, so they are as exact as values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from ..core.broadcasting import broadcast_shapes
from ..core.errors import DTypeError
from ..core.primitive import Aval, Derivative, Marker, Primitive
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from . import special
from .elementwise import FLOATING, check_kind, elementwise_batch, multiply

if TYPE_CHECKING:
    from ..ir.stage import Staged

Formula = Callable[..., Any]
Value = TypeVar("Value", Array, Tensor)


class Functions(Protocol[Value]):
    """What formulas are made of, besides operators."""

    abs: Callable[[Value], Value]
    cos: Callable[[Value], Value]
    erfc: Callable[[Value], Value]
    erfinv: Callable[[Value], Value]
    exp: Callable[[Value], Value]
    expm1: Callable[[Value], Value]
    floor: Callable[[Value], Value]
    log: Callable[[Value], Value]
    log1p: Callable[[Value], Value]
    round: Callable[[Value], Value]
    sign: Callable[[Value], Value]
    sin: Callable[[Value], Value]
    sqrt: Callable[[Value], Value]
    tan: Callable[[Value], Value]
    constant: Callable[[Array], Value]
    constant_part: Callable[[Value], Value]

    def maximum(self, x: Value, y: Value | float, /) -> Value: ...
    def minimum(self, x: Value, y: Value | float, /) -> Value: ...
    def power(self, x: Value, y: Value | float, /) -> Value: ...
    def reshape(self, x: Value, shape: tuple[int, ...], /) -> Value: ...
    def sum(self, x: Value, /, *, axis: int) -> Value: ...
    def where(self, condition: Value, x: Value | float, y: Value | float, /) -> Value: ...


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

    def __init__(self, name: str, formula: Formula, factors: Sequence[Derivative]) -> None:
        def impl(*args: Array, **params: object) -> Array:
            check_kind(name, FLOATING, *args)
            with np.errstate(all="ignore"):
                found = formula(NUMPY, *[a.astype(np.float64) for a in args], **params)
            return np.asarray(found).astype(args[0].dtype)

        def abstract(*args: Shaped, **params: object) -> Aval:
            check_kind(name, FLOATING, *args)
            if any(a.dtype != args[0].dtype for a in args):
                raise DTypeError(f"{name}: dtypes {', '.join(str(a.dtype) for a in args)} differ.", "x.astype(...)")
            return Aval(broadcast_shapes(name, *[a.shape for a in args]), args[0].dtype)

        super().__init__(name, impl, abstract, jvp=tuple(map(rule_of, factors)), elementwise=True)
        self.batch = elementwise_batch(self)
        self.formula = formula
        self.graphs: dict[Hashable, Staged] = {}  # see ir/expansion.py


def rule_of(factor: Derivative) -> Derivative:
    """A jvp rule from a factor `d(out, *args, **params)`."""
    if factor is None or isinstance(factor, Marker):
        return factor
    return lambda t, out, *args, **params: multiply(t, factor(out, *args, **params))


def series(t: Value, coefficients: Sequence[float]) -> Value:
    """A Chebyshev series at t in [-1, 1], by Clenshaw's recurrence."""
    twice = t + t
    before: Value | float = 0.0
    now = coefficients[-1] + 0 * t
    for c in coefficients[-2:0:-1]:
        now, before = twice * now - before + c, now
    return t * now - before + coefficients[0]
