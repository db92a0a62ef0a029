"""`minimize`: a method, its stopping rules, and a record of the way. Book, section 2.3."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ... import arrays
from ...core.arguments import as_function, as_int, as_number
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...transforms.batching import vmap
from ...transforms.reverse import grad
from ..optimizer import Optimizer
from .methods import METHODS, by_optimizer
from .problem import Function, Point, Problem, as_point

GROWING = 10  # steps in a row that go up, above the start, are a divergence


@dataclass(frozen=True)
class Minimum:
    """What `minimize` found.

    `reason` is why it stopped: "gradient" or "value" (converged), "max_iter", "diverged", "stalled" (no step lowers
    f any more, often the limit of rounding) or "callback". `path` has the points of all steps, the start too:
    (steps + 1, *shape of x), or vectors if x is a tree; `values` and `grad_norms` belong to them.
    """

    x: Any
    value: float
    grad_norm: float
    steps: int
    evaluations: int
    converged: bool
    reason: str
    path: Tensor
    values: list[float]
    grad_norms: list[float]


def minimize(
    f: Function,
    x0: object,
    method: str | Callable[..., Optimizer] = "lbfgs",
    *,
    lr: float | Callable[[int], float] = 0.1,
    tol: float | None = None,
    value_tol: float | None = None,
    max_iter: int = 1000,
    callback: Callable[[int, Point], object] | None = None,
    maximize: bool = False,
    jit: bool = False,
    **settings: Any,
) -> Minimum:
    r"""\(x_t = x_{t-1} + \eta_t p_t\) towards \(\arg\min_x f(x)\), from x0: a tensor, numbers, or a tree.

    >>> import wonderland as wl
    >>> result = wl.optim.minimize(lambda x: (x[0] - 1) ** 2 + 10 * (x[1] + 2) ** 2, [0.0, 0.0])
    >>> [round(x, 5) for x in result.x.tolist()], result.converged, result.reason
    ([1.0, -2.0], True, 'gradient')

    Methods: "gd" (steepest descent; `line_search` "backtracking", "wolfe" or "exact", `normalized`), "momentum",
    "nesterov", "adagrad", "rmsprop", "adam" (with the settings of these optimizers), "newton", "cg" (nonlinear
    conjugate gradients), "lbfgs" (`history_size`); or an optimizer's class, such as `wl.optim.Lion`. `lr` is a number
    or a function of the step and matters to the methods without a line search; these evaluate f once per step.

    It stops when the norm of the gradient is at most `tol` (by default the root of the precision), when
    \((f_t - f_{t-1})^2 \le\) `value_tol` if that is given (a plateau may look like that), after `max_iter` steps, when
    `callback(step, point)` returns True, or when f diverges: it is no longer finite, or has been growing for ten steps.
    `jit` compiles f and its gradient. Book, section 2.3.
    """
    as_function("optim.minimize", f)
    run = METHODS.get(method) if isinstance(method, str) else by_optimizer(as_function("optim.minimize", method))
    if run is None:
        raise InputError(f"minimize: method {method!r}.", f"one of {', '.join(map(repr, METHODS))}, or an optimizer")
    problem = Problem("minimize", f, x0, maximize, jit)
    start = problem.start
    tol = math.sqrt(float(arrays.finfo(start.dtype).eps)) if tol is None else as_number("minimize", "tol", tol)
    max_iter = as_int("minimize", "max_iter", max_iter, 0)
    rate = lr if callable(lr) else lambda step: lr
    try:
        points = run(problem, start, rate, **settings)
    except TypeError as error:
        if "argument" not in str(error):
            raise
        raise InputError(f"minimize: method {method!r} does not take {sorted(settings)}.", str(error)) from error
    seen: list[Point] = []
    norms: list[float] = []
    growing, reason = 0, "stalled"
    for step, point in enumerate(points):
        if not seen and not math.isfinite(point.value):
            raise InputError(f"minimize: f(x0) is {point.value}.", "a start where f is finite")
        growing = growing + 1 if seen and point.value > seen[-1].value else 0
        seen.append(point)
        norms.append(float(arrays.norm(point.gradient).item()))
        stop = _reason(seen, norms[-1], tol, value_tol, growing)
        if stop is None and callback is not None and callback(step, point):
            stop = "callback"
        if stop is None and step >= max_iter:
            stop = "max_iter"
        if stop is not None:
            reason = stop
            break
    last = seen[-1]
    single = isinstance(problem.back(start), Tensor)
    path = arrays.stack([problem.back(p.x) if single else p.x for p in seen])
    return Minimum(
        x=problem.back(last.x),
        value=problem.sign * last.value,
        grad_norm=norms[-1],
        steps=len(seen) - 1,
        evaluations=problem.evaluations,
        converged=reason in ("gradient", "value"),
        reason=reason,
        path=path,
        values=[problem.sign * p.value for p in seen],
        grad_norms=norms,
    )


def _reason(seen: list[Point], norm: float, tol: float, value_tol: float | None, growing: int) -> str | None:
    value = seen[-1].value
    if not (math.isfinite(value) and math.isfinite(norm)):
        return "diverged"
    if norm <= tol:
        return "gradient"
    if value_tol is not None and len(seen) > 1 and (value - seen[-2].value) ** 2 <= value_tol:
        return "value"
    return "diverged" if growing >= GROWING and value > seen[0].value else None


def multistart(
    f: Function, starts: Iterable[object], method: str | Callable[..., Optimizer] = "lbfgs", **settings: Any
) -> list[Minimum]:
    """`minimize` from every start; the best first. Nothing better is known for functions with many minima in general.

    >>> import wonderland as wl
    >>> found = wl.optim.multistart(lambda x: x * wl.sin(2 * x), [2.0, 5.0])
    >>> [round(result.x.item(), 3) for result in found]
    [5.543, 2.457]

    Further settings are those of `minimize`. Book, section 2.3.1.
    """
    found = [minimize(f, x0, method, **settings) for x0 in starts]
    if not found:
        raise InputError("multistart: there is no start.", "a list of points")
    sign = -1.0 if settings.get("maximize") else 1.0
    return sorted(found, key=lambda result: math.inf if math.isnan(result.value) else sign * result.value)


def gradient_descent(
    f: Function,
    x0: ArrayLike,
    lr: float | Callable[[int], float] = 0.1,
    steps: int = 100,
    *,
    momentum: float = 0.0,
    batched: bool = False,
) -> Tensor:
    r"""The path of \(g_t = -\eta_t \nabla f(x_{t-1}) + \lambda g_{t-1},\ x_t = x_{t-1} + g_t\): (steps + 1, *shape of
    x0).

    >>> import wonderland as wl
    >>> wl.optim.gradient_descent(lambda x: x**2, 1.0, lr=0.25, steps=3)
    tensor([1. , 0.5 , 0.25 , 0.125], dtype=float64)

    With `batched` the first axis of x0 holds many starts, which run side by side. Exactly `steps` gradients are taken,
    whatever happens; `minimize` has stopping rules. Book, section 2.3 (definition 2.8).
    """
    x = as_point("gradient_descent", x0)
    if not isinstance(x, Tensor):
        raise InputError("gradient_descent: x0 is a tree.", "a tensor; wl.optim.minimize takes trees")
    steps = as_int("gradient_descent", "steps", steps, 0)
    slope = vmap(grad(f)) if batched else grad(f)
    path, velocity = [x], arrays.zeros_like(x)
    for t in range(steps):
        rate = lr(t) if callable(lr) else lr
        velocity = -rate * slope(x) + momentum * velocity if momentum else -rate * slope(x)
        x = x + velocity
        path.append(x)
    return arrays.stack(path)
