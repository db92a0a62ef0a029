"""Drift: whether new data still comes from the distribution of the training data. Book, section 3.1.

Three tests of two samples: Kolmogorov-Smirnov for each feature, the maximum mean discrepancy, and a classifier that
tries to tell them apart. Each gives a p-value: uniform if nothing has changed, small if something has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.arguments import as_int
from ..core.errors import InputError, ShapeError
from ..core.typing import Array, ArrayLike
from .generators import SPLIT, Seed, as_seed, generator

_EXACT_UP_TO = 200  # examples in both samples together; the limit formula is good to 0.01 beyond


class TwoSampleResult(NamedTuple):
    """The statistic of a test and its p-value: numbers, or one per feature."""

    statistic: Any
    pvalue: Any


def ks_test(a: ArrayLike, b: ArrayLike) -> TwoSampleResult:
    r"""Kolmogorov-Smirnov: the largest distance of the two empirical distributions, \(D = \sup_t |F_a(t) - F_b(t)|\).

    Samples (n,) and (m,), or (n, features) and (m, features) for one test per feature. The p-value is exact for small
    samples (if there are no ties; with ties it is too large, never too small), else from Kolmogorov's limit.

    >>> ks_test(np.arange(10.0), np.arange(10.0) + 5).statistic
    0.5
    """
    first, second = _two_samples("ks_test", a, b)
    found = [_ks(first[:, k], second[:, k]) for k in range(first.shape[1])]
    statistics, pvalues = np.array(found).T
    if np.asarray(a).ndim == 1:
        return TwoSampleResult(float(statistics[0]), float(pvalues[0]))
    return TwoSampleResult(statistics, pvalues)


def _ks(a: Array, b: Array) -> tuple[float, float]:
    a, b = np.sort(a), np.sort(b)
    both = np.concatenate([a, b])
    steps = np.searchsorted(a, both, side="right") * len(b) - np.searchsorted(b, both, side="right") * len(a)
    largest = int(np.abs(steps).max())  # D n m, an integer: no rounding decides what is as extreme
    n, m = len(a), len(b)
    if n + m <= _EXACT_UP_TO:
        return largest / (n * m), _ks_exact(n, m, largest)
    return largest / (n * m), _kolmogorov(largest / (n * m), n * m / (n + m))


def _ks_exact(n: int, m: int, largest: int) -> float:
    """P(D n m >= largest): one minus the probability that a random path from (0, 0) to (n, m) stays inside."""
    if largest == 0:
        return 1.0
    inside = np.zeros(n + 1)  # by i, the steps of the first kind; k = i + j steps altogether
    inside[0] = 1.0
    i = np.arange(n + 1)
    for k in range(1, n + m + 1):
        j = k - i
        left = n + m - k + 1  # elements not yet placed before this step
        from_first = np.concatenate([[0.0], inside[:-1]]) * (n - i + 1) / left
        from_second = inside * np.maximum(m - j + 1, 0) / left
        valid = (j >= 0) & (j <= m) & (np.abs(i * m - j * n) < largest)
        inside = np.where(valid, from_first + from_second, 0.0)
    return float(min(1.0, max(0.0, 1.0 - inside[n])))


def _kolmogorov(distance: float, effective: float) -> float:
    r"""\(2 \sum_k (-1)^{k-1} e^{-2 k^2 \lambda^2}\), with Stephens' correction of \(\lambda\) for finite samples."""
    root = math.sqrt(effective)
    scaled = (root + 0.12 + 0.11 / root) * distance
    if scaled < 0.2:  # the series converges slowly, and the value is 1 to twelve digits
        return 1.0
    total = sum((-1) ** (k - 1) * math.exp(-2.0 * (k * scaled) ** 2) for k in range(1, 101))
    return min(1.0, max(0.0, 2.0 * total))


