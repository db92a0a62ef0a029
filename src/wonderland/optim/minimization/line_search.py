"""How far to go along a direction. Book, section 2.3."""

from __future__ import annotations

import math
from collections.abc import Callable

from ... import arrays, tree
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from .problem import Function, Point, Problem, as_point, dot

SEARCHES = ("backtracking", "wolfe", "exact")
At = Callable[[Tensor], Point]
Found = tuple[float, Point]


def line_search(f: Function, x: object, direction: object, method: str = "wolfe", start: float = 1.0) -> float:
    r"""A step \(\eta\) along a descent direction p from x.

    >>> import wonderland as wl
    >>> f = lambda x: (wl.tensor([1.0, 10.0], wl.float64) * x**2).sum() / 2
    >>> x = wl.tensor([10.0, 1.0], wl.float64)
    >>> round(wl.optim.line_search(f, x, -wl.grad(f)(x), "exact"), 6)  # g.g / g.Hg
    0.181818

    "backtracking" halves the step until \(f(x + \eta p) \le f(x) + 10^{-4}\,\eta\,\nabla f \cdot p\) (Armijo). "wolfe"
    also asks for a slope there of at most 0.9 times that at x, in size (strong Wolfe conditions). "exact" is the
    minimum along the line of a quadratic, \(-\nabla f \cdot p / p \cdot H p\).
    """
    problem = Problem("line_search", f, x)
    p, _ = tree.ravel(as_point("line_search", direction))
    if p.shape != problem.start.shape:
        raise ShapeError(
            f"line_search: x and the direction have {problem.start.size} and {p.size} numbers.", "one shape"
        )
    point = problem.at(problem.start)
    found = search(method, problem, point, p, start)
    if found is None:
        raise InputError(
            f"line_search: no step along this direction lowers f; its slope is {dot(point.gradient, p):g}.",
            "a descent direction, such as minus the gradient",
        )
    return found[0]


def search(method: str, problem: Problem, point: Point, p: Tensor, start: float, c2: float = 0.9) -> Found | None:
    """The step and the point it leads to; None if there is none, or if it is lost in rounding."""
    if method in ("wolfe", "backtracking"):
        wolfe = method == "wolfe"
        found = strong_wolfe(problem.at, point, p, start, c2) if wolfe else backtracking(problem.at, point, p, start)
        return None if found is None or bool(arrays.all(found[1].x == point.x).item()) else found
    if method != "exact":
        raise InputError(f"line search: method {method!r}.", f"one of {', '.join(map(repr, SEARCHES))}")
    bend = dot(p, problem.curvature(point.x, p))
    if bend <= 0:
        return None  # the quadratic has no minimum along this line
    step = -dot(point.gradient, p) / bend
    return step, problem.at(point.x + step * p)


def backtracking(
    at: At, point: Point, p: Tensor, start: float = 1.0, c1: float = 1e-4, shrink: float = 0.5
) -> Found | None:
    """The first of start, start/2, start/4 ... that lowers f by enough (Armijo)."""
    slope, step = dot(point.gradient, p), start
    if not slope < 0:
        return None
    for _ in range(60):
        new = at(point.x + step * p)
        if new.value <= point.value + c1 * step * slope:
            return step, new
        step *= shrink
    return None


def strong_wolfe(
    at: At, point: Point, p: Tensor, start: float = 1.0, c2: float = 0.9, c1: float = 1e-4, most: int = 30
) -> Found | None:
    """A step whose value is low enough and whose slope is flat enough: first outwards, then between two bounds."""
    slope0 = dot(point.gradient, p)
    if not slope0 < 0:
        return None
    value0 = point.value
    noise = 8.0 * float(arrays.finfo(point.x.dtype).eps) * abs(value0)  # near a minimum only the slopes still tell
    low, low_point, low_slope = 0.0, point, slope0
    high, high_value, high_slope = math.inf, math.inf, math.nan
    step, best = start, None
    for _ in range(most):
        new = at(point.x + step * p)
        slope = dot(new.gradient, p)
        if (
            not math.isfinite(new.value)
            or new.value > value0 + c1 * step * slope0 + noise
            or (low and new.value >= low_point.value + noise)
        ):
            high, high_value, high_slope = step, new.value, slope
        elif abs(slope) <= -c2 * slope0:
            return step, new
        else:
            best = step, new
            if slope * (high - low) >= 0:
                high, high_value, high_slope = low, low_point.value, low_slope
            low, low_point, low_slope = step, new, slope
        if math.isinf(high):
            step *= 2.0
            continue
        if abs(high - low) * float(arrays.max(arrays.abs(p)).item()) < 1e-15 * (1.0 + abs(low)):
            break
        step = _between(low, low_point.value, low_slope, high, high_value, high_slope)
    return best  # lower than before, if not flat


def _between(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """The minimum of the cubic through two points with slopes, kept away from both ends."""
    middle, width = 0.5 * (a + b), abs(b - a)
    if not (math.isfinite(fb) and math.isfinite(db)):
        return middle
    d1 = da + db - 3.0 * (fa - fb) / (a - b)
    inside = d1 * d1 - da * db
    if inside < 0:
        return middle
    d2 = math.copysign(math.sqrt(inside), b - a)
    below = db - da + 2.0 * d2
    found = b - (b - a) * (db + d2 - d1) / below if below else middle
    return min(max(found, min(a, b) + 0.1 * width), max(a, b) - 0.1 * width)
