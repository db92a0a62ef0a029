"""`jit`: trace a function once per kind of input, then run its graph.

Tensors and Python numbers are inputs of the graph; everything else (flags, strings, functions, the structure of trees
and modules) is part of what the trace was made for. State lives in cells: those of modules in the arguments and those
that the function reaches otherwise (a module in a closure, the global random stream) are read before and written after
the run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast, overload

from ...core.context import current, structure_version, uncollected
from ...core.errors import InputError
from ...core.primitive import Primitive
from ...engines.choosing import without_room
from ...ir.graph import Graph
from ...ir.simplify import simplify
from ...ir.stage import GraphTrace
from ..call import call
from ..signatures import P, Result
from .arguments import Arguments
from .known import Known
from .reasons import Reasons
from .recent import MISSED, Recent
from .sizes import Dynamic, Sizes
from .static import StaticArguments
from .traced import LOCK, Traced

Q = ParamSpec("Q")
Owner = TypeVar("Owner")


class Jitted(Generic[P, Result]):
    """A function with its traces. Made by `wl.jit`."""

    __name__: str
    __wrapped__: Callable[P, Result]

    def __init__(
        self,
        f: Callable[P, Result],
        static_argnums: tuple[int, ...] = (),
        static_argnames: tuple[str, ...] = (),
        primitive: Primitive = call,
        dynamic: Dynamic | None = None,
        own: int = 1,
    ) -> None:
        """`own`: how many sizes of a batch get programs of their own before there is one for all."""
        functools.update_wrapper(self, f)
        self._primitive = primitive
        self._f = f
        self._name = getattr(f, "__name__", "function")
        self._static = StaticArguments(f, static_argnums, static_argnames)
        self._known = Known(f)
        self._reasons = Reasons(f, self._name)
        self._sizes = Sizes(f, self._name, dynamic, self._reasons.warns, own)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result:
        self._reasons.calls += 1
        recent = self._known.recent
        if recent is not None and not kwargs:
            enter = recent.enter
            try:
                result = MISSED if enter is None else enter(*args)
                if result is MISSED:
                    result = recent.at_once(args)
            except MemoryError as error:
                raise without_room(recent.traced.graph, error) from error
            if result is not MISSED:
                return cast(Result, result)
        version = structure_version()
        traced, arguments, recent = self._find(args, kwargs)
        return traced.run(arguments, self._primitive, recent, version)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: Jitted[Concatenate[Owner, Q], Result], instance: Owner, owner: type | None = None
    ) -> Callable[Q, Result]: ...
    def __get__(self, instance: object, owner: type | None = None) -> object:
        return self if instance is None else MethodType(self, instance)

    def graph(self, *args: P.args, **kwargs: P.kwargs) -> Graph:
        """The graph for these arguments."""
        return simplify(self._find(args, kwargs)[0].graph)

    @property
    def traces(self) -> int:
        """How many traces are remembered."""
        return len(self._known)

    @property
    def last_trace(self) -> Traced | None:
        """The trace that was used last, if one is remembered."""
        with LOCK:
            return next(reversed(self._known.traces.values()), None)

    def why(self) -> str:
        """Why the function was traced the last time, and what would have avoided it.

        >>> import wonderland as wl
        >>> double = wl.jit(lambda x: 2 * x)
        >>> _ = double(wl.ones((1, 3))), double(wl.ones((1, 4)))
        >>> print(double.why())
        the argument x is float32[1,4] and was float32[1,3]: each size of axis 1 is compiled. One program serves
        all sizes of an axis in front alone.
          try: a few lengths, and a mask of what is real: wl.data.bucket_lengths, wl.data.PadCollate(to=...)
        """
        return "it was not called yet." if self._reasons.last is None else str(self._reasons.last)

    def clear(self) -> None:
        """Forget all traces."""
        with LOCK:
            self._known.clear()

    def spliced(self, *args: P.args, **kwargs: P.kwargs) -> Result:
        """The function as part of the graph that is being built. It is traced once for each kind of arguments."""
        trace = current().trace
        assert type(trace) is GraphTrace
        traced, arguments, _ = self._find(args, kwargs)
        return cast(Result, traced.splice(arguments, trace) if traced.reusable else self._f(*args, **kwargs))

    def traced(self, *args: P.args, **kwargs: P.kwargs) -> tuple[Traced, Arguments]:
        """The trace for these arguments, and these taken apart."""
        return self._find(args, kwargs)[:2]

    def _find(self, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[Traced, Arguments, Recent | None]:
        """The trace for a call, its arguments taken apart, and what is remembered of it as the last one."""
        known = self._known
        given = args, kwargs
        with LOCK:
            environment = known.environment()
            if not kwargs and (again := known.again(args, environment)):
                return *again, known.recent
        f, args, kwargs, static = self._static.split(args, kwargs)
        with LOCK:
            arguments = Arguments((args, kwargs), environment.cells)
            key = (arguments.key, static, current().settings.traced)
            traces = known.traces
            found = traces.find(key)
            if found is None or found.stale():
                purpose = "jit" if self._primitive is call else self._primitive.name

                def trace(arguments: Arguments) -> Traced:
                    return uncollected(Traced, f, arguments, self._name, purpose, environment.cells)

                found = trace(arguments)
                if found.reusable:
                    self._sizes.place((environment.key, *key), given, arguments, found, trace)
                    traces.keep(key, found)
                shares = found.graph.at_size is not None
                self._reasons.traced(*given, environment, found.reusable, shares, self._sizes.refused)
            known.forget_last()
            if found.reusable and not kwargs and static == ():
                known.last(args, arguments, found, environment)
            return found, arguments, known.recent


@overload
def jit(
    f: Callable[P, Result],
    *,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | tuple[str, ...] = (),
    dynamic: Dynamic | None = None,
) -> Jitted[P, Result]: ...
@overload
def jit(
    f: None = None,
    *,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | tuple[str, ...] = (),
    dynamic: Dynamic | None = None,
) -> Callable[[Callable[P, Result]], Jitted[P, Result]]: ...
def jit(
    f: Callable[P, Result] | None = None,
    *,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | tuple[str, ...] = (),
    dynamic: Dynamic | None = None,
) -> object:
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

    Batches may have many sizes. When a function has met two shapes that differ in the first axes of arguments alone,
    one program is compiled for all further sizes, if the function treats that axis as a batch: computes rows for
    themselves, adds them up, or looks them up. `dynamic` asks for it from the first call on, and raises an error that
    says why where it cannot be done. Results are those of the exact shape up to rounding.

    >>> predict = wl.jit(lambda x: wl.tanh(x).mean(axis=0), dynamic={"x": {0: "batch"}})
    >>> print(predict(wl.ones((3, 2))), predict(wl.ones((5, 2))))
    tensor([0.7616, 0.7616]) tensor([0.7616, 0.7616])

    Values that the function refers to without receiving them (globals, closures, and those of functions that it calls)
    are constants of a trace; when one is replaced, the function is traced again. So are numbers, tensors, containers
    and small arrays in attributes of objects of your own classes, three objects deep. What is not watched: objects of
    installed libraries, attributes of classes, and the inside of large arrays. Pass such things as arguments, or keep
    them in a module.
    """
    if f is None:
        return functools.partial(jit, static_argnums=static_argnums, static_argnames=static_argnames, dynamic=dynamic)
    if not callable(f):
        raise InputError(f"jit: a {type(f).__name__} is not a function.", "wl.jit(f) or @wl.jit")
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    return Jitted(f, numbers, names, dynamic=dynamic)


