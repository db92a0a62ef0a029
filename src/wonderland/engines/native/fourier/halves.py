"""Real numbers as half as many complex ones.

For 2 n real numbers x let z_j = x_2j + i x_(2j+1), with the spectrum Z. Those of the even and of the odd places are
E_k = (Z_k + conj Z_(n-k)) / 2 and O_k = (Z_k - conj Z_(n-k)) / 2i, and with w = exp(-i pi / n)

    X_k = E_k + w^k O_k      and      X_(n-k) = conj(E_k - w^k O_k).

The way back, Z_k = E_k + i O_k, has the same form with other factors: both are

    y_k = h (x_k + conj x_(n-k)) + g_k (x_k - conj x_(n-k)) = S + D,      y_(n-k) = conj(S - D).
"""

from __future__ import annotations

from collections.abc import Callable

from ..text.routine import Routine
from .ends import Port, zero
from .numbers import Arithmetic, Number


def mixed(a: Arithmetic, h: str, g: Number, x: Number, opposite: Number) -> tuple[Number, Number]:
    """y_k and y_(n-k) from x_k and x_(n-k)."""
    opposite = a.conj(opposite)
    odd = a.multiply(a.subtract(x, opposite), g)
    even = a.scaled(a.add(x, opposite), h)
    return a.add(even, odd), a.conj(a.subtract(even, odd))


def both(
    r: Routine,
    a: Arithmetic,
    n: int,
    h: str,
    g: Callable[[str], Number],
    source: Port,
    target: Port,
    forward: bool,
    count: int,
) -> None:
    """y from x: the spectrum X, of n + 1 frequencies, from Z (forward), or Z from X. `g` reads the factors.

    Computed are frequency 0 and `count` others with their opposites: n // 2 are all.
    """
    x, last = source.read("0", 0), source.read("0", 0 if forward else n)
    if not forward:  # the imaginary parts of the first and the last frequency do not matter
        x, last = (x[0], zero(a.w)), (last[0], zero(a.w))
    y, opposite = mixed(a, h, g("0"), x, last)
    target.write("0", 0, y)
    if forward:
        target.write("0", n, opposite)

    def turn(k: str) -> None:
        other = r.linear((-1,), (k,), n)
        y, opposite = mixed(a, h, g(k), source.read(k, 0), source.read(other, 0))
        target.write(k, 0, y)
        target.write(other, 0, opposite)

    r.b.loop(count + 1, 1, turn, 1)
