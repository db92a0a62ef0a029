"""Functions found by improving a first guess: the cube root, and the argument at which erfc takes a value."""

from __future__ import annotations

import math

from .composed import Composed, Functions, Value
from .elementwise import exp


def cbrt_of(m: Functions[Value], x: Value) -> Value:
    size = m.abs(x)
    plain = (size > 0) & (size < math.inf)
    y = m.where(plain, size, 1.0)
    root = m.power(y, 1 / 3)
    root = root - (root - y / (root * root)) / 3  # one step of Newton's
    return m.where(plain, m.sign(x) * root, x)


def erfcinv_of(m: Functions[Value], y: Value) -> Value:
    """In the middle 1 - y is exact; in the tails two steps of Halley's from Winitzki's closed form."""
    inner = m.erfinv(m.where((y > 0.5) & (y < 1.5), 1 - y, 0.5))
    tail = m.where(y > 1, 2 - y, y)
    inside = (tail > 0) & (tail <= 0.5)
    tail = m.where(inside, tail, 0.5)
    a = 0.147
    log = m.log(tail * (2 - tail))
    first = 2 / (math.pi * a) + log / 2
    x = m.sqrt(m.sqrt(first * first - log / a) - first)
    for _ in range(3):
        # (erfc(x) - y) / erfc'(x), in which neither factor can overflow
        step = (m.erfc(x) / tail - 1) * m.exp(x * x + m.log(tail)) * (-math.sqrt(math.pi) / 2)
        x = x - step / (1 + x * step)
    found = m.where(inside, x, m.where(y == 0, math.inf, m.where(y == 2, math.inf, math.nan)))
    return m.where((y > 0.5) & (y < 1.5), inner, m.where(y > 1, -found, found))


cbrt = Composed("cbrt", cbrt_of, (lambda out, x: 1 / (3 * out * out),))
erfcinv = Composed("erfcinv", erfcinv_of, (lambda out, y: exp(out * out) * (-math.sqrt(math.pi) / 2),))
