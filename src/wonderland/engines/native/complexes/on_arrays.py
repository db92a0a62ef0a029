"""Equations on complex arrays as they are in memory: for what has no formula on parts."""

from __future__ import annotations

import numpy as np

from ....core import dtypes
from ....core.interpreter import bind
from ....core.tensor import Tensor
from ....core.typing import Array
from ....ir.graph import Equation
from ...numpy.evaluate import run_equation
from .pairs import Own, Pair, apart, interleaved, together

Numbers = Tensor | Pair


# Whose steps compute their argument as they read it: they take parts that are not in memory yet.
BY_PARTS = ("fft", "irfft")


class OnComplex(Own):
    """An equation on complex arrays, as a primitive on real ones: NumPy computes it, unless `lowering` has a rule.

    The arrays are as complex ones are in memory; or there are two, the parts of the only argument.
    """

    __slots__ = ("by_parts", "equation")

    def __init__(self, equation: Equation, by_parts: bool = False) -> None:
        outputs = [interleaved(v.aval) for v in equation.outputs]
        super().__init__(f"complex_{equation.primitive.name}", self._on_real, lambda *args: outputs, multiple=True)
        self.equation, self.by_parts = equation, by_parts

    def _on_real(self, *arrays: Array) -> list[Array]:
        e = self.equation
        if self.by_parts:
            arrays = (np.stack(arrays, axis=-1),)
        args = [
            np.ascontiguousarray(x).view(a.dtype).reshape(a.shape) if dtypes.is_complex(a.dtype) else x
            for x, a in zip(arrays, e.inputs, strict=True)
        ]
        return [
            np.ascontiguousarray(x).view(dtypes.real_of(v.dtype)).reshape(interleaved(v.aval).shape)
            for x, v in zip(run_equation(e, args), e.outputs, strict=True)
        ]


def on_arrays(e: Equation, args: list[Numbers]) -> list[Numbers]:
    first = args[0]
    if e.primitive.name in BY_PARTS and isinstance(first, Pair) and first.both is None:
        made = bind(OnComplex(e, by_parts=True), first.real, first.imag)
    else:
        made = bind(OnComplex(e), *[together(x) for x in args])
    return [apart(x) if dtypes.is_complex(v.dtype) else x for x, v in zip(made, e.outputs, strict=True)]
