r"""Products of rows that are rounded to int8 with matrices of int8: sums of integers, which are exact.

A row x is \(s q\) with \(s = \max_k |x_k| / 127\) and integers q, and row j of the matrix, as in quantized.py, is
\(t_j w_j\). So a product is \(s t_j \sum_k q_k w_{jk}\), of which the factors alone are rounded. A row that is not
finite everywhere has s = NaN: no integers stand for it.
"""

from __future__ import annotations

import math

import numpy as np

from ..core.errors import DTypeError, ShapeError
from ..core.primitive import ZERO, Aval, Primitive
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from .creation import full
from .quantized import product_of, quantized_matmul, wide
from .structure import all_batched, concatenate, reshape, take_slice

MOST = 127  # what the largest number of a row becomes
MOST_TERMS = 1 << 16  # whose sum surely is an integer of 32 bits, each being 127 * 128 at most
EXACT_SINGLE = 1024  # products of such integers, whose sum float32 holds to the last bit; float64 holds any


def rounded(x: Array) -> tuple[Array, Array]:
    """Rows of integers from -127 to 127, and what one of them stands for: (..., k) as int8 and (..., 1)."""
    numbers = x.astype(wide(x.dtype))
    with np.errstate(all="ignore"):
        steps = np.abs(numbers).max(axis=-1, keepdims=True, initial=0) / numbers.dtype.type(MOST)
        finite = np.isfinite(steps)
        divisors = np.where(finite & (steps > 0), steps, 1)
        # the step of subnormal numbers can be far from a 127th
        integers = np.clip(np.rint(np.where(finite, numbers / divisors, 0)), -MOST, MOST)
    return integers.astype(np.int8), np.where(finite, steps, np.nan).astype(numbers.dtype)


def _product(x: Array, values: Array, scales: Array, features: int) -> Array:
    _abstract(x, values, scales, features=features)
    integers, steps = rounded(x.reshape(math.prod(x.shape[:-1]), features))
    # products of floats are the fast ones, and exact while they hold all sums
    kind = np.float32 if features <= EXACT_SINGLE else np.float64
    sums = integers.astype(kind) @ values.T.astype(kind)
    made = sums.astype(steps.dtype) * scales.T.astype(steps.dtype) * steps
    return made.reshape(*x.shape[:-1], len(values)).astype(x.dtype)


def _abstract(x: Shaped, values: Shaped, scales: Shaped, features: int) -> Aval:
    name = "rounded_matmul"
    if values.dtype != np.int8:
        raise DTypeError(f"{name}: values of {values.dtype}.", "int8, with one scale for each row")
    if scales.ndim != 2 or scales.shape[-1] != 1:
        raise ShapeError(f"{name}: scales {scales.shape}.", f"{(*values.shape[:1], 1)}: one for each row of values")
    return product_of(name, x, values, (scales,), features, max(features, 1))


def _tangent(t: Tensor, out: Tensor, x: Tensor, values: Tensor, scales: Tensor, features: int) -> Tensor:
    """As if nothing were rounded, which alone has a slope."""
    found: Tensor = quantized_matmul(t, values, scales, features=features, group=max(features, 1))
    return found


def _batch(args: list[Tensor], batched: list[bool], features: int) -> Tensor:
    if not any(batched[1:]):
        found: Tensor = rounded_matmul(*args, features=features)
        return found
    x, values, scales = all_batched(args, batched)
    size, n = values.shape[:2]
    if not size:
        return full((*x.shape[:-1], n), 0, x.dtype)

    def one(part: Tensor, i: int) -> Tensor:
        alone: Tensor = reshape(take_slice(part, 0, i, i + 1), shape=part.shape[1:])
        return alone

    # matrices one after the other: there is no product of several with rows that are rounded
    products = [rounded_matmul(*[one(part, i) for part in (x, values, scales)], features=features) for i in range(size)]
    joined: Tensor = concatenate(*[reshape(p, shape=(1, *p.shape)) for p in products], axis=0)
    return joined


rounded_matmul: Primitive = Primitive(
    "rounded_matmul",
    _product,
    _abstract,
    jvp=(_tangent, ZERO, None),
    batch=_batch,
    cost=lambda x, values, scales, features: math.prod(x.shape) * values.shape[0],
)
