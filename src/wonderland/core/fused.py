"""Functions of several operations that are one operation where large tensors are computed with at once.

    @fused(single=MANY)
    def _silu(x: Tensor) -> Tensor:
        return x * sigmoid(x)

Without `jit`, on large tensors, this is one native kernel (evaluation.py) and one record; on small ones it is one
record of `grad` if its derivative is known. Elsewhere, as under `jit` and `vmap` and for a debugger, it is the function
as it is written. Positional parameters are tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from .context import current, enter, leave
from .evaluation import SMALL
from .interpreter import bind
from .primitive import Primitive, Rule
from .tangents import JVPTrace, JVPTracer
from .tensor import Tensor, wrap
from .typing import Array, Shaped

MANY = 1 << 15  # elements from which on a kernel is faster than several operations of NumPy
TENSORS = 3  # at most, of which derivatives are asked


class Fused(Primitive):
    """A function as a primitive that no engine knows: it is expanded wherever a graph is made."""

    __slots__ = ("formula", "known")

    def __init__(
        self, formula: Callable[..., Tensor], single: int, cost: Rule | None, jvp: Sequence[Rule] | None
    ) -> None:
        def impl(*args: Array, **params: object) -> Array:
            return formula(*map(wrap, args), **params)._data

        self.formula = formula
        self.known = jvp is not None  # whether its derivative is known without computing the function once more
        super().__init__(
            formula.__name__.strip("_"),
            impl,
            _checked_before,
            jvp=jvp or tuple(functools.partial(self._tangent, i) for i in range(TENSORS)),
            single=single,
            cost=cost,
        )

    def _declare(self) -> None:
        """It is in no table: no rule but these is needed."""

    def __call__(self, *args: Tensor, **params: object) -> Tensor:
        """The result of the function."""
        x = args[0]
        if x.size > SMALL:
            at_once = x.dtype.kind == "f" and x.dtype.itemsize > 2 and _computes_at_once()
        else:  # there is no kernel, but one record is less than several
            trace = current().trace
            at_once = type(trace) is JVPTrace and trace.later and self.known and _computes_at_once()
        return bind(self, *args, **params) if at_once else self.formula(*args, **params)

    def _tangent(self, place: int, t: Tensor, out: Tensor, *args: Tensor, **params: object) -> Tensor | None:
        """The tangent of the result for that of one argument."""
        trace = JVPTrace(current().trace)
        before = enter(trace)
        try:
            found = self.formula(*[JVPTracer(trace, a, t) if i == place else a for i, a in enumerate(args)], **params)
        finally:
            leave(before)
        return trace.split(found)[1]


def fused(
    *, single: int, cost: Rule | None = None, jvp: Sequence[Rule] | None = None
) -> Callable[[Callable[..., Tensor]], Fused]:
    """Makes a function of tensors a `Fused`; `single` and `cost` are those of a primitive.

    Without `jvp`, the rules of a primitive, its derivative is that of the function, which is computed once more.
    """
    return lambda formula: Fused(formula, single, cost, jvp)


def _checked_before(*args: Shaped, **params: object) -> None:
    """Who calls has checked shapes and types."""


def _computes_at_once() -> bool:
    """Whether operations are computed as they come, be it with tangents, and not by the reference."""
    state = current()
    trace = state.trace
    while type(trace) is JVPTrace:
        trace = trace.parent
    settings = state.settings
    return trace is None and state.plain and settings.backend != "numpy" and settings.autocast is None
