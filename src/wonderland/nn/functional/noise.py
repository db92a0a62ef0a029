"""Numbers that are left out at random, or disturbed. Book, section 9.3.1.

p is always the probability to *drop*. `key` is a key or a stream; without one the global stream gives it.
"""

from __future__ import annotations

from collections.abc import Callable

from ... import arrays
from ...arrays.conversion import as_real, as_result
from ...core.arguments import as_number, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Shape, Tensor
from ...core.typing import ArrayLike, KeyLike, ShapeLike
from ...random.continuous import normal
from ...random.discrete import bernoulli, randint
from ...random.keys import split
from ...random.streams import take_key
from .windows import SPATIAL, as_sizes

__all__ = [
    "alpha_dropout", "cutout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
    "gaussian_dropout", "gaussian_noise", "stochastic_depth",
]  # fmt: skip

# What SELU tends to for large negative numbers: -scale * alpha.
_SATURATED = -1.7580993408473766


def dropout(
    x: ArrayLike, p: float = 0.5, training: bool = True, *, inverted: bool = True, key: KeyLike = None
) -> Tensor:
    r"""\(x \odot b/(1-p)\) with \(b \sim \mathrm{Bernoulli}(1-p)\): each number is 0 with probability p.

    >>> import wonderland as wl
    >>> x = wl.nn.functional.dropout(wl.ones(1000), 0.5, key=wl.random.key(0))
    >>> wl.unique(x), 0.9 < float(x.mean()) < 1.1
    (tensor([0., 2.]), True)

    The mean stays x, and the variance is \(x^2\,p/(1-p)\). Without `training` it is x itself.

    With `inverted=False`, training gives \(x \odot b\) without the factor, and inference its mean \((1-p)\,x\) instead.
    The book's p is the probability to *keep*, 1 - p here. Book, D.9.1.
    """
    return _dropped("dropout", x, p, training, inverted, key, lambda shape: shape)


def dropout1d(
    x: ArrayLike, p: float = 0.5, training: bool = True, *, inverted: bool = True, key: KeyLike = None
) -> Tensor:
    """Dropout of whole channels of sequences (..., length, channels); see `dropout`. Book, section 9.3.1.

    >>> import wonderland as wl
    >>> y = wl.nn.functional.dropout1d(wl.ones((2, 5, 4)), 0.5)
    >>> bool((y == y[:, :1]).all())
    True
    """
    return _channels_dropped("dropout1d", 1, x, p, training, inverted, key)


def dropout2d(
    x: ArrayLike, p: float = 0.5, training: bool = True, *, inverted: bool = True, key: KeyLike = None
) -> Tensor:
    """Dropout of whole channels of images (..., height, width, channels); see `dropout`. Book, section 9.3.1.

    >>> import wonderland as wl
    >>> y = wl.nn.functional.dropout2d(wl.ones((2, 5, 5, 4)), 0.5)
    >>> bool((y == y[:, :1, :1]).all())
    True
    """
    return _channels_dropped("dropout2d", 2, x, p, training, inverted, key)


def dropout3d(
    x: ArrayLike, p: float = 0.5, training: bool = True, *, inverted: bool = True, key: KeyLike = None
) -> Tensor:
    """Dropout of whole channels of volumes (..., depth, height, width, channels); see `dropout`. Book, section 9.3.1.

    >>> import wonderland as wl
    >>> wl.nn.functional.dropout3d(wl.ones((2, 3, 3, 3, 4)), 0.5).shape
    (2, 3, 3, 3, 4)
    """
    return _channels_dropped("dropout3d", 3, x, p, training, inverted, key)


