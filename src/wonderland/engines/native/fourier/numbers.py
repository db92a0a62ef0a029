"""Complex numbers in registers, a vector for each part: arithmetic, and the transforms of a few of them."""

from __future__ import annotations

import math

import numpy as np

from ..text.builder import Builder, literal, splat, typed
from .roots import roots

Number = tuple[str, str]  # the registers of real and imaginary parts


class Arithmetic:
    """Operations on vectors of complex numbers; `sign` is that of the exponent of the transform."""

    def __init__(self, b: Builder, scalar: str, w: int, sign: int) -> None:
        self.b, self.scalar, self.w, self.sign = b, scalar, w, sign
        self.kind = typed(scalar, w)

    def constant(self, value: float) -> str:
        return splat(literal(value, self.scalar), self.scalar, self.w)

    def _do(self, name: str, x: str, y: str) -> str:
        return self.b.emit(f"{name} {self.kind} {x}, {y}")

    def _fused(self, x: str, y: str, z: str) -> str:
        """x y + z."""
        return self.b.intrinsic("fmuladd", self.kind, x, y, z)

    def _minus(self, x: str) -> str:
        return self.b.emit(f"fneg {self.kind} {x}")

    def add(self, x: Number, y: Number) -> Number:
        return self._do("fadd", x[0], y[0]), self._do("fadd", x[1], y[1])

    def subtract(self, x: Number, y: Number) -> Number:
        return self._do("fsub", x[0], y[0]), self._do("fsub", x[1], y[1])

    def conj(self, x: Number) -> Number:
        return x[0], self._minus(x[1])

    def scaled(self, x: Number, factor: str) -> Number:
        return self._do("fmul", x[0], factor), self._do("fmul", x[1], factor)

    def scaled_plus(self, x: Number, factor: str, y: Number) -> Number:
        return self._fused(x[0], factor, y[0]), self._fused(x[1], factor, y[1])

    def multiply(self, x: Number, y: Number) -> Number:
        real = self._fused(x[0], y[0], self._minus(self._do("fmul", x[1], y[1])))
        return real, self._fused(x[0], y[1], self._do("fmul", x[1], y[0]))

    def turned(self, x: Number) -> Number:
        """x times the sign and i."""
        return (self._minus(x[1]), x[0]) if self.sign > 0 else (x[1], self._minus(x[0]))

    def rooted(self, x: Number, k: int, n: int) -> Number:
        """x exp(sign 2 pi i k / n)."""
        k %= n
        if 2 * k >= n:
            x, k = (self._minus(x[0]), self._minus(x[1])), k - n // 2
        if 4 * k >= n:
            x, k = self.turned(x), k - n // 4
        if k == 0:
            return x
        if 8 * k == n:
            return self.scaled(self.add(x, self.turned(x)), self.constant(math.sqrt(0.5)))
        root = complex(roots(n, np.array([self.sign * k]))[0])
        return self.multiply(x, (self.constant(root.real), self.constant(root.imag)))

    # --- transforms

    def transform(self, xs: list[Number]) -> list[Number]:
        """The transform of as many numbers as a radix, or as one of LARGEST_PRIME."""
        n = len(xs)
        if n == 1:
            return xs
        if n == 2:
            return [self.add(*xs), self.subtract(*xs)]
        if n == 4:
            return self._of_four(xs)
        if n % 4 == 0:
            return self._in_parts(xs, 4)
        return self._of_odd(xs)

    def _of_four(self, xs: list[Number]) -> list[Number]:
        a, b = self.add(xs[0], xs[2]), self.subtract(xs[0], xs[2])
        c, d = self.add(xs[1], xs[3]), self.turned(self.subtract(xs[1], xs[3]))
        return [self.add(a, c), self.add(b, d), self.subtract(a, c), self.subtract(b, d)]

    def _in_parts(self, xs: list[Number], first: int) -> list[Number]:
        n, second = len(xs), len(xs) // first
        rows = [self.transform(xs[j::second]) for j in range(second)]
        out: list[Number] = [xs[0]] * n
        for k in range(first):
            out[k::first] = self.transform([self.rooted(rows[j][k], j * k, n) for j in range(second)])
        return out

    def _of_odd(self, xs: list[Number]) -> list[Number]:
        """By the symmetry of cosines and sines: half of the products."""
        n, half = len(xs), len(xs) // 2
        sums = [self.add(xs[j], xs[n - j]) for j in range(1, half + 1)]
        differences = [self.subtract(xs[j], xs[n - j]) for j in range(1, half + 1)]
        total = xs[0]
        for x in sums:
            total = self.add(total, x)
        out: list[Number] = [total] * n
        for k in range(1, half + 1):
            factors = roots(n, k * np.arange(1, half + 1))
            even, odd = xs[0], self.scaled(differences[0], self.constant(float(factors[0].imag)))
            for j, factor in enumerate(factors):
                even = self.scaled_plus(sums[j], self.constant(float(factor.real)), even)
                if j:
                    odd = self.scaled_plus(differences[j], self.constant(float(factor.imag)), odd)
            odd = self.turned(odd)
            out[k], out[n - k] = self.add(even, odd), self.subtract(even, odd)
        return out
