"""Smooth activation functions as modules, and softmax with its relatives. Book, section 5.4."""

from __future__ import annotations

from collections.abc import Callable

from ... import arrays
from ...core.arguments import as_function, as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..module.applied import AppliedToOne
from ..module.module import Module

__all__ = [
    "Elementwise", "Activation", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid", "LogSigmoid", "Softplus", "Softsign", "ELU",
    "SELU", "CELU", "Tanhshrink", "PolyActivation", "Softmax", "Softmax2d", "Softmin", "LogSoftmax",
]  # fmt: skip


class Elementwise(Module):
    r"""The base of layers \(y_i = \phi(x_i)\) that treat every number alike; `wl.nn.diagnostics` looks for them.

    >>> import wonderland as wl
    >>> isinstance(wl.nn.ReLU(), wl.nn.Elementwise), isinstance(wl.nn.Softmax(), wl.nn.Elementwise)
    (True, False)
    """


class Formula(Elementwise, AppliedToOne):
    """The base of those that compute a function of `wl.nn.functional`, see `Applied`."""


class Activation(Elementwise):
    """Any function of a tensor as a layer, so that hooks and diagnostics see it. Book, section 5.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.Activation(lambda s: s * s)
    >>> layer(wl.tensor([-1.0, 3.0])), wl.nn.Activation(wl.tanh)
    (tensor([1., 9.]), Activation(tanh))
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self.function = as_function("nn.Activation", function)

    def forward(self, x: ArrayLike) -> Tensor:
        return self.function(x)

    def extra_repr(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))


class GELU(Formula, function=F.gelu):
    r"""\(x\,\Phi(x)\), or with `approximate="tanh"` nearly so; see `wl.nn.functional.gelu`. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.GELU(approximate="tanh")(wl.tensor([0.0, 100.0]))
    tensor([  0., 100.])
    """

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in ("none", "tanh"):
            raise InputError(f"GELU: approximate={approximate!r}.", '"none" or "tanh"')
        self.approximate = approximate


class SiLU(Formula, function=F.silu):
    r"""\(x\,\sigma(x)\), also called swish. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.SiLU()(wl.tensor([0.0, 100.0]))
    tensor([  0., 100.])
    """


class Mish(Formula, function=F.mish):
    r"""\(x\tanh(\ln(1 + e^x))\).

    >>> import wonderland as wl
    >>> wl.nn.Mish()(wl.tensor([0.0, 100.0]))
    tensor([  0., 100.])
    """


class Tanh(Formula, function=arrays.tanh):
    r"""\(\tanh x\). Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.Tanh()(wl.tensor([0.0, 100.0]))
    tensor([0., 1.])
    """


class Sigmoid(Formula, function=F.sigmoid):
    r"""\(\sigma(as) = 1/(1 + e^{-as})\) with a slope a, by default 1. Book, sections 4.3.1 and 5.4.

    >>> import wonderland as wl
    >>> wl.nn.Sigmoid()(wl.tensor([0.0, 100.0]))
    tensor([0.5, 1. ])
    """

    def __init__(self, slope: float = 1.0) -> None:
        self.slope = slope


class LogSigmoid(Formula, function=arrays.log_sigmoid):
    r"""\(\ln\sigma(x)\) without underflow.

    >>> import wonderland as wl
    >>> wl.nn.LogSigmoid()(wl.tensor([-1000.0]))
    tensor([-1000.])
    """


class Softplus(Formula, function=F.softplus):
    r"""\(\ln(1 + e^{\beta x})/\beta\). Book, E.5.10.

    >>> import wonderland as wl
    >>> wl.nn.Softplus()(wl.tensor([-100.0, 100.0]))
    tensor([3.8e-44, 1.0e+02])
    """

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta


class Softsign(Formula, function=F.softsign):
    r"""\(x / (1 + |x|)\).

    >>> import wonderland as wl
    >>> wl.nn.Softsign()(wl.tensor([-1.0, 3.0]))
    tensor([-0.5 ,  0.75])
    """


class ELU(Formula, function=F.elu):
    r"""\(x\) where it is positive, else \(\alpha(e^x - 1)\). Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.ELU()(wl.tensor([-1000.0, 2.0]))
    tensor([-1.,  2.])
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha


