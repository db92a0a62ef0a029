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


class OnComplex(Own):
    """An equation on complex arrays, as a primitive on real ones: NumPy computes it, unless `lowering` has a rule."""

    __slots__ = ("equation",)

    def __init__(self, equation: Equation) -> None:
        outputs = [interleaved(v.aval) for v in equation.outputs]
        super().__init__(f"complex_{equation.primitive.name}", self._on_real, lambda *args: outputs, multiple=True)
        self.equation = equation

    def _on_real(self, *arrays: Array) -> list[Array]:
        e = self.equation
        args = [
            np.ascontiguousarray(x).view(a.dtype).reshape(a.shape) if dtypes.is_complex(a.dtype) else x
            for x, a in zip(arrays, e.inputs, strict=True)
        ]
        return [
            np.ascontiguousarray(x).view(dtypes.real_of(v.dtype)).reshape(interleaved(v.aval).shape)
            for x, v in zip(run_equation(e, args), e.outputs, strict=True)
        ]


def on_arrays(e: Equation, args: list[Numbers]) -> list[Numbers]:
    made = bind(OnComplex(e), *[together(x) for x in args])
    return [apart(x) if dtypes.is_complex(v.dtype) else x for x, v in zip(made, e.outputs, strict=True)]
