"""A layer that is linear in each of two inputs."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..arguments import as_int
from ..random.keys import split
from ..random.streams import take_key
from ..tensor import Tensor
from .functional.affine import bilinear
from .init.schemes import uniform
from .module import Module
from .parameter import Parameter


class Bilinear(Module):
    r"""\(y_k = \sum_{ij} x_i\,W_{ijk}\,z_j + b_k\): (..., in1) and (..., in2) to (..., out).

    >>> import wonderland as wl
    >>> layer = wl.nn.Bilinear(20, 30, 40)
    >>> layer(wl.ones((128, 20)), wl.ones((128, 30))).shape, layer.weight.shape
    ((128, 40), (20, 30, 40))

    `weight` (in1, in2, out) and `bias` (out,) start from \(U(-1/\sqrt{c}, 1/\sqrt{c})\) with c = in1_features.
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        dtype: Any = None,
        key: Any = None,
    ) -> None:
        self.in1_features = as_int("Bilinear", "in1_features", in1_features, 1)
        self.in2_features = as_int("Bilinear", "in2_features", in2_features, 1)
        self.out_features = as_int("Bilinear", "out_features", out_features, 1)
        kind = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
        bound = 1 / math.sqrt(in1_features)
        keys, start = split(take_key("Bilinear", key), 2), uniform(-bound, bound)
        shape = (in1_features, in2_features, out_features)
        self.weight = Parameter(start(shape, key=keys[0], dtype=kind))
        self.bias = Parameter(start(shape[2:], key=keys[1], dtype=kind)) if bias else None

    def forward(self, x1: Any, x2: Any) -> Tensor:
        return bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"
