"""The methods of `minimize`: generators of points, the first one too, that end where they find no way on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ... import arrays
from ...core.tensor import Tensor
from ...linalg import eigh
from ...nn.module.parameter import Parameter
from .. import adagrad, adam, momentum, rmsprop, sgd
from ..optimizer import Optimizer
from . import lbfgs as limited_memory
from .line_search import search
from .problem import Problem, dot

Rate = Callable[[int], float]
Points = Iterator[Any]


def gd(problem: Problem, x: Tensor, lr: Rate, line_search: str | None = None, normalized: bool = False) -> Points:
    """Steepest descent; with `normalized` steps of length lr, with `line_search` steps that it finds."""
    point, step = problem.at(x), 0
    while True:
        yield point
        p = -point.gradient
        if normalized:
            size = arrays.norm(p)
            p = p / arrays.where(size > 0, size, 1.0)
        if line_search is None:
            point = problem.at(point.x + lr(step) * p)
        else:
            found = search(line_search, problem, point, p, 1.0, 0.1)
            if found is None:
                return
            point = found[1]
        step += 1


def by_optimizer(make: Callable[..., Optimizer]) -> Callable[..., Points]:
    """The method that moves as an optimizer does."""

    def run(problem: Problem, x: Tensor, lr: Rate, **settings: object) -> Points:
        w = Parameter(x)
        return moved(problem, w, lr, make([w], lr=lr(0), **settings))

    def moved(problem: Problem, w: Parameter, lr: Rate, optimizer: Optimizer) -> Points:
        step = 0
        while True:
            point = problem.at(w.value)
            yield point
            optimizer.lr = float(lr(step))
            optimizer.step([point.gradient])
            step += 1

    return run


def newton(problem: Problem, x: Tensor, lr: Rate, line_search: str = "backtracking") -> Points:
    r"""\(-|H|^{-1} g\): Newton's direction where the Hessian is positive, and downhill where it is not."""
    point = problem.at(x)
    while True:
        yield point
        values, vectors = eigh(problem.hessian(point.x))
        size = arrays.abs(values)
        size = arrays.maximum(size, 1e-8 * arrays.maximum(arrays.max(size), 1e-30))
        p = -(vectors @ ((arrays.matrix_transpose(vectors) @ point.gradient) / size))
        found = search(line_search, problem, point, p, 1.0)
        if found is None:
            return
        point = found[1]


def cg(problem: Problem, x: Tensor, lr: Rate, line_search: str = "wolfe") -> Points:
    r"""Conjugate gradients (Polak-Ribiere, begun again when the factor is negative): \(p = -g + \beta p\)."""
    point = problem.at(x)
    p, step = -point.gradient, 1.0 / (1.0 + float(arrays.norm(point.gradient).item()))
    while True:
        yield point
        if not dot(point.gradient, p) < 0:
            p = -point.gradient
        found = search(line_search, problem, point, p, step, 0.1)
        if found is None:
            p = -point.gradient
            found = search("backtracking", problem, point, p, 1.0)
        if found is None:
            return
        length, new = found
        before = dot(point.gradient, point.gradient)
        beta = max(0.0, dot(new.gradient, new.gradient - point.gradient) / before) if before else 0.0
        slope = length * dot(point.gradient, p)
        p = -new.gradient + beta * p
        point = new
        ahead = dot(point.gradient, p)
        step = min(max(slope / ahead, 1e-6), 10.0) if ahead < 0 else 1.0  # about as much lower as the last time


def lbfgs(problem: Problem, x: Tensor, lr: Rate, history_size: int = 10) -> Points:
    """L-BFGS with a line search for the strong Wolfe conditions."""
    return limited_memory.points(problem.at, problem.at(x), deque(maxlen=history_size))


METHODS: dict[str, Callable[..., Points]] = {
    "gd": gd,
    "momentum": by_optimizer(momentum.HeavyBall),
    "nesterov": by_optimizer(lambda w, **settings: sgd.SGD(w, **{"momentum": 0.9, **settings}, nesterov=True)),
    "adagrad": by_optimizer(adagrad.Adagrad),
    "rmsprop": by_optimizer(rmsprop.RMSprop),
    "adam": by_optimizer(adam.Adam),
    "newton": newton,
    "cg": cg,
    "lbfgs": lbfgs,
}
