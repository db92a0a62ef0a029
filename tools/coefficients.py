"""Coefficients of the elementary and special functions: python -m tools.coefficients [name ...]

Each row of TABLE says what is approximated: g on [low, high] by the polynomial P with the least largest weight |g - P|
(by the exchange of Remez). The printed lists, highest power first, are those in engines/native/text/functions/.
Each row of SERIES is a function on [low, high] whose Chebyshev series stands in wonderland/primitives/.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp  # type: ignore[import-untyped]  # the package has no stubs

Function = Callable[[mp.mpf], mp.mpf]


@dataclass(frozen=True)
class Problem:
    """What to approximate, and by a polynomial of which degree."""

    g: Function
    weight: Function
    low: float
    high: float
    degree: int


def minimax(p: Problem, size: int = 1500) -> tuple[list[mp.mpf], mp.mpf]:
    """The coefficients, highest power first, and the largest weighted error."""
    count = p.degree + 2  # errors of alternating sign
    middle, half = (mp.mpf(p.high) + p.low) / 2, (mp.mpf(p.high) - p.low) / 2
    # not quite Chebyshev's points: the weight may be 0 in the middle
    points = [middle - half * mp.cos(mp.pi * (i + mp.mpf("0.45")) / count) for i in range(count)]
    grid = [middle - half * mp.cos(mp.pi * (i + mp.mpf("0.37")) / size) for i in range(size)]
    exact = [(x, p.g(x), p.weight(x)) for x in grid]
    coefficients: list[mp.mpf] = []
    worst = mp.mpf(0)
    for _ in range(30):
        # through g + (-1)^i error / weight at the points, the error unknown
        rows, right = mp.matrix(count), mp.matrix(count, 1)
        for i, x in enumerate(points):
            for k in range(p.degree + 1):
                rows[i, k] = x ** (p.degree - k)
            rows[i, count - 1] = -((-1) ** i) / p.weight(x)
            right[i] = p.g(x)
        *coefficients, level = mp.lu_solve(rows, right)
        errors = [w * (mp.polyval(coefficients, x) - g) for x, g, w in exact]
        worst = max(abs(e) for e in errors)
        peaks: list[int] = []  # the largest error between changes of sign
        for i, e in enumerate(errors):
            if peaks and mp.sign(errors[peaks[-1]]) == mp.sign(e):
                if abs(e) > abs(errors[peaks[-1]]):
                    peaks[-1] = i
            else:
                peaks.append(i)
        while len(peaks) > count:
            del peaks[0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1]
        if len(peaks) < count or worst < abs(level) * mp.mpf("1.001"):
            break
        points = [grid[i] for i in peaks]
    return coefficients, worst


def _rooted(f: Function) -> Function:
    return lambda z: f(mp.sqrt(z))


def _scaled_erfc(t: mp.mpf, shift: int) -> mp.mpf:
    """exp(x^2) erfc(x) (x + shift) with t = (x - shift) / (x + shift)."""
    x = shift * (1 + t) / (1 - t)
    return mp.exp(x * x) * mp.erfc(x) * (x + shift)


HALF_LN2 = 0.34660
_exp = (lambda r: (mp.exp(r) - 1 - r) / r**2, lambda r: r**2 / mp.exp(r), -HALF_LN2, HALF_LN2)
_log = (lambda u: (mp.log1p(u) - u) / u**2, lambda u: abs(u**2 / mp.log1p(u)), -0.29290, 0.41422)
_sin = (_rooted(lambda r: (mp.sin(r) - r) / r**3), _rooted(lambda r: r**3 / mp.sin(r)), 0, 0.6170)
_cos = (_rooted(lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4), _rooted(lambda r: r**4 / mp.cos(r)), 0, 0.6170)
_area = _rooted(lambda s: (2 * mp.atanh(s) - 2 * s) / s**3)
_third = _rooted(lambda s: (2 * mp.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5)

TABLE: dict[str, Problem] = {
    # exp(r) = 1 + r + r^2 P(r)
    "exp float32": Problem(*_exp, degree=4),
    "exp float64": Problem(*_exp, degree=9),
    "exp short float64": Problem(*_exp, degree=5),
    # log(1 + u) = u + u^2 P(u) between sqrt(1/2) and sqrt(2)
    "log float32": Problem(*_log, degree=8),
    "log short float64": Problem(*_log, degree=12),
    # log((1 + s) / (1 - s)) = 2 s + s^3 P(s^2)
    "log float64": Problem(_area, _rooted(lambda s: s**3 / (2 * mp.atanh(s))), 0, 0.029438, degree=6),
    # the same = 2 s + 2/3 s^3 + s^5 P(s^2)
    "power float64": Problem(_third, _rooted(lambda s: s**5 / (2 * mp.atanh(s))), 0, 0.029438, degree=8),
    # sin(r) = r + r^3 P(r^2), cos(r) = 1 - r^2 / 2 + r^4 P(r^2)
    "sin float32": Problem(*_sin, degree=2),
    "sin float64": Problem(*_sin, degree=5),
    "cos float32": Problem(*_cos, degree=2),
    "cos float64": Problem(*_cos, degree=5),
    # atan(x) = x + x^3 P(x^2) up to 1, asin likewise up to 1/2
    "atan float32": Problem(
        _rooted(lambda x: (mp.atan(x) - x) / x**3), _rooted(lambda x: x**3 / mp.atan(x)), 0, 1, degree=8
    ),
    "asin float32": Problem(
        _rooted(lambda x: (mp.asin(x) - x) / x**3), _rooted(lambda x: x**3 / mp.asin(x)), 0, 0.2501, degree=4
    ),
    # erf(x) = 1 - exp(-x P(x)) up to 3.92
    "erf float32": Problem(lambda x: -mp.log(mp.erfc(x)) / x, lambda x: x * mp.erfc(x) / mp.erf(x), 0, 3.92, degree=8),
    # erf(x) = x + x P(x^2) up to 1
    "erf float64": Problem(_rooted(lambda x: mp.erf(x) / x - 1), _rooted(lambda x: x / mp.erf(x)), 0, 1.001, degree=11),
    # erfc(x) = exp(-x^2) P(t) / (x + 2), t = (x - 2) / (x + 2): for all x, and from 1 to 6
    "erfc short float64": Problem(
        lambda t: _scaled_erfc(t, 2), lambda t: 1 / _scaled_erfc(t, 2), -1, (10.1 - 2) / (10.1 + 2), degree=12
    ),
    "erfc float64": Problem(
        lambda t: _scaled_erfc(t, 2), lambda t: 1 / _scaled_erfc(t, 2), -1 / 3 - 1e-4, 0.5, degree=16
    ),
}


def chebyshev(f: Function, low: mp.mpf, high: mp.mpf, size: int = 60) -> list[mp.mpf]:
    """The coefficients that float64 can see, by interpolation in Chebyshev's points."""
    angles = [mp.pi * (k + mp.mpf(1) / 2) / size for k in range(size)]
    values = [f((high + low) / 2 + (high - low) / 2 * mp.cos(a)) for a in angles]
    found = [2 * mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=True)) / size for j in range(size)]
    found[0] /= 2
    last = max(j for j, c in enumerate(found) if abs(c) > mp.mpf(10) ** -17.3 * max(map(abs, found)))
    return found[: last + 1]


