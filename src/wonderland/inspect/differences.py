"""Numerical differentiation, and kinks seen from the left and the right. Book, sections 6.1.2 and 6.4.4.

Differences are taken in float64 unless asked otherwise: in float32 the rounding of f alone, divided by the
step, is larger than most mistakes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from .. import arrays
from ..core import trees
from ..core.cell import Cell
from ..core.dtypes import DType, as_dtype, complex_of, float64, is_complex, is_inexact, real_of
from ..core.errors import GradientError, InputError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike, DTypeLike
from ..transforms.inputs import Inputs, output_leaves

__all__ = ["is_subgradient", "numerical_grad", "numerical_jvp", "subdifferential"]


def numerical_grad(
    f: Callable[..., object],
    x: object,
    eps: float | None = None,
    method: str = "central",
    *,
    dtype: DTypeLike | None = float64,
) -> Any:
    r"""The gradient of a scalar function by differences: \((f(x + h e_i) - f(x - h e_i)) / 2h\) for all i.

    >>> import wonderland as wl
    >>> print(wl.numerical_grad(lambda x: (x**3).sum(), wl.tensor([1.0, 2.0])))
    tensor([ 3., 12.], dtype=float64)

    "central" differences cost 2n calls and are exact up to O(h^2); "forward" ones, \((f(x + h e_i) -
    f(x))/h\), cost n + 1 calls and are exact up to O(h). `eps` is the step h; by default it balances
    truncation and rounding, and grows with |x_i| above 1. x may be a tree or a module, and the result looks
    like that of `wl.grad`. The computation runs in `dtype` (None: that of x). For checks only: it costs n
    times what `wl.grad` does. Book, section 6.1.2.
    """
    point = Point("numerical_grad", f, (x,), dtype)
    gradients = point.gradient(eps, checked_method(method))
    return point.inputs.gather([arrays.asarray(g) for g in gradients])[0]


def numerical_jvp(
    f: Callable[..., object],
    primals: object,
    tangents: object,
    eps: float | None = None,
    method: str = "central",
    *,
    dtype: DTypeLike | None = float64,
) -> Any:
    r"""The derivative along a direction by differences: \((f(x + h t) - f(x - h t)) / 2h \approx J_f(x)\,t\).

    >>> import wonderland as wl
    >>> print(wl.numerical_jvp(wl.sin, (0.0,), (2.0,)))
    tensor(2., dtype=float64)

    `primals` and `tangents` are those of `wl.jvp`, the options those of `numerical_grad`.
    """
    method = checked_method(method)
    primals, tangents = (tuple(v) if isinstance(v, (tuple, list)) else (v,) for v in (primals, tangents))
    point = Point("numerical_jvp", f, primals, dtype)
    direction = [np.asarray(t) for t in point.inputs.matching(cast(tangents, point.dtype))]
    slopes = point.along(direction, eps)
    found = slopes.central if method == "central" else slopes.right
    return trees.unflatten(point.structure, [arrays.asarray(s) for s in found])


def checked_method(method: str) -> str:
    if method not in ("central", "forward"):
        raise InputError(f"numerical differentiation: there is no method {method!r}.", '"central" or "forward"')
    return method


# --- kinks


def is_subgradient(
    f: Callable[[Tensor], Tensor | float], x: ArrayLike, z: ArrayLike, grid: ArrayLike, *, tolerance: float = 1e-9
) -> bool:
    r"""Whether z is a subgradient of f at x: \(f(y) \ge f(x) + \langle z, y - x\rangle\) on a grid of y.

    >>> import wonderland as wl
    >>> grid = wl.linspace(-1, 1, 21)
    >>> wl.is_subgradient(wl.abs, 0.0, 0.3, grid), wl.is_subgradient(wl.abs, 0.0, 1.1, grid)
    (True, False)

    x and z have one shape, `grid` holds points of that shape along its first axis. A grid can refute and not
    prove; for a convex f points on all sides of x come close. Computes in float64. Book, section 6.4.4
    (D.6.3).
    """
    x, z, points = (np.asarray(cast(v, float64), np.float64) for v in (x, z, grid))
    if x.shape != z.shape or points.ndim == 0 or points.shape[1:] != x.shape:
        raise InputError(
            f"is_subgradient: x has shape {x.shape}, z {z.shape} and the grid {points.shape}.",
            "x and z of one shape, and a grid of shape (k, *x.shape)",
        )
    here = float(f(arrays.asarray(x)))
    slack = tolerance * max(1.0, abs(here))
    return all(float(f(arrays.asarray(y))) >= here + float(np.sum(z * (y - x))) - slack for y in points)


def subdifferential(f: Callable[..., object], x: ArrayLike, eps: float = 1e-8) -> tuple[float, float]:
    r"""All subgradients of a convex function of one number: the interval from its left to its right slope.

    >>> import wonderland as wl
    >>> low, high = wl.subdifferential(wl.relu, 0.0)
    >>> round(low, 6), round(high, 6)
    (0.0, 1.0)

    By one-sided differences with step `eps`, so exact up to O(eps); where f is differentiable both ends are
    f'(x). Book, section 6.4.4.
    """
    point = Point("subdifferential", f, (x,), float64)
    if [v.shape for v in point.x] != [()] or [v.shape for v in point.value] != [()]:
        raise InputError(
            f"subdifferential: a function from {shapes(point.x)} to {shapes(point.value)}.",
            "a function of one number",
        )
    slopes = point.along([np.ones(())], eps)
    return float(slopes.left[0]), float(slopes.right[0])


# --- a function near a point


class Slopes(NamedTuple):
    """Difference quotients along a direction, one array per output leaf."""

    step: float
    left: list[Array]
    right: list[Array]
    central: list[Array]


class Point:
    """A function and a point: the function's values nearby, as lists of NumPy arrays."""

    def __init__(self, name: str, f: Callable[..., object], args: tuple[object, ...], dtype: DTypeLike | None) -> None:
        self.name = name
        self.f = f
        self.dtype = None if dtype is None else as_dtype(dtype)
        self.args = cast(args, self.dtype)
        self.inputs = Inputs(name, self.args)
        self.x = [np.asarray(v) for v in self.inputs.values]
        self.structure = trees.LEAF

    def evaluate(self, leaves: list[Array]) -> list[Array]:
        """The output leaves for other values of the input leaves."""
        out = self.inputs.call(None, self.f, [arrays.asarray(leaf) for leaf in leaves])
        values, self.structure = output_leaves(self.name, out)
        return [np.asarray(v) for v in values]

    @functools.cached_property
    def value(self) -> list[Array]:
        return self.evaluate(self.x)

    @property
    def precision(self) -> DType:
        """The coarsest floating type among the inputs."""
        kinds = [real_of(as_dtype(x.dtype)) for x in self.x]
        return max(kinds, key=lambda kind: float(ml_dtypes.finfo(kind).eps), default=float64)

    @property
    def epsilon(self) -> float:
        return float(ml_dtypes.finfo(self.precision).eps)

    def along(self, direction: list[Array], eps: float | None, shrink: float = 1.0) -> Slopes:
        """Difference quotients along a direction; the default step is epsilon^(1/3) of the largest input."""
        if eps is None:
            reach = max((float(np.max(np.abs(t), initial=0.0)) for t in direction), default=0.0) or 1.0
            size = max((float(np.max(np.abs(x), initial=0.0)) for x in self.x), default=0.0)
            eps = self.epsilon ** (1 / 3) * max(1.0, size) / reach
        h = eps * shrink
        here = self.value
        ahead = self.evaluate([moved(x, t, h) for x, t in zip(self.x, direction, strict=True)])
        behind = self.evaluate([moved(x, t, -h) for x, t in zip(self.x, direction, strict=True)])
        return Slopes(
            h,
            [quotient(a, b, h) for a, b in zip(here, behind, strict=True)],
            [quotient(a, b, h) for a, b in zip(ahead, here, strict=True)],
            [quotient(a, b, 2 * h) for a, b in zip(ahead, behind, strict=True)],
        )

    def gradient(self, eps: float | None, method: str, weights: list[Array] | None = None) -> list[Array]:
        """The gradient of f, or of the real part of the sum of weights times outputs, element by element."""
        central = method == "central"
        relative = self.epsilon ** (1 / 3 if central else 1 / 2)

        def scalar(k: int, leaf: Array) -> float:
            found = self.evaluate([*self.x[:k], leaf, *self.x[k + 1 :]])
            if weights is not None:
                return float(sum(np.sum(np.real(wide(w) * wide(v))) for w, v in zip(weights, found, strict=True)))
            if len(found) != 1 or found[0].shape or is_complex(as_dtype(found[0].dtype)):
                raise GradientError(
                    f"{self.name}: the function returned {shapes(found)}; only a real scalar has a gradient.",
                    "wl.numerical_jvp for tensors",
                )
            return float(found[0])

        here = 0.0 if central or not self.x else scalar(0, self.x[0])
        gradients = []
        for k, x in enumerate(self.x):
            gradient = np.zeros_like(x)
            for place in np.ndindex(x.shape):
                h = relative * max(1.0, abs(complex(x[place]))) if eps is None else eps
                for unit in (1, 1j) if is_complex(as_dtype(x.dtype)) else (1,):
                    ahead, behind = x.copy(), x.copy()
                    ahead[place] += unit * h
                    if central:
                        behind[place] -= unit * h
                    rise = scalar(k, ahead) - (scalar(k, behind) if central else here)
                    # the width after rounding, not the one that was asked for
                    gradient[place] += unit * (rise / abs(complex(ahead[place] - behind[place])))
            gradients.append(gradient)
        return gradients


