"""Transforms of values that do not look at the neighbours: type, scale, labels, noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.arguments import as_int, as_number
from ...core.errors import DTypeError, IndexOutOfRange, InputError, ShapeError
from ...core.typing import ArrayLike, DTypeLike
from ..generators import Seed
from .transform import Params, Transform, full_scale, narrowed, widened


class ToFloat(Transform):
    """Integers as floating numbers in [0, 1] (uint8: x / 255); floating numbers only change their type.

    >>> import numpy as np, wonderland as wl
    >>> wl.data.transforms.ToFloat()(np.array([0, 255], np.uint8))
    array([0., 1.], dtype=float32)
    """

    def __init__(self, dtype: DTypeLike = np.float32) -> None:
        self.dtype = np.dtype(dtype)
        if self.dtype.kind != "f":
            raise DTypeError(f"ToFloat: {self.dtype} is not a floating type.", "np.float32")

    def apply(self, x: ArrayLike, params: Params = None) -> np.ndarray:
        array = np.asarray(x)
        if array.dtype.kind in "ui":
            return array.astype(self.dtype) / self.dtype.type(full_scale(array.dtype))
        return array.astype(self.dtype)


class Normalize(Transform):
    r"""\((x - \mu) / \sigma\), with one mean and deviation, or one for each channel (the last axis).

    >>> import numpy as np, wonderland as wl
    >>> wl.data.transforms.Normalize(0.5, 0.25)(np.array([[0.5, 1.0]], np.float32))
    array([[0., 2.]], dtype=float32)
    """

    def __init__(self, mean: ArrayLike, std: ArrayLike) -> None:
        self.mean, self.std = np.asarray(mean, np.float64), np.asarray(std, np.float64)
        if not (self.std > 0).all() or not np.isfinite(self.mean).all():
            raise InputError(f"Normalize: mean={mean!r}, std={std!r}.", "finite means and deviations above 0")

    def apply(self, x: ArrayLike, params: Params = None) -> np.ndarray:
        array = np.asarray(x)
        if array.dtype.kind != "f":
            raise DTypeError(f"Normalize: {array.dtype} cannot hold the result.", "ToFloat() before it")
        for setting in (self.mean, self.std):
            if setting.ndim > 1 or (setting.ndim == 1 and setting.shape[0] not in (1, array.shape[-1])):
                raise ShapeError(
                    f"Normalize: settings of shape {setting.shape} for an array of shape {array.shape}.",
                    "one number, or one for each channel (the last axis)",
                )
        return (array - self.mean.astype(array.dtype)) / self.std.astype(array.dtype)


class OneHot(Transform):
    """Integer labels as vectors with a 1 at the label: (...) to (..., num_classes).

    >>> import wonderland as wl
    >>> wl.data.transforms.OneHot(3)([0, 2])
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """

    def __init__(self, num_classes: int, dtype: DTypeLike = np.float32) -> None:
        self.num_classes, self.dtype = as_int("OneHot", "num_classes", num_classes, least=1), np.dtype(dtype)

    def __call__(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        return one_hot_array("OneHot", x, self.num_classes, self.dtype)

    def apply(self, x: ArrayLike, params: Params = None) -> np.ndarray:
        return self(x)


def one_hot_array(name: str, labels: ArrayLike, num_classes: int, dtype: DTypeLike = np.float32) -> np.ndarray:
    """The labels (...) as an array (..., num_classes) of zeros and ones."""
    array = np.asarray(labels)
    if array.dtype.kind not in "ui":
        raise DTypeError(f"{name}: labels of {array.dtype} are not integers.", "class numbers 0, 1, ...")
    if array.size and not (array.min() >= 0 and array.max() < num_classes):
        raise IndexOutOfRange(
            f"{name}: labels from {array.min()} to {array.max()} for {num_classes} classes.", f"0 to {num_classes - 1}"
        )
    return (array[..., None] == np.arange(num_classes)).astype(dtype)


class GaussianNoise(Transform):
    r"""\(x' = x + \varepsilon\), \(\varepsilon \sim \mathcal{N}(0, \sigma^2 I)\), for any shape. Book, section 9.2.3.

    >>> import numpy as np, wonderland as wl
    >>> noisy = wl.data.transforms.GaussianNoise(0.1)(np.zeros((100, 100), np.float32), np.random.default_rng(0))
    >>> round(float(noisy.std()), 2)
    0.1

    For integer images sigma is a share of their range (0.1 is 25.5 for uint8), and the result is kept in it;
    floating numbers are kept in [0, 1] only with `clip=True`. For a linear model with the squared error the
    expected loss over n examples grows by \(n\sigma^2\lVert w\rVert^2\): noise acts as weight decay (Bishop, 1995).
    """

    random = True
    changes = frozenset({"noise"})

    def __init__(self, sigma: float = 0.1, *, clip: bool = False, per_sample: bool = True) -> None:
        if not 0 <= as_number("GaussianNoise", "sigma", sigma) < np.inf:
            raise InputError(f"GaussianNoise: sigma={sigma!r} is not a standard deviation.", "0 or more")
        self.sigma, self.clip, self.per_sample = float(sigma), clip, per_sample

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        # a seed stands for the noise of an image, whose size is not known here
        return rng.integers(0, 2**63, count)

    def neutral_params(self, count: int = 1) -> Params:
        return None

    def apply(self, x: ArrayLike, params: Params = None) -> np.ndarray:
        array = np.asarray(x)
        if params is None or self.sigma == 0 or not array.size:
            return array
        seeds = np.atleast_1d(params)
        values = widened(array)
        if len(seeds) == 1:
            noise = _normal(seeds[0], array.shape, values.dtype)
        elif len(seeds) == len(array):
            noise = np.stack([_normal(seed, array.shape[1:], values.dtype) for seed in seeds])
        else:
            raise ShapeError(f"GaussianNoise: {len(seeds)} draws for shape {array.shape}.", "one for all or for each")
        result = values + noise * values.dtype.type(self.sigma * full_scale(array.dtype))
        return narrowed(np.clip(result, 0, 1) if self.clip and array.dtype.kind == "f" else result, array.dtype)


def _normal(seed: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.random.Generator(np.random.Philox(int(seed))).standard_normal(shape, dtype)
