"""The picture of an explanation: the time of every step as a bar, and beside it who occupies the arena meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING

from ...viz.plot import PALETTE, STYLE, number, rule, ticks
from ..memory import PLANNED, lifetimes

if TYPE_CHECKING:
    from .explain import Explanation

ROW, TOP, MARGIN = 17.0, 92.0, 16.0
NAMES, BARS, ARENA, GAP = 400.0, 330.0, 300.0, 34.0
KINDS = ("matrix product", "kernel", "convolution", "NumPy", "attention", "copy")
COLOURS = dict(zip(KINDS, PALETTE[: len(KINDS)], strict=True))
MARK = "#0f172a"
OWN_STYLE = """
.wl-steps text { font-size: 11px; } .wl-steps .title { text-anchor: start; font-size: 15px; }
.wl-steps .head { font-weight: 600; fill: #0f172a; } .wl-steps .block { fill: #64748b; font-style: italic; }
.wl-steps .life { stroke: #ffffff; stroke-width: 0.7; fill-opacity: 0.75; }
"""


def picture(told: Explanation) -> str:
    """The text of an SVG: one row for every step, in order."""
    rows, places = _rows(told)
    bottom = TOP + ROW * rows
    size = MARGIN + NAMES + BARS + GAP + ARENA + MARGIN, bottom + 52
    extent = f'width="{size[0]:.0f}" height="{size[1]:.0f}"'
    title = f"{told.name}: {told.summary}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wl-plot wl-steps" viewBox="0 0 {size[0]:.0f} {size[1]:.0f}" '
        f'{extent} role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title><style>{escape(STYLE + OWN_STYLE, quote=False)}</style>",
        f'<rect {extent} rx="8" fill="#ffffff"/>',
        f'<text class="title" x="{MARGIN:g}" y="28">{escape(title)}</text>',
        *_legend(told),
        *_bars(told, places, bottom),
        *_arena(told, places, bottom),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _rows(told: Explanation) -> tuple[int, list[float]]:
    """How many rows there are, and where that of each step begins: loops have a row for their name."""
    places: list[float] = []
    rows = 0
    for blocks, _ in told.rows():
        rows += 1
        if blocks is None:
            places.append(TOP + ROW * (rows - 1))
    return rows, places


def _legend(told: Explanation) -> list[str]:
    found, x = [], MARGIN
    for kind in [k for k in KINDS if any(line.kind == k for line in told.steps)]:
        found.append(f'<rect x="{x:.1f}" y="42" width="12" height="12" rx="3" fill="{COLOURS[kind]}"/>')
        found.append(f'<text x="{x + 17:.1f}" y="52">{kind}</text>')
        x += 36 + 6.2 * len(kind)
    if told.times is not None:
        found.append(f'<path d="M{x + 5:.1f},42 v12" stroke="{MARK}" stroke-width="2.5"/>')
        found.append(f'<text x="{x + 13:.1f}" y="52">share of the peak, by the scale above the bars</text>')
    return found


def _scale(most: float) -> tuple[float, str]:
    """A unit for seconds."""
    return (1e3, "ms") if most >= 1e-3 else (1e6, "µs")


def _bars(told: Explanation, places: list[float], bottom: float) -> list[str]:
    left = MARGIN + NAMES
    if told.times is None:
        factor, unit, values = 1e-6, "MB read and written", [float(line.bytes) for line in told.steps]
    else:
        values = [line.seconds or 0.0 for line in told.steps]
        factor, unit = _scale(max(values, default=0.0))
        unit = f"{unit} in a call"
    most = max([*values, 1e-12]) * factor

    def across(value: float) -> float:
        return left + value / most * BARS

    lines = _axis(across, most, unit, bottom)
    if told.times is not None:
        lines += [
            f'<text class="x" x="{left + share * BARS:g}" y="{TOP - 6:g}">{share:.0%}</text>' for share in (0, 0.5, 1)
        ]
    step = iter(zip(told.steps, places, values, strict=True))
    for number_of_row, (block, depth) in enumerate(told.rows()):
        y = TOP + ROW * number_of_row
        indent = MARGIN + 10 * depth
        if block is not None:
            lines.append(f'<text class="block" x="{indent + 22:g}" y="{y + 12.5:g}">{escape(block)}</text>')
            continue
        line, _, value = next(step)
        room = int((NAMES - 34 - 10 * depth) / 5.9)
        lines.append(f'<text class="y" x="{MARGIN + 16:g}" y="{y + 12.5:g}">{line.number}</text>')
        lines.append(f'<text x="{indent + 22:g}" y="{y + 12.5:g}">{escape(shortened(line.what, room))}</text>')
        width = max(across(value * factor) - left, 0.8)
        box = f'x="{left:g}" y="{y + 2:g}" width="{width:.1f}" height="{ROW - 4:g}" rx="2"'
        about = escape(f"{line.number}: {line.what}" + (f" ({line.where})" if line.where else ""))
        lines.append(f'<rect class="bar" {box} fill="{COLOURS[line.kind]}"><title>{about}</title></rect>')
        share = told.share(line)
        if share is not None and share >= 0.005:
            x = left + min(share, 1.0) * BARS
            lines.append(f'<path class="mark" d="M{x:.1f},{y + 1:g} v{ROW - 2:g}" stroke="{MARK}" stroke-width="2.5"/>')
    return lines


def _axis(across: Callable[[float], float], most: float, unit: str, bottom: float) -> list[str]:
    lines = []
    for tick in ticks(0.0, most, 5):
        lines.append(rule("axis" if tick == 0 else "grid", across(tick), TOP, across(tick), bottom))
        lines.append(f'<text class="x" x="{across(tick):.1f}" y="{bottom + 15:g}">{number(tick)}</text>')
    middle = (across(0.0) + across(most)) / 2
    lines.append(f'<text class="x" x="{middle:.1f}" y="{bottom + 32:g}">{unit}</text>')
    return lines


def _arena(told: Explanation, places: list[float], bottom: float) -> list[str]:
    """Every intermediate value as a rectangle: its place in the arena, and the steps during which it lives."""
    left = MARGIN + NAMES + BARS + GAP
    size = told.program.arena_bytes
    head = f'<text class="head" x="{left:g}" y="{TOP - 12:g}">'
    if not size:
        return [f"{head}no memory for intermediate values</text>"]
    factor, unit = (1e-6, "MB") if size >= 1e5 else (1e-3, "kB")
    kinds = _makers(told)

    def across(value: float) -> float:
        return left + value / (size * factor) * ARENA

    lines = [f"{head}what lies in the arena, and for how long</text>"]
    lines += _axis(across, size * factor, f"{unit} of the arena", bottom)
    positions = [line.position for line in told.steps]
    for buffer, (first, last) in lifetimes(told.program.schedule).items():
        inside = [y for y, position in zip(places, positions, strict=True) if first <= position <= last]
        if buffer.kind not in PLANNED or not inside or not buffer.nbytes:
            continue
        x, width = across(buffer.offset * factor), max(buffer.nbytes / size * ARENA, 0.5)
        box = f'x="{x:.1f}" y="{inside[0]:g}" width="{width:.1f}" height="{inside[-1] - inside[0] + ROW:g}"'
        colour = COLOURS[kinds.get(id(buffer), "copy")]
        lines.append(f'<rect class="life" {box} fill="{colour}"><title>{buffer.nbytes:,} bytes</title></rect>')
    return lines


def _makers(told: Explanation) -> dict[int, str]:
    """The kind of the step that first writes a buffer."""
    steps = told.program.schedule.steps
    kinds: dict[int, str] = {}
    for line in told.steps:
        for written in steps[line.position].writes:
            buffer = written if written.base is None else written.base  # a step of a sequence
            kinds.setdefault(id(buffer), line.kind)
    return kinds


def shortened(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"
