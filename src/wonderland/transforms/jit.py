"""`jit`: trace a function once per kind of input, then run its graph.

Tensors and Python numbers are inputs of the graph; everything else (flags, strings, functions, the structure of trees
and modules) is part of what the trace was made for. State lives in cells: those of modules in the arguments and those
that the function reaches otherwise (a module in a closure, the global random stream) are read before and written after
the run.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter, is_, itemgetter
from threading import get_ident
from types import MethodType
from typing import Any

import numpy as np

from .. import trees
from ..arguments import as_function
from ..arrays.conversion import SCALAR_KIND, asarray, from_scalar
from ..backends import run
from ..cell import Cell
from ..context import current, exhaust, structure_version, uncollected
from ..errors import InputError, TraceError
from ..forking import open_after_fork
from ..graph.ir import Graph
from ..graph.simplify import remove_dead, simplify
from ..graph.stage import EXACT, GraphTracer, Staged, stage
from ..handover import handing_over
from ..interpreter import assign, bind, read
from ..primitives.primitive import Aval, Primitive, aval_of
from ..tensor import Tensor, Tracer, wrap
from .call import call
from .constants import contents, fixed, opened
from .environment import Environment
from .ownership import InUse, unshared
from .remembering import Traces

_ENVIRONMENTS = 8  # how many states of its environment a function remembers traces for
_lock = open_after_fork(threading.RLock())  # tracing puts tracers into cells, so one thread at a time may look at them
_TENSORS = {Tensor}
_inside, _outside = attrgetter("_inside"), attrgetter("_outside")
WAIT = 1e-4  # seconds between two looks at whether another thread is done with state that we need


class Arguments:
    """The arguments of a call, taken apart into what a trace depends on and what it computes with."""

    __slots__ = ("cells", "key", "leaves", "operands", "positions", "structure", "weak")

    def __init__(self, tree: Any, outside: AbstractSet[int] = frozenset()) -> None:
        self.leaves, self.structure = trees.flatten(tree, open_objects=False)
        self.positions: list[int] = []  # of the leaves that are operands of the graph
        self.operands: list[Any] = []
        self.weak: list[int | None] = []  # which of them are Python numbers
        self.cells: list[Cell] = []
        keys: list[Any] = [self.structure]
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
                keys.append((_static(leaf), contents(leaf)))
        if len(distinct := {id(c): i for i, c in enumerate(self.cells)}) < len(self.cells):
            keys.append(tuple(distinct[id(c)] for c in self.cells))  # which of them are the same
        if not outside.isdisjoint(distinct):
            keys.append(tuple(id(c) for c in self.cells if id(c) in outside))  # and the same as one from outside
        self.key = tuple(keys)

    def _add(self, position: int, operand: Any, weak: int | None) -> None:
        self.positions.append(position)
        self.operands.append(operand)
        self.weak.append(weak)

    def with_operands(self, leaves: list[Any], operands: list[Any], cells: list[Cell]) -> Arguments:
        """Arguments of the same kind."""
        new = object.__new__(Arguments)
        new.leaves, new.operands, new.cells = leaves, operands, cells
        new.structure, new.positions, new.weak, new.key = self.structure, self.positions, self.weak, self.key
        return new

    def rebuilt(self, tracers: Any) -> Any:
        leaves = list(self.leaves)
        for i, tracer in zip(self.positions, tracers, strict=True):
            leaves[i] = tracer
        return trees.unflatten(self.structure, leaves)


def _static(value: Any) -> trees.Static:
    """An argument that a trace takes for a constant."""
    if type(value) is Tensor:
        return trees.Static(fixed(value))
    try:
        hash(value)
    except TypeError as error:
        raise InputError(
            f"jit: an argument of type {type(value).__name__} is neither a tensor nor a constant ({error}).",
            "a tensor, a number, a tree of those, or a static argument that can be hashed, such as a tuple",
        ) from error
    return trees.Static(value)


def _picker(which: list[Any]) -> Callable[[list[Cell]], Sequence[Cell]]:
    """Picks cells that are told by their position in a list, or themselves."""
    if len(which) > 1 and all(type(c) is int for c in which):
        return itemgetter(*which)  # one call into C
    return lambda cells: [cells[c] if type(c) is int else c for c in which]


class Traced:
    """A traced function and how to call it."""

    def __init__(
        self,
        f: Callable[..., Any],
        arguments: Arguments,
        name: str,
        purpose: str,
        watched: AbstractSet[int] = frozenset(),
    ) -> None:
        as_function(purpose, f)
        self.version = structure_version()
        out: dict[str, Any] = {}

        def flat(*tracers: Any) -> list[Any]:
            args, kwargs = arguments.rebuilt(tracers)
            leaves, out["structure"] = trees.flatten(f(*args, **kwargs), open_objects=False)
            given = {id(leaf): i for i, leaf in enumerate(arguments.leaves) if trees.is_stateful(leaf)}
            out["places"] = []
            tensors: list[Any] = []
            for leaf in leaves:
                if isinstance(leaf, (Tensor, np.ndarray)):
                    out["places"].append(("tensor", len(tensors)))
                    tensors.append(read(leaf) if isinstance(leaf, Cell) else asarray(leaf))
                elif id(leaf) in given:
                    out["places"].append(("argument", given[id(leaf)]))
                else:
                    out["places"].append(("as is", leaf))
            return tensors

        avals = [aval_of(operand) for operand in arguments.operands]
        staged: Staged = stage(flat, avals, name=name, purpose=purpose, weak=arguments.weak)
        self.graph: Graph = remove_dead(staged.graph)
        self.captured = staged.captured
        self.structure: trees.Structure = out["structure"]
        self.places: list[tuple[str, Any]] = out["places"]
        self.count = sum(kind == "tensor" for kind, _ in self.places)
        position = {id(c): i for i, c in enumerate(arguments.cells)}
        # a cell of an argument is found by its position: another module of the same structure can take its place
        self.read_cells: list[Any] = [position.get(id(c), c) for c in staged.read_cells]
        self.written_cells: list[Any] = [position.get(id(c), c) for c in staged.written_cells]
        self.pick_read, self.pick_written = _picker(self.read_cells), _picker(self.written_cells)
        self.made_cells = staged.made_cells
        self.reaches_state = any(
            isinstance(c, Cell) and id(c) not in watched and not c.permanent
            for c in self.read_cells + self.written_cells
        )
        # cells that were made belong to this call alone; the next one makes its own or finds them
        self.reusable = not self.made_cells and not any(isinstance(v, Tracer) for v in self.captured)
        # the new value of a cell may be put where the old one was
        first = len(self.captured)
        places = {c if type(c) is int else id(c): first + i for i, c in enumerate(self.read_cells)}
        written = [c if type(c) is int else id(c) for c in self.written_cells]
        self.graph.derived["states"] = {self.count + i: places[c] for i, c in enumerate(written) if c in places}
        self.states = list(self.graph.derived["states"].values())
        self.changes = bool(self.written_cells or self.made_cells)
        self.trains = any(getattr(c, "trainable", False) for c in staged.written_cells)

    def stale(self) -> bool:
        """Whether a module may have changed its structure that was reached in a way that nobody watches."""
        return self.reaches_state and self.version != structure_version()

    def run(self, arguments: Arguments, primitive: Primitive = call) -> Any:
        cells = arguments.cells
        readers = self.pick_read(cells)
        state = current()
        plain = state.trace is None and (self.trains or not state.settings.grad_enabled)
        operands: list[Any] = []
        owned: list[int] = []
        key = id(operands)
        try:
            while True:
                with _lock:
                    others = [*_runs.values()] if _runs else ()
                    operands += self.captured
                    whole = self._read(readers, plain, operands)
                    operands += arguments.operands
                    if whole and not (others and _in_use.overwrote(operands, others)):
                        simple = state.trace is None and set(map(type, operands)) <= _TENSORS
                        simple = simple and (plain or all(o._node is None for o in operands))
                        owned = unshared(operands, self.states) if simple and self.states else []
                        if owned and not self._still_there(readers, operands):
                            owned = []  # whoever else holds the old values, it is not their cells
                        if owned:
                            _runs[key] = (operands, owned, get_ident())
                        break
                operands.clear()  # when the other thread is done, the cells may hold others
                time.sleep(WAIT)
            if simple:
                deliver = functools.partial(self._delivery, cells, operands) if self.changes else None
                arrays = run(self.graph, [o._data for o in operands], owned, deliver)
                return self.result(arguments, [wrap(a) for a in arrays[: self.count]])
        finally:
            if owned:
                _runs.pop(key, None)  # nothing is called before this, so no signal is heard before it either
        outs = bind(primitive, *operands, graph=self.graph)
        if self.changes:
            self._write(cells, outs[self.count :])
        return self.result(arguments, outs)

    def _read(self, cells: Sequence[Cell], plain: bool, operands: list[Any]) -> bool:
        """Add what cells hold to the operands. False: meanwhile another thread has changed them."""
        if plain and not any(map(_inside, cells)):
            operands += map(_outside, cells)  # one call into C, between two changes by other threads
            return True
        before = [*map(_outside, cells)]
        operands += [cell.value if plain else read(cell) for cell in cells]
        return all(map(is_, before, map(_outside, cells)))

    def _still_there(self, cells: Sequence[Cell], operands: list[Any]) -> bool:
        """Whether cells hold what was read from them."""
        first = len(self.captured)
        return all(map(is_, operands[first : first + len(cells)], map(_outside, cells)))

    def _delivery(
        self, cells: list[Cell], operands: list[Any], arrays: list[Any], given: Mapping[int, int]
    ) -> Iterable[Any]:
        """New state into its cells, outside of all transformations.

        What is updated in place is handed over, too: meanwhile another thread may have put its own state in.
        """
        if len(given) == len(self.written_cells) + len(self.made_cells):
            tensors = [*map(operands.__getitem__, given.values())]  # all of it
        else:
            rest = range(self.count, len(arrays))
            tensors = [operands[given[i]] if i in given else wrap(arrays[i]) for i in rest]
        return handing_over(self._changed(cells), tensors)

    def _changed(self, cells: list[Cell]) -> Sequence[Cell]:
        written = self.pick_written(cells)
        return [*written, *self.made_cells] if self.made_cells else written

    def result(self, arguments: Arguments, outs: list[Any]) -> Any:
        """What the function returns, from the outputs of its graph."""
        if self.structure is trees.LEAF and self.count:
            return outs[0]
        leaves = [
            outs[what] if kind == "tensor" else arguments.leaves[what] if kind == "argument" else what
            for kind, what in self.places
        ]
        return trees.unflatten(self.structure, leaves)

    def _write(self, cells: list[Cell], values: list[Any]) -> None:
        if current().trace is None:
            exhaust(handing_over(self._changed(cells), [wrap(value._data) for value in values]))
            return
        with _lock:
            for c, value in zip(self.written_cells, values, strict=False):
                assign(cells[c] if type(c) is int else c, value)
            for made, value in zip(self.made_cells, values[len(self.written_cells) :], strict=True):
                made.value = value
                if current().trace is not None:
                    current().trace.note_create(made)


_in_use = InUse(Traced.run.__code__)
_runs = _in_use.runs


class Whole:
    """Which module an argument was, without keeping it alive."""

    __slots__ = ("identities", "kind")

    def __init__(self, module: Any) -> None:
        parts = opened(module)
        self.kind, self.identities = parts.kind, parts.identities


class Together:
    """In a list of arguments: that so many of the next ones were in a tuple, as the parts of a batch are."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size


