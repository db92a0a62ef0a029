"""`jit`: trace a function once per kind of input, then run its graph.

Tensors and Python numbers are inputs of the graph; everything else (flags, strings, functions, the structure of trees
and modules) is part of what the trace was made for. State lives in cells: those of modules in the arguments and those that
the function reaches otherwise (a module in a closure, the global random stream) are read before and written after the run.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import trees
from ..array.conversion import SCALAR_KIND, asarray, from_scalar
from ..context import state
from ..dtypes import default_complex, default_float, default_int
from ..errors import InputError, TraceError
from ..graph.evaluate import evaluate
from ..graph.ir import Graph
from ..graph.simplify import simplify
from ..graph.stage import Staged, stage
from ..interpreter import assign, bind, read
from ..primitives.primitive import Aval, Primitive, aval_of
from ..tensor import Cell, Tensor, Tracer, wrap
from .call import call

_SCALARS = {1: default_int, 2: default_float, 3: default_complex}
_lock = threading.RLock()  # tracing puts tracers into cells, so one thread at a time may look at them


class Arguments:
    """The arguments of a call, taken apart into what a trace depends on and what it computes with."""

    __slots__ = ("cells", "key", "leaves", "structure", "values")

    def __init__(self, tree: Any) -> None:
        self.leaves, self.structure = trees.flatten(tree, open_objects=False)
        self.values: list[tuple[int, Any]] = []  # (position of the leaf, operand)
        self.cells: list[Cell] = []
        keys: list[Any] = [self.structure]
        for i, leaf in enumerate(self.leaves):
            kind = type(leaf)
            if isinstance(leaf, Cell):
                self.cells.append(leaf)
                keys.append(("cell", aval_of(leaf)))
            elif isinstance(leaf, Tensor):
                keys.append((leaf.shape, leaf.dtype, getattr(leaf, "weak", None)))
                self.values.append((i, leaf))
            elif kind in SCALAR_KIND and kind is not bool:
                keys.append(kind)
                self.values.append((i, leaf))
            elif isinstance(leaf, (np.ndarray, np.generic, Aval)):
                made = leaf if isinstance(leaf, Aval) else asarray(leaf)
                keys.append((made.shape, made.dtype, None))
                self.values.append((i, made))
            elif trees.is_stateful(leaf):
                found, shape = trees.flatten(leaf)
                cells = [c for c in found if isinstance(c, Cell)]
                self.cells.extend(cells)
                keys.append((shape, tuple(aval_of(c) for c in cells), tuple(getattr(c, "trainable", False) for c in cells)))
            else:
                keys.append(trees.Static(leaf))
        self.key = tuple(keys)

    def avals(self) -> tuple[list[Aval], list[int | None]]:
        """The types of the operands, and which of them are Python numbers."""
        avals, weak = [], []
        for _, value in self.values:
            scalar = SCALAR_KIND.get(type(value))
            avals.append(Aval((), _SCALARS[scalar]) if scalar else aval_of(value))
            weak.append(scalar or getattr(value, "weak", None))
        return avals, weak

    def operands(self) -> list[Any]:
        return [
            from_scalar(v, _SCALARS[SCALAR_KIND[type(v)]]) if type(v) in SCALAR_KIND else v for _, v in self.values
        ]

    def rebuilt(self, tracers: Any) -> Any:
        leaves = list(self.leaves)
        for (i, _), tracer in zip(self.values, tracers, strict=True):
            leaves[i] = tracer
        return trees.unflatten(self.structure, leaves)


class Traced:
    """A traced function and how to call it."""

    def __init__(self, f: Callable[..., Any], arguments: Arguments, name: str, purpose: str) -> None:
        self.version = structure_version()
        out: dict[str, Any] = {}

        def flat(*tracers: Any) -> list[Any]:
            args, kwargs = arguments.rebuilt(tracers)
            leaves, out["structure"] = trees.flatten(f(*args, **kwargs), open_objects=False)
            out["places"] = []
            tensors: list[Any] = []
            for leaf in leaves:
                if isinstance(leaf, (Tensor, np.ndarray)):
                    out["places"].append(("tensor", len(tensors)))
                    tensors.append(read(leaf) if isinstance(leaf, Cell) else asarray(leaf))
                else:
                    out["places"].append(("as is", leaf))
            return tensors

        avals, weak = arguments.avals()
        staged: Staged = stage(flat, avals, name=name, purpose=purpose, weak=weak)
        self.graph: Graph = simplify(staged.graph)
        self.captured = staged.captured
        self.structure: trees.Structure = out["structure"]
        self.places: list[tuple[str, Any]] = out["places"]
        self.count = sum(kind == "tensor" for kind, _ in self.places)
        position = {id(c): i for i, c in enumerate(arguments.cells)}
        # a cell of an argument is found by its position, so that another module of the same structure can take its place
        self.read_cells: list[Any] = [position.get(id(c), c) for c in staged.read_cells]
        self.written_cells: list[Any] = [position.get(id(c), c) for c in staged.written_cells]
        self.closes_over_state = any(isinstance(c, Cell) for c in self.read_cells + self.written_cells)
        self.reusable = not any(isinstance(v, Tracer) for v in self.captured)
        self.trains = any(getattr(c, "trainable", False) for c in staged.written_cells)

    def stale(self) -> bool:
        """Whether a module that was reached through a closure may have changed its structure."""
        return self.closes_over_state and self.version != structure_version()

    def run(self, arguments: Arguments, primitive: Primitive = call) -> Any:
        cells = arguments.cells
        with _lock:
            plain = state.trace is None and (self.trains or not state.grad_enabled)
            operands = list(self.captured)
            for c in self.read_cells:
                cell = cells[c] if isinstance(c, int) else c
                operands.append(cell.value if plain else read(cell))
        operands += arguments.operands()
        if state.trace is None and all(type(o) is Tensor and (o._node is None or plain) for o in operands):
            outs = [wrap(a) for a in evaluate(self.graph, [o._data for o in operands])]
        else:
            outs = bind(primitive, *operands, graph=self.graph)
        for c, value in zip(self.written_cells, outs[self.count :], strict=True):
            cell = cells[c] if isinstance(c, int) else c
            if cell.value is None:  # made while tracing, as by a lazy layer
                cell.value = value
            else:
                assign(cell, value)
        return trees.unflatten(
            self.structure, [outs[what] if kind == "tensor" else what for kind, what in self.places]
        )


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
        self._static_argnums = static_argnums
        self._static_argnames = static_argnames
        self._traces: dict[Any, Traced] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        traced, arguments = self._find(args, kwargs)
        return traced.run(arguments, self._primitive)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def graph(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph for these arguments."""
        return self._find(args, kwargs)[0].graph

    @property
    def traces(self) -> int:
        """How many times the function was traced and is remembered."""
        return len(self._traces)

    def clear(self) -> None:
        """Forget all traces."""
        self._traces.clear()

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Traced, Arguments]:
        f, args, kwargs, static = self._split(args, kwargs)
        with _lock:
            arguments = Arguments((args, kwargs))
            key = (arguments.key, static, state.strict_broadcast, environment(self._f))
            try:
                found = self._traces.get(key)
            except TypeError as error:
                raise InputError(f"jit: an argument that is not a tensor cannot be hashed ({error}).", "hashable static arguments") from error
            if found is None or found.stale():
                found = Traced(f, arguments, getattr(self._f, "__name__", "function"), self._purpose)
                if found.reusable:
                    # tracing may have completed lazy modules: what was traced is valid for the structure before
                    self._traces[key] = found
        return found, arguments

    @property
    def _purpose(self) -> str:
        return "jit" if self._primitive is call else self._primitive.name

    def _split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any], Any]:
        """Take the static arguments out."""
        if not self._static_argnums and not self._static_argnames:
            return self._f, args, kwargs, ()
        places = {n % len(args) if args else n for n in self._static_argnums if -len(args) <= n < len(args)}
        fixed = {i: args[i] for i in places}
        named = {k: kwargs[k] for k in self._static_argnames if k in kwargs}
        for what in (*fixed.values(), *named.values()):
            if isinstance(what, Tracer):
                raise TraceError("jit: a static argument is a traced value.", "a Python value, or an argument that is not static")

        def f(*rest: Any, **kw: Any) -> Any:
            dynamic = iter(rest)
            full = [fixed[i] if i in fixed else next(dynamic) for i in range(len(args))]
            return self._f(*full, **kw, **named)

        static = (
            tuple((i, trees.Static(v)) for i, v in sorted(fixed.items())),
            tuple((k, trees.Static(v)) for k, v in sorted(named.items())),
        )
        remaining = tuple(a for i, a in enumerate(args) if i not in fixed)
        return f, remaining, {k: v for k, v in kwargs.items() if k not in named}, static


