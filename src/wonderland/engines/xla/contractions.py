"""Matrix products and convolutions, with sums of half precision in float32 and no shorter products on accelerators."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from ...core.dtypes import is_half
from ...core.primitive import Shape
from ...primitives.quantized import wide as wide_of
from ...primitives.rounded import MOST, MOST_TERMS
from ...primitives.windows import Pairs
from . import movement
from .widening import in_float32

EXACT = lax.Precision.HIGHEST


def matmul(x: jax.Array, y: jax.Array) -> jax.Array:
    """The product, with sums of half precision in float32."""
    if is_half(x.dtype):
        wide = jnp.matmul(x, y, precision=EXACT, preferred_element_type=jnp.float32)
        return wide.astype(x.dtype)
    return jnp.matmul(x, y, precision=EXACT)


def _quantized_matmul(x: jax.Array, values: jax.Array, *scales: jax.Array, features: int, group: int) -> jax.Array:
    kind = wide_of(x.dtype)
    weight = movement.PLAIN["dequantize"](values, *scales, features=features, group=group, dtype=kind)
    flat = x.reshape(math.prod(x.shape[:-1]), features).astype(kind)
    return matmul(flat, weight.T).reshape(*x.shape[:-1], len(weight)).astype(x.dtype)


def _rounded_matmul(x: jax.Array, values: jax.Array, scales: jax.Array, features: int) -> jax.Array:
    kind = wide_of(x.dtype)
    rows = x.reshape(math.prod(x.shape[:-1]), features).astype(kind)
    steps = jnp.max(jnp.abs(rows), axis=-1, keepdims=True, initial=0) / MOST
    finite = jnp.isfinite(steps)
    divisors = jnp.where(finite & (steps > 0), steps, 1)
    integers = jnp.clip(jnp.round(jnp.where(finite, rows / divisors, 0)), -MOST, MOST).astype(jnp.int8)
    sums = jnp.zeros((len(rows), len(values)), kind)
    for first in range(0, features, MOST_TERMS):
        part = slice(first, first + MOST_TERMS)
        exact = jnp.matmul(integers[:, part], values[:, part].T, preferred_element_type=jnp.int32)
        sums += exact.astype(kind)
    made = sums * scales.T.astype(kind) * jnp.where(finite, steps, jnp.nan)
    return made.reshape(*x.shape[:-1], len(values)).astype(x.dtype)


# --- convolutions: x (batch, *spatial, in), w (*kernel, in / groups, out), y (batch, *places, out)


def _numbers(ndim: int) -> lax.ConvDimensionNumbers:
    spatial = tuple(range(1, ndim - 1))
    ends, kernel = (0, ndim - 1, *spatial), (ndim - 1, ndim - 2, *range(ndim - 2))
    return lax.ConvDimensionNumbers(ends, kernel, ends)


def _convolution(x: jax.Array, w: jax.Array, stride: Shape, padding: Pairs, dilation: Shape, groups: int) -> jax.Array:
    return lax.conv_general_dilated(
        x,
        w,
        stride,
        padding,
        rhs_dilation=dilation,
        dimension_numbers=_numbers(x.ndim),
        feature_group_count=groups,
        precision=EXACT,
    )


def turned_padding(
    spatial: Shape, places: Shape, window: Shape, stride: Shape, padding: Pairs, dilation: Shape
) -> Pairs:
    """The padding around outputs, `stride` apart, with which windows of the same size give the inputs again."""
    return tuple(
        (d * (k - 1) - low, n - 1 - s * (p - 1) + low)
        for n, p, k, s, (low, _), d in zip(spatial, places, window, stride, padding, dilation, strict=True)
    )


def _convolution_input(
    y: jax.Array, w: jax.Array, spatial: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> jax.Array:
    kernel, (inner, out) = w.shape[:-2], w.shape[-2:]
    n = len(kernel)
    apart = w.reshape(*kernel, inner, groups, out // groups)
    turned = jnp.flip(jnp.moveaxis(apart, -1, n), range(n)).swapaxes(-1, -2)  # (*kernel, out / groups, groups, inner)
    return lax.conv_general_dilated(
        y,
        turned.reshape(*kernel, out // groups, groups * inner),
        (1,) * n,
        turned_padding(spatial, y.shape[1:-1], kernel, stride, padding, dilation),
        lhs_dilation=stride,
        rhs_dilation=dilation,
        dimension_numbers=_numbers(y.ndim),
        feature_group_count=groups,
        precision=EXACT,
    )


def _convolution_weight(
    x: jax.Array, y: jax.Array, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> jax.Array:
    """The batch is what is summed over: x plays the input with its channels as a batch, y the filter."""
    n, last = len(kernel), x.ndim - 1
    spatial = tuple(range(1, last))
    around = tuple(
        (low, s * (p - 1) + 1 + d * (k - 1) - size - low)
        for size, p, k, s, (low, _), d in zip(
            x.shape[1:-1], y.shape[1:-1], kernel, stride, padding, dilation, strict=True
        )
    )
    return lax.conv_general_dilated(
        x,
        y,
        dilation,
        around,
        rhs_dilation=stride,
        dimension_numbers=lax.ConvDimensionNumbers((last, 0, *spatial), (last, 0, *spatial), (n, n + 1, *range(n))),
        batch_group_count=groups,
        precision=EXACT,
    )


PLAIN: dict[str, Callable[..., jax.Array]] = {
    "matmul": matmul,
    "quantized_matmul": _quantized_matmul,
    "rounded_matmul": _rounded_matmul,
    "convolution": in_float32(_convolution),
    "convolution_input": in_float32(_convolution_input),
    "convolution_weight": in_float32(_convolution_weight),
}