def mmd_test(
    a: ArrayLike,
    b: ArrayLike,
    *,
    bandwidth: float | None = None,
    permutations: int = 200,
    most: int = 500,
    seed: Seed = 0,
) -> TwoSampleResult:
    r"""Maximum mean discrepancy: \(\mathbb{E}k(x, x') + \mathbb{E}k(y, y') - 2\,\mathbb{E}k(x, y)\), unbiased.

    k is a Gaussian kernel whose bandwidth is the median distance. The p-value counts random re-labellings that give as
    much. Of larger samples `most` examples each are used. It sees changes that no single feature shows, such as another
    correlation.

    >>> rng = np.random.default_rng(0)
    >>> mmd_test(rng.normal(size=(80, 2)), rng.normal(size=(80, 2)) + 1).pvalue < 0.01
    True
    """
    first, second = _two_samples("mmd_test", a, b)
    rng = generator(as_seed("mmd_test", seed), purpose=SPLIT)
    permutations = as_int("mmd_test", "permutations", permutations, least=1)
    first, second = (x if len(x) <= most else x[rng.choice(len(x), most, replace=False)] for x in (first, second))
    n, m = len(first), len(second)
    if min(n, m) < 2:
        raise InputError(f"mmd_test: samples of {n} and {m}.", "two examples or more in each")
    both = np.concatenate([first, second])
    both = both - both.mean(axis=0)  # distances keep their digits
    squares = (both**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2 * both @ both.T, 0.0)
    if bandwidth is None:
        bandwidth = math.sqrt(float(np.median(distances[np.triu_indices(n + m, 1)])) or 1.0)
    kernel = np.exp(distances / (-2.0 * bandwidth**2))
    np.fill_diagonal(kernel, 0.0)
    labels = np.zeros((permutations + 1, n + m))
    labels[0, :n] = 1.0
    for row in labels[1:]:
        row[rng.permutation(n + m)[:n]] = 1.0
    within_first = ((labels @ kernel) * labels).sum(axis=1)
    within_second = (((1 - labels) @ kernel) * (1 - labels)).sum(axis=1)
    across = (kernel.sum() - within_first - within_second) / 2
    values = within_first / (n * (n - 1)) + within_second / (m * (m - 1)) - 2 * across / (n * m)
    pvalue = (1 + np.sum(values[1:] >= values[0])) / (permutations + 1)
    return TwoSampleResult(float(values[0]), float(pvalue))


def classifier_test(
    a: ArrayLike, b: ArrayLike, *, fit: Callable[[Array, Array], Callable[[Array], Array]] | None = None, seed: Seed = 0
) -> TwoSampleResult:
    """Train a classifier to tell the samples apart; the statistic is its accuracy on examples that it has not seen.

    Equally many of both samples are used, half of them for training. If nothing has changed, the accuracy is 1/2 up to
    chance, and the p-value is the exact tail of the binomial distribution. `fit(x, labels)` gives a function from
    inputs to scores (positive: from b); the default is linear least squares on the features and their squares.

    >>> rng = np.random.default_rng(0)
    >>> classifier_test(rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + 1).pvalue < 0.01
    True
    """
    first, second = _two_samples("classifier_test", a, b)
    rng = generator(as_seed("classifier_test", seed), purpose=SPLIT)
    count = min(len(first), len(second))
    half = count // 2
    if half < 2:
        raise InputError(f"classifier_test: samples of {len(first)} and {len(second)}.", "four or more in each")
    first, second = first[rng.permutation(len(first))[:count]], second[rng.permutation(len(second))[:count]]
    x_train = np.concatenate([first[:half], second[:half]])
    x_test = np.concatenate([first[half:], second[half:]])
    score = (fit or _least_squares)(x_train, np.repeat([-1.0, 1.0], half))
    guesses = np.asarray(score(x_test)) > 0
    truth = np.repeat([False, True], count - half)
    right = int((guesses == truth).sum())
    return TwoSampleResult(right / len(truth), _binomial_tail(right, len(truth)))


def _least_squares(x: Array, labels: Array) -> Callable[[Array], Array]:
    center, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)

    def features(data: Array) -> Array:
        z = (data - center) / scale
        return np.concatenate([z, z**2, np.ones((len(z), 1))], axis=1)

    design = features(x)
    gram = design.T @ design + 1e-3 * len(x) * np.eye(design.shape[1])
    weights = np.linalg.solve(gram, design.T @ labels)
    return lambda data: features(data) @ weights


def _binomial_tail(k: int, n: int) -> float:
    """P(X >= k) for n fair coins."""
    logs = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) - n * math.log(2) for i in range(k, n + 1)]
    return min(1.0, math.fsum(map(math.exp, logs)))


