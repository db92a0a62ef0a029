r"""\(\ln|\Gamma|\), its derivatives \(\psi\) and \(\psi^{(n)}\), and Hurwitz's zeta function.

Near the roots at 1 and 2 the logarithm is a series times the distance to the root, so small values have all digits;
from 3 on it is Stirling's formula, with a series instead of the asymptotic one. Negative arguments are reflected.
"""

from __future__ import annotations

import math

from .composed import Composed, Functions, Value, series

# ln Gamma(2 + u) / u for u from -1/2 to 1
LOG_GAMMA = [
    0.48362763659842517,
    0.22408351337696908,
    -0.016061611364725618,
    0.0016796351005504537,
    -0.000206207082576848,
    2.7619482587698902e-05,
    -3.902432064395172e-06,
    5.712600238782988e-07,
    -8.57232441585347e-08,
    1.3098706178370361e-08,
    -2.0291174319191596e-09,
    3.177019404112652e-10,
    -5.0168902255267044e-11,
    7.977607508944761e-12,
    -1.2759320707466868e-12,
    2.0507506001786822e-13,
    -3.309998326505828e-14,
    5.362087191185866e-15,
    -8.714427500704616e-16,
    1.4203170417419452e-16,
    -2.3208252786405174e-17,
    3.801021892031957e-18,
]

# x (ln Gamma(x) - (x - 1/2) ln x + x - ln(2 pi) / 2) in 1 / x^2, for x >= 3
STIRLING = [
    0.08318246048291986,
    -0.00014975860440694073,
    1.0941071496987224e-06,
    -1.9507293568156072e-08,
    6.024267555925602e-10,
    -2.7341646731691315e-11,
    1.6562559082898348e-12,
    -1.257678484712384e-13,
    1.1461167272220638e-14,
    -1.2144076211274291e-15,
    1.4610300637638518e-16,
    -1.9595510791505942e-17,
    2.887917095868064e-18,
    -4.622812235368405e-19,
]

# psi(x) / (x - root) from 1 to 2, and the root
DIGAMMA_NEAR = [
    0.983570260441567,
    -0.2270640863346444,
    0.03336889902393011,
    -0.005320077271596548,
    0.0008788656937820505,
    -0.00014773492650606044,
    2.5060543468359146e-05,
    -4.2721034029993324e-06,
    7.302769272465923e-07,
    -1.2502886813559594e-07,
    2.1425009322359472e-08,
    -3.673295918565179e-09,
    6.299717236108931e-10,
    -1.080593028883266e-10,
    1.853735192053638e-11,
    -3.18023536582553e-12,
    5.456147570322795e-13,
    -9.360993131036438e-14,
    1.606064636295075e-14,
    -2.7555431377438815e-15,
    4.727736178601912e-16,
    -8.11148420346509e-17,
    1.391707769474154e-17,
]
ROOT, ROOT_REST = 1.4616321449683622, 9.549995429965697e-17
# x^2 (ln x - 1 / (2 x) - psi(x)) in 1 / x^2, for x >= 3
DIGAMMA_FAR = [
    0.08288720722321932,
    -0.00044074791499411445,
    5.245576777611536e-06,
    -1.2742250304129565e-07,
    4.911564646648939e-09,
    -2.6420133309888183e-10,
    1.8337965958534493e-11,
    -1.5583788191072602e-12,
    1.5622139887800646e-13,
    -1.79735151905781e-14,
    2.324272489691735e-15,
    -3.3238491759072856e-16,
    5.188973740894265e-17,
    -8.751159399337946e-18,
    1.5807522900784487e-18,
]

# B_2j / (2j)!
BERNOULLI = [1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600]
BERNOULLI += [-3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000]
STEPS = 10  # terms of zeta before the integral


def stirling(m: Functions[Value], x: Value) -> Value:
    """What Stirling's formula leaves of ln Gamma, for x >= 3."""
    return series(18 / (x * x) - 1, STIRLING) / x


def _fraction(m: Functions[Value], x: Value) -> Value:
    """The distance to the nearest integer, from -1/2 to 1/2; exact."""
    return x - m.round(x)


