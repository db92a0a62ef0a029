"""Kernels for single operations outside of `jit`: a graph of one equation, run by the engine that is chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.evaluation import Kernel, Results
from ..core.interpreter import bind
from ..core.primitive import Aval, Primitive
from ..core.tensor import Tensor
from ..core.typing import Array
from ..ir.deriving import pure
from ..primitives.structure import transpose
from .choosing import get_backend, run


def kernel(primitive: Primitive, data: Sequence[Array], params: dict[str, object]) -> Kernel | None:
    """The kernel of an operation on arrays like these; None if NumPy is to do it.

    Arrays that lie in memory with their axes reversed, as transposed matrices do, are read as they lie. Others that do
    not lie in order would have to be copied.
    """
    if get_backend() == "numpy" or not all(a.flags.forc for a in data):
        return None
    reverse = [not a.flags.c_contiguous for a in data]

    def f(*args: Tensor) -> list[Tensor]:
        seen = [
            transpose(x, axes=tuple(range(x.ndim))[::-1]) if turned else x
            for x, turned in zip(args, reverse, strict=True)
        ]
        out = bind(primitive, *seen, **params)
        return out if primitive.multiple else [out]

    shapes = [a.shape[::-1] if turned else a.shape for a, turned in zip(data, reverse, strict=True)]
    avals = [Aval(shape, a.dtype) for shape, a in zip(shapes, data, strict=True)]
    graph = pure(f, avals, primitive.name)
    turns = any(reverse)

    def call(arrays: list[Array]) -> Results:
        if turns:
            if np.may_share_memory(arrays[0], arrays[-1]):  # of x and its transpose, BLAS computes half
                return primitive.impl(*arrays, **params)
            arrays = [a.T if turned else a for a, turned in zip(arrays, reverse, strict=True)]
        outs = run(graph, arrays)
        return outs if primitive.multiple else outs[0]

    return call
