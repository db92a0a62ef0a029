"""Primitives that act element by element, with broadcasting. Book, sections 2.1.1 and 2.2.1.

The derivative of a function of one argument is a factor `d(out, x)`; of two, a pair of factors `d(out, x, y)`. The
tangent of the result is tangent times factor. At kinks the documented choice is: abs and sign have 0 at 0; of two
equal arguments maximum and minimum give each one half; floor, ceil, round, trunc and sign have derivative 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.broadcasting import broadcast_shapes
from ..core.dtypes import KIND, DType, bool_, is_complex, real_of
from ..core.errors import DTypeError, InputError
from ..core.interpreter import apply_linear
from ..core.primitive import LINEAR, ZERO, Aval, Derivative, Marker, Primitive, Rule
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from . import special
from .creation import ones_like, zeros_like
from .structure import broadcast_to, reshape, unbroadcast

Kinds = frozenset[int]
ANY: Kinds = frozenset((0, 1, 2, 3))
NUMERIC: Kinds = frozenset((1, 2, 3))
REAL: Kinds = frozenset((0, 1, 2))
REAL_NUMERIC: Kinds = frozenset((1, 2))
INEXACT: Kinds = frozenset((2, 3))
FLOATING: Kinds = frozenset((2,))
COMPLEX: Kinds = frozenset((3,))
INTEGRAL: Kinds = frozenset((0, 1))
INTEGER: Kinds = frozenset((1,))
BOOL: Kinds = frozenset((0,))
KIND_NAMES = {0: "bool", 1: "integer", 2: "floating", 3: "complex"}


def check_kind(name: str, kinds: Kinds, *args: Shaped) -> None:
    """Refuse arguments of other kinds."""
    for arg in args:
        if KIND[arg.dtype] not in kinds:
            allowed = " or ".join(KIND_NAMES[k] for k in sorted(kinds))
            raise DTypeError(f"{name}: takes {allowed} tensors, received {arg.dtype}.", "x.astype(...)")


def of_kinds(kinds: Kinds) -> frozenset[DType]:
    """The types of these kinds."""
    return frozenset([dtype for dtype, kind in KIND.items() if kind in kinds])


def elementwise_batch(primitive: Primitive) -> Rule:
    """Batched arguments keep the batch in front; axes of size 1 after it make up for missing ranks."""

    def batch(args: list[Tensor], batched: list[bool], **params: object) -> Tensor:
        ranks = [a.ndim - b for a, b in zip(args, batched, strict=True)]
        rank = max(ranks)
        aligned = []
        for arg, is_batched, r in zip(args, batched, ranks, strict=True):
            if is_batched and r < rank:
                arg = reshape(arg, shape=(arg.shape[0],) + (1,) * (rank - r) + arg.shape[1:])
            aligned.append(arg)
        return primitive(*aligned, **params)

    return batch


def elementwise(
    name: str, impl: Rule, kinds: Kinds, jvp: Sequence[Derivative] | Rule, out: Callable[[DType], DType] | None = None
) -> Primitive:
    """An elementwise primitive; all arguments have one dtype, and `out` maps it to the result's."""

    def abstract(*args: Shaped) -> Aval:
        check_kind(name, kinds, *args)
        dtype = args[0].dtype
        if any(a.dtype != dtype for a in args):
            raise DTypeError(f"{name}: dtypes {', '.join(str(a.dtype) for a in args)} differ.", "x.astype(...)")
        return Aval(broadcast_shapes(name, *[a.shape for a in args]), dtype if out is None else out(dtype))

    # one thread of NumPy adds as fast as memory is, but takes its time for functions such as exp
    alone = 1 << 15 if kinds is INEXACT else 1 << 19
    takes = of_kinds(kinds)
    primitive = Primitive(name, impl, abstract, jvp=jvp, elementwise=True, single=alone, takes=takes)
    primitive.batch = elementwise_batch(primitive)
    return primitive