_TUPLES = [Together(size) for size in range(8)]


def _spread(args: tuple[Any, ...]) -> list[Any]:
    """The arguments, with tuples taken apart."""
    parts: list[Any] = []
    for arg in args:
        if type(arg) is tuple and len(arg) < len(_TUPLES):
            parts.append(_TUPLES[len(arg)])
            parts += arg
        else:
            parts.append(arg)
    return parts


class Recent:
    """The last call with tensors (also in tuples), modules and optimizers; one like it is found quickly."""

    __slots__ = ("arguments", "environment", "kinds", "strict", "traced")

    def __init__(self, kinds: list[Any], arguments: Arguments, traced: Traced, environment: Environment) -> None:
        self.kinds = kinds  # for each argument its shape and dtype, or which module it was, or itself
        self.arguments = arguments
        self.traced = traced
        self.environment = environment
        self.strict = current().settings.strict_broadcast

    @classmethod
    def of(cls, args: tuple[Any, ...], arguments: Arguments, traced: Traced, environment: Environment) -> Recent | None:
        kinds: list[Any] = []
        for arg in _spread(args):
            if type(arg) is Tensor:
                kinds.append((arg.shape, arg.dtype))
            elif arg is None or type(arg) is Together:
                kinds.append(arg)
            elif trees.is_stateful(arg):
                kinds.append(Whole(arg))
            else:
                return None
        return cls(kinds, arguments.with_operands([], [], []), traced, environment)

    def again(self, args: tuple[Any, ...], environment: Environment) -> tuple[Traced, Arguments] | None:
        """The trace for these arguments, if nothing but the numbers in tensors has changed."""
        strict = current().settings.strict_broadcast
        if environment is not self.environment or strict != self.strict or self.traced.stale():
            return None
        parts = _spread(args)
        if len(parts) != len(self.kinds):
            return None
        leaves = []
        operands = []
        cells: list[Cell] = []
        for arg, kind in zip(parts, self.kinds, strict=True):
            if type(kind) is tuple:
                if type(arg) is not Tensor or (arg._data.shape, arg._data.dtype) != kind:
                    return None
                operands.append(arg)
            elif kind is None or type(kind) is Together:
                if arg is not kind:
                    return None
                continue  # no leaf of the arguments
            else:
                inside = opened(arg) if trees.is_stateful(arg) else None
                if inside is None or inside.kind is not kind.kind or inside.identities != kind.identities:
                    return None
                cells += inside.cells
            leaves.append(arg)
        return self.traced, self.arguments.with_operands(leaves, operands, cells)


