"""The last call of a function: one like it is found quickly, and carried out at once if nothing has moved.

Like it: tensors, arrays and numbers of the same types (in the same lists, dicts, graphs and other trees), and modules
and optimizers of the same structure. At once: the very same modules and optimizers, whose cells are at rest
(core/cell.py), so that state need not even be looked at: its addresses are in the table of a bound program.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter, is_
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ...arrays.conversion import SCALAR_KIND, asarray, from_scalar
from ...core import context, trees
from ...core.cell import Cell, Rest, Run, Snapshot, rest
from ...core.context import current, structure_version
from ...core.dtypes import DType
from ...core.primitive import Primitive
from ...core.tensor import Distant, Shape, Tensor, wrap
from ...core.typing import Array
from ...ir.stage import EXACT
from .arguments import Arguments
from .constants import Opened, is_remembered, opened
from .environment import Environment
from .patience import Patience
from .records import Recorder
from .traced import LOCK, Traced, in_use, runs, waiting

if TYPE_CHECKING:
    from ...engines.native.bound import Bound
    from ...engines.native.entry import Entry, Guards
    from ...engines.native.program import Program

_data, _node, _outside = attrgetter("_data"), attrgetter("_node"), attrgetter("_outside")
MISSED = object()  # instead of a result


class Whole:
    """Which module an argument was, without keeping it alive."""

    __slots__ = ("identities", "kind", "parts", "reference", "version")

    def __init__(self, module: object) -> None:
        self.note(module, opened(module))

    def note(self, module: object, parts: Opened) -> None:
        """The module is this one, in its present structure."""
        self.kind, self.identities = parts.kind, parts.identities
        self.parts = {0: parts}  # while the module lives
        # a function of C, as what Ctrl-C raises in one of ours would be lost: nobody has called it
        self.reference = weakref.ref(module, functools.partial(self.parts.pop, 0))
        self.version = parts.version if is_remembered(module) else None  # None: it may change unnoticed


# A shape and a dtype, the type of a number, a module, a container, or a value itself.
Kind: TypeAlias = "tuple[Shape, DType] | type | Whole | Inner | trees.Static | None"


class Inner:
    """A list, tuple, dict or another node of a tree in the arguments: what it is, and the kinds of what it holds."""

    __slots__ = ("kinds", "meta", "names", "order", "sort")

    def __init__(
        self, sort: type, kinds: list[Kind], names: Sequence[str] = (), order: Sequence[str] = (), meta: object = None
    ) -> None:
        self.sort, self.kinds = sort, kinds
        self.names, self.order = names, list(order)  # the keys of a dict, as they are flattened and as they came
        self.meta = meta  # what is static in another node, see `trees.node_of`


def kind_of(arg: object) -> Kind:
    """What an argument has to be like; an error if that cannot be told so simply."""
    sort = type(arg)
    if type(arg) is Tensor:
        return (arg._data.shape, arg._data.dtype)
    if type(arg) is Distant:
        return (arg.shape, arg.dtype)
    if arg is None:
        return None
    if type(arg) is np.ndarray:
        return kind_of(asarray(arg))
    if sort is bool or sort is str:
        return trees.Static(arg)
    if sort in SCALAR_KIND:
        return sort
    if isinstance(arg, (list, tuple)) and sort in (list, tuple):
        return Inner(sort, [kind_of(part) for part in arg])
    if type(arg) is dict and all(type(key) is str for key in arg):
        names = sorted(arg)
        return Inner(sort, [kind_of(arg[name]) for name in names], names, list(arg))
    if trees.is_stateful(arg):
        return Whole(arg)
    if (node := trees.node_of(arg)) is not None and not isinstance(arg, dict):
        return Inner(sort, [kind_of(part) for _, part in node[2]], meta=node[1])
    raise TypeError


class Found(Run):
    """Arguments that are like those before, taken apart; and the call with them."""

    __slots__ = ("leaves", "operands", "parts", "same", "traced", "version")

    def __init__(self, traced: Traced) -> None:
        super().__init__()
        self.traced = traced
        self.version = structure_version()
        self.leaves: list[object] = []
        self.operands: list[Tensor] = []
        self.parts: list[Opened] = []  # of the modules
        self.same = True  # whether these are not only like those before, but the same

    def add(self, args: Sequence[object], kinds: list[Kind]) -> bool:
        """Whether the arguments are of these kinds; they are added then."""
        if len(args) != len(kinds):
            return False
        for arg, kind in zip(args, kinds, strict=True):
            if isinstance(kind, tuple):
                if type(arg) is Tensor or type(arg) is Distant:
                    value: Tensor | None = arg
                else:
                    value = asarray(arg) if type(arg) is np.ndarray else None
                if value is None or (value.shape, value.dtype) != kind:
                    return False
                self.operands.append(value)
            elif isinstance(kind, Whole):
                if not self._add_module(arg, kind):
                    return False
            elif isinstance(kind, Inner):
                if not self._add_inner(arg, kind):
                    return False
                continue  # no leaf of the arguments
            elif kind is None:
                if arg is not None:
                    return False
                continue
            elif isinstance(kind, trees.Static):
                if arg is not kind.value and trees.Static(arg) != kind:
                    return False
            else:
                if type(arg) is not kind:
                    return False
                self.operands.append(from_scalar(arg, EXACT[SCALAR_KIND[kind]]))  # type: ignore[arg-type]  # a number
            self.leaves.append(arg)
        return True

    def _add_inner(self, arg: object, kind: Inner) -> bool:
        if type(arg) is not kind.sort:
            return False
        if isinstance(arg, dict):
            return list(arg) == kind.order and self.add([arg[name] for name in kind.names], kind.kinds)
        if isinstance(arg, (list, tuple)):
            return self.add(arg, kind.kinds)
        node = trees.node_of(arg)
        return node is not None and node[1] == kind.meta and self.add([part for _, part in node[2]], kind.kinds)

    def _add_module(self, arg: object, kind: Whole) -> bool:
        known = kind.parts.get(0)
        if known is not None and kind.reference() is arg and kind.version == self.version:
            self.parts.append(known)
            return True
        self.same = False
        inside = opened(arg) if trees.is_stateful(arg) else None
        if inside is None or inside.kind is not kind.kind or inside.identities != kind.identities:
            return False
        kind.note(arg, inside)  # changed and back again
        self.parts.append(inside)
        return True

    @property
    def cells(self) -> list[Cell]:
        """Those of the modules."""
        return [cell for parts in self.parts for cell in parts.cells]

    def touched(self) -> tuple[Sequence[Cell], Sequence[Cell]]:
        return self.traced.pick_read(self.cells), self.traced.pick_written(self.cells)


class Binding(NamedTuple):
    """What was found by a call that can be repeated at once: it is the same as long as this very rest goes on."""

    rest: Rest
    settings: object  # all of them
    captured: list[Array]  # the constants of the trace
    asked: bool  # whether results may be differentiated later
    recorder: Recorder | None  # None: of such calls none is recorded here, they take the long way


class Entering:
    """Calls of one trace with arguments of certain kinds, as a function."""

    def __init__(self, traced: Traced, kinds: list[Kind], environment: Environment, run: Run) -> None:
        self._traced, self._kinds, self._environment, self._run = traced, kinds, environment, run
        self._bound: Bound | None = None
        self._entry: Entry | None = None
        self._function: Callable[..., object] | None = None
        self._made_for: tuple[object, ...] = ()

    def function(self, bound: Bound, binding: Binding, version: int) -> Callable[..., object] | None:
        """The function for calls with a binding and with structures of a version; None if there is none."""
        if any(whole.version != version for whole in wholes(self._kinds)):
            return None  # it may change unnoticed, or has just done so
        nodes = [captured._node for captured in self._traced.captured]
        made_for = (bound, bound.crew(), *[id(whole.reference) for whole in wholes(self._kinds)], *nodes)
        if made_for != self._made_for:
            self._made_for, self._entry = made_for, self._made(bound)
            self._function = None if self._entry is None else self._entry.function()
        if self._entry is None:
            return None
        self._entry.renew(binding)
        self._entry.outside(self._state, context.current())
        self._entry.expect(self._version, version)
        self._entry.expect(self._now, binding.rest)
        if self._record is not None:
            recorder = binding.recorder
            when = 0 if not binding.asked else 2 if recorder and recorder.always else 1
            self._entry.records(self._record, when, recorder.record if recorder else None)
        return self._function

    def used(self) -> bool:
        """Whether a call has been made by the function since this was asked the last time."""
        return self._entry is not None and self._entry.used()

    def _made(self, bound: Bound) -> Entry | None:
        traced = self._traced
        form = _form(traced)
        guards = bound.guards(len(self._kinds))
        if guards is None or form is None:
            return None
        places = iter(bound.moving)
        if not all(_guard(guards, i, kind, places, traced.recorded) for i, kind in enumerate(self._kinds)):
            return None
        self._record = guards.record() if traced.recorded else None
        self._state = guards.context(context.STATE, context.current())
        self._version = guards.name(vars(context), "_version", None)
        self._now = guards.attribute(rest, "now", None) if traced.read_cells else None
        guards.empty(runs)
        guards.empty(rest.runs)
        guards.empty(waiting)
        if traced.changes:
            guards.empty(rest.snapshots)
        if not self._environment.guard(guards):
            return None
        for captured in traced.captured:
            guards.attribute(captured, "_data", captured._data)
            if traced.recorded:
                guards.attribute(captured, "_node", captured._node)
        return bound.entry(guards, form, MISSED, LOCK, self._run if traced.read_cells else None, rest.runs)


def _guard(guards: Guards, register: int, kind: Kind, places: Iterator[int], recorded: bool) -> bool:
    """Let an argument be of its kind. False: native code cannot tell."""
    if isinstance(kind, tuple):
        guards.tensor(register, *kind, next(places), recorded)
    elif isinstance(kind, Whole):
        guards.module(register, kind.reference, kind.parts)
    elif isinstance(kind, Inner):
        inside = _opened(guards, register, kind)
        if inside is None:
            return False
        if kind.order:
            inside = [inside[kind.order.index(name)] for name in kind.names]
        return all(_guard(guards, i, inner, places, recorded) for i, inner in zip(inside, kind.kinds, strict=True))
    elif kind is None or isinstance(kind, trees.Static):
        guards.same(register, None if kind is None else kind.value)
    else:
        return False
    return True


def _opened(guards: Guards, register: int, kind: Inner) -> list[int] | None:
    """The registers of what is inside; None where native code cannot tell, as nodes are opened by Python functions."""
    if issubclass(kind.sort, (list, tuple, dict)):
        return guards.inside(register, kind.sort, kind.order or range(len(kind.kinds)))
    if not isinstance(kind.meta, tuple):
        return None
    fixed, names = kind.meta  # of a dataclass
    for name, value in fixed:
        guards.same(guards.fields(register, kind.sort, [name])[0], value.value)
    return guards.fields(register, kind.sort, names)


def _form(traced: Traced) -> int | None:
    """Whether a function returns nothing, a tensor or a tuple of them: how many axes that has, as it were."""
    if traced.alone:
        return 1
    if traced.structure is trees.NONE:
        return 0
    tensors = traced.places == [("tensor", i) for i in range(traced.count)]
    flat = traced.structure.kind == "tuple" and all(part is trees.LEAF for part in traced.structure.children)
    return 2 if tensors and flat else None


def wholes(kinds: list[Kind]) -> list[Whole]:
    """The modules among the kinds of arguments."""
    found: list[Whole] = []
    for kind in kinds:
        if isinstance(kind, Whole):
            found.append(kind)
        elif isinstance(kind, Inner):
            found += wholes(kind.kinds)
    return found


class Standing(Run):
    """A call that native code carries out."""

    __slots__ = ("recent",)
    certain = True

    def __init__(self, recent: Recent) -> None:
        super().__init__()
        self.recent = weakref.ref(recent)

    def touched(self) -> tuple[Sequence[Cell], Sequence[Cell]]:
        recent = self.recent()
        assert recent is not None  # it is being called
        cells = [cell for whole in wholes(recent.kinds) for cell in whole.parts[0].cells]
        return recent.traced.pick_read(cells), recent.traced.pick_written(cells)


class Recent:
    """The last call of a function."""

    __slots__ = (
        "__weakref__",
        "_binding",
        "_bound",
        "_entering",
        "_patience",
        "_program",
        "_run",
        "_traced",
        "_used",
        "arguments",
        "enter",
        "environment",
        "kinds",
        "traced",
    )

    def __init__(self, kinds: list[Kind], arguments: Arguments, traced: Traced, environment: Environment) -> None:
        self.kinds = kinds  # for each argument its shape and dtype, or which module it was, or itself
        self.arguments = arguments.with_operands([], [], [])
        self.traced = traced
        self.environment = environment
        self._traced: object = current().settings.traced
        self._binding: Binding | None = None  # what is in the table of the bound program
        self._program: weakref.ref[Program] | None = None
        self._bound: Bound | None = None
        self._patience = Patience()
        self._used = False  # whether a call was repeated at once by Python
        self._run = Standing(self)
        self._entering = Entering(traced, kinds, environment, self._run)
        self.enter: Callable[..., object] | None = None  # the call as a function of C: its result, or MISSED

    @classmethod
    def of(
        cls, args: tuple[object, ...], arguments: Arguments, traced: Traced, environment: Environment
    ) -> Recent | None:
        try:
            return cls([kind_of(arg) for arg in args], arguments, traced, environment)
        except TypeError:
            return None

    def again(self, args: tuple[object, ...], environment: Environment) -> tuple[Traced, Arguments] | None:
        """The trace for these arguments, if nothing but the numbers in tensors has changed."""
        if environment is not self.environment or self.traced.stale():
            return None
        found = Found(self.traced)
        if current().settings.traced != self._traced or not found.add(args, self.kinds):
            return None
        return self.traced, self.arguments.with_operands(found.leaves, found.operands, found.cells)

    # --- at once

    def stand(
        self,
        standing: Rest,
        version: int,
        program: Program,
        arguments: Arguments,
        primitive: Primitive,
        snapshot: Snapshot | None,
    ) -> None:
        """A call has succeeded during a rest, with structures of a version, and state of which that is nobody else's
        which it has written. The snapshot is that of its record."""
        self.enter = self._binding = None
        used, self._used = self._entering.used() or self._used, False
        if not self._patience.prepares(used):
            return
        state, traced = current(), self.traced
        if state.settings.fill is not None or state.key is None:
            return
        arrays = [*map(_data, (*traced.captured, *map(_outside, traced.pick_read(arguments.cells))))]
        if self._program is None or self._program() is not program:
            self._program, self._bound = weakref.ref(program), program.bound(len(arrays))
        asked, recorder = traced.recorded and state.settings.grad_enabled, None
        if asked and state.plain and not traced.changes:
            recorder = Recorder(primitive, traced, self._run, snapshot)
        binding = Binding(standing, state.key, arrays[: len(traced.captured)], asked, recorder)
        if self._bound is not None and self._bound.hold(binding, arrays):
            self._binding = binding
            self._enter(self._bound, binding, version, [*map(_data, arguments.operands)])

    def _enter(self, bound: Bound, binding: Binding, version: int, operands: list[Array]) -> None:
        """Let native code expect things to be as they are, and arguments in one piece: it would copy others in vain."""
        if not all(a.flags.c_contiguous for a in operands):
            return
        with LOCK:
            self.enter = self._entering.function(bound, binding, version)

    def at_once(self, args: tuple[object, ...]) -> object:
        """The result for these arguments if the call can be repeated at once, or MISSED."""
        state, traced, bound, binding = current(), self.traced, self._bound, self._binding
        if binding is None or bound is None or state.key != binding.settings:
            return MISSED
        found = Found(traced)
        try:
            with LOCK:
                if runs or rest.runs or waiting:
                    return MISSED
                if not (found.add(args, self.kinds) and found.same) or traced.stale() or self.environment.changed():
                    return MISSED
                if traced.captured and not all(map(is_, map(_data, traced.captured), binding.captured)):
                    return MISSED
                operands, recorder, snapshot = [*map(_data, found.operands)], binding.recorder, None
                nodes = [*map(_node, found.operands)] if binding.asked else []
                if (recorder and recorder.always) or any(node is not None for node in nodes):
                    if recorder is None or not recorder.fits():
                        return MISSED
                    snapshot = recorder.snapshot()
                if traced.read_cells:
                    rest.runs.add(found)  # first, see core/cell.py
                    if rest.now is not binding.rest or (traced.changes and rest.keeps(bound.overwritten)):
                        return MISSED
            arrays = bound(binding, operands, found.delivery() if traced.changes else ())
        finally:
            rest.runs.discard(found)
        if arrays is None:
            return MISSED
        self._enter(bound, binding, found.version, operands)
        self._used = True
        if snapshot is not None and recorder is not None:
            record = recorder.record(operands, nodes, arrays, snapshot)
            return traced.result(found.leaves, record.results(traced.count))
        if traced.alone:
            return wrap(arrays[0])
        return traced.result(found.leaves, [wrap(a) for a in arrays])


in_use.codes.append(Recent.at_once.__code__)
