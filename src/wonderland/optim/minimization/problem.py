"""A function to be minimised, seen as one of a vector; evaluations are counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, overload

from ... import arrays, tree
from ...core import dtypes, trees
from ...core.errors import DTypeError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...transforms.derivatives import hessian, hvp
from ...transforms.jit.jit import jit
from ...transforms.reverse import value_and_grad

Function: TypeAlias = Callable[[Any], Tensor]  # of a tensor, or of a tree of them


class Point(NamedTuple):
    """A point on the way: the vector x, the value there and the gradient."""

    x: Tensor
    value: float
    gradient: Tensor


class Problem:
    """f of a tensor or a tree, as a function of one vector; with its sign turned to maximise."""

    def __init__(self, name: str, f: Function, x0: object, maximize: bool = False, compiled: bool = False) -> None:
        self.start, self.back = tree.ravel(as_point(name, x0))
        self.sign = -1.0 if maximize else 1.0
        self.evaluations = 0

        def of_vector(x: Tensor) -> Tensor:
            value = f(self.back(x))
            if getattr(value, "shape", ()) != ():
                raise ShapeError(
                    f"{name}: f(x) has shape {value.shape}.", "a function with one number as its value, as after .sum()"
                )
            return self.sign * value

        self.f = of_vector
        both = value_and_grad(of_vector)
        self.both = jit(both) if compiled else both

    def at(self, x: Tensor) -> Point:
        """One evaluation of f and its gradient."""
        self.evaluations += 1
        value, gradient = self.both(x)
        return Point(x, value.item(), gradient)

    def curvature(self, x: Tensor, direction: Tensor) -> Tensor:
        """The Hessian times a direction."""
        return hvp(self.f, x, direction)

    def hessian(self, x: Tensor) -> Tensor:
        """The matrix of second derivatives."""
        found: Tensor = hessian(self.f)(x)
        return found


@overload
def as_point(name: str, x: ArrayLike) -> Tensor: ...
@overload
def as_point(name: str, x: object) -> Any: ...
def as_point(name: str, x: object) -> Any:
    """A point from numbers, arrays or trees of them: Python's numbers as float64, since minima are flat.

    >>> as_point("minimize", [1, 2]).dtype
    dtype('float64')
    """

    def leaf(v: ArrayLike) -> Tensor:
        found = arrays.asarray(v, dtype=dtypes.float64) if isinstance(v, (int, float)) else arrays.asarray(v)
        if not dtypes.is_floating(found.dtype):
            raise DTypeError(f"{name}: x0 is {found.dtype}{list(found.shape)}.", "real numbers, such as wl.float64")
        return found

    if isinstance(x, Tensor):
        return leaf(x)
    if isinstance(x, (list, tuple)) and trees.leaves(x) and all(isinstance(v, (int, float)) for v in trees.leaves(x)):
        return arrays.asarray(x, dtype=dtypes.float64)
    return trees.map(leaf, x)


def dot(a: Tensor, b: Tensor) -> float:
    """The inner product as a number.

    >>> dot(arrays.tensor([1.0, 2.0]), arrays.tensor([3.0, 4.0]))
    11.0
    """
    return float(arrays.sum(a * b).item())