def factor(derivative: Derivative) -> Derivative:
    """A jvp rule from a factor; markers and None stay what they are."""
    if derivative is None or isinstance(derivative, Marker):
        return derivative
    return lambda t, out, *args: apply_linear(multiply, [t, derivative(out, *args)], {}, t, out)


def unary(
    name: str, impl: Rule, d: Derivative, kinds: Kinds = INEXACT, out: Callable[[DType], DType] | None = None
) -> Primitive:
    """An elementwise primitive of one argument with the factor `d(out, x)`."""
    return elementwise(name, impl, kinds, (factor(d),), out)


def binary(
    name: str, impl: Rule, d: Sequence[Derivative], kinds: Kinds = NUMERIC, out: Callable[[DType], DType] | None = None
) -> Primitive:
    """An elementwise primitive of two arguments with a pair of factors `d(out, x, y)`."""
    return elementwise(name, impl, kinds, tuple(factor(e) for e in d), out)


def to_bool(dtype: DType) -> DType:
    return bool_


# --- linear ones: addition, and multiplication in each argument

add: Primitive = elementwise("add", np.add, NUMERIC, ())
add.jvp = lambda primals, tangents, out: _sum_tangents(tangents[0], tangents[1], out)
add.transpose = (
    lambda ct, x, y: unbroadcast(ct, x.shape),
    lambda ct, x, y: unbroadcast(ct, y.shape),
)

subtract: Primitive = elementwise("subtract", np.subtract, NUMERIC, ())
subtract.jvp = lambda primals, tangents, out: _sum_tangents(
    tangents[0], None if tangents[1] is None else -tangents[1], out
)
subtract.transpose = (
    lambda ct, x, y: unbroadcast(ct, x.shape),
    lambda ct, x, y: unbroadcast(-ct, y.shape),
)


def _sum_tangents(t: Any, u: Any, out: Tensor) -> Tensor:
    if t is not None and u is not None:
        return t + u
    only = u if t is None else t
    return only if only.shape == out.shape else broadcast_to(only, shape=out.shape)


negative: Primitive = unary("negative", np.negative, LINEAR, NUMERIC)
negative.transpose = (lambda ct, x: -ct,)

multiply: Primitive = binary("multiply", np.multiply, (LINEAR, LINEAR))
multiply.transpose = (
    lambda ct, x, y: unbroadcast(ct * y, x.shape),
    lambda ct, x, y: unbroadcast(x * ct, y.shape),
)

divide: Primitive = binary("divide", np.divide, (LINEAR, lambda out, x, y: -out / y), INEXACT)
divide.transpose = (lambda ct, x, y: unbroadcast(ct / y, x.shape), None)

# conj, real and imag are linear over the reals; adjoints pair with tangents as Re(ct * t), see docs/architecture.md
conj: Primitive = unary("conj", np.conj, LINEAR, COMPLEX)
conj.transpose = (lambda ct, x: conj(ct),)
real: Primitive = unary("real", lambda x: np.real(x).copy(), LINEAR, COMPLEX, real_of)
real.transpose = (lambda ct, x: complex_(ct, zeros_like(ct)),)
imag: Primitive = unary("imag", lambda x: np.imag(x).copy(), LINEAR, COMPLEX, real_of)
imag.transpose = (lambda ct, x: complex_(zeros_like(ct), -ct),)


def _make_complex(re: Array, im: Array) -> Array:
    out = np.empty(np.broadcast_shapes(re.shape, im.shape), dtypes.complex_of(re.dtype))
    out.real, out.imag = re, im
    return out


complex_: Primitive = elementwise("complex", _make_complex, FLOATING, (), dtypes.complex_of)
complex_.jvp = lambda primals, tangents, out: complex_(
    *[broadcast_to(zeros_like(p) if t is None else t, shape=out.shape) for p, t in zip(primals, tangents, strict=True)]
)
complex_.transpose = (
    lambda ct, x, y: unbroadcast(_as_part(real(ct), x), x.shape),
    lambda ct, x, y: unbroadcast(_as_part(-imag(ct), y), y.shape),
)


