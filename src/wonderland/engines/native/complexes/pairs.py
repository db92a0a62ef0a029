"""Complex values as pairs of real ones, and in memory: as real values with one more axis of size 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....core import dtypes
from ....core.interpreter import bind
from ....core.primitive import Aval, Primitive
from ....core.tensor import Tensor
from ....ir.graph import Equation
from ....primitives.structure import reshape, take_slice
from ..values import View

if TYPE_CHECKING:
    from ..schedule import Schedule


class Pair:
    """The parts of complex numbers, two tensors of one shape; perhaps also both in one, as in memory."""

    __slots__ = ("both", "imag", "real")

    def __init__(self, real: Tensor, imag: Tensor, both: Tensor | None = None) -> None:
        self.real, self.imag, self.both = real, imag, both


def interleaved(aval: Aval) -> Aval:
    """The type of the memory of a value."""
    return Aval((*aval.shape, 2), dtypes.real_of(aval.dtype)) if dtypes.is_complex(aval.dtype) else aval


def apart(x: Tensor) -> Pair:
    last, shape = len(x.shape) - 1, x.shape[:-1]
    real, imag = (reshape(take_slice(x, last, i, i + 1), shape=shape) for i in range(2))
    return Pair(real, imag, x)


def together(x: Pair | Tensor) -> Tensor:
    """A value as it is in memory."""
    if not isinstance(x, Pair):
        return x
    if x.both is None:
        x.both = bind(_INTERLEAVE, x.real, x.imag)
    return x.both


class Own(Primitive):
    """A primitive of the compiler's graphs. It is not declared, as nobody else calls it or takes its derivative."""

    __slots__ = ()

    def _declare(self) -> None:
        """Nothing: there may be many of one name."""


_INTERLEAVE = Own("interleave", lambda re, im: np.stack([re, im], -1), lambda re, im: Aval((*re.shape, 2), re.dtype))


def interleave(s: Schedule, e: Equation) -> bool:
    """Store both parts in their places, if possible with one kernel."""
    target = s.target(e.outputs[0])
    for i, part in enumerate(e.inputs):
        place = View(target.buffer, part.shape, target.strides[:-1], target.offset + i * target.strides[-1])
        s.store(place, s.value(part))
    if s.writers(target.buffer) > 1:
        s.close_writers(target.buffer)
    s.bind(e.outputs[0], target)
    return True
