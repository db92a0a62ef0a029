"""Smooth elementwise functions between linear layers, and softmax with its relatives. Book, section 5.4."""

from __future__ import annotations

import math

from ... import arrays
from ...arrays import log_sigmoid, log_softmax, softmax, tanh
from ...arrays.conversion import as_real, convert
from ...core.arguments import as_int
from ...core.dtypes import float32, promote_types
from ...core.errors import InputError
from ...core.fused import MANY, fused
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, Axes

__all__ = [
    "celu", "elu", "gelu", "log_sigmoid", "log_softmax", "mish", "polynomial", "selu", "sigmoid", "silu", "softmax",
    "softmin", "softplus", "softsign", "swish", "tanh", "tanhshrink",
]  # fmt: skip

_SELU = 1.0507009873554805, 1.6732632423543772  # scale and alpha: mean 0 and variance 1 are a fixed point


def gelu(x: ArrayLike, approximate: str = "none") -> Tensor:
    r"""\(x\,\Phi(x)\) with the normal distribution function; "tanh" approximates it. Book, section 5.4.

    \(\frac x2\,(1 + \mathrm{erf}(x/\sqrt2)) \approx \frac x2\,(1 + \tanh(\sqrt{2/\pi}\,(x + 0.044715\,x^3)))\)

    >>> import wonderland as wl
    >>> wl.nn.functional.gelu(wl.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.15865526,  0.        ,  0.8413447 ])
    >>> wl.nn.functional.gelu(wl.tensor([-1.0, 0.0, 1.0]), approximate="tanh")
    tensor([-0.158808,  0.      ,  0.841192])
    """
    x = as_real("gelu", x)
    if approximate not in ("none", "tanh"):
        raise InputError(f"gelu: approximate={approximate!r}.", '"none" or "tanh"')
    return _gelu(x, approximate=approximate)


@fused(single=MANY)
def _gelu(x: Tensor, *, approximate: str) -> Tensor:
    # half precision is computed in float32: where the share is small, its digits would be lost
    wide = convert(x, promote_types(x.dtype, float32))
    if approximate == "none":
        share = arrays.erf(wide * math.sqrt(0.5))
    else:
        share = arrays.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * (wide * wide * wide)))
    return convert(0.5 * wide * (1.0 + share), x.dtype)


def silu(x: ArrayLike) -> Tensor:
    r"""\(x\,\sigma(x)\), also called swish. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.functional.silu(wl.tensor([0.0, 100.0]))
    tensor([ 0., 100.])
    """
    return _silu(as_real("silu", x))


@fused(single=MANY)
def _silu(x: Tensor) -> Tensor:
    return x * arrays.sigmoid(x)


def mish(x: ArrayLike) -> Tensor:
    r"""\(x\tanh(\ln(1 + e^x))\).

    >>> import wonderland as wl
    >>> print(wl.nn.functional.mish(1.0))
    tensor(0.865098)
    """
    return _mish(as_real("mish", x))


@fused(single=MANY)
def _mish(x: Tensor) -> Tensor:
    return x * arrays.tanh(arrays.softplus(x))


def elu(x: ArrayLike, alpha: float = 1.0) -> Tensor:
    r"""\(x\) where it is positive, else \(\alpha(e^x - 1)\). Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.functional.elu(wl.tensor([-1000.0, 2.0]))
    tensor([-1.,  2.])
    """
    x = as_real("elu", x)
    return arrays.where(x > 0, x, alpha * arrays.expm1(_negative_part(x)))


def _negative_part(x: Tensor) -> Tensor:
    """x or 0, with slope 1 at 0: the exponential of large x would overflow, and its derivative with it."""
    return arrays.where(x > 0, 0.0, x)


def selu(x: ArrayLike) -> Tensor:
    r"""\(\lambda\,\mathrm{elu}(x, \alpha)\) with constants that keep mean 0 and variance 1.

    >>> import wonderland as wl
    >>> wl.nn.functional.selu(wl.tensor([-1000.0, 1.0]))
    tensor([-1.7580993,  1.050701 ])
    """
    scale, alpha = _SELU
    return scale * elu(as_real("selu", x), alpha)