class Jitted:
    """A function with its traces. Made by `wl.jit`."""

    def __init__(
        self,
        f: Callable[..., Any],
        static_argnums: tuple[int, ...] = (),
        static_argnames: tuple[str, ...] = (),
        primitive: Primitive = call,
    ) -> None:
        functools.update_wrapper(self, f)
        self._primitive = primitive
        self._f = f
        self._name = getattr(f, "__name__", "function")
        self._static_argnums, self._static_argnames = _static_parameters(f, static_argnums, static_argnames)
        self._environment: Environment | None = None
        self._remembered: dict[Any, Traces] = {}  # by the state of the environment
        self._traces = Traces()  # those for the present one
        self._recent: Recent | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        traced, arguments = self._find(args, kwargs)
        return traced.run(arguments, self._primitive)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph for these arguments."""
        return simplify(self._find(args, kwargs)[0].graph)

    @property
    def traces(self) -> int:
        """How many traces are remembered."""
        return sum(len(traces) for traces in self._remembered.values())

    def clear(self) -> None:
        """Forget all traces."""
        with _lock:
            self._environment = self._recent = None
            self._remembered.clear()

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Traced, Arguments]:
        with _lock:
            environment = self._look_around()
            if self._recent is not None and not kwargs and (again := self._recent.again(args, environment)):
                return again
        f, args, kwargs, static = self._split(args, kwargs)
        with _lock:
            arguments = Arguments((args, kwargs), environment.cells)
            key = (arguments.key, static, current().settings.strict_broadcast)
            traces = self._traces
            found = traces.find(key)
            if found is None or found.stale():
                purpose = "jit" if self._primitive is call else self._primitive.name
                found = uncollected(Traced, f, arguments, self._name, purpose, environment.cells)
                if found.reusable:
                    traces.keep(key, found)
            self._recent = None
            if found.reusable and not kwargs and static == ():
                self._recent = Recent.of(args, arguments, found, environment)
        return found, arguments

    def _look_around(self) -> Environment:
        """The environment as it is now; `_traces` are the traces that hold in it."""
        if self._environment is None or self._environment.changed():
            environment = Environment(self._f)
            traces = self._remembered.pop(environment.key, None) or Traces()
            self._remembered[environment.key] = traces
            if len(self._remembered) > _ENVIRONMENTS:
                del self._remembered[next(iter(self._remembered))]
            self._traces, self._environment = traces, environment  # both or neither: nothing is called in between
        return self._environment

    def _split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any], Any]:
        """Take the static arguments out."""
        if not self._static_argnums and not self._static_argnames:
            return self._f, args, kwargs, ()
        places = {n + len(args) if n < 0 else n for n in self._static_argnums}
        fixed_args = {i: args[i] for i in sorted(places) if 0 <= i < len(args)}
        named = {k: kwargs[k] for k in self._static_argnames if k in kwargs}
        for what in (*fixed_args.values(), *named.values()):
            if isinstance(what, Tracer):
                raise TraceError(
                    "jit: a static argument is a traced value.", "a Python value, or an argument that is not static"
                )

        def f(*rest: Any, **kw: Any) -> Any:
            dynamic = iter(rest)
            full = [fixed_args[i] if i in fixed_args else next(dynamic) for i in range(len(args))]
            return self._f(*full, **kw, **named)

        static = (
            tuple((i, _static(v)) for i, v in fixed_args.items()),
            tuple((k, _static(v)) for k, v in named.items()),
        )
        remaining = tuple(a for i, a in enumerate(args) if i not in fixed_args)
        return f, remaining, {k: v for k, v in kwargs.items() if k not in named}, static


def _static_parameters(
    f: Any, numbers: tuple[int, ...], names: tuple[str, ...]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the static arguments: each may be passed either way."""
    if not numbers and not names:
        return numbers, names
    import inspect  # takes a while to load

    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):  # a built-in function that does not say
        return numbers, names
    kinds = {p.kind for p in parameters}
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if inspect.Parameter.VAR_POSITIONAL not in kinds and any(
        not -len(positional) <= n < len(positional) for n in numbers
    ):
        raise InputError(
            f"jit: static_argnums={numbers} for a function of {len(positional)} arguments.", "positions of arguments"
        )
    known = {p.name for p in parameters}
    if inspect.Parameter.VAR_KEYWORD not in kinds and (unknown := [n for n in names if n not in known]):
        raise InputError(
            f"jit: static_argnames={unknown}, but the arguments are {sorted(known)}.", "names of arguments"
        )
    numbers = tuple(n + len(positional) if n < 0 and -n <= len(positional) else n for n in numbers)
    both = [positional[n] for n in numbers if 0 <= n < len(positional)]
    places = [positional.index(name) for name in names if name in positional]
    return tuple(dict.fromkeys([*numbers, *places])), tuple(dict.fromkeys([*names, *both]))


