"""Activation functions as modules, for those who list their layers. Book, section 5.4."""

from __future__ import annotations

from typing import Any

from .. import array
from ..errors import InputError
from ..tensor import Tensor
from . import functional as F  # noqa: N812 - as everybody calls it
from .module import Module
from .parameter import Parameter


class ReLU(Module):
    r"""\(\max(0, x)\); see `wl.relu`. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.ReLU()(wl.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, x: Any) -> Tensor:
        return array.relu(x)


class ReLU6(Module):
    r"""\(\min(\max(x, 0), 6)\).

    >>> import wonderland as wl
    >>> wl.nn.ReLU6()(wl.tensor([-1.0, 9.0]))
    tensor([0., 6.])
    """

    def forward(self, x: Any) -> Tensor:
        return F.relu6(x)


class LeakyReLU(Module):
    r"""\(x\) where it is positive, else \(\alpha x\). Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.LeakyReLU(0.1)(wl.tensor([-1.0, 2.0]))
    tensor([-0.1,  2. ])
    """

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: Any) -> Tensor:
        return F.leaky_relu(x, self.negative_slope)


class PReLU(Module):
    r"""\(x\) where it is positive, else \(\alpha x\) with \(\alpha\) trained, one or one per channel. Book, 5.4.

    >>> import wonderland as wl
    >>> wl.nn.PReLU()(wl.tensor([-1.0, 2.0]))
    tensor([-0.25,  2.  ])
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = None) -> None:
        self.weight = Parameter(array.full((num_parameters,), init, dtype=dtype))

    def forward(self, x: Any) -> Tensor:
        return array.where(array.asarray(x) > 0, x, self.weight * x)


class ELU(Module):
    r"""\(x\) where it is positive, else \(\alpha(e^x - 1)\). Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.ELU()(wl.tensor([-1000.0, 2.0]))
    tensor([-1.,  2.])
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Any) -> Tensor:
        return F.elu(x, self.alpha)


class SELU(Module):
    """A scaled ELU that keeps mean 0 and variance 1; see `wl.nn.functional.selu`.

    >>> import wonderland as wl
    >>> wl.nn.SELU()(wl.zeros(2))
    tensor([0., 0.])
    """

    def forward(self, x: Any) -> Tensor:
        return F.selu(x)


class GELU(Module):
    r"""\(x\,\Phi(x)\), or with `approximate="tanh"` nearly so; see `wl.nn.functional.gelu`. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.GELU(approximate="tanh")(wl.tensor([0.0, 100.0]))
    tensor([  0., 100.])
    """

    def __init__(self, approximate: str = "none") -> None:
        if approximate not in ("none", "tanh"):
            raise InputError(f"GELU: approximate={approximate!r}.", '"none" or "tanh"')
        self.approximate = approximate

    def forward(self, x: Any) -> Tensor:
        return F.gelu(x, self.approximate)


class SiLU(Module):
    r"""\(x\,\sigma(x)\), also called swish. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.SiLU()(wl.tensor([0.0, 100.0]))
    tensor([  0., 100.])
    """

    def forward(self, x: Any) -> Tensor:
        return F.silu(x)


class Mish(Module):
    r"""\(x\tanh(\ln(1 + e^x))\).

    >>> import wonderland as wl
    >>> wl.nn.Mish()(wl.tensor([0.0, 100.0]))
    tensor([  0., 100.])
    """

    def forward(self, x: Any) -> Tensor:
        return F.mish(x)


class Tanh(Module):
    r"""\(\tanh x\). Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.Tanh()(wl.tensor([0.0, 100.0]))
    tensor([0., 1.])
    """

    def forward(self, x: Any) -> Tensor:
        return array.tanh(x)


class Sigmoid(Module):
    r"""\(\sigma(x) = 1/(1 + e^{-x})\). Book, section 4.3.1.

    >>> import wonderland as wl
    >>> wl.nn.Sigmoid()(wl.tensor([0.0, 100.0]))
    tensor([0.5, 1. ])
    """

    def forward(self, x: Any) -> Tensor:
        return array.sigmoid(x)


class Softplus(Module):
    r"""\(\ln(1 + e^x)\).

    >>> import wonderland as wl
    >>> wl.nn.Softplus()(wl.tensor([-100.0, 100.0]))
    tensor([3.8e-44, 1.0e+02])
    """

    def forward(self, x: Any) -> Tensor:
        return array.softplus(x)


class Softsign(Module):
    r"""\(x / (1 + |x|)\).

    >>> import wonderland as wl
    >>> wl.nn.Softsign()(wl.tensor([-1.0, 3.0]))
    tensor([-0.5 ,  0.75])
    """

    def forward(self, x: Any) -> Tensor:
        return F.softsign(x)


class Hardtanh(Module):
    """x limited to an interval.

    >>> import wonderland as wl
    >>> wl.nn.Hardtanh()(wl.tensor([-2.0, 0.5]))
    tensor([-1. ,  0.5])
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        self.min_val, self.max_val = min_val, max_val

    def forward(self, x: Any) -> Tensor:
        return F.hardtanh(x, self.min_val, self.max_val)


class Softmax(Module):
    r"""\(e^{x_i} / \sum_j e^{x_j}\) along an axis. Book, section 4.2. Losses of logits need none before them.

    >>> import wonderland as wl
    >>> wl.nn.Softmax()(wl.zeros((1, 4)))
    tensor([[0.25, 0.25, 0.25, 0.25]])
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        return array.softmax(x, self.axis)


class LogSoftmax(Module):
    r"""\(x_i - \ln\sum_j e^{x_j}\) along an axis.

    >>> import wonderland as wl
    >>> wl.nn.LogSoftmax()(wl.tensor([0.0, 1000.0]))
    tensor([-1000.,     0.])
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        return array.log_softmax(x, self.axis)


class LogSigmoid(Module):
    r"""\(\ln\sigma(x)\) without underflow.

    >>> import wonderland as wl
    >>> wl.nn.LogSigmoid()(wl.tensor([-1000.0]))
    tensor([-1000.])
    """

    def forward(self, x: Any) -> Tensor:
        return array.log_sigmoid(x)


class GLU(Module):
    r"""The gated linear unit \(a \odot \sigma(b)\) of two halves. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.GLU()(wl.tensor([4.0, 0.0]))
    tensor([2.])
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        return F.glu(x, self.axis)
