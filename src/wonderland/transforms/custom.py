"""Derivatives that users define: `stop_gradient`, `custom_jvp`, `custom_vjp`. Book, section 6 (exercises).

A function with a rule of its own is a primitive application whose parameter holds the Python functions. One rule serves
both modes: from a jvp rule reverse mode is derived as always, and the transpose of a vjp rule is the jvp.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..context import switch
from ..dtypes import is_inexact
from ..errors import GradientError, TraceError, TreeError
from ..primitives.creation import zeros_like
from ..primitives.primitive import ZERO, Aval, Primitive, aval_of
from ..tensor import Tensor, Tracer, wrap

_stop = Primitive(
    "stop_gradient",
    lambda x: x,
    lambda x: Aval(x.shape, x.dtype),
    jvp=(ZERO,),
    batch=lambda args, batched: _stop(args[0]),
)


def stop_gradient(x: Any) -> Any:
    """x as a constant: its derivative is zero. Works on trees.

    >>> import wonderland as wl
    >>> print(wl.grad(lambda x: x * wl.stop_gradient(x))(3.0))
    tensor(3.)
    """
    if isinstance(x, Tensor):
        out = _stop(x)
        if type(out) is Tensor and out._node is not None:
            out = wrap(out._data)
        return out
    return trees.map(lambda leaf: stop_gradient(leaf) if isinstance(leaf, Tensor) else leaf, x)


class Custom:
    """A function on flat lists of tensors with its rule: what the primitives below carry."""

    def __init__(self, name: str, f: Callable[..., list[Any]], rule: Any) -> None:
        self.name = name
        self.f = f
        self.rule = rule

    def __repr__(self) -> str:
        return self.name


def _run(f: Callable[..., Any], arrays: Any) -> list[Any]:
    """The value, computed at once on plain tensors."""
    previous = switch(None)
    try:
        return [out._data for out in f(*[wrap(a) for a in arrays])]
    finally:
        switch(previous)


def _abstract(*args: Any, custom: Custom) -> list[Aval]:
    from ..graph.stage import stage

    staged = stage(custom.f, [aval_of(a) for a in args], name=custom.name, purpose=custom.name)
    if any(isinstance(v, Tracer) for v in staged.captured) or staged.written_cells:
        raise TraceError(
            f"{custom.name}: a function with a custom derivative uses a traced value or changes state from outside.",
            "pass everything that it depends on as arguments",
        )
    return [a.aval for a in staged.graph.outputs]


# --- custom_jvp


def _jvp_of_custom_jvp(primals: list[Any], tangents: list[Any], out: Any, custom: Custom) -> list[Any]:
    dots = [zeros_like(p) if t is None else t for p, t in zip(primals, tangents, strict=True)]
    return custom.rule(primals, dots)  # type: ignore[no-any-return]


def _batch_of_custom_jvp(args: list[Any], batched: list[bool], custom: Custom) -> Any:
    axes = tuple(0 if b else None for b in batched)

    def rule(primals: list[Any], dots: list[Any]) -> list[Any]:
        def one(*both: Any) -> list[Any]:
            n = len(primals)
            return custom.rule(list(both[:n]), list(both[n:]))  # type: ignore[no-any-return]

        return batching.vmap(one, in_axes=axes + axes)(*primals, *dots)  # type: ignore[no-any-return]

    return custom_jvp_call(*args, custom=Custom(custom.name, batching.vmap(custom.f, in_axes=axes), rule))


custom_jvp_call = Primitive(
    "custom_jvp",
    lambda *args, custom: _run(custom.f, args),
    _abstract,
    jvp=_jvp_of_custom_jvp,
    batch=_batch_of_custom_jvp,
    multiple=True,
)


class custom_jvp:  # noqa: N801 - a decorator, used as a function
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
    tangents. Arguments named by `nondiff_argnums` are passed to the rule first and have no tangents.
    """

    def __init__(self, f: Callable[..., Any], nondiff_argnums: tuple[int, ...] = ()) -> None:
        functools.update_wrapper(self, f)
        self._f = f
        self._rule: Callable[..., Any] | None = None
        self._fixed = tuple(nondiff_argnums)

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule `rule(primals, tangents) -> (value, tangent)`."""
        self._rule = rule
        return rule

    def __call__(self, *args: Any) -> Any:
        if self._rule is None:
            raise GradientError(f"custom_jvp: {self.__name__} has no rule yet.", "@f.defjvp")  # type: ignore[attr-defined]
        call = _Call("custom_jvp", self._f, args, self._fixed)
        user_rule, fixed = self._rule, call.fixed_values

        def rule(primals: list[Any], dots: list[Any]) -> list[Any]:
            out = user_rule(*fixed, call.rebuild(primals), call.rebuild(dots))
            if not isinstance(out, tuple) or len(out) != 2:
                raise GradientError(f"custom_jvp: the rule returned a {type(out).__name__}.", "a pair (value, tangent)")
            leaves, structure = trees.flatten(out[1])
            if call.out_structure is not None and structure != call.out_structure:
                raise TreeError(f"custom_jvp: the tangent has structure {structure}, the value {call.out_structure}.")
            return leaves

        return call.bind(custom_jvp_call, rule)


# --- custom_vjp


class Rule:
    """forward(args) -> (outs, residuals), backward(residuals, adjoints) -> adjoints of the args, on flat lists."""

    def __init__(self, forward: Any, backward: Any) -> None:
        self.forward = forward
        self.backward = backward


def _linearize_custom_vjp(primals: list[Any], tangents: list[Any], custom: Custom) -> tuple[list[Any], list[Any]]:
    outs, residuals = custom.rule.forward(primals)
    out_avals = [aval_of(o) for o in outs]
    dots = [zeros_like(p) if t is None else t for p, t in zip(primals, tangents, strict=True) if is_inexact(p.dtype)]
    backward = Backward(custom, [aval_of(p) for p in primals], out_avals, len(residuals))
    made = iter(custom_linear(*residuals, *dots, backward=backward))
    return outs, [next(made) if is_inexact(a.dtype) else None for a in out_avals]


class Backward:
    """The linear map of a custom_vjp at a point, known by how it transposes."""

    def __init__(self, custom: Custom, avals: list[Aval], outs: list[Aval], residuals: int) -> None:
        self.custom = custom
        self.avals = [a for a in avals if is_inexact(a.dtype)]
        self.mask = [is_inexact(a.dtype) for a in avals]
        self.outs = [a for a in outs if is_inexact(a.dtype)]
        self.out_avals = outs
        self.residuals = residuals

    def pull(self, residuals: list[Any], cts: list[Any]) -> list[Any]:
        """Adjoints of the inexact arguments."""
        given = iter(cts)
        full = [next(given) if is_inexact(a.dtype) else zeros_like(a) for a in self.out_avals]
        found = self.custom.rule.backward(residuals, full)
        return [zeros_like(a) if ct is None else ct for ct, a in zip([c for c, on in zip(found, self.mask, strict=True) if on], self.avals, strict=True)]

    def push(self, residuals: list[Any], dots: list[Any]) -> list[Any]:
        """The transpose of `pull`: record what it does to adjoints that are not known, and walk back."""
        from ..interpreter import Tangent
        from .reverse import pull_back

        cts = [Tangent(a.shape, a.dtype) for a in self.outs]
        pulled = self.pull(residuals, cts)
        seeds = [(p, t) for p, t in zip(pulled, dots, strict=True) if type(p) is Tangent]
        found = pull_back(seeds, cts, free=True)
        return [zeros_like(a) if t is None else t for t, a in zip(found, self.outs, strict=True)]


def _custom_linear_impl(*args: Any, backward: Backward) -> list[Any]:
    n = backward.residuals
    return _run(lambda *xs: backward.push(list(xs[:n]), list(xs[n:])), args)


def _custom_linear_jvp(primals: list[Any], tangents: list[Any], out: Any, backward: Backward) -> list[Any]:
    from .forward import jvp

    n = backward.residuals
    active = [i for i, t in enumerate(tangents) if t is not None]

    def f(*moving: Any) -> list[Any]:
        args = list(primals)
        for i, value in zip(active, moving, strict=True):
            args[i] = value
        return backward.push(args[:n], args[n:])

    return jvp(f, tuple(primals[i] for i in active), tuple(tangents[i] for i in active))[1]  # type: ignore[no-any-return]


def _custom_linear_transpose(cts: Any, args: list[Any], backward: Backward) -> list[Any]:
    from ..interpreter import Tangent

    n = backward.residuals
    full = [zeros_like(a) if ct is None else ct for ct, a in zip(cts, backward.outs, strict=True)]
    found = backward.pull(args[:n], full)
    return [None] * n + [ct if type(arg) is Tangent else None for ct, arg in zip(found, args[n:], strict=True)]


def _custom_linear_batch(args: list[Any], batched: list[bool], backward: Backward) -> Any:
    n = backward.residuals

    def one(*xs: Any) -> list[Any]:
        return backward.push(list(xs[:n]), list(xs[n:]))

    return batching.vmap(one, in_axes=tuple(0 if b else None for b in batched))(*args)


custom_linear = Primitive(
    "custom_linear",
    _custom_linear_impl,
    lambda *args, backward: backward.outs,
    jvp=_custom_linear_jvp,
    transpose=_custom_linear_transpose,
    batch=_custom_linear_batch,
    multiple=True,
)


def _jvp_of_custom_vjp(primals: list[Any], tangents: list[Any], out: Any, custom: Custom) -> list[Any]:
    return _linearize_custom_vjp(primals, tangents, custom)[1]


def _batch_of_custom_vjp(args: list[Any], batched: list[bool], custom: Custom) -> Any:
    axes = tuple(0 if b else None for b in batched)

    def forward(primals: list[Any]) -> tuple[list[Any], list[Any]]:
        return batching.vmap(lambda *xs: custom.rule.forward(list(xs)), in_axes=axes)(*primals)  # type: ignore[no-any-return]

    def backward(residuals: list[Any], cts: list[Any]) -> list[Any]:
        found = batching.vmap(lambda r, c: custom.rule.backward(r, c))(residuals, cts)
        # an argument that all examples share receives the sum of their adjoints
        return [ct if b or ct is None else ct.sum(axis=0) for ct, b in zip(found, batched, strict=True)]

    return custom_vjp_call(*args, custom=Custom(custom.name, batching.vmap(custom.f, in_axes=axes), Rule(forward, backward)))


custom_vjp_call = Primitive(
    "custom_vjp",
    lambda *args, custom: _run(custom.f, args),
    _abstract,
    jvp=_jvp_of_custom_vjp,
    batch=_batch_of_custom_vjp,
    multiple=True,
    linearize=_linearize_custom_vjp,
)


class custom_vjp:  # noqa: N801 - a decorator, used as a function
    """A function whose adjoint is given by a pair of functions; forward mode is derived by transposing the adjoint.

    >>> import wonderland as wl
    >>> @wl.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda residual, ct: (wl.clip(ct, -1.0, 1.0),))
    >>> print(wl.grad(lambda x: 10 * clipped(x))(2.0))
    tensor(1.)

    `forward(*args)` returns the value and residuals (any tree); `backward(residuals, adjoint)` a tuple with the adjoint of
    every argument (None for zero). Arguments named by `nondiff_argnums` come first in `backward` and have no adjoint.
    """

    def __init__(self, f: Callable[..., Any], nondiff_argnums: tuple[int, ...] = ()) -> None:
        functools.update_wrapper(self, f)
        self._f = f
        self._rules: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self._fixed = tuple(nondiff_argnums)

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Set the two functions."""
        self._rules = (forward, backward)

    def __call__(self, *args: Any) -> Any:
        if self._rules is None:
            raise GradientError(f"custom_vjp: {self.__name__} has no rules yet.", "f.defvjp(forward, backward)")  # type: ignore[attr-defined]
        call = _Call("custom_vjp", self._f, args, self._fixed)
        user_forward, user_backward = self._rules
        fixed, kept = call.fixed_values, {}

        def forward(primals: list[Any]) -> tuple[list[Any], list[Any]]:
            out = user_forward(*call.arguments(primals))
            if not isinstance(out, tuple) or len(out) != 2:
                raise GradientError(f"custom_vjp: the forward function returned a {type(out).__name__}.", "a pair (value, residuals)")
            leaves, call.out_structure = trees.flatten(out[0])
            residuals, kept["structure"] = trees.flatten(out[1])
            kept["tensor"] = [isinstance(r, Tensor) for r in residuals]
            kept["other"] = [r for r in residuals if not isinstance(r, Tensor)]
            return leaves, [r for r in residuals if isinstance(r, Tensor)]

        def backward(residuals: list[Any], cts: list[Any]) -> list[Any]:
            tensors, others = iter(residuals), iter(kept["other"])
            full = [next(tensors) if is_tensor else next(others) for is_tensor in kept["tensor"]]
            assert call.out_structure is not None
            found = user_backward(*fixed, trees.unflatten(kept["structure"], full), trees.unflatten(call.out_structure, cts))
            if not isinstance(found, (tuple, list)) or len(found) != len(call.structures):
                raise GradientError(
                    f"custom_vjp: the backward function returned {type(found).__name__} for {len(call.structures)} arguments.",
                    "a tuple with one adjoint (or None) per argument",
                )
            leaves: list[Any] = []
            for ct, structure in zip(found, call.structures, strict=True):
                if ct is None:
                    leaves += [None] * structure.count
                    continue
                parts, shape = trees.flatten(ct)
                if shape != structure:
                    raise TreeError(f"custom_vjp: an adjoint has structure {shape}, its argument {structure}.")
                leaves += parts
            return leaves

        return call.bind(custom_vjp_call, Rule(forward, backward))


