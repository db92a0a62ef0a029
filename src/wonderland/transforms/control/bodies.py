"""The functions inside loops and branches: traced to graphs that share one list of outside values.

A body may use tensors and modules from outside; those become inputs of its graph. State that it writes (random streams,
running statistics) becomes part of its results.
"""

from __future__ import annotations

from collections.abc import Callable

from ...arrays.conversion import asarray
from ...core import trees
from ...core.cell import Cell
from ...core.errors import TraceError, TreeError
from ...core.interpreter import read
from ...core.primitive import Aval, aval_of
from ...core.tensor import Tensor
from ...ir.graph import Graph, Var
from ...ir.simplify import remove_dead
from ...ir.stage import stage


def tensors_of(name: str, tree: object) -> tuple[list[Tensor], trees.Structure]:
    """The leaves of a tree as tensors."""
    leaves, structure = trees.flatten(tree, open_objects=False)
    for leaf in leaves:
        if trees.is_stateful(leaf):
            raise TreeError(
                f"{name}: a {type(leaf).__name__} is passed as a value.",
                "use modules from outside the function, by closure",
            )
    return [read(leaf) if isinstance(leaf, Cell) else asarray(leaf) for leaf in leaves], structure


class Body:
    """A traced function: its results' structure and types, and what it needs from outside."""

    def __init__(
        self, name: str, f: Callable[..., object], structures: list[trees.Structure], avals: list[Aval]
    ) -> None:
        kept: dict[str, trees.Structure] = {}

        def flat(*tracers: Tensor) -> list[Tensor]:
            args, start = [], 0
            for structure in structures:
                args.append(trees.unflatten(structure, tracers[start : start + structure.leaf_count]))
                start += structure.leaf_count
            leaves, kept["structure"] = tensors_of(name, f(*args))
            return leaves

        self.staged = stage(flat, avals, name=getattr(f, "__name__", "body"), purpose=name)
        if made := self.staged.made_cells:
            raise TraceError(
                f"{name}: the function makes a {type(made[0]).__name__} that outlives it.",
                "make modules outside, and call a lazy layer once before",
            )
        self.structure: trees.Structure = kept["structure"]
        self.results = [a.aval for a in self.staged.graph.outputs][: self.structure.leaf_count]
        self.args = len(avals)


class Bodies:
    """Several traced functions brought to one list of outside values and of written cells.

    Every graph has the inputs (outside values, arguments) and the outputs (results, new values of the written cells).
    """

    def __init__(self, bodies: list[Body]) -> None:
        outside: dict[int, Tensor] = {}
        written: dict[int, Cell] = {}
        for body in bodies:
            written.update({id(c): c for c in body.staged.written_cells})
        for body in bodies:
            outside.update({id(v): v for v in [*body.staged.captured, *body.staged.read_cells] if id(v) not in written})
        self.fixed: list[Tensor] = list(outside.values())
        self.written: list[Cell] = list(written.values())
        self.graphs = [self._unified(body) for body in bodies]

    def _unified(self, body: Body) -> Graph:
        graph = body.staged.graph
        own = [*body.staged.captured, *body.staged.read_cells]
        known = {id(v): var for v, var in zip(own, graph.inputs, strict=False)}
        values = [*self.fixed, *self.written]
        inputs = [known[id(v)] if id(v) in known else Var(aval_of(v)) for v in values]
        by_cell = {id(c): inputs[len(self.fixed) + i] for i, c in enumerate(self.written)}
        count = len(body.results)
        new = {id(c): a for c, a in zip(body.staged.written_cells, graph.outputs[count:], strict=True)}
        states = [new.get(id(c), by_cell[id(c)]) for c in self.written]
        return remove_dead(
            Graph(inputs + graph.inputs[len(own) :], graph.equations, [*graph.outputs[:count], *states], graph.name)
        )

    def operands(self) -> list[Tensor]:
        """The outside values under the current interpreter: those that stay, then the state that is written."""
        return [read(v) if isinstance(v, Cell) else v for v in [*self.fixed, *self.written]]


def check_same(
    name: str, what: str, first: tuple[trees.Structure, list[Aval]], second: tuple[trees.Structure, list[Aval]]
) -> None:
    """Two results must have one structure and the same types."""
    if first[0] != second[0]:
        raise TreeError(
            f"{name}: {what} have different structures {first[0]} and {second[0]}.", "the same tree from both"
        )
    for a, b in zip(first[1], second[1], strict=True):
        if a != b:
            raise TreeError(
                f"{name}: {what} have types {a} and {b}.",
                "the same shape and dtype; x.astype(...) or a typed initial value",
            )
