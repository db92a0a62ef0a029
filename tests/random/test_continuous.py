"""Continuous distributions against SciPy's: Kolmogorov-Smirnov tests, moments within 5 sigma, dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import wonderland as wl

N = 20_000
FLOATS = [wl.float16, wl.bfloat16, wl.float32, wl.float64]

# name -> draw(shape, key, dtype), SciPy's distribution
DRAWS = {
    "uniform": (lambda s, **k: wl.random.uniform(s, **k), stats.uniform()),
    "uniform(-3, 5)": (lambda s, **k: wl.random.uniform(s, -3.0, 5.0, **k), stats.uniform(-3, 8)),
    "normal": (lambda s, **k: wl.random.normal(s, **k), stats.norm()),
    "normal(2, 0.5)": (lambda s, **k: wl.random.normal(s, 2.0, 0.5, **k), stats.norm(2, 0.5)),
    "truncated_normal": (lambda s, **k: wl.random.truncated_normal(s, **k), stats.truncnorm(-2, 2)),
    "truncated_normal(0, 3)": (
        lambda s, **k: wl.random.truncated_normal(s, 0.0, 3.0, mean=-1.0, std=2.0, **k),
        stats.truncnorm(0.5, 2, -1, 2),
    ),
    "truncated_normal in the tail": (
        lambda s, **k: wl.random.truncated_normal(s, 4.5, float("inf"), **k),
        stats.truncnorm(4.5, np.inf),
    ),
    "exponential": (lambda s, **k: wl.random.exponential(s, 2.0, **k), stats.expon(scale=2)),
    "gumbel": (lambda s, **k: wl.random.gumbel(s, 1.0, 2.0, **k), stats.gumbel_r(1, 2)),
    "laplace": (lambda s, **k: wl.random.laplace(s, 1.0, 2.0, **k), stats.laplace(1, 2)),
    "logistic": (lambda s, **k: wl.random.logistic(s, 1.0, 2.0, **k), stats.logistic(1, 2)),
    "cauchy": (lambda s, **k: wl.random.cauchy(s, 1.0, 2.0, **k), stats.cauchy(1, 2)),
    "gamma(0.1)": (lambda s, **k: wl.random.gamma(s, 0.1, **k), stats.gamma(0.1)),
    "gamma(0.7, 3)": (lambda s, **k: wl.random.gamma(s, 0.7, 3.0, **k), stats.gamma(0.7, scale=3)),
    "gamma(1)": (lambda s, **k: wl.random.gamma(s, **k), stats.expon()),
    "gamma(50)": (lambda s, **k: wl.random.gamma(s, 50.0, **k), stats.gamma(50)),
    "gamma(1e6)": (lambda s, **k: wl.random.gamma(s, 1e6, **k), stats.gamma(1e6)),
    "beta(0.5, 0.5)": (lambda s, **k: wl.random.beta(s, 0.5, 0.5, **k), stats.beta(0.5, 0.5)),
    "beta(2, 5)": (lambda s, **k: wl.random.beta(s, 2.0, 5.0, **k), stats.beta(2, 5)),
}


@pytest.mark.parametrize("dtype", [wl.float32, wl.float64])
@pytest.mark.parametrize("name", DRAWS)
def test_distribution(name, dtype):
    draw, law = DRAWS[name]
    x = draw((N,), key=wl.random.key(1), dtype=dtype)
    assert x.dtype == dtype
    sample = x.numpy().astype(np.float64)
    assert np.isfinite(sample).all()
    assert stats.kstest(sample, law.cdf).pvalue > 1e-3
    if np.isfinite(law.var()):
        assert abs(sample.mean() - law.mean()) < 5 * law.std() / N**0.5
        kurtosis = float(law.stats("k")) + 3
        assert abs(sample.var() / law.var() - 1) < 5 * ((kurtosis - 1) / N) ** 0.5
    # neighbours are uncorrelated: ranks, so that heavy tails do not matter
    ranks = law.cdf(sample) - 0.5
    for lag in (1, 2, N // 2):
        assert abs(12 * (ranks[lag:] * ranks[:-lag]).mean()) < 5 / (N - lag) ** 0.5


@pytest.mark.book("1.12", name="wl.random.normal")
def test_a_million_normals_have_the_right_moments():
    x = wl.random.randn(1000, 1000, key=wl.random.key(0)).numpy().astype(np.float64)
    assert abs(x.mean()) < 5e-3
    assert abs(x.var() - 1) < 5 * 2**0.5 / 1e3
    assert abs((x**3).mean()) < 5 * 15**0.5 / 1e3
    assert abs((x**4).mean() - 3) < 5 * 96**0.5 / 1e3
    assert abs((abs(x) > 4).mean() - 6.334e-5) < 5 * (6.334e-5 / 1e6) ** 0.5
    # the two halves come from the same radii; they must still be independent
    a, b = x[:500].ravel(), x[500:].ravel()
    assert abs((a * b).mean()) < 5 / 500_000**0.5
    assert abs((a**2 * b**2).mean() - 1) < 5 * 8**0.5 / 500_000**0.5


def test_the_tails_of_the_normal_reach_as_far_as_promised():
    from wonderland.random.words import open_fraction

    zero, ones = wl.zeros(1, dtype=wl.uint32), wl.full((1,), 0xFFFFFFFF, dtype=wl.uint32)
    assert open_fraction([zero], wl.float32).item() == 2.0**-33
    assert open_fraction([ones], wl.float32).item() == 1 - 2.0**-24
    assert open_fraction([zero, zero], wl.float64).item() == 2.0**-65
    assert open_fraction([ones, ones], wl.float64).item() == 1 - 2.0**-53


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_fraction_is_never_one_and_every_step_occurs(dtype):
    from wonderland.random.words import fraction

    ones = wl.full((1,), 0xFFFFFFFF, dtype=wl.uint32)
    top = float(fraction([ones] * (2 if dtype == wl.float64 else 1), dtype).item())
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]
    assert top == 1 - 2.0**-digits
    x = wl.random.uniform((100_000,), key=wl.random.key(0), dtype=dtype)
    assert x.dtype == dtype
    values = x.numpy().astype(np.float64)
    assert values.min() >= 0
    assert values.max() < 1
    assert (values * 2.0**digits == np.floor(values * 2.0**digits)).all()
    if digits <= 11:
        _, counts = np.unique(values, return_counts=True)
        assert stats.chisquare(counts).pvalue > 1e-3
        assert len(counts) == 2**digits


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("low, high", [(0.0, 1e-3), (1.0, 1.01), (-1.0, 0.0), (100.0, 101.0), (-3e4, 3e4), (0.9, 1.0)])
def test_uniform_stays_below_high(low, high, dtype):
    x = wl.random.uniform((50_000,), low, high, key=wl.random.key(2), dtype=dtype).numpy()
    bottom, top = np.array(low).astype(dtype), np.array(high).astype(dtype)
    assert (x >= bottom).all()
    assert (x < top).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "name, parameters",
    [
        *[(name, ()) for name in ("uniform", "normal", "truncated_normal", "exponential", "gumbel", "laplace")],
        *[(name, ()) for name in ("logistic", "cauchy", "beta", "rademacher", "bernoulli")],
        *[("gamma", (0.5,)), ("poisson", (3.0,)), ("binomial", (5, 0.5))],
    ],
)
def test_dtype_is_kept(name, parameters, dtype):
    x = getattr(wl.random, name)((3, 5), *parameters, key=wl.random.key(0), dtype=dtype)
    assert x.dtype == dtype
    assert x.shape == (3, 5)
    assert bool(wl.isfinite(x).all())


def test_without_a_dtype_the_parameters_decide():
    assert wl.random.normal((2,)).dtype == wl.float32
    assert wl.random.normal(mean=wl.zeros(3, dtype=wl.float64)).dtype == wl.float64
    assert wl.random.normal((2,), mean=wl.tensor(0.0, dtype=wl.float16)).dtype == wl.float16
    assert wl.random.normal((2,), mean=wl.tensor(1)).dtype == wl.float32
    assert wl.random.uniform((2,), np.float64(0.0), 2).dtype == wl.float32  # NumPy's scalars are numbers
    assert wl.random.dirichlet(wl.ones(3, dtype=wl.float64)).dtype == wl.float64


def test_parameters_broadcast_and_give_the_shape():
    key = wl.random.key(0)
    mean, std = wl.tensor([[0.0], [100.0]]), wl.tensor([1.0, 2.0, 3.0])
    x = wl.random.normal(mean=mean, std=std, key=key)
    assert x.shape == (2, 3)
    noise = wl.random.normal((2, 3), key=key)
    np.testing.assert_array_equal(x.numpy(), (noise * std + mean).numpy())
    assert wl.random.normal((4, 2, 3), mean, std, key=key).shape == (4, 2, 3)
    assert wl.random.normal((), key=key).shape == ()
    assert wl.random.normal(3, key=key).shape == (3,)
    assert wl.random.normal((0, 2), key=key).shape == (0, 2)
    with pytest.raises(wl.errors.ShapeError, match="normal"):
        wl.random.normal((3,), mean)


def test_rand_and_randn_take_sizes_or_a_shape():
    assert wl.random.rand().shape == ()
    assert wl.random.rand(2, 3).shape == wl.random.randn((2, 3)).shape == (2, 3)


# --- vectors and matrices


def test_dirichlet_moments_and_small_concentrations():
    a = np.array([0.5, 1.0, 2.5])
    x = wl.random.dirichlet(a, (N,), key=wl.random.key(3)).numpy()
    np.testing.assert_allclose(x.sum(axis=-1), 1, atol=1e-12)
    mean = a / a.sum()
    variance = mean * (1 - mean) / (a.sum() + 1)
    assert (abs(x.mean(axis=0) - mean) < 5 * (variance / N) ** 0.5).all()
    assert stats.kstest(x[:, 2], stats.beta(2.5, 1.5).cdf).pvalue > 1e-3
    tiny = wl.random.dirichlet(wl.full((4,), 1e-4), (1000,), key=wl.random.key(3)).numpy()
    assert np.isfinite(tiny).all()  # gamma variables of this concentration all underflow to zero
    np.testing.assert_allclose(tiny.sum(axis=-1), 1, atol=1e-5)
    assert stats.chisquare((tiny > 0.5).sum(axis=0)).pvalue > 1e-3


def test_multivariate_normal():
    covariance = np.array([[2.0, 0.6], [0.6, 0.5]])
    x = wl.random.multivariate_normal(np.array([1.0, -1.0]), covariance, (N,), key=wl.random.key(4)).numpy()
    assert x.shape == (N, 2)
    assert (abs(x.mean(axis=0) - [1, -1]) < 5 * (np.diag(covariance) / N) ** 0.5).all()
    assert (abs(np.cov(x.T) - covariance) < 5 * 2 * np.sqrt(2 / N)).all()
    assert stats.kstest((x[:, 0] - 1) / 2**0.5, stats.norm.cdf).pvalue > 1e-3
    batch = wl.random.multivariate_normal(wl.zeros((4, 1, 2)), wl.eye(2) * wl.ones((3, 1, 1)), (5,))
    assert batch.shape == (5, 4, 3, 2)
    with pytest.raises(wl.errors.ShapeError, match="multivariate_normal"):
        wl.random.multivariate_normal(wl.zeros(2), wl.eye(3))
    with pytest.raises(wl.errors.LinearAlgebraError):
        wl.random.multivariate_normal(wl.zeros(2), -wl.eye(2))


@pytest.mark.parametrize("shape", [(5, 5), (6, 2), (2, 6), (3, 4, 2), (1, 1)])
def test_orthogonal(shape):
    q = wl.random.orthogonal(shape, 2.0, key=wl.random.key(5), dtype=wl.float64).numpy() / 2
    assert q.shape == shape
    gram = q.swapaxes(-1, -2) @ q if shape[-2] >= shape[-1] else q @ q.swapaxes(-1, -2)
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(gram.shape[-1]), gram.shape), atol=1e-12)


def test_orthogonal_is_uniform_among_rotations_and_reflections():
    q = wl.random.orthogonal((4000, 2, 2), key=wl.random.key(6)).numpy()
    angle = np.arctan2(q[:, 1, 0], q[:, 0, 0])
    assert stats.kstest(angle, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-3
    assert abs((np.linalg.det(q) > 0).mean() - 0.5) < 5 * 0.5 / 4000**0.5
    with pytest.raises(wl.errors.ShapeError, match="two axes"):
        wl.random.orthogonal((3,))
