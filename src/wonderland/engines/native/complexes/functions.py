"""Elementary functions of complex numbers from their parts, with the results that NumPy has, at special values, too.

They are written such that nothing overflows or cancels on the way to a result that does not; the inverse functions are
those of Kahan, "Branch cuts for complex elementary functions" (1987), which also have the sign of zero decide on which
side of a cut an argument lies. Where a part is infinite or no number they follow the C standard, as NumPy does.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ....core import dtypes
from ....core.tensor import Tracer
from ....primitives import elementwise as el
from ....primitives.creation import full_like, ones_like, zeros_like
from ....primitives.structure import broadcast_to
from .pairs import Pair, Tensor

POWERS = 100  # integers below this are powers by multiplication, as in NumPy


# --- size, product and quotient


def multiply(x: Pair, y: Pair) -> Pair:
    """(a + bi)(c + di) = ac - bd + (ad + bc)i."""
    return Pair(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def absolute(x: Pair) -> Tensor:
    return el.hypot(x.real, x.imag)


def sign(x: Pair) -> Pair:
    size, one, none = absolute(x), ones_like(x.real), zeros_like(x.real)
    safe = el.where(size == 0, one, size)
    # an infinite part decides alone, and two of them not at all
    far, first = el.isinf(size), el.isinf(x.real)
    none = el.where(el.bitwise_and(first, el.isinf(x.imag)), full_like(none, math.nan), none)
    towards = el.where(first, el.copysign(one, x.real), none), el.where(first, none, el.copysign(one, x.imag))
    both = el.isnan(none)
    parts = [el.where(far, to, part / safe) for to, part in zip(towards, (x.real, x.imag), strict=True)]
    return Pair(*(el.where(el.bitwise_or(both, size == 0), none, part) for part in parts))


def divide(x: Pair, y: Pair) -> Pair:
    """By the larger part of y first, as Smith did it and NumPy does."""
    real_first = abs(y.real) >= abs(y.imag)
    large, small = el.where(real_first, y.real, y.imag), el.where(real_first, y.imag, y.real)
    zero = el.bitwise_and(large == 0, small == 0)
    ratio = small / large
    scale = 1 / (large + small * ratio)
    a, b = el.where(real_first, x.real, x.imag), el.where(real_first, x.imag, x.real)
    real, imag = (a + b * ratio) * scale, el.where(real_first, b - a * ratio, a * ratio - b) * scale
    return Pair(el.where(zero, x.real / abs(y.real), real), el.where(zero, x.imag / abs(y.real), imag))


# --- exponentials, logarithms, powers


def _grown(x: Tensor, y: Tensor) -> Tensor:
    """x * y, which is 0 where y is, whatever x: on the real axis also at infinity. The sign of the zero is right."""
    return el.where(y == 0, el.copysign(ones_like(x), x) * y, x * y)


def _nowhere(x: Pair) -> Tensor:
    """Whether the real part is infinite and the imaginary one no angle: the size is known, the direction is not."""
    return el.bitwise_and(el.isinf(x.real), el.bitwise_invert(el.isfinite(x.imag)))


def exp(x: Pair) -> Pair:
    half = el.exp(0.5 * x.real)  # the exponential itself may overflow where its product with a small cosine does not
    nowhere, one = _nowhere(x), ones_like(x.real)
    cosine = el.where(nowhere, one, el.cos(x.imag))
    sine = el.where(el.bitwise_and(nowhere, x.real < 0), el.copysign(zeros_like(one), x.imag), el.sin(x.imag))
    return Pair(half * cosine * half, _grown(half, _grown(half, sine)))


def expm1(x: Pair) -> Pair:
    a = el.sin(0.5 * x.imag)
    return Pair(el.expm1(x.real) * el.cos(x.imag) - 2 * a * a, el.exp(x.real) * el.sin(x.imag))


def log(x: Pair) -> Pair:
    a, b = abs(x.real), abs(x.imag)
    large, small = el.maximum(a, b), el.minimum(a, b)
    # to where the size is a normal number: a subnormal one has lost digits, and the size of a large one overflows
    info = np.finfo(a.dtype)
    up, down = large < float(info.smallest_normal) * 2**30, large > float(info.max) / 4
    scale = _choose(up, 2.0**64, down, 0.25, a)
    size = el.hypot(a * scale, b * scale)
    near = 0.5 * el.log1p((large - 1) * (large + 1) + small * small)  # to the last digits where the size is about 1
    about_one = el.bitwise_and(size > 0.7, size < 1.6)
    far = el.log(size) - _choose(up, 64 * math.log(2), down, -2 * math.log(2), a, 0.0)
    return Pair(el.where(about_one, near, far), el.atan2(x.imag, x.real))


def _choose(first: Tensor, a: float, second: Tensor, b: float, like: Tensor, otherwise: float = 1.0) -> Tensor:
    return el.where(first, full_like(like, a), el.where(second, full_like(like, b), full_like(like, otherwise)))


def log1p(x: Pair) -> Pair:
    moved = x.real + 1
    size = el.hypot(moved, x.imag)
    near = 0.5 * el.log1p(x.real * (x.real + 2) + x.imag * x.imag)
    about_one = el.bitwise_and(size > 0.7, size < 1.6)
    return Pair(el.where(about_one, near, el.log(size)), el.atan2(x.imag, moved))


def log_of(base: float) -> Callable[[Pair], Pair]:
    def formula(x: Pair) -> Pair:
        found = log(x)
        return Pair(found.real * (1 / math.log(base)), found.imag * (1 / math.log(base)))

    return formula


def sqrt(x: Pair) -> Pair:
    a, b = abs(x.real), abs(x.imag)
    tiny = el.maximum(a, b) < float(np.finfo(a.dtype).smallest_normal) * 2**30
    scale, back = (el.where(tiny, full_like(a, f), full_like(a, g)) for f, g in ((2.0**63, 0.125), (2.0**-32, 2.0)))
    size = el.hypot(scale * a, scale * b) + scale * a
    far = el.isinf(b)
    large = el.where(far, b, back * el.sqrt(size))  # sqrt((|x| + |real|) / 2)
    small = el.where(el.bitwise_or(large == 0, far), b, b / (large + large))
    right = x.real >= 0
    return Pair(el.where(right, large, small), el.copysign(el.where(right, small, large), x.imag))


def square(x: Pair) -> Pair:
    return multiply(x, x)


def power(x: Pair, p: Pair) -> Pair:
    n = _integer(p)
    shape = el.broadcast_shapes("power", x.real.shape, p.real.shape)
    x = Pair(_stretched(x.real, shape), _stretched(x.imag, shape))
    zero = el.bitwise_and(x.real == 0, x.imag == 0)
    nan = full_like(x.real, math.nan)
    if n is not None:
        found = _power_of(x, n)
        return found if n >= 0 else _either_pair(zero, Pair(nan, nan), found)
    p = Pair(_stretched(p.real, shape), _stretched(p.imag, shape))
    small = el.bitwise_and(abs(p.real) < POWERS, el.bitwise_and(p.imag == 0, el.trunc(p.real) == p.real))
    found = _either_pair(small, _whole_power(x, p), exp(multiply(p, log(x))))
    # 0 to the 0 is 1, to what has a positive real part it is 0, and else there is no result
    one, none = ones_like(x.real), zeros_like(x.real)
    at_zero = el.where(p.real > 0, none, nan)
    never = el.bitwise_and(p.real == 0, p.imag == 0)
    return _either_pair(never, Pair(one, none), _either_pair(zero, Pair(at_zero, at_zero), found))


def _stretched(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return x if x.shape == shape else broadcast_to(x, shape=shape)


def _either_pair(condition: Tensor, x: Pair, y: Pair) -> Pair:
    return Pair(el.where(condition, x.real, y.real), el.where(condition, x.imag, y.imag))


def _integer(p: Pair) -> int | None:
    """The exponent, if it is one small integer that is known now."""
    if isinstance(p.real, Tracer) or isinstance(p.imag, Tracer) or p.real._data.size != 1:
        return None
    real, imag = p.real._data.item(), p.imag._data.item()
    return int(real) if imag == 0 and abs(real) < POWERS and real == int(real) else None


def _power_of(x: Pair, n: int) -> Pair:
    """The product of as many x, in the order of NumPy's multiplications, so that infinities come to the same end."""
    one = Pair(ones_like(x.real), zeros_like(x.imag))
    if n in (1, 2, 3):
        square = x if n == 1 else multiply(x, x)
        return multiply(x, square) if n == 3 else square
    result, square, left = one, x, abs(n)
    while left:
        if left % 2:
            result = multiply(result, square)
        left //= 2
        if left:
            square = multiply(square, square)
    return divide(one, result) if n < 0 else result


