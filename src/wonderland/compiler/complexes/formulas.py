"""Operations on complex numbers as operations on their parts, with the results that NumPy has.

The formulas are written such that nothing overflows or cancels on the way to a result that does not; for the inverse
functions they are those of Kahan, "Branch cuts for complex elementary functions" (1987), which also have the sign of
zero decide on which side of a cut an argument lies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...primitives import elementwise as el
from ...primitives.creation import full, full_like, iota, ones_like, zeros_like
from ...primitives.primitive import TABLE
from ...primitives.structure import broadcast_to, concatenate, reshape, take_slice, transpose
from ...tensor import Tracer
from .pairs import Pair, Tensor, apart, together

POWERS = 100  # integers below this are powers by multiplication, as in NumPy


Formula = Callable[..., Any]  # from pairs (or tensors, for what is real) to a pair or tensor; None: there is none


# --- the same for both parts


def _of_parts(name: str) -> Formula:
    def formula(*args: Any, **params: Any) -> Pair:
        real = [x.real if isinstance(x, Pair) else x for x in args]
        imag = [x.imag if isinstance(x, Pair) else x for x in args]
        return Pair(TABLE[name](*real, **params), TABLE[name](*imag, **params))

    return formula


def _scatter(x: Pair, updates: Pair, *indices: Tensor, axes: Any, mode: str) -> Pair | None:
    if mode not in ("set", "add"):
        return None
    return _of_parts("scatter")(x, updates, *indices, axes=axes, mode=mode)


def _product(name: str) -> Formula:
    """What is linear in both of its arguments."""

    def formula(x: Pair, y: Pair, **params: Any) -> Pair:
        f = TABLE[name]
        real = f(x.real, y.real, **params) - f(x.imag, y.imag, **params)
        return Pair(real, f(x.real, y.imag, **params) + f(x.imag, y.real, **params))

    return formula


def _matmul(x: Pair, y: Pair) -> Pair:
    """One product of real matrices: rows of x as they are in memory, with the matrix of multiplication by y.

    The result is in the form of memory, too: (m, 2 k) by (2 k, 2 n) is (m, 2 n), with real and imaginary parts in turn.
    """
    (*lead, m, k), (*front, _, n) = x.real.shape, y.real.shape
    turned = together(_times_i(y))
    rows = [reshape(part, shape=(*front, k, 1, n, 2)) for part in (together(y), turned)]
    right = reshape(concatenate(*rows, axis=len(front) + 1), shape=(*front, 2 * k, 2 * n))
    out = TABLE["matmul"](reshape(together(x), shape=(*lead, m, 2 * k)), right)
    return apart(reshape(out, shape=(*out.shape[:-1], n, 2)))


_multiply = _product("multiply")


# --- construction, parts, conversion


def _full(shape: Any, value: complex, dtype: Any) -> Pair:
    part = dtypes.real_of(dtype)
    return Pair(full(shape, complex(value).real, part), full(shape, complex(value).imag, part))


def _of_real(x: Tensor) -> Pair:
    return Pair(x, zeros_like(x))


def _complex(re: Tensor, im: Tensor) -> Pair:
    dtype = dtypes.real_of(dtypes.complex_of(re.dtype))
    return Pair(*(_as(part, dtype) for part in _spread(re, im)))


def _spread(*xs: Tensor) -> list[Tensor]:
    """Tensors in their common shape."""
    shape = el.broadcast_shapes("complex", *[x.shape for x in xs])
    return [x if x.shape == shape else broadcast_to(x, shape=shape) for x in xs]


def _as(x: Tensor, dtype: Any) -> Tensor:
    return x if x.dtype == dtype else el.astype(x, dtype=dtype)


def _astype(x: Any, dtype: Any) -> Any:
    if not isinstance(x, Pair):
        return _of_real(_as(x, dtypes.real_of(dtype)))
    if dtype == dtypes.bool_:
        return _nonzero(x)
    return Pair(_as(x.real, dtypes.real_of(dtype)), _as(x.imag, dtypes.real_of(dtype)))


def _conj(x: Pair) -> Pair:
    return Pair(x.real, -x.imag)


# --- tests


def _either(name: str) -> Formula:
    return lambda x: el.bitwise_or(TABLE[name](x.real), TABLE[name](x.imag))


def _nonzero(x: Pair) -> Tensor:
    return el.bitwise_or(x.real != 0, x.imag != 0)


def _equal(x: Pair, y: Pair) -> Tensor:
    return el.bitwise_and(x.real == y.real, x.imag == y.imag)


def _not_equal(x: Pair, y: Pair) -> Tensor:
    return el.bitwise_or(x.real != y.real, x.imag != y.imag)


# --- size and quotient


def _abs(x: Pair) -> Tensor:
    return el.hypot(x.real, x.imag)


def _sign(x: Pair) -> Pair:
    size = _abs(x)
    safe = el.where(size == 0, ones_like(size), size)
    return Pair(x.real / safe, x.imag / safe)


def _divide(x: Pair, y: Pair) -> Pair:
    """By the larger part of y first, as Smith did it and NumPy does."""
    real_first = abs(y.real) >= abs(y.imag)
    large, small = el.where(real_first, y.real, y.imag), el.where(real_first, y.imag, y.real)
    zero = el.bitwise_and(large == 0, small == 0)
    ratio = small / large
    scale = 1 / (large + small * ratio)
    a, b = el.where(real_first, x.real, x.imag), el.where(real_first, x.imag, x.real)
    along, across = (a + b * ratio) * scale, (b - a * ratio) * scale
    real, imag = along, el.where(real_first, across, -across)
    return Pair(el.where(zero, x.real / abs(y.real), real), el.where(zero, x.imag / abs(y.real), imag))


# --- exponentials, logarithms, powers


def _grown(x: Tensor, y: Tensor) -> Tensor:
    """x * y, which is 0 where y is, whatever x: on the real axis also at infinity."""
    return el.where(y == 0, y, x * y)


def _exp(x: Pair) -> Pair:
    half = el.exp(0.5 * x.real)  # the exponential itself may overflow where its product with a small cosine does not
    return Pair(half * el.cos(x.imag) * half, _grown(half, _grown(half, el.sin(x.imag))))


def _expm1(x: Pair) -> Pair:
    a = el.sin(0.5 * x.imag)
    return Pair(el.expm1(x.real) * el.cos(x.imag) - 2 * a * a, _grown(el.exp(x.real), el.sin(x.imag)))


def _log(x: Pair) -> Pair:
    a, b = abs(x.real), abs(x.imag)
    size, large, small = el.hypot(a, b), el.maximum(a, b), el.minimum(a, b)
    near = 0.5 * el.log1p((large - 1) * (large + 1) + small * small)  # to the last digits where the size is about 1
    about_one = el.bitwise_and(size > 0.7, size < 1.6)
    return Pair(el.where(about_one, near, el.log(size)), el.atan2(x.imag, x.real))


def _log1p(x: Pair) -> Pair:
    moved = x.real + 1
    size = el.hypot(moved, x.imag)
    near = 0.5 * el.log1p(x.real * (x.real + 2) + x.imag * x.imag)
    about_one = el.bitwise_and(size > 0.7, size < 1.6)
    return Pair(el.where(about_one, near, el.log(size)), el.atan2(x.imag, moved))


def _log_of(base: float) -> Formula:
    def formula(x: Pair) -> Pair:
        found = _log(x)
        return Pair(found.real * (1 / math.log(base)), found.imag * (1 / math.log(base)))

    return formula


def _sqrt(x: Pair) -> Pair:
    size = el.hypot(0.125 * x.real, 0.125 * x.imag) + 0.125 * abs(x.real)
    large = 2 * el.sqrt(size)  # sqrt((|x| + |real|) / 2)
    b = abs(x.imag)
    small = el.where(el.bitwise_or(large == 0, el.isinf(x.imag)), b, 0.5 * b / large)
    right = x.real >= 0
    return Pair(el.where(right, large, small), el.copysign(el.where(right, small, large), x.imag))


def _square(x: Pair) -> Pair:
    return _multiply(x, x)


def _power(x: Pair, p: Pair) -> Pair:
    n = _integer(p)
    if n is not None:
        shape = el.broadcast_shapes("power", x.real.shape, p.real.shape)
        x = Pair(broadcast_to(x.real, shape=shape), broadcast_to(x.imag, shape=shape))
        return _power_of(x, n)
    general = _exp(_multiply(p, _log(x)))
    # 0 to the 0 is 1, to what has a positive real part it is 0, and else there is no result
    zero = el.bitwise_and(x.real == 0, x.imag == 0)
    never = el.bitwise_and(p.real == 0, p.imag == 0)
    one, none, nan = ones_like(p.real), zeros_like(p.real), full_like(p.real, math.nan)
    at_zero = el.where(p.real > 0, none, nan)
    real = el.where(never, one, el.where(zero, at_zero, general.real))
    return Pair(real, el.where(never, none, el.where(zero, at_zero, general.imag)))


def _integer(p: Pair) -> int | None:
    """The exponent, if it is one small integer that is known now."""
    if isinstance(p.real, Tracer) or isinstance(p.imag, Tracer) or p.real._data.size != 1:
        return None
    real, imag = p.real._data.item(), p.imag._data.item()
    return int(real) if imag == 0 and abs(real) < POWERS and real == int(real) else None


def _power_of(x: Pair, n: int) -> Pair:
    one = Pair(ones_like(x.real), zeros_like(x.imag))
    result: Pair | None = None
    square, left = x, abs(n)
    while left:
        if left % 2:
            result = square if result is None else _multiply(result, square)
        left //= 2
        if left:
            square = _multiply(square, square)
    result = one if result is None else result
    return _divide(one, result) if n < 0 else result


# --- trigonometric and hyperbolic functions: those of z are turned ones of iz


def _times_i(x: Pair) -> Pair:
    return Pair(-x.imag, x.real)


def _over_i(x: Pair) -> Pair:
    return Pair(x.imag, -x.real)


def _turned(f: Callable[[Pair], Pair]) -> Callable[[Pair], Pair]:
    return lambda x: _over_i(f(_times_i(x)))


def _sinh(x: Pair) -> Pair:
    real = _grown(el.cos(x.imag), el.sinh(x.real))
    return Pair(real, _grown(el.cosh(x.real), el.sin(x.imag)))


def _cosh(x: Pair) -> Pair:
    imag = el.where(x.real == 0, zeros_like(x.real), _grown(el.sinh(x.real), el.sin(x.imag)))
    return Pair(el.cosh(x.real) * el.cos(x.imag), imag)


def _tanh(x: Pair) -> Pair:
    a, sine, cosine = abs(x.real), el.sin(x.imag), el.cos(x.imag)
    far = a > (10.0 if x.real.dtype == dtypes.float32 else 20.0)  # there the real part is 1, to the last digit
    near = el.where(far, zeros_like(a), x.real)
    s, c = el.sinh(near), el.cosh(near)
    size = s * s + cosine * cosine
    tail = 4 * sine * cosine * el.exp(-2 * a)
    imag = el.where(far, el.where(el.isinf(a), zeros_like(a), tail), sine * cosine / size)
    return Pair(el.where(far, el.sign(x.real), s * c / size), imag)


def _roots(x: Pair) -> tuple[Pair, Pair]:
    """sqrt(1 - x) and sqrt(1 + x)."""
    return _sqrt(Pair(1 - x.real, -x.imag)), _sqrt(Pair(1 + x.real, x.imag))


def _asin(x: Pair) -> Pair:
    minus, plus = _roots(x)
    below = minus.real * plus.real - minus.imag * plus.imag
    below = el.where(el.isinf(_abs(x)), abs(x.imag), below)
    return Pair(el.atan2(x.real, below), el.asinh(minus.real * plus.imag - minus.imag * plus.real))


def _acos(x: Pair) -> Pair:
    minus, plus = _roots(x)
    imag = el.asinh(plus.real * minus.imag - plus.imag * minus.real)
    return Pair(2 * el.atan2(minus.real, plus.real), imag)


def _acosh(x: Pair) -> Pair:
    minus, plus = _sqrt(Pair(x.real - 1, x.imag)), _sqrt(Pair(x.real + 1, x.imag))
    return Pair(el.asinh(minus.real * plus.real + minus.imag * plus.imag), 2 * el.atan2(minus.imag, plus.real))


def _atanh(x: Pair) -> Pair:
    a, b = abs(x.real), x.imag
    pole = el.hypot(1 - a, b)  # how far 1 is
    near = pole < (1e-4 if a.dtype == dtypes.float32 else 1e-8)  # there the square of the distance may be 0
    real = el.where(near, 0.25 * el.log(4 * a) - 0.5 * el.log(pole), 0.25 * el.log1p(4 * a / (pole * pole)))
    imag = 0.5 * el.atan2(2 * b, (1 - a) * (1 + a) - b * b)
    size = el.hypot(a, b)
    far = size > (1e4 if a.dtype == dtypes.float32 else 1e8)  # there it is 1 / x and a right angle
    inverse = el.where(el.isinf(size), zeros_like(size), 1 / size)
    over = [_grown(part * inverse, inverse) for part in (a, b)]
    real = el.where(far, over[0], real)
    imag = el.where(far, el.copysign(full_like(b, math.pi / 2), b) - over[1], imag)
    return Pair(el.copysign(real, x.real), imag)


# --- reductions and running products, by halves


def _any_or_all(name: str) -> Formula:
    return lambda x, axes: TABLE[name](_nonzero(x), axes=axes)


def _prod(x: Pair, axes: tuple[int, ...]) -> Pair:
    shape = x.real.shape
    rest = tuple(i for i in range(len(shape)) if i not in axes)
    kept, axis = tuple(shape[i] for i in rest), len(rest)

    def flat(part: Tensor) -> Tensor:
        return reshape(transpose(part, axes=rest + axes), shape=(*kept, math.prod(shape[i] for i in axes)))

    n = math.prod(shape[i] for i in axes)
    if n == 0:
        return Pair(full(kept, 1.0, x.real.dtype), full(kept, 0.0, x.real.dtype))
    found = Pair(flat(x.real), flat(x.imag))
    while n > 1:
        half = n // 2
        first, second, last = (_cut(found, axis, *ends) for ends in ((0, half), (half, 2 * half), (2 * half, n)))
        found, n = _multiply(first, second), n - half
        if n > half:
            found = _joined(found, last, axis)
    return Pair(reshape(found.real, shape=kept), reshape(found.imag, shape=kept))


def _cumprod(x: Pair, axis: int, reverse: bool) -> Pair:
    """After each pass an element is the product of twice as many."""
    n, shift = x.real.shape[axis], 1
    while shift < n:
        if reverse:
            ends = _cut(x, axis, n - shift, n)
            x = _joined(_multiply(_cut(x, axis, 0, n - shift), _cut(x, axis, shift, n)), ends, axis)
        else:
            ends = _cut(x, axis, 0, shift)
            x = _joined(ends, _multiply(_cut(x, axis, 0, n - shift), _cut(x, axis, shift, n)), axis)
        shift *= 2
    return x


def _cut(x: Pair, axis: int, start: int, stop: int) -> Pair:
    return Pair(take_slice(x.real, axis, start, stop), take_slice(x.imag, axis, start, stop))


def _joined(x: Pair, y: Pair, axis: int) -> Pair:
    return Pair(concatenate(x.real, y.real, axis=axis), concatenate(x.imag, y.imag, axis=axis))


PARTWISE = [
    "reshape",
    "transpose",
    "broadcast_to",
    "slice",
    "place",
    "concatenate",
    "where",
    "gather",
    "stop_gradient",
] + ["add", "subtract", "negative", "round", "sum", "cumsum", "window_sum", "window_spread"]
PRODUCTS = ["multiply", "convolution", "convolution_input", "convolution_weight"]

FORMULAS: dict[str, Formula] = {
    **{name: _of_parts(name) for name in PARTWISE},
    **{name: _product(name) for name in PRODUCTS},
    "matmul": _matmul,
    "scatter": _scatter,
    "full": _full,
    "iota": lambda size, dtype: _of_real(iota(size=size, dtype=dtypes.real_of(dtype))),
    "complex": _complex,
    "astype": _astype,
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "conj": _conj,
    "isnan": _either("isnan"),
    "isinf": _either("isinf"),
    "isfinite": lambda x: el.bitwise_and(el.isfinite(x.real), el.isfinite(x.imag)),
    "equal": _equal,
    "not_equal": _not_equal,
    "abs": _abs,
    "sign": _sign,
    "divide": _divide,
    "exp": _exp,
    "expm1": _expm1,
    "log": _log,
    "log1p": _log1p,
    "log2": _log_of(2.0),
    "log10": _log_of(10.0),
    "sqrt": _sqrt,
    "square": _square,
    "power": _power,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "sin": _turned(_sinh),
    "cos": lambda x: _cosh(_times_i(x)),
    "tan": _turned(_tanh),
    "asin": _asin,
    "acos": _acos,
    "acosh": _acosh,
    "atanh": _atanh,
    "asinh": _turned(_asin),
    "atan": _turned(_atanh),
    "prod": _prod,
    "cumprod": _cumprod,
    "any": _any_or_all("any"),
    "all": _any_or_all("all"),
}