def cast(tree: Any, dtype: DType | None) -> Any:
    """The tree with its floating leaves in another precision."""
    if dtype is None:
        return tree

    def convert(leaf: object) -> object:
        value = leaf.value if isinstance(leaf, Cell) else leaf
        if isinstance(value, float | complex):
            return arrays.asarray(value, dtype=complex_of(dtype) if isinstance(value, complex) else dtype)
        if not isinstance(value, Tensor | np.ndarray) or not is_inexact(as_dtype(value.dtype)):
            return leaf
        return arrays.asarray(value, dtype=complex_of(dtype) if is_complex(as_dtype(value.dtype)) else dtype)

    return trees.map(convert, tree)


def wide(x: Array) -> Array:
    """x in the widest type of its kind."""
    return x.astype(np.complex128 if is_complex(as_dtype(x.dtype)) else np.float64)


def moved(x: Array, t: Array, h: float) -> Array:
    return np.asarray(x + np.asarray(h, real_of(as_dtype(x.dtype))) * t).astype(x.dtype)


def quotient(a: Array, b: Array, width: float) -> Array:
    with np.errstate(invalid="ignore"):  # infinity minus infinity is NaN, and is reported as such
        return (wide(a) - wide(b)) / width


def shapes(values: list[Array]) -> str:
    return ", ".join(f"{v.dtype}{list(v.shape)}" for v in values)
