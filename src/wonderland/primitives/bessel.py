"""The modified Bessel functions of the first kind, of order 0 and 1, and their scaled forms exp(-|x|) I(x).

Two Chebyshev series each: up to 8, and beyond it in 1 / x.
"""

from __future__ import annotations

import math

from ..core.tensor import Tensor
from .composed import Composed, Functions, Value, series
from .elementwise import abs_, exp, sign, where

# exp(-x) I0(x) from 0 to 8
I0_NEAR = [
    0.33839763720473803,
    -0.3046826723431984,
    0.17162090152220877,
    -0.09490109704804764,
    0.04930528423967071,
    -0.02373741480589947,
    0.010546460394594998,
    -0.004324309995050576,
    0.0016394756169413357,
    -0.0005763755745385824,
    0.00018850288509584165,
    -5.754195010082104e-05,
    1.6448448070728896e-05,
    -4.4167383584587505e-06,
    1.1173875391201037e-06,
    -2.670793853940612e-07,
    6.046995022541919e-08,
    -1.300025009986248e-08,
    2.6598237246823866e-09,
    -5.189795601635263e-10,
    9.675809035373237e-11,
    -1.726826291441556e-11,
    2.95505266312964e-12,
    -4.856446783111929e-13,
    7.676185498604936e-14,
    -1.1685332877993451e-14,
    1.715391285555133e-15,
    -2.431279846547955e-16,
    3.3307945188222384e-17,
    -4.4153416464793395e-18,
]

# sqrt(x) exp(-x) I0(x) in 1 / x, from 8 on
I0_FAR = [
    0.4022452055070544,
    0.0033691164782556943,
    6.889758346916825e-05,
    2.8913705208347567e-06,
    2.0489185894690638e-07,
    2.266668990498178e-08,
    3.3962320257083865e-09,
    4.94060238822497e-10,
    1.1889147107846439e-11,
    -3.1499165279632416e-11,
    -1.3215811840447713e-11,
    -1.7941785315068062e-12,
    7.180124451383666e-13,
    3.8527783827421426e-13,
    1.54008621752141e-14,
    -4.150569347287222e-14,
    -9.554846698828307e-15,
    3.8116806693526224e-15,
    1.7725601330565263e-15,
    -3.425485619677219e-16,
    -2.8276239805165836e-16,
    3.461222867697461e-17,
    4.46562142029676e-17,
    -4.830504485944182e-18,
    -7.233180487874754e-18,
]

# exp(-x) I1(x) / x from 0 to 8
I1_NEAR = [
    0.12629359322181682,
    -0.17641651835783406,
    0.1026436586898471,
    -0.05294598120809499,
    0.024726449030626516,
    -0.010564084894626197,
    0.004156422944312888,
    -0.0015135724506312532,
    0.0005122859561685758,
    -0.00016176081582589674,
    4.781565107550054e-05,
    -1.3273163656039436e-05,
    3.4702513081376785e-06,
    -8.568720264695455e-07,
    2.0032947535521353e-07,
    -4.445059128796328e-08,
    9.381537386495773e-09,
    -1.8872497517228294e-09,
    3.625590281552117e-10,
    -6.663489723502027e-11,
    1.1736186298890901e-11,
    -1.9839743977649436e-12,
    3.223793365945575e-13,
    -5.042185504727912e-14,
    7.600684294735408e-15,
    -1.1055969477353862e-15,
    1.5536319577362005e-16,
    -2.111421214358166e-17,
    2.7779141127610464e-18,
]

# sqrt(x) exp(-x) I1(x) in 1 / x, from 8 on
I1_FAR = [
    0.38928811750914005,
    -0.009761097491361469,
    -0.00011058893876262371,
    -3.882564808877691e-06,
    -2.512236237870209e-07,
    -2.6314688468895196e-08,
    -3.835380385964237e-09,
    -5.589743462196584e-10,
    -1.8974958123505413e-11,
    3.2526035830154884e-11,
    1.4125807436613782e-11,
    2.0356285441470896e-12,
    -7.198551776245908e-13,
    -4.0835511110921974e-13,
    -2.1015418427726643e-14,
    4.272440016711951e-14,
    1.0420276984128802e-14,
    -3.8144030724370075e-15,
    -1.8803547755107825e-15,
    3.3082023109209285e-16,
    2.96262899764595e-16,
    -3.209525921993424e-17,
    -4.6503053684893586e-17,
    4.414348323071708e-18,
    7.517296310842105e-18,
]


def _scaled(m: Functions[Value], y: Value, near: list[float], far: list[float]) -> tuple[Value, Value]:
    """The series up to 8 and the one beyond it, of the size y."""
    inner = series(m.minimum(y, 8.0) / 4 - 1, near)
    large = m.maximum(y, 8.0)
    return inner, series(16 / large - 1, far) / m.sqrt(large)


def i0e_of(m: Functions[Value], x: Value) -> Value:
    y = m.abs(x)
    inner, outer = _scaled(m, y, I0_NEAR, I0_FAR)
    return m.where(y <= 8, inner, outer)


def i1e_of(m: Functions[Value], x: Value) -> Value:
    y = m.abs(x)
    inner, outer = _scaled(m, y, I1_NEAR, I1_FAR)
    return m.where(y <= 8, inner * x, m.sign(x) * outer)


def i0_of(m: Functions[Value], x: Value) -> Value:
    half = m.exp(0.5 * m.abs(x))
    return m.where(m.abs(x) == math.inf, math.inf, i0e_of(m, x) * half * half)


def i1_of(m: Functions[Value], x: Value) -> Value:
    half = m.exp(0.5 * m.abs(x))
    return m.where(m.abs(x) == math.inf, x, i1e_of(m, x) * half * half)


def _over_x(x: Tensor, value: Tensor, scale: Tensor) -> Tensor:
    """I1(x) / x times a scale; near 0 from the power series, which has all derivatives there."""
    near = abs_(x) < 1
    w = where(near, x, x * 0)
    w = w * w * 0.25
    total: Tensor | float = 1.0
    for k in range(12, 0, -1):
        total = 1 + total * w / (k * (k + 1))
    return where(near, 0.5 * total * scale, value / where(near, x * 0 + 1, x))


i0: Composed = Composed("i0", i0_of, (lambda out, x: i1(x),))
i1: Composed = Composed("i1", i1_of, (lambda out, x: i0(x) - _over_x(x, out, x * 0 + 1),))
i0e: Composed = Composed("i0e", i0e_of, (lambda out, x: i1e(x) - sign(x) * out,))
i1e: Composed = Composed("i1e", i1e_of, (lambda out, x: i0e(x) - _over_x(x, out, exp(-abs_(x))) - sign(x) * out,))
