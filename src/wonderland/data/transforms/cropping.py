"""Borders added and parts cut out, without interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from .settings import Size, as_size
from .transform import Params, Transform


class Pad(Transform):
    """A border of `fill` around the image, or one that continues it (mode "edge", "reflect", "symmetric", "wrap").

    >>> import numpy as np, wonderland as wl
    >>> wl.data.transforms.Pad(1)(np.ones((1, 1), np.uint8))
    array([[0, 0, 0],
           [0, 1, 0],
           [0, 0, 0]], dtype=uint8)

    `padding` is one number, (vertical, horizontal), or (top, bottom, left, right).
    """

    def __init__(self, padding: Any, *, fill: float = 0, mode: str = "constant") -> None:
        sides = (padding,) * 4 if np.ndim(padding) == 0 else tuple(padding)
        if len(sides) == 2:
            sides = (sides[0], sides[0], sides[1], sides[1])
        if len(sides) != 4:
            raise InputError(f"Pad: padding={padding!r}.", "1, 2 or 4 numbers")
        if mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
            raise InputError(f"Pad: mode={mode!r}.", "'constant', 'edge', 'reflect', 'symmetric' or 'wrap'")
        self.padding = tuple(as_int("Pad", "padding", side, least=0) for side in sides)
        self.fill, self.mode = fill, mode

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        top, bottom, left, right = self.padding
        widths = ((0, 0), (top, bottom), (left, right), (0, 0))
        if self.mode == "constant":
            return np.pad(images, widths, constant_values=self.fill)
        return np.pad(images, widths, mode=self.mode)  # type: ignore[call-overload]  # checked above


class CenterCrop(Transform):
    """The middle part of size (h, w). Of an odd rest, the smaller half is cut off at the top and left.

    >>> import wonderland as wl
    >>> wl.data.transforms.CenterCrop(2)(wl.arange(16).reshape(4, 4))
    array([[ 5,  6],
           [ 9, 10]])
    """

    changes = frozenset({"crop"})

    def __init__(self, size: Size) -> None:
        self.size = as_size("CenterCrop", size)

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        return _cut(
            images, *_corner("CenterCrop", images, self.size, np.full(len(images), 0.5), np.full(len(images), 0.5))
        )


class RandomCrop(Transform):
    """A part of size (h, w) at a random place, after a border of `padding` was added. Every place is equally likely.

    >>> import numpy as np, wonderland as wl
    >>> crop = wl.data.transforms.RandomCrop(32, padding=4)
    >>> crop(np.zeros((8, 32, 32, 3), np.uint8), np.random.default_rng(0)).shape
    (8, 32, 32, 3)
    """

    random = True
    changes = frozenset({"crop", "translation"})

    def __init__(
        self,
        size: Size,
        *,
        padding: int | Sequence[int] | None = None,
        fill: float = 0,
        mode: str = "constant",
        per_sample: bool = True,
    ) -> None:
        self.size, self.per_sample = as_size("RandomCrop", size), per_sample
        self.pad = None if padding is None else Pad(padding, fill=fill, mode=mode)

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        return rng.random((count, 2))

    def neutral_params(self, count: int = 1) -> Params:
        return np.full((count, 2), 0.5)

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        padded = images if self.pad is None else self.pad.apply_batch(images, None)
        return _cut(padded, *_corner("RandomCrop", padded, self.size, params[:, 0], params[:, 1]))


def _corner(
    name: str, images: np.ndarray, size: tuple[int, int], down: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """The top left corners of parts, from fractions of the room that there is."""
    room = (images.shape[1] - size[0], images.shape[2] - size[1])
    if min(room) < 0:
        raise ShapeError(
            f"{name}: a part of {size[0]} x {size[1]} from images of {images.shape[1]} x {images.shape[2]}.",
            "a smaller size, or padding=",
        )
    # 0.5 of an odd room goes to the smaller half: floor(0.5 (room + 1)) would be the larger one
    tops, lefts = (
        np.where(fraction == 0.5, space // 2, np.floor(fraction * (space + 1))).astype(int)
        for fraction, space in zip((down, right), room, strict=True)
    )
    return tops, lefts, size


def _cut(images: np.ndarray, tops: np.ndarray, lefts: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    # a view of all windows, of which one is taken for each image
    windows = np.lib.stride_tricks.sliding_window_view(images, size, axis=(1, 2))  # (b, rows, columns, c, h, w)
    return np.ascontiguousarray(windows[np.arange(len(images)), tops, lefts].transpose(0, 2, 3, 1))
