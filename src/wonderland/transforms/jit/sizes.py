"""Batches of many sizes: which traces are one graph at different sizes, so that one program serves them all.

With `dynamic=` the first call is traced at a second size, too, and compiled for all. Without, the first size has a
program of its own; from the second one on, traces that differ in the first axes of arguments alone share a program. The
steps of the package's training loop wait for the third: a run that is resumed may meet the last batch of an epoch
first, and has to end with the same bits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from ...core import trees
from ...core.arguments import shown
from ...core.errors import InputError
from ...core.primitive import Aval
from ...core.tensor import Tensor
from ...ir.at_size import Outline, at_size
from ...ir.graph import Graph
from ...ir.sizes import Range, VaryingError, generalised, range_of
from .arguments import Arguments
from .traced import Traced

FAVOURED = 32  # rows to trace with where a single one was given
FAMILIES = 64  # kinds of calls that differ in sizes alone, of which the sizes are remembered

Dynamic = Mapping[str, Mapping[int, str]]


class Batch(NamedTuple):
    """A graph and the first sizes of its arguments."""

    leads: tuple[int, ...]
    graph: Graph


class Family:
    """Calls that differ in the first sizes of their arguments alone."""

    def __init__(self) -> None:
        self.seen: list[Batch] = []  # sizes with programs of their own that others are compared with
        self.outlines: dict[Range, Outline] = {}
        self.alone = ""  # why there is nothing in common


class Sizes:
    """The families of a function's calls."""

    def __init__(self, f: Callable[..., object], name: str, dynamic: Dynamic | None, tells: bool, own: int) -> None:
        self._name, self._own = name, own
        self._named = None if dynamic is None else names_of("jit", f, dynamic)
        self._families: dict[Hashable, Family] = {}
        self._tells = tells and dynamic is None
        self.refused = ""  # why the last size has a program of its own, if it could have been served by one for all

    def place(
        self,
        key: tuple[Hashable, ...],
        given: tuple[tuple[object, ...], dict[str, object]],
        arguments: Arguments,
        traced: Traced,
        trace: Callable[[Arguments], Traced],
    ) -> None:
        """Find the graph for all sizes that a trace belongs to, or make one. `trace` traces other arguments."""
        self.refused = ""
        operands = self._operands(given, arguments)
        if not operands:
            return
        family = self._family(key, arguments, operands)
        batch = Batch(tuple(arguments.operands[i].shape[0] for i in operands), traced.graph)
        if self._named is not None and not family.outlines:
            self._at_once(family, batch, operands, arguments, traced, trace)
        if len(family.seen) >= self._own or family.outlines:
            self.refused = family.alone
            if not family.alone and self._found(family, batch, traced):
                self._tell(family)
        elif all(batch.leads) and all(batch.leads != other.leads for other in family.seen):
            family.seen.append(batch)

    def _found(self, family: Family, batch: Batch, traced: Traced) -> bool:
        first = family.seen[0]
        sizes = {(a, b) for a, b in zip(first.leads, batch.leads, strict=True) if a != b}
        if len(sizes) > 1 or (not sizes and self._named is None):
            return False
        m, n = sizes.pop() if sizes else (first.leads[0], batch.leads[0])
        serving = range_of(n)
        if serving is None:
            return False
        if serving not in family.outlines:
            try:
                template = generalised(first.graph, batch.graph, (m, n), serving, self._named is not None)
            except VaryingError as reason:
                self.refused = str(reason)
                if m == 1:
                    family.seen[0] = batch  # a single row may be a case of its own
                elif n > 1 and not family.outlines:
                    family.alone = self.refused
                return False
            template.graph.states = traced.graph.states
            family.outlines[serving] = Outline(template)
        outline = family.outlines[serving]
        self.refused = outline.template.refused
        traced.graph.at_size = None if outline.template.refused else at_size(outline, batch.graph, n)
        return traced.graph.at_size is not None

    def _at_once(
        self,
        family: Family,
        batch: Batch,
        operands: list[int],
        arguments: Arguments,
        traced: Traced,
        trace: Callable[[Arguments], Traced],
    ) -> None:
        """Trace the function at another size, too."""
        if len(set(batch.leads)) > 1:
            raise InputError(f"jit: {self._name} has batches of {batch.leads} rows.", "one size for dynamic arguments")

        def at(rows: int) -> Batch:
            other = trace(with_rows(arguments, operands, rows))
            return Batch((rows,) * len(operands), other.graph)

        batch = batch if batch.leads[0] > 1 else at(FAVOURED)  # a single row may be a case of its own
        n = batch.leads[0]
        if (serving := range_of(n)) is None:
            return
        try:
            template = generalised(batch.graph, at(n + 1).graph, (n, n + 1), serving, named=True)
        except VaryingError as reason:
            raise InputError(
                f"jit: no program serves all sizes of {self._name}: {reason}.",
                "wl.jit without dynamic=, which compiles for every size",
            ) from None
        template.graph.states = traced.graph.states
        family.seen, family.outlines = [batch], {serving: Outline(template)}

    def _operands(self, given: tuple[tuple[object, ...], dict[str, object]], arguments: Arguments) -> list[int]:
        """The operands whose first axis may be a batch."""
        several = [i for i, x in enumerate(arguments.operands) if len(x.shape) and arguments.weak[i] is None]
        if self._named is None:
            return several
        return named_operands("jit", self._named, given, arguments)

    def _family(self, key: tuple[Hashable, ...], arguments: Arguments, operands: list[int]) -> Family:
        parts: list[Hashable] = list(arguments.key)
        for i in operands:  # as in `Arguments`, but for the first size
            x = arguments.operands[i]
            parts[1 + arguments.positions[i]] = (None, *x.shape[1:]), x.dtype
        name = (tuple(parts), key[0], *key[2:])
        family = self._families.pop(name, None) or Family()
        self._families[name] = family
        while len(self._families) > FAMILIES:
            del self._families[next(iter(self._families))]
        return family

    def _tell(self, family: Family) -> None:
        """Say once that sizes need no compiling any more, when the first one does not."""
        compiled = any(outline.template.graph.programs for outline in family.outlines.values())
        if self._tells and sys.stderr is not None and compiled:
            self._tells = False
            sys.stderr.write(f"wonderland: {self._name}: one program serves batches of all sizes from now on\n")


