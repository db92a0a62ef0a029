"""Functions of several operations that are one operation where large tensors are computed with at once.

    @fused(single=MANY)
    def _silu(x: Tensor) -> Tensor:
        return x * sigmoid(x)

Without `jit`, on large tensors, this is one native kernel (evaluation.py) and one record; on small ones it is one
record if its derivative is known, and one call if it is known in NumPy. Elsewhere, as under `jit` and `vmap` and for a
debugger, it is the function as it is written. Positional parameters are tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from .cell import Cell
from .context import State, current, enter, leave
from .dtypes import float32, float64
from .evaluation import SMALL
from .interpreter import bind
from .primitive import Primitive, Rule
from .tangents import JVPTrace, JVPTracer
from .tensor import Tensor, wrap
from .typing import Array, Shaped

MANY = 1 << 15  # elements from which on a kernel is faster than several operations of NumPy
_SINGLE_AND_DOUBLE = (float32, float64)
TENSORS = 3  # at most, of which derivatives are asked


class Fused(Primitive):
    """A function as a primitive that no engine knows: it is expanded wherever a graph is made."""

    __slots__ = ("formula", "known")

    def __init__(
        self,
        formula: Callable[..., Tensor],
        single: int,
        cost: Rule | None,
        jvp: Sequence[Rule] | None,
        of_arrays: Callable[..., Array] | None,
    ) -> None:
        def impl(*args: Array, **params: object) -> Array:
            if of_arrays is not None and (dtype := args[0].dtype) in _SINGLE_AND_DOUBLE:
                for arg in args:
                    if arg.dtype is not dtype:
                        break
                else:
                    return of_arrays(*args, **params)
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
        state = current()
        trace = state.trace
        if args[0].size > SMALL:
            dtype = args[0].dtype
            at_once = self.single and dtype.kind == "f" and dtype.itemsize > 2 and _computes_at_once(state)
        elif self.known:  # there is no kernel, but one record is less than several
            noted = type(trace) is JVPTrace and trace.later
            at_once = (noted or (trace is None and _are_values(args))) and _computes_at_once(state)
        else:
            at_once = False
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
    *,
    single: int,
    cost: Rule | None = None,
    jvp: Sequence[Rule] | None = None,
    of_arrays: Callable[..., Array] | None = None,
) -> Callable[[Callable[..., Tensor]], Fused]:
    """Makes a function of tensors a `Fused`; `single` and `cost` are those of a primitive.

    Without `jvp`, the rules of a primitive, its derivative is that of the function, which is computed once more.
    `of_arrays` is the function in NumPy, of arrays that are all float32 or all float64, with the same numbers.
    """
    return lambda formula: Fused(formula, single, cost, jvp, of_arrays)


def _are_values(args: Sequence[Tensor]) -> bool:
    """Whether none of the arguments is a tangent."""
    for arg in args:  # noqa: SIM110 - every operation asks
        if type(arg) is not Tensor and not isinstance(arg, Cell):
            return False
    return True


def _checked_before(*args: Shaped, **params: object) -> None:
    """Who calls has checked shapes and types."""


def _computes_at_once(state: State) -> bool:
    """Whether operations are computed as they come, be it with tangents, and not by the reference."""
    trace = state.trace
    while type(trace) is JVPTrace:
        trace = trace.parent
    settings = state.settings
    return trace is None and state.plain and settings.backend != "numpy" and settings.autocast is None