def _as_part(ct: Tensor, x: Shaped) -> Tensor:
    """Half precision has no complex type of its own, so the parts of complex64 are converted back."""
    return ct if ct.dtype == x.dtype else astype(ct, dtype=x.dtype)


# --- powers, exponentials, logarithms

exp: Primitive = unary("exp", np.exp, lambda y, x: y)
expm1: Primitive = unary("expm1", np.expm1, lambda y, x: y + 1)
log: Primitive = unary("log", np.log, lambda y, x: 1 / x)
log1p: Primitive = unary("log1p", np.log1p, lambda y, x: 1 / (x + 1))
log2: Primitive = unary("log2", np.log2, lambda y, x: float(1 / np.log(2)) / x)
log10: Primitive = unary("log10", np.log10, lambda y, x: float(1 / np.log(10)) / x)
sqrt: Primitive = unary("sqrt", np.sqrt, lambda y, x: 0.5 / y)
square: Primitive = unary("square", np.square, lambda y, x: 2 * x, NUMERIC)


def _power_factor(out: Tensor, x: Tensor, p: Tensor) -> Tensor:
    # p x^(p-1), but 0 for p = 0 also at x = 0, where x^(p-1) is infinite
    safe = where(p == 0, ones_like(p), p)
    return where(p == 0, zeros_like(out), broadcast_to(p * power(x, safe - 1), shape=out.shape))


def _exponent_factor(out: Tensor, x: Tensor, p: Tensor) -> Tensor:
    # log(x) x^p, but 0 at x = 0 where x^p = 0 wins
    safe = where(x == 0, ones_like(x), x)
    return where(x == 0, zeros_like(out), log(safe) * out)


def _integer_power(x: Array, p: Array) -> Array:
    if x.dtype.kind in "iu" and x.size and np.any(p < 0):
        raise negative_power(x)
    out = np.power(x, p)
    if x.dtype.kind == "f" and p.size == 1 and p == 0.5:
        # of a single exponent NumPy takes the root, which at -0 and -inf is something else
        return np.where(x == -np.inf, np.inf, out + 0)
    return out


def negative_power(x: Shaped) -> InputError:
    return InputError(f"power: {x.dtype} to a negative power is not an integer.", "x.astype(wl.float32) ** p")


power: Primitive = binary("power", _integer_power, (_power_factor, _exponent_factor))
power.single = 1 << 15

# --- trigonometric, hyperbolic and their inverses

sin: Primitive = unary("sin", np.sin, lambda y, x: cos(x))
cos: Primitive = unary("cos", np.cos, lambda y, x: -sin(x))
tan: Primitive = unary("tan", np.tan, lambda y, x: 1 + y * y)
asin: Primitive = unary("asin", np.arcsin, lambda y, x: 1 / sqrt(1 - x * x))
acos: Primitive = unary("acos", np.arccos, lambda y, x: -1 / sqrt(1 - x * x))
atan: Primitive = unary("atan", np.arctan, lambda y, x: 1 / (1 + x * x))
sinh: Primitive = unary("sinh", np.sinh, lambda y, x: cosh(x))
cosh: Primitive = unary("cosh", np.cosh, lambda y, x: sinh(x))
tanh: Primitive = unary("tanh", np.tanh, lambda y, x: 1 - y * y)
asinh: Primitive = unary("asinh", np.arcsinh, lambda y, x: 1 / sqrt(x * x + 1))
acosh: Primitive = unary("acosh", np.arccosh, lambda y, x: 1 / (sqrt(x - 1) * sqrt(x + 1)))
atanh: Primitive = unary("atanh", np.arctanh, lambda y, x: 1 / (1 - x * x))
atan2: Primitive = binary(
    "atan2",
    np.arctan2,
    (lambda out, y, x: x / (x * x + y * y), lambda out, y, x: -y / (x * x + y * y)),
    FLOATING,
)
hypot: Primitive = binary(
    "hypot", np.hypot, (lambda out, x, y: _safe_ratio(x, out), lambda out, x, y: _safe_ratio(y, out)), FLOATING
)