def traced_as(
    purpose: str, f: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[Traced, Arguments]:
    """A function traced for arguments, and these taken apart."""
    with LOCK:
        arguments = Arguments((args, kwargs))
        return traced_with(purpose, f, arguments), arguments


def traced_with(purpose: str, f: Callable[..., object], arguments: Arguments) -> Traced:
    """A function traced for arguments that are taken apart already."""
    with LOCK:
        return Traced(f, arguments, getattr(f, "__name__", "function"), purpose)


def make_graph(f: Callable[..., object]) -> Callable[..., Graph]:
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

    def wrapper(*args: object, **kwargs: object) -> Graph:
        return simplify(traced_as("make_graph", f, args, kwargs)[0].graph)

    return wrapper


def eval_shape(f: Callable[..., object], *args: object, **kwargs: object) -> Any:
    """The shapes and dtypes of f's results, without computing them. Arguments may be `wl.ShapeDtype(shape, dtype)`.

    >>> import wonderland as wl
    >>> print(wl.eval_shape(lambda x, w: x @ w, wl.ShapeDtype((10**6, 512), wl.float32), wl.ones((512, 3))))
    float32[1000000,3]
    """
    traced, arguments = traced_as("eval_shape", f, args, kwargs)
    return traced.result(arguments.leaves, [atom.aval for atom in traced.graph.outputs])