def _whole_power(x: Pair, p: Pair) -> Pair:
    """`_power_of` for exponents that differ: a bit of each decides whether a square is multiplied on."""
    one = Pair(ones_like(x.real), zeros_like(x.imag))
    size = abs(p.real)
    left = el.where(size < POWERS, size, zeros_like(size))
    result, square = one, x
    for bit in range((POWERS - 1).bit_length()):
        half = el.floor(left * 0.5)
        result = _either_pair(left != 2 * half, multiply(result, square), result)
        left = half
        if bit < (POWERS - 1).bit_length() - 1:
            square = multiply(square, square)
    twice = multiply(x, x)
    for n, product in ((1, x), (2, twice), (3, multiply(x, twice))):  # without the factor 1
        result = _either_pair(p.real == n, product, result)
    return _either_pair(p.real < 0, divide(one, result), result)


# --- trigonometric and hyperbolic functions: those of z are turned ones of iz


def times_i(x: Pair) -> Pair:
    return Pair(-x.imag, x.real)


def _over_i(x: Pair) -> Pair:
    return Pair(x.imag, -x.real)


def turned(f: Callable[[Pair], Pair]) -> Callable[[Pair], Pair]:
    return lambda x: _over_i(f(times_i(x)))


def sinh(x: Pair) -> Pair:
    real = _grown(el.cos(x.imag), el.sinh(x.real))
    return Pair(el.where(_nowhere(x), abs(x.real), real), _grown(el.cosh(x.real), el.sin(x.imag)))


