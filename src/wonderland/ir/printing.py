"""Graphs as text.

graph(a: float32[3]) {
  b: float32[3] = sin a
  c: float32[] = sum b [axes=(0,)]
} -> c
"""

from __future__ import annotations

import string
from typing import Any

from ..core.giving import given_to
from .graph import Atom, Graph, Literal, Var


class _Names:
    """a, b, ..., z, aa, ab, ... in order of appearance."""

    def __init__(self) -> None:
        self.names: dict[Var, str] = {}

    def __call__(self, atom: Atom) -> str:
        if isinstance(atom, Literal):
            return str(atom.data.item())
        if atom not in self.names:
            n, name = len(self.names), ""
            while True:
                name = string.ascii_lowercase[n % 26] + name
                n = n // 26 - 1
                if n < 0:
                    break
            self.names[atom] = name
        return self.names[atom]


def _param(value: object) -> str:
    if isinstance(value, Graph) or (isinstance(value, tuple) and value and isinstance(value[0], Graph)):
        return ""
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def to_text(graph: Graph, sources: bool = False) -> str:
    """The graph as readable text; with `sources` each line says where it was written."""
    return _text(graph, "", sources, set())


def _text(graph: Graph, indent: str, sources: bool, done: set[Graph]) -> str:
    """A graph that several equations carry is shown at the first of them."""
    if graph in done:
        return f"{indent}{graph.name}, as above"
    done.add(graph)
    names = _Names()
    head = ", ".join(f"{names(v)}: {v.aval}" for v in graph.inputs)
    lines = [f"{indent}{graph.name}({head}) {{"]
    for equation in graph.equations:
        outs = ", ".join(f"{names(v)}: {v.aval}" for v in equation.outputs)
        args = " ".join(names(a) for a in equation.inputs)
        shown = {k: _param(v) for k, v in equation.params.items()}
        params = ", ".join(f"{k}={v}" for k, v in shown.items() if v)
        line = f"{indent}  {outs} = {equation.primitive.name} {args}".rstrip() + (f" [{params}]" if params else "")
        if sources and equation.source is not None:
            line += f"  # {equation.source.file.rsplit('/', 1)[-1]}:{equation.source.line}"
        lines.append(line)
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, Graph):
                    lines.append(_text(inner, indent + "    ", sources, done))
    lines.append(f"{indent}}} -> {', '.join(names(a) for a in graph.outputs)}")
    return "\n".join(lines)


@given_to(Graph)
class Printed:
    """Graphs show themselves."""

    def __str__(self: Any) -> str:
        return to_text(self)

    __repr__ = __str__
