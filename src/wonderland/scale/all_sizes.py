"""One graph for all sizes of a batch, for programs that go where nobody traces.

`jit` traces every new size and compares. Here the function is traced at a few sizes: what they have in common is the
graph (ir/sizes.py), and numbers that come from the size become formulas (ir/size_numbers.py). What differs otherwise is
an error that tells what it is.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from typing import NamedTuple, NoReturn

import numpy as np

from ..core.arguments import shown
from ..core.errors import InputError, WonderlandError
from ..core.primitive import Aval
from ..core.tensor import Tensor
from ..core.typing import Array
from ..ir.at_size import numbers_at
from ..ir.graph import Equation, Graph, Literal, Var, has_effect
from ..ir.inlining import inlined
from ..ir.size_numbers import Formula, formula_of
from ..ir.sizes import Range, Template, VaryingError, generalised, resized, varying
from ..primitives.creation import iota
from ..primitives.structure import broadcast_to, reshape
from ..transforms.jit.arguments import Arguments
from ..transforms.jit.jit import traced_as, traced_with
from ..transforms.jit.sizes import Dynamic, named_operands, names_of, with_rows
from ..transforms.jit.traced import Traced
from .alike import alike

OTHERS = (2, 3, 7, 130, 4099)  # sizes at which the graph has to be the same, besides two neighbours
FAVOURED = 32  # rows of the first trace where a single one was given
ANY = Range(1, (1 << 31) - 1, 128)
FIXED, COUNTED, ALIKE = "fixed", "counted", "alike"  # constants: the same for all sizes; 0, 1, 2, ...; one value


class ForAll(NamedTuple):
    """A function for all sizes of a batch."""

    graph: Graph
    name: str  # of the size
    least: int  # the smallest
    formulas: list[Formula]  # of the last inputs of the graph, which come from the size
    constants: list[Array]  # the first inputs
    traced: Traced
    arguments: Arguments

    @property
    def numbers(self) -> list[Var]:
        """The inputs that come from the size."""
        return self.graph.inputs[len(self.graph.inputs) - len(self.formulas) :]


def for_all_sizes(
    purpose: str, f: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object], dynamic: Dynamic
) -> ForAll:
    """The graph of a function whose `dynamic` arguments have a batch in front, see `jit`."""
    names = names_of(purpose, f, dynamic)
    size_name = next(iter(dynamic.values()))[0]
    if not size_name.isidentifier():
        raise InputError(f"{purpose}: {size_name!r} cannot be the name of a size.", 'a name such as "batch"')
    traced, arguments = traced_as(purpose, f, args, kwargs)
    operands = named_operands(purpose, names, (args, kwargs), arguments)
    leads = {arguments.operands[i].shape[0] for i in operands}
    name = getattr(f, "__name__", "function")
    if len(leads) > 1:
        raise InputError(
            f"{purpose}: {name} has batches of {tuple(sorted(leads))} rows.", "one size for dynamic arguments"
        )

    def refuse(reason: object) -> NoReturn:
        raise InputError(
            f"{purpose}: no program serves all sizes of {name}: {reason}.", f"{purpose} without dynamic=, for each size"
        ) from None

    def at(rows: int) -> Traced:
        return traced_with(purpose, f, with_rows(arguments, operands, rows))

    n = max(leads)
    if n < 2:  # a single row may be a case of its own
        n, traced = FAVOURED, at(FAVOURED)
    found = _Family(traced, n)
    try:
        found.start(at(n + 1))
        for other in OTHERS:
            if other not in (n, n + 1):
                found.add(at(other), other)
        formulas, graph = found.formulas(), found.graph()
    except VaryingError as reason:
        refuse(reason)
    constants = [c._data for c, kind in zip(traced.captured, found.kinds, strict=True) if kind == FIXED]
    made = ForAll(graph, size_name, 2, formulas, constants, traced, arguments)
    return made._replace(least=1) if _serves_one(made, at, operands) else made


def _serves_one(made: ForAll, at: Callable[[int], Traced], operands: list[int]) -> bool:
    """Whether the program is right for a single row, for the state as it is and the first row of the arguments."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nobody has asked for a single row yet
            one = at(1)
        numbers = [np.asarray(formula.of(1), v.dtype) for formula, v in zip(made.formulas, made.numbers, strict=True)]
    except (WonderlandError, ZeroDivisionError):  # such as the variance of a single row
        return False
    if _state(one) != _state(made.traced) or any(map(has_effect, made.graph.equations)):
        return False  # it is not the same state, or it would do something besides
    given = [_numbers(x, i in operands) for i, x in enumerate(made.arguments.operands)]
    arrays = [*[cell.value._data for cell in one.pick_read(made.arguments.cells)], *given]
    general = resized(made.graph, lambda extent: extent.at(1))
    own = [c._data for c in one.captured]
    return alike(general, [*made.constants, *arrays, *numbers], inlined(one.graph), [*own, *arrays])


