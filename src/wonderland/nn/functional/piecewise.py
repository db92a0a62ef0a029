"""Piecewise linear and piecewise constant functions between linear layers. Book, section 5.4."""

from __future__ import annotations

from ... import arrays
from ...arrays import relu
from ...arrays.conversion import as_real
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, KeyLike
from ...random.continuous import uniform
from ...random.discrete import bernoulli

__all__ = [
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "heaviside", "leaky_relu", "prelu", "relu", "relu6", "rrelu",
    "softshrink", "squared_relu", "step", "stochastic_binary", "threshold",
]  # fmt: skip

GRADIENTS = ("none", "straight-through")


def leaky_relu(x: ArrayLike, negative_slope: float = 0.01) -> Tensor:
    r"""\(x\) where it is positive, else \(\alpha x\) with \(\alpha\) the negative slope. Book, E.5.9.

    >>> import wonderland as wl
    >>> wl.nn.functional.leaky_relu(wl.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1,  2. ])
    """
    x = as_real("leaky_relu", x)
    return arrays.where(x > 0, x, negative_slope * x)


def prelu(x: ArrayLike, weight: Tensor) -> Tensor:
    r"""\(x\) where it is positive, else \(\alpha x\) with a tensor \(\alpha\), one slope or one per unit.

    >>> import wonderland as wl
    >>> wl.nn.functional.prelu(wl.tensor([[-1.0, -2.0]]), wl.tensor([0.5, 0.1]))
    tensor([[-0.5, -0.2]])
    """
    x = as_real("prelu", x)
    return arrays.where(x > 0, x, weight * x)


def rrelu(
    x: ArrayLike, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, *, key: KeyLike = None
) -> Tensor:
    r"""A leaky ReLU whose slope is drawn from \(U(l, u)\) for each number while training, else is \((l + u)/2\).

    >>> import wonderland as wl
    >>> wl.nn.functional.rrelu(wl.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2,  2. ])
    """
    x = as_real("rrelu", x)
    if not lower <= upper:
        raise InputError(f"rrelu: lower={lower} is above upper={upper}.", "lower <= upper")
    slope: Tensor | float = (lower + upper) / 2
    if training and lower < upper:
        slope = uniform(x.shape, lower, upper, key=key, dtype=x.dtype)
    return arrays.where(x > 0, x, slope * x)


