"""A picture as data: marks with their places and colours, which become SVG here and PNG in `report/png.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from ..core.typing import Array
from ..storage.svg import SVG

Paint = str | float | Array  # a place, a colour, a width; points (n, 2)
Looks = Mapping[str, Mapping[str, str]]  # properties of CSS by what has them: "text", or ".title" for a kind of mark

PLOT_LOOKS: Looks = {
    "text": {
        "font-size": "12px",
        "font-family": 'system-ui, Helvetica, Arial, "DejaVu Sans", sans-serif',
        "fill": "#334155",
    },
    ".title": {"font-size": "15px", "font-weight": "600", "fill": "#0f172a", "text-anchor": "middle"},
    ".x": {"text-anchor": "middle"},
    ".y": {"text-anchor": "end"},
    ".grid": {"stroke": "#e2e8f0"},
    ".axis": {"stroke": "#94a3b8"},
    ".bar": {"fill-opacity": "0.75", "stroke": "#ffffff", "stroke-width": "0.6"},
    ".curve": {"fill": "none", "stroke-width": "2", "stroke-linejoin": "round", "stroke-linecap": "round"},
}


@dataclass(frozen=True)
class Mark:
    """One mark of a drawing.

    `shape` is an element of SVG ("rect", "circle", "line", "polyline", "text", "g", "svg"), `kind` what the looks call
    it, and `attributes` are its places in pixels and its own colours. `said` is shown when somebody points at it.
    A text may be turned, clockwise by so many degrees.
    """

    shape: str
    kind: str
    attributes: dict[str, Any]
    text: str = ""
    said: str = ""
    turn: float = 0.0
    parts: Sequence[Mark] = ()

    def svg(self) -> str:
        all_of_them = {"class": self.kind} | self.attributes if self.kind else self.attributes
        start = self.shape + "".join(f' {name}="{_value(value)}"' for name, value in all_of_them.items())
        if self.turn:
            start += f' transform="rotate({self.turn:g} {_value(self.attributes["x"])} {_value(self.attributes["y"])})"'
        said = f"<title>{escape(self.said)}</title>" if self.said else ""
        inside = said + escape(self.text) + "\n".join(part.svg() for part in self.parts)
        return f"<{start}>{inside}</{self.shape}>" if inside else f"<{start}/>"


def rect(kind: str, x: float, y: float, width: float, height: float, said: str = "", **paint: Paint) -> Mark:
    return Mark("rect", kind, {"x": x, "y": y, "width": width, "height": height, **_css(paint)}, said=said)


def circle(x: float, y: float, radius: float, said: str = "", **paint: Paint) -> Mark:
    return Mark("circle", "", {"cx": x, "cy": y, "r": radius, **_css(paint)}, said=said)


def line(kind: str, x1: float, y1: float, x2: float, y2: float, **paint: Paint) -> Mark:
    return Mark("line", kind, {"x1": x1, "y1": y1, "x2": x2, "y2": y2, **_css(paint)})


def polyline(kind: str, points: Array | Sequence[tuple[float, float]], **paint: Paint) -> Mark:
    """Points (n, 2) joined by a line."""
    return Mark("polyline", kind, {"points": points, **_css(paint)})


def text(kind: str, x: float, y: float, words: str, turn: float = 0.0) -> Mark:
    """Words that begin, end or have their middle at a place, as their kind says."""
    return Mark("text", kind, {"x": x, "y": y}, words, turn=turn)


def group(parts: Sequence[Mark], said: str = "", **paint: Paint) -> Mark:
    return Mark("g", "", _css(paint), said=said, parts=parts)


def window(x: float, y: float, width: float, height: float, parts: Sequence[Mark]) -> Mark:
    """Marks of which only what lies in a rectangle is shown."""
    place = {"x": x, "y": y, "width": width, "height": height}
    return Mark("svg", "", {**place, "viewBox": " ".join(map(_value, place.values()))}, parts=parts)


@dataclass(frozen=True)
class Drawing:
    """Marks on white paper of a size in pixels, with what a screen reader says, and looks by the class they are for."""

    size: tuple[float, float]
    marks: Sequence[Mark]
    spoken: str
    looks: Mapping[str, Looks] = field(default_factory=lambda: {"wl-plot": PLOT_LOOKS})

    def svg(self) -> SVG:
        """The text of an SVG picture that needs nothing else."""
        spoken = escape(self.spoken)
        width, height = (f"{side:.0f}" for side in self.size)
        extent = f'width="{width}" height="{height}"'
        style = "".join(style_sheet(name, looks) for name, looks in self.looks.items())
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{" ".join(self.looks)}" viewBox="0 0 {width} {height}" '
            f'{extent} role="img" aria-label="{spoken}">',
            f"<title>{spoken}</title><style>{escape(style, quote=False)}</style>",
            f'<rect class="paper" {extent} rx="8" fill="#ffffff"/>',
            *(mark.svg() for mark in self.marks),
        ]
        return SVG("\n".join([*lines, "</svg>"]) + "\n")


def shortened(words: str, room: int) -> str:
    """Words of at most so many characters.

    >>> shortened("a name that is far too long", 18)
    'a name that is fa…'
    """
    return words if len(words) <= room else words[: room - 1] + "…"


def style_sheet(name: str, looks: Looks) -> str:
    """Looks as CSS for what is inside of a class.

    >>> style_sheet("wl-plot", {".grid": {"stroke": "#e2e8f0"}})
    '\\n.wl-plot .grid { stroke: #e2e8f0; }\\n'
    """
    rules = (f"{what} {{ {' '.join(f'{k}: {v};' for k, v in look.items())} }}" for what, look in looks.items())
    return "\n" + "".join(f".{name} {rule}\n" for rule in rules)


def _css(paint: Mapping[str, Paint]) -> dict[str, Paint]:
    return {name.replace("_", "-"): value for name, value in paint.items() if value is not None}


def _value(value: Paint) -> str:
    """The value of an attribute; hundredths of a pixel are enough."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, Iterable):
        return " ".join(f"{_value(x)},{_value(y)}" for x, y in value)
    return f"{round(float(value), 2) + 0.0:g}"
