"""The picture of a graph: cards in layers from left to right or downwards, joined by arrows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from ..core.errors import InputError
from ..storage.svg import SVG
from .layout import Layout, Point, arrange

CHARACTER = 7.9  # the width of a character of the 13-pixel monospaced font, rounded up
SMALL = 6.8  # of the 11-pixel font
HEADER, ROW, PADDING, MARGIN = 28.0, 19.0, 11.0, 14.0
DOWN_GAP = 34.0  # between levels, for a graph that goes downwards

# fill, header and border of a card by kind; dark text is legible on all of them, whatever the page is
COLOURS = {
    "input": ("#f0f9ff", "#bae6fd", "#0284c7"),
    "operation": ("#ffffff", "#e2e8f0", "#64748b"),
    "output": ("#fffbeb", "#fde68a", "#d97706"),
    "constant": ("#f8fafc", "#f1f5f9", "#94a3b8"),
}
LINE = "#7d8aa0"  # in between: visible on white and on black

STYLE = f"""
.wl-graph text {{ font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #0f172a; }}
.wl-graph .name {{ font-weight: 600; }}
.wl-graph .label {{ font: 11px system-ui, Helvetica, Arial, "DejaVu Sans", sans-serif; fill: #475569; }}
.wl-graph .edge {{ fill: none; stroke: {LINE}; stroke-width: 1.5; }}
.wl-graph .tag {{ font-size: 11px; fill: #334155; text-anchor: middle; }}
"""


@dataclass(frozen=True)
class Node:
    """A card: a name and a title in its header, labelled rows of text below. Kinds: see `COLOURS`."""

    id: Hashable
    title: str
    rows: Sequence[tuple[str, str]] = ()
    kind: str = "operation"
    name: str = ""

    @property
    def size(self) -> tuple[float, float]:
        header = CHARACTER * (len(self.name) + len(self.title) + (2 if self.name and self.title else 0))
        body = max((SMALL * len(label) + 14 + CHARACTER * len(text) for label, text in self.rows), default=0.0)
        rows = ROW * len(self.rows) + (8 if self.rows else 0)
        return max(header, body, 40.0) + 2 * PADDING, HEADER + rows


class Edge(NamedTuple):
    """An arrow between two cards, with a short text on it."""

    source: Hashable
    target: Hashable
    label: str = ""


def draw(
    nodes: Iterable[Node],
    edges: Iterable[Edge | tuple[Hashable, Hashable]],
    *,
    title: str = "",
    down: bool = False,
) -> SVG:
    """An acyclic graph as the text of an SVG picture.

    >>> x, y = Node("x", "x", [("value", "3")], "input"), Node("y", "x ** 2", [("value", "9")], "output")
    >>> draw([x, y], [("x", "y")], title="a square").startswith("<svg xmlns=")
    True

    Nodes are placed by levels, so that every arrow points to the right, or downwards with `down=True`. The picture
    has no background of its own and is legible on light and dark pages.
    """
    nodes = list(nodes)
    arrows = [Edge(*edge) for edge in edges]
    for node in nodes:
        if node.kind not in COLOURS:
            raise InputError(f"draw: node {node.id!r} is of kind {node.kind!r}.", f"one of {', '.join(COLOURS)}")
    sizes = {node.id: node.size for node in nodes}
    if len(sizes) < len(nodes):
        raise InputError("draw: two nodes have the same id.", "a different id for every node")
    pairs = [(edge.source, edge.target) for edge in arrows]
    layout = _arranged_downwards(sizes, pairs) if down else arrange(sizes, pairs)
    width, height = (extent + 2 * MARGIN for extent in layout.size)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wl-graph" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(title or "graph")}">',
        f"<title>{escape(title)}</title>" if title else "",
        f"<style>{escape(STYLE, quote=False)}</style>",
        '<defs><marker id="wl-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0,0.5 L8,4 L0,7.5 z" fill="{LINE}"/></marker></defs>',
        f'<g transform="translate({MARGIN:g} {MARGIN:g})">',
    ]
    lines += [f'<path class="edge" d="{_curve(route, down)}" marker-end="url(#wl-arrow)"/>' for route in layout.routes]
    lines += [_card(node, layout.corners[node.id]) for node in nodes]
    lines += [_tag(edge.label, route) for edge, route in zip(arrows, layout.routes, strict=True) if edge.label]
    lines += ["</g>", "</svg>"]
    return SVG("\n".join(line for line in lines if line) + "\n")


def _card(node: Node, corner: Point) -> str:
    fill, header, border = COLOURS[node.kind]
    (x, y), (width, height) = corner, node.size
    name = f'<tspan class="name">{escape(node.name)}</tspan>{"  " if node.title else ""}' if node.name else ""
    outline = f'width="{width:.1f}" height="{height:.1f}" rx="7"'
    top = f"M0,{HEADER:g} V7 a7,7 0 0 1 7,-7 H{width - 7:.1f} a7,7 0 0 1 7,7 V{HEADER:g} z"
    parts = [
        f'<g transform="translate({x:.1f} {y:.1f})">',
        f'<rect {outline} fill="{fill if node.rows else header}"/>',
        f'<path d="{top}" fill="{header}"/>' if node.rows else "",
        f'<rect {outline} fill="none" stroke="{border}" stroke-width="1.3"/>',
        f'<text x="{PADDING:g}" y="18.5" xml:space="preserve">{name}{escape(node.title)}</text>',
    ]
    for number, (label, text) in enumerate(node.rows):
        base = HEADER + ROW * number + 17.5
        parts.append(f'<text class="label" x="{PADDING:g}" y="{base:g}">{escape(label)}</text>')
        parts.append(f'<text x="{width - PADDING:.1f}" y="{base:g}" text-anchor="end">{escape(text)}</text>')
    return "".join([*parts, "</g>"])


def _arranged_downwards(sizes: dict[Hashable, Point], pairs: list[tuple[Hashable, Hashable]]) -> Layout:
    """The layout from left to right of cards that lie on their sides, turned."""
    layout = arrange({node: (height, width) for node, (width, height) in sizes.items()}, pairs, DOWN_GAP)
    corners = {node: (x, y) for node, (y, x) in layout.corners.items()}
    return Layout(corners, [[(x, y) for y, x in route] for route in layout.routes], layout.size[::-1])


def _curve(route: list[Point], down: bool = False) -> str:
    """A smooth path that leaves and enters every point horizontally, or vertically if it goes down."""

    def place(x: float, y: float) -> str:
        return f"{y:.1f},{x:.1f}" if down else f"{x:.1f},{y:.1f}"

    (x, y), *rest = [(b, a) for a, b in route] if down else route
    path = [f"M{place(x, y)}"]
    for number, (to_x, to_y) in enumerate(rest):
        if number == len(rest) - 1:
            to_x -= 1.0  # the tip of the arrow touches the card, its line does not enter it
        bend = (to_x - x) / 2
        straight = abs(to_y - y) < 0.05
        path.append(
            f"L{place(to_x, to_y)}"
            if straight
            else f"C{place(x + bend, y)} {place(to_x - bend, to_y)} {place(to_x, to_y)}"
        )
        x, y = to_x, to_y
    return " ".join(path)


def _tag(label: str, route: list[Point]) -> str:
    """The text of an edge on a small plate, near the edge's end, where edges to one node are apart."""
    (x0, y0), (x1, y1) = route[-2], route[-1]
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    width = SMALL * len(label) + 8
    plate = f'x="{-width / 2:.1f}" y="-8" width="{width:.1f}" height="16" rx="8"'
    return (
        f'<g transform="translate({x:.1f} {y:.1f})">'
        f'<rect {plate} fill="#ffffff" stroke="{LINE}" stroke-width="0.8"/>'
        f'<text class="tag" y="4">{escape(label)}</text></g>'
    )
