r"""Other sizes. Linear interpolation along an axis is a matrix, \(Y = W_r X W_c^\top\), which can differ by image."""

from __future__ import annotations

import numpy as np

from ...core.errors import InputError
from .settings import Size, as_probability, as_range, as_size
from .transform import Params, Transform, narrowed, widened


class Resize(Transform):
    """Images of size (h, w), by "bilinear" interpolation or the "nearest" pixel.

    >>> import numpy as np, wonderland as wl
    >>> wl.data.transforms.Resize((1, 2))(np.array([[0.0, 2.0, 4.0, 6.0]]))
    array([[1.,  5.]])

    With `antialias` a smaller image averages over the pixels that fall together (a triangle as wide as the
    new pixels), as Pillow does; without it only the nearest neighbours count.
    """

    changes = frozenset({"scale"})

    def __init__(self, size: Size, interpolation: str = "bilinear", *, antialias: bool = True) -> None:
        self.size = as_size("Resize", size)
        self.interpolation, self.antialias = as_interpolation("Resize", interpolation), antialias

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        height, width = images.shape[1:3]
        if self.interpolation == "nearest":
            rows, columns = (
                np.floor((np.arange(new) + 0.5) * old / new).astype(int)
                for new, old in zip(self.size, (height, width), strict=True)
            )
            return images[:, rows[:, None], columns]
        weights = (
            axis_weights(new, old, np.zeros(1), np.full(1, float(old)), self.antialias)
            for new, old in zip(self.size, (height, width), strict=True)
        )
        return narrowed(separable(widened(images), *weights), images.dtype)


class RandomResizedCrop(Transform):
    """A random part, between `scale` of the area and of an aspect (width / height) within `ratio`, resized to `size`.

    >>> import numpy as np, wonderland as wl
    >>> crop = wl.data.transforms.RandomResizedCrop(24)
    >>> crop(np.zeros((8, 32, 40, 3), np.uint8), np.random.default_rng(0)).shape
    (8, 24, 24, 3)

    A part that would stick out is cut to the image. After `eval()` the whole image is resized.
    """

    random = True
    changes = frozenset({"crop", "scale", "translation"})

    def __init__(
        self,
        size: Size,
        *,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        antialias: bool = True,
        per_sample: bool = True,
    ) -> None:
        name = "RandomResizedCrop"
        self.size, self.antialias, self.per_sample = as_size(name, size), antialias, per_sample
        self.scale = as_range(name, "scale", scale, least=0.0, most=1.0)
        self.ratio = as_range(name, "ratio", ratio, least=1e-3, most=1e3)
        as_probability(name, "scale", self.scale[0])

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        low, high = np.log(self.ratio)
        return {
            "scale": rng.uniform(*self.scale, count),
            "ratio": np.exp(rng.uniform(low, high, count)),
            "place": rng.random((count, 2)),
        }

    def neutral_params(self, count: int = 1) -> Params:
        return {"scale": np.full(count, np.inf), "ratio": np.ones(count), "place": np.zeros((count, 2))}

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        height, width = images.shape[1:3]
        tops, lefts, heights, widths = boxes(height, width, params["scale"], params["ratio"], params["place"])
        rows = axis_weights(self.size[0], height, tops, heights, self.antialias)
        columns = axis_weights(self.size[1], width, lefts, widths, self.antialias)
        return narrowed(separable(widened(images), rows, columns), images.dtype)


def boxes(
    height: int, width: int, scale: np.ndarray, ratio: np.ndarray, place: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Boxes inside the image in whole pixels (top, left, height, width), of a share of the area and an aspect."""
    area = scale * height * width
    heights = np.clip(np.rint(np.minimum(np.sqrt(area / ratio), height)), 1, height)
    widths = np.clip(np.rint(np.minimum(np.sqrt(area * ratio), width)), 1, width)
    tops = np.floor(place[:, 0] * (height - heights + 1))
    lefts = np.floor(place[:, 1] * (width - widths + 1))
    return tops, lefts, heights, widths


def axis_weights(new: int, old: int, start: np.ndarray, length: np.ndarray, antialias: bool = True) -> np.ndarray:
    """Matrices (b, new, old) that interpolate `new` places on the part from `start` of the given length, one per image.

    >>> axis_weights(2, 4, np.zeros(1), np.full(1, 4.0), antialias=False)
    array([[[0.5, 0.5, 0. , 0. ],
            [0. , 0. , 0.5, 0.5]]])
    """
    step = length / new  # old pixels per new one
    reach = np.maximum(step, 1.0) if antialias else np.ones_like(step)
    centres = start[:, None] + (np.arange(new) + 0.5) * step[:, None] - 0.5  # (b, new)
    # pixels beyond the part do not count: the edge is continued
    last = (start + length - 1)[:, None]
    if not antialias:
        centres = np.clip(centres, start[:, None], last)
    places = np.arange(old)
    weights = np.maximum(0.0, 1.0 - abs(places - centres[:, :, None]) / reach[:, None, None])
    weights *= (places >= start[:, None, None]) & (places <= last[:, :, None])
    return weights / weights.sum(axis=2, keepdims=True)


def separable(images: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Rows (b or 1, new h, h) and columns (b or 1, new w, w) applied to images (b, h, w, c)."""
    b, h, w, c = images.shape
    rows, columns = rows.astype(images.dtype), columns.astype(images.dtype)
    height, width = rows.shape[1], columns.shape[1]
    tall = (rows @ images.reshape(b, h, w * c)).reshape(b, height, w, c)
    lying = np.ascontiguousarray(tall.transpose(0, 2, 1, 3)).reshape(b, w, height * c)
    wide = (columns @ lying).reshape(b, width, height, c)
    return np.ascontiguousarray(wide.transpose(0, 2, 1, 3))


def as_interpolation(name: str, interpolation: str) -> str:
    if interpolation not in ("bilinear", "nearest"):
        raise InputError(f"{name}: interpolation={interpolation!r}.", "'bilinear' or 'nearest'")
    return interpolation
