"""Kernels for single operations outside of `jit`: a graph of one equation, run by the engine that is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from ..core.evaluation import Kernel, Results
from ..core.primitive import Primitive, aval_of
from ..core.tensor import Tensor
from ..core.typing import Array
from ..core.views import memory, part
from ..ir.deriving import pure
from ..primitives.contraction import matmul
from ..primitives.layout import part_of
from .choosing import get_backend
from .repeated import Repeated

WORTH_A_COPY = 16  # multiply-adds for each element that is copied


def kernel(primitive: Primitive, data: Sequence[Array], params: dict[str, object]) -> Kernel | None:
    """The kernel of an operation on arrays like these; None if NumPy is to do it.

    Views such as transposed arrays and slices are read as they lie. What cannot be would have to be copied, which is
    done if that is little beside the work.
    """
    if get_backend() == "numpy":
        return None
    parts = [part(a) for a in data]
    copied = sum(a.size for a, seen in zip(data, parts, strict=True) if seen is None and not a.flags.c_contiguous)
    if copied and (primitive.cost is None or primitive.cost(*data, **params) < WORTH_A_COPY * copied):
        return None

    viewed = any(view is not None for view in parts)

    def f(*args: Tensor) -> list[Tensor]:
        seen = [x if view is None else part_of(x, view) for x, view in zip(args, parts, strict=True)]
        out = primitive(*seen, **params)
        return out if primitive.multiple else [out]

    def given(arrays: Sequence[Array]) -> list[Array]:
        return [a if view is None else cast(Array, memory(a)) for a, view in zip(arrays, parts, strict=True)]

    program = Repeated(pure(f, [*map(aval_of, given(data))], primitive.name))
    turned = primitive is matmul and (parts[0] is None) != (parts[1] is None)

    def call(arrays: list[Array]) -> Results:
        if turned and np.may_share_memory(arrays[0], arrays[1]):  # of x and its transpose, BLAS computes half
            return primitive.impl(*arrays, **params)
        whole = given(arrays) if viewed else arrays
        enter = program.enter
        outs = (None if enter is None else enter(*whole)) or program(*whole)
        return [out._data for out in outs] if primitive.multiple else outs[0]._data

    return call
