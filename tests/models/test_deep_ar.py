"""DeepAR: likelihoods by their formulas, scales, masks, paths, and whether its intervals hold what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import wonderland as wl
from tests.models.promises import survives_saving
from wonderland.errors import InputError, ShapeError

LIKELIHOODS = ("gaussian", "student_t", "negative_binomial", "poisson")


def small(likelihood="gaussian", **settings):
    settings = {"hidden_size": 5, "depth": 2, "dtype": wl.float64, "key": wl.random.key(0), **settings}
    return wl.models.DeepAR(likelihood, **settings).eval()


def series(rows=3, time=8, counts=False, seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(4.0, (rows, time)).astype(float) if counts else rng.normal(size=(rows, time)) + 2


# --- the likelihood


@pytest.mark.book("A5-32", name="wl.models.DeepAR")
def test_the_gaussian_loss_is_its_formula():
    model, z = small(), series()
    p = model(z)
    mu, sigma = np.asarray(p.mean), np.asarray(p.stddev)
    formula = 0.5 * np.log(2 * math.pi * sigma**2) + (z - mu) ** 2 / (2 * sigma**2)
    np.testing.assert_allclose(model.nll(z), formula.mean(), rtol=1e-12)


@pytest.mark.book("A5-32", name="wl.models.DeepAR")
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_likelihoods_are_those_of_scipy(likelihood):
    counts = likelihood in ("negative_binomial", "poisson")
    model, z = small(likelihood), series(counts=counts)
    p = model(z)
    if likelihood == "gaussian":
        oracle = stats.norm.logpdf(z, p.loc, p.scale)
    elif likelihood == "student_t":
        oracle = stats.t.logpdf(z, p.df, p.loc, p.scale)
        assert (np.asarray(p.df) > 2).all()
    elif likelihood == "poisson":
        oracle = stats.poisson.logpmf(z, p.rate)
    else:
        r = np.asarray(p.total_count)
        oracle = stats.nbinom.logpmf(z, r, r / (r + np.asarray(p.mean)))
        assert (np.asarray(p.variance) > np.asarray(p.mean)).all()
    np.testing.assert_allclose(model.nll(z), -oracle.mean(), rtol=1e-10)
    wl.check_grads(lambda w: (setattr(model.head, "weight", w), model.nll(z))[1], (model.head.weight.value,), order=1)


@pytest.mark.book("A5-32", name="wl.models.DeepAR")
def test_each_distribution_sees_the_values_before_it():
    model, z = small(covariates=2), series()
    x = np.random.default_rng(1).normal(size=(3, 8, 2))
    nu = np.ones(3)
    mean = np.asarray(model(z, x, scale=nu).mean)
    for i in range(8):
        other, there = z.copy(), x.copy()
        other[:, i] += 1
        there[:, i] += 1
        changed = np.abs(np.asarray(model(other, x, scale=nu).mean) - mean).max(0) > 1e-12
        assert changed.tolist() == [False] * (i + 1) + [True] * (7 - i)  # the value counts from the next step on
        changed = np.abs(np.asarray(model(z, there, scale=nu).mean) - mean).max(0) > 1e-12
        assert changed.tolist() == [False] * i + [True] * (8 - i)  # what is known about a time counts at it


# --- the scale of each series


@pytest.mark.book("A5-32", name="wl.models.DeepAR")
@pytest.mark.parametrize("likelihood", ["gaussian", "student_t"])
def test_series_have_scales_of_their_own(likelihood):
    model, z = small(likelihood), series()
    size = np.array([1.0, 1000.0, 1e-3])
    np.testing.assert_allclose(model.scale(z), np.abs(z).mean(1), rtol=1e-12)
    np.testing.assert_allclose(model(z * size[:, None]).mean, np.asarray(model(z).mean) * size[:, None], rtol=1e-9)
    key = wl.random.key(3)
    paths = [np.asarray(model.forecast(y, 4, paths=6, key=key).paths) for y in (z, z * size[:, None])]
    np.testing.assert_allclose(paths[1], paths[0] * size[:, None], rtol=1e-9)
    plain = small(likelihood, scaling=False)
    np.testing.assert_array_equal(plain.scale(z * 10), np.ones(3))
    np.testing.assert_array_equal(model.scale(z * 0), np.ones(3))


def test_the_scale_of_a_context_does_not_see_what_comes_later():
    model, z = small(), series()
    other = z.copy()
    other[:, 5:] *= 7
    nu = model.scale(z[:, :5])
    expected = -model(other, scale=nu).log_prob(other).numpy().mean()
    np.testing.assert_allclose(model.nll(other, context=5), expected, rtol=1e-12)
    assert abs(float(model.nll(other)) - expected) > 1e-3


# --- padding, compiled code, files


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_padding_is_not_seen(likelihood):
    model, z = small(likelihood, covariates=1), series(counts=True)
    x = np.random.default_rng(0).normal(size=(3, 8, 1))
    spoiled, there = z.copy(), x.copy()
    spoiled[0, 5:], there[0, 5:] = np.nan, np.nan
    loss = float(model.nll(spoiled, there, lengths=[5, 8, 8]))
    parts = [float(model.nll(z[i : i + 1, :n], x[i : i + 1, :n])) * n for i, n in enumerate([5, 8, 8])]
    assert loss == pytest.approx(sum(parts) / 21, rel=1e-10)
    grads = wl.grad(lambda m: m.nll(spoiled, there, lengths=[5, 8, 8]))(model)
    assert all(np.isfinite(np.asarray(g)).all() for g in grads.values())
    left = np.concatenate([[np.nan] * 3, z[0, :5]])[None]
    mask = np.arange(8)[None] >= 3
    ahead = np.concatenate([np.zeros((1, 3, 1)), x[:1, :5]], axis=1)
    assert float(model.nll(left, ahead, token_mask=mask)) * 5 == pytest.approx(parts[0], rel=1e-10)


def test_a_forecast_of_padded_series_is_that_of_each_alone():
    model, z = small(covariates=1), series()
    x = np.random.default_rng(0).normal(size=(3, 12, 1))
    spoiled = z.copy()
    spoiled[0, 5:] = np.nan
    both = model.forecast(spoiled, 4, covariates=x, lengths=[5, 8, 8], paths=300, key=wl.random.key(0))
    alone = model.forecast(z[:1, :5], 4, covariates=x[:1, :9], paths=300, key=wl.random.key(1))
    assert both.paths.shape == (300, 3, 4)
    error = np.asarray(both.paths).std(0)[0] / math.sqrt(150)
    assert (np.abs(np.asarray(both.mean)[0] - np.asarray(alone.mean)[0]) < 5 * error).all()
    # the first step has no chance in it but the draw: its distribution is known exactly
    p = model(np.c_[z[:1, :5], [[0.0]]], x[:1, :6], scale=model.scale(z[:1, :5]))
    draws = np.asarray(both.paths)[:, 0, 0]
    assert stats.kstest(draws, stats.norm(float(p.loc[0, 5]), float(p.scale[0, 5])).cdf).pvalue > 1e-3


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_compiled_is_eager_and_draws_follow_the_key(likelihood):
    model, z = small(likelihood), series(counts=True)
    draw = lambda m, z, key: m.forecast(z, 3, paths=4, key=key).paths
    eager = np.asarray(draw(model, z, wl.random.key(5)))
    np.testing.assert_allclose(wl.jit(draw)(model, z, wl.random.key(5)), eager, rtol=1e-9)
    np.testing.assert_array_equal(draw(model, z, wl.random.key(5)), eager)
    assert not np.array_equal(draw(model, z, wl.random.key(6)), eager)
    if likelihood in ("poisson", "negative_binomial"):
        assert (eager == np.floor(eager)).all()
        assert (eager >= 0).all()


def test_saved_and_loaded(tmp_path):
    make = lambda i: Mean(small(key=wl.random.key(i)))
    survives_saving(make, tmp_path, series())


class Mean(wl.nn.Module):
    def __init__(self, net):
        self.net = net

    def forward(self, z):
        return self.net(z).mean


# --- what it is for


def trained(likelihood, z, x, context, steps=250):
    model = wl.models.DeepAR(likelihood, hidden_size=16, depth=1, cell="gru", covariates=2, key=wl.random.key(0))
    optimizer = wl.optim.Adam(model, 1e-2)

    @wl.jit
    def step(model, optimizer, z, x):
        loss, grads = wl.value_and_grad(lambda m: m.nll(z, x, context=context))(model)
        optimizer.step(grads)
        return loss

    rng = np.random.default_rng(0)
    for _ in range(steps):
        rows = rng.integers(0, len(z), 32)
        step(model, optimizer, z[rows], x[rows])
    return model


def simulated(likelihood, rows, time, seed):
    """Related series with a season: each has a size of its own, and noise whose distribution is known."""
    rng = np.random.default_rng(seed)
    t = np.arange(time) + rng.integers(0, 12, (rows, 1))
    season = 3 + 1.5 * np.sin(2 * math.pi * t / 12)
    size = np.exp(rng.normal(2, 0.7, (rows, 1)))
    x = np.stack([np.sin(2 * math.pi * t / 12), np.cos(2 * math.pi * t / 12)], -1)
    if likelihood == "negative_binomial":
        z = rng.negative_binomial(4, 4 / (4 + season * size))
    elif likelihood == "student_t":
        z = size * (season + 0.4 * rng.standard_t(4, (rows, time)))
    else:
        z = size * (season + 0.5 * rng.normal(size=(rows, time)))
    return z.astype(np.float32), x.astype(np.float32)


@pytest.mark.book("A5-32", name="wl.models.SampledForecast")
@pytest.mark.parametrize("likelihood", ["gaussian", "student_t", "negative_binomial"])
def test_four_fifths_of_the_future_lie_in_the_interval_of_80_per_cent(likelihood):
    """One model for many related series, which it has never seen, twelve steps ahead."""
    model = trained(likelihood, *simulated(likelihood, 200, 36, 0), context=24)
    z, x = simulated(likelihood, 100, 36, 1)
    forecast = model.forecast(z[:, :24], 12, covariates=x, paths=200, key=wl.random.key(0))
    future = z[:, 24:]
    assert 0.74 < float(forecast.coverage(future)) < 0.86
    assert 0.42 < float(forecast.coverage(future, 0.5)) < 0.58
    low, high = forecast.interval(0.8)
    np.testing.assert_array_equal(forecast.quantiles([0.1, 0.9]), np.stack([low, high]))
    # it follows the season: better than the last season again, whose errors have twice the variance
    error = np.abs(np.asarray(forecast.quantiles(0.5)) - future).mean()
    assert error < 0.9 * np.abs(z[:, 12:24] - future).mean()
    if likelihood == "gaussian":  # the bounds are those of the noise, within some learning
        size = np.abs(z[:, :24]).mean(1) / 3
        width = float(np.mean(np.asarray(high - low) / size[:, None]))
        assert width == pytest.approx(2 * 1.2816 * 0.5, rel=0.15)


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: wl.models.DeepAR("cauchy"), InputError, "one of gaussian, student_t"),
        (lambda: small()(np.ones((2, 3, 1))), ShapeError, r"\(batch, time\)"),
        (lambda: small(covariates=2).nll(np.ones((2, 3))), ShapeError, r"\(2, 3, 2\)"),
        (lambda: small().nll(np.ones((2, 3)), np.ones((2, 3, 1))), ShapeError, "has no covariates"),
        (lambda: small(covariates=1).forecast(np.ones((2, 3)), 2, covariates=np.ones((2, 3, 1))), ShapeError, "5, 1"),
        (lambda: small().forecast(np.ones((2, 0)), 2), ShapeError, "one time or more"),
        (lambda: small().forecast(np.ones((2, 3)), 2).interval(1.2), InputError, "share=1.2"),
        (lambda: small().forecast(np.ones((2, 3)), 2).coverage(np.ones(2)), ShapeError, r"\(2, 2\)"),
        (lambda: small()(np.ones((2, 3)), scale=np.ones(1)), ShapeError, "one per series"),
    ],
)
def test_bad_input(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
