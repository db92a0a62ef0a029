"""Layers in which one projection gates another, and maxout. Book, section 5.4 (on design variants)."""

from __future__ import annotations

from collections.abc import Callable

from ... import arrays
from ...core.arguments import as_function, as_int
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..module.applied import AppliedToOne
from ..module.module import Module
from .linear import Linear

__all__ = ["GLU", "Gated", "GatedLinear", "SwiGLU", "GEGLU", "ReGLU", "Maxout"]


class GLU(AppliedToOne, function=F.glu):
    r"""The gated linear unit \(a \odot \sigma(b)\) of two halves. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.GLU()(wl.tensor([4.0, 0.0]))
    tensor([2.])

    The layer of the book, with its two matrices, is `GatedLinear`.
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis


class Gated(Module):
    r"""\(\phi_1(x) \odot \phi_2(x)\): one function of the input decides how much of another passes. Book, E.11.11.

    >>> import wonderland as wl
    >>> wl.nn.Gated(wl.sigmoid, wl.nn.Identity())(wl.tensor([0.0, 100.0]))
    tensor([  0., 100.])

    The functions, modules among them, give equal shapes; nothing is broadcast.
    """

    def __init__(self, phi1: Callable[..., Tensor], phi2: Callable[..., Tensor]) -> None:
        self.phi1 = as_function("Gated", phi1)
        self.phi2 = as_function("Gated", phi2)

    def forward(self, x: ArrayLike) -> Tensor:
        first, second = self.phi1(x), self.phi2(x)
        if first.shape != second.shape:
            raise ShapeError(
                f"Gated: phi1 gives {first.shape}, phi2 gives {second.shape}.", "functions of equal shapes"
            )
        return first * second


class GatedLinear(Module):
    r"""\(\sigma(x W_1) \odot x W_2\): (..., in_features) to (..., out_features), the book's GLU layer. Book, E.5.14.

    >>> import wonderland as wl
    >>> layer = wl.nn.GatedLinear(3, 5)
    >>> layer(wl.ones((2, 3))).shape, layer.num_parameters()
    ((2, 5), 30)

    `gate` holds \(W_1\) and `value` \(W_2\), without biases unless asked for. `activation` replaces the sigmoid.
    """

    activation: Callable[[Tensor], Tensor] = staticmethod(arrays.sigmoid)

    def __init__(
        self,
        in_features: int | None,
        out_features: int,
        bias: bool = False,
        activation: Callable[[Tensor], Tensor] | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        keys = split(take_key(type(self).__name__, key), 2)
        self.gate = Linear(in_features, out_features, bias, dtype=dtype, key=keys[0])
        self.value = Linear(in_features, out_features, bias, dtype=dtype, key=keys[1])
        if activation is not None:
            self.activation = activation

    def forward(self, x: ArrayLike) -> Tensor:
        return self.activation(self.gate(x)) * self.value(x)


class SwiGLU(GatedLinear):
    r"""\(\mathrm{silu}(x W_1) \odot x W_2\); see `GatedLinear`. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.SwiGLU(3, 5)(wl.ones((2, 3))).shape
    (2, 5)
    """

    activation = staticmethod(F.silu)


class GEGLU(GatedLinear):
    r"""\(\mathrm{gelu}(x W_1) \odot x W_2\); see `GatedLinear`.

    >>> import wonderland as wl
    >>> wl.nn.GEGLU(3, 5)(wl.ones((2, 3))).shape
    (2, 5)
    """

    activation = staticmethod(F.gelu)


class ReGLU(GatedLinear):
    r"""\(\max(0, x W_1) \odot x W_2\); see `GatedLinear`.

    >>> import wonderland as wl
    >>> wl.nn.ReGLU(3, 5)(wl.ones((2, 3))).shape
    (2, 5)
    """

    activation = staticmethod(arrays.relu)


class Maxout(Module):
    r"""Each unit is the largest of k projections, \(y_i = \max_{j \le k} (x W_j + b_j)_i\). Book, section 5.4.

    >>> import wonderland as wl
    >>> layer = wl.nn.Maxout(3, 5, k=2)
    >>> layer(wl.ones((7, 3))).shape, layer.num_parameters()
    ((7, 5), 40)

    A convex, piecewise linear function of x. `linear` makes all projections; those of unit i are its columns i k to
    i k + k - 1.
    """

    def __init__(
        self,
        in_features: int | None,
        out_features: int,
        k: int = 2,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.k = as_int("Maxout", "k", k, 1)
        self.out_features = as_int("Maxout", "out_features", out_features, 0)
        self.linear = Linear(in_features, self.out_features * self.k, bias, dtype=dtype, key=key)

    def forward(self, x: ArrayLike) -> Tensor:
        y = self.linear(x)
        return arrays.max(arrays.reshape(y, (*y.shape[:-1], self.out_features, self.k)), axis=-1)

    def extra_repr(self) -> str:
        return f"k={self.k}"
