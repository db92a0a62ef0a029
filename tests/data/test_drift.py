"""Tests of two samples, against SciPy, and what their p-values mean."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from wonderland import data
from wonderland.errors import InputError, ShapeError


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 7), (20, 20), (30, 80), (100, 100)])
def test_exact_p_values_of_kolmogorov_smirnov(n, m):
    rng = np.random.default_rng(n)
    for shift in (0.0, 0.3, 1.0):
        a, b = rng.normal(size=n), rng.normal(size=m) + shift
        expected = stats.ks_2samp(a, b, method="exact")
        found = data.ks_test(a, b)
        assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
        assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-9, abs=1e-12)


def test_large_samples_and_columns():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(900, 4)), rng.normal(size=(700, 4)) + [0.0, 0.05, 0.1, 0.3]
    found = data.ks_test(a, b)
    for k in range(4):
        expected = stats.ks_2samp(a[:, k], b[:, k], method="exact")
        assert found.statistic[k] == pytest.approx(expected.statistic, rel=1e-12)
        assert found.pvalue[k] == pytest.approx(expected.pvalue, abs=0.01, rel=0.1)
    assert data.ks_test(a[:, 0], a[:, 0]) == (0.0, 1.0)


@pytest.mark.book("3.02", name=("wl.data.ks_test", "wl.data.mmd_test", "wl.data.classifier_test"))
def test_the_same_distribution_gives_uniform_p_values_and_half_accuracy():
    rng = np.random.default_rng(3)
    ks = [data.ks_test(rng.normal(size=300), rng.normal(size=300)).pvalue for _ in range(200)]
    assert stats.kstest(ks, "uniform").pvalue > 0.01
    rounds = [(rng.normal(size=(40, 2)), rng.normal(size=(40, 2))) for _ in range(60)]
    mmd = [data.mmd_test(a, b, permutations=60, seed=k).pvalue for k, (a, b) in enumerate(rounds)]
    assert stats.kstest(mmd, "uniform").pvalue > 0.01
    accuracies = [data.classifier_test(a, b, seed=k).statistic for k, (a, b) in enumerate(rounds)]
    assert np.mean(accuracies) == pytest.approx(0.5, abs=0.03)


@pytest.mark.book("3.02", "B3-02", name="wl.data.drift_report")
def test_a_shift_of_one_sigma_is_detected_and_named():
    rng = np.random.default_rng(0)
    train = rng.normal(size=(400, 3)) * [1.0, 5.0, 0.1]
    production = rng.normal(size=(300, 3)) * [1.0, 5.0, 0.1] + [0.0, 5.0, 0.0]
    report = data.drift_report(train, production, names=["a", "b", "c"])
    assert report.drifted
    assert report.features == ["b"]
    assert report.shifts[1] == pytest.approx(1.0, abs=0.15)
    assert report.mmd.pvalue < 0.01
    assert report.classifier.pvalue < 0.01
    text = str(report)
    assert text.startswith("drift: yes")
    assert "b  D = " in text
    assert "<- moved" in text
    same = data.drift_report(train, rng.normal(size=(300, 3)) * [1.0, 5.0, 0.1])
    assert not same.drifted
    assert str(same).startswith("drift: none found")


def test_what_no_single_feature_shows():
    """Another correlation leaves all margins as they were; the mean discrepancy sees it."""
    rng = np.random.default_rng(0)
    a = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], size=300)
    b = rng.multivariate_normal([0, 0], [[1, -0.9], [-0.9, 1]], size=300)
    assert (data.ks_test(a, b).pvalue > 0.01).all()
    assert data.mmd_test(a, b).pvalue < 0.01

    def product(x, labels):
        sign = np.sign(np.mean(x[:, 0] * x[:, 1] * labels))
        return lambda z: sign * z[:, 0] * z[:, 1]

    found = data.classifier_test(a, b, fit=product)
    assert found.statistic > 0.8
    right = round(found.statistic * 300)
    assert found.pvalue == pytest.approx(stats.binomtest(right, 300, alternative="greater").pvalue, rel=1e-6)


def test_the_mean_discrepancy_is_the_formula():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(6, 2)), rng.normal(size=(5, 2)) + 1

    def kernel(x, y):
        return np.exp(-((x[:, None] - y[None]) ** 2).sum(-1) / (2 * 1.5**2))

    within = lambda x: (kernel(x, x).sum() - len(x)) / (len(x) * (len(x) - 1))
    expected = within(a) + within(b) - 2 * kernel(a, b).mean()
    assert data.mmd_test(a, b, bandwidth=1.5).statistic == pytest.approx(expected, rel=1e-10)


def test_refusals():
    x = np.zeros((10, 2))
    with pytest.raises(ShapeError, match="2 and 3 features"):
        data.ks_test(x, np.zeros((10, 3)))
    with pytest.raises(InputError, match="is empty"):
        data.ks_test([], [1.0])
    with pytest.raises(InputError, match="has NaN"):
        data.drift_report(x, x * np.nan)
    with pytest.raises(ShapeError, match="1 names for 2 features"):
        data.drift_report(x, x, names=["a"])
    with pytest.raises(InputError, match="no probability"):
        data.drift_report(x, x, alpha=2)
    with pytest.raises(InputError, match="four or more"):
        data.classifier_test(x[:3], x)
    with pytest.raises(InputError, match="two examples"):
        data.mmd_test(x[:1], x)
    constant = data.drift_report(x, x)
    assert not constant.drifted
