"""Pictures as self-contained SVG text: graphs in layers, curves, points, and the regions of classifiers."""

from .boundary import decision_boundary
from .contours import level_lines, plot_paths
from .graph import Edge, Node, draw
from .layout import levels
from .plot import Curve, plot
from .scatter import scatter

__all__ = [
    "Curve",
    "Edge",
    "Node",
    "decision_boundary",
    "draw",
    "level_lines",
    "levels",
    "plot",
    "plot_paths",
    "scatter",
]
