"""The pictures of a report as data: plots and tables of shades (`wl.viz`), and images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..core.typing import Array, ArrayLike
from ..graphs import Graph
from ..graphs.drawing import drawing
from ..viz.heatmap import Heat
from ..viz.histogram import binned
from ..viz.marks import Drawing
from ..viz.plot import Bars, Plot
from ..viz.ranking import Ranking

SQUARE = (400, 370)
SMALL = (300, 170)


@dataclass(frozen=True)
class Image:
    """Pixels (h, w, 1 or 3), bytes, with what is to be said of them."""

    title: str
    pixels: Array


@dataclass(frozen=True)
class Network:
    """A graph to be drawn: the classes of nodes, what was predicted of them, words beside them, weights of edges."""

    title: str
    graph: Graph
    true: Array | None = None
    predicted: Array | None = None
    words: Sequence[str] | None = None
    weights: Array | None = None
    names: Sequence[str] | None = None
    size: tuple[int, int] = (880, 620)

    def drawing(self) -> Drawing:
        """The picture as marks."""
        return drawing(
            self.graph,
            self.true,
            self.predicted,
            self.weights,
            self.words,
            self.names,
            size=self.size,
        )


Picture = Plot | Heat | Ranking | Image | Network


@dataclass
class Section:
    """A part of the page: its heading, its HTML, and pictures by the name of the PNG file that shows them."""

    title: str
    html: str
    pictures: dict[str, list[Picture]] = field(default_factory=dict)


def histogram_of(title: str, values: ArrayLike, *, size: tuple[int, int] = SMALL, x_label: str = "") -> Plot:
    """A histogram of the finite ones of some values, of which there must be one; few values have few bins.

    >>> histogram_of("weights", [1.0, 2.0, 2.0]).shapes[0].heights.tolist()
    [1, 0, 0, 0, 2]
    """
    counts, edges = binned(values, int(np.clip(2 * np.sqrt(np.size(values)), 5, 30)))
    return Plot(title, [Bars(edges, counts)], x_label=x_label, size=size)
