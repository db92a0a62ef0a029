"""What a published image model does to an image first: another size, numbers around 0."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...core.arguments import shown
from ...core.errors import FileError, ShapeError
from ...core.tensor import Tensor, wrap
from ...core.typing import Array, ArrayLike
from ...data.transforms.resizing import Resize, axis_weights
from .folder import LONGEST_CONFIG, PREPROCESSOR, read_folder, read_table

__all__ = ["ImagePreprocessor", "image_preprocessor"]

BITS = 22  # of the fraction of weights
INTERPOLATIONS = {0: "nearest", 2: "bilinear"}  # by Pillow's numbers


@dataclass(frozen=True)
class ImagePreprocessor:
    r"""\((\text{resized}(x)\, s - \mu)/\sigma\): images (..., h, w, c), usually of bytes, to (..., H, W, c) of float32.

    >>> import numpy as np, wonderland as wl
    >>> ready = wl.models.ImagePreprocessor((8, 8), mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
    >>> x = ready(np.full((2, 20, 30, 3), 255, np.uint8))
    >>> x.shape, float(x.max())
    ((2, 8, 8, 3), 1.0)

    `size` (H, W) is None if sizes stay. `scale` is 1/255 by default.
    """

    size: tuple[int, int] | None
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    interpolation: str = "bilinear"

    def __call__(self, images: ArrayLike) -> Tensor:
        x = np.asarray(images)
        if x.ndim < 3 or x.shape[-1] not in (1, 3, 4) or (len(self.mean) > 1 and x.shape[-1] != len(self.mean)):
            raise ShapeError(
                f"ImagePreprocessor: images of shape {x.shape}.", f"(..., height, width, {len(self.mean)} channels)"
            )
        if self.size is not None and x.shape[-3:-1] != self.size:
            flat = x.reshape(-1, *x.shape[-3:])
            x = self._resized(flat).reshape(*x.shape[:-3], *self.size, x.shape[-1])
        scaled = x.astype(np.float32) * np.float32(self.scale)
        return wrap((scaled - np.array(self.mean, np.float32)) / np.array(self.std, np.float32))

    def _resized(self, images: Array) -> Array:
        """Columns first, then rows; bytes are rounded after each, as Pillow does (which may begin with rows, too)."""
        assert self.size is not None
        if images.dtype != np.uint8 or self.interpolation != "bilinear":
            return Resize(self.size, self.interpolation).apply_batch(images, {})
        height, width = self.size
        wide = _mixed(images.swapaxes(1, 2), width).swapaxes(1, 2)
        return _mixed(wide, height)


def _mixed(images: Array, count: int) -> Array:
    """Bytes (b, h, ...) to (b, count, ...), in whole numbers as Pillow has them."""
    old = images.shape[1]
    if old == count:
        return images
    weights = axis_weights(count, old, np.zeros(1), np.full(1, float(old)), True)[0]  # (count, h)
    whole = np.floor(weights * 2**BITS + 0.5).astype(np.int64)
    sums = np.einsum("nh,bh...->bn...", whole, images.astype(np.int64))
    return np.clip((sums + 2 ** (BITS - 1)) >> BITS, 0, 255).astype(np.uint8)


def image_preprocessor(folder: str | os.PathLike[str]) -> ImagePreprocessor:
    """What the preprocessor_config.json of a published folder says about images.

    >>> import json, tempfile, wonderland as wl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wl.models.save_pretrained(wl.models.ViT(5, (8, 8, 3), 4, 8, 2, 1), folder)
    ...     with open(folder + "/preprocessor_config.json", "w") as file:
    ...         json.dump({"size": {"height": 8, "width": 8}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}, file)
    ...     wl.models.image_preprocessor(folder).size
    (8, 8)
    """
    home = read_folder(folder).path
    path = home / PREPROCESSOR
    if not path.is_file():
        raise FileError(f"image_preprocessor: {home} has no {PREPROCESSOR}.", "the folder of a published image model")
    table = read_table(path, LONGEST_CONFIG)
    if strange := [key for key in ("do_center_crop", "do_pad") if table.get(key)]:
        raise FileError(f"{path}: {strange[0]} is not something that is done here.", f'"{strange[0]}": false')
    resample = table.get("resample", 2)
    if type(resample) is not int or resample not in INTERPOLATIONS:
        raise FileError(f"{path}: resample = {shown(resample)}.", "2 (bilinear) or 0 (nearest)")
    normal = table.get("do_normalize", True)
    scale = table.get("rescale_factor", 1 / 255) if table.get("do_rescale", True) else 1.0
    return ImagePreprocessor(
        _size(table.get("size"), str(path)) if table.get("do_resize", True) else None,
        _numbers([scale], "rescale_factor", str(path))[0],
        _numbers(table.get("image_mean", [0.5] * 3), "image_mean", str(path)) if normal else (0.0,),
        _numbers(table.get("image_std", [0.5] * 3), "image_std", str(path), above=0.0) if normal else (1.0,),
        INTERPOLATIONS[resample],
    )


def _size(size: object, path: str) -> tuple[int, int]:
    found = (size.get("height"), size.get("width")) if isinstance(size, Mapping) else (size, size)
    height, width = found
    if type(height) is int and type(width) is int and 0 < height <= 1 << 14 and 0 < width <= 1 << 14:
        return height, width
    raise FileError(f"{path}: size = {shown(size)}.", 'a table such as {"height": 224, "width": 224}')


def _numbers(values: object, key: str, path: str, above: float = -1e6) -> tuple[float, ...]:
    if isinstance(values, list) and 1 <= len(values) <= 4:
        found = [v for v in values if isinstance(v, (int, float)) and type(v) is not bool and above < v < 1e6]
        if len(found) == len(values):
            return tuple(float(v) for v in found)
    raise FileError(f"{path}: {key} = {shown(values)}.", "some finite numbers, one for each channel")
