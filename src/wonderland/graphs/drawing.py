"""Pictures of graphs: nodes coloured by classes or values, wrong predictions ringed, edges as strong as they matter."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.errors import InputError, ShapeError
from ..core.typing import Array, ArrayLike
from ..storage.svg import SVG
from ..viz.extents import fitted, text_width
from ..viz.marks import PLOT_LOOKS, Drawing, Looks, Mark, circle, line, polyline, rect, shortened, text
from ..viz.plot import PALETTE
from .graph import Graph
from .layout import spring_layout

LIGHT, DARK = (0xDB, 0xEA, 0xFE), (0x02, 0x4A, 0x86)  # of the smallest and the largest value
GREY, WRONG = "#94a3b8", "#dc2626"
NETWORK_LOOKS: Looks = {
    ".edge": {"fill": "none", "stroke-linecap": "round"},
    ".inside": {"font-size": "10px", "font-weight": "600", "fill": "#ffffff", "text-anchor": "middle"},
    ".on-light": {"fill": "#0f172a"},
    ".beside": {"font-size": "11px", "text-anchor": "middle"},
    ".key": {"font-size": "12px"},
}


def draw(
    graph: Graph,
    colours: ArrayLike | None = None,
    *,
    predictions: ArrayLike | None = None,
    edge_values: ArrayLike | None = None,
    labels: bool | Sequence[object] | None = None,
    names: Sequence[str] | None = None,
    places: ArrayLike | None = None,
    title: str = "",
    size: tuple[int, int] = (640, 520),
) -> SVG:
    """A graph as the text of an SVG picture.

    >>> import wonderland as wl
    >>> svg = wl.graphs.draw(wl.graphs.path_graph(3), colours=[0, 1, 1], labels=True)
    >>> svg.count("<circle"), svg.startswith("<svg")
    (3, True)

    - `colours` (n,): integers or texts are classes, each with its colour and a line of the legend (called `names`, in
      sorted order); floats are values, from light to dark. By default the labels of the nodes, if they are classes.
    - `predictions` (n,): classes that fill the nodes; where they differ from the labels there is a red ring.
    - `edge_values` (m,), such as attention weights: the larger, the wider and darker. By default the weights.
    - `labels`: True for the numbers of the nodes, or a text for each.
    - `places` (n, 2), by default those of `spring_layout`.

    Edges of a directed graph have an arrow at the node that reads.
    """
    return drawing(graph, colours, predictions, edge_values, labels, names, places, title, size).svg()


def drawing(
    graph: Graph,
    colours: ArrayLike | None = None,
    predictions: ArrayLike | None = None,
    edge_values: ArrayLike | None = None,
    labels: bool | Sequence[object] | None = None,
    names: Sequence[str] | None = None,
    places: ArrayLike | None = None,
    title: str = "",
    size: tuple[int, int] = (640, 520),
) -> Drawing:
    """The picture of `draw` as marks, for a report."""
    n = graph.n
    if colours is None and graph.y is not None and graph.y_of == "nodes" and graph.y.ndim == 1:
        colours = np.asarray(graph.y)
    truth = None if colours is None else _per_node("colours", colours, n)
    shown = truth if predictions is None else _per_node("predictions", predictions, n)
    fills, key = _fills(shown, names, truth, n)
    wrong = np.zeros(n, bool) if predictions is None or truth is None else np.asarray(shown != truth)
    words = _words(labels, n)
    at = spring_layout(graph) if places is None else np.asarray(places, np.float64)
    if at.shape != (n, 2):
        raise ShapeError(f"draw: places of shape {at.shape} for {n} nodes.", f"({n}, 2)")
    radius = _radius(n)
    beside = any(len(word) > 3 for word in words) or (bool(words) and radius < 8)
    points = _on_paper(at, size, bool(title), key, radius, beside)
    marks = [text("title", size[0] / 2, 28, fitted(title, size[0] - 24, 15, bold=True))] if title else []
    marks += _edges(graph, points, radius, edge_values)
    spots = _spots(words, points, radius, size, key, bool(title)) if beside else {}
    for i, (x, y) in enumerate(points.tolist()):
        said = f"{words[i] or i}" if words else str(i)
        said += f": {shown[i]}" if shown is not None else ""
        said += f", not {truth[i]}" if wrong[i] and truth is not None else ""
        stroke, width = (WRONG, 2.5) if wrong[i] else ("#ffffff", 1.2)
        marks.append(circle(x, y, radius, said, fill=fills[i], stroke=stroke, stroke_width=width))
        if words and words[i] and not beside:
            marks.append(text("inside on-light" if _is_light(fills[i]) else "inside", x, y + 3.6, words[i]))
    for word, x, y, wide in spots.values():  # paper behind each, or edges would cross it out
        marks += [
            rect("", x - wide / 2, y - 9.5, wide, 12, fill="#ffffff", fill_opacity="0.8"),
            text("beside", x, y, word),
        ]
    marks += _legend(key, size, bool(wrong.any()))
    spoken = title or f"a graph with {n} nodes and {graph.num_edges} edges"
    return Drawing(size, marks, spoken, {"wl-plot": PLOT_LOOKS, "wl-network": NETWORK_LOOKS})


Key = list[tuple[str, str]]  # lines of the legend: colours and names


def _per_node(what: str, values: ArrayLike, n: int) -> Array:
    found = np.asarray(values)
    if found.shape != (n,):
        raise ShapeError(f"draw: {what} of shape {found.shape} for {n} nodes.", f"one per node: ({n},)")
    return found


def _words(labels: bool | Sequence[object] | None, n: int) -> list[str]:
    if labels is None or labels is False:
        return []
    words = [str(i) for i in range(n)] if labels is True else [str(word) for word in labels]
    if len(words) != n:
        raise ShapeError(f"draw: {len(words)} labels for {n} nodes.", "one per node")
    return words


def _fills(shown: Array | None, names: Sequence[str] | None, truth: Array | None, count: int) -> tuple[list[str], Key]:
    """The colour of each node, and the legend."""
    if shown is None:
        return [PALETTE[0]] * count, []
    if shown.dtype.kind == "f":
        good = np.isfinite(shown)
        low, high = (float(shown[good].min()), float(shown[good].max())) if good.any() else (0.0, 1.0)
        share = np.where(good, (np.where(good, shown, low) - low) / ((high - low) or 1.0), 0.0)
        fills = [shade(float(s)) if g else "#e2e8f0" for s, g in zip(share, good, strict=True)]
        steps = [0.0, 0.5, 1.0] if high > low else [0.0]
        return fills, [(shade(s), f"{low + s * (high - low):.3g}") for s in steps]
    kinds = np.unique(shown if truth is None or truth.dtype.kind == "f" else np.concatenate([shown, truth]))
    called = [str(kind) for kind in kinds] if names is None else list(names)
    if len(called) < len(kinds):
        raise InputError(f"draw: {len(called)} names for {len(kinds)} classes.", "a name per class")
    paints = [PALETTE[k % len(PALETTE)] for k in range(len(kinds))]
    index = np.searchsorted(kinds, shown)
    return [paints[k] for k in index], list(zip(paints, called, strict=False))


def shade(share: float) -> str:
    """From light to dark.

    >>> shade(0.0), shade(1.0)
    ('#dbeafe', '#024a86')
    """
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(LIGHT, DARK, strict=True))


def _spots(
    words: Sequence[str], points: Array, radius: float, size: tuple[int, int], key: Key, titled: bool
) -> dict[int, tuple[str, float, float, float]]:
    """Where words stand and how wide they are, by node: below, above or beside it; what has no room is left out, and
    is said when the node is pointed at."""
    right = size[0] - (_key_width(key) if key else 0) - 2
    taken = np.empty((0, 4))
    found = {}
    for i, (x, y) in enumerate(points.tolist()):
        if not words[i]:
            continue
        word = shortened(words[i], 16)
        wide = text_width(word, 11) + 4
        side = radius + 4 + wide / 2
        for at in ((x, y + radius + 12), (x, y - radius - 5), (x + side, y + 4), (x - side, y + 4)):
            box = np.array([at[0] - wide / 2, at[1] - 10, at[0] + wide / 2, at[1] + 4])
            inside = box[0] >= 2 and box[1] >= (36 if titled else 2) and box[2] <= right and box[3] <= size[1] - 2
            if inside and not ((taken[:, :2] < box[2:]) & (box[:2] < taken[:, 2:])).all(axis=1).any():
                taken = np.vstack([taken, box])
                found[i] = (word, *at, wide)
                break
    return found


def _is_light(colour: str) -> bool:
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return 0.3 * red + 0.59 * green + 0.11 * blue > 150


def _radius(n: int) -> float:
    return float(np.clip(60 / math.sqrt(max(n, 1)), 3.0, 12.0))


def _on_paper(at: Array, size: tuple[int, int], titled: bool, key: Key, radius: float, beside: bool) -> Array:
    """Places in pixels, with one scale for both axes, in the middle of what the title and the legend leave."""
    margin = radius + 14
    left, right = margin, size[0] - margin - (_key_width(key) if key else 0)
    top, bottom = margin + (34 if titled else 0), size[1] - margin - (14 if beside else 0)
    if not len(at):
        return at
    low, extent = at.min(axis=0), np.ptp(at, axis=0)
    scales = [room / e for room, e in ((right - left, extent[0]), (bottom - top, extent[1])) if e > 1e-9]
    # two nodes need not be a page apart
    scale = min([*scales, 160 / max(float(extent.max()), 1e-9) * math.sqrt(len(at))]) if scales else 1.0
    middle = np.array([(left + right) / 2, (top + bottom) / 2])
    return (at - low - extent / 2) * scale * [1, -1] + middle


def _key_width(key: Key) -> float:
    return 26 + max(text_width(shortened(name, 18)) for name in ("wrong", *(name for _, name in key)))


def _legend(key: Key, size: tuple[int, int], wrong: bool) -> list[Mark]:
    lines: list[tuple[str, str]] = key[:14]
    if not lines:
        return []
    marks = []
    x = size[0] - _key_width(key)
    top = size[1] / 2 - 11 * len(lines)
    for k, (paint, name) in enumerate(lines):
        y = top + 22 * k
        marks += [
            rect("", x, y, 12, 12, fill=paint),
            text("key", x + 18, y + 10.5, shortened(name, 18)),
        ]
    if wrong:
        y = top + 22 * len(lines)
        marks += [
            rect("", x + 1, y + 1, 10, 10, fill="#ffffff", stroke=WRONG, stroke_width=2),
            text("key", x + 18, y + 10.5, "wrong"),
        ]
    return marks


def _edges(graph: Graph, points: Array, radius: float, values: ArrayLike | None) -> list[Mark]:
    rows, cols = graph.ends()
    m = len(rows)
    if values is None and graph.weight is not None:
        values = np.asarray(graph.weight)
    strength = np.ones(m)
    if values is not None:
        strength = np.abs(np.asarray(values, np.float64))
        if strength.shape != (m,):
            raise ShapeError(f"draw: edge_values of shape {strength.shape} for {m} edges.", f"one per edge: ({m},)")
        strength = np.nan_to_num(strength) / (np.nan_to_num(strength).max(initial=0.0) or 1.0)
    crowd = float(np.clip(40 / math.sqrt(m + 1), 0.35, 1.0))
    there = {(i, j): e for e, (i, j) in enumerate(zip(rows.tolist(), cols.tolist(), strict=True))}
    marks = []
    for e in np.argsort(strength, kind="stable"):  # strong ones above
        i, j, s = int(rows[e]), int(cols[e]), float(strength[e])
        if i == j:
            marks.append(_loop(points[i], radius, s, crowd, values is not None))
            continue
        mirror = there.get((j, i))
        twice = mirror is not None and abs(strength[mirror] - s) > 1e-6  # both directions, and they differ
        if mirror is not None and not twice and i > j:
            continue
        marks += _line(points[i], points[j], radius, s, crowd, values is not None, mirror is None, twice)
    return marks


def _paint(strength: float, crowd: float, weighted: bool) -> dict[str, str | float]:
    if not weighted:
        return {"stroke": GREY, "stroke_width": 1.4 * crowd}
    tone = 0.25 + 0.75 * strength  # the weakest edges can still be seen
    light, dark = (0xE8, 0xED, 0xF3), (0x1E, 0x29, 0x3B)
    stroke = "#" + "".join(f"{round(a + tone * (b - a)):02x}" for a, b in zip(light, dark, strict=True))
    return {"stroke": stroke, "stroke_width": (0.6 + 3.4 * strength) * max(crowd, 0.6)}


def _line(
    to: Array, start: Array, radius: float, strength: float, crowd: float, weighted: bool, arrow: bool, aside: bool
) -> list[Mark]:
    along = to - start
    length = float(np.hypot(*along))
    if length < 1e-9:
        return []
    along = along / length
    normal = np.array([-along[1], along[0]])
    move = 2.4 * normal if aside else np.zeros(2)
    paint = _paint(strength, crowd, weighted)
    tip = to - along * (radius + 1) + move
    a, b = start + move, tip if arrow or aside else to
    marks = [line("edge", float(a[0]), float(a[1]), float(b[0]), float(b[1]), **paint)]
    if (arrow or aside) and length > 2 * radius:
        size = min(6.0, 0.3 * length)
        wings = np.stack([tip - size * along + 0.5 * size * normal, tip, tip - size * along - 0.5 * size * normal])
        marks.append(polyline("edge", wings, **paint))
    return marks


def _loop(at: Array, radius: float, strength: float, crowd: float, weighted: bool) -> Mark:
    """A ring of lines above a node; circles are nodes."""
    angles = np.linspace(0, 2 * np.pi, 17)
    ring = at + [0, -1.5 * radius] + radius * 0.8 * np.stack([np.sin(angles), np.cos(angles)], axis=1)
    return polyline("edge", ring, **_paint(strength, crowd, weighted))
