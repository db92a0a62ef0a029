"""Tiny images of shapes, drawn from a seed: something to look at and to learn without any file."""

from __future__ import annotations

import numpy as np

from ...core.arguments import as_int
from ...core.typing import DTypeLike
from ..generators import Seed
from ..randomness import as_generator
from .generated import Pair, _deviation

SHAPES = ("square", "disc", "triangle", "cross")


def make_shapes(
    n_samples: int = 100,
    *,
    size: int = 16,
    channels: int = 1,
    noise: float = 0.0,
    seed: Seed = 0,
    dtype: DTypeLike = np.float32,
) -> Pair:
    """Images (n, size, size, channels) in [0, 1] of a square, a disc, a triangle or a cross, and which it is.

    >>> import wonderland as wl
    >>> X, y = wl.data.make_shapes(8, size=12)
    >>> X.shape, y.tolist()
    ((8, 12, 12, 1), [0, 1, 2, 3, 0, 1, 2, 3])

    Place, size and brightness (for three channels: the colour) are drawn for each image; the classes come in turn.
    """
    name = "make_shapes"
    rng = as_generator(name, seed)
    n, size = as_int(name, "n_samples", n_samples, least=1), as_int(name, "size", size, least=8)
    channels = as_int(name, "channels", channels, least=1)
    y = np.arange(n) % len(SHAPES)
    radius = rng.uniform(0.2, 0.35, (n, 1, 1)) * size
    row, column = (rng.uniform(radius, size - 1 - radius) for _ in range(2))
    down = np.arange(size)[None, :, None] - row  # (n, h, 1), from the centre
    right = np.arange(size)[None, None, :] - column  # (n, 1, w)
    inside = np.stack(
        [
            np.maximum(abs(down), abs(right)) <= radius,
            down**2 + right**2 <= radius**2,
            (abs(down) <= radius) & (abs(right) <= (down + radius) / 2),
            (np.minimum(abs(down), abs(right)) <= radius / 3) & (np.maximum(abs(down), abs(right)) <= radius),
        ]
    )[y, np.arange(n)]  # (n, h, w)
    colour = rng.uniform(0.5, 1.0, (n, 1, 1, channels))
    X = inside[..., None] * colour
    X = np.clip(X + _deviation(name, noise) * rng.standard_normal(X.shape), 0, 1)
    return X.astype(dtype), y
