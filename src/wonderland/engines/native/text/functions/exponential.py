"""Exponentials: x = n ln 2 + r with |r| <= ln 2 / 2, and exp(x) = 2^n (1 + r + r^2 P(r))."""

from __future__ import annotations

import math

from .vector import Vector, absolute, copysign, fma, nearest, polynomial, where

# The tables of coefficients come from tools/coefficients.py.
LN2 = {"float": (0.6931471824645996, -1.9046542121259336e-09), "double": (0.6931471805599453, 2.3190468138462996e-17)}
EXP = {
    "float": [0.00138145983, 0.00836871519, 0.0416683879, 0.166665206, 0.499999934],
    "short": [
        0.00019790341133174372,
        0.0013944656918139302,
        0.0083334970643606029,
        0.041666294983437366,
        0.16666665869025658,
        0.50000000676721534,
    ],
    "double": [
        2.5000055929944101e-8,
        2.7630244917497907e-7,
        2.7557586372864362e-6,
        2.4801493107805014e-5,
        0.00019841269506600904,
        0.0013888888943622416,
        0.0083333333334944417,
        0.041666666666530184,
        0.16666666666666413,
        0.50000000000000106,
    ],
}
# below and above these exp(x) is 0 and infinite
LIMITS = {"float": (-104.0, 89.0), "double": (-746.0, 710.0)}


def _reduced(x: Vector, more: int = 0) -> tuple[Vector, Vector]:
    """r, and n + more in the lowest bits of an integer."""
    high, low = LN2[x.scalar]
    n, bits = nearest(x, 1 / math.log(2), more)
    return fma(n, -low, fma(n, -high, x)), bits


def _series(r: Vector) -> Vector:
    """exp(r)."""
    return fma(fma(polynomial(r, EXP[r.series]), r, 1.0), r, 1.0)


def _power_of_two(exponent: Vector) -> Vector:
    """2^n, given n and the bias of exponents, up to twice that, in the lowest bits of an integer."""
    return (exponent << (23 if exponent.scalar == "i32" else 52)).floats()


def _grown(r: Vector, n: Vector) -> Vector:
    """2^n exp(r), in two steps, so that neither power of two leaves the range of floats."""
    mantissa, one = r.mantissa, r.number(1.0).bits()
    whole = n << mantissa
    half = (n << (mantissa - 1)) & -(1 << mantissa)
    series = _series(r)
    return series * (half + one).floats() * (whole - half + one).floats()


def exp(x: Vector, rest: Vector | None = None) -> Vector:
    """exp(x + rest) with a rest far smaller than x."""
    low, high = LIMITS[x.scalar]
    r, n = _reduced(x.above(low).below(high))
    return _grown(r if rest is None else r + rest, n)


def exp2(x: Vector) -> Vector:
    low, high = (-151.0, 129.0) if x.single else (-1076.0, 1025.0)
    x = x.above(low).below(high)
    n, bits = nearest(x, 1.0)
    return _grown((x - n) * math.log(2), bits)


def _shrunk(x: Vector) -> Vector:
    """exp(x) for x <= 0: one power of two is enough if the result is scaled back by a constant."""
    shift, bias = (64, 127) if x.single else (512, 1023)
    r, n = _reduced(x.above(LIMITS[x.scalar][0]), shift + bias)
    return _series(r) * _power_of_two(n) * 2.0**-shift


def exp_flushed(x: Vector) -> Vector:
    """exp(x) for x up to the upper limit, 0 where that is subnormal, or nearly: with such numbers processors are slow.

    Of few instructions: 2 exp(r) times 2^(n - 1), whose bits are those of 0 for the least n. What r lacks without the
    lower half of ln 2 is a fraction of the rounding of x, which is a difference.
    """
    least = -126 if x.single else -1022
    x = x.above(least * math.log(2))
    n, bits = nearest(x, 1 / math.log(2), -least)
    series = polynomial(fma(n, -LN2[x.scalar][0], x), [2 * c for c in (*EXP[x.series], 1.0, 1.0)])
    return series * _power_of_two(bits)


def _less_one(r: Vector) -> Vector:
    """exp(r) - 1."""
    return fma(r * r, polynomial(r, EXP[r.series]), r)


def expm1(x: Vector) -> Vector:
    """2 (s (exp(r) - 1) + s - 1/2) with s = 2^(n - 1), which stays finite as long as the result does."""
    low, bias = (-18.0, 127) if x.single else (-40.0, 1023)
    r, n = _reduced(x.above(low).below(LIMITS[x.scalar][1]), bias - 1)
    s = _power_of_two(n)
    value = fma(s, _less_one(r), s - 0.5) * 2.0
    return where(absolute(x) < 2.0**-60, x, value)  # keeps -0 and subnormals


def expm1_below_zero(x: Vector) -> Vector:
    """expm1(x) for x from -20 to 0, of float64 from -40, where no power of two is large. The sign of 0 is lost.

    What r lacks without the lower half of ln 2 grows with n, but 2^n, its factor, shrinks faster: nobody sees it.
    """
    n, bits = nearest(x, 1 / math.log(2), 127 if x.single else 1023)
    r = fma(n, -LN2[x.scalar][0], x)
    s = _power_of_two(bits)
    return fma(s, _less_one(r), s - 1.0)


def sigmoid(x: Vector) -> Vector:
    """1 / (1 + exp(-x)), or exp(x) / (1 + exp(x)) below 0: the exponential does not overflow."""
    small = _shrunk(-absolute(x))
    return where(x < 0.0, small, 1.0) / (1.0 + small)


def tanh(x: Vector) -> Vector:
    """-t / (t + 2) with t = exp(-2 |x|) - 1: no cancellation near 0, not above 1."""
    t = expm1_below_zero((absolute(x) * -2.0).above(-20.0 if x.single else -40.0))
    return copysign(t / (t + 2.0), x)


def sinh(x: Vector) -> Vector:
    """Of a float32 in float64: near 0, where exponentials would cancel, the first terms of the series."""
    grown, square = exp(absolute(x)), x * x
    series = fma(x * square, fma(square, 1 / 120, 1 / 6), x)
    return where(square < 1e-4, series, copysign(0.5 * grown - 0.5 / grown, x))


def cosh(x: Vector) -> Vector:
    """Of a float32 in float64."""
    grown = exp(absolute(x))
    return 0.5 * grown + 0.5 / grown
