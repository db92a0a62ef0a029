"""Logarithms: x = m 2^k with m between sqrt(1/2) and sqrt(2), and log(x) = k ln 2 + log(m). Powers of numbers."""

from __future__ import annotations

import math

from .exponential import LN2, exp, exp2
from .vector import Vector, absolute, copysign, fma, polynomial, sqrt, where, wide

# log(1 + u) = u + u^2 P(u)
LOG = {
    "float": [
        -0.0762186644,
        0.129045697,
        -0.132430214,
        0.141818076,
        -0.166090767,
        0.200019746,
        -0.250015832,
        0.333333257,
        -0.499999883,
    ],
    "short": [
        -0.048411554117952235,
        0.091746020636662545,
        -0.09317661502016157,
        0.090299849413733915,
        -0.098805733289580384,
        0.1110578158774594,
        -0.12506611377605408,
        0.14286208896397565,
        -0.16666490481474196,
        0.19999987382461807,
        -0.2500000200664221,
        0.33333333425224061,
        -0.49999999993767122,
    ],
}
# log((1 + s) / (1 - s)) = 2 s + s^3 P(s^2)
AREA = [
    0.14795517161616603,
    0.15314094766401445,
    0.18183562559342929,
    0.22222198607907967,
    0.28571428742042569,
    0.39999999999416256,
    0.66666666666667342,
]
# the same = 2 s + 2/3 s^3 + s^5 P(s^2)
AREA_AFTER_THIRD = [
    0.11012977245440502,
    0.1042295152268174,
    0.11768670963872182,
    0.13333240528432303,
    0.15384616751417322,
    0.18181818169273906,
    0.22222222222290437,
    0.28571428571428376,
    0.4,
]
# constants as sums of a high and a low part, by scalar type
PER_LN2 = {"float": (1.4426950216293335, 1.925963033500011e-08), "double": (1.4426950408889634, 2.0355273740931033e-17)}
PER_LN10 = {
    "float": (0.4342944920063019, -1.0103049952192578e-08),
    "double": (0.4342944819032518, 1.098319650216765e-17),
}
LOG10_2 = {
    "float": (0.3010300099849701, -1.432098883924482e-08),
    "double": (0.3010299956639812, -2.8037281277851704e-18),
}
LN2_SHORT = (0.6931471805598903, 5.497923018708371e-14)  # times any exponent the high part is exact
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)


def _split(x: Vector) -> tuple[Vector, Vector]:
    """m, and k + bias as an integer, of a positive normal float."""
    root, one, mantissa = x.number(math.sqrt(0.5)).bits(), x.number(1.0).bits(), x.mantissa
    shifted = x.bits() + (one - root)
    return ((shifted & ((1 << mantissa) - 1)) + root).floats(), shifted.op("lshr", mantissa)


def _exponent(x: Vector, k: Vector, lowered: Vector | float = 0.0) -> Vector:
    """k + bias, a small integer >= 0, as the float k - lowered; a conversion that all processors have for vectors."""
    shift, bias = 2.0**x.mantissa, 127.0 if x.single else 1023.0
    return (k + x.number(shift).bits()).floats() - (lowered + (shift + bias))


def _normal(x: Vector) -> tuple[Vector, Vector]:
    """(k, m) of a positive float, which may be subnormal."""
    if x.short:  # a float32, normal as a float64
        m, k = _split(x)
        return _exponent(x, k), m
    tiny = x < (2.0**-126 if x.single else 2.0**-1022)
    m, k = _split(where(tiny, x * 2.0**x.mantissa, x))
    return _exponent(x, k, where(tiny, x.number(float(x.mantissa)), 0.0)), m


def _near_one(u: Vector) -> Vector:
    """log(1 + u) - u."""
    if u.series in LOG:
        return u * u * polynomial(u, LOG[u.series])
    s = u / (u + 2.0)
    half, square = 0.5 * u * u, s * s
    return fma(s, fma(square, polynomial(square, AREA), half), -half)


def _ended(x: Vector, value: Vector) -> Vector:
    """The logarithm of what is not a positive number."""
    value = where(x.equals(math.inf), x, value)
    return where(x > 0.0, value, where(x.equals(0.0), x.number(-math.inf), math.nan))


def log(x: Vector) -> Vector:
    high, low = LN2[x.scalar]
    k, m = _normal(x)
    u = m - 1.0
    return _ended(x, fma(k, high, u + fma(k, low, _near_one(u))))


