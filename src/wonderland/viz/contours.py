"""Paths of points over the level lines of a function of two variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ..core.errors import InputError, ShapeError
from ..core.typing import Array, ArrayLike
from ..storage.svg import SVG
from .plot import PALETTE, Curve, plot

GREY = "#cbd5e1"
Edge = tuple[int, int, str]  # of a grid: from which point, and which way


def level_lines(x: Array, y: Array, z: Array, level: float) -> list[Array]:
    """The lines z = level on a grid, as arrays of points (k, 2); z has shape (len(y), len(x)).

    >>> lines = level_lines([0.0, 1.0], [0.0, 1.0], [[0.0, 1.0], [0.0, 1.0]], 0.25)
    >>> [line.tolist() for line in lines]
    [[[0.25, 0.0], [0.25, 1.0]]]
    """
    x, y, z = (np.asarray(v, float) for v in (x, y, z))
    if z.shape != (len(y), len(x)):
        raise ShapeError(f"level_lines: z has shape {z.shape} for {len(x)} x and {len(y)} y.", "z of shape (y, x)")
    above = z > level
    links: dict[Edge, list[Edge]] = {}
    for i in range(len(y) - 1):
        for j in range(len(x) - 1):
            corners = above[i : i + 2, j : j + 2]
            if corners.all() or not corners.any() or not np.isfinite(z[i : i + 2, j : j + 2]).all():
                continue
            # the edges of the cell that the line crosses, around it: bottom, right, top, left
            edges = [(i, j, "x"), (i, j + 1, "y"), (i + 1, j, "x"), (i, j, "y")]
            ends = [(corners[0, 0], corners[0, 1]), (corners[0, 1], corners[1, 1])]
            ends += [(corners[1, 0], corners[1, 1]), (corners[0, 0], corners[1, 0])]
            crossed = [edge for edge, (a, b) in zip(edges, ends, strict=True) if a != b]
            for a, b in zip(crossed[::2], crossed[1::2], strict=True):
                links.setdefault(a, []).append(b)
                links.setdefault(b, []).append(a)

    def place(edge: Edge) -> tuple[float, float]:
        i, j, way = edge
        k, m = (i, j + 1) if way == "x" else (i + 1, j)
        share = (level - z[i, j]) / (z[k, m] - z[i, j])
        return float(x[j] + share * (x[m] - x[j])), float(y[i] + share * (y[k] - y[i]))

    lines = []
    for start in sorted(links, key=lambda edge: len(links[edge])):  # open lines from their ends first
        while links[start]:
            line = [start]
            while links[line[-1]]:
                following = links[line[-1]].pop()
                links[following].remove(line[-1])
                line.append(following)
            lines.append(np.array([place(edge) for edge in line]))
    return lines


def plot_paths(
    f: Callable[[Array, Array], ArrayLike],
    paths: Iterable[ArrayLike],
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    *,
    levels: int = 12,
    resolution: int = 60,
    title: str = "",
    labels: Iterable[str] = (),
) -> SVG:
    """Paths (steps, 2), or many at once (steps, n, 2), over the level lines of f(x, y), as the text of an SVG picture.

    >>> import wonderland as wl
    >>> path = wl.optim.gradient_descent(lambda x: x[0] ** 2 + 4 * x[1] ** 2, [2.0, 1.0], lr=0.1, steps=20)
    >>> picture = wl.viz.plot_paths(lambda x, y: x**2 + 4 * y**2, [path], (-2.5, 2.5), (-1.5, 1.5))
    >>> picture.startswith("<svg")
    True

    f takes two arrays of one shape. A path ends with a dot. Book, section 2.3.
    """
    found: list[Array] = []
    for path in paths:
        points = np.asarray(path, float)
        if points.ndim not in (2, 3) or points.shape[-1] != 2:
            raise ShapeError(f"plot_paths: a path has shape {points.shape}.", "(steps, 2) or (steps, n, 2)")
        found += [points] if points.ndim == 2 else list(np.moveaxis(points, 1, 0))
    if not (x_range[0] < x_range[1] and y_range[0] < y_range[1]):
        raise InputError(f"plot_paths: the ranges {x_range} and {y_range}.", "ranges from low to high")
    x, y = np.linspace(*x_range, resolution), np.linspace(*y_range, resolution)
    z = np.asarray(f(*np.meshgrid(x, y)), float)
    curves = []
    for level in np.quantile(z[np.isfinite(z)], np.linspace(0.02, 0.98, levels)) if np.isfinite(z).any() else ():
        for line in level_lines(x, y, z, float(level)):
            curves.append(Curve(line[:, 0], line[:, 1], colour=GREY))
    names = [*labels, *[""] * len(found)]
    inside = [np.clip(p, -1e9, 1e9) for p in found]
    for k, p in enumerate(inside):
        colour = PALETTE[k % len(PALETTE)]
        curves += [
            Curve(p[:, 0], p[:, 1], names[k], colour=colour),
            Curve(p[-1:, 0], p[-1:, 1], dots=True, colour=colour),
        ]
    return plot(curves, title=title, x_label="x1", y_label="x2", x_range=x_range, y_range=y_range)
