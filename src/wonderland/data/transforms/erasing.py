"""Patches that are blotted out, so that no single part of an image decides. Book, section 9.3.1."""

from __future__ import annotations

import math

import numpy as np

from ...core.arguments import as_int
from .resizing import boxes
from .settings import as_probability, as_range
from .transform import Params, Transform, narrowed


class Cutout(Transform):
    """A square of `size` x `size` pixels set to `fill`, around a random pixel; at the border part of it is lost.

    >>> import numpy as np, wonderland as wl
    >>> int((wl.data.transforms.Cutout(3).apply(np.ones((8, 8)), np.full((1, 3), 0.5)) == 0).sum())
    9

    `per_channel=True` cuts it from one random channel, as the book describes it; else from all (DeVries and
    Taylor, 2017). Book, section 9.3.1.
    """

    random = True
    changes = frozenset({"occlusion"})

    def __init__(
        self, size: int, *, per_channel: bool = False, fill: float = 0.0, p: float = 1.0, per_sample: bool = True
    ) -> None:
        self.size, self.per_channel, self.fill = as_int("Cutout", "size", size, least=0), per_channel, fill
        self.p, self.per_sample = as_probability("Cutout", "p", p), per_sample

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        params = rng.random((count, 3))  # row, column, channel
        return np.where(rng.random((count, 1)) < self.p, params, np.nan)

    def neutral_params(self, count: int = 1) -> Params:
        return np.full((count, 3), np.nan)

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        h, w, c = images.shape[1:]
        tops, lefts = (np.floor(params[:, i] * size) - self.size // 2 for i, size in enumerate((h, w)))
        full = np.where(np.isnan(params[:, 0]), 0, self.size)  # NaN: no patch
        mask = patch_mask(h, w, np.nan_to_num(tops), np.nan_to_num(lefts), full, full)
        if self.per_channel:
            mask = mask & (np.arange(c) == np.floor(np.nan_to_num(params[:, 2]) * c)[:, None, None, None])
        return np.where(mask, narrowed(np.asarray(self.fill), images.dtype), images)


class RandomErasing(Transform):
    """With probability p, a rectangle inside the image set to `value`: its share of the area and its aspect are drawn.

    >>> import numpy as np, wonderland as wl
    >>> erase = wl.data.transforms.RandomErasing(1.0, scale=(0.25, 0.25), ratio=(1.0, 1.0))
    >>> float(erase(np.ones((8, 8)), np.random.default_rng(0)).mean())
    0.75
    """

    random = True
    changes = frozenset({"occlusion"})

    def __init__(
        self,
        p: float = 0.5,
        scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3),
        *,
        value: float = 0.0,
        per_sample: bool = True,
    ) -> None:
        name = "RandomErasing"
        self.p, self.value, self.per_sample = as_probability(name, "p", p), value, per_sample
        self.scale = as_range(name, "scale", scale, least=0.0, most=1.0)
        self.ratio = as_range(name, "ratio", ratio, least=1e-3, most=1e3)

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        return {
            "chosen": rng.random(count) < self.p,
            "scale": rng.uniform(*self.scale, count),
            "ratio": np.exp(rng.uniform(math.log(self.ratio[0]), math.log(self.ratio[1]), count)),
            "place": rng.random((count, 2)),
        }

    def neutral_params(self, count: int = 1) -> Params:
        nothing = {"chosen": np.zeros(count, bool), "scale": np.zeros(count)}
        return {**nothing, "ratio": np.ones(count), "place": np.zeros((count, 2))}

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        h, w = images.shape[1:3]
        tops, lefts, heights, widths = boxes(h, w, params["scale"], params["ratio"], params["place"])
        mask = patch_mask(h, w, tops, lefts, heights * params["chosen"], widths)
        return np.where(mask, narrowed(np.asarray(self.value), images.dtype), images)


def patch_mask(
    h: int, w: int, tops: np.ndarray, lefts: np.ndarray, heights: np.ndarray, widths: np.ndarray
) -> np.ndarray:
    """True inside the patches (b, h, w, 1), from their corners and sizes (b,).

    >>> patch_mask(2, 3, np.array([0]), np.array([1]), np.array([2]), np.array([1]))[0, :, :, 0]
    array([[False,  True, False],
           [False,  True, False]])
    """
    row, column = np.arange(h)[None, :], np.arange(w)[None, :]
    tops, lefts, heights, widths = (np.asarray(value)[:, None] for value in (tops, lefts, heights, widths))
    rows = (row >= tops) & (row < tops + heights)
    columns = (column >= lefts) & (column < lefts + widths)
    return (rows[:, :, None] & columns[:, None, :])[..., None]
