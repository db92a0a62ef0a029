"""The interpreter of derivatives: every value travels with its tangent. Book, section 6.2.

It serves both modes. In forward mode a tangent is a number; in reverse mode it is a `Tangent` that
records what happens to it, and the recording is transposed afterwards (reverse.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .cell import Cell
from .context import BACKWARD, FORWARD, FORWARD_MODE, Trace, current, current_pass, leave, step_out
from .dtypes import COMPLEXES, FLOATS, DType, is_inexact
from .errors import GradientError, TraceError
from .interpreter import Later, Tangent, apply_linear, bind
from .primitive import LINEAR, ZERO, Primitive
from .tensor import VALUES, Shape, Tensor, Tracer, format_array, noun
from .typing import Array, Tangents

FEW = 1 << 12  # elements that are kept for the backward pass sooner than a recording of linear operations is made
_INEXACT = frozenset(FLOATS + COMPLEXES)


class JVPTracer(Tracer):
    """A value and its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: JVPTrace, primal: Tensor, tangent: Tensor | None) -> None:
        self.trace = trace
        self.primal = primal
        self.tangent = tangent

    @property
    def shape(self) -> Shape:
        return self.primal.shape

    @property
    def dtype(self) -> DType:
        return self.primal.dtype

    def _concrete(self, what: str) -> Array:
        if what in ("bool", "int"):  # control flow follows the value
            return self.primal._concrete(what)
        raise TraceError(
            f"{what}: turning a value that is being differentiated into {noun(what)} would cut its derivative off.",
            "functions of wonderland instead of math or NumPy, x.item() or wl.stop_gradient(x) if the cut is meant",
        )

    def _item_data(self) -> Array:
        return self.primal._item_data()

    def __repr__(self) -> str:
        value = self.primal
        while isinstance(value, JVPTracer):
            value = value.primal
        return format_array(value._data, "tensor", ", traced") if type(value) in VALUES else f"traced({value!r})"


class JVPTrace:
    """The interpreter of forward mode."""

    __slots__ = ("later", "parent", "staged", "written")

    def __init__(self, parent: Trace | None, later: bool = False) -> None:
        """`later`: in reverse mode, derivatives may be left to the backward pass, see `_waits`."""
        self.parent = parent
        self.later = later
        self.staged: bool = parent is not None and parent.staged
        self.written: dict[int, Cell] = {}

    @property
    def concrete(self) -> bool:
        """Whether values can be looked at, so that Python control flow works."""
        return self.parent is None or self.parent.concrete

    def process(self, primitive: Primitive, args: Sequence[Tensor], params: dict[str, object]) -> Any:
        primals: list[Tensor] = []
        tangents: Tangents = []
        active, plain = False, self.later and primitive.linearize is None and not primitive.foreign
        for arg in args:
            tangent = None
            if type(arg) is JVPTracer and arg.trace is self:
                tangent, arg = arg.tangent, arg.primal
                active = active or tangent is not None
            primals.append(arg)
            tangents.append(tangent)
            plain = plain and type(arg) is Tensor and arg._node is None
        # numbers and tangents that record themselves need no other interpreter
        inside = None if plain and current().plain else step_out()
        try:
            if not active:
                return bind(primitive, *primals, **params)
            if primitive.linearize is not None:
                out, tangent = primitive.linearize(primals, tangents, **params)
            else:
                out = bind(primitive, *primals, **params)
                if self.later and _waits(primitive, primals, tangents, out):
                    tangent = Tangent(out.shape, out.dtype, Later(primitive, tangents, params, primals, out))
                else:
                    tangent = tangent_of(primitive, primals, tangents, out, params)
        finally:
            if inside is not None:
                leave(inside)
        if primitive.multiple:
            return [o if t is None else JVPTracer(self, o, t) for o, t in zip(out, tangent, strict=True)]
        return out if tangent is None else JVPTracer(self, out, tangent)

    def read(self, cell: Cell, value: Tensor) -> Tensor:
        assert self.parent is not None  # only staged interpreters are asked, and this one is if its parent is
        return self.parent.read(cell, value)

    def note_write(self, cell: Cell) -> None:
        self.written[id(cell)] = cell
        if self.parent is not None:
            self.parent.note_write(cell)

    def note_create(self, cell: Cell) -> None:
        self.written[id(cell)] = cell
        if self.parent is not None:
            self.parent.note_create(cell)

    def finish(self) -> list[tuple[Cell, Tensor]]:
        """Cells that were written, with the values that they keep outside: tangents end here."""
        return [(cell, self.split(cell.release())[0]) for cell in self.written.values()]

    def split(self, value: Tensor) -> tuple[Tensor, Tensor | None]:
        """The primal and the tangent (None: zero) of a value."""
        if isinstance(value, JVPTracer) and value.trace is self:
            return value.primal, value.tangent
        return value, None


