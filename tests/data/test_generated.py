"""Generated datasets: their formulas, their shapes, and that a seed settles everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError, ShapeError

MAKERS = [
    wl.data.make_xor,
    wl.data.make_parity,
    wl.data.make_moons,
    wl.data.make_circles,
    wl.data.make_blobs,
    wl.data.make_spirals,
    wl.data.make_swiss_roll,
    wl.data.make_regression,
    wl.data.make_sine,
    wl.data.make_income_rule,
    wl.data.make_heteroscedastic,
    wl.data.make_outliers,
    wl.data.make_imbalanced,
    wl.data.make_bimodal,
    wl.data.make_shapes,
]


def linear_accuracy(X: np.ndarray, y: np.ndarray) -> float:
    """The best accuracy of a logistic regression, by scikit-learn."""
    linear = pytest.importorskip("sklearn.linear_model")
    return linear.LogisticRegression(C=1e6, max_iter=2000).fit(X, y).score(X, y)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_seed_settles_everything(make: Any) -> None:
    options: dict[str, Any] = {"n_samples": 40}
    if make in (wl.data.make_xor, wl.data.make_moons, wl.data.make_circles, wl.data.make_spirals):
        options["noise"] = 0.1
    first, again, other = (make(**options, seed=seed) for seed in (1, 1, 2))
    X, y = first
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(X, other[0])
    assert len(X) == len(y) == 40
    assert X.dtype == np.float32
    assert y.dtype in (np.int64, np.float32)
    assert make(**options, dtype=np.float64)[0].dtype == np.float64
    generated = make(**options, seed=np.random.default_rng(0))
    assert generated[0].shape == X.shape
    with pytest.raises(InputError):
        make(n_samples=0)
    with pytest.raises(InputError):
        make(**options, seed="x")


@pytest.mark.book("5.03", name="wl.data.make_xor")
def test_xor_is_not_linear() -> None:
    X, y = wl.data.make_xor(dtype=np.float64)
    np.testing.assert_array_equal(X, [[0, 0], [0, 1], [1, 0], [1, 1]])
    np.testing.assert_array_equal(y, [0, 1, 1, 0])
    # least squares finds nothing: weights 0, bias 1/2
    solution = np.linalg.lstsq(np.column_stack([X, np.ones(4)]), y, rcond=None)[0]
    np.testing.assert_allclose(solution, [0, 0, 0.5], atol=1e-12)
    # no line is right about all four corners, some are about three
    grid = np.linspace(-2, 2, 21)
    w1, w2, b = np.meshgrid(grid, grid, grid)
    right = sum(((w1 * x1 + w2 * x2 + b > 0) == bool(label)).astype(int) for (x1, x2), label in zip(X, y, strict=True))
    assert right.max() == 3
    # two ReLU units are enough
    x = wl.tensor(X)
    total = x.sum(axis=1)
    np.testing.assert_array_equal(wl.maximum(total, 0.0) - 2 * wl.maximum(total - 1, 0.0), y)


@pytest.mark.book("5.05", name="wl.data.make_parity")
@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_parity_flips_with_any_bit(d: int) -> None:
    X, y = wl.data.make_parity(d)
    assert X.shape == (2**d, d)
    assert len(np.unique(X, axis=0)) == 2**d
    assert y.sum() == 2 ** (d - 1)  # balanced
    label = {tuple(row): value for row, value in zip(X, y, strict=True)}
    for row in X:
        for bit in range(d):
            flipped = row.copy()
            flipped[bit] = 1 - flipped[bit]
            assert label[tuple(flipped)] == 1 - label[tuple(row)]
    Z, z = wl.data.make_parity(d, 50)
    np.testing.assert_array_equal(z, Z.sum(axis=1) % 2)
    with pytest.raises(InputError, match="2\\*\\*21"):
        wl.data.make_parity(21)


@pytest.mark.book("5.02", name="wl.data.make_income_rule")
def test_the_income_rule_is_an_interaction() -> None:
    X, y = wl.data.make_income_rule(800, scale=True, dtype=np.float64)
    raw, same = wl.data.make_income_rule(800, dtype=np.float64)
    np.testing.assert_array_equal(y, same)
    np.testing.assert_array_equal(y, (raw[:, 0] <= 1500) & (raw[:, 1] >= 30))
    linear = linear_accuracy(X, y)
    # one ReLU unit for each condition expresses it: low = both
    steep = 1e4
    income, age = (raw[:, 0] <= 1500).astype(float), np.clip(steep * (raw[:, 1] - 30) + 1, 0, 1)
    assert ((np.maximum(income + age - 1, 0) > 0.5) == y).all()
    neural = pytest.importorskip("sklearn.neural_network")
    mlp = neural.MLPClassifier((16,), solver="lbfgs", max_iter=300, random_state=0).fit(X, y).score(X, y)
    assert linear < 0.93
    assert mlp > linear + 0.04
    flipped = wl.data.make_income_rule(800, flipped=0.25)[1]
    assert 0.2 < (flipped != y).mean() < 0.3


@pytest.mark.book("3.26", name="wl.data.make_bimodal")
def test_a_bimodal_target_has_no_good_point_prediction() -> None:
    _, y = wl.data.make_bimodal(200, dtype=np.float64)
    assert set(y.tolist()) == {-1.0, 1.0}
    guesses = np.linspace(-1.5, 1.5, 301)
    errors = ((y - guesses[:, None]) ** 2).mean(axis=1)
    assert guesses[errors.argmin()] == pytest.approx(0, abs=1e-9)
    assert errors.min() == pytest.approx(1)
    # a Gaussian around it: the likelihood is largest for variance 1
    variances = np.linspace(0.2, 3, 281)
    nll = 0.5 * np.log(variances) + (y**2).mean() / (2 * variances)
    assert variances[nll.argmin()] == pytest.approx(1, abs=0.006)


class TestFormulas:
    def test_as_scikit_learn_without_noise(self) -> None:
        theirs = pytest.importorskip("sklearn.datasets")
        for name in ("make_moons", "make_circles"):
            for n in (10, 11):
                X, y = getattr(wl.data, name)(n, shuffle=False, dtype=np.float64)
                Z, z = getattr(theirs, name)(n, shuffle=False)
                np.testing.assert_allclose(X, Z, atol=1e-12)
                np.testing.assert_array_equal(y, z)

    def test_shuffled_and_noisy(self) -> None:
        X, y = wl.data.make_moons(2000, noise=0.2, dtype=np.float64)
        clean = wl.data.make_moons(2000, dtype=np.float64)  # the same order: noise is drawn after it
        np.testing.assert_array_equal(y, clean[1])
        assert (X - clean[0]).std() == pytest.approx(0.2, rel=0.05)

    def test_blobs(self) -> None:
        centers = [[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]]
        X, y = wl.data.make_blobs(3001, centers=centers, cluster_std=[0.1, 1.0, 2.0], dtype=np.float64)
        assert np.bincount(y).tolist() == [1001, 1000, 1000]
        for label, (center, deviation) in enumerate(zip(centers, [0.1, 1.0, 2.0], strict=True)):
            np.testing.assert_allclose(X[y == label].mean(axis=0), center, atol=0.2)
            np.testing.assert_allclose(X[y == label].std(axis=0), deviation, rtol=0.1)
        with pytest.raises(ShapeError, match="centers of shape"):
            wl.data.make_blobs(10, centers=[1.0, 2.0])
        with pytest.raises(InputError, match="cluster_std"):
            wl.data.make_blobs(10, cluster_std=-1.0)

    def test_spirals(self) -> None:
        X, y = wl.data.make_spirals(300, n_classes=3, dtype=np.float64)
        radius = np.hypot(*X.T)
        assert (radius.min(), radius.max()) == (pytest.approx(0.1), pytest.approx(1))
        assert linear_accuracy(X, y) < 0.6
        # a third of a turn takes one arm to the next
        c, s = np.cos(2 * np.pi / 3), np.sin(2 * np.pi / 3)
        first, second = (X[y == label][np.argsort(radius[y == label])] for label in (0, 1))
        np.testing.assert_allclose(first @ np.array([[c, s], [-s, c]]), second, atol=1e-12)

    @pytest.mark.parametrize("hole", [False, True])
    def test_swiss_roll(self, hole: bool) -> None:
        X, t = wl.data.make_swiss_roll(500, hole=hole, dtype=np.float64)
        np.testing.assert_allclose(X[:, 0], t * np.cos(t))
        np.testing.assert_allclose(X[:, 2], t * np.sin(t))
        assert ((t >= 1.5 * np.pi) & (t <= 4.5 * np.pi)).all()
        assert ((X[:, 1] >= 0) & (X[:, 1] <= 21)).all()
        inside = (abs(t - 3 * np.pi) < np.pi / 2) & (abs(X[:, 1] - 10.5) < 3.5)
        assert inside.any() != hole

    def test_regression(self) -> None:
        X, y, w = wl.data.make_regression(50, 5, n_informative=2, bias=3.0, coef=True, dtype=np.float64)
        np.testing.assert_allclose(y, X @ w + 3)
        assert (w != 0).sum() == 2
        noisy = wl.data.make_regression(2000, 5, noise=4.0, coef=True, dtype=np.float64)
        assert (noisy[1] - noisy[0] @ noisy[2]).std() == pytest.approx(4, rel=0.05)

    def test_sine_and_growing_noise(self) -> None:
        X, y = wl.data.make_sine(30, noise=0.0, frequency=2.0, interval=(-1.0, 1.0), dtype=np.float64)
        np.testing.assert_allclose(y, np.sin(4 * np.pi * X[:, 0]))
        X, y = wl.data.make_heteroscedastic(4000, noise=(0.1, 1.0), dtype=np.float64)
        rest = y - np.sin(2 * np.pi * X[:, 0])
        for low in (0.0, 0.9):
            here = (X[:, 0] >= low) & (X[:, 0] < low + 0.1)
            assert rest[here].std() == pytest.approx(0.1 + 0.9 * (low + 0.05), rel=0.15)

    def test_outliers_and_imbalance(self) -> None:
        X, y = wl.data.make_outliers(200, fraction=0.15, noise=0.0, dtype=np.float64)
        rest = y - (2 * X[:, 0] + 1)
        np.testing.assert_allclose(np.unique(rest.round(9)), [0, 10])
        assert (rest > 5).sum() == 30
        _, y = wl.data.make_imbalanced(1000, weights=(0.9, 0.07, 0.03))
        assert np.bincount(y).tolist() == [900, 70, 30]
        with pytest.raises(InputError, match="sum to 1"):
            wl.data.make_imbalanced(weights=(0.5, 0.6))
        with pytest.raises(InputError, match="noise=-1"):
            wl.data.make_outliers(noise=-1)

    def test_shapes(self) -> None:
        X, y = wl.data.make_shapes(400, size=16, channels=3)
        assert X.shape == (400, 16, 16, 3)
        assert ((X >= 0) & (X <= 1)).all()
        area = (X > 0).any(axis=3).mean(axis=(1, 2))
        square, disc, triangle, cross = (area[y == label].mean() for label in range(4))
        assert disc / square == pytest.approx(np.pi / 4, rel=0.08)
        assert triangle / square == pytest.approx(0.5, rel=0.15)
        assert cross < square