class SELU(Formula, function=F.selu):
    """A scaled ELU that keeps mean 0 and variance 1; see `wl.nn.functional.selu`.

    >>> import wonderland as wl
    >>> wl.nn.SELU()(wl.zeros(2))
    tensor([0., 0.])
    """


class CELU(Formula, function=F.celu):
    r"""\(x\) where it is positive, else \(\alpha(e^{x/\alpha} - 1)\); see `wl.nn.functional.celu`.

    >>> import wonderland as wl
    >>> wl.nn.CELU(2.0)(wl.tensor([-1000.0, 2.0]))
    tensor([-2.,  2.])
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha


class Tanhshrink(Formula, function=F.tanhshrink):
    r"""\(x - \tanh x\).

    >>> import wonderland as wl
    >>> wl.nn.Tanhshrink()(wl.tensor([0.0, 10.0]))
    tensor([0., 9.])
    """


class PolyActivation(Formula, function=F.polynomial):
    r"""\(s^p\), which grows from layer to layer until it overflows; see `wl.debug.nans`. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.PolyActivation(3)(wl.tensor([-1.0, 2.0]))
    tensor([-1.,  8.])
    """

    def __init__(self, p: int = 2) -> None:
        self.p = as_int("PolyActivation", "p", p, 0)


# --- of whole vectors


class Softmax(AppliedToOne, function=arrays.softmax):
    r"""\(e^{x_i/\tau} / \sum_j e^{x_j/\tau}\) along an axis. Book, section 4.2. Losses of logits need none before them.

    >>> import wonderland as wl
    >>> wl.nn.Softmax()(wl.zeros((1, 4)))
    tensor([[0.25, 0.25, 0.25, 0.25]])
    >>> wl.nn.Softmax(temperature=0.1)(wl.tensor([3.0, 0.0, 1.0])).round()
    tensor([1., 0., 0.])

    A temperature \(\tau\) above 1 evens the result out, one below 1 exaggerates the differences.
    """

    def __init__(self, axis: int = -1, temperature: float = 1.0) -> None:
        self.axis, self.temperature = axis, _as_temperature(type(self).__name__, temperature)


class Softmax2d(Module):
    r"""The softmax over the channels of every place of images (..., h, w, c).

    >>> import wonderland as wl
    >>> wl.nn.Softmax2d()(wl.zeros((1, 2, 2, 4)))[0, 0, 0]
    tensor([0.25, 0.25, 0.25, 0.25])
    """

    def forward(self, x: ArrayLike) -> Tensor:
        x = arrays.asarray(x)
        if x.ndim not in (3, 4):
            raise ShapeError(f"Softmax2d: an input of shape {x.shape}.", "images (h, w, c) or (b, h, w, c)")
        return arrays.softmax(x, -1)


class Softmin(Softmax, function=F.softmin):
    r"""\(e^{-x_i/\tau} / \sum_j e^{-x_j/\tau}\) along an axis.

    >>> import wonderland as wl
    >>> wl.nn.Softmin()(wl.tensor([0.0, 1000.0]))
    tensor([1., 0.])
    """


class LogSoftmax(Softmax):
    r"""\(x_i/\tau - \ln\sum_j e^{x_j/\tau}\) along an axis.

    >>> import wonderland as wl
    >>> wl.nn.LogSoftmax()(wl.tensor([0.0, 1000.0]))
    tensor([-1000.,     0.])
    """

    def forward(self, x: ArrayLike) -> Tensor:
        return arrays.log_softmax(x if self.temperature == 1.0 else arrays.asarray(x) / self.temperature, self.axis)


def _as_temperature(name: str, temperature: float) -> float:
    if not temperature > 0:
        raise InputError(f"{name}: temperature={temperature}.", "a temperature above 0")
    return temperature
