"""Sizes of transforms as products of radices, and tables of roots of unity."""

from __future__ import annotations

import functools
import math

import numpy as np

from ....core.dtypes import DType
from ....core.typing import Array

PRIMES = (3, 5, 7, 11, 13)  # that have butterflies in registers, besides 2; for others see chirps.py
LONGEST = 1 << 22  # numbers; NumPy computes longer transforms, whose tables of roots would take too much memory


def is_smooth(n: int) -> bool:
    """Whether n has no other prime factors.

    >>> is_smooth(96), is_smooth(34)
    (True, False)
    """
    for prime in (2, *PRIMES):
        while n % prime == 0:
            n //= prime
    return n == 1


def radices(n: int) -> list[int]:
    """Radices whose product is n: eights as far as they go, the small ones first.

    >>> radices(256), radices(60)
    ([4, 8, 8], [4, 3, 5])
    """
    twos, rest = 0, n
    while rest % 2 == 0:
        twos, rest = twos + 1, rest // 2
    eights, left = divmod(twos, 3)
    if left == 1 and eights:
        eights, found = eights - 1, [4, 4]
    else:
        found = [1 << left] if left else []
    found += [8] * eights
    for prime in PRIMES:
        while rest % prime == 0:
            found.append(prime)
            rest //= prime
    return found


def split(n: int) -> tuple[int, int]:
    """Two factors of n, as near to each other as can be; the second is not the smaller one.

    >>> split(512), split(60), split(7)
    ((16, 32), (6, 10), (1, 7))
    """
    first = next(f for f in range(math.isqrt(n), 0, -1) if n % f == 0)
    return first, n // first


def roots(n: int, powers: Array) -> Array:
    """exp(2 pi i k / n) for powers k, to the last digit of float64: angles are below an eighth of a turn."""
    eighths = 8 * (np.asarray(powers, np.int64) % n)
    turns, rest = np.divmod(eighths + n, 2 * n)  # quarter turns, and what is left: from -n to n eighths of 1/n
    angle = (rest - n) * (np.pi / (4 * n))
    return (np.cos(angle) + 1j * np.sin(angle)) * np.array([1, 1j, -1, -1j])[turns % 4]


def of_passes(n: int, sign: int) -> Array:
    """The factors behind the butterflies of all passes but the last: for each pass (places, radix - 1)."""
    tables, size = list[Array](), n
    for radix in radices(n)[:-1]:
        places = size // radix
        tables.append(roots(size, sign * np.outer(np.arange(places), np.arange(1, radix))).ravel())
        size = places
    return np.concatenate(tables) if tables else np.ones(1, np.complex128)


@functools.lru_cache(64)
def table(n: int, sign: int, scale: float, form: str, dtype: DType) -> Array:
    """The numbers that a step needs, real and imaginary parts in turn: those of its passes, then those of halves."""
    found = of_passes(n, sign)
    if form in ("spectrum", "signal"):
        found = np.concatenate([found, of_halves(n, sign, scale)])
    return np.ascontiguousarray(found).view(np.float64).astype(dtype)


def of_halves(n: int, sign: int, scale: float) -> Array:
    """The factors g of halves.py, with a scale: for a spectrum of real numbers (sign -1), and for the way back."""
    factor = -0.5j if sign < 0 else 1j
    return factor * scale * roots(2 * n, sign * np.arange(n // 2 + 1))


def between(first: int, second: int, sign: int, dtype: DType) -> Array:
    """exp(sign 2 pi i j k / n) for n = first * second, (first, second): real parts, then imaginary ones."""
    found = roots(first * second, sign * np.outer(np.arange(first), np.arange(second)))
    return np.stack([found.real, found.imag]).astype(dtype)
