"""Elementwise functions between linear layers. Book, section 5.4."""

from __future__ import annotations

import math
from typing import Any

from ... import array
from ...array import log_sigmoid, log_softmax, relu, sigmoid, softmax, softplus, tanh
from ...array.conversion import as_real
from ...errors import InputError, ShapeError
from ...primitives.broadcasting import normalize_axis
from ...tensor import Tensor

__all__ = [
    "elu",
    "gelu",
    "glu",
    "hardtanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "softsign",
    "tanh",
]

_SELU = 1.0507009873554805, 1.6732632423543772  # scale and alpha: mean 0 and variance 1 are a fixed point


def gelu(x: Any, approximate: str = "none") -> Tensor:
    r"""\(x\,\Phi(x)\) with the normal distribution function; "tanh" approximates it. Book, section 5.4.

    \(\frac x2\,(1 + \mathrm{erf}(x/\sqrt2)) \approx \frac x2\,(1 + \tanh(\sqrt{2/\pi}\,(x + 0.044715\,x^3)))\)

    >>> import wonderland as wl
    >>> wl.nn.functional.gelu(wl.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.15865526,  0.        ,  0.8413447 ])
    >>> wl.nn.functional.gelu(wl.tensor([-1.0, 0.0, 1.0]), approximate="tanh")
    tensor([-0.158808,  0.      ,  0.841192])
    """
    x = as_real("gelu", x)
    if approximate == "none":
        return 0.5 * x * (1.0 + array.erf(x * math.sqrt(0.5)))
    if approximate == "tanh":
        return 0.5 * x * (1.0 + array.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))
    raise InputError(f"gelu: approximate={approximate!r}.", '"none" or "tanh"')


def silu(x: Any) -> Tensor:
    r"""\(x\,\sigma(x)\), also called swish. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.functional.silu(wl.tensor([0.0, 100.0]))
    tensor([ 0., 100.])
    """
    x = as_real("silu", x)
    return x * array.sigmoid(x)


def mish(x: Any) -> Tensor:
    r"""\(x\tanh(\ln(1 + e^x))\).

    >>> import wonderland as wl
    >>> print(wl.nn.functional.mish(1.0))
    tensor(0.865098)
    """
    x = as_real("mish", x)
    return x * array.tanh(array.softplus(x))


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Tensor:
    r"""\(x\) where it is positive, else \(\alpha x\) with \(\alpha\) the negative slope. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.functional.leaky_relu(wl.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1,  2. ])
    """
    x = as_real("leaky_relu", x)
    return array.where(x > 0, x, negative_slope * x)


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    r"""\(x\) where it is positive, else \(\alpha(e^x - 1)\). Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.functional.elu(wl.tensor([-1000.0, 2.0]))
    tensor([-1.,  2.])
    """
    x = as_real("elu", x)
    # the exponential of large x would overflow, and its derivative with it
    return array.where(x > 0, x, alpha * array.expm1(array.minimum(x, 0.0)))


def selu(x: Any) -> Tensor:
    r"""\(\lambda\,\mathrm{elu}(x, \alpha)\) with constants that keep mean 0 and variance 1.

    >>> import wonderland as wl
    >>> wl.nn.functional.selu(wl.tensor([-1000.0, 1.0]))
    tensor([-1.7580993,  1.050701 ])
    """
    scale, alpha = _SELU
    return scale * elu(as_real("selu", x), alpha)


def softsign(x: Any) -> Tensor:
    r"""\(x / (1 + |x|)\).

    >>> import wonderland as wl
    >>> wl.nn.functional.softsign(wl.tensor([-1.0, 3.0]))
    tensor([-0.5 ,  0.75])
    """
    x = as_real("softsign", x)
    return x / (1.0 + array.abs(x))


def hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x limited to an interval.

    >>> import wonderland as wl
    >>> wl.nn.functional.hardtanh(wl.tensor([-2.0, 0.5, 2.0]))
    tensor([-1. ,  0.5,  1. ])
    """
    return array.clip(as_real("hardtanh", x), min_val, max_val)


def relu6(x: Any) -> Tensor:
    r"""\(\min(\max(x, 0), 6)\).

    >>> import wonderland as wl
    >>> wl.nn.functional.relu6(wl.tensor([-1.0, 3.0, 9.0]))
    tensor([0., 3., 6.])
    """
    return array.clip(as_real("relu6", x), 0.0, 6.0)


def glu(x: Any, axis: int = -1) -> Tensor:
    r"""The gated linear unit \(a \odot \sigma(b)\) of the two halves of x along an axis. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.functional.glu(wl.tensor([4.0, 0.0]))
    tensor([2.])
    """
    x = as_real("glu", x)
    place = normalize_axis("glu", axis, x.ndim)
    if x.shape[place] % 2:
        raise ShapeError(f"glu: an axis of size {x.shape[place]} in shape {x.shape} has no halves.", "an even size")
    value, gate = array.split(x, 2, axis=place)
    return value * array.sigmoid(gate)
