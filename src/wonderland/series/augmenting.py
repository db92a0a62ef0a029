"""Random changes of series (time, channels) that keep what they mean. Time is never turned round: it has a direction.

A photograph may be mirrored; speech played backwards is no speech, and a price that falls is not one that rises.
`wl.data.transforms.check_label_safety(transform, "sequences")` finds such changes. Book, section 8.1.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.arguments import as_int, as_number
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.typing import Array, ArrayLike
from ..data.transforms import Compose, Transform


class _SeriesTransform(Transform):
    """A random transform of one series (time, channels)."""

    random = True

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> np.random.Generator:
        return rng

    def apply(self, x: ArrayLike, params: Any = None) -> Array:
        values = np.asarray(x)
        name = type(self).__name__
        if values.ndim != 2:
            raise ShapeError(f"{name}: a series of shape {values.shape}.", "(time, channels)")
        if values.dtype.kind != "f":
            raise DTypeError(f"{name}: a series of {values.dtype}.", "floating numbers")
        return self.changed(values, params).astype(values.dtype, copy=False)

    def changed(self, x: Array, rng: np.random.Generator) -> Array:
        raise NotImplementedError(f"{type(self).__name__}: def changed(self, x, rng)")


class Jitter(_SeriesTransform):
    r"""\(x + \epsilon\) with \(\epsilon \sim N(0, \mathrm{std}^2)\) at every time.

    >>> import numpy as np, wonderland as wl
    >>> wl.series.Jitter(0.1)(np.zeros((5, 2)), np.random.default_rng(0)).shape
    (5, 2)
    """

    changes = frozenset({"noise"})

    def __init__(self, std: float = 0.03) -> None:
        self.std = _at_least_zero("Jitter", "std", std)

    def changed(self, x: Array, rng: np.random.Generator) -> Array:
        return x + self.std * rng.normal(size=x.shape)


class RandomGain(_SeriesTransform):
    r"""\(g\,x\) with one \(g \sim N(1, \mathrm{std}^2)\) for each channel: louder or softer.

    >>> import numpy as np, wonderland as wl
    >>> y = wl.series.RandomGain(0.1)(np.ones((5, 1)), np.random.default_rng(0))
    >>> bool((y == y[0]).all())
    True
    """

    changes = frozenset({"gain"})

    def __init__(self, std: float = 0.1) -> None:
        self.std = _at_least_zero("RandomGain", "std", std)

    def changed(self, x: Array, rng: np.random.Generator) -> Array:
        return x * (1 + self.std * rng.normal(size=x.shape[1]))


class RandomTimeMask(_SeriesTransform):
    """A stretch of up to `longest` times set to `value`, as SpecAugment does with spectrograms (frames, frequencies).

    >>> import numpy as np, wonderland as wl
    >>> y = wl.series.RandomTimeMask(3)(np.ones((10, 2)), np.random.default_rng(1))
    >>> int((y == 0).all(axis=1).sum()) <= 3
    True
    """

    changes = frozenset({"erase"})

    def __init__(self, longest: int = 10, value: float = 0.0) -> None:
        self.longest = as_int("RandomTimeMask", "longest", longest, least=1)
        self.value = float(as_number("RandomTimeMask", "value", value))

    def changed(self, x: Array, rng: np.random.Generator) -> Array:
        length = int(rng.integers(0, min(self.longest, len(x)) + 1))
        start = int(rng.integers(0, len(x) - length + 1))
        y = x.copy()
        y[start : start + length] = self.value
        return y


def augmentation() -> Compose:
    """What may be done to most series: some noise, a little louder or softer, a short gap. No reversal of time.

    >>> import wonderland as wl
    >>> wl.data.transforms.check_label_safety(wl.series.augmentation(), "sequences")
    []
    """
    return Compose([Jitter(), RandomGain(), RandomTimeMask()], deny=("horizontal_flip", "vertical_flip"))


def _at_least_zero(name: str, what: str, value: float) -> float:
    if not as_number(name, what, value) >= 0:
        raise InputError(f"{name}: {what}={value}.", f"{what} >= 0")
    return float(value)
