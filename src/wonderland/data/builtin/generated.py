"""Datasets made from a formula and a seed: each returns features X and targets y. The same seed gives the same data.

X is (n, d) float32 and y (n,) is int64 for classes and float32 for numbers, unless `dtype` says otherwise. Names and
options are scikit-learn's where it has the same set.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.typing import ArrayLike, DTypeLike
from ..generators import Seed
from ..randomness import as_generator

Pair = tuple[np.ndarray, np.ndarray]


def make_xor(n_samples: int = 4, *, noise: float = 0.0, seed: Seed = 0, dtype: DTypeLike = np.float32) -> Pair:
    """Exclusive or: y = 1 when exactly one of two bits is set. Book, section 5.1 (figure 5.1).

    >>> import wonderland as wl
    >>> X, y = wl.data.make_xor()
    >>> X.tolist(), y.tolist()
    ([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0])

    With more samples the four corners come in turn, moved by normal `noise`. No line separates the classes: at most
    three corners of four lie on their side.
    """
    n = as_int("make_xor", "n_samples", n_samples, least=1)
    corners, labels = make_parity(2)
    which = np.arange(n) % 4
    return _jittered("make_xor", corners[which], noise, seed).astype(dtype), labels[which]


def make_parity(d: int = 3, n_samples: int | None = None, *, seed: Seed = 0, dtype: DTypeLike = np.float32) -> Pair:
    r"""\(d\) bits and their sum modulo 2, the general form of xor: any one bit flips it. Book, section 5.2.1.

    >>> import wonderland as wl
    >>> X, y = wl.data.make_parity(3)
    >>> X.shape, y.tolist()
    ((8, 3), [0, 1, 1, 0, 1, 0, 0, 1])

    All \(2^d\) inputs in order, or `n_samples` of them drawn with replacement.
    """
    d = as_int("make_parity", "d", d, least=1)
    if n_samples is None:
        if d > 20:
            raise InputError(f"make_parity: all inputs of {d} bits are 2**{d} rows.", "n_samples=10_000")
        bits = (np.arange(2**d)[:, None] >> np.arange(d)[::-1]) & 1
    else:
        n = as_int("make_parity", "n_samples", n_samples, least=1)
        bits = as_generator("make_parity", seed).integers(0, 2, (n, d))
    return bits.astype(dtype), bits.sum(axis=1) % 2


def make_moons(
    n_samples: int = 100, *, shuffle: bool = True, noise: float = 0.0, seed: Seed = 0, dtype: DTypeLike = np.float32
) -> Pair:
    """Two half circles that reach into each other.

    >>> import wonderland as wl
    >>> X, y = wl.data.make_moons(200, noise=0.1)
    >>> X.shape, y.shape
    ((200, 2), (200,))
    """
    n = as_int("make_moons", "n_samples", n_samples, least=2)
    outer, inner = np.linspace(0, np.pi, n // 2), np.linspace(0, np.pi, n - n // 2)
    X = np.concatenate(
        [np.stack([np.cos(outer), np.sin(outer)], 1), np.stack([1 - np.cos(inner), 0.5 - np.sin(inner)], 1)]
    )
    return _two_classes("make_moons", X, n // 2, shuffle, noise, seed, dtype)


def make_circles(
    n_samples: int = 100,
    *,
    shuffle: bool = True,
    noise: float = 0.0,
    factor: float = 0.8,
    seed: Seed = 0,
    dtype: DTypeLike = np.float32,
) -> Pair:
    """A circle of radius 1 (class 0) around one of radius `factor` (class 1).

    >>> import wonderland as wl
    >>> X, y = wl.data.make_circles(100, factor=0.5)
    >>> sorted(set((X**2).sum(axis=1).round(3).tolist()))
    [0.25, 1.0]
    """
    n = as_int("make_circles", "n_samples", n_samples, least=2)
    if not 0 <= as_number("make_circles", "factor", factor) < 1:
        raise InputError(f"make_circles: factor={factor!r}.", "0 or more, and below 1")
    outer, inner = (np.linspace(0, 2 * np.pi, m, endpoint=False) for m in (n // 2, n - n // 2))
    X = np.concatenate(
        [np.stack([np.cos(outer), np.sin(outer)], 1), factor * np.stack([np.cos(inner), np.sin(inner)], 1)]
    )
    return _two_classes("make_circles", X, n // 2, shuffle, noise, seed, dtype)


def make_blobs(
    n_samples: int = 100,
    n_features: int = 2,
    *,
    centers: int | ArrayLike = 3,
    cluster_std: float | Sequence[float] = 1.0,
    center_box: tuple[float, float] = (-10.0, 10.0),
    shuffle: bool = True,
    seed: Seed = 0,
    dtype: DTypeLike = np.float32,
) -> Pair:
    """A normal cloud around each of some centres, which are given (k, d) or drawn from a box.

    >>> import wonderland as wl
    >>> X, y = wl.data.make_blobs(90, centers=[[0.0, 0.0], [5.0, 5.0]], cluster_std=[0.1, 1.0])
    >>> X.shape, sorted(set(y.tolist()))
    ((90, 2), [0, 1])
    """
    rng = as_generator("make_blobs", seed)
    n = as_int("make_blobs", "n_samples", n_samples, least=1)
    if np.ndim(centers) == 0:
        k = as_int("make_blobs", "centers", centers, least=1)
        centers = rng.uniform(*center_box, (k, as_int("make_blobs", "n_features", n_features, least=1)))
    centers = np.asarray(centers, np.float64)
    if centers.ndim != 2:
        raise ShapeError(f"make_blobs: centers of shape {centers.shape}.", "(number of centres, features)")
    k, d = centers.shape
    deviations = np.broadcast_to(np.asarray(cluster_std, np.float64), (k,))
    if not (deviations >= 0).all():
        raise InputError(f"make_blobs: cluster_std={cluster_std!r}.", "standard deviations of 0 or more")
    y = np.sort(np.arange(n) % k)  # the first n % k centres get one more
    X = centers[y] + deviations[y, None] * rng.standard_normal((n, d))
    order = rng.permutation(n) if shuffle else np.arange(n)
    return X[order].astype(dtype), y[order]


def make_spirals(
    n_samples: int = 200,
    *,
    n_classes: int = 2,
    turns: float = 1.5,
    shuffle: bool = True,
    noise: float = 0.0,
    seed: Seed = 0,
    dtype: DTypeLike = np.float32,
) -> Pair:
    """Arms that wind around the origin, one per class, from radius 0.1 to 1.

    >>> import wonderland as wl
    >>> X, y = wl.data.make_spirals(300, n_classes=3)
    >>> [int((y == label).sum()) for label in range(3)]
    [100, 100, 100]
    """
    n = as_int("make_spirals", "n_samples", n_samples, least=1)
    k = as_int("make_spirals", "n_classes", n_classes, least=1)
    y = np.sort(np.arange(n) % k)
    along = np.concatenate([np.linspace(0, 1, int((y == label).sum())) for label in range(k)])
    angle = 2 * np.pi * (turns * along + y / k)
    X = (0.1 + 0.9 * along)[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    return _finished("make_spirals", X, y, shuffle, noise, seed, dtype)


def make_swiss_roll(
    n_samples: int = 100, *, noise: float = 0.0, hole: bool = False, seed: Seed = 0, dtype: DTypeLike = np.float32
) -> Pair:
    r"""A sheet rolled up in space, \((t\cos t,\, h,\, t\sin t)\); the target is the place \(t\) along the roll.

    >>> import wonderland as wl
    >>> X, t = wl.data.make_swiss_roll(50)
    >>> X.shape, bool(((X[:, 0] ** 2 + X[:, 2] ** 2 - t**2) < 1e-3).all())
    ((50, 3), True)
    """
    rng = as_generator("make_swiss_roll", seed)
    n = as_int("make_swiss_roll", "n_samples", n_samples, least=1)
    if hole:
        # eight of the nine squares of a 3 x 3 sheet
        squares = np.array([(i, j) for i, j in itertools.product(range(3), range(3)) if (i, j) != (1, 1)])
        place = squares[rng.integers(0, 8, n)] + rng.random((n, 2))
        t, height = 1.5 * np.pi + place[:, 0] * np.pi, 7 * place[:, 1]
    else:
        t, height = 1.5 * np.pi * (1 + 2 * rng.random(n)), 21 * rng.random(n)
    X = np.stack([t * np.cos(t), height, t * np.sin(t)], 1) + _deviation("make_swiss_roll", noise) * (
        rng.standard_normal((n, 3))
    )
    return X.astype(dtype), t.astype(dtype)


def make_regression(
    n_samples: int = 100,
    n_features: int = 10,
    *,
    n_informative: int | None = None,
    bias: float = 0.0,
    noise: float = 0.0,
    coef: bool = False,
    seed: Seed = 0,
    dtype: DTypeLike = np.float32,
) -> tuple[np.ndarray, ...]:
    r"""\(y = Xw + b + \varepsilon\): X is standard normal, w uniform on (0, 100), \(\varepsilon\) normal.

    >>> import wonderland as wl
    >>> X, y, w = wl.data.make_regression(50, 3, coef=True)
    >>> X.shape, y.shape, w.shape
    ((50, 3), (50,), (3,))

    `n_informative` features have a weight, all by default; `coef=True` returns w as well.
    """
    rng = as_generator("make_regression", seed)
    n = as_int("make_regression", "n_samples", n_samples, least=1)
    d = as_int("make_regression", "n_features", n_features, least=1)
    k = d if n_informative is None else min(as_int("make_regression", "n_informative", n_informative, least=0), d)
    w = np.zeros(d)
    w[rng.permutation(d)[:k]] = 100 * rng.random(k)
    X = rng.standard_normal((n, d))
    y = X @ w + bias + _deviation("make_regression", noise) * rng.standard_normal(n)
    result = (X.astype(dtype), y.astype(dtype))
    return (*result, w.astype(dtype)) if coef else result


def make_sine(
    n_samples: int = 100,
    *,
    noise: float = 0.1,
    frequency: float = 1.0,
    interval: tuple[float, float] = (0.0, 1.0),
    seed: Seed = 0,
    dtype: DTypeLike = np.float32,
) -> Pair:
    r"""\(y = \sin(2\pi f x) + \varepsilon\) for x drawn uniformly from an interval, in rising order.

    >>> import wonderland as wl
    >>> X, y = wl.data.make_sine(20)
    >>> X.shape, y.shape
    ((20, 1), (20,))
    """
    rng = as_generator("make_sine", seed)
    n = as_int("make_sine", "n_samples", n_samples, least=1)
    x = np.sort(rng.uniform(*interval, n))
    y = np.sin(2 * np.pi * frequency * x) + _deviation("make_sine", noise) * rng.standard_normal(n)
    return x[:, None].astype(dtype), y.astype(dtype)


def make_income_rule(
    n_samples: int = 500, *, flipped: float = 0.0, scale: bool = False, seed: Seed = 0, dtype: DTypeLike = np.float32
) -> Pair:
    """Income and age, and whether the income is low for that age. Book, section 5.1.

    >>> import wonderland as wl
    >>> X, y = wl.data.make_income_rule(6)
    >>> X.shape  # income in [500, 2500), age in [18, 65)
    (6, 2)

    y = 1 (low) when income <= 1500, except if age < 30. What the income says depends on the age, and no linear model
    can express that. `flipped` is the share of labels turned over; `scale=True` puts both features into [0, 1).
    """
    rng = as_generator("make_income_rule", seed)
    n = as_int("make_income_rule", "n_samples", n_samples, least=1)
    income, age = rng.uniform(500, 2500, n), rng.uniform(18, 65, n)
    low = (income <= 1500) & (age >= 30)
    y = (low ^ (rng.random(n) < _probability("make_income_rule", "flipped", flipped))).astype(np.int64)
    X = np.stack([(income - 500) / 2000, (age - 18) / 47] if scale else [income, age], 1)
    return X.astype(dtype), y


def make_heteroscedastic(
    n_samples: int = 200, *, noise: tuple[float, float] = (0.05, 0.5), seed: Seed = 0, dtype: DTypeLike = np.float32
) -> Pair:
    r"""\(y = \sin(2\pi x) + \sigma(x)\varepsilon\), whose noise \(\sigma\) grows linearly from x = 0 to x = 1.

    >>> import wonderland as wl
    >>> X, y = wl.data.make_heteroscedastic(50)
    >>> X.shape, y.shape
    ((50, 1), (50,))
    """
    rng = as_generator("make_heteroscedastic", seed)
    n = as_int("make_heteroscedastic", "n_samples", n_samples, least=1)
    x = np.sort(rng.random(n))
    start, end = (_deviation("make_heteroscedastic", value) for value in noise)
    y = np.sin(2 * np.pi * x) + (start + (end - start) * x) * rng.standard_normal(n)
    return x[:, None].astype(dtype), y.astype(dtype)


def make_outliers(
    n_samples: int = 100,
    *,
    slope: float = 2.0,
    bias: float = 1.0,
    noise: float = 0.1,
    fraction: float = 0.1,
    size: float = 10.0,
    seed: Seed = 0,
    dtype: DTypeLike = np.float32,
) -> Pair:
    """A line with a little noise, of which a `fraction` of the points lies `size` too high.

    >>> import wonderland as wl
    >>> X, y = wl.data.make_outliers(100, noise=0.0)
    >>> int((abs(y - (2 * X[:, 0] + 1)) > 5).sum())
    10
    """
    rng = as_generator("make_outliers", seed)
    n = as_int("make_outliers", "n_samples", n_samples, least=1)
    x = rng.uniform(-1, 1, n)
    y = slope * x + bias + _deviation("make_outliers", noise) * rng.standard_normal(n)
    y[rng.permutation(n)[: round(n * _probability("make_outliers", "fraction", fraction))]] += size
    return x[:, None].astype(dtype), y.astype(dtype)


def make_imbalanced(
    n_samples: int = 1000,
    *,
    weights: Sequence[float] = (0.95, 0.05),
    separation: float = 2.0,
    n_features: int = 2,
    seed: Seed = 0,
    dtype: DTypeLike = np.float32,
) -> Pair:
    """Normal clouds, one per class, `separation` apart along the diagonal, with exactly the given shares of examples.

    >>> import wonderland as wl
    >>> X, y = wl.data.make_imbalanced(200)
    >>> int((y == 1).sum())
    10
    """
    rng = as_generator("make_imbalanced", seed)
    n = as_int("make_imbalanced", "n_samples", n_samples, least=1)
    d = as_int("make_imbalanced", "n_features", n_features, least=1)
    shares = np.asarray(weights, np.float64)
    if shares.ndim != 1 or not len(shares) or (shares < 0).any() or not np.isclose(shares.sum(), 1):
        raise InputError(f"make_imbalanced: weights={weights!r}.", "shares of 0 or more that sum to 1")
    bounds = np.round(np.cumsum(shares) * n).astype(int)
    y = np.repeat(np.arange(len(shares)), np.diff(bounds, prepend=0))
    X = rng.standard_normal((n, d)) + separation / np.sqrt(d) * y[:, None]
    order = rng.permutation(n)
    return X[order].astype(dtype), y[order]


def make_bimodal(n_samples: int = 100, *, noise: float = 0.0, seed: Seed = 0, dtype: DTypeLike = np.float32) -> Pair:
    """A target that is +1 or -1 with equal probability whatever x is. Book, section 3.2.2.

    >>> import wonderland as wl
    >>> X, y = wl.data.make_bimodal(100)
    >>> float(y.mean()), float(y.var())
    (0.0, 1.0)

    The best point prediction for the squared error is 0, which never occurs; a Gaussian fits variance 1. Both values
    come equally often (if n is even), so these are exact.
    """
    rng = as_generator("make_bimodal", seed)
    n = as_int("make_bimodal", "n_samples", n_samples, least=1)
    y = rng.permutation(np.where(np.arange(n) % 2, -1.0, 1.0))
    y += _deviation("make_bimodal", noise) * rng.standard_normal(n)
    return rng.uniform(-1, 1, (n, 1)).astype(dtype), y.astype(dtype)


def _two_classes(
    name: str, X: np.ndarray, first: int, shuffle: bool, noise: float, seed: Seed, dtype: DTypeLike
) -> Pair:
    """`first` examples of class 0, the others of class 1."""
    return _finished(name, X, (np.arange(len(X)) >= first).astype(np.int64), shuffle, noise, seed, dtype)


def _finished(
    name: str, X: np.ndarray, y: np.ndarray, shuffle: bool, noise: float, seed: Seed, dtype: DTypeLike
) -> Pair:
    rng = as_generator(name, seed)
    order = rng.permutation(len(X)) if shuffle else np.arange(len(X))
    return _jittered(name, X[order], noise, rng).astype(dtype), y[order]


def _jittered(name: str, X: np.ndarray, noise: float, seed: Seed) -> np.ndarray:
    scale = _deviation(name, noise)
    return X + scale * as_generator(name, seed).standard_normal(X.shape) if scale else X


def _deviation(name: str, noise: float) -> float:
    value = float(as_number(name, "noise", noise))
    if not (value >= 0 and np.isfinite(value)):
        raise InputError(f"{name}: noise={noise!r} is not a standard deviation.", "0 or more")
    return value


def _probability(name: str, what: str, value: float) -> float:
    if not 0 <= as_number(name, what, value) <= 1:
        raise InputError(f"{name}: {what}={value!r} is not a share.", "a number from 0 to 1")
    return float(value)
