"""Sines and their inverses. x = n pi/2 + r with |r| <= pi/4; the inverses are series in a number up to 1."""

from __future__ import annotations

import math

from .vector import Vector, absolute, copysign, fma, in_library, nearest, polynomial, sqrt, where, where_rarely

# pi/2 as a sum of three, by scalar type
HALF_PI = {
    "float": (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    "double": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
# beyond these the reduction loses digits, and the C library is asked
LARGE = {"float": 1e5, "double": 1e8}
# sin(r) = r + r^3 P(r^2), cos(r) = 1 - r^2 / 2 + r^4 P(r^2)
SIN = {
    "float": [-0.000195152036, 0.00833216019, -0.166666546],
    "double": [
        1.5896190244154203e-10,
        -2.5050747093782985e-8,
        2.7557313617246675e-6,
        -0.00019841269829578042,
        0.0083333333333221049,
        -0.16666666666666631,
    ],
}
COS = {
    "float": [2.4433067e-5, -0.00138873155, 0.0416666457],
    "double": [
        -1.1358509158118128e-11,
        2.0875700325630494e-9,
        -2.7557314175590849e-7,
        2.4801587288839211e-5,
        -0.0013888888888873037,
        0.041666666666666593,
    ],
}
# atan(x) = x + x^3 P(x^2) up to 1, asin likewise up to 1/2
ATAN = [
    -0.00179361306,
    0.0109145661,
    -0.0311777705,
    0.0579575165,
    -0.0840344576,
    0.109521842,
    -0.142642414,
    0.199985483,
    -0.333332991,
]
ASIN = [0.042178406, 0.024172838, 0.0454716321, 0.0749528847, 0.166667527]


def _odd(x: Vector, square: Vector, coefficients: list[float]) -> Vector:
    """x + x^3 P(x^2)."""
    return fma(x * square, polynomial(square, coefficients), x)


def _reduced(x: Vector) -> tuple[Vector, Vector, Vector]:
    """sin r and cos r, and n in the lowest bits of an integer."""
    count, n = nearest(x, 2 / math.pi)
    r = x
    for part in HALF_PI[x.scalar]:
        r = fma(count, -part, r)
    square = r * r
    even = fma(square * square, polynomial(square, COS[x.scalar]), fma(square, -0.5, 1.0))
    return _odd(r, square, SIN[x.scalar]), even, n


def _flipped(value: Vector, n: Vector) -> Vector:
    """The value with its sign changed where bit 1 of n is set."""
    return (value.bits() ^ ((n & 2) << (30 if value.single else 62))).floats()


def _signed_by(x: Vector, value: Vector) -> Vector:
    """The value with its sign changed where x is negative: f(x) from f(|x|) for an odd f, for -0 too."""
    return (value.bits() ^ (x.bits() & -(1 << (31 if x.single else 63)))).floats()


def _guarded(x: Vector, value: Vector, name: str) -> Vector:
    return where_rarely(absolute(x) > LARGE[x.scalar], lambda: in_library(name)(x), value)


def sin(x: Vector) -> Vector:
    odd, even, n = _reduced(absolute(x))
    value = _flipped(where((n & 1).equals(0), odd, even), n)
    return _guarded(x, _signed_by(x, value), "sin")


def cos(x: Vector) -> Vector:
    odd, even, n = _reduced(absolute(x))
    return _guarded(x, _flipped(where((n & 1).equals(0), even, odd), n + 1), "cos")


def tan(x: Vector) -> Vector:
    odd, even, n = _reduced(absolute(x))
    plain = (n & 1).equals(0)
    value = where(plain, odd, -even) / where(plain, even, odd)
    return _guarded(x, _signed_by(x, value), "tan")


def atan(x: Vector) -> Vector:
    size = absolute(x)
    inverted = size > 1.0
    t = where(inverted, 1.0 / size, size)
    angle = _odd(t, t * t, ATAN)
    return copysign(where(inverted, _from_right_angle(angle), angle), x)


def _from_right_angle(angle: Vector) -> Vector:
    high, low, _ = HALF_PI[angle.scalar]
    return high - (angle - low)


def atan2(y: Vector, x: Vector) -> Vector:
    rise, run = absolute(y), absolute(x)
    steep = rise > run
    above, below = where(steep, run, rise), where(steep, rise, run)
    t = where(above.equals(below), 1.0, above / below)  # infinity by infinity too
    t = where((rise + run).equals(0.0), 0.0, t)
    angle = _odd(t, t * t, ATAN)
    angle = where(steep, _from_right_angle(angle), angle)
    high, low, _ = HALF_PI[x.scalar]
    behind = x.bits().compare("slt", 0)
    return copysign(where(behind, 2 * high - (angle - 2 * low), angle), y)


def _half_angle(x: Vector) -> tuple[Vector, Vector]:
    """(asin |x|, false) up to 1/2, beyond it (asin of sqrt((1 - |x|) / 2), true): half of acos |x|."""
    size = absolute(x)
    far = size > 0.5
    square = where(far, 0.5 - 0.5 * size, size * size)
    return _odd(where(far, sqrt(square), size), square, ASIN), far


def asin(x: Vector) -> Vector:
    angle, far = _half_angle(x)
    high, low, _ = HALF_PI[x.scalar]
    return copysign(where(far, fma(angle, -2.0, high) + low, angle), x)


def acos(x: Vector) -> Vector:
    angle, far = _half_angle(x)
    high, low, _ = HALF_PI[x.scalar]
    double = 2.0 * angle
    outer = where(x < 0.0, 2 * high - (double - 2 * low), double)
    return where(far, outer, _from_right_angle(copysign(angle, x)))


def hypot(x: Vector, y: Vector) -> Vector:
    """Of float32 numbers in float64."""
    infinite = absolute(x).equals(math.inf) | absolute(y).equals(math.inf)
    return where(infinite, math.inf, sqrt(fma(x, x, y * y)))
