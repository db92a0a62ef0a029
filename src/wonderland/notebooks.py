"""What notebooks show: tensors as tables and pictures, modules as trees that fold, summaries and histories as tables.

All of it is HTML without scripts, and works on light and dark pages.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from .core.dtypes import is_real
from .core.tensor import VALUES, Tensor
from .core.typing import Array
from .data.transforms.preview import png_bytes, tile
from .viz.plot import Curve, plot

if TYPE_CHECKING:
    from .nn.analysis.summary import Summary
    from .nn.module.module import Module
    from .nn.module.parameter import Parameter
    from .train.history import History

SHOWN = 8  # rows and columns of a table, half of them from each end
CURVE = 24  # numbers from which on a vector is a curve
PICTURE = 12  # rows and columns from which on a matrix is a picture
IMAGE = (8, 2048)  # pixels a side that an image may have
IMAGES = 16  # of a batch that are shown
WIDEST = 320  # pixels of a picture
CELL = "padding: 1px 8px; text-align: right; font-variant-numeric: tabular-nums;"
NAME = "padding: 1px 8px; text-align: left;"
SOFT = "opacity: .65;"
DEEPEST = 32  # modules in modules


# --- tensors


def tensor(x: Tensor) -> str | None:
    """A table of the numbers, and a picture if they look like one; None where the text says all.

    >>> import wonderland as wl
    >>> print(tensor(wl.tensor(1.0)))
    None
    >>> tensor(wl.ones((2, 3))).count("<td")
    6
    """
    if type(x) not in VALUES or x.ndim == 0 or not x.size or not is_real(x.dtype):
        return None
    data = np.asarray(x)
    if data.dtype.kind == "V":  # bfloat16
        data = data.astype(np.float32)
    pictured = _picture(data)
    if x.ndim <= 2:
        body = _numbers(data) + pictured
    else:
        body = pictured or f"<pre>{escape(repr(x))}</pre>"
    return f"<div>{_about(x, data)}{body}</div>"


def _about(x: Tensor, data: Array) -> str:
    """Shape, dtype and range in a line."""
    words = [f"tensor {tuple(x.shape)}", str(x.dtype)]
    if data.dtype.kind in "iuf":
        finite = data[np.isfinite(data)]
        if finite.size:
            words.append(f"from {finite.min():.4g} to {finite.max():.4g}, mean {finite.mean(dtype=np.float64):.4g}")
        if finite.size < data.size:
            words.append(f"{data.size - finite.size:,} not finite")
    return f'<div style="{SOFT}">{escape(", ".join(words))}</div>'


def _numbers(data: Array) -> str:
    """A table with the ends of a vector or matrix."""
    matrix = data[None, :] if data.ndim == 1 else data
    rows, columns = _ends(matrix.shape[0]), _ends(matrix.shape[1])
    head = ["", *("…" if j is None else str(j) for j in columns)]
    lines = []
    for i in rows:
        name = "…" if i is None else "" if data.ndim == 1 else str(i)
        lines.append([name, *("…" if i is None or j is None else _number(matrix[i, j]) for j in columns)])
    return table(head, lines)


def _ends(n: int) -> list[int | None]:
    """The places that are shown, None where some are left out."""
    if n <= SHOWN:
        return list(range(n))
    return [*range(SHOWN // 2), None, *range(n - SHOWN // 2, n)]


def _number(value: np.generic) -> str:
    return f"{value:.4g}" if isinstance(value, np.floating) else str(value)


def _picture(data: Array) -> str:
    """What looks like a curve, a matrix of many numbers, an image or a batch of images."""
    if data.dtype.kind not in "iuf":
        return ""
    if data.ndim == 1:
        if len(data) < CURVE or not np.isfinite(data).any():
            return ""
        drawn = plot([Curve(np.arange(len(data)), data.astype(np.float64))], x_label="index", size=(420, 180))
        return f"<div>{drawn}</div>"
    if data.ndim == 2:
        return _image(_between_0_and_1(data)) if min(data.shape) >= PICTURE else ""
    if data.ndim == 3 and _is_image(data.shape):
        return _image(_as_pixels(data))
    if data.ndim == 4 and _is_image(data.shape[1:]):
        some = [_as_pixels(image) for image in data[:IMAGES]]
        across = math.ceil(math.sqrt(len(some)))
        grid = tile([some[i : i + across] for i in range(0, len(some), across)])
        more = f'<div style="{SOFT}">the first {len(some)} of {len(data):,}</div>' if len(data) > len(some) else ""
        return _image(grid) + more
    return ""


def _is_image(shape: Sequence[int]) -> bool:
    return shape[2] in (1, 3) and all(IMAGE[0] <= side <= IMAGE[1] for side in shape[:2])


def _as_pixels(image: Array) -> Array:
    """Bytes and numbers from 0 to 1 as they are; others, such as standardised images, brought there."""
    if image.dtype == np.uint8 or (image.dtype.kind == "f" and np.nanmin(image) >= 0 and np.nanmax(image) <= 1):
        return image
    return _between_0_and_1(image)


def _between_0_and_1(data: Array) -> Array:
    finite = np.nan_to_num(data.astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = finite.min(), finite.max()
    return (finite - low) / (high - low) if high > low else np.zeros_like(finite)


def _image(pixels: Array) -> str:
    h, w = pixels.shape[:2]
    step = max(1, -(-max(h, w) // (2 * WIDEST)))  # what would not be seen is not sent
    data = base64.b64encode(png_bytes(pixels[::step, ::step])).decode()
    zoom = max(1, WIDEST // max(h, w)) if max(h, w) < WIDEST else WIDEST / max(h, w)
    style = f"image-rendering: pixelated; width: {w * zoom:.0f}px; height: {h * zoom:.0f}px;"
    return f'<img alt="the numbers as a picture" style="{style}" src="data:image/png;base64,{data}">'


# --- modules, summaries, histories


def module(found: Module) -> str:
    """A tree that folds: settings, parameters with their shapes, and how many numbers there are.

    >>> import wonderland as wl
    >>> module(wl.nn.Sequential(wl.nn.Linear(2, 3), wl.tanh)).count("<details")
    2
    """
    return f'<div style="font-family: ui-monospace, Menlo, Consolas, monospace;">{_branch("", found, 0)}</div>'


def _branch(name: str, found: Module, depth: int) -> str:
    """A module, with its own parameters, the functions and the modules in it."""
    title = (
        f"{escape(f'{name}: ' if name else '')}<b>{escape(type(found).__name__)}</b>({escape(found.extra_repr())}) "
        f'<span style="{SOFT}">{found.num_parameters():,} parameters</span>'
    )
    inner = [f"<div>{escape(path)}: {_cell(p)}</div>" for path, p in found.named_parameters() if "." not in path]
    children = dict(found.named_children())
    for path, part in found._shown():
        if path in children and depth < DEEPEST:
            inner.append(_branch(path, children[path], depth + 1))
        else:
            inner.append(f"<div>{escape(path)}: {escape(getattr(part, '__name__', repr(part)))}</div>")
    if not inner:
        return f"<div>{title}</div>"
    indented = f'<div style="margin-left: 1.2em;">{"".join(inner)}</div>'
    return f"<details{'' if depth else ' open'}><summary>{title}</summary>{indented}</details>"


def _cell(p: Parameter) -> str:
    frozen = "" if p.trainable else ", frozen"
    return f'{p.dtype}{list(p.shape)} <span style="{SOFT}">{p.size:,}{frozen}</span>'


def summary(found: Summary) -> str:
    """The rows of a summary as a table."""
    rows = [
        [
            row.path or "(all)",
            row.kind,
            str(row.shape),
            f"{row.parameters:,}",
            "" if row.multiply_adds is None else f"{row.multiply_adds:,}",
        ]
        for row in found.rows
    ]
    rows.append(["total", "", "", f"{found.parameters:,}", f"{found.multiply_adds:,}"])
    return table(["path", "module", "output shape", "parameters", "multiply-adds"], rows, left=3)


def history(found: History) -> str | None:
    """The first, the best and the last epoch, and the losses as curves."""
    if not found.records:
        return None
    losses = [name for name in found.names() if name.endswith("loss")]
    judged = "validation_loss" if "validation_loss" in losses else losses[0] if losses else None
    chosen = [("first", found.records[0]), ("last", found.records[-1])]
    if judged is not None and any(math.isfinite(value) for value in found[judged]):
        chosen.insert(1, (f"best {judged.replace('_', ' ')}", found.best(judged)))
    rows = [
        [name.replace("_", " "), *(_value(record.get(name)) for _, record in chosen)]
        for name in ("epoch", *found.names())
    ]
    drawn = found.svg() if len(found) > 1 and losses else ""
    return f"<div>{table(['', *(title for title, _ in chosen)], rows, left=1)}{drawn}</div>"


def _value(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table of texts; the first columns stand to the left.

    >>> table(["a", "b"], [["x", "<1>"]])[-74:]
    '...;">&lt;1&gt;</td></tr></tbody></table>'
    """

    def line(cells: Sequence[str], tag: str) -> str:
        looks = [NAME if i < left else CELL for i in range(len(cells))]
        tags = ["th", *[tag] * (len(cells) - 1)]
        return "".join(f'<{t} style="{k}">{escape(c)}</{t}>' for t, k, c in zip(tags, looks, cells, strict=True))

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    top = line(head, "th")
    return f'<table style="border-collapse: collapse;"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
