"""Piecewise linear and piecewise constant activation functions as modules. Book, section 5.4."""

from __future__ import annotations

from ... import arrays
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...random.streams import Source
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..functional.piecewise import GRADIENTS
from ..layers.dropout import own_stream
from .activations import Elementwise, Formula

__all__ = [
    "ReLU", "ReLU6", "LeakyReLU", "RReLU", "Hardtanh", "Hardsigmoid", "Hardswish", "Softshrink", "Hardshrink",
    "Threshold", "Step", "StochasticBinary",
]  # fmt: skip


class ReLU(Formula, function=arrays.relu):
    r"""\(\max(0, x)\); see `wl.relu`. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.ReLU()(wl.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """


class ReLU6(Formula, function=F.relu6):
    r"""\(\min(\max(x, 0), 6)\).

    >>> import wonderland as wl
    >>> wl.nn.ReLU6()(wl.tensor([-1.0, 9.0]))
    tensor([0., 6.])
    """


class LeakyReLU(Formula, function=F.leaky_relu):
    r"""\(x\) where it is positive, else \(\alpha x\). Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.LeakyReLU(0.1)(wl.tensor([-1.0, 2.0]))
    tensor([-0.1,  2. ])
    """

    def __init__(self, negative_slope: float = 0.01) -> None:
        self.negative_slope = negative_slope


class RReLU(Elementwise):
    r"""A leaky ReLU whose slope is drawn from \(U(l, u)\) for each number while training, else is \((l + u)/2\).

    >>> import wonderland as wl
    >>> wl.nn.RReLU(0.1, 0.3).eval()(wl.tensor([-1.0, 2.0]))
    tensor([-0.2,  2. ])

    With `key` (a key, a seed or a stream) the layer has a random stream of its own; else it draws from the global one.
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, key: Source = None) -> None:
        if not lower <= upper:
            raise InputError(f"RReLU: lower={lower} is above upper={upper}.", "lower <= upper")
        self.lower, self.upper = lower, upper
        self.stream = own_stream(key)

    def forward(self, x: ArrayLike) -> Tensor:
        return F.rrelu(x, self.lower, self.upper, self.training, key=self.stream)

    def extra_repr(self) -> str:
        return f"lower={self.lower:.4g}, upper={self.upper:.4g}"


class Hardtanh(Formula, function=F.hardtanh):
    """x limited to an interval.

    >>> import wonderland as wl
    >>> wl.nn.Hardtanh()(wl.tensor([-2.0, 0.5]))
    tensor([-1. ,  0.5])
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        self.min_val, self.max_val = min_val, max_val


class Hardsigmoid(Formula, function=F.hardsigmoid):
    r"""\(\mathrm{relu6}(x + 3)/6\).

    >>> import wonderland as wl
    >>> wl.nn.Hardsigmoid()(wl.tensor([-4.0, 0.0, 3.0]))
    tensor([0. , 0.5, 1. ])
    """


class Hardswish(Formula, function=F.hardswish):
    r"""\(x\,\mathrm{relu6}(x + 3)/6\).

    >>> import wonderland as wl
    >>> wl.nn.Hardswish()(wl.tensor([0.0, 3.0]))
    tensor([0., 3.])
    """


class Softshrink(Formula, function=F.softshrink):
    r"""x moved towards 0 by \(\lambda\), and 0 between \(-\lambda\) and \(\lambda\).

    >>> import wonderland as wl
    >>> wl.nn.Softshrink()(wl.tensor([-2.0, 0.25, 1.0]))
    tensor([-1.5,  0. ,  0.5])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        if not lambd >= 0:
            raise InputError(f"Softshrink: lambd={lambd}.", "a number that is not negative")
        self.lambd = lambd


class Hardshrink(Formula, function=F.hardshrink):
    r"""x where \(|x| > \lambda\), else 0.

    >>> import wonderland as wl
    >>> wl.nn.Hardshrink()(wl.tensor([-2.0, 0.25, 1.0]))
    tensor([-2.,  0.,  1.])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        if not lambd >= 0:
            raise InputError(f"Hardshrink: lambd={lambd}.", "a number that is not negative")
        self.lambd = lambd


class Threshold(Formula, function=F.threshold):
    """x where it is above a threshold, else a value.

    >>> import wonderland as wl
    >>> wl.nn.Threshold(1.0, -1.0)(wl.tensor([0.5, 2.0]))
    tensor([-1.,  2.])
    """

    def __init__(self, threshold: float, value: float) -> None:
        self.threshold, self.value = threshold, value


# --- zeros and ones


class Step(Formula, function=F.step):
    r"""The binary threshold \(1[x \ge 0]\), with derivative 0 or a straight-through one. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.Step()(wl.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 1., 1.])

    See `wl.nn.functional.step` for `gradient`.
    """

    def __init__(self, gradient: str = "none") -> None:
        self.gradient = _as_gradient("Step", gradient)


class StochasticBinary(Elementwise):
    r"""1 with probability \(\sigma(x)\), else 0: a neuron that draws its output, in training and afterwards.

    >>> import wonderland as wl
    >>> wl.unique(wl.nn.StochasticBinary(key=0)(wl.zeros(100)))
    tensor([0., 1.])

    See `wl.nn.functional.stochastic_binary` for `gradient`. With `key` (a key, a seed or a stream) the layer has a
    random stream of its own, which belongs to its state; else it draws from the global stream.
    """

    def __init__(self, gradient: str = "straight-through", key: Source = None) -> None:
        self.gradient = _as_gradient("StochasticBinary", gradient)
        self.stream = own_stream(key)

    def forward(self, x: ArrayLike) -> Tensor:
        return F.stochastic_binary(x, self.gradient, key=self.stream)

    def extra_repr(self) -> str:
        return f"gradient={self.gradient!r}"


def _as_gradient(name: str, gradient: str) -> str:
    if gradient not in GRADIENTS:
        raise InputError(f"{name}: gradient={gradient!r}.", " or ".join(map(repr, GRADIENTS)))
    return gradient