def environment(f: Any) -> tuple[Any, ...]:
    """The tensors and constants that a function's own code refers to: a trace is valid only while they are the same."""
    f = getattr(f, "__func__", f)
    code = getattr(f, "__code__", None)
    if code is None:
        return ()
    values = []
    for cell in f.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            continue
    names = f.__globals__
    values.extend(names[name] for name in code.co_names if name in names)
    return tuple(
        trees.Static(v)
        for v in values
        if isinstance(v, (bool, int, float, complex, str)) or (isinstance(v, Tensor) and not isinstance(v, Cell))
    )


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
    """
    if f is None:
        return functools.partial(jit, static_argnums=static_argnums, static_argnames=static_argnames)
    if not callable(f):
        raise InputError(f"jit: a {type(f).__name__} is not a function.", "wl.jit(f) or @wl.jit")
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    return Jitted(f, numbers, names)


def make_graph(f: Callable[..., Any]) -> Callable[..., Graph]:
    """A function that returns the graph of f for given arguments, to look at.

    >>> import wonderland as wl
    >>> print(wl.make_graph(wl.grad(lambda x: x**2))(3.0))
    grad_of_<lambda>(a: float32[]) {
      b: float32[] = multiply 2.0 a
      c: float32[] = full [shape=(), value=1.0, dtype=float32]
      d: float32[] = multiply c b
    } -> d
    """

    def wrapper(*args: Any, **kwargs: Any) -> Graph:
        return Traced(f, Arguments((args, kwargs)), getattr(f, "__name__", "function"), "make_graph").graph

    return wrapper


def eval_shape(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of f's results, without computing them. Arguments may be `wl.ShapeDtype(shape, dtype)`.

    >>> import wonderland as wl
    >>> print(wl.eval_shape(lambda x, w: x @ w, wl.ShapeDtype((10**6, 512), wl.float32), wl.ones((512, 3))))
    float32[1000000,3]
    """
    traced = Traced(f, Arguments((args, kwargs)), getattr(f, "__name__", "function"), "eval_shape")
    avals = [atom.aval for atom in traced.graph.outputs]
    return trees.unflatten(
        traced.structure, [avals[what] if kind == "tensor" else what for kind, what in traced.places]
    )


def structure_version() -> int:
    """Grows whenever some module changes other than in its cells."""
    import sys

    module = sys.modules.get("wonderland.nn.module")
    return module.structure_version() if module is not None else 0
