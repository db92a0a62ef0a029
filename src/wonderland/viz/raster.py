"""Marks drawn by matplotlib, for files of pixels. It is loaded when something is drawn: SVG does not need it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from .marks import Looks, Mark

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

PER_INCH = 100.0  # pixels of a drawing
POINTS = 72.0 / PER_INCH
ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def paint(
    figure: Figure,
    marks: Iterable[Mark],
    looks: Collection[Looks],
    corner: tuple[float, float],
    clip: Patch | None = None,
    opacity: float = 1.0,
) -> None:
    """Add marks to a figure, with their origin at a place that is counted from its upper left corner."""
    from matplotlib.patches import Rectangle
    from matplotlib.transforms import Affine2D

    scale = figure.dpi / PER_INCH
    place = Affine2D().translate(*corner).scale(scale, -scale).translate(0.0, figure.bbox.height)
    for mark in marks:
        at = mark.attributes
        if mark.shape in ("g", "svg"):
            window = Rectangle((at["x"], at["y"]), at["width"], at["height"], transform=place) if "x" in at else clip
            paint(figure, mark.parts, looks, corner, window, opacity * float(at.get("opacity", 1.0)))
            continue
        look: dict[str, Any] = dict(at)  # a style sheet overrules attributes, and a kind the shape
        for what in (mark.shape, *(f".{kind}" for kind in mark.kind.split())):
            for sheet in looks:
                look |= sheet.get(what, {})
        artist = _artist(mark, look, opacity)
        artist.set_transform(place)
        artist.set_zorder(1.0)  # in the order of the marks; matplotlib has one of its own
        artist.set_clip_path(clip)
        figure.add_artist(artist, clip=False)


def _artist(mark: Mark, look: dict[str, Any], opacity: float) -> Any:
    """The mark as matplotlib has it."""
    from matplotlib import colors, lines, patches, text

    at = mark.attributes
    width = float(look.get("stroke-width", 1.0)) * POINTS
    if mark.shape == "text":
        return text.Text(
            at["x"],
            at["y"],
            mark.text,
            color=look["fill"],
            fontsize=float(look["font-size"].removesuffix("px")) * POINTS,
            fontweight=int(look.get("font-weight", 400)),
            ha=ANCHORS[look.get("text-anchor", "start")],
            va="baseline",
            rotation=-mark.turn,
            rotation_mode="anchor",
        )
    if mark.shape in ("line", "polyline"):
        ends = at.get("points", [(at.get("x1"), at.get("y1")), (at.get("x2"), at.get("y2"))])
        x, y = zip(*ends, strict=True)
        dashes = [float(n) * POINTS / width for n in look.get("stroke-dasharray", "").split()]
        style: Any = (0, dashes) if dashes else "solid"
        return lines.Line2D(x, y, color=look["stroke"], linewidth=width, linestyle=style, solid_joinstyle="round")
    paint: dict[str, Any] = {
        "facecolor": colors.to_rgba(look["fill"], float(look.get("fill-opacity", 1.0)) * opacity),
        "edgecolor": look.get("stroke", "none"),
        "linewidth": width,
    }
    if mark.shape == "circle":
        return patches.Circle((at["cx"], at["cy"]), at["r"], **paint)
    return patches.Rectangle((at["x"], at["y"]), at["width"], at["height"], **paint)
