"""What vectors of positions tell: how alike they are, and whether the place is linear in them. Notes, 5.7.1."""

from __future__ import annotations

import numpy as np

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.typing import Array, ArrayLike
from ...storage.svg import SVG
from ...viz.heatmap import heatmap
from ..attention.absolute_positions import AbsolutePositions

__all__ = ["position_error", "position_similarity", "similarity_picture"]


def position_similarity(positions: AbsolutePositions | ArrayLike, n: int | None = None) -> Array:
    r"""\(\cos(s_i, s_j)\) of the vectors of positions: (n, n). Notes, section 5.7.1.

    >>> import wonderland as wl
    >>> similar = wl.nn.position_similarity(wl.nn.SinusoidalPositions(64), n=32)
    >>> bool(similar[5, 6] > similar[5, 9]), similar.shape
    (True, (32, 32))

    `positions` are a layer, of which the first n places are taken, or vectors (n, e).
    """
    table = _table("position_similarity", positions, n)
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    unit = table / np.where(lengths == 0, 1.0, lengths)
    return unit @ unit.T


def similarity_picture(positions: AbsolutePositions | ArrayLike, n: int | None = None, title: str = "") -> SVG:
    """`position_similarity` as a table of shades, the text of an SVG picture.

    >>> import wonderland as wl
    >>> wl.nn.similarity_picture(wl.nn.SinusoidalPositions(8), n=6).count('class="cell"')
    36
    """
    similar = position_similarity(positions, n)
    names = [str(i) for i in range(len(similar))]
    shares = np.clip(similar, 0.0, 1.0)
    heading = title or "similarity of positions"
    return heatmap(np.round(similar, 2), shares=shares, rows=names, columns=names, title=heading)


def position_error(positions: AbsolutePositions | ArrayLike, n: int | None = None) -> float:
    r"""\(\frac{1}{n}\sum_i |i - (s_i w + b)|\), the mean error of a linear regression of the place. Notes, 5.7.1.

    >>> import wonderland as wl
    >>> wl.nn.position_error(wl.nn.SinusoidalPositions(64), n=512) < 1e-3
    True

    w and b are those of least squares over the same vectors. Vectors that carry the order well have a small error; as
    many features as places would always do.
    """
    table = _table("position_error", positions, n)
    inputs = np.concatenate([table, np.ones((len(table), 1))], axis=1)
    places = np.arange(len(table), dtype=np.float64)
    weights = np.linalg.lstsq(inputs, places, rcond=None)[0]
    return float(np.abs(inputs @ weights - places).mean())


def _table(name: str, positions: AbsolutePositions | ArrayLike, n: int | None) -> Array:
    if isinstance(positions, AbsolutePositions):
        if n is None:
            n = positions.max_length
        if n is None:
            raise InputError(f"{name}: how many places of {positions._describe()}?", "n=...")
        places = positions.checked_places(arrays.zeros((as_int(name, "n", n, 1), 1)), None)
        found = np.asarray(positions.encoding(places), np.float64)
    else:
        found = np.asarray(arrays.asarray(positions), np.float64)[:n]
    if found.ndim != 2 or not found.size:
        raise ShapeError(f"{name}: vectors of shape {found.shape}.", "(n, e)")
    return found
