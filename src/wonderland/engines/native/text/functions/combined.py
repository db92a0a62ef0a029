"""Functions of two numbers made of those of one: the logarithm of a sum of exponentials, division with remainder."""

from __future__ import annotations

import math

from .exponential import exp
from .logarithm import log1p
from .vector import Vector, absolute, copysign, where


def logaddexp(x: Vector, y: Vector) -> Vector:
    """log(exp(x) + exp(y)); two equal infinities have no difference."""
    larger = where(x > y, x, y)
    apart = larger + log1p(exp(-absolute(x - y)))
    return where(x.equals(y), x + math.log(2), apart)


def remainder(x: Vector, y: Vector) -> Vector:
    """x - floor(x / y) y without rounding, with the sign of y."""
    return _divided(x, y)[1]


def floor_divide(x: Vector, y: Vector) -> Vector:
    return _divided(x, y)[0]


def _divided(x: Vector, y: Vector) -> tuple[Vector, Vector]:
    rest = x.op("frem", y)
    quotient = (x - rest) / y
    # the remainder of the processor has the sign of x
    other = where(rest < 0.0, y > 0.0, y < 0.0)
    other = where(rest.equals(0.0), other.like("zeroinitializer" if x.width > 1 else "false"), other)
    moved = where(other, rest + y, rest)
    quotient = where(other, quotient - 1.0, quotient)
    down = quotient.intrinsic("floor")
    nearest = where(quotient - down > 0.5, down + 1.0, down)
    found = where(quotient.equals(0.0), copysign(x.number(0.0), x / y), nearest)
    return where(y.equals(0.0), x / y, found), where(moved.equals(0.0), copysign(x.number(0.0), y), moved)