def hardtanh(x: ArrayLike, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x limited to an interval.

    >>> import wonderland as wl
    >>> wl.nn.functional.hardtanh(wl.tensor([-2.0, 0.5, 2.0]))
    tensor([-1. ,  0.5,  1. ])
    """
    return _limited(as_real("hardtanh", x), min_val, max_val)


def relu6(x: ArrayLike) -> Tensor:
    r"""\(\min(\max(x, 0), 6)\).

    >>> import wonderland as wl
    >>> wl.nn.functional.relu6(wl.tensor([-1.0, 3.0, 9.0]))
    tensor([0., 3., 6.])
    """
    return _limited(as_real("relu6", x), 0.0, 6.0)


def squared_relu(x: ArrayLike) -> Tensor:
    r"""\(\max(0, x)^2\), with the derivative \(2 \max(0, x)\), which has no jump at 0. Book, E.13.26.

    >>> import wonderland as wl
    >>> wl.nn.functional.squared_relu(wl.tensor([-1.0, 0.5, 3.0]))
    tensor([0.  , 0.25, 9.  ])
    """
    above = arrays.relu(as_real("squared_relu", x))
    return above * above


def hardsigmoid(x: ArrayLike) -> Tensor:
    r"""\(\mathrm{relu6}(x + 3)/6\), a sigmoid of straight lines.

    >>> import wonderland as wl
    >>> wl.nn.functional.hardsigmoid(wl.tensor([-4.0, 0.0, 3.0]))
    tensor([0. , 0.5, 1. ])
    """
    return _limited(as_real("hardsigmoid", x) + 3.0, 0.0, 6.0) / 6.0


def hardswish(x: ArrayLike) -> Tensor:
    r"""\(x\,\mathrm{hardsigmoid}(x)\).

    >>> import wonderland as wl
    >>> wl.nn.functional.hardswish(wl.tensor([-4.0, 0.0, 3.0]))
    tensor([-0.,  0.,  3.])
    """
    x = as_real("hardswish", x)
    return x * hardsigmoid(x)


def _limited(x: Tensor, low: float, high: float) -> Tensor:
    """x limited to an interval, with the derivative 0 at its ends, as that of ReLU at 0; `clip` has 1 there."""
    return arrays.where(x <= low, low, arrays.where(x >= high, high, x))


def softshrink(x: ArrayLike, lambd: float = 0.5) -> Tensor:
    r"""x moved towards 0 by \(\lambda\), and 0 between \(-\lambda\) and \(\lambda\).

    >>> import wonderland as wl
    >>> wl.nn.functional.softshrink(wl.tensor([-2.0, 0.25, 1.0]))
    tensor([-1.5,  0. ,  0.5])
    """
    x = as_real("softshrink", x)
    if not lambd >= 0:
        raise InputError(f"softshrink: lambd={lambd}.", "a number that is not negative")
    return arrays.where(x > lambd, x - lambd, arrays.where(x < -lambd, x + lambd, 0.0 * x))


def hardshrink(x: ArrayLike, lambd: float = 0.5) -> Tensor:
    r"""x where \(|x| > \lambda\), else 0.

    >>> import wonderland as wl
    >>> wl.nn.functional.hardshrink(wl.tensor([-2.0, 0.25, 1.0]))
    tensor([-2.,  0.,  1.])
    """
    x = as_real("hardshrink", x)
    return arrays.where(arrays.abs(x) <= lambd, 0.0, x)  # so that NaN stays


def threshold(x: ArrayLike, threshold: float, value: float) -> Tensor:
    """x where it is above a threshold, else a value.

    >>> import wonderland as wl
    >>> wl.nn.functional.threshold(wl.tensor([0.5, 2.0]), 1.0, -1.0)
    tensor([-1.,  2.])
    """
    x = as_real("threshold", x)
    return arrays.where(x <= threshold, value, x)  # so that NaN stays


# --- zeros and ones


def step(x: ArrayLike, gradient: str = "none") -> Tensor:
    r"""The binary threshold \(1[x \ge 0]\): 1 at 0. Book, section 5.4.

    >>> import wonderland as wl
    >>> wl.nn.functional.step(wl.tensor([-1e-12, 0.0, 2.0]))
    tensor([0., 1., 1.])

    Its derivative is 0, so nothing before it learns. With `gradient="straight-through"` the derivative is taken
    as that of x, which is wrong but points the right way:

    >>> print(wl.grad(wl.nn.functional.step)(3.0), wl.grad(lambda x: wl.nn.functional.step(x, "straight-through"))(3.0))
    tensor(0.) tensor(1.)
    """
    x = as_real("step", x)
    return _with_gradient("step", arrays.where(x < 0, 0.0, arrays.where(x >= 0, 1.0, x)), x, gradient)  # NaN stays


heaviside = step


def stochastic_binary(x: ArrayLike, gradient: str = "straight-through", *, key: KeyLike = None) -> Tensor:
    r"""1 with probability \(\sigma(x)\), else 0.

    >>> import wonderland as wl
    >>> x = wl.nn.functional.stochastic_binary(wl.zeros(1000), key=wl.random.key(0))
    >>> wl.unique(x), 0.4 < float(x.mean()) < 0.6
    (tensor([0., 1.]), True)

    A draw has no derivative. With `gradient="straight-through"` it gets that of its mean, \(\sigma'(x)\); with "none"
    it is a constant. `key` is a key or a stream; without one the global stream gives it.
    """
    x = as_real("stochastic_binary", x)
    p = arrays.sigmoid(x)
    drawn = bernoulli(x.shape, arrays.stop_gradient(p), key=key)
    return _with_gradient("stochastic_binary", arrays.astype(drawn, x.dtype), p, gradient)


def _with_gradient(name: str, value: Tensor, source: Tensor, gradient: str) -> Tensor:
    """The value, without a derivative or with that of another tensor."""
    if gradient not in GRADIENTS:
        raise InputError(f"{name}: gradient={gradient!r}.", " or ".join(map(repr, GRADIENTS)))
    value = arrays.stop_gradient(value)
    # source - source is 0 exactly, so the value stays what it is
    return value if gradient == "none" else value + (source - arrays.stop_gradient(source))
