"""Augmented samples side by side, to see whether a person would still give the same label."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from ...core.arguments import as_int
from ...core.errors import ShapeError
from ...core.typing import ArrayLike
from ...storage.svg import SVG
from ..generators import Seed
from ..randomness import as_generator
from .transform import full_scale


def preview_grid(
    images: ArrayLike,
    transform: Callable[..., np.ndarray],
    *,
    samples: int = 7,
    rng: Seed = 0,
    gap: int = 1,
    fill: float | None = None,
) -> np.ndarray:
    """A picture with a row for each image: the image, then `samples` draws of the transform. Book, figure 9.2.

    >>> import numpy as np, wonderland as wl
    >>> T = wl.data.transforms
    >>> T.preview_grid(wl.data.digits().features[:4], T.RandomRotation(20), samples=5).shape  # 4 x 6 images, gaps
    (35, 53, 1)

    Images are (b, h, w, c) or one of them; results of other sizes stand in the top left corner of their cells. `fill`
    is the colour of the gaps, by default white.
    """
    array = np.asarray(images)
    array = array[None] if array.ndim == 3 else array
    if array.ndim != 4 or not len(array):
        raise ShapeError(f"preview_grid: images of shape {array.shape}.", "(h, w, c) or (b, h, w, c)")
    generator = as_generator("preview_grid", rng)
    is_random = getattr(transform, "random", False)
    columns = as_int("preview_grid", "samples", samples, least=1)
    rows = [
        [image, *(transform(image, generator) if is_random else transform(image) for _ in range(columns))]
        for image in array
    ]
    return tile(rows, gap, fill)


def tile(rows: Sequence[Sequence[np.ndarray]], gap: int = 1, fill: float | None = None) -> np.ndarray:
    """Images (h, w, c) in rows as one picture; smaller ones stand in the top left corner of their cells.

    >>> tile([[np.zeros((2, 3, 1))] * 4] * 2).shape
    (5, 15, 1)
    """
    h, w, c = (max(cell.shape[axis] for row in rows for cell in row) for axis in range(3))
    dtype = rows[0][-1].dtype
    white = full_scale(dtype) if fill is None else fill
    height, width = len(rows) * (h + gap) - gap, max(map(len, rows)) * (w + gap) - gap
    picture = np.full((height, width, c), white, dtype)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            top, left = i * (h + gap), j * (w + gap)
            picture[top : top + cell.shape[0], left : left + cell.shape[1]] = cell
    return picture


def preview(
    images: ArrayLike, transform: Callable[..., np.ndarray], *, samples: int = 7, rng: Seed = 0, zoom: int | None = None
) -> SVG:
    """`preview_grid` as SVG text, for a file or a browser.

    >>> import wonderland as wl
    >>> T = wl.data.transforms
    >>> preview(wl.data.digits().features[:2], T.RandomRotation(20))[:4]
    '<svg'
    """
    grid = preview_grid(images, transform, samples=samples, rng=rng)
    scale = max(1, 400 // max(grid.shape[:2])) if zoom is None else as_int("preview", "zoom", zoom, least=1)
    return image_svg(grid, scale)


def image_svg(image: ArrayLike, zoom: int = 1) -> SVG:
    """An image (h, w, 1 or 3) as SVG text that holds a PNG; pixels stay sharp squares when enlarged."""
    data = base64.b64encode(png_bytes(image)).decode()
    height, width = (zoom * size for size in np.shape(image)[:2])
    return SVG(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
        f'<image width="{width}" height="{height}" style="image-rendering:pixelated" '
        f'href="data:image/png;base64,{data}"/></svg>'
    )


def png_bytes(image: ArrayLike) -> bytes:
    """A PNG file of an image (h, w), (h, w, 1) or (h, w, 3): bytes, or floating numbers of which [0, 1] is shown.

    >>> png_bytes(np.zeros((2, 2)))[1:4]
    b'PNG'
    """
    array = np.asarray(image)
    array = array[:, :, None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[2] not in (1, 3) or not array.size:
        raise ShapeError(f"png_bytes: an image of shape {array.shape}.", "(h, w), (h, w, 1) or (h, w, 3)")
    if array.dtype != np.uint8:
        shares = np.nan_to_num(array.astype(np.float64)) / full_scale(array.dtype)
        array = np.rint(np.clip(shares, 0, 1) * 255).astype(np.uint8)
    h, w, c = array.shape
    lines = np.concatenate([np.zeros((h, 1), np.uint8), array.reshape(h, w * c)], axis=1)  # 0: no filter
    head = struct.pack(">2I5B", w, h, 8, 2 if c == 3 else 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
