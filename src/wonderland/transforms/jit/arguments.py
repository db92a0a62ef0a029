"""The arguments of a call, taken apart into what a trace depends on and what it computes with."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from ...arrays.conversion import SCALAR_KIND, asarray, from_scalar
from ...core import trees
from ...core.cell import Cell
from ...core.errors import InputError
from ...core.primitive import Aval
from ...core.tensor import VALUES, Tensor
from ...ir.stage import EXACT, GraphTracer
from .constants import contents, fixed, opened


class Arguments:
    """`operands` are the tensors and numbers that the graph computes with, `cells` the state, `key` all the rest."""

    __slots__ = ("cells", "key", "leaves", "operands", "positions", "structure", "weak")

    def __init__(self, tree: object, outside: AbstractSet[int] = frozenset()) -> None:
        self.leaves, self.structure = trees.flatten(tree, open_objects=False)
        self.positions: list[int] = []  # of the leaves that are operands of the graph
        self.operands: list[Tensor] = []
        self.weak: list[int | None] = []  # which of them are Python numbers
        self.cells: list[Cell] = []
        keys: list[object] = [self.structure]
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf, np.generic):
                leaf = leaf.item()  # NumPy's scalars behave as Python's
            kind = type(leaf)
            if isinstance(leaf, Cell):
                self.cells.append(leaf)
                keys.append((kind, leaf.settings(), leaf.shape, leaf.dtype))
            elif isinstance(leaf, (Tensor, np.ndarray, Aval)):
                value: Any = asarray(leaf) if isinstance(leaf, np.ndarray) else leaf
                weak = value.weak if kind is GraphTracer else None
                keys.append((value.shape, value.dtype, weak))
                self._add(i, value if weak is None else value.exact, weak)
            elif kind in SCALAR_KIND and kind is not bool:
                keys.append(kind)
                self._add(i, from_scalar(leaf, EXACT[SCALAR_KIND[kind]]), SCALAR_KIND[kind])
            elif trees.is_stateful(leaf):
                parts = opened(leaf)
                self.cells += parts.cells
                keys.append(parts.kind)
            else:
                keys.append((static(leaf), contents(leaf)))
        if len(distinct := {id(c): i for i, c in enumerate(self.cells)}) < len(self.cells):
            keys.append(tuple(distinct[id(c)] for c in self.cells))  # which of them are the same
        if not outside.isdisjoint(distinct):
            keys.append(tuple(id(c) for c in self.cells if id(c) in outside))  # and the same as one from outside
        self.key = tuple(keys)

    def _add(self, position: int, operand: Tensor, weak: int | None) -> None:
        self.positions.append(position)
        self.operands.append(operand)
        self.weak.append(weak)

    def with_operands(self, leaves: list[object], operands: list[Tensor], cells: list[Cell]) -> Arguments:
        """Arguments of the same kind."""
        new = object.__new__(Arguments)
        new.leaves, new.operands, new.cells = leaves, operands, cells
        new.structure, new.positions, new.weak, new.key = self.structure, self.positions, self.weak, self.key
        return new

    def rebuilt(self, tracers: Iterable[Tensor]) -> Any:
        leaves = list(self.leaves)
        for i, tracer in zip(self.positions, tracers, strict=True):
            leaves[i] = tracer
        return trees.unflatten(self.structure, leaves)


def static(value: object) -> trees.Static:
    """An argument that a trace takes for a constant."""
    if type(value) in VALUES:
        return trees.Static(fixed(value))
    try:
        hash(value)
    except TypeError as error:
        raise InputError(
            f"jit: an argument of type {type(value).__name__} is neither a tensor nor a constant ({error}).",
            "a tensor, a number, a tree of those, or a static argument that can be hashed, such as a tuple",
        ) from error
    return trees.Static(value)