def cosh(x: Pair) -> Pair:
    a, b = el.sinh(x.real), el.sin(x.imag)
    imag = el.where(x.real == 0, _grown(b, a), _grown(a, b))
    return Pair(el.where(_nowhere(x), abs(x.real), el.cosh(x.real) * el.cos(x.imag)), imag)


def tanh(x: Pair) -> Pair:
    a, sine, cosine = abs(x.real), el.sin(x.imag), el.cos(x.imag)
    far = a > (10.0 if x.real.dtype == dtypes.float32 else 20.0)  # there the real part is 1, to the last digit
    near = el.where(far, zeros_like(a), x.real)
    s, c = el.sinh(near), el.cosh(near)
    size = s * s + cosine * cosine
    tail = 4 * sine * cosine * el.exp(-2 * a)  # which keeps its sign as 0
    nothing = el.copysign(zeros_like(a), el.where(el.isfinite(x.imag), tail, x.imag))
    imag = el.where(far, el.where(el.isinf(a), nothing, tail), sine * cosine / size)
    known = el.bitwise_or(el.isfinite(x.imag), el.isinf(a))
    real = el.where(known, el.where(far, el.sign(x.real), s * c / size), full_like(a, math.nan))
    # on an axis a result is on the same one, also where the other part is no number
    return Pair(el.where(x.real == 0, x.real, real), el.where(x.imag == 0, x.imag, imag))


