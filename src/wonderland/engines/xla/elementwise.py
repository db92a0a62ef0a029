"""Operations element by element: XLA's own, but for what NumPy gives otherwise or refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import DType, bool_, complex_of, is_complex, is_floating, is_integer
from ...primitives.elementwise import negative_power, no_counterpart, refused
from .widening import in_float32

if TYPE_CHECKING:
    from .lowering import Lowering

Rule = Callable[..., jax.Array]

# functions that have one name and one meaning in JAX and here
_SAME = [
    *("add", "subtract", "multiply", "divide", "negative", "conj", "real", "imag", "exp", "expm1", "log"),
    *("log1p", "log2", "log10", "sqrt", "square", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh", "acosh"),
    *("atanh", "hypot", "abs", "sign", "maximum", "minimum", "copysign", "where", "equal", "not_equal", "less"),
    *("less_equal", "greater", "greater_equal", "isfinite", "isinf", "isnan", "signbit", "bitwise_and"),
    *("bitwise_or", "bitwise_xor", "bitwise_invert"),
]


def _floats_alone(f: Rule) -> Rule:
    """Integers are whole already."""
    return lambda x: x if is_integer(x.dtype) else f(x)


def _sigmoid(x: jax.Array) -> jax.Array:
    e = jnp.exp(-jnp.abs(x))  # of a number that is not positive, so nothing overflows
    return jnp.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _relu(x: jax.Array) -> jax.Array:
    return jnp.where(x <= jnp.zeros((), x.dtype), jnp.zeros((), x.dtype), x)


def _make_complex(re: jax.Array, im: jax.Array) -> jax.Array:
    part = jnp.float64 if complex_of(re.dtype) == np.complex128 else jnp.float32
    re, im = jnp.broadcast_arrays(re, im)
    return lax.complex(re.astype(part), im.astype(part))


PLAIN: dict[str, Rule] = {
    **{name: getattr(jnp, name) for name in _SAME},
    "asin": jnp.arcsin,
    "acos": jnp.arccos,
    "atan": jnp.arctan,
    "atan2": jnp.arctan2,
    "complex": _make_complex,
    "sigmoid": in_float32(_sigmoid),
    "logaddexp": in_float32(jnp.logaddexp),
    "erf": in_float32(lax.erf),
    "erfc": in_float32(lax.erfc),
    "erfinv": in_float32(lax.erf_inv),
    "relu": _relu,
    "floor": _floats_alone(jnp.floor),
    "ceil": _floats_alone(jnp.ceil),
    "trunc": _floats_alone(jnp.trunc),
    "round": _floats_alone(jnp.round),
    "nextafter": lambda x, y: lax.nextafter(*jnp.broadcast_arrays(x, y)),
    "stop_gradient": lambda x: x,
}

# --- what integers refuse


def _checked(name: str, f: Rule, bad: Callable[[jax.Array], jax.Array]) -> Callable[..., jax.Array]:
    """f, which has no result for integers with a `bad` second argument."""

    def rule(lowering: Lowering, x: jax.Array, y: jax.Array) -> jax.Array:
        if is_integer(y.dtype) and x.size:
            lowering.refuse(bad(y), y, lambda second: refused(name, x, second))
        return f(x, y)

    return rule


def _remainder(x: jax.Array, y: jax.Array) -> jax.Array:
    if not is_floating(x.dtype):
        return jnp.remainder(x, jnp.where(y == 0, jnp.ones((), y.dtype), y))
    left = lax.rem(*jnp.broadcast_arrays(x, y))
    turned = jnp.where((left != 0) & ((y < 0) != (left < 0)), left + y, left)
    return jnp.where(left == 0, jnp.copysign(jnp.zeros((), x.dtype), y), turned)  # a zero has the sign of the divisor


def _floor_divide(x: jax.Array, y: jax.Array) -> jax.Array:
    """As NumPy does it: the quotient of what the remainder leaves, which is whole but for rounding."""
    if not is_floating(x.dtype):
        return jnp.floor_divide(x, jnp.where(y == 0, jnp.ones((), y.dtype), y))
    x, y = jnp.broadcast_arrays(x, y)
    left = lax.rem(x, y)
    quotient = (x - left) / y
    quotient = jnp.where((left != 0) & ((y < 0) != (left < 0)), quotient - 1, quotient)
    down = jnp.floor(quotient)
    whole = jnp.where(quotient - down > 0.5, down + 1, down)
    whole = jnp.where(quotient == 0, jnp.copysign(jnp.zeros((), x.dtype), x / y), whole)
    return jnp.where(y == 0, x / y, whole)


def _power(lowering: Lowering, x: jax.Array, p: jax.Array) -> jax.Array:
    if is_integer(x.dtype) and x.size:
        lowering.refuse(p < 0, p, lambda _: negative_power(x))
    return jnp.power(x, p)


def _astype(lowering: Lowering, x: jax.Array, dtype: DType) -> jax.Array:
    if dtype == bool_:
        return x != 0
    if is_integer(dtype) and is_floating(x.dtype):
        whole, ends = jnp.trunc(x.astype(jnp.float64)), np.iinfo(dtype)
        bad = ~((whole >= float(ends.min)) & (whole < float(ends.max) + 1))
        lowering.refuse(bad, x, lambda value: no_counterpart(dtype, x, value))
    if is_complex(x.dtype) and not is_complex(dtype):
        x = x.real
    return x.astype(dtype)


CHECKED: dict[str, Callable[..., jax.Array]] = {
    "remainder": _checked("remainder", _remainder, lambda y: y == 0),
    "floor_divide": _checked("floor_divide", _floor_divide, lambda y: y == 0),
    "bitwise_left_shift": _checked("bitwise_left_shift", jnp.left_shift, lambda y: y < 0),
    "bitwise_right_shift": _checked("bitwise_right_shift", jnp.right_shift, lambda y: y < 0),
    "power": _power,
    "astype": _astype,
}
