"""Images side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.arguments import as_int
from ..core.errors import ShapeError
from ..core.typing import ArrayLike
from ..storage.svg import SVG

COLUMNS = 8
WIDTH = 480  # pixels of the picture, about


def image_grid(images: ArrayLike, columns: int = COLUMNS, *, gap: int = 1, zoom: int | None = None) -> SVG:
    """Images (h, w, c) in rows, as the text of an SVG picture that holds a PNG.

    >>> import wonderland as wl
    >>> image_grid(wl.data.digits().features[:20])[:4]
    '<svg'

    `images` are an array (n, h, w, 1 or 3), or a list of images, in rows of `columns`; or a list of such rows. Of
    floating numbers [0, 1] is shown. Pixels are enlarged `zoom` times, by default until the picture has a handy size.
    """
    from ..data.transforms.preview import image_svg, tile  # only now: viz does not need the readers of data

    rows = _as_rows(images, as_int("image_grid", "columns", columns, 1))
    picture = tile(rows, as_int("image_grid", "gap", gap, 0))
    scale = max(1, WIDTH // picture.shape[1]) if zoom is None else as_int("image_grid", "zoom", zoom, 1)
    return image_svg(picture, scale)


def _as_rows(images: Any, columns: int) -> list[list[np.ndarray]]:
    nested = isinstance(images, Sequence) and len(images) and isinstance(images[0], (list, tuple))
    lines = images if nested else [images]
    rows = []
    for line in lines:
        cells = [np.asarray(image) for image in (line if isinstance(line, (list, tuple)) else np.asarray(line))]
        step = len(cells) if nested else columns
        rows += [cells[i : i + step] for i in range(0, len(cells), max(step, 1))]
    if not rows or any(cell.ndim != 3 or cell.shape[2] not in (1, 3) or not cell.size for row in rows for cell in row):
        shapes = rows[0][0].shape if rows else "none"
        raise ShapeError(f"image_grid: images of shape {shapes}.", "images (h, w, 1 or 3), one or more")
    return rows
