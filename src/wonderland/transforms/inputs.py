"""The arguments of a differentiated function: which leaves vary, and how tracers get into them and out again.

A tensor (or Python float) in an argument is replaced by a tracer. A module stays the object that it is: its trainable
parameters hold tracers while the function runs and their values again afterwards, also after an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import arrays
from ..core import trees
from ..core.cell import Cell
from ..core.context import Trace, current, enter, leave, restoring
from ..core.dtypes import is_inexact
from ..core.errors import GradientError, TreeError
from ..core.tangents import JVPTracer
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, Shaped
from .signatures import Result


def check_function(name: str, f: object) -> None:
    """Refuse what is no function, above all a loss that was computed before."""
    if not callable(f):
        raise GradientError(
            f"{name}: takes a function, received a {type(f).__name__}.",
            f"wl.{name}(lambda x: ..., ...) with the computation inside the function"
            + ("; loss.backward() for a loss that is computed already" if isinstance(f, Tensor) else ""),
        )


def argument_positions(name: str, argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    """`argnums`, one number or several, as positions among `count` arguments."""
    wanted = tuple(argnums) if isinstance(argnums, (tuple, list)) else (argnums,)
    for p in wanted:
        if not isinstance(p, int) or not -count <= p < count:
            raise GradientError(
                f"{name}: argnums={argnums!r}, but the function received {count} positional arguments.",
                "the positions of arguments, counted from 0",
            )
    positions = tuple(p % count for p in wanted)
    if len(set(positions)) != len(positions):
        raise GradientError(f"{name}: argnums={argnums!r} names an argument twice.", "each position once")
    return positions


class Inputs:
    """Positional arguments of which some leaves are differentiated."""

    def __init__(self, name: str, args: tuple[object, ...], argnums: tuple[int, ...] | None = None) -> None:
        self.name = name
        self.args = args
        self.argnums = tuple(range(len(args))) if argnums is None else argnums
        self.values: list[Tensor] = []  # the primal of every leaf
        self.cells: list[Cell | None] = []  # the cell in which the leaf lives, if any
        self.layout: list[
            tuple[trees.Structure, list[Any], list[str | list[str]]]
        ] = []  # per argument: its structure, and for every closed leaf what it contributes
        for i in self.argnums:
            leaves, structure = trees.flatten(args[i], open_objects=False)
            entries: list[str | list[str]] = []
            for leaf in leaves:
                if trees.is_stateful(leaf):
                    names = trainable(leaf)
                    entries.append(list(names))
                    for cell in names.values():
                        self._add(_peel(cell), cell)
                elif isinstance(leaf, Cell):
                    entries.append("cell")
                    self._add(_peel(leaf), leaf)
                else:
                    entries.append("leaf")
                    self._add(self._leaf(leaf, i), None)
            self.layout.append((structure, leaves, entries))

    def _add(self, value: Tensor, cell: Cell | None) -> None:
        self.values.append(value)
        self.cells.append(cell)

    def _leaf(self, leaf: object, argument: int) -> Tensor:
        if not arrays.is_operand(leaf):
            raise GradientError(
                f"{self.name}: argument {argument} has a leaf of type {type(leaf).__name__}, which has no derivative.",
                "argnums for the arguments to differentiate; close over the others",
            )
        value = leaf if type(leaf) is Tensor else arrays.asarray(leaf)
        if not is_inexact(value.dtype):
            raise GradientError(
                f"{self.name}: argument {argument} is {value.dtype}; derivatives need floating or complex inputs.",
                "x.astype(wl.float32), or argnums to leave the argument out",
            )
        return value

    @restoring
    def call(
        self,
        trace: Any,
        f: Callable[..., Result],
        tracers: Sequence[Tensor],
        kwargs: dict[str, object] | None = None,
    ) -> Result:
        """Run f with tracers for the leaves, under `trace`; without one, with other values for them."""
        args = list(self.args)
        position = 0
        swapped: list[tuple[Cell, Tensor | None, Tensor]] = []
        for i, (structure, leaves, entries) in zip(self.argnums, self.layout, strict=True):
            rebuilt = []
            for leaf, entry in zip(leaves, entries, strict=True):
                count = len(entry) if isinstance(entry, list) else 1
                if entry == "leaf":
                    rebuilt.append(tracers[position])
                else:
                    rebuilt.append(leaf)
                    for k in range(position, position + count):
                        cell = self.cells[k]
                        assert cell is not None
                        swapped.append((cell, cell.inside, tracers[k]))
                position += count
            args[i] = trees.unflatten(structure, rebuilt)
        before = enter(trace)
        try:
            for cell, _, tracer in swapped:
                cell.hold(tracer)
            return f(*args, **(kwargs or {}))
        finally:
            for cell, inside, tracer in swapped:
                if cell.value is tracer:
                    cell.restore(inside)
            written = [] if trace is None else trace.finish()
            leave(before)
            for cell, value in written:
                cell.value = value

    def gather(self, values: Sequence[object]) -> tuple[Any, ...]:
        """Values of the leaves as trees like the arguments; a module becomes a dict from parameter paths."""
        results, position = [], 0
        for structure, _, entries in self.layout:
            rebuilt: list[object] = []
            for entry in entries:
                if isinstance(entry, list):
                    rebuilt.append(dict(zip(entry, values[position : position + len(entry)], strict=True)))
                    position += len(entry)
                else:
                    rebuilt.append(values[position])
                    position += 1
            results.append(trees.unflatten(structure, rebuilt))
        return tuple(results)

    def matching(self, tangents: tuple[object, ...]) -> list[Tensor]:
        """The leaves of trees that look like the arguments, checked for shape and dtype."""
        # dicts are flattened in the order of their keys, modules list their parameters in another one
        places, wanted = trees.flatten(self.gather(list(range(len(self.values)))))
        leaves, structure = trees.flatten(tangents)
        if structure != wanted:
            raise TreeError(
                f"{self.name}: the tangents have structure {structure}, the values {wanted}.",
                "tangents in the same tree as the values",
            )
        checked: list[Any] = [None] * len(self.values)
        for place, tangent in zip(places, leaves, strict=True):
            value = self.values[place]
            t = tangent if isinstance(tangent, Tensor) else arrays.asarray(tangent, dtype=value.dtype)
            checked[place] = check_like(self.name, "tangent", t, value)
        return checked


def check_like(name: str, what: str, t: Tensor, value: Shaped) -> Tensor:
    """The tangent or adjoint t itself, if it has the shape and dtype of its value."""
    if t.shape != value.shape or t.dtype != value.dtype:
        raise GradientError(
            f"{name}: a {what} of {t.dtype}{list(t.shape)} belongs to a value of {value.dtype}{list(value.shape)}.",
            f"a {what} of the same shape and dtype as the value",
        )
    return t


def _peel(cell: Cell) -> Tensor:
    """A cell's value under the current interpreter, without its imperative record."""
    value = cell.value
    if (trace := current().trace) is not None and trace.staged:
        return trace.read(cell, value)
    return value