def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | tuple[str, ...] = (),
) -> Any:
    """Trace f to a graph at its first call and run the graph from then on; the result is the same, faster.

    >>> import wonderland as wl
    >>> @wl.jit
    ... def f(x):
    ...     return (wl.sin(x) ** 2).sum()
    >>> print(f(wl.zeros(3)), wl.grad(f)(wl.zeros(3)))
    tensor(0.) tensor([0., 0., 0.])
    >>> print(f.graph(wl.zeros(3)))
    f(a: float32[3]) {
      b: float32[3] = sin a
      c: float32[3] = square b
      d: float32[] = sum c [axes=(0,)]
    } -> d

    One trace is kept for every combination of shapes, dtypes, tree structures and static values. Tensors, arrays and
    Python numbers are traced; bools, strings, functions and other objects are static, and so are the arguments named by
    `static_argnums` and `static_argnames`. Modules and optimizers can be arguments; their new state is written back. A
    Python `print` runs while tracing only. Book, section 6.4.2.

    Values that the function refers to without receiving them (globals, closures, and those of functions that it calls)
    are constants of a trace; when one is replaced, the function is traced again. Attributes of objects that are not
    modules are not watched: pass what changes as an argument, or keep it in a module.
    """
    if f is None:
        return functools.partial(jit, static_argnums=static_argnums, static_argnames=static_argnames)
    if not callable(f):
        raise InputError(f"jit: a {type(f).__name__} is not a function.", "wl.jit(f) or @wl.jit")
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    return Jitted(f, numbers, names)


