"""A layer that is linear in each of two inputs."""

from __future__ import annotations

from ...core import dtypes
from ...core.arguments import as_int
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ..functional.affine import bilinear
from .weighted import Weighted

__all__ = ["Bilinear"]


class Bilinear(Weighted):
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
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.in1_features = as_int("Bilinear", "in1_features", in1_features, 1)
        self.in2_features = as_int("Bilinear", "in2_features", in2_features, 1)
        self.out_features = as_int("Bilinear", "out_features", out_features, 1)
        self.dtype = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
        self._wait("Bilinear", bias, key)
        self._make((in1_features, in2_features, out_features), (out_features,), in1_features)

    def forward(self, x1: ArrayLike, x2: ArrayLike) -> Tensor:
        return bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"