def _two_samples(name: str, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    samples = []
    for x in (a, b):
        data = np.asarray(x, np.float64)
        if data.ndim == 0 or not len(data):
            raise InputError(f"{name}: a sample of shape {data.shape} is empty.", "one example or more per sample")
        if np.isnan(data).any():
            raise InputError(f"{name}: a sample has NaN.", "drop or fill missing values first")
        samples.append(data.reshape(len(data), -1))
    if samples[0].shape[1] != samples[1].shape[1]:
        raise ShapeError(
            f"{name}: samples with {samples[0].shape[1]} and {samples[1].shape[1]} features.", "the same features"
        )
    return samples[0], samples[1]


@dataclass(frozen=True)
class DriftReport:
    """What the three tests say of two samples. `drifted` is the verdict, `features` names the features that moved."""

    names: tuple[str, ...]
    ks: TwoSampleResult
    mmd: TwoSampleResult
    classifier: TwoSampleResult | None
    shifts: Array  # of the means, in standard deviations of the reference
    alpha: float

    @property
    def features(self) -> list[str]:
        """The features whose distribution moved; with d features each is tested at alpha / d."""
        limit = self.alpha / len(self.names)
        return [name for name, p in zip(self.names, self.ks.pvalue, strict=True) if p < limit]

    @property
    def drifted(self) -> bool:
        """Whether any of the kinds of test says so; each is tested at alpha / 3."""
        limit = self.alpha / 3
        by_feature = float(np.min(self.ks.pvalue)) < limit / len(self.names)
        by_classifier = self.classifier is not None and self.classifier.pvalue < limit
        return by_feature or self.mmd.pvalue < limit or by_classifier

    def __str__(self) -> str:
        lines = [f"drift: {'yes' if self.drifted else 'none found'} (alpha {self.alpha:g})"]
        lines.append(f"  mean discrepancy {self.mmd.statistic:.4f}, p = {self.mmd.pvalue:.4f}")
        if self.classifier is not None:
            lines.append(
                f"  a classifier tells them apart with accuracy {self.classifier.statistic:.3f}, "
                f"p = {self.classifier.pvalue:.4f}"
            )
        worst = np.argsort(self.ks.pvalue, kind="stable")[:10]
        width = max(len(self.names[k]) for k in worst)
        for k in worst:
            flag = "  <- moved" if self.names[k] in self.features else ""
            lines.append(
                f"  {self.names[k]:<{width}}  D = {self.ks.statistic[k]:.3f}, p = {self.ks.pvalue[k]:.2e}, "
                f"mean moved {self.shifts[k]:+.2f} sd{flag}"
            )
        if len(self.names) > len(worst):
            lines.append(f"  and {len(self.names) - len(worst)} more features")
        return "\n".join(lines)


def drift_report(
    reference: ArrayLike, current: ArrayLike, *, names: Sequence[str] | None = None, alpha: float = 0.01, seed: Seed = 0
) -> DriftReport:
    """Compare new data with the data a model was trained on: (n, features) and (m, features).

    >>> rng = np.random.default_rng(0)
    >>> train, production = rng.normal(size=(300, 3)), rng.normal(size=(300, 3)) + [0, 1, 0]
    >>> report = drift_report(train, production, names=["age", "income", "height"])
    >>> report.drifted, report.features
    (True, ['income'])

    Book, section 3.1.
    """
    first, second = _two_samples("drift_report", reference, current)
    known = tuple(names) if names is not None else tuple(f"feature {k}" for k in range(first.shape[1]))
    if len(known) != first.shape[1]:
        raise ShapeError(f"drift_report: {len(known)} names for {first.shape[1]} features.", "a name per feature")
    if not 0 < alpha < 1:
        raise InputError(f"drift_report: alpha={alpha} is no probability.", "a number such as 0.01")
    spread = first.std(axis=0)
    shifts = (second.mean(axis=0) - first.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    enough = min(len(first), len(second)) >= 4
    permutations = max(200, math.ceil(6 / alpha))  # the smallest p-value has to be able to reach alpha / 3
    return DriftReport(
        known,
        ks_test(first, second),
        mmd_test(first, second, seed=seed, permutations=permutations),
        classifier_test(first, second, seed=seed) if enough else None,
        shifts,
        alpha,
    )