def _waits(primitive: Primitive, primals: Sequence[Tensor], tangents: Sequence[Tensor | None], out: Tensor) -> bool:
    """Whether a derivative is better worked out in the backward pass: if it needs numbers that are not there yet.

    That of a small operation is, too: to keep its numbers is quicker than to record linear operations.
    """
    rules = primitive.jvp
    if primitive.multiple or out.dtype not in _INEXACT:
        return False
    linear = callable(rules)
    if not callable(rules):
        last = len(rules) - 1
        for i, tangent in enumerate(tangents):
            if tangent is not None:
                rule = rules[i if i < last else last] if rules else None
                if rule is None:
                    return False  # there is none, and an error says so
                if callable(rule):
                    return True
                linear = linear or rule is LINEAR
    if not linear or not _is_small(out):
        return False
    for primal in primals:  # noqa: SIM110 - every operation asks
        if not _is_small(primal):
            return False
    return True


def _is_small(x: Tensor) -> bool:
    """Whether keeping x keeps little memory; a view keeps what it is a view of."""
    if type(x) is not Tensor:
        return False
    base = x._data.base
    return x._data.size <= FEW and (base is None or (type(base) is np.ndarray and base.size <= FEW))


def tangent_of(
    primitive: Primitive, primals: list[Tensor], tangents: Sequence[Tensor | None], out: Any, params: dict[str, object]
) -> Any:
    """The tangent of a primitive's result: the sum over the arguments of derivative times tangent."""
    if primitive.linearize is not None:
        return primitive.linearize(primals, tangents, **params)[1]
    if current().plain or current_pass.get().phase != FORWARD:
        return _tangent_of(primitive, primals, tangents, out, params)
    with deriving(primitive.name, tangents):
        return _tangent_of(primitive, primals, tangents, out, params)


class deriving:  # noqa: N801 - reads as `with deriving(name, tangents):`
    """Notes, for errors and debugging, that the derivative of an operation is being computed."""

    __slots__ = ("before", "name", "tangents")

    def __init__(self, name: str, tangents: Sequence[Tensor | None]) -> None:
        self.name = name
        self.tangents = tangents

    def __enter__(self) -> None:
        self.before = current_pass.get()
        if not current().plain and self.before.phase == FORWARD:  # of nested derivatives the outermost counts
            mode = BACKWARD if any(type(t) is Tangent for t in self.tangents) else FORWARD_MODE
            current_pass.set(self.before._replace(phase=f"{mode}, derivative of {self.name}"))

    def __exit__(self, *exception: object) -> None:
        current_pass.set(self.before)


def _tangent_of(
    primitive: Primitive, primals: list[Tensor], tangents: Sequence[Tensor | None], out: Any, params: dict[str, object]
) -> Any:
    rules = primitive.jvp
    if callable(rules):
        return rules(primals, tangents, out, **params)
    if not primitive.multiple and not is_inexact(out.dtype):
        return None
    total: Any = [None] * len(out) if primitive.multiple else None
    for i, t in enumerate(tangents):
        if t is None:
            continue
        rule = rules[min(i, len(rules) - 1)] if rules else None
        if rule is ZERO:
            continue
        if rule is None:
            raise GradientError(
                f"{primitive.name}: has no derivative with respect to argument {i}.",
                "wl.stop_gradient(x) if none is wanted, or wl.custom_jvp / wl.custom_vjp to define one",
            )
        if rule is LINEAR:
            args = [t if j == i else p for j, p in enumerate(primals)]
            part = (
                bind(primitive, *args, **params)
                if primitive.multiple
                else apply_linear(primitive, args, params, t, out)
            )
        else:
            part = rule(t, out, *primals, **params)  # type: ignore[operator]  # no marker is left
        if primitive.multiple:
            total = [add_tangents(a, b) for a, b in zip(total, part, strict=True)]
        else:
            total = add_tangents(total, part)
    return total


def add_tangents(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The sum of two tangents or adjoints, either of which may be None for zero."""
    if a is None:
        return b
    return a if b is None else a + b