class _Call:
    """One call of a function with a custom rule, on flat lists of tensors."""

    def __init__(self, name: str, f: Callable[..., Any], args: tuple[Any, ...], fixed: tuple[int, ...]) -> None:
        self.name = name
        self.f = f
        self.args = args
        self.moving = [i for i in range(len(args)) if i not in fixed]
        self.fixed_values = [args[i] for i in fixed]
        self.leaves: list[Any] = []
        self.structures: list[Any] = []
        for i in self.moving:
            leaves, structure = trees.flatten(args[i])
            self.leaves += [array.asarray(leaf) for leaf in leaves]
            self.structures.append(structure)
        self.out_structure: Any = None

    def rebuild(self, leaves: list[Any]) -> tuple[Any, ...]:
        """The moving arguments from their leaves."""
        parts, start = [], 0
        for structure in self.structures:
            parts.append(trees.unflatten(structure, leaves[start : start + structure.count]))
            start += structure.count
        return tuple(parts)

    def arguments(self, leaves: list[Any]) -> list[Any]:
        """All arguments in their order."""
        full = list(self.args)
        for i, value in zip(self.moving, self.rebuild(leaves), strict=True):
            full[i] = value
        return full

    def flat(self, *leaves: Any) -> list[Any]:
        out, structure = trees.flatten(self.f(*self.arguments(list(leaves))))
        self.out_structure = structure
        return [array.asarray(o) for o in out]

    def bind(self, primitive: Primitive, rule: Any) -> Any:
        name = getattr(self.f, "__name__", self.name)
        outs = primitive(*self.leaves, custom=Custom(name, self.flat, rule))
        if self.out_structure is None:  # only abstract rules ran
            raise TraceError(f"{self.name}: {name} was not traced.")
        return trees.unflatten(self.out_structure, outs)


from .. import array, trees  # noqa: E402 - these know tensors and primitives
from . import batching  # noqa: E402