def stochastic_depth(
    x: ArrayLike,
    p: float = 0.5,
    mode: str = "row",
    training: bool = True,
    *,
    inverted: bool = True,
    key: KeyLike = None,
) -> Tensor:
    """Dropout of whole examples (`mode="row"`, the first axis counts them) or of everything at once (`"batch"`).

    >>> import wonderland as wl
    >>> y = wl.nn.functional.stochastic_depth(wl.ones((6, 3)), 0.5)
    >>> bool((y == y[:, :1]).all())
    True

    On the path of a residual connection it leaves the block out: the network has a random depth while it trains.
    """
    if mode not in ("row", "batch"):
        raise InputError(f"stochastic_depth: mode={shown(mode)}.", "'row' or 'batch'")
    whole = (lambda shape: (1,) * len(shape)) if mode == "batch" else (lambda shape: shape[:1] + (1,) * len(shape[1:]))
    return _dropped("stochastic_depth", x, p, training, inverted, key, whole)


def alpha_dropout(x: ArrayLike, p: float = 0.5, training: bool = True, *, key: KeyLike = None) -> Tensor:
    r"""\(a\,(x \odot b + \alpha'(1-b)) + c\): keeps mean 0 and variance 1, as the SELU activation makes them.

    >>> import wonderland as wl
    >>> y = wl.nn.functional.alpha_dropout(wl.random.normal((10_000,), key=wl.random.key(0)), 0.3)
    >>> print(round(abs(float(y.mean())), 1), round(float(y.std()), 1))
    0.0 1.0

    Dropped numbers become \(\alpha' = -1.7581\), what SELU tends to for large negative numbers;
    \(a = ((1-p)(1 + p\,\alpha'^2))^{-1/2}\) and \(c = -a\,\alpha' p\). Book, section 9.3.1.
    """
    return _saturated("alpha_dropout", x, p, training, key, lambda shape: shape)


def feature_alpha_dropout(x: ArrayLike, p: float = 0.5, training: bool = True, *, key: KeyLike = None) -> Tensor:
    """`alpha_dropout` of whole channels of (batch, ..., channels). Book, section 9.3.1.

    >>> import wonderland as wl
    >>> wl.nn.functional.feature_alpha_dropout(wl.ones((2, 5, 5, 4)), 0.5).shape
    (2, 5, 5, 4)
    """
    x = as_real("feature_alpha_dropout", x)
    if x.ndim < 2:
        raise ShapeError(f"feature_alpha_dropout: an input of shape {x.shape}.", "shape (batch, ..., channels)")
    return _saturated(
        "feature_alpha_dropout", x, p, training, key, lambda shape: (shape[0], *(1,) * (len(shape) - 2), shape[-1])
    )


def gaussian_dropout(x: ArrayLike, p: float = 0.5, training: bool = True, *, key: KeyLike = None) -> Tensor:
    r"""\(x \odot \epsilon\) with \(\epsilon \sim N(1, p/(1-p))\): mean and variance of dropout, without zeros.

    >>> import wonderland as wl
    >>> y = wl.nn.functional.gaussian_dropout(wl.ones(10_000), 0.5, key=wl.random.key(0))
    >>> print(round(float(y.mean()), 1), round(float(y.std()), 1))
    1.0 1.0
    """
    x = as_real("gaussian_dropout", x)
    p = check_probability("gaussian_dropout", p)
    if p == 1.0:
        raise InputError("gaussian_dropout: p=1 has no finite variance.", "a probability below 1")
    if not training or p == 0.0:
        return as_result(x)
    return x * normal(x.shape, 1.0, (p / (1.0 - p)) ** 0.5, key=key, dtype=x.dtype)


def gaussian_noise(x: ArrayLike, std: float = 1.0, training: bool = True, *, key: KeyLike = None) -> Tensor:
    r"""\(x + \epsilon\) with \(\epsilon \sim N(0, \mathrm{std}^2)\) while training. Book, section 9.3.1.

    >>> import wonderland as wl
    >>> print(round(wl.nn.functional.gaussian_noise(wl.zeros(10_000), 0.1, key=wl.random.key(0)).std().item(), 2))
    0.1
    """
    x = as_real("gaussian_noise", x)
    std = check_std("gaussian_noise", std)
    return x + normal(x.shape, 0.0, std, key=key, dtype=x.dtype) if training and std else as_result(x)


