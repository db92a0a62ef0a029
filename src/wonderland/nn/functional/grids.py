"""Images looked up at any places: spatial transformers, warps, optical flow."""

from __future__ import annotations

from collections.abc import Sequence

from ... import arrays
from ...arrays.conversion import as_real, as_tensor, promote_inexact
from ...core import dtypes
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike

__all__ = ["affine_grid", "grid_sample"]

MODES = ("bilinear", "nearest", "bicubic")
PADDING_MODES = ("zeros", "border", "reflection")


def affine_grid(theta: ArrayLike, size: Sequence[int], align_corners: bool = False) -> Tensor:
    r"""The places \(\theta\,(x, y, 1)\) of a grid: matrices (b, 2, 3) and a size (b, h, w, c) give (b, h, w, 2).

    >>> import wonderland as wl
    >>> identity = wl.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> wl.nn.functional.affine_grid(identity, (1, 1, 2, 3))
    tensor([[[[-0.5,  0. ],
              [ 0.5,  0. ]]]])

    x and y run from -1 to 1 across the image: over its area, or with `align_corners` from the centre of the first
    pixel to that of the last. See `grid_sample`.
    """
    theta = as_real("affine_grid", theta)
    if theta.ndim != 3 or theta.shape[1:] != (2, 3) or len(size) != 4 or size[0] != theta.shape[0]:
        raise ShapeError(
            f"affine_grid: theta of shape {theta.shape} and size={tuple(size)}.", "(b, 2, 3) and (b, h, w, c)"
        )
    _, height, width, _ = size
    y, x = (_centres(n, align_corners, theta.dtype) for n in (height, width))
    points = arrays.stack(
        [*arrays.meshgrid(x, y, indexing="xy"), arrays.ones((height, width), dtype=theta.dtype)], axis=-1
    )
    return arrays.matmul(points, arrays.expand_dims(arrays.matrix_transpose(theta), axis=1))


def _centres(n: int, align_corners: bool, dtype: DTypeLike) -> Tensor:
    if align_corners:
        return arrays.linspace(-1.0, 1.0, n, dtype=dtype) if n > 1 else arrays.zeros((n,), dtype=dtype)
    return (2 * arrays.arange(n, dtype=dtype) + 1) / n - 1


def grid_sample(
    x: ArrayLike, grid: ArrayLike, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Tensor:
    r"""Images (b, h, w, c) at the places of a grid (b, h', w', 2): (b, h', w', c).

    >>> import wonderland as wl
    >>> image = wl.tensor([[1.0, 2.0], [3.0, 4.0]])[None, :, :, None]
    >>> middle = wl.zeros((1, 1, 1, 2))
    >>> wl.nn.functional.grid_sample(image, middle)[0, 0, 0]
    tensor([2.5])

    A place is a pair (x, y), from -1 at the left or upper edge of the image to 1 at the right or lower one; with
    `align_corners` -1 and 1 are the centres of the first and last pixels. `mode` is "bilinear", "nearest" or
    "bicubic". Outside of the image are zeros, its border ("border"), or the image mirrored again and again
    ("reflection"). Differentiable in the images, and (but for "nearest") in the grid.
    """
    if mode not in MODES or padding_mode not in PADDING_MODES:
        choices = f"{' or '.join(map(repr, MODES))}; {' or '.join(map(repr, PADDING_MODES))}"
        raise InputError(f"grid_sample: mode={mode!r}, padding_mode={padding_mode!r}.", choices)
    x, grid = promote_inexact("grid_sample", as_tensor("grid_sample", x), as_real("grid_sample", grid))
    if x.ndim != 4 or grid.ndim != 4 or grid.shape[-1] != 2 or grid.shape[0] != x.shape[0] or 0 in x.shape[1:3]:
        raise ShapeError(
            f"grid_sample: images of shape {x.shape} and a grid of shape {grid.shape}.",
            "(b, h, w, c) with at least one pixel, and (b, h', w', 2)",
        )
    sizes = x.shape[2], x.shape[1]
    places = [_pixels(grid[..., i], n, align_corners) for i, n in enumerate(sizes)]
    if mode == "nearest":
        columns, rows = (_inside(p, n, padding_mode, align_corners) for p, n in zip(places, sizes, strict=True))
        return _pixel(x, arrays.round(rows), arrays.round(columns), padding_mode)
    if mode == "bilinear":
        columns, rows = (_inside(p, n, padding_mode, align_corners) for p, n in zip(places, sizes, strict=True))
        taps = [_linear(p) for p in (rows, columns)]
    else:  # every neighbour is brought inside by itself
        taps = [_cubic(p) for p in (places[1], places[0])]
    total = None
    for row, row_weight in taps[0]:
        for column, column_weight in taps[1]:
            if mode == "bicubic":
                row_at = _inside(row, sizes[1], padding_mode, align_corners)
                column_at = _inside(column, sizes[0], padding_mode, align_corners)
            else:
                row_at, column_at = row, column
            weight = arrays.expand_dims(row_weight * column_weight, axis=-1)
            term = _pixel(x, row_at, column_at, padding_mode) * weight
            total = term if total is None else total + term
    assert total is not None
    return total


def _pixels(at: Tensor, n: int, align_corners: bool) -> Tensor:
    """Places from -1 to 1 as numbers of pixels."""
    return (at + 1) * ((n - 1) / 2) if align_corners else ((at + 1) * n - 1) / 2


def _inside(at: Tensor, n: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Places brought into the image; with zeros outside they stay where they are."""
    if padding_mode == "zeros":
        return at
    if padding_mode == "reflection":
        low, span = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
        if span == 0:
            return arrays.zeros_like(at)
        away = arrays.abs(at - low)
        turns = arrays.stop_gradient(arrays.floor(away / span))
        rest = away - turns * span
        at = arrays.where(turns % 2 == 0, rest, span - rest) + low
    return arrays.clip(at, 0, n - 1)


def _linear(at: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The two neighbours of each place, and their weights."""
    low = arrays.stop_gradient(arrays.floor(at))
    return [(low, low + 1 - at), (low + 1, at - low)]


def _cubic(at: Tensor, a: float = -0.75) -> list[tuple[Tensor, Tensor]]:
    """The four neighbours of cubic convolution."""
    low = arrays.stop_gradient(arrays.floor(at))
    t = at - low
    found = []
    for offset, distance in ((-1, 1 + t), (0, t), (1, 1 - t), (2, 2 - t)):
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        far = a * (((distance - 5) * distance + 8) * distance - 4)
        found.append((low + offset, near if offset in (0, 1) else far))
    return found


def _pixel(x: Tensor, rows: Tensor, columns: Tensor, padding_mode: str) -> Tensor:
    """The pixels at whole numbers (b, h', w'): (b, h', w', c). Outside of the image, and at NaN, are zeros."""
    batch, height, width, _ = x.shape
    seen = (rows >= 0) & (rows <= height - 1) & (columns >= 0) & (columns <= width - 1)
    row, column = (arrays.astype(arrays.where(seen, p, arrays.zeros_like(p)), dtypes.int64) for p in (rows, columns))
    which = arrays.reshape(arrays.arange(batch), (batch, 1, 1))
    found = x[which, row, column]
    return arrays.where(arrays.expand_dims(seen, axis=-1), found, arrays.zeros_like(found))