def _numbers(x: Tensor | Aval, batch: bool) -> Array:
    """Those of an argument, of a batch the first row; zeros where it is only described."""
    shape = (1, *x.shape[1:]) if batch else x.shape
    if isinstance(x, Aval) or not x.size:
        return np.zeros(shape, x.dtype)
    return x._data[:1] if batch else x._data


class _Family:
    """Traces of one function at several sizes."""

    template: Template

    def __init__(self, first: Traced, n: int) -> None:
        self.first, self.n = first, n
        self._values: list[dict[int, Array]] = []  # of each number, by sizes
        self.kinds: list[str] = []  # of the constants: FIXED, COUNTED or ALIKE

    def start(self, other: Traced) -> None:
        """Make the graph of the first trace and one with one row more."""
        self.template = generalised(
            inlined(self.first.graph), inlined(other.graph), (self.n, self.n + 1), ANY, named=True
        )
        inputs = self.template.graph.inputs
        self.kinds = [
            _kind(x) if varying(v.shape) else FIXED for v, x in zip(inputs, self.first.captured, strict=False)
        ]
        self._values = [{} for _ in range(self.template.count)]
        self.add(self.first, self.n)
        self.add(other, self.n + 1)

    def add(self, traced: Traced, n: int) -> None:
        """Another size, which has to have the same graph, constants and state."""
        numbers = numbers_at(self.template, inlined(traced.graph), n)
        for kind, x, y in zip(self.kinds, self.first.captured, traced.captured, strict=True):
            if not _agrees(kind, x, y):
                raise VaryingError(f"a constant of it is {shown(x)} for a batch of {self.n}, {shown(y)} for one of {n}")
        if _state(traced) != _state(self.first):
            raise VaryingError(f"it reads or writes other state for a batch of {n} than for one of {self.n}")
        for values, number in zip(self._values, numbers, strict=True):
            values[n] = number

    def graph(self) -> Graph:
        """The graph for all sizes, with the constants made in it that depend on the size."""
        general = self.template.graph
        inputs: list[Var] = []
        made: list[Equation] = []
        for var, kind, x in zip(general.inputs, self.kinds, self.first.captured, strict=False):
            if kind == FIXED:
                inputs.append(var)
                continue
            flat = Var(Aval((math.prod(var.shape),), var.dtype))
            if kind == COUNTED:
                made.append(Equation(iota, [], {"size": flat.shape[0], "dtype": var.dtype}, [flat]))
                made.append(Equation(reshape, [flat], {"shape": var.shape}, [var]))
            else:
                one = Literal(np.array(x._data.flat[0]))
                made.append(Equation(broadcast_to, [one], {"shape": var.shape}, [var]))
        inputs += general.inputs[len(self.kinds) :]
        return Graph(inputs, [*made, *general.equations], general.outputs, general.name)

    def formulas(self) -> list[Formula]:
        """The formulas of all numbers, in the order of the inputs that they are."""
        graph, found = self.template.graph, []
        for var, values in zip(graph.inputs[-len(self._values) :] if self._values else [], self._values, strict=True):
            formula = formula_of(values)
            if formula is None:
                e = next(e for e in graph.equations if any(a is var for a in e.inputs))
                where = f" ({os.path.basename(e.source.file)}:{e.source.line})" if e.source else ""
                some = ", ".join(f"{values[n]} for {n}" for n in sorted(values)[:4])
                raise VaryingError(f"{e.primitive.name}{where} takes a number whose formula is not known: {some}")
            found.append(formula)
        return found


def _state(traced: Traced) -> list[int | None]:
    """What is read, then what is written: cells of the arguments by their place, others by themselves."""
    both = [*traced.read_cells, None, *traced.written_cells]
    return [c if c is None or type(c) is int else -id(c) for c in both]


def _kind(x: Tensor) -> str:
    """How a constant may be made for every size that has the size of the batch."""
    for kind in (COUNTED, ALIKE):
        if x.size and _agrees(kind, x, x):
            return kind
    raise VaryingError(f"a constant of it, {shown(x)}, has the size of the batch")


def _agrees(kind: str, x: Tensor, y: Tensor) -> bool:
    """Whether a constant y for another size is what x is."""
    if kind == COUNTED:
        return np.array_equal(y._data.ravel(), np.arange(y.size))
    if kind == ALIKE:
        return bool((y._data == x._data.flat[0]).all())
    return x is y or (x.shape == y.shape and x.dtype == y.dtype and x._data.tobytes() == y._data.tobytes())