def names_of(purpose: str, f: Callable[..., object], dynamic: Dynamic) -> dict[str, int]:
    """The positions of the arguments whose first axis is a batch, by their names."""
    import inspect  # takes a while to load

    remedy = 'dynamic={"x": {0: "batch"}}: arguments by name, and the axis in front'
    wrong = InputError(f"{purpose}: dynamic={shown(dynamic)}.", remedy)
    if not isinstance(dynamic, Mapping) or not dynamic:
        raise wrong
    known = list(inspect.signature(f).parameters)
    for name, axes in dynamic.items():
        if name not in known:
            raise InputError(f"{purpose}: dynamic names {name!r}, but the arguments are {known}.", remedy)
        if not isinstance(axes, Mapping) or [*axes] != [0] or not isinstance(axes[0], str):
            raise wrong
    if len({axes[0] for axes in dynamic.values()}) > 1:
        raise InputError(f"{purpose}: dynamic={shown(dynamic)} has several sizes.", "one name: they vary together")
    return {name: known.index(name) for name in dynamic}


def named_operands(
    purpose: str, names: Mapping[str, int], given: tuple[tuple[object, ...], dict[str, object]], arguments: Arguments
) -> list[int]:
    """The operands that arguments of these names consist of."""
    args, kwargs = given
    values = [args[i] for i in names.values() if i < len(args)]
    values += [kwargs[name] for name in names if name in kwargs]
    mine = {id(leaf) for value in values for leaf in trees.leaves(value)}
    several = [i for i, x in enumerate(arguments.operands) if len(x.shape) and arguments.weak[i] is None]
    found = [i for i in several if id(arguments.leaves[arguments.positions[i]]) in mine]
    if not found:
        raise InputError(f"{purpose}: the dynamic arguments {[*names]} have no axis.", "tensors with a batch in front")
    return found


def with_rows(arguments: Arguments, operands: list[int], rows: int) -> Arguments:
    """The arguments with another first size of some operands, to be traced."""
    changed: list[Tensor | Aval] = list(arguments.operands)
    for i in operands:
        changed[i] = Aval((rows, *changed[i].shape[1:]), changed[i].dtype)
    return arguments.with_operands(arguments.leaves, changed, arguments.cells)  # type: ignore[arg-type]
