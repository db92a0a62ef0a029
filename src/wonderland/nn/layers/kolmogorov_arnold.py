"""The Kolmogorov-Arnold layer: a trained function on every edge. Book, section 5.4 (on design variants)."""

from __future__ import annotations

import math

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.continuous import normal
from ..activations.bases import BasisLike, BSplineBasis, as_basis
from ..module.module import Module
from ..module.parameter import Parameter

__all__ = ["KANLayer"]


class KANLayer(Module):
    r"""\(y_i = \sum_j \phi_{ij}(x_j)\) with \(\phi_{ij} = \sum_k W_{jki}\,\phi_k\): (..., in) to (..., out). Book, 5.4.

    >>> import wonderland as wl
    >>> layer = wl.nn.KANLayer(3, 5, [wl.relu, wl.tanh])
    >>> layer(wl.ones((7, 3))).shape, layer.num_parameters()
    ((7, 5), 30)

    `bases` are fixed functions, by default B-splines on [-1, 1] (inputs outside of that give 0) together with SiLU, as
    in the original. `weight` is (in_features, n, out_features) and starts normal with variance 1 / (in_features n).
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bases: BasisLike | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.in_features = as_int("KANLayer", "in_features", in_features, 1)
        self.out_features = as_int("KANLayer", "out_features", out_features, 0)
        self.basis = _SplinesAndSiLU() if bases is None else as_basis("KANLayer", bases)
        n = self.basis.size
        shape = (self.in_features, n, self.out_features)
        self.weight = Parameter(normal(shape, 0.0, 1 / math.sqrt(self.in_features * n), key=key, dtype=dtype))

    def forward(self, x: ArrayLike) -> Tensor:
        x = as_real("KANLayer", x)
        if not x.ndim or x.shape[-1] != self.in_features:
            raise ShapeError(
                f"{self._describe()}: an input of shape {x.shape} does not have {self.in_features} features.",
                f"an input of shape (..., {self.in_features})",
            )
        inner = self.in_features * self.basis.size
        values = arrays.reshape(self.basis(x), (*x.shape[:-1], inner))  # (..., in, n)
        return arrays.matmul(values, arrays.reshape(self.weight, (inner, self.out_features)))

    def multiply_adds(self, args: tuple[Tensor, ...], output: Tensor) -> int | None:
        return output.size * self.in_features * self.basis.size

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, {self.basis!r}"


class _SplinesAndSiLU(BSplineBasis):
    """B-splines, and one function that does not end at the interval."""

    def __init__(self) -> None:
        super().__init__()
        self.size += 1

    def __call__(self, x: ArrayLike) -> Tensor:
        x = as_real("KANLayer", x)
        return arrays.concat([super().__call__(x), arrays.expand_dims(x * arrays.sigmoid(x), axis=-1)], axis=-1)

    def __repr__(self) -> str:
        return f"{super().__repr__()} and SiLU"