def _in_base(m: Vector, factor: tuple[float, float]) -> Vector:
    """log(m) times a factor in two parts."""
    high, low = factor
    u = m - 1.0
    return fma(u, high, fma(_near_one(u), high, u * low))


def log2(x: Vector) -> Vector:
    k, m = _normal(x)
    return _ended(x, k + _in_base(m, PER_LN2[x.scalar]))


def log10(x: Vector) -> Vector:
    high, low = LOG10_2[x.scalar]
    k, m = _normal(x)
    return _ended(x, fma(k, high, fma(k, low, _in_base(m, PER_LN10[x.scalar]))))


def log1p(x: Vector) -> Vector:
    """As log(t) with t = 1 + x rounded; what rounding lost is given back to m."""
    high, low = LN2[x.scalar]
    mantissa, bias = x.mantissa, 127 if x.single else 1023
    t = 1.0 + x
    lost = x - (t - 1.0)
    m, k = _split(t)
    few = where(k.compare("slt", bias + 100), k, bias + 100)  # beyond it nothing that counts is lost
    scale = ((k.number(2 * bias) - few) << mantissa).floats()
    u = fma(lost, scale, m - 1.0)
    k = _exponent(x, k)
    value = fma(k, high, u + fma(k, low, _near_one(u)))
    value = where(x.equals(math.inf), x, _ended(t, value))
    return where(x.equals(0.0), x, value)


def asinh(x: Vector) -> Vector:
    """Of a float32 in float64, like the two that follow."""
    size = absolute(x)
    square = size * size
    value = log1p(size + square / (1.0 + sqrt(square + 1.0)))
    return copysign(where(size < math.inf, value, size), x)


def acosh(x: Vector) -> Vector:
    t = x - 1.0
    return where(t >= 0.0, log1p(t + sqrt(t * (t + 2.0))), math.nan)


def atanh(x: Vector) -> Vector:
    size = absolute(x)
    return copysign(0.5 * log1p(2.0 * size / (1.0 - size)), x)


# --- powers


def _long_log(x: Vector) -> tuple[Vector, Vector]:
    """The logarithm of a float64 >= 0 as a sum of two, with an error of 2^-64 or so; infinite if x is 0 or infinite."""
    k, m = _normal(x)
    above, below = m - 1.0, m + 1.0
    s = above / below
    s_low = (fma(-s, below, above) - s * (m - (below - 1.0))) / below
    z = s * s
    z_low = fma(s, s, -z) + 2.0 * s * s_low
    # w = 2/3 + z P(z), and log(m) = s (2 + z w)
    tail = z * polynomial(z, AREA_AFTER_THIRD)
    w = tail + TWO_THIRDS[0]
    w_low = TWO_THIRDS[0] - w + tail + TWO_THIRDS[1]
    v = z * w
    v_low = fma(z, w, -v) + fma(z, w_low, z_low * w)
    a = v + 2.0
    a_low = 2.0 - a + v + v_low
    near = s * a
    near_low = fma(s, a, -near) + fma(s, a_low, s_low * a)
    far = k * LN2_SHORT[0]
    total = far + near
    low = far - total + near + fma(k, LN2_SHORT[1], near_low)
    value = total + low
    return _ended(x, value), total - value + low


def _size_of_power(size: Vector, y: Vector) -> Vector:
    """size^y in float64."""
    log_size, low = _long_log(size)
    y = where(log_size.equals(0.0), 0.0, y)  # 1^y is 1, whatever y
    product = y * log_size
    rest = fma(y, log_size, -product) + y * low
    return exp(product, where(absolute(product) < 800.0, rest, 0.0))


def _size_of_single_power(size: Vector, y: Vector) -> Vector:
    """The same for float32 in float64, which needs no second part."""
    log_size = log2(size)
    return exp2(where(log_size.equals(0.0), 0.0, y) * log_size)


def _signed_power(x: Vector, y: Vector, value: Vector) -> Vector:
    """x^y from |x|^y, with the special cases of IEEE 754."""
    whole = y.equals(y.intrinsic("rint"))
    half = 0.5 * y
    odd = whole & half.compare("une", half.intrinsic("rint"))
    value = where(odd, copysign(value, x), value)
    undefined = (x < 0.0) & (x > -math.inf) & y.compare("une", y.intrinsic("rint"))
    value = where(undefined, math.nan, value)
    return where(y.equals(0.0), 1.0, where(x.equals(1.0), 1.0, value))


def power(x: Vector, y: Vector) -> Vector:
    size = wide(_size_of_single_power) if x.single else _size_of_power
    return _signed_power(x, y, size(absolute(x), y))
