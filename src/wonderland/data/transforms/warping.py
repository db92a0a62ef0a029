"""Rotations, shifts, zooms and shears about the middle: each new pixel looks where it comes from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.errors import InputError
from .resizing import as_interpolation
from .settings import Range, as_range
from .transform import Params, Transform, narrowed, widened

LARGE_ANGLE = 45.0  # degrees; beyond it an upright object no longer stands
_AT_ONCE = 1 << 18  # pixels that are computed together, so that they stay in the cache


class RandomAffine(Transform):
    """Rotation by `degrees` (counter-clockwise), zoom by `scale`, shear by degrees, and a shift by shares of the image.

    >>> import numpy as np, wonderland as wl
    >>> move = wl.data.transforms.RandomAffine(degrees=10, translate=(0.1, 0.1), scale=(0.9, 1.1), shear=5)
    >>> move(np.zeros((8, 28, 28, 1), np.float32), np.random.default_rng(0)).shape
    (8, 28, 28, 1)

    A number v for `degrees` or `shear` is the range (-v, v); `translate` is the largest share of (height, width). What
    comes from outside is `fill`. The parameters 0, 1, 0, 0 change nothing, exactly.
    """

    random = True

    def __init__(
        self,
        degrees: Range = 0.0,
        translate: Range | None = None,
        scale: Range | None = None,
        shear: Range | None = None,
        *,
        interpolation: str = "bilinear",
        fill: float = 0.0,
        per_sample: bool = True,
    ) -> None:
        name = type(self).__name__
        self.degrees = as_range(name, "degrees", degrees)
        self.translate = (0.0, 0.0) if translate is None else _shares(name, translate)
        self.scale = (1.0, 1.0) if scale is None else as_range(name, "scale", scale, around=1.0, least=1e-3)
        self.shear = (0.0, 0.0) if shear is None else as_range(name, "shear", shear, least=-80.0, most=80.0)
        self.interpolation, self.fill = as_interpolation(name, interpolation), float(fill)
        self.per_sample = per_sample

    @property
    def changes(self) -> frozenset[str]:  # type: ignore[override]  # depends on the settings
        """What can change, as the ranges allow it."""
        found = set()
        if self.degrees != (0.0, 0.0):
            found.add("rotation")
        if max(map(abs, self.degrees)) > LARGE_ANGLE:
            found.add("large_rotation")
        if self.translate != (0.0, 0.0):
            found.add("translation")
        if self.scale != (1.0, 1.0):
            found.add("scale")
        if self.shear != (0.0, 0.0):
            found.add("shear")
        return frozenset(found)

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        shares = np.array(self.translate)
        return {
            "degrees": rng.uniform(*self.degrees, count),
            "scale": np.exp(
                rng.uniform(math.log(self.scale[0]), math.log(self.scale[1]), count)
            ),  # as often twice as large as half as large
            "shear": rng.uniform(*self.shear, count),
            "translate": rng.uniform(-shares, shares, (count, 2)),
        }

    def neutral_params(self, count: int = 1) -> Params:
        zero = np.zeros(count)
        return {"degrees": zero, "scale": np.ones(count), "shear": zero, "translate": np.zeros((count, 2))}

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        # whole pixels, as torchvision: a shift alone does not blur
        shift = np.rint(params["translate"] * images.shape[1:3])
        matrices = inverse_matrices(params["degrees"], params["scale"], params["shear"])
        return warp(images, matrices, shift, self.fill, self.interpolation)


class RandomRotation(RandomAffine):
    """A rotation by an angle drawn from (-degrees, degrees), or from a pair, about the middle. Book, equation 9.4.

    >>> import wonderland as wl
    >>> wl.data.transforms.RandomRotation((90, 90))(wl.arange(4).reshape(2, 2))
    array([[1, 3],
           [0, 2]])

    Positive angles turn counter-clockwise. An angle of 0 changes nothing; quarter turns of square images are exact.
    """

    def __init__(
        self, degrees: Range, *, interpolation: str = "bilinear", fill: float = 0.0, per_sample: bool = True
    ) -> None:
        super().__init__(degrees, interpolation=interpolation, fill=fill, per_sample=per_sample)


class RandomTranslation(RandomAffine):
    """A shift by whole pixels, up to a share of the height and of the width (one number, or two).

    >>> import numpy as np, wonderland as wl
    >>> moved = wl.data.transforms.RandomTranslation(0.25)(np.ones((8, 8)), np.random.default_rng(0))
    >>> moved.shape
    (8, 8)
    """

    def __init__(self, translate: Range | None, *, fill: float = 0.0, per_sample: bool = True) -> None:
        super().__init__(translate=translate, fill=fill, per_sample=per_sample)


class RandomZoom(RandomAffine):
    """The middle enlarged (scale above 1), or the image made smaller with a border (below 1).

    >>> import numpy as np, wonderland as wl
    >>> int(wl.data.transforms.RandomZoom((2, 2), interpolation="nearest")(np.pad(np.ones((2, 2)), 1)).sum())
    16
    """

    def __init__(
        self,
        scale: Range = (0.8, 1.25),
        *,
        interpolation: str = "bilinear",
        fill: float = 0.0,
        per_sample: bool = True,
    ) -> None:
        super().__init__(scale=scale, interpolation=interpolation, fill=fill, per_sample=per_sample)


def inverse_matrices(
    degrees: np.ndarray, scale: np.ndarray | float = 1.0, shear: np.ndarray | float = 0.0
) -> np.ndarray:
    """Matrices (b, 2, 2) from a new place (row, column) to the old one, both seen from the middle.

    Forward: the columns are sheared (column + tan(shear) row), all is scaled, then rotated counter-clockwise.
    """
    angle = np.deg2rad(degrees)
    cosine, sine = np.cos(angle), np.sin(angle)
    quarter = np.asarray(degrees) % 90 == 0  # cos(90 degrees) is 0, and not 6e-17
    cosine, sine = np.where(quarter, np.round(cosine), cosine), np.where(quarter, np.round(sine), sine)
    slope = np.tan(np.deg2rad(shear)) * np.ones_like(cosine)
    back = np.array([[cosine, sine], [-sine, cosine]])  # the rotation, undone
    unshear = np.array([[np.ones_like(slope), np.zeros_like(slope)], [-slope, np.ones_like(slope)]])
    return np.einsum("ijb,jkb->bik", unshear, back) / np.broadcast_to(scale, cosine.shape)[:, None, None]


def warp(
    images: np.ndarray,
    matrices: np.ndarray,
    shift: np.ndarray,
    fill: float = 0.0,
    interpolation: str = "bilinear",
) -> np.ndarray:
    """Images (b, h, w, c) whose pixel p comes from `matrix (p - middle - shift) + middle`; `fill` is all around."""
    b, h, w, c = images.shape
    step = max(1, _AT_ONCE // (h * w * c))
    parts = [
        _warp_part(images[i : i + step], matrices[i : i + step], shift[i : i + step], fill, interpolation)
        for i in range(0, b, step)
    ]
    return np.concatenate(parts) if parts else images.copy()


def _warp_part(
    images: np.ndarray, matrices: np.ndarray, shift: np.ndarray, fill: float, interpolation: str
) -> np.ndarray:
    b, h, w, c = images.shape
    rows = np.arange(h) - (h - 1) / 2 - shift[:, 0, None]  # (b, h)
    columns = np.arange(w) - (w - 1) / 2 - shift[:, 1, None]  # (b, w)
    old_rows, old_columns = (
        matrices[:, i, 0, None, None] * rows[:, :, None] + matrices[:, i, 1, None, None] * columns[:, None, :] + middle
        for i, middle in enumerate(((h - 1) / 2, (w - 1) / 2))
    )  # (b, h, w)
    # A border of fill, one pixel wide: whatever lies further out is read there.
    border = ((0, 0), (1, 1), (1, 1), (0, 0))
    base = (np.arange(b) * ((h + 2) * (w + 2)))[:, None, None]
    if interpolation == "nearest":
        row, column = (
            np.clip(np.floor(old + 0.5), -1, size).astype(np.intp) + 1
            for old, size in ((old_rows, h), (old_columns, w))
        )
        padded = np.pad(images, border, constant_values=_as_fill(fill, images.dtype))
        return padded.reshape(-1, c).take(base + row * (w + 2) + column, axis=0)
    values = widened(images)
    pixels = np.pad(values, border, constant_values=fill).reshape(-1, c)
    old_rows, old_columns = np.clip(old_rows, -1, h), np.clip(old_columns, -1, w)
    row, column = np.minimum(np.floor(old_rows), h - 1), np.minimum(np.floor(old_columns), w - 1)
    down, right = (
        (old - first)[..., None].astype(values.dtype) for old, first in ((old_rows, row), (old_columns, column))
    )
    index = base + (row.astype(np.intp) + 1) * (w + 2) + column.astype(np.intp) + 1
    upper = _between(pixels, index, right)
    lower = _between(pixels, index + (w + 2), right)
    return narrowed(upper * (1 - down) + lower * down, images.dtype)


def _between(pixels: np.ndarray, index: np.ndarray, right: np.ndarray) -> np.ndarray:
    """From a pixel towards its right neighbour. The weights 0 and 1 give the pixels themselves."""
    return pixels.take(index, axis=0) * (1 - right) + pixels.take(index + 1, axis=0) * right


def _as_fill(fill: float, dtype: np.dtype) -> Any:
    return narrowed(np.asarray(fill), dtype)[()]


def _shares(name: str, translate: Any) -> tuple[float, float]:
    pair = (translate, translate) if np.ndim(translate) == 0 else tuple(translate)
    if len(pair) != 2 or not all(0 <= share <= 1 for share in pair):
        raise InputError(f"{name}: translate={translate!r}.", "shares of the height and the width, from 0 to 1")
    return float(pair[0]), float(pair[1])