def _in_square(f: Function) -> Function:
    """A function of x as one of 1 / x^2."""
    return lambda w: f(1 / mp.sqrt(w))


def _bessel(n: int) -> Function:
    return lambda x: mp.exp(-x) * mp.besseli(n, x)


def _stirling(x: mp.mpf) -> mp.mpf:
    return x * (mp.loggamma(x) - (x - mp.mpf(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def _far(n: int) -> Function:
    """In t = 16 / x - 1."""
    return lambda t: mp.sqrt(16 / (t + 1)) * _bessel(n)(16 / (t + 1))


SERIES: dict[str, tuple[Function, float, float]] = {
    "LOG_GAMMA": (lambda u: mp.loggamma(2 + u) / u, -0.5, 1),
    "STIRLING": (_in_square(_stirling), 0, 1 / 9),
    "DIGAMMA_NEAR": (lambda x: mp.psi(0, x) / (x - mp.findroot(lambda z: mp.psi(0, z), 1.46)), 1, 2),
    "DIGAMMA_FAR": (_in_square(lambda x: x**2 * (mp.log(x) - 1 / (2 * x) - mp.psi(0, x))), 0, 1 / 9),
    "I0_NEAR": (_bessel(0), 0, 8),
    "I0_FAR": (_far(0), -1, 1),
    "I1_NEAR": (lambda x: _bessel(1)(x) / x, 0, 8),
    "I1_FAR": (_far(1), -1, 1),
}


def main(names: list[str]) -> None:
    mp.mp.dps = 50
    for name in names or [*TABLE, *SERIES]:
        if name in SERIES:
            f, low, high = SERIES[name]
            print(f"{name}: {[float(c) for c in chebyshev(f, mp.mpf(low), mp.mpf(high))]}")
            continue
        coefficients, error = minimax(TABLE[name])
        digits = 9 if name.endswith("float32") else 17
        print(f"{name}: error {mp.nstr(error, 3)}")
        print(f"  [{', '.join(mp.nstr(c, digits) for c in coefficients)}]")


if __name__ == "__main__":
    main(sys.argv[1:])