# --- activations and special functions with stable forms of their own


def _sigmoid(x: Array) -> Array:
    # exp of a non-positive number only, so nothing overflows
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype)


sigmoid: Primitive = unary("sigmoid", _sigmoid, lambda y, x: y * (1 - y), FLOATING)
logaddexp: Primitive = binary(
    "logaddexp",
    lambda x, y: (
        np.logaddexp(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)
        if dtypes.is_foreign(x.dtype)
        else np.logaddexp(x, y)
    ),
    (lambda out, x, y: share_of_sum(x, y, out), lambda out, x, y: share_of_sum(y, x, out)),
    FLOATING,
)
erf: Primitive = unary("erf", special.erf, lambda y, x: exp(-x * x) * float(2 / np.sqrt(np.pi)), FLOATING)
erfc: Primitive = unary("erfc", special.erfc, lambda y, x: exp(-x * x) * float(-2 / np.sqrt(np.pi)), FLOATING)
erfinv: Primitive = unary("erfinv", special.erfinv, lambda y, x: exp(y * y) * float(np.sqrt(np.pi) / 2), FLOATING)


def share_of_sum(x: Tensor, y: Tensor, out: Tensor) -> Tensor:
    """exp(x - out) for out = log(exp(x) + exp(y)); two equal infinities share evenly instead of giving NaN."""
    infinite = bitwise_and(x == y, isinf(x))
    zero = zeros_like(out)
    return sigmoid(where(infinite, zero, x) - where(infinite, zero, y))


# --- not smooth: absolute value, sign, rounding, the larger of two


def _complex_sign(x: Tensor) -> Tensor:
    size = abs_(x)
    one = ones_like(size)
    return x / complex_(where(size == 0, one, size), zeros_like(size))


def _abs_jvp(t: Tensor, out: Tensor, x: Tensor) -> Tensor:
    if is_complex(x.dtype):
        return real(t * conj(_complex_sign(x)))
    return t * sign(x)


def _safe_ratio(x: Tensor, size: Tensor) -> Tensor:
    """x / size, and 0 where size is 0: the subgradient of a norm at the origin."""
    zero = size == 0
    return where(zero, zeros_like(size), x / where(zero, ones_like(size), size))


abs_: Primitive = elementwise("abs", np.abs, NUMERIC, (_abs_jvp,), real_of)


def _sign_jvp(t: Tensor, out: Tensor, x: Tensor) -> Tensor | None:
    if not is_complex(x.dtype):
        return None
    # z / |z| moves only across the direction of z
    size = abs_(x)
    zero = size == 0
    along = complex_(real(t * conj(out)), zeros_like(size))
    across = (t - out * along) / complex_(where(zero, ones_like(size), size), zeros_like(size))
    return where(zero, zeros_like(out), across)


sign: Primitive = elementwise("sign", np.sign, NUMERIC, (_sign_jvp,))
floor: Primitive = unary("floor", np.floor, ZERO, REAL_NUMERIC)
ceil: Primitive = unary("ceil", np.ceil, ZERO, REAL_NUMERIC)
trunc: Primitive = unary("trunc", np.trunc, ZERO, REAL_NUMERIC)
round_: Primitive = unary("round", np.round, ZERO, NUMERIC)


def _won(x: Tensor, y: Tensor, out: Tensor) -> Tensor:
    """1 where x is the result, one half where both are, 0 elsewhere."""
    ones = ones_like(out)
    return where(x == out, where(y == out, ones * 0.5, ones), zeros_like(out))


