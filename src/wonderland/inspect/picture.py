"""The picture of an explanation: the time of every step as a bar, and beside it who occupies the arena meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..engines.native.memory import PLANNED, lifetimes
from ..storage.svg import SVG
from ..viz.axes import horizontal_ticks, ticks
from ..viz.marks import PLOT_LOOKS, Drawing, Looks, Mark, Paint, line, rect, shortened, text
from ..viz.plot import PALETTE

if TYPE_CHECKING:
    from .explanation import Explanation
    from .listing import Line

ROW, TOP, MARGIN = 17.0, 92.0, 16.0
NAMES, BARS, ARENA, GAP = 400.0, 330.0, 300.0, 34.0
KINDS = ("matrix product", "kernel", "convolution", "NumPy", "attention", "copy")
COLOURS = dict(zip(KINDS, PALETTE[: len(KINDS)], strict=True))
MARK: dict[str, Paint] = {"stroke": "#0f172a", "stroke_width": 2.5}
STEP_LOOKS: Looks = {
    "text": {"font-size": "11px"},
    ".title": {"text-anchor": "start", "font-size": "15px"},
    ".head": {"font-weight": "600", "fill": "#0f172a"},
    ".bound": {"text-anchor": "end", "fill": "#64748b"},
    ".block": {"fill": "#64748b", "font-style": "italic"},
    ".life": {"stroke": "#ffffff", "stroke-width": "0.7", "fill-opacity": "0.75"},
}


def picture(told: Explanation) -> SVG:
    """The text of an SVG: one row for every step, in order."""
    rows, places = _rows(told)
    bottom = TOP + ROW * rows
    size = MARGIN + NAMES + BARS + GAP + ARENA + MARGIN, bottom + 52
    title = f"{told.name}: {told.summary}"
    marks = [
        text("title", MARGIN, 28, title),
        *_legend(told),
        *_bars(told, places, bottom),
        *_arena(told, places, bottom),
    ]
    return Drawing(size, marks, title, {"wl-plot": PLOT_LOOKS, "wl-steps": STEP_LOOKS}).svg()


def _rows(told: Explanation) -> tuple[int, list[float]]:
    """How many rows there are, and where that of each step begins: loops have a row for their name."""
    places: list[float] = []
    rows = 0
    for blocks, _ in told.rows():
        rows += 1
        if blocks is None:
            places.append(TOP + ROW * (rows - 1))
    return rows, places


def _legend(told: Explanation) -> list[Mark]:
    found, x = [], MARGIN
    for kind in [k for k in KINDS if any(step.kind == k for step in told.steps)]:
        found += [rect("", x, 42, 12, 12, rx=3, fill=COLOURS[kind]), text("", x + 17, 52, kind)]
        x += 36 + 6.2 * len(kind)
    if told.times is not None:
        share = text("", x + 13, 52, "share of its bound, by the scale above the bars")
        found += [line("", x + 5, 42, x + 5, 54, **MARK), share]
    return found


def _scale(most: float) -> tuple[float, str]:
    """A unit for seconds."""
    return (1e3, "ms") if most >= 1e-3 else (1e6, "µs")


def _bars(told: Explanation, places: list[float], bottom: float) -> list[Mark]:
    left = MARGIN + NAMES
    if told.times is None:
        factor, unit, values = 1e-6, "MB read and written", [float(step.bytes) for step in told.steps]
    else:
        values = [step.seconds or 0.0 for step in told.steps]
        factor, unit = _scale(max(values, default=0.0))
        unit = f"{unit} in a call"
    most = max([*values, 1e-12]) * factor

    def across(value: float) -> float:
        return left + value / most * BARS

    marks = _axis(across, most, unit, bottom)
    if told.times is not None:
        marks += [text("x", left + share * BARS, TOP - 6, f"{share:.0%}") for share in (0, 0.5, 1)]
    steps = iter(zip(told.steps, places, values, strict=True))
    for row, (block, depth) in enumerate(told.rows()):
        y = TOP + ROW * row
        indent = MARGIN + 10 * depth + 22
        if block is not None:
            marks.append(text("block", indent, y + 12.5, block))
            continue
        step, _, value = next(steps)
        room = int((NAMES - 94 - 10 * depth) / 5.9)
        width = max(across(value * factor) - left, 0.8)
        about = f"{step.number}: {step.what}" + (f" ({step.where})" if step.where else "") + _bound(step)
        marks += [
            text("y", MARGIN + 16, y + 12.5, str(step.number)),
            text("", indent, y + 12.5, shortened(step.what, room)),
            text("bound", left - 6, y + 12.5, step.bound),
            rect("bar", left, y + 2, width, ROW - 4, about, rx=2, fill=COLOURS[step.kind]),
        ]
        if step.share is not None and step.share >= 0.005:
            x = left + min(step.share, 1.0) * BARS
            marks.append(line("mark", x, y + 1, x, y + ROW - 1, **MARK))
    return marks


def _bound(step: Line) -> str:
    share = "" if step.share is None else f", {step.share:.0%} of it"
    return f"; bound: {step.bound}{share}"


def _axis(across: Callable[[float], float], most: float, unit: str, bottom: float) -> list[Mark]:
    marks = horizontal_ticks(ticks(0.0, most, 5), across, TOP, bottom, 15)
    return [*marks, text("x", (across(0.0) + across(most)) / 2, bottom + 32, unit)]


def _arena(told: Explanation, places: list[float], bottom: float) -> list[Mark]:
    """Every intermediate value as a rectangle: its place in the arena, and the steps during which it lives."""
    left = MARGIN + NAMES + BARS + GAP
    size = told.program.arena_bytes
    if not size:
        return [text("head", left, TOP - 12, "no memory for intermediate values")]
    factor, unit = (1e-6, "MB") if size >= 1e5 else (1e-3, "kB")
    kinds = _makers(told)

    def across(value: float) -> float:
        return left + value / (size * factor) * ARENA

    marks = [text("head", left, TOP - 12, "what lies in the arena, and for how long")]
    marks += _axis(across, size * factor, f"{unit} of the arena", bottom)
    positions = [step.position for step in told.steps]
    for buffer, (first, last) in lifetimes(told.program.schedule).items():
        inside = [y for y, position in zip(places, positions, strict=True) if first <= position <= last]
        if buffer.kind not in PLANNED or not inside or not buffer.nbytes:
            continue
        x, width = across(buffer.offset * factor), max(buffer.nbytes / size * ARENA, 0.5)
        height = inside[-1] - inside[0] + ROW
        colour = COLOURS[kinds.get(id(buffer), "copy")]
        marks.append(rect("life", x, inside[0], width, height, f"{buffer.nbytes:,} bytes", fill=colour))
    return marks


def _makers(told: Explanation) -> dict[int, str]:
    """The kind of the step that first writes a buffer."""
    steps = told.program.schedule.steps
    kinds: dict[int, str] = {}
    for told_step in told.steps:
        for written in steps[told_step.position].writes:
            buffer = written if written.base is None else written.base  # a step of a sequence
            kinds.setdefault(id(buffer), told_step.kind)
    return kinds
