"""The typed graph: what `jit` and control flow trace a function to. Build, print, verify, simplify."""

from .graph import Equation, Graph, Literal, Var
from .printing import to_text
from .simplify import simplify
from .stage import GraphTrace, GraphTracer, stage
from .verify import verify

__all__ = [
    "Equation",
    "Graph",
    "GraphTrace",
    "GraphTracer",
    "Literal",
    "Var",
    "simplify",
    "stage",
    "to_text",
    "verify",
]
