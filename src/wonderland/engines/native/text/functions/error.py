"""The error function: 1 - exp(x P(x)) in float32, a series and exp(-x^2) P(t) / (x + 2) in float64."""

from __future__ import annotations

from collections.abc import Sequence

from .exponential import exp, expm1_below_zero
from .vector import Vector, absolute, copysign, fma, polynomial, where

# erf(x) = 1 - exp(x P(x)) up to 3.92, where it is 1 in float32; the last coefficient is what ERF_FIRST leaves of it
ERF_FIRST = -1.1283792257
ERF = [
    9.25616512e-6,
    -0.000117640519,
    0.000632834726,
    -0.00166702468,
    0.000160394473,
    0.0191530641,
    -0.10277783,
    -0.636619382,
    -1.12837917 + 1.1283792257,
]
# erf(x) = x + x P(x^2) up to 1
ERF_NEAR = [
    -7.775959986003431e-10,
    1.3709127227361829e-8,
    -1.6205891785505115e-7,
    1.6447077371628775e-6,
    -1.4924707987810989e-5,
    0.00012055293356774013,
    -0.00085483259221179871,
    0.0052239776059721625,
    -0.026866170643094159,
    0.1128379167094408,
    -0.37612638903183517,
    0.12837916709551257,
]
# erfc(x) = exp(-x^2) P(t) / (x + 2) with t = (x - 2) / (x + 2): to 10 digits for x >= 0, and to 17 from 1 to 6
ERFC_SHORT = [
    -4.6037968024594027e-6,
    2.1446665509714433e-5,
    0.00012015498244224915,
    3.6222368853756789e-5,
    -0.00064986138546779555,
    -0.00083616819188554761,
    0.0030871819213743826,
    0.0064787862139885611,
    -0.021510242360558831,
    -0.036442193740546923,
    0.27947207303208146,
    -0.68716068522189902,
    1.0215827053931211,
]
ERFC = [
    4.4454843851741686e-7,
    4.4857054091074269e-6,
    -6.9633442083057371e-7,
    -1.6476940613110569e-5,
    -2.1726839153648331e-5,
    3.4208888737646388e-5,
    0.00014446849446207817,
    3.4366262188958359e-5,
    -0.00066307306267000491,
    -0.00083729582060333727,
    0.0030906120352598476,
    0.0064791850618143891,
    -0.021510661888954579,
    -0.036442231506813021,
    0.27947209255605059,
    -0.68716068441381081,
    1.021582705242023,
]


def _complement(x: Vector, coefficients: Sequence[float]) -> Vector:
    """erfc(x) in float64."""
    share = 1.0 / (x + 2.0)
    return exp(-(x * x)) * polynomial((x - 2.0) * share, coefficients) * share


def erf(x: Vector) -> Vector:
    size = absolute(x)
    if x.single:
        size = size.below(3.92)
        power = fma(size, ERF_FIRST, size * polynomial(size, ERF))
        return copysign(expm1_below_zero(power), x)
    far = 1.0 - _complement(size.below(6.0), ERFC)
    return where(size < 1.0, fma(x, polynomial(x * x, ERF_NEAR), x), copysign(far, x))


def erfc(x: Vector) -> Vector:
    """Of a float32 in float64."""
    part = _complement(absolute(x).below(10.1), ERFC_SHORT)
    return where(x < 0.0, 2.0 - part, part)
