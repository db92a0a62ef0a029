"""Brightness, contrast, saturation and hue. White is 255 for bytes and 1 for floating numbers; results stay below."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.errors import InputError, ShapeError
from .settings import Range, as_probability, as_range
from .transform import Params, Transform, full_scale, narrowed, per_image, widened

LUMA = np.array([0.299, 0.587, 0.114])  # how bright red, green and blue look


class _Factor(Transform):
    """A transform with one factor for each image; 1 changes nothing."""

    random = True

    def __init__(self, factor: Range, *, per_sample: bool = True) -> None:
        self.factor = as_range(type(self).__name__, "factor", factor, around=1.0, least=0.0)
        self.per_sample = per_sample

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        return rng.uniform(*self.factor, count)

    def neutral_params(self, count: int = 1) -> Params:
        return np.ones(count)

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        return _in_range(
            type(self).__name__, images, lambda values: self._changed(values, per_image(params, values.dtype))
        )

    def _changed(self, values: np.ndarray, factor: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class Brightness(_Factor):
    """x times a factor drawn from (1 - v, 1 + v), or from a pair.

    >>> import numpy as np, wonderland as wl
    >>> wl.data.transforms.Brightness((2, 2))(np.array([[0, 100, 200]], np.uint8))
    array([[  0, 200, 255]], dtype=uint8)
    """

    changes = frozenset({"brightness"})

    def _changed(self, values: np.ndarray, factor: np.ndarray) -> np.ndarray:
        return values * factor


class Contrast(_Factor):
    """The distance of each pixel from the mean grey of its image, times a factor.

    >>> import numpy as np, wonderland as wl
    >>> wl.data.transforms.Contrast((0.5, 0.5))(np.array([[0.0, 1.0]]))
    array([[0.25, 0.75]])
    """

    changes = frozenset({"contrast"})

    def _changed(self, values: np.ndarray, factor: np.ndarray) -> np.ndarray:
        mean = _grey(values).mean(axis=(1, 2, 3), keepdims=True)
        return factor * values + (1 - factor) * mean


class Saturation(_Factor):
    """The distance of each pixel from its own grey, times a factor: 0 gives a grey image, grey images stay.

    >>> import numpy as np, wonderland as wl
    >>> wl.data.transforms.Saturation((0, 0))(np.array([[[1.0, 0.0, 0.0]]]))
    array([[[0.299, 0.299, 0.299]]])
    """

    changes = frozenset({"color"})

    def _changed(self, values: np.ndarray, factor: np.ndarray) -> np.ndarray:
        _need_colour("Saturation", values)
        return values if values.shape[-1] == 1 else factor * values + (1 - factor) * _grey(values)


class Hue(Transform):
    """Colours turned on their circle by a part of it, drawn from (-v, v) with v up to 0.5 (the opposite colour).

    >>> import numpy as np, wonderland as wl
    >>> wl.data.transforms.Hue((0.5, 0.5))(np.array([[[1.0, 0.0, 0.0]]]))
    array([[[0.0, 1.0, 1.0]]])
    """

    random = True
    changes = frozenset({"color"})

    def __init__(self, shift: Range, *, per_sample: bool = True) -> None:
        self.shift = as_range("Hue", "shift", shift, least=-0.5, most=0.5)
        self.per_sample = per_sample

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        return rng.uniform(*self.shift, count)

    def neutral_params(self, count: int = 1) -> Params:
        return np.zeros(count)

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        _need_colour("Hue", images)
        if images.shape[-1] == 1 or not np.any(params):
            return images
        return _in_range("Hue", images, lambda values: _turned(values, np.asarray(params, values.dtype)))


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue, in this order, each drawn from its range (0: left alone).

    >>> import numpy as np, wonderland as wl
    >>> jitter = wl.data.transforms.ColorJitter(brightness=0.2, contrast=0.2, saturation=0.2, hue=0.05)
    >>> jitter(np.zeros((4, 8, 8, 3), np.uint8), np.random.default_rng(0)).dtype
    dtype('uint8')
    """

    random = True

    def __init__(
        self,
        brightness: Range = 0.0,
        contrast: Range = 0.0,
        saturation: Range = 0.0,
        hue: Range = 0.0,
        *,
        per_sample: bool = True,
    ) -> None:
        steps = [(Brightness, brightness), (Contrast, contrast), (Saturation, saturation), (Hue, hue)]
        self.steps: list[Transform] = [kind(value) for kind, value in steps if np.any(value)]
        self.per_sample = per_sample

    @property
    def changes(self) -> frozenset[str]:  # type: ignore[override]  # what its steps change
        """What the steps that are not left alone change."""
        return frozenset().union(*(step.changes for step in self.steps))

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        return tuple(step.sample_params(rng, count) for step in self.steps)

    def neutral_params(self, count: int = 1) -> Params:
        return tuple(step.neutral_params(count) for step in self.steps)

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        for step, values in zip(self.steps, params, strict=True):
            images = step.apply_batch(images, values)
        return images


