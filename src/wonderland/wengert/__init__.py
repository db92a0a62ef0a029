"""Evaluation traces (Wengert lists): a computation as the list of primitives that it runs, one line each.

A trace shows the values, the tangents of forward mode and the adjoints of reverse mode step by step; it can
be replayed at other values and drawn. Book, sections 6.1 to 6.4.
"""

from . import picture as picture  # gives traces their pictures
from .formula import Formula, FormulaError
from .program import Contribution, Step, Trace
from .recording import trace

__all__ = ["Contribution", "Formula", "FormulaError", "Step", "Trace", "trace"]