def trainable(module: Any) -> dict[str, Cell]:
    """The trainable parameters of a stateful object by path."""
    return {path: cell for path, cell in module.named_parameters() if cell.trainable}


def output_leaves(name: str, out: object) -> tuple[list[Tensor], trees.Structure]:
    """The leaves of a function's result as tensors."""
    leaves, structure = trees.flatten(out, open_objects=False)
    converted = []
    for leaf in leaves:
        if not arrays.is_operand(leaf):
            raise GradientError(
                f"{name}: the function returned a {type(leaf).__name__}, not a tensor.",
                "a tensor or a tree of tensors; other results with has_aux=True",
            )
        converted.append(_value(leaf))
    return converted, structure


def _value(leaf: ArrayLike) -> Tensor:
    if isinstance(leaf, Cell):
        return _peel(leaf)
    return leaf if isinstance(leaf, Tensor) else arrays.asarray(leaf)


def split_aux(name: str, out: object) -> tuple[Any, Any]:
    """The value and the rest that a function with `has_aux` returned."""
    if not isinstance(out, tuple) or len(out) != 2:
        raise GradientError(
            f"{name}: with has_aux=True the function returns a pair (value, aux), not a "
            f"{'tensor' if isinstance(out, Tensor) else type(out).__name__}.",
            "return value, aux",
        )
    return out


def lower(trace: Trace, tree: object) -> Any:
    """A tree with this trace's tracers replaced by their values."""
    leaves, structure = trees.flatten(tree, open_objects=False)
    return trees.unflatten(
        structure, [leaf.primal if isinstance(leaf, JVPTracer) and leaf.trace is trace else leaf for leaf in leaves]
    )