class Grayscale(Transform):
    """0.299 red + 0.587 green + 0.114 blue, in one channel or repeated in three.

    >>> import numpy as np, wonderland as wl
    >>> wl.data.transforms.Grayscale()(np.array([[[0, 255, 0]]], np.uint8))
    array([[[150]]], dtype=uint8)
    """

    changes = frozenset({"color"})

    def __init__(self, channels: int = 1) -> None:
        if channels not in (1, 3):
            raise InputError(f"Grayscale: channels={channels!r}.", "1 or 3")
        self.channels = channels

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        _need_colour("Grayscale", images)
        return np.repeat(narrowed(_grey(widened(images)), images.dtype), self.channels, axis=3)


class RandomGrayscale(Transform):
    """With probability p, a colour image loses its colours; it keeps its three channels.

    >>> import numpy as np, wonderland as wl
    >>> wl.data.transforms.RandomGrayscale(1.0)(np.array([[[0, 255, 0]]], np.uint8))
    array([[[150, 150, 150]]], dtype=uint8)
    """

    random = True
    changes = frozenset({"color"})

    def __init__(self, p: float = 0.1, *, per_sample: bool = True) -> None:
        self.p, self.per_sample = as_probability("RandomGrayscale", "p", p), per_sample

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        return rng.random(count) < self.p

    def neutral_params(self, count: int = 1) -> Params:
        return np.zeros(count, bool)

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        result = images.copy()
        result[params] = Grayscale(images.shape[-1]).apply_batch(images[params], None)
        return result


def _in_range(name: str, images: np.ndarray, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The change on floating numbers, then cut off at black and white."""
    top = full_scale(images.dtype)
    if images.dtype.kind == "f" and images.size and not (images.min() >= -1e-6 and images.max() <= 1 + 1e-6):
        raise InputError(
            f"{name}: values from {images.min():.4g} to {images.max():.4g}, where colours are in [0, 1].",
            "this transform before Normalize, and ToFloat() on bytes",
        )
    return narrowed(np.clip(change(widened(images)), 0, top), images.dtype)


def _need_colour(name: str, images: np.ndarray) -> None:
    if images.shape[-1] not in (1, 3):
        raise ShapeError(f"{name}: {images.shape[-1]} channels.", "1 (grey) or 3 (red, green, blue) as the last axis")


def _grey(values: np.ndarray) -> np.ndarray:
    """One channel: how bright the colours look; other images are as they are."""
    return (values @ LUMA.astype(values.dtype))[..., None] if values.shape[-1] == 3 else values


def _turned(values: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Hues moved by `shift` (b,) of the circle, with saturation and value kept."""
    top, bottom = values.max(axis=3), values.min(axis=3)
    spread = top - bottom
    safe = np.where(spread > 0, spread, 1)
    red, green, blue = np.moveaxis(values, 3, 0)
    sixth = np.where(
        top == red,
        (green - blue) / safe,
        np.where(top == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    sixth = np.where(spread > 0, sixth, 0) + 6 * shift[:, None, None]
    # each channel is a trapezoid over the circle: full for a third, empty for a third
    channels = [top - spread * np.clip(abs((sixth - centre + 3) % 6 - 3) - 1, 0, 1) for centre in (0, 2, 4)]
    return np.stack(channels, axis=3)
