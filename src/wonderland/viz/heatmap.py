"""A table of numbers as shades."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from ..errors import ShapeError
from .plot import STYLE

SHADE = "#0264a0"  # of the largest share; others are as much more transparent, on light and dark pages
LONGEST = 18  # characters of a name
OWN_STYLE = """
.wl-heat .cell { stroke: #e2e8f0; stroke-width: 0.6; } .wl-heat .count { text-anchor: middle; }
.wl-heat .strong { fill: #ffffff; }
"""


def heatmap(
    values: Any,
    *,
    shares: Any = None,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    title: str = "",
    description: str = "",
    x_label: str = "",
    y_label: str = "",
) -> str:
    """A matrix (r, c) as the text of an SVG picture: each number on a shade of its size.

    >>> svg = heatmap([[8, 1], [0, 7]], rows=["cat", "dog"], columns=["cat", "dog"], title="taken for")
    >>> svg.count('class="cell"')
    4

    `shares` (r, c), numbers from 0 to 1, say how dark the cells are; by default the values divided by the largest.
    Names are written beside the rows and below the columns, slanted if they are long.
    """
    table = np.asarray(values)
    if table.ndim != 2 or not table.size:
        raise ShapeError(f"heatmap: values of shape {table.shape}.", "a matrix (rows, columns), not empty")
    if shares is None:
        sizes = np.abs(np.nan_to_num(table.astype(np.float64)))
        shares = sizes / (sizes.max() or 1.0)
    dark = np.nan_to_num(np.asarray(shares, np.float64)).clip(0.0, 1.0)
    if dark.shape != table.shape:
        raise ShapeError(f"heatmap: shares of shape {dark.shape} for values of shape {table.shape}.", "equal shapes")
    for names, many, what in ((rows, table.shape[0], "rows"), (columns, table.shape[1], "columns")):
        if len(names) not in (0, many):
            raise ShapeError(f"heatmap: {len(names)} names of {many} {what}.", f"{many} names, or none")

    texts = [[_text(value) for value in line] for line in table.tolist()]
    wide = max(len(text) for line in texts for text in line)
    cell = max(30.0, 8.0 + 7.2 * wide)
    short_rows, short_columns = ([shorten(name) for name in names] for names in (rows, columns))
    longest = max((len(name) for name in short_columns), default=0)
    slanted = 7.0 * longest > cell - 4
    left = 14 + (20 if y_label else 0) + 7.0 * max((len(name) for name in short_rows), default=0)
    below = (5.2 * longest + 16 if slanted else 20 if longest else 4) + (22 if x_label else 0)
    top = 46 if title else 14
    high, across = cell * table.shape[0], cell * table.shape[1]
    width, height = left + across + 16 + (14 if slanted else 0), top + high + below + 8

    extent = f'width="{width:.0f}" height="{height:.0f}"'
    spoken = escape(description or title or "table of shades")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wl-plot wl-heat" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'{extent} role="img" aria-label="{spoken}">',
        f"<title>{spoken}</title><style>{escape(STYLE + OWN_STYLE, quote=False)}</style>",
        f'<rect class="paper" {extent} rx="8" fill="#ffffff"/>',
        f'<text class="title" x="{left + across / 2:.1f}" y="28">{escape(title)}</text>' if title else "",
    ]
    for i, line in enumerate(texts):
        for j, text in enumerate(line):
            x, y, share = left + j * cell, top + i * cell, float(dark[i, j])
            who = f"{rows[i] if rows else i} → {columns[j] if columns else j}: {text}"
            kind = "count strong" if share > 0.55 else "count"
            lines.append(
                f'<g><title>{escape(who)}</title><rect class="cell" x="{x:.1f}" y="{y:.1f}" width="{cell:.1f}" '
                f'height="{cell:.1f}" fill="{SHADE}" fill-opacity="{share:.3g}"/>'
                f'<text class="{kind}" x="{x + cell / 2:.1f}" y="{y + cell / 2 + 4:.1f}">'
                f"{text if text != '0' else ''}</text></g>"
            )
    for i, name in enumerate(short_rows):
        lines.append(f'<text class="y" x="{left - 7:.1f}" y="{top + (i + 0.5) * cell + 4:.1f}">{escape(name)}</text>')
    for j, name in enumerate(short_columns):
        x, y = left + (j + 0.5) * cell, top + high + 16
        place = f'class="x" x="{x:.1f}" y="{y:.1f}"'
        if slanted:
            place = f'class="y" transform="translate({x + 6:.1f} {y - 2:.1f}) rotate(-45)"'
        lines.append(f"<text {place}>{escape(name)}</text>")
    if x_label:
        lines.append(f'<text class="x" x="{left + across / 2:.1f}" y="{height - 9:.1f}">{escape(x_label)}</text>')
    if y_label:
        place = f'transform="translate(17 {top + high / 2:.1f}) rotate(-90)"'
        lines.append(f'<text class="x" {place}>{escape(y_label)}</text>')
    return "\n".join(line for line in [*lines, "</svg>"] if line) + "\n"


def shorten(name: str) -> str:
    """A name with at most `LONGEST` characters.

    >>> shorten("a name that is far too long")
    'a name that is fa…'
    """
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _text(value: Any) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3g}"