def log_gamma_of(m: Functions[Value], x: Value) -> Value:
    """ln |Gamma(x)|."""
    y = m.abs(x)
    far = m.where(y < 3, 3.0, y)
    large = (far - 0.5) * m.log(far) - far + 0.5 * math.log(2 * math.pi) + stirling(m, far)
    # near the roots u is exact: y - 2, or y - 1 after one step of the recurrence, or y after two
    u = m.where(y < 0.5, y, m.where(y < 1.5, y - 1, m.where(y < 3, y - 2, 0.0)))
    near = u * series((u - 0.25) / 0.75, LOG_GAMMA)
    steps = m.where(y < 0.5, y * (1 + y), m.where(y < 1.5, y, 1.0))
    value = m.where(y < 3, near - m.log(steps), m.where(y == math.inf, math.inf, large))
    # Gamma(-y) Gamma(y) = -pi / (y sin(pi y))
    finite = m.where(y == math.inf, 0.0, y)
    size = m.abs(finite * m.sin(math.pi * _fraction(m, finite))) / math.pi
    mirrored = m.where(size == 0, math.inf, -m.log(m.where(size == 0, 1.0, size)) - value)
    return m.where(x < 0, mirrored, value)


def digamma_of(m: Functions[Value], x: Value) -> Value:
    """psi(x)."""
    negative = x < 0
    y = m.where(negative, 1 - x, x)
    far = m.where(y < 3, 3.0, y)
    w = 1 / (far * far)
    large = m.log(far) - 0.5 / far - w * series(18 * w - 1, DIGAMMA_FAR)
    z = m.where(y < 1, y + 1, m.where(y < 2, y, m.where(y < 3, y - 1, 1.0)))
    near = ((z - ROOT) - ROOT_REST) * series(2 * z - 3, DIGAMMA_NEAR)
    step = m.where(y < 1, -y, m.where(y < 2, math.inf, y - 1))
    value = m.where(y < 3, near + 1 / step, large)
    turn = _fraction(m, m.where(negative, x, 0.25))
    mirrored = value - math.pi / m.tan(math.pi * turn)
    return m.where(negative, m.where(turn == 0, math.nan, mirrored), value)


def zeta_of(m: Functions[Value], s: Value | float, q: Value) -> Value:
    """The sum of (q + k)^-s over k >= 0: some terms, and Euler and Maclaurin's formula for the rest."""
    total = m.power(q, -s)
    for k in range(1, STEPS):
        total = total + m.power(q + k, -s)
    y = q + STEPS
    w = 1 / (y * y)
    correction: Value | float = 0.0
    factor = s / y
    for j, b in enumerate(BERNOULLI):
        correction = correction + b * factor
        factor = factor * (s + 2 * j + 1) * (s + 2 * j + 2) * w
    return total + m.power(y, 1 - s) / (s - 1) + m.power(y, -s) * (0.5 + correction)


def polygamma_of(m: Functions[Value], x: Value, n: int) -> Value:
    """The n-th derivative of psi, for n >= 1."""
    sign = -1.0 if n % 2 == 0 else 1.0
    negative = x <= 0
    y = m.where(negative, 1 - x, x)
    value = sign * math.factorial(n) * zeta_of(m, n + 1.0, y)
    turn = _fraction(m, m.where(negative, x, 0.25))
    pole = turn == 0
    c = 1 / m.tan(math.pi * m.where(pole, 0.25, turn))
    derivative: Value | float = 0.0
    for k in reversed(_cotangent(n)):
        derivative = derivative * c + float(k)
    mirrored = -sign * value - math.pi ** (n + 1) * derivative
    return m.where(negative, m.where(pole, sign * math.inf, mirrored), value)


def _cotangent(n: int) -> list[int]:
    """The n-th derivative of the cotangent as a polynomial in it: c' = -(1 + c^2)."""
    p = [0, 1]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(p)][1:]
        p = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return p


lgamma: Composed = Composed("lgamma", log_gamma_of, (lambda out, x: digamma(x),))
digamma: Composed = Composed("digamma", digamma_of, (lambda out, x: polygamma(x, n=1),))
polygamma: Composed = Composed("polygamma", polygamma_of, (lambda out, x, n: polygamma(x, n=n + 1),))
zeta: Composed = Composed("zeta", zeta_of, (None, lambda out, s, q: -s * zeta(s + 1, q)))
