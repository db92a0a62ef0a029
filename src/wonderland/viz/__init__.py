"""Pictures as self-contained SVG text: graphs in layers, curves, bars, points, tables of shades, and the regions of
classifiers."""

from .boundary import decision_boundary
from .contours import level_lines, plot_paths
from .graph import Edge, Node, draw
from .heatmap import heatmap
from .histogram import histogram
from .images import image_grid
from .layout import levels
from .plot import Bars, Curve, plot
from .ranking import ranking
from .scatter import scatter

# fmt: off
__all__ = [
    "Bars", "Curve", "Edge", "Node", "decision_boundary", "draw", "heatmap", "histogram", "image_grid", "level_lines",
    "levels", "plot", "plot_paths", "ranking", "scatter",
]
