"""Functions of one or two tensors as methods that PyTorch's users type: `x.mul(y)`, `x.sigmoid()`, `x.clamp(0, 1)`."""

from __future__ import annotations

import math

from .. import arrays
from ..core.errors import InputError
from ..core.giving import given_to
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, Axes
from .methods import Methods


@given_to(Tensor)
class ArithmeticMethods(Methods):
    """Methods of tensors that are functions under the names that PyTorch has for them."""

    def add(self, other: ArrayLike, *, alpha: ArrayLike = 1) -> Tensor:
        """x + alpha * other."""
        return arrays.add(self, _times(alpha, other))

    def sub(self, other: ArrayLike, *, alpha: ArrayLike = 1) -> Tensor:
        """x - alpha * other."""
        return arrays.subtract(self, _times(alpha, other))

    def mul(self, other: ArrayLike) -> Tensor:
        """x * other."""
        return arrays.multiply(self, other)

    def div(self, other: ArrayLike, *, rounding_mode: str | None = None) -> Tensor:
        """x / other, rounded down ("floor"), towards zero ("trunc") or not at all."""
        if rounding_mode == "floor":
            return arrays.floor_divide(self, other)
        if rounding_mode not in (None, "trunc"):
            raise InputError(f"div: rounding_mode={rounding_mode!r}.", 'None, "floor" or "trunc"')
        quotient = arrays.divide(self, other)
        return quotient if rounding_mode is None else arrays.trunc(quotient)

    def norm(self, p: float = 2.0, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        r"""\((\sum_i |x_i|^p)^{1/p}\) over the axes, all if none is named; the largest for p infinite."""
        if isinstance(p, (str, tuple, list)) or p <= 0:
            raise InputError(f"norm: p={p!r}.", "a positive number; wl.linalg.norm has the norms of matrices")
        if p == 2:
            return arrays.norm(self, axis=axis, keepdims=keepdims)
        size = arrays.abs(self)
        if p == math.inf:
            return arrays.max(size, axis=axis, keepdims=keepdims)
        if p == 1:
            return arrays.sum(size, axis=axis, keepdims=keepdims)
        return arrays.pow(arrays.sum(arrays.pow(size, p), axis=axis, keepdims=keepdims), 1.0 / p)

    def clamp(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
        """Limited to [min, max]."""
        return arrays.clip(self, min, max)

    def softmax(self, axis: Axes = -1) -> Tensor:
        """The softmax along an axis."""
        return arrays.softmax(self, axis=axis)

    def log_softmax(self, axis: Axes = -1) -> Tensor:
        """The logarithm of the softmax along an axis."""
        return arrays.log_softmax(self, axis=axis)

    def logsumexp(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        """The logarithm of the sum of exponentials over the axes."""
        return arrays.logsumexp(self, axis=axis, keepdims=keepdims)

    def amax(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        """The largest element over the axes."""
        return arrays.max(self, axis=axis, keepdims=keepdims)

    def amin(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        """The smallest element over the axes."""
        return arrays.min(self, axis=axis, keepdims=keepdims)

    def count_nonzero(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        """How many elements are not zero."""
        return arrays.count_nonzero(self, axis=axis, keepdims=keepdims)

    def diff(self, n: int = 1, axis: int = -1) -> Tensor:
        """The n-th differences of neighbours along an axis."""
        return arrays.diff(self, n=n, axis=axis)

    def allclose(self, other: ArrayLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
        """Whether all elements are close to those of another tensor."""
        return arrays.allclose(self, other, rtol=rtol, atol=atol, equal_nan=equal_nan)

    # --- functions of one tensor

    def sigmoid(self) -> Tensor:
        return arrays.sigmoid(self)

    def relu(self) -> Tensor:
        return arrays.relu(self)

    def softplus(self) -> Tensor:
        return arrays.softplus(self)

    def floor(self) -> Tensor:
        return arrays.floor(self)

    def ceil(self) -> Tensor:
        return arrays.ceil(self)

    def trunc(self) -> Tensor:
        return arrays.trunc(self)

    def sign(self) -> Tensor:
        return arrays.sign(self)

    def reciprocal(self) -> Tensor:
        return arrays.reciprocal(self)

    def rsqrt(self) -> Tensor:
        return arrays.rsqrt(self)

    def log1p(self) -> Tensor:
        return arrays.log1p(self)

    def expm1(self) -> Tensor:
        return arrays.expm1(self)

    def log2(self) -> Tensor:
        return arrays.log2(self)

    def log10(self) -> Tensor:
        return arrays.log10(self)

    def tan(self) -> Tensor:
        return arrays.tan(self)

    def sinh(self) -> Tensor:
        return arrays.sinh(self)

    def cosh(self) -> Tensor:
        return arrays.cosh(self)

    def asin(self) -> Tensor:
        return arrays.asin(self)

    def acos(self) -> Tensor:
        return arrays.acos(self)

    def atan(self) -> Tensor:
        return arrays.atan(self)

    def erf(self) -> Tensor:
        return arrays.erf(self)

    def isnan(self) -> Tensor:
        return arrays.isnan(self)

    def isinf(self) -> Tensor:
        return arrays.isinf(self)

    def isfinite(self) -> Tensor:
        return arrays.isfinite(self)

    def logical_not(self) -> Tensor:
        return arrays.logical_not(self)

    def diagonal(self) -> Tensor:
        return arrays.diagonal(self)

    def trace(self) -> Tensor:
        return arrays.trace(self)

    # --- functions of two tensors

    def pow(self, other: ArrayLike) -> Tensor:
        return arrays.pow(self, other)

    def matmul(self, other: ArrayLike) -> Tensor:
        return arrays.matmul(self, other)

    def mm(self, other: ArrayLike) -> Tensor:
        return arrays.matmul(self, other)

    def bmm(self, other: ArrayLike) -> Tensor:
        return arrays.matmul(self, other)

    def mv(self, other: ArrayLike) -> Tensor:
        return arrays.matmul(self, other)

    def outer(self, other: ArrayLike) -> Tensor:
        return arrays.outer(self, other)

    def eq(self, other: ArrayLike) -> Tensor:
        return arrays.equal(self, other)

    def ne(self, other: ArrayLike) -> Tensor:
        return arrays.not_equal(self, other)

    def lt(self, other: ArrayLike) -> Tensor:
        return arrays.less(self, other)

    def le(self, other: ArrayLike) -> Tensor:
        return arrays.less_equal(self, other)

    def gt(self, other: ArrayLike) -> Tensor:
        return arrays.greater(self, other)

    def ge(self, other: ArrayLike) -> Tensor:
        return arrays.greater_equal(self, other)

    def maximum(self, other: ArrayLike) -> Tensor:
        return arrays.maximum(self, other)

    def minimum(self, other: ArrayLike) -> Tensor:
        return arrays.minimum(self, other)

    def remainder(self, other: ArrayLike) -> Tensor:
        return arrays.remainder(self, other)

    def fmod(self, other: ArrayLike) -> Tensor:
        return arrays.fmod(self, other)

    def logical_and(self, other: ArrayLike) -> Tensor:
        return arrays.logical_and(self, other)

    def logical_or(self, other: ArrayLike) -> Tensor:
        return arrays.logical_or(self, other)

    def logical_xor(self, other: ArrayLike) -> Tensor:
        return arrays.logical_xor(self, other)

    def isclose(self, other: ArrayLike) -> Tensor:
        return arrays.isclose(self, other)


def _times(alpha: ArrayLike, other: ArrayLike) -> ArrayLike:
    return other if type(alpha) is int and alpha == 1 else arrays.multiply(alpha, other)
