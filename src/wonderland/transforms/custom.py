"""Derivatives that users define: `custom_jvp`, `custom_vjp`. Book, section 6 (exercises).

A function with a rule of its own is a primitive application whose parameter holds the Python functions. One rule serves
both modes: from a jvp rule reverse mode is derived as always, and the transpose of a vjp rule is the jvp.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .. import arrays
from ..core import interpreter, trees
from ..core.arguments import as_function
from ..core.cell import Cell
from ..core.context import leave, switch
from ..core.dtypes import is_inexact
from ..core.errors import GradientError, TraceError, TreeError
from ..core.interpreter import Tangent
from ..core.primitive import Aval, Primitive, aval_of
from ..core.tangents import deriving
from ..core.tensor import Tensor, Tracer, wrap
from ..core.typing import Array, ArrayLike, Shaped, Tangents
from ..primitives.creation import zeros_like
from ..primitives.structure import broadcast_to
from . import batching
from .forward import jvp
from .pulling import pull_back
from .signatures import P, Result

if TYPE_CHECKING:
    from ..ir.stage import Staged

UserRule = TypeVar("UserRule", bound=Callable[..., object])


class Custom:
    """A function on flat lists of tensors with its rule: what the primitives below carry."""

    def __init__(self, name: str, f: Callable[..., list[Tensor]], rule: Any) -> None:
        self.name = name
        self.f = f
        self.rule = rule
        self.traces: dict[tuple[Aval, ...], Staged] = {}  # by the types of the arguments

    def __repr__(self) -> str:
        return self.name

    def trace(self, avals: tuple[Aval, ...]) -> Staged:
        """The function as a graph, with what it needs besides its arguments."""
        if avals not in self.traces:
            from ..ir.stage import stage

            staged = stage(self.f, list(avals), name=self.name, purpose=self.name)
            if any(isinstance(v, Tracer) for v in staged.captured) or staged.written_cells or staged.made_cells:
                raise TraceError(
                    f"{self.name}: a function with a custom derivative uses outside traced values or changes state.",
                    "pass everything that it depends on as arguments",
                )
            self.traces[avals] = staged
        return self.traces[avals]


def _abstract(*args: Shaped, custom: Custom) -> list[Aval]:
    return [a.aval for a in custom.trace(tuple(aval_of(a) for a in args)).graph.outputs]


def _impl(*args: Array, custom: Custom) -> list[Array]:
    """The value: from the graph if the function was traced, else by calling it on plain tensors."""
    staged = custom.traces.get(tuple(aval_of(a) for a in args))
    if staged is None:
        return _run(custom.f, args)
    from ..engines.numpy.evaluate import evaluate

    outside = [v.value if isinstance(v, Cell) else v for v in (*staged.captured, *staged.read_cells)]
    return evaluate(staged.graph, [*[v._data for v in outside], *args])


def _run(f: Callable[..., list[Tensor]], arrays: Iterable[Array]) -> list[Array]:
    before = switch(None)
    try:
        return [out._data for out in f(*[wrap(a) for a in arrays])]
    finally:
        leave(before)


def _checked(name: str, what: str, found: Iterable[ArrayLike | None], values: Sequence[Shaped]) -> Tangents:
    """Tangents or adjoints that a rule returned for some values, which must be like them; None stays."""
    checked: Tangents = []
    for given, value in zip(found, values, strict=True):
        t = given if given is None or isinstance(given, Tensor) else arrays.asarray(given, dtype=value.dtype)
        if t is None or not is_inexact(value.dtype):
            checked.append(None)
            continue
        if isinstance(t, Cell):
            t = interpreter.read(t)
        if t.shape != value.shape or t.dtype != value.dtype:
            raise GradientError(
                f"{name}: the rule returned {what} of {t.dtype}{list(t.shape)} for a value of "
                f"{value.dtype}{list(value.shape)}.",
                f"{what} of the same shape and dtype as the value",
            )
        checked.append(t)
    return checked


# --- custom_jvp


def _linearize_custom_jvp(primals: list[Tensor], tangents: Tangents, custom: Custom) -> tuple[list[Tensor], Tangents]:
    dots = [zeros_like(p) if t is None else t for p, t in zip(primals, tangents, strict=True)]
    with deriving(custom.name, tangents):
        outs, made = custom.rule(primals, dots)
    made = _checked(custom.name, "a tangent", made, outs)
    if any(type(t) is Tangent for t in tangents):  # what does not depend on the tangents is zero, as the rule is linear
        made = [t if type(t) is Tangent else None for t in made]
    return outs, made


def _batch_of_custom_jvp(args: list[Tensor], batched: list[bool], custom: Custom) -> list[Tensor]:
    axes = tuple(0 if b else None for b in batched)

    def rule(primals: list[Tensor], dots: list[Tensor]) -> tuple[list[Tensor], Tangents]:
        n, size = len(primals), next(p.shape[0] for p, b in zip(primals, batched, strict=True) if b)
        # every example has a tangent of its own, so that the recording for reverse mode sees the batch
        spread = [d if b else broadcast_to(d, shape=(size, *d.shape)) for d, b in zip(dots, batched, strict=True)]

        def one(*both: Tensor) -> tuple[list[Tensor], Tangents]:
            return custom.rule(list(both[:n]), list(both[n:]))

        return batching.vmap(one, in_axes=axes + (0,) * n)(*primals, *spread)

    return custom_jvp_call(*args, custom=Custom(custom.name, batching.vmap(custom.f, in_axes=axes), rule))


custom_jvp_call: Primitive = Primitive(
    "custom_jvp",
    _impl,
    _abstract,
    batch=_batch_of_custom_jvp,
    multiple=True,
    linearize=_linearize_custom_jvp,
)


class custom_jvp(Generic[P, Result]):  # noqa: N801 - a decorator, used as a function
    """A function whose forward derivative is given by a rule; reverse mode follows from it.

    >>> import wonderland as wl
    >>> @wl.custom_jvp
    ... def log1pexp(x):
    ...     return wl.log(1 + wl.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), t * (1 - 1 / (1 + wl.exp(x)))
    >>> print(wl.grad(log1pexp)(100.0))
    tensor(1.)

    The rule takes tuples of arguments and tangents and returns the value and its tangent, which must be linear in the
    tangents. Arguments named by `nondiff_argnums` are passed to the rule first and have no tangents; they may be
    anything.
    """

    __name__: str

    def __init__(self, f: Callable[P, Result], nondiff_argnums: int | tuple[int, ...] = ()) -> None:
        functools.update_wrapper(self, as_function("custom_jvp", f))
        self._f = f
        self._rule: Callable[..., object] | None = None
        self._fixed = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)

    def defjvp(self, rule: UserRule) -> UserRule:
        """Set the rule `rule(primals, tangents) -> (value, tangent)`."""
        self._rule = rule
        return rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result:
        if self._rule is None:
            raise GradientError(f"custom_jvp: {self.__name__} has no rule yet.", "@f.defjvp")
        call = _Call("custom_jvp", self._f, args, kwargs, self._fixed)
        user_rule, fixed = self._rule, call.fixed_values

        def rule(primals: list[Tensor], dots: list[Tensor]) -> tuple[list[Tensor], Tangents]:
            out = user_rule(*fixed, call.rebuild(primals), call.rebuild(dots))
            if not isinstance(out, tuple) or len(out) != 2:
                raise GradientError(f"custom_jvp: the rule returned a {type(out).__name__}.", "a pair (value, tangent)")
            values = call.results(out[0])
            leaves, structure = trees.flatten(out[1])
            if structure != call.out_structure:
                raise TreeError(
                    f"custom_jvp: the tangent has structure {structure}, the value {call.out_structure}.",
                    "a tangent in the same tree as the value",
                )
            return values, leaves

        return call.bind(custom_jvp_call, rule)


# --- custom_vjp


class Rule:
    """forward(args) -> (outs, residuals), backward(residuals, adjoints) -> adjoints of the args, on flat lists."""

    def __init__(
        self,
        forward: Callable[[list[Tensor]], tuple[list[Tensor], list[Tensor]]],
        backward: Callable[[list[Tensor], list[Tensor]], Tangents],
    ) -> None:
        self.forward = forward
        self.backward = backward


def _linearize_custom_vjp(primals: list[Tensor], tangents: Tangents, custom: Custom) -> tuple[list[Tensor], Tangents]:
    outs, residuals = custom.rule.forward(primals)
    out_avals = [aval_of(o) for o in outs]
    backward = Backward(custom, [aval_of(p) for p in primals], out_avals, len(residuals))
    if not backward.outs:
        return outs, [None] * len(outs)
    dots = [zeros_like(p) if t is None else t for p, t in zip(primals, tangents, strict=True) if is_inexact(p.dtype)]
    made = iter(custom_linear(*residuals, *dots, backward=backward))
    return outs, [next(made) if is_inexact(a.dtype) else None for a in out_avals]


class Backward:
    """The linear map of a custom_vjp at a point, known by how it transposes."""

    def __init__(self, custom: Custom, avals: list[Aval], outs: list[Aval], residuals: int) -> None:
        self.custom = custom
        self.avals = avals
        self.out_avals = outs
        self.outs = [a for a in outs if is_inexact(a.dtype)]
        self.residuals = residuals

    def __repr__(self) -> str:
        return self.custom.name

    def pull(self, residuals: list[Tensor], cts: list[Tensor]) -> list[Tensor]:
        """Adjoints of the inexact arguments."""
        given = iter(cts)
        full = [next(given) if is_inexact(a.dtype) else zeros_like(a) for a in self.out_avals]
        found = self.custom.rule.backward(residuals, full)
        checked = _checked(self.custom.name, "an adjoint", found, self.avals)
        return [
            zeros_like(a) if ct is None else ct
            for ct, a in zip(checked, self.avals, strict=True)
            if is_inexact(a.dtype)
        ]

    def push(self, residuals: list[Tensor], dots: list[Tensor]) -> list[Tensor]:
        """The transpose of `pull`: record what it does to adjoints that are not known, and walk back."""
        cts = [Tangent(a.shape, a.dtype) for a in self.outs]
        pulled = self.pull(residuals, list(cts))
        seeds = [(p, t) for p, t in zip(pulled, dots, strict=True) if type(p) is Tangent]
        found = pull_back(seeds, cts, free=True)
        return [zeros_like(a) if t is None else t for t, a in zip(found, self.outs, strict=True)]


def _custom_linear_impl(*args: Array, backward: Backward) -> list[Array]:
    n = backward.residuals
    return _run(lambda *xs: backward.push(list(xs[:n]), list(xs[n:])), args)


def _custom_linear_jvp(
    primals: list[Tensor], tangents: Tangents, out: list[Tensor], backward: Backward
) -> list[Tensor]:
    n = backward.residuals
    active = [i for i, t in enumerate(tangents) if t is not None]

    def f(*moving: Tensor) -> list[Tensor]:
        args = list(primals)
        for i, value in zip(active, moving, strict=True):
            args[i] = value
        return backward.push(args[:n], args[n:])

    return jvp(f, tuple(primals[i] for i in active), tuple(tangents[i] for i in active))[1]


def _custom_linear_transpose(cts: Tangents, args: list[Tensor], backward: Backward) -> Tangents:
    n = backward.residuals
    full = [zeros_like(a) if ct is None else ct for ct, a in zip(cts, backward.outs, strict=True)]
    found = backward.pull(args[:n], full)
    return [None] * n + [ct if type(arg) is Tangent else None for ct, arg in zip(found, args[n:], strict=True)]


def _custom_linear_batch(args: list[Tensor], batched: list[bool], backward: Backward) -> list[Tensor]:
    n = backward.residuals

    def one(*xs: Tensor) -> list[Tensor]:
        return backward.push(list(xs[:n]), list(xs[n:]))

    return batching.vmap(one, in_axes=tuple(0 if b else None for b in batched))(*args)


custom_linear: Primitive = Primitive(
    "custom_linear",
    _custom_linear_impl,
    lambda *args, backward: backward.outs,
    jvp=_custom_linear_jvp,
    transpose=_custom_linear_transpose,
    batch=_custom_linear_batch,
    multiple=True,
)


def _batch_of_custom_vjp(args: list[Tensor], batched: list[bool], custom: Custom) -> list[Tensor]:
    axes = tuple(0 if b else None for b in batched)

    def forward(primals: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        return batching.vmap(lambda *xs: custom.rule.forward(list(xs)), in_axes=axes)(*primals)

    def backward(residuals: list[Tensor], cts: list[Tensor]) -> Tangents:
        found = batching.vmap(lambda r, c: custom.rule.backward(r, c))(residuals, cts)
        # an argument that all examples share receives the sum of their adjoints
        return [ct if b or ct is None else ct.sum(axis=0) for ct, b in zip(found, batched, strict=True)]

    return custom_vjp_call(
        *args, custom=Custom(custom.name, batching.vmap(custom.f, in_axes=axes), Rule(forward, backward))
    )


custom_vjp_call: Primitive = Primitive(
    "custom_vjp",
    _impl,
    _abstract,
    batch=_batch_of_custom_vjp,
    multiple=True,
    linearize=_linearize_custom_vjp,
)


class custom_vjp(Generic[P, Result]):  # noqa: N801 - a decorator, used as a function
    """A function whose adjoint is given by a pair of functions; forward mode is derived by transposing the adjoint.

    >>> import wonderland as wl
    >>> @wl.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda residual, ct: (wl.clip(ct, -1.0, 1.0),))
    >>> print(wl.grad(lambda x: 10 * clipped(x))(2.0))
    tensor(1.)

    `forward(*args)` returns the value and residuals (any tree); `backward(residuals, adjoint)` a tuple with the adjoint
    of every argument (None for zero). Arguments named by `nondiff_argnums` come first in `backward` and have no
    adjoint.
    """

    __name__: str

    def __init__(self, f: Callable[P, Result], nondiff_argnums: int | tuple[int, ...] = ()) -> None:
        functools.update_wrapper(self, as_function("custom_vjp", f))
        self._f = f
        self._rules: tuple[Callable[..., object], Callable[..., object]] | None = None
        self._fixed = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)

    def defvjp(self, forward: Callable[..., object], backward: Callable[..., object]) -> None:
        """Set the two functions."""
        self._rules = (forward, backward)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result:
        if self._rules is None:
            raise GradientError(f"custom_vjp: {self.__name__} has no rules yet.", "f.defvjp(forward, backward)")
        call = _Call("custom_vjp", self._f, args, kwargs, self._fixed)
        user_forward, user_backward = self._rules
        fixed = call.fixed_values
        kept: dict[str, Any] = {}

        def forward(primals: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            out = user_forward(*call.arguments(primals))
            if not isinstance(out, tuple) or len(out) != 2:
                raise GradientError(
                    f"custom_vjp: the forward function returned a {type(out).__name__}.", "a pair (value, residuals)"
                )
            values = call.results(out[0])
            residuals, kept["structure"] = trees.flatten(out[1])
            kept["others"] = [None if isinstance(r, Tensor) else (r,) for r in residuals]  # a tensor's place is None
            return values, [r for r in residuals if isinstance(r, Tensor)]

        def backward(residuals: list[Tensor], cts: list[Tensor]) -> Tangents:
            tensors = iter(residuals)
            full = [next(tensors) if other is None else other[0] for other in kept["others"]]
            adjoints = trees.unflatten(call.out_structure, cts)
            found = user_backward(*fixed, trees.unflatten(kept["structure"], full), adjoints)
            if not isinstance(found, (tuple, list)) or len(found) != len(call.structures):
                count = f"{len(found)} adjoints" if isinstance(found, (tuple, list)) else f"a {type(found).__name__}"
                raise GradientError(
                    f"custom_vjp: the backward function returned {count} for {len(call.structures)} arguments.",
                    "a tuple with one adjoint (or None) per argument",
                )
            leaves: Tangents = []
            for ct, structure in zip(found, call.structures, strict=True):
                if ct is None:
                    leaves += [None] * structure.leaf_count
                    continue
                parts, shape = trees.flatten(ct)
                if shape != structure:
                    raise TreeError(
                        f"custom_vjp: an adjoint has structure {shape}, its argument {structure}.",
                        "an adjoint in the same tree as the argument, or None",
                    )
                leaves += parts
            return leaves

        return call.bind(custom_vjp_call, Rule(forward, backward))


class _Call:
    """One call of a function with a custom rule, on flat lists of tensors."""

    def __init__(
        self,
        name: str,
        f: Callable[..., object],
        args: tuple[object, ...],
        kwargs: dict[str, object],
        fixed: tuple[int, ...],
    ) -> None:
        self.name = name
        self.f = f
        if kwargs:
            import inspect  # takes a while to load

            bound = inspect.signature(f).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        if any(not -len(args) <= n < len(args) for n in fixed):
            raise GradientError(
                f"{name}: nondiff_argnums={fixed}, but there are {len(args)} arguments.", "positions of arguments"
            )
        places = [n % len(args) for n in fixed]
        self.fixed_values = [args[i] for i in places]
        self.args = [arg if i in places else None for i, arg in enumerate(args)]
        self.moving = [i for i in range(len(args)) if i not in places]
        self.leaves: list[Tensor] = []  # until they are bound
        self.structures: list[trees.Structure] = []
        for i in self.moving:
            leaves, structure = trees.flatten(args[i])
            for leaf in leaves:
                if not arrays.is_operand(leaf):
                    raise TreeError(
                        f"{name}: argument {i} has a leaf of type {type(leaf).__name__}, not a tensor.",
                        f"nondiff_argnums=({i},) for arguments without a derivative",
                    )
            self.leaves += [arrays.asarray(leaf) for leaf in leaves]
            self.structures.append(structure)
        self.out_structure: trees.Structure = trees.NONE

    def rebuild(self, leaves: Sequence[Tensor]) -> tuple[Any, ...]:
        """The moving arguments from their leaves."""
        parts, start = [], 0
        for structure in self.structures:
            parts.append(trees.unflatten(structure, leaves[start : start + structure.leaf_count]))
            start += structure.leaf_count
        return tuple(parts)

    def arguments(self, leaves: list[Tensor]) -> list[object]:
        """All arguments in their order."""
        full = list(self.args)
        for i, value in zip(self.moving, self.rebuild(leaves), strict=True):
            full[i] = value
        return full

    def results(self, out: object) -> list[Tensor]:
        """The leaves of a value as tensors."""
        leaves, self.out_structure = trees.flatten(out)
        return [arrays.asarray(leaf) for leaf in leaves]

    def flat(self, *leaves: Tensor) -> list[Tensor]:
        return self.results(self.f(*self.arguments(list(leaves))))

    def bind(self, primitive: Primitive, rule: Any) -> Any:
        leaves, self.leaves = self.leaves, []
        name = getattr(self.f, "__name__", self.name)
        outs = primitive(*leaves, custom=Custom(name, self.flat, rule))
        return trees.unflatten(self.out_structure, outs)
