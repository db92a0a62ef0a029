r"""Ways to solve s = f(s): plain iteration, Anderson's mixture of the last iterates, Newton's method.

All of them see the unknowns as (systems, d): one system with all numbers in it, or one for each row of a batch. A loop
ends when every system has \(\|f(s) - s\| \le \mathrm{tol}\,\max(1, \|s\|)\), or after `max_iter` evaluations of f.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ... import arrays, linalg
from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...transforms.batching import vmap
from ...transforms.control.loops import while_loop
from ...transforms.forward import jvp

__all__ = ["FixedPointSolution"]

Map: TypeAlias = Callable[[Tensor], Tensor]  # (systems, d) to the same
SOLVERS = ("iteration", "anderson", "newton")
REGULARIZER = 1e-10  # of Anderson's least squares, relative to the largest residual that is mixed


class FixedPointSolution(NamedTuple):
    r"""Where an iteration ended.

    The value; the relative residual \(\|f(s) - s\| / \max(1, \|s\|)\), one number for each system that was solved;
    and how often f was evaluated. `FixedPoint.solve` gives one.
    """

    value: Tensor
    residual: Tensor
    iterations: Tensor


def default_tolerance(kind: DType) -> float:
    """The relative residual that a dtype can be asked for.

    >>> import wonderland as wl
    >>> default_tolerance(wl.float64), default_tolerance(wl.float32)
    (1e-10, 1e-06)
    """
    return {dtypes.float64: 1e-10, dtypes.float32: 1e-6}.get(kind, 2e-2)


def relative(s: Tensor, after: Tensor) -> Tensor:
    r"""\(\|f(s) - s\| / \max(1, \|s\|)\) of each system."""
    size = arrays.sqrt(arrays.sum(arrays.square(after - s), axis=-1))
    scale = arrays.sqrt(arrays.sum(arrays.square(s), axis=-1))
    return size / arrays.maximum(scale, 1.0)


def solve(f: Map, start: Tensor, solver: str, tol: float, max_iter: int, memory: int) -> FixedPointSolution:
    """A fixed point of f from `start` (systems, d), by one of the `SOLVERS`."""
    if solver == "iteration":
        return _iteration(f, start, tol, max_iter)
    if solver == "anderson":
        return _anderson(f, start, tol, max_iter, memory)
    if solver == "newton":
        return _newton(f, start, tol, max_iter)
    raise InputError(f"fixed_point: solver={solver!r}.", f"one of {', '.join(SOLVERS)}")


def _goes_on(tol: float, max_iter: int) -> Callable[[tuple[Tensor, ...]], Tensor]:
    """While there is a way to go; a residual that is not finite ends it, since it stays so."""

    def going(c: tuple[Tensor, ...]) -> Tensor:
        residual, count = c[-2:]
        return arrays.any(residual > tol) & arrays.all(arrays.isfinite(residual)) & (count < max_iter)

    return going


def _beginning(f: Map, start: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    after = f(start)
    return after, relative(start, after), arrays.asarray(1)


def _iteration(f: Map, start: Tensor, tol: float, max_iter: int) -> FixedPointSolution:
    def body(c: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        after = f(c[0])
        return after, relative(c[0], after), c[-1] + 1

    s, residual, count = while_loop(_goes_on(tol, max_iter), body, _beginning(f, start))
    return FixedPointSolution(s, residual, count)


def _anderson(f: Map, start: Tensor, tol: float, max_iter: int, memory: int) -> FixedPointSolution:
    r"""\(s_{k+1} = \sum_j \alpha_j f(s_{k-j})\) with the weights of sum 1 whose residuals are shortest.

    The last iterates stand in a ring of `memory` places; places that have not been used yet have no weight.
    """
    systems, d = start.shape
    after, residual, count = _beginning(f, start)
    empty = arrays.zeros((systems, memory, d), dtype=start.dtype)
    results, gaps = empty.at[:, 0].set(after), empty.at[:, 0].set(after - start)
    places = arrays.arange(memory)

    def body(c: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        _, results, gaps, _, k = c
        known = places < k
        gram = arrays.matmul(gaps, gaps.mT)  # (systems, memory, memory)
        scale = arrays.max(arrays.sum(arrays.square(gaps), axis=-1), axis=-1)[:, None, None]
        scale = arrays.where(scale > 0, scale, arrays.ones_like(scale))
        # G a = 1, then a divided by its sum; a place without an iterate is an equation of its own, a_j = 0
        eye = arrays.eye(memory, dtype=gaps.dtype)
        system = arrays.where(known[:, None] & known, gram / scale, arrays.zeros_like(gram)) + eye * arrays.where(
            known, _ridge(gaps.dtype), 1.0
        )
        ones = arrays.broadcast_to(arrays.astype(known, gaps.dtype), (systems, memory))
        weights = solved(system, ones)
        weights = weights / arrays.sum(weights, axis=-1, keepdims=True)
        s = arrays.sum(weights[..., None] * results, axis=1)
        after = f(s)
        slot = k % memory
        return after, results.at[:, slot].set(after), gaps.at[:, slot].set(after - s), relative(s, after), k + 1

    found = while_loop(_goes_on(tol, max_iter), body, (after, results, gaps, residual, count))
    return FixedPointSolution(found[0], found[-2], found[-1])


def _ridge(kind: DType) -> float:
    """More than rounding, so that residuals of one direction leave the equations regular."""
    return max(REGULARIZER, float(arrays.finfo(kind).eps) * 10)


def jacobian(f: Map, s: Tensor) -> Tensor:
    r"""\(J_{ij} = \partial f_i / \partial s_j\) of each system, (systems, d, d), by d pushes forward."""
    basis = arrays.eye(s.shape[1], dtype=s.dtype)

    def column(e: Tensor) -> Tensor:
        return jvp(f, (s,), (arrays.broadcast_to(e, s.shape),))[1]

    return arrays.moveaxis(vmap(column)(basis), 0, -1)


def solved(matrix: Tensor, right: Tensor) -> Tensor:
    """The x with matrix x = right, (systems, d), also in sixteen bits."""
    kind = right.dtype
    wide = dtypes.promote_types(kind, dtypes.float32)
    found = linalg.solve(arrays.astype(matrix, wide), arrays.astype(right, wide)[..., None])[..., 0]
    return arrays.astype(found, kind)


def _newton(f: Map, start: Tensor, tol: float, max_iter: int) -> FixedPointSolution:
    r"""\(s \leftarrow s + (I - J)^{-1}(f(s) - s)\)."""
    eye = arrays.eye(start.shape[1], dtype=start.dtype)

    def body(c: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        s, after, _, count = c
        s = s + solved(eye - jacobian(f, s), after - s)
        after = f(s)
        return s, after, relative(s, after), count + 1

    after, residual, count = _beginning(f, start)
    s, _, residual, count = while_loop(_goes_on(tol, max_iter), body, (start, after, residual, count))
    return FixedPointSolution(s, residual, count)