def softsign(x: ArrayLike) -> Tensor:
    r"""\(x / (1 + |x|)\).

    >>> import wonderland as wl
    >>> wl.nn.functional.softsign(wl.tensor([-1.0, 3.0]))
    tensor([-0.5 ,  0.75])
    """
    x = as_real("softsign", x)
    return x / (1.0 + arrays.abs(x))


def sigmoid(x: ArrayLike, slope: float = 1.0) -> Tensor:
    r"""\(\sigma(a s) = 1/(1 + e^{-as})\); with a growing slope a it approaches a step. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.functional.sigmoid(wl.tensor([-1.0, 0.0, 1.0]), slope=100.0)
    tensor([3.8e-44, 5.0e-01, 1.0e+00])

    At 0 it is 1/2 for every slope, where the step of `wl.nn.functional.step` is 1.
    """
    x = as_real("sigmoid", x)
    return arrays.sigmoid(x if slope == 1.0 else slope * x)


def softplus(x: ArrayLike, beta: float = 1.0) -> Tensor:
    r"""\(\ln(1 + e^{\beta x})/\beta\), a smooth ReLU that is positive everywhere. Book, E.5.10.

    >>> import wonderland as wl
    >>> wl.nn.functional.softplus(wl.tensor([-1.0, 0.0, 1000.0]))
    tensor([3.132617e-01, 6.931472e-01, 1.000000e+03])
    """
    x = as_real("softplus", x)
    if not beta > 0:
        raise InputError(f"softplus: beta={beta}.", "a number above 0")
    return arrays.softplus(x) if beta == 1.0 else arrays.softplus(beta * x) / beta


def celu(x: ArrayLike, alpha: float = 1.0) -> Tensor:
    r"""\(x\) where it is positive, else \(\alpha(e^{x/\alpha} - 1)\): an ELU with slope 1 at 0 for every \(\alpha\).

    >>> import wonderland as wl
    >>> wl.nn.functional.celu(wl.tensor([-1000.0, 2.0]), 2.0)
    tensor([-2.,  2.])
    """
    x = as_real("celu", x)
    if alpha == 0:
        raise InputError("celu: alpha=0 divides by zero.", "another alpha, or wl.relu, its limit")
    return arrays.where(x > 0, x, alpha * arrays.expm1(_negative_part(x) / alpha))


def swish(x: ArrayLike, beta: float = 1.0) -> Tensor:
    r"""\(x\,\sigma(\beta x)\): SiLU for \(\beta = 1\), ReLU for \(\beta \to \infty\). Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.functional.swish(wl.tensor([-1.0, 2.0]), 1000.0)
    tensor([-0.,  2.])
    """
    x = as_real("swish", x)
    return x * arrays.sigmoid(beta * x)


def tanhshrink(x: ArrayLike) -> Tensor:
    r"""\(x - \tanh x\).

    >>> import wonderland as wl
    >>> wl.nn.functional.tanhshrink(wl.tensor([0.0, 10.0]))
    tensor([0., 9.])
    """
    x = as_real("tanhshrink", x)
    return x - arrays.tanh(x)


def polynomial(x: ArrayLike, p: int = 2) -> Tensor:
    r"""\(s^p\): values and slopes grow from layer to layer until they overflow. Book, section 5.4.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.polynomial(3.0, 3), wl.nn.functional.polynomial(1e3, 200))
    tensor(27.) tensor(inf)
    """
    return arrays.pow(as_real("polynomial", x), as_int("polynomial", "p", p, 0))


def softmin(x: ArrayLike, axis: Axes = -1, *, where: ArrayLike | None = None, temperature: float = 1.0) -> Tensor:
    r"""\(e^{-x_i/\tau} / \sum_j e^{-x_j/\tau}\) along an axis: the smallest entry gets the most.

    >>> import wonderland as wl
    >>> wl.nn.functional.softmin(wl.tensor([0.0, 1000.0]))
    tensor([1., 0.])
    """
    return arrays.softmax(-as_real("softmin", x), axis, where=where, temperature=temperature)
