"""Series made from a formula and a seed, (time, channels): the same seed gives the same series."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.arguments import as_int, as_list, as_number
from ..core.errors import InputError
from ..core.typing import Array, DTypeLike
from ..data.generators import Seed
from ..data.randomness import as_generator


def make_sines(
    n: int = 500,
    periods: Sequence[float] = (20.0, 50.0),
    amplitudes: Sequence[float] | None = None,
    *,
    noise: float = 0.0,
    seed: Seed = 0,
    dtype: DTypeLike = np.float32,
) -> Array:
    r"""\(x_t = \sum_j a_j \sin(2\pi t / p_j) + \epsilon_t\).

    >>> import wonderland as wl
    >>> wl.series.make_sines(8, periods=[4], dtype=float).round(6)[:4, 0] + 0.0
    array([ 0.,  1.,  0., -1.])
    """
    n = as_int("make_sines", "n", n, least=1)
    found = [float(as_number("make_sines", "a period", p)) for p in as_list("make_sines", "periods", periods)]
    sizes = [1.0] * len(found) if amplitudes is None else as_list("make_sines", "amplitudes", amplitudes)
    if not found or min(found) <= 0 or len(sizes) != len(found):
        raise InputError(
            f"make_sines: periods={found} and amplitudes={sizes}.", "periods above 0, and as many amplitudes"
        )
    t = np.arange(n)
    x = sum(a * np.sin(2 * np.pi * t / p) for a, p in zip(sizes, found, strict=True))
    return _noisy("make_sines", x, noise, seed).astype(dtype)


def make_seasonal(
    n: int = 240,
    period: int = 12,
    *,
    level: float = 10.0,
    trend: float = 0.05,
    amplitude: float = 2.0,
    noise: float = 0.2,
    seed: Seed = 0,
    dtype: DTypeLike = np.float32,
) -> Array:
    r"""A level, a trend and a season that repeats: \(x_t = l + b\,t + a\sin(2\pi t/p) + \epsilon_t\).

    >>> import wonderland as wl
    >>> x = wl.series.make_seasonal(24, period=12, noise=0.0)
    >>> (x[12:] - x[:12]).round(4)[:3, 0]  # a year is 12 steps of the trend
    array([0.6, 0.6, 0.6], dtype=float32)
    """
    n, period = as_int("make_seasonal", "n", n, least=1), as_int("make_seasonal", "period", period, least=1)
    t = np.arange(n)
    x = level + trend * t + amplitude * np.sin(2 * np.pi * t / period)
    return _noisy("make_seasonal", x, noise, seed).astype(dtype)


def make_ar(
    n: int = 500,
    coefficients: Sequence[float] = (0.8,),
    *,
    noise: float = 1.0,
    constant: float = 0.0,
    seed: Seed = 0,
    burn_in: int = 200,
    dtype: DTypeLike = np.float32,
) -> Array:
    r"""An autoregressive series \(x_t = c + \sum_{j=1}^p a_j x_{t-j} + \epsilon_t\) with normal \(\epsilon_t\).

    >>> import wonderland as wl
    >>> wl.series.make_ar(1000, [0.5, 0.3]).shape
    (1000, 1)

    The best forecast of the next value has the mean squared error noise². `burn_in` values before the first are
    thrown away. A series that explodes, because a root of \(z^p - a_1 z^{p-1} - \dots - a_p\) lies on or outside the
    unit circle, is refused; `make_random_walk` has such a root.
    """
    n = as_int("make_ar", "n", n, least=1)
    burn_in = as_int("make_ar", "burn_in", burn_in, least=0)
    a = np.array([as_number("make_ar", "a coefficient", c) for c in as_list("make_ar", "coefficients", coefficients)])
    if not len(a):
        raise InputError("make_ar: there are no coefficients.", "one or more")
    if np.abs(np.roots([1.0, *-a])).max(initial=0.0) >= 1:
        raise InputError(f"make_ar: a series with coefficients {a.tolist()} is not stationary.", "smaller ones")
    e = as_generator("make_ar", seed).normal(size=n + burn_in) * _deviation("make_ar", noise) + constant
    x = np.zeros(n + burn_in + len(a))
    for t in range(n + burn_in):
        x[t + len(a)] = x[t : t + len(a)] @ a[::-1] + e[t]
    return x[-n:, None].astype(dtype)


def make_narma(
    n: int = 1000,
    order: int = 10,
    *,
    seed: Seed = 0,
    burn_in: int = 200,
    dtype: DTypeLike = np.float32,
) -> tuple[Array, Array]:
    r"""NARMA, a nonlinear moving average: inputs u and the series y that they drive, both (n, 1).

    \(y_{t+1} = 0.3\,y_t + 0.05\,y_t \sum_{i=0}^{k-1} y_{t-i} + 1.5\,u_{t-k+1} u_t + 0.1\), with u uniform in [0, 0.5)

    >>> import wonderland as wl
    >>> u, y = wl.series.make_narma(500)
    >>> u.shape, y.shape
    ((500, 1), (500, 1))

    To tell y from u a model has to remember products of inputs k = `order` steps back; the task is the usual test of a
    reservoir. `y[t]` depends on inputs before `u[t]`. `burn_in` values before the first are thrown away. Orders above
    10 may diverge, and are refused.
    """
    n, order = as_int("make_narma", "n", n, least=1), as_int("make_narma", "order", order, least=1)
    burn_in = as_int("make_narma", "burn_in", burn_in, least=0)
    if order > 10:
        raise InputError(f"make_narma: order={order} may diverge.", "an order from 1 to 10")
    count = n + burn_in + order
    u = as_generator("make_narma", seed).uniform(0.0, 0.5, count)
    y = np.zeros(count)
    for t in range(order - 1, count - 1):
        past = y[t - order + 1 : t + 1].sum()
        y[t + 1] = 0.3 * y[t] + 0.05 * y[t] * past + 1.5 * u[t - order + 1] * u[t] + 0.1
    return u[-n:, None].astype(dtype), y[-n:, None].astype(dtype)


def make_random_walk(
    n: int = 500,
    channels: int = 1,
    *,
    drift: float = 0.0,
    noise: float = 1.0,
    seed: Seed = 0,
    dtype: DTypeLike = np.float32,
) -> Array:
    r"""\(x_t = x_{t-1} + \mathrm{drift} + \epsilon_t\) from 0 on; its best forecast is `naive`.

    >>> import wonderland as wl
    >>> wl.series.make_random_walk(4, drift=2.0, noise=0.0)[:, 0]
    array([0., 2., 4., 6.], dtype=float32)
    """
    n, channels = as_int("make_random_walk", "n", n, least=1), as_int("make_random_walk", "channels", channels, least=1)
    steps = as_generator("make_random_walk", seed).normal(size=(n, channels)) * _deviation("make_random_walk", noise)
    steps += drift
    steps[0] = 0
    return steps.cumsum(axis=0).astype(dtype)


def make_lorenz(
    n: int = 1000,
    dt: float = 0.02,
    *,
    start: Sequence[float] = (1.0, 1.0, 1.0),
    sigma: float = 10.0,
    rho: float = 28.0,
    beta: float = 8 / 3,
    substeps: int = 4,
    dtype: DTypeLike = np.float32,
) -> Array:
    r"""The Lorenz system \(\dot x = \sigma(y - x),\ \dot y = x(\rho - z) - y,\ \dot z = xy - \beta z\): (n, 3).

    >>> import wonderland as wl
    >>> wl.series.make_lorenz(3)[0]
    array([1., 1., 1.], dtype=float32)

    Chaotic: deterministic, yet beyond a few units of time no forecast holds. Runge-Kutta of order 4, `substeps` for
    each value.
    """
    n, substeps = as_int("make_lorenz", "n", n, least=1), as_int("make_lorenz", "substeps", substeps, least=1)
    if not as_number("make_lorenz", "dt", dt) > 0 or len(start) != 3:
        raise InputError(f"make_lorenz: dt={dt}, start={start}.", "dt > 0, and three numbers")

    def rate(s: Array) -> Array:
        x, y, z = s
        return np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])

    h = dt / substeps
    states = np.empty((n, 3))
    s = np.array(start, np.float64)
    for t in range(n):
        states[t] = s
        for _ in range(substeps):
            k1 = rate(s)
            k2 = rate(s + h / 2 * k1)
            k3 = rate(s + h / 2 * k2)
            k4 = rate(s + h * k3)
            s = s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return states.astype(dtype)


def _deviation(name: str, noise: float) -> float:
    if not as_number(name, "noise", noise) >= 0:
        raise InputError(f"{name}: noise={noise}.", "a standard deviation, 0 or more")
    return float(noise)


def _noisy(name: str, x: Array, noise: float, seed: Seed) -> Array:
    deviation = _deviation(name, noise)
    x = np.asarray(x, np.float64)
    if deviation:
        x = x + as_generator(name, seed).normal(size=x.shape) * deviation
    return x[:, None]