def cutout(
    x: ArrayLike,
    size: ShapeLike,
    training: bool = True,
    *,
    per_channel: bool = False,
    value: float = 0.0,
    key: KeyLike = None,
) -> Tensor:
    """Images (..., height, width, channels) with a patch of `size` (one number or two) set to `value`.

    >>> import wonderland as wl
    >>> y = wl.nn.functional.cutout(wl.ones((99, 99, 1)), 3, key=wl.random.key(0))
    >>> print((y == 0).sum())
    tensor(9)

    Every image has a patch around a pixel that is drawn uniformly, cut off at the border; with `per_channel`, every
    channel has its own. Book, section 9.3.1.
    """
    x = as_real("cutout", x)
    sizes = as_sizes("cutout", "size", size, 2)
    if x.ndim < 3:
        raise ShapeError(f"cutout: an input of shape {x.shape}.", "an input of shape (..., height, width, channels)")
    if not training or 0 in x.shape:
        return as_result(x)
    each = (*x.shape[:-3], 1, 1, x.shape[-1] if per_channel else 1)
    inside: Tensor | bool = True
    for axis, width, own in zip((-3, -2), sizes, split(take_key("cutout", key), 2), strict=True):
        n = x.shape[axis]
        first = randint(each, n, key=own) - width // 2
        places = arrays.reshape(arrays.arange(n), (n, 1, 1) if axis == -3 else (n, 1))
        inside = inside & (places >= first) & (places < first + width)
    return arrays.where(inside, value, x)


# --- the parts


def check_probability(name: str, p: float) -> float:
    """A probability, or an error.

    >>> check_probability("dropout", 0.5)
    0.5
    """
    if isinstance(p, Tensor) or not 0.0 <= as_number(name, "p", p) <= 1.0:
        raise InputError(f"{name}: p={shown(p)} is not a probability.", "a number from 0 to 1")
    return float(p)


def check_std(name: str, std: float) -> float:
    """A standard deviation, or an error.

    >>> check_std("gaussian_noise", 2)
    2.0
    """
    if not 0.0 <= as_number(name, "std", std) < float("inf"):
        raise InputError(f"{name}: std={shown(std)} is not a standard deviation.", "a finite number, 0 or more")
    return float(std)


def _dropped(
    name: str,
    x: ArrayLike,
    p: float,
    training: bool,
    inverted: bool,
    key: KeyLike,
    mask_shape: Callable[[Shape], Shape],
) -> Tensor:
    """x with a mask of the shape that `mask_shape` makes of its own; axes of 1 are dropped as a whole."""
    x = as_real(name, x)
    keep = 1.0 - check_probability(name, p)
    if keep == 1.0:
        return as_result(x)
    if not training:
        return as_result(x) if inverted else x * keep
    if keep == 0.0:
        return arrays.zeros_like(x)
    kept = x * (1.0 / keep) if inverted else x
    return arrays.where(bernoulli(mask_shape(x.shape), keep, key=key), kept, 0.0)


def _channels_dropped(
    name: str, axes: int, x: ArrayLike, p: float, training: bool, inverted: bool, key: KeyLike
) -> Tensor:
    x = as_real(name, x)
    if x.ndim <= axes:
        raise ShapeError(f"{name}: an input of shape {x.shape}.", f"(..., {', '.join(SPATIAL[axes])}, channels)")
    return _dropped(name, x, p, training, inverted, key, lambda shape: (*shape[: -axes - 1], *(1,) * axes, shape[-1]))


def _saturated(
    name: str, x: ArrayLike, p: float, training: bool, key: KeyLike, mask_shape: Callable[[Shape], Shape]
) -> Tensor:
    x = as_real(name, x)
    p = check_probability(name, p)
    if not training or p == 0.0:
        return as_result(x)
    if p == 1.0:
        return arrays.zeros_like(x)
    a = ((1.0 - p) * (1.0 + p * _SATURATED**2)) ** -0.5
    shift = -a * _SATURATED * p
    return arrays.where(bernoulli(mask_shape(x.shape), 1.0 - p, key=key), a * x + shift, a * _SATURATED + shift)