def _traced(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], purpose: str
) -> tuple[Traced, Arguments]:
    with _lock:
        arguments = Arguments((args, kwargs))
        return Traced(f, arguments, getattr(f, "__name__", "function"), purpose), arguments


def make_graph(f: Callable[..., Any]) -> Callable[..., Graph]:
    """A function that returns the graph of f for given arguments, to look at.

    >>> import wonderland as wl
    >>> print(wl.make_graph(wl.grad(lambda x: x**2))(wl.tensor(3.0)))
    grad_of_<lambda>(a: float32[]) {
      b: float32[] = multiply 2.0 a
      c: float32[] = full [shape=(), value=1.0, dtype=float32]
      d: float32[] = multiply c b
    } -> d

    A Python number is an input in Python's own precision, from which functions and tensors take what they need.
    """

    def wrapper(*args: Any, **kwargs: Any) -> Graph:
        return simplify(_traced(f, args, kwargs, "make_graph")[0].graph)

    return wrapper


def eval_shape(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of f's results, without computing them. Arguments may be `wl.ShapeDtype(shape, dtype)`.

    >>> import wonderland as wl
    >>> print(wl.eval_shape(lambda x, w: x @ w, wl.ShapeDtype((10**6, 512), wl.float32), wl.ones((512, 3))))
    float32[1000000,3]
    """
    traced, arguments = _traced(f, args, kwargs, "eval_shape")
    return traced.result(arguments, [atom.aval for atom in traced.graph.outputs])
