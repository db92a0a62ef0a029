"""Pictures as self-contained SVG text: graphs in layers, and curves."""

from .graph import Edge, Node, draw
from .layout import levels
from .plot import Curve, plot

__all__ = ["Curve", "Edge", "Node", "draw", "levels", "plot"]
