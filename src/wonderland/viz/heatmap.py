"""A table of numbers as shades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import ShapeError
from ..core.typing import ArrayLike
from ..storage.svg import SVG
from .axes import TITLE, TITLE_LINE
from .extents import text_width, wrapped
from .marks import PLOT_LOOKS, Drawing, Looks, group, rect, shortened, text

SHADE = "#0264a0"  # of the largest share; others are as much more transparent, on light and dark pages
LONGEST = 18  # characters of a name
SLOPE = 0.72  # how much of the length of a slanted text it goes across, and down
HEAT_LOOKS: Looks = {
    ".cell": {"stroke": "#e2e8f0", "stroke-width": "0.6"},
    ".count": {"text-anchor": "middle"},
    ".strong": {"fill": "#ffffff"},
}


def heatmap(
    values: ArrayLike,
    *,
    shares: ArrayLike | None = None,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    title: str = "",
    description: str = "",
    x_label: str = "",
    y_label: str = "",
) -> SVG:
    """A matrix (r, c) as the text of an SVG picture: each number on a shade of its size.

    >>> svg = heatmap([[8, 1], [0, 7]], rows=["cat", "dog"], columns=["cat", "dog"], title="taken for")
    >>> svg.count('class="cell"')
    4

    `shares` (r, c), numbers from 0 to 1, say how dark the cells are; by default the values divided by the largest.
    Names are written beside the rows and below the columns, slanted if they are long.
    """
    spoken = description or title or "table of shades"
    return Heat(spoken, values, shares, rows, x_label, y_label, columns).drawing(title).svg()


@dataclass(frozen=True)
class Heat:
    """Numbers on shades, and what they show in a line. Columns have the names of the rows unless they are given."""

    title: str
    counts: Any
    shares: Any
    names: Sequence[str] = ()
    x_label: str = ""
    y_label: str = ""
    columns: Sequence[str] | None = None

    def drawing(self, heading: str = "") -> Drawing:
        """The table as marks; a heading stands inside, the title beside it."""
        rows, columns, x_label, y_label = self.names, self.columns, self.x_label, self.y_label
        columns = rows if columns is None else columns
        table = np.asarray(self.counts)
        if table.ndim != 2 or not table.size:
            raise ShapeError(f"heatmap: values of shape {table.shape}.", "a matrix (rows, columns), not empty")
        shares = self.shares
        if shares is None:
            sizes = np.abs(np.nan_to_num(table.astype(np.float64)))
            shares = sizes / (sizes.max() or 1.0)
        dark = np.nan_to_num(np.asarray(shares, np.float64)).clip(0.0, 1.0)
        if dark.shape != table.shape:
            raise ShapeError(
                f"heatmap: shares of shape {dark.shape} for values of shape {table.shape}.", "equal shapes"
            )
        for names, many, what in ((rows, table.shape[0], "rows"), (columns, table.shape[1], "columns")):
            if len(names) not in (0, many):
                raise ShapeError(f"heatmap: {len(names)} names of {many} {what}.", f"{many} names, or none")

        texts = [[_text(value) for value in line] for line in table.tolist()]
        cell = max(30.0, 8.0 + max(text_width(words) for line in texts for words in line))
        short_rows, short_columns = ([shortened(name, LONGEST) for name in names] for names in (rows, columns))
        high, across = cell * table.shape[0], cell * table.shape[1]
        longest = max((text_width(name) for name in short_columns), default=0.0)
        slanted = longest > cell - 4
        left = 14 + (20 if y_label else 0) + max((text_width(name) for name in short_rows), default=0.0)
        if slanted:  # the names of the first columns reach to the left
            reach = (SLOPE * text_width(name) - (j + 0.5) * cell for j, name in enumerate(short_columns))
            left = max(left, max(reach) + 10 + (20 if y_label else 0))
        left = max(left, text_width(x_label) / 2 - across / 2 + 4)
        below = (SLOPE * longest + 22 if slanted else 20 if longest else 4) + (22 if x_label else 0)
        right = max(16.0, text_width(x_label) / 2 - across / 2 + 4)
        width = left + across + right
        lines = wrapped(heading, width - 24, TITLE, bold=True)
        top = 27 + TITLE_LINE * len(lines) if lines else 14.0
        # the label of the rows may be longer than the table is high
        top = max(top, text_width(y_label) / 2 - high / 2 + 4)
        below = max(below, text_width(y_label) / 2 - high / 2 + (26 if x_label else 4))
        height = top + high + below + 8

        marks = [text("title", width / 2, 28 + TITLE_LINE * i, part) for i, part in enumerate(lines)]
        for i, line in enumerate(texts):
            for j, words in enumerate(line):
                x, y, share = left + j * cell, top + i * cell, float(dark[i, j])
                shade = rect("cell", x, y, cell, cell, fill=SHADE, fill_opacity=f"{share:.3g}")
                kind = "count strong" if share > 0.55 else "count"
                count = text(kind, x + cell / 2, y + cell / 2 + 4, words if words != "0" else "")
                marks.append(
                    group([shade, count], f"{rows[i] if rows else i} → {columns[j] if columns else j}: {words}")
                )
        for i, name in enumerate(short_rows):
            marks.append(text("y", left - 7, top + (i + 0.5) * cell + 4, name))
        for j, name in enumerate(short_columns):
            x, y = left + (j + 0.5) * cell, top + high + 16
            marks.append(text("y", x + 6, y - 2, name, turn=-45) if slanted else text("x", x, y, name))
        if x_label:
            marks.append(text("x", left + across / 2, height - 9, x_label))
        if y_label:
            marks.append(text("x", 17, top + high / 2, y_label, turn=-90))
        looks = {"wl-plot": PLOT_LOOKS, "wl-heat": HEAT_LOOKS}
        return Drawing((width, height), marks, self.title, looks)


def _text(value: Any) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3g}"