maximum: Primitive = binary(
    "maximum", np.maximum, (lambda out, x, y: _won(x, y, out), lambda out, x, y: _won(y, x, out)), REAL
)
minimum: Primitive = binary(
    "minimum", np.minimum, (lambda out, x, y: _won(x, y, out), lambda out, x, y: _won(y, x, out)), REAL
)


def _checked_integers(name: str, f: Callable[..., Array], bad: Callable[[Array], Array]) -> Rule:
    """f, which has no result for integers with a `bad` second argument: NumPy would give some number."""

    def impl(x: Array, y: Array) -> Array:
        if y.dtype.kind in "iu" and x.size and bad(y).any():  # nothing is divided where nothing is
            raise refused(name, x, y[bad(y)].ravel()[0])
        return f(x, y)

    return impl


def refused(name: str, x: Shaped, second: object) -> InputError:
    """The error of a division by 0, or of a negative shift."""
    divisor = "a divisor that is not 0, as wl.where(y == 0, 1, y); or x / y"
    hint = "shifts of 0 or more; the other shift moves the other way" if "shift" in name else divisor
    return InputError(f"{name}: {x.dtype}{list(x.shape)} with a second argument of {second}.", hint)


def _by_nonzero(name: str, f: Callable[..., Array]) -> Rule:
    return _checked_integers(name, f, lambda y: y == 0)


def _not_negative(name: str, f: Callable[..., Array]) -> Rule:
    return _checked_integers(name, f, lambda y: y < 0)


remainder: Primitive = binary(
    "remainder",
    _by_nonzero("remainder", np.remainder),
    (lambda out, x, y: ones_like(out), lambda out, x, y: -floor(x / y)),
    REAL_NUMERIC,
)
floor_divide: Primitive = binary(
    "floor_divide", _by_nonzero("floor_divide", np.floor_divide), (ZERO, ZERO), REAL_NUMERIC
)
copysign: Primitive = binary(
    "copysign", np.copysign, (lambda out, x, y: sign(x) * copysign(ones_like(out), y), ZERO), FLOATING
)
nextafter: Primitive = binary("nextafter", np.nextafter, (None, None), FLOATING)

# --- choice


def _where_abstract(condition: Shaped, x: Shaped, y: Shaped) -> Aval:
    check_kind("where", BOOL, condition)
    if x.dtype != y.dtype:
        raise DTypeError(f"where: dtypes {x.dtype} and {y.dtype} differ.", "x.astype(...)")
    return Aval(broadcast_shapes("where", condition.shape, x.shape, y.shape), x.dtype)


def _where_jvp(primals: list[Tensor], tangents: list[Tensor | None], out: Tensor) -> Tensor:
    condition, x, _ = primals
    # a 0-d zero, so that nothing but the condition is kept for the backward pass
    t, u = (zeros_like(Aval((), x.dtype)) if tangent is None else tangent for tangent in tangents[1:])
    result = where(condition, t, u)
    return result if result.shape == out.shape else broadcast_to(result, shape=out.shape)


where: Primitive = Primitive("where", np.where, _where_abstract, jvp=_where_jvp, elementwise=True, free=True)
where.transpose = (
    None,
    lambda ct, c, x, y: unbroadcast(where(c, ct, zeros_like(ct)), x.shape),
    lambda ct, c, x, y: unbroadcast(where(c, zeros_like(ct), ct), y.shape),
)
where.batch = elementwise_batch(where)


# --- relu: its derivative is known from its value, so that the argument need not be kept


def _relu(x: Array) -> Array:
    check_kind("relu", REAL, x)  # NumPy compares complex numbers, too
    return np.where(x <= 0, x.dtype.type(0), x)


def _relu_jvp(t: Tensor, out: Tensor, x: Tensor) -> Tensor:
    return _where_jvp([out <= 0, out, out], [None, None, t], out)


relu: Primitive = elementwise("relu", _relu, REAL, (_relu_jvp,))

