"""Fixed points s = f(s, x), and their derivatives by the implicit function theorem. Book, section 13.2.1.

Whatever way s was found, at the fixed point \\(ds = J_s\\,ds + J_x\\,dx\\), so an adjoint g of s becomes

    u = (I - J_s)^-T g,  which is itself a fixed point,  u = g + J_s^T u,

and u^T J_x is the adjoint of x. Nothing is kept of the iterations, so memory does not depend on their number.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ... import arrays, linalg
from ...arrays import stop_gradient
from ...core import dtypes, trees
from ...core.arguments import as_function, as_int, as_number
from ...core.context import user_level
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.interpreter import Tangent
from ...core.tangents import JVPTracer
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...transforms.batching import BatchTracer
from ...transforms.control.loops import runs_in_python
from ...transforms.custom import custom_vjp
from ...transforms.forward import jvp
from ...transforms.reverse import vjp
from ..module.functional_call import functional_call
from ..module.module import Module
from .solvers import SOLVERS, FixedPointSolution, default_tolerance, jacobian, solve, solved

__all__ = ["FixedPoint", "FixedPointWarning", "fixed_point"]

Operands: TypeAlias = Any  # a tree of tensors
Equation: TypeAlias = Callable[[Tensor, Operands], Tensor]  # f on (systems, d), and the operands
Found: TypeAlias = tuple[Tensor, Tensor, Tensor]  # the value, the residual, and how often f was evaluated
Kept: TypeAlias = tuple[Tensor, list[Tensor], list[Tensor]]  # the value, and operands with a derivative and without
BACKWARD = ("auto", "iteration", "anderson", "solve")
ON_FAILURE = ("warn", "raise", "ignore")


class FixedPointWarning(UserWarning):
    """An iteration for a fixed point ended before it came to one."""


class Settings(NamedTuple):
    """How a fixed point is looked for, and what happens if there is none."""

    solver: str
    backward: str
    tol: float | None
    max_iter: int
    memory: int
    rows_alone: bool
    on_failure: str

    def checked(self) -> Settings:
        name = "fixed_point"
        for what, allowed in (("solver", SOLVERS), ("backward", BACKWARD), ("on_failure", ON_FAILURE)):
            if getattr(self, what) not in allowed:
                raise InputError(f"{name}: {what}={getattr(self, what)!r}.", f"one of {', '.join(allowed)}")
        if self.tol is not None and not as_number(name, "tol", self.tol) > 0:
            raise InputError(f"{name}: tol={self.tol}.", "a number above 0")
        back = self.backward
        if back == "auto":
            back = "solve" if self.solver == "newton" else self.solver
        counts = as_int(name, "max_iter", self.max_iter, 1), as_int(name, "memory", self.memory, 1)
        return self._replace(backward=back, max_iter=counts[0], memory=counts[1], rows_alone=bool(self.rows_alone))


def fixed_point(
    f: Callable[..., Tensor],
    start: ArrayLike,
    *args: object,
    solver: str = "iteration",
    backward: str = "auto",
    tol: float | None = None,
    max_iter: int = 200,
    memory: int = 5,
    rows_alone: bool = False,
    on_failure: str = "warn",
) -> Tensor:
    r"""The s with \(s = f(s, x, \dots)\), from `start`; derivatives do not see the iteration. Book, 13.2.1.

    >>> import wonderland as wl
    >>> s = wl.nn.fixed_point(lambda s, x: wl.tanh(0.5 * s + 0.7 * x), wl.zeros(()), 1.2)
    >>> print(f"{s:.6f}")  # tanh(0.5 s + 0.84)
    0.852822

    `args` are trees of tensors. There are gradients for the floating ones, and for the parameters of f if it is a
    module; what else f refers to is constant. `start` has the shape of s, and no influence on the derivative.

    - `solver`: "iteration", \(s \leftarrow f(s)\), which needs a contraction; "anderson", which mixes the last `memory`
      iterates and often needs a fraction of the steps; "newton", which solves with the Jacobian, a matrix of all
      numbers of s, and finds points that repel an iteration.
    - `backward`: how \((I - J_s)^\top u = g\) is solved: "iteration" \(u \leftarrow g + J_s^\top u\), the scheme of
      Almeida and Pineda, "anderson", or "solve" with the matrix; "auto" is what the solver does.
    - `tol`: of the relative residual \(\|f(s) - s\| / \max(1, \|s\|)\), by default 1e-6, in float64 1e-10. `max_iter`:
      evaluations of f.
    - `rows_alone`: the rows of s are systems of their own, as those of a batch; else all numbers are one system.
    - `on_failure`: "warn", "raise" or "ignore" what did not come to an end. Compiled code cannot warn: there, a system
      that did not converge is NaN, unless it is to be ignored.

    It works inside `jit` and `vmap`, in both modes and to any order; forward mode takes the matrix.
    """
    settings = Settings(solver, backward, tol, max_iter, memory, rows_alone, on_failure).checked()
    return find(f, start, args, settings).value


def find(
    f: Callable[..., Tensor], start: ArrayLike, args: tuple[object, ...], settings: Settings
) -> FixedPointSolution:
    """The solution of s = f(s, *args), with checked settings."""
    as_function("fixed_point", f)
    first = arrays.asarray(start)
    if not dtypes.is_floating(first.dtype):
        raise DTypeError(f"fixed_point: a start of {first.dtype}.", "floating numbers, of the shape of s")
    shape = first.shape
    alone = settings.rows_alone and first.ndim > 0
    systems = shape[0] if alone else 1
    flat = (systems, math.prod(shape[1:] if alone else shape))
    settings = settings._replace(tol=default_tolerance(first.dtype) if settings.tol is None else settings.tol)
    parameters = {}
    if isinstance(f, Module):
        parameters = {path: arrays.asarray(p) for path, p in f.named_parameters() if p.trainable}

    def equation(s: Tensor, operands: Operands) -> Tensor:
        values, given = operands
        call = functools.partial(functional_call, f, values) if values else f
        after = arrays.asarray(call(arrays.reshape(s, shape), *given))
        if after.shape != shape or after.dtype != s.dtype:
            raise ShapeError(
                f"fixed_point: f gave {after.dtype}{list(after.shape)} for s of {s.dtype}{list(shape)}.",
                "a start of the shape and dtype of f(s, ...)",
            )
        return arrays.reshape(after, flat)

    found = _implicit("fixed_point", equation, arrays.reshape(first, flat), (parameters, args), settings)
    return found._replace(value=arrays.reshape(found.value, shape))


def _implicit(name: str, f: Equation, start: Tensor, operands: Operands, settings: Settings) -> FixedPointSolution:
    """The solution of s = f(s, operands); its derivative is another solution of the same kind, so there are all."""

    assert settings.tol is not None
    tol = settings.tol

    leaves, structure = trees.flatten(operands)
    leaves = [arrays.asarray(leaf) for leaf in leaves]
    floating = [dtypes.is_inexact(leaf.dtype) for leaf in leaves]  # integers, as places of edges, have no derivative

    def joined(moving: list[Tensor], still: list[Tensor]) -> Operands:
        parts = iter(moving), iter(still)
        return trees.unflatten(structure, [next(parts[0] if moves else parts[1]) for moves in floating])

    @custom_vjp
    def run(start: Tensor, moving: list[Tensor], still: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        given = joined(moving, still)
        found = solve(lambda s: f(s, given), start, settings.solver, tol, settings.max_iter, settings.memory)
        return found.value, found.residual, found.iterations

    def forward(start: Tensor, moving: list[Tensor], still: list[Tensor]) -> tuple[Found, Kept]:
        found = run(start, moving, still)
        return found, (found[0], moving, still)

    def backward(residuals: Kept, adjoints: Found) -> tuple[None, list[Tensor], None]:
        s, moving, still = residuals
        u = _adjoint(name, f, s, joined(moving, still), adjoints[0], settings)
        return None, vjp(lambda o: f(s, joined(o, still)), moving)[1](u)[0], None

    run.defvjp(forward, backward)
    moving = [leaf for leaf, moves in zip(leaves, floating, strict=True) if moves]
    still = [leaf for leaf, moves in zip(leaves, floating, strict=True) if not moves]
    value, residual, count = run(stop_gradient(start), moving, still)
    residual = stop_gradient(residual)
    if settings.on_failure != "ignore":
        if not runs_in_python():
            bad = arrays.expand_dims(~(residual <= tol), -1)
            value = arrays.where(bad, arrays.full_like(value, math.nan), value)
        else:
            _check(name, f, value, residual, int(count), operands, settings)
    return FixedPointSolution(value, residual, count)


def _adjoint(name: str, f: Equation, s: Tensor, operands: Operands, g: Tensor, settings: Settings) -> Tensor:
    r"""The u with \((I - J_s)^\top u = g\)."""
    if settings.backward == "solve" or _is_unknown(g):
        matrix = arrays.eye(s.shape[1], dtype=s.dtype) - jacobian(lambda s: f(s, operands), s)
        return solved(matrix.mT, g)

    def adjoint(u: Tensor, known: Operands) -> Tensor:
        g, s, operands = known
        return g + vjp(lambda s: f(s, operands), s)[1](u)[0]

    how = settings._replace(solver=settings.backward)
    what = name if name.endswith("'s adjoint") else f"{name}'s adjoint"
    return _implicit(what, adjoint, g, (g, s, operands), how).value


def _is_unknown(g: Tensor) -> bool:
    """Whether an adjoint has no numbers, with which forward mode transposes: it cannot be iterated, but solved for."""
    while isinstance(g, BatchTracer | JVPTracer):
        g = g.value if isinstance(g, BatchTracer) else g.primal
    return type(g) is Tangent


def _check(
    name: str, f: Equation, value: Tensor, residual: Tensor, count: int, operands: Operands, settings: Settings
) -> None:
    """Say that there was no convergence, how far away it was, and why it may be so."""
    sizes = np.asarray(residual)
    if (sizes <= settings.tol).all():
        return
    s = stop_gradient(value)
    where = f" of {int((~(sizes <= settings.tol)).sum())} of {sizes.size} systems" if sizes.size > 1 else ""
    worst = float(sizes.max()) if np.isfinite(sizes).all() else math.nan
    text = (
        f"{name}: no convergence after {count} evaluations by {settings.solver}: the residual{where} is {worst:.3g}, "
        f"more than tol={settings.tol:.3g}, and the spectral radius of the Jacobian is about "
        f"{_radius(f, s, operands):.3g}"
    )
    remedy = "a contraction (a spectral radius below 1), solver='newton' or 'anderson', a larger max_iter or tol"
    if settings.on_failure == "raise":
        raise InputError(f"{text}.", remedy)
    warnings.warn(f"{text}. Try {remedy}.", FixedPointWarning, stacklevel=user_level())


def _radius(f: Equation, s: Tensor, operands: Operands) -> float:
    """The spectral radius of the Jacobian where the iteration ended, or in the middle of a cycle of two, if larger."""
    if not np.isfinite(np.asarray(s)).all():
        s = arrays.zeros_like(s)
    found = []
    for point in (s, 0.5 * (s + f(s, operands))):
        if np.isfinite(np.asarray(stop_gradient(point))).all():
            at = stop_gradient(point)
            found.append(linalg.estimate_spectral_radius(functools.partial(_push, f, at, operands), at))
    return max(found, default=math.nan)


def _push(f: Equation, s: Tensor, operands: Operands, v: Tensor) -> Tensor:
    """J v, at s."""
    return stop_gradient(jvp(lambda s: f(s, operands), (s,), (v,))[1])


class FixedPoint(Module):
    r"""A layer of infinite depth: \(s = f(s, x)\). Book, E.13.12 and E.13.13.

    >>> import wonderland as wl
    >>> class Step(wl.nn.Module):
    ...     def __init__(self):
    ...         self.A = wl.nn.Parameter([[0.5]])
    ...         self.B = wl.nn.Parameter([[1.0]])
    ...     def forward(self, s, x):
    ...         return wl.tanh(s @ self.A + x @ self.B)
    >>> layer = wl.nn.FixedPoint(Step(), solver="anderson")
    >>> layer(wl.tensor([[0.84]]))
    tensor([[0.8528]])
    >>> layer.solve(wl.tensor([[0.84]])).iterations.item() < 12
    True

    f takes the state, then what the layer is called with. The state begins with zeros like the first of these, or with
    what `start`, a function of the same arguments, gives. The rows of a batch are systems of their own, unless
    `rows_alone=False`, as for nodes of a graph. The other settings, and what they mean, are those of `fixed_point`.
    Training may lead f away from being a contraction, where a compiled step gives NaN and `fit` stops: divide the
    matrix of the state by its norm, as `ImplicitGraphLayer` does.
    """

    def __init__(
        self,
        f: Callable[..., Tensor],
        solver: str = "iteration",
        tol: float | None = None,
        max_iter: int = 200,
        backward: str = "auto",
        memory: int = 5,
        rows_alone: bool = True,
        on_failure: str = "warn",
        start: Callable[..., Tensor] | None = None,
    ) -> None:
        self.f = as_function("FixedPoint", f)
        self.settings = Settings(solver, backward, tol, max_iter, memory, rows_alone, on_failure).checked()
        self.start = start

    def forward(self, *args: Operands) -> Tensor:
        return self.solve(*args).value

    def solve(self, *args: Operands) -> FixedPointSolution:
        """The state, with its residual and the number of evaluations that it took."""
        if not args:
            raise InputError("FixedPoint: nothing to begin with.", "an input, layer(x)")
        first = self.start(*args) if self.start is not None else arrays.zeros_like(arrays.asarray(args[0]))
        return find(self.f, first, args, self.settings)

    def extra_repr(self) -> str:
        s = self.settings
        return f"solver={s.solver!r}, backward={s.backward!r}, tol={s.tol}, max_iter={s.max_iter}"