def _roots(x: Pair) -> tuple[Pair, Pair]:
    """sqrt(1 - x) and sqrt(1 + x)."""
    return sqrt(Pair(1 - x.real, -x.imag)), sqrt(Pair(1 + x.real, x.imag))


def _far(x: Pair) -> Tensor:
    """Whether a part is so large that the inverse functions are logarithms of 2 |x|, to the last digit."""
    return el.maximum(abs(x.real), abs(x.imag)) > float(np.finfo(x.real.dtype).max) / 8


def _endless(x: Pair) -> Tensor:
    return el.bitwise_or(el.isinf(x.real), el.isinf(x.imag))


def _size_of_inverse(x: Pair, near: Tensor) -> Tensor:
    """The part of an inverse function that grows with |x|: `near`, or far away log(2 |x|); infinite with x."""
    far = el.where(_endless(x), full_like(near, math.inf), log(x).real + math.log(2))
    return el.where(el.bitwise_or(_far(x), _endless(x)), far, abs(near))


def asin(x: Pair) -> Pair:
    minus, plus = _roots(x)
    below = minus.real * plus.real - minus.imag * plus.imag
    below = el.where(el.bitwise_or(_far(x), _endless(x)), abs(x.imag), below)
    real = el.where(x.real == 0, x.real, el.atan2(x.real, below))
    near = el.asinh(minus.real * plus.imag - minus.imag * plus.real)
    return Pair(real, el.copysign(_size_of_inverse(x, near), x.imag))


def _angle_of_acos(x: Pair, minus: Tensor, plus: Tensor) -> Tensor:
    """The real part of the inverse cosine, from 0 to pi."""
    angle = el.where(_endless(x), el.atan2(abs(x.imag), x.real), 2 * el.atan2(minus, plus))
    right = full_like(angle, math.pi / 2)
    return el.where(el.bitwise_and(x.real == 0, el.isnan(x.imag)), right, angle)


def acos(x: Pair) -> Pair:
    minus, plus = _roots(x)
    near = el.asinh(plus.real * minus.imag - plus.imag * minus.real)
    return Pair(_angle_of_acos(x, minus.real, plus.real), -el.copysign(_size_of_inverse(x, near), x.imag))


def acosh(x: Pair) -> Pair:
    minus, plus = sqrt(Pair(x.real - 1, x.imag)), sqrt(Pair(x.real + 1, x.imag))
    near = el.asinh(minus.real * plus.real + minus.imag * plus.imag)
    angle = _angle_of_acos(x, abs(minus.imag), plus.real)
    return Pair(_size_of_inverse(x, near), el.copysign(angle, x.imag))


def atanh(x: Pair) -> Pair:
    a, b = abs(x.real), x.imag
    pole = el.hypot(1 - a, b)  # how far 1 is
    near = pole < (1e-4 if a.dtype == dtypes.float32 else 1e-8)  # there the square of the distance may be 0
    real = el.where(near, 0.25 * el.log(4 * a) - 0.5 * el.log(pole), 0.25 * el.log1p(4 * a / (pole * pole)))
    imag = 0.5 * el.atan2(2 * b, (1 - a) * (1 + a) - b * b)
    size = el.hypot(0.25 * a, 0.25 * b)
    far = size > (1e4 if a.dtype == dtypes.float32 else 1e8)  # there it is 1 / x and a right angle
    inverse = el.where(el.isinf(size), zeros_like(size), 0.25 / size)
    over = [_grown(part * inverse, inverse) for part in (a, b)]
    real = el.where(far, over[0], real)
    imag = el.where(far, el.copysign(full_like(b, math.pi / 2), b) - over[1], imag)
    real = el.where(a == 0, a, real)
    return Pair(el.copysign(real, x.real), el.where(el.isnan(b), b, imag))


def sin(x: Pair) -> Pair:
    found, inner = turned(sinh)(x), times_i(x)
    return Pair(found.real, el.where(_nowhere(inner), abs(inner.real), found.imag))  # C leaves this sign open