# --- comparisons, predicates and bits: no derivative, the result is not a number that varies smoothly

equal: Primitive = binary("equal", np.equal, (ZERO, ZERO), ANY, to_bool)
not_equal: Primitive = binary("not_equal", np.not_equal, (ZERO, ZERO), ANY, to_bool)
less: Primitive = binary("less", np.less, (ZERO, ZERO), REAL, to_bool)
less_equal: Primitive = binary("less_equal", np.less_equal, (ZERO, ZERO), REAL, to_bool)
greater: Primitive = binary("greater", np.greater, (ZERO, ZERO), REAL, to_bool)
greater_equal: Primitive = binary("greater_equal", np.greater_equal, (ZERO, ZERO), REAL, to_bool)
isfinite: Primitive = unary("isfinite", np.isfinite, ZERO, ANY, to_bool)
isinf: Primitive = unary("isinf", np.isinf, ZERO, ANY, to_bool)
isnan: Primitive = unary("isnan", np.isnan, ZERO, ANY, to_bool)
signbit: Primitive = unary("signbit", np.signbit, ZERO, FLOATING, to_bool)
bitwise_and: Primitive = binary("bitwise_and", np.bitwise_and, (None, None), INTEGRAL)
bitwise_or: Primitive = binary("bitwise_or", np.bitwise_or, (None, None), INTEGRAL)
bitwise_xor: Primitive = binary("bitwise_xor", np.bitwise_xor, (None, None), INTEGRAL)
bitwise_invert: Primitive = unary("bitwise_invert", np.invert, None, INTEGRAL)
bitwise_left_shift: Primitive = binary(
    "bitwise_left_shift", _not_negative("bitwise_left_shift", np.left_shift), (None, None), INTEGER
)
bitwise_right_shift: Primitive = binary(
    "bitwise_right_shift", _not_negative("bitwise_right_shift", np.right_shift), (None, None), INTEGER
)


# --- type conversion


def _astype_transpose(ct: Tensor, x: Shaped, dtype: DType) -> Tensor:
    if is_complex(dtype) and not is_complex(x.dtype):
        return astype(real(ct), dtype=x.dtype)
    return astype(ct, dtype=x.dtype)


def _astype_impl(x: Array, dtype: DType) -> Array:
    if is_complex(x.dtype) and not is_complex(dtype) and dtype != bool_:
        raise TypeError(f"a complex value has no {dtype} counterpart; use wl.real(x) or wl.abs(x)")
    if dtype == bool_:
        return x != 0
    if KIND[dtype] == 1 and KIND[x.dtype] == 2:
        _check_holds(dtype, x)
    return x.astype(dtype)


def _check_holds(dtype: DType, x: Array) -> None:
    """Refuse numbers that an integer type does not hold; the conversion would make others of them."""
    whole = np.trunc(x.astype(np.float64))
    info = np.iinfo(dtype)
    bad = ~((whole >= float(info.min)) & (whole < float(info.max) + 1))
    if bad.any():
        raise no_counterpart(dtype, x, x[bad].ravel()[0])


def no_counterpart(dtype: DType, x: Shaped, value: object) -> InputError:
    return InputError(
        f"astype: {value} in a tensor of {x.dtype}{list(x.shape)} has no {dtype} counterpart.",
        "wl.nan_to_num or wl.clip first, or a wider dtype",
    )


def _astype_abstract(x: Shaped, dtype: DType) -> Aval:
    if is_complex(x.dtype) and not is_complex(dtype) and dtype != bool_:
        raise DTypeError(f"astype: {x.dtype} has no {dtype} counterpart.", "wl.real(x), wl.imag(x) or wl.abs(x)")
    return Aval(x.shape, dtype)


astype: Primitive = Primitive(
    "astype", _astype_impl, _astype_abstract, jvp=(LINEAR,), transpose=(_astype_transpose,), elementwise=True, free=True
)
astype.batch = elementwise_batch(astype)
