"""Beliefs about models: grids, averages, the most probable model, chains, and regression in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn.linear_model import Ridge

import wonderland as wl
from wonderland import distributions as d
from wonderland.errors import InputError, ModuleError, ShapeError

GRID = np.array([0.1, 0.5, 0.9])
rng = np.random.default_rng(0)


def heads(p, k, n):
    return k * wl.log(p) + (n - k) * wl.log(1 - p)


def seven_of_ten():
    return d.GridPosterior(wl.asarray(GRID)).update(heads, 7, 10)


@pytest.mark.book("3.31", "B3-16", name="wl.distributions.GridPosterior")
def test_posterior_of_a_coin():
    belief = seven_of_ten()
    np.testing.assert_allclose(belief.probs, [5.01e-5, 0.671208, 0.328742], atol=5e-7)
    assert float(wl.sum(belief.probs)) == pytest.approx(1.0)
    likelihoods = GRID**7 * (1 - GRID) ** 3
    assert belief.log_evidence.item() == pytest.approx(np.log(likelihoods.mean()))
    assert float(belief.most_probable()) == 0.5
    np.testing.assert_allclose(d.bayes(wl.asarray(likelihoods), np.full(3, 1 / 3)), belief.probs, rtol=1e-10)
    np.testing.assert_allclose(d.GridPosterior(GRID).update(heads, 7, 10).probs, belief.probs, rtol=1e-12)
    sure = d.GridPosterior(list(GRID), prior=[0.0, 0.0, 1.0]).update(heads, 7, 10)
    np.testing.assert_allclose(sure.probs, [0.0, 0.0, 1.0])


@pytest.mark.book("3.36", name="wl.distributions.GridPosterior")
def test_two_updates_are_one():
    at_once = seven_of_ten()
    stepwise = d.GridPosterior(wl.asarray(GRID)).update(heads, 4, 6).update(heads, 3, 4)
    np.testing.assert_allclose(stepwise.probs, at_once.probs, rtol=1e-12)
    np.testing.assert_allclose(stepwise.log_evidence, at_once.log_evidence, rtol=1e-12)
    many = d.GridPosterior(wl.asarray(GRID)).update(heads, 70_000, 100_000)  # likelihoods underflow, logarithms do not
    np.testing.assert_allclose(many.probs, [0.0, 1.0, 0.0], atol=1e-12)


@pytest.mark.book("3.33", "B3-18", "B3-19", name=("wl.distributions.predict_bma", "wl.distributions.GridPosterior"))
def test_model_average():
    belief = seven_of_ten()
    assert belief.predict(lambda p: p).item() == pytest.approx(0.631477, abs=5e-7)
    models = belief.sample(4000, key=wl.random.key(0))
    plain = d.predict_bma(models, lambda p: wl.stack([p, 1 - p])).numpy()
    assert plain[0] == pytest.approx(0.6315, abs=0.01)
    assert plain.sum() == pytest.approx(1.0)  # stays on the simplex
    exact = d.predict_bma(list(wl.asarray(GRID)), lambda p: wl.stack([p, 1 - p]), belief.probs)
    np.testing.assert_allclose(exact, [0.63147663, 0.36852337], rtol=1e-7)
    weights = {float(p): float(w) for p, w in zip(GRID, belief.probs, strict=True)}
    printed = np.mean([[float(p) * weights[float(p)], (1 - float(p)) * weights[float(p)]] for p in models], axis=0)
    assert printed.sum() < 0.7  # the book's formula counts the posterior twice and does not sum to 1
    with pytest.raises(InputError, match="no models"):
        d.predict_bma([], lambda p: p)
    with pytest.raises(InputError, match="sum to"):
        d.predict_bma([1.0, 2.0], wl.tensor, [0.5, 0.6])


def test_grids_that_do_not_fit():
    with pytest.raises(InputError, match="no models"):
        d.GridPosterior([])
    with pytest.raises(ShapeError, match="for 3 models"):
        d.GridPosterior(GRID, prior=[0.5, 0.5])
    with pytest.raises(InputError, match="impossible"):
        d.GridPosterior([0.0]).update(lambda p: wl.log(wl.tensor(p)))
    with pytest.raises(ShapeError, match="one number"):
        d.GridPosterior([0.5]).update(lambda p: wl.zeros(3))


@pytest.mark.book("3.32", "B3-17", name="wl.distributions.norm_log_prior")
def test_a_prior_that_prefers_small_norms():
    w = wl.tensor([3.0, 4.0])
    values = [d.norm_log_prior(c * w).item() for c in (0.1, 0.5, 1.0, 2.0)]
    assert values == sorted(values, reverse=True)
    assert d.norm_log_prior({"a": w[:1], "b": w[1:]}).item() == pytest.approx(-np.log(5))
    assert d.norm_log_prior(wl.zeros(2)).item() == np.inf  # improper: infinite at 0
    model = wl.nn.Linear(2, 1)
    total = sum(float(wl.sum(p**2)) for p in model.parameters())
    assert d.norm_log_prior(model).item() == pytest.approx(-0.5 * np.log(total), rel=1e-5)
    with pytest.raises(InputError, match="no parameters"):
        d.norm_log_prior({})


X = rng.normal(size=(20, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=20)


def minimum(f):
    found = optimize.minimize(
        lambda w: float(f(wl.asarray(w))), np.zeros(3), jac=lambda w: wl.grad(f)(wl.asarray(w)).numpy(), tol=1e-12
    )
    return found.x


@pytest.mark.book("3.35", "B3-20", name=("wl.distributions.map_objective", "wl.distributions.gaussian_log_prior"))
def test_the_most_probable_weights_are_those_of_ridge_regression():
    sigma, tau = 0.3, 0.5
    likelihood = lambda w: wl.sum(d.Normal(X @ w, sigma).log_prob(Y))
    found = minimum(d.map_objective(likelihood, lambda w: d.gaussian_log_prior(w, tau)))
    ridge = Ridge(alpha=sigma**2 / tau**2, fit_intercept=False).fit(X, Y)
    np.testing.assert_allclose(found, ridge.coef_, rtol=1e-5)
    most_likely = np.linalg.lstsq(X, Y, rcond=None)[0]
    np.testing.assert_allclose(minimum(d.map_objective(likelihood)), most_likely, rtol=1e-5)
    np.testing.assert_allclose(minimum(d.map_objective(likelihood, lambda w: 0.0)), most_likely, rtol=1e-5)
    w = wl.asarray(most_likely)
    np.testing.assert_allclose(d.laplace_log_prior({"w": w}, 2.0), -np.abs(most_likely).sum() / 2, rtol=1e-12)
    exact = stats.norm(0, tau).logpdf(most_likely).sum() - stats.norm(0, tau).logpdf(np.zeros(3)).sum()
    np.testing.assert_allclose(d.gaussian_log_prior(w, tau), exact, rtol=1e-10)
    with pytest.raises(InputError, match="a scale of 0"):
        d.gaussian_log_prior(w, 0.0)


@pytest.mark.book("3.31", "3.35", "3.36", name="wl.distributions.BayesianLinearRegression")
def test_bayesian_linear_regression():
    sigma, tau = 0.3, 0.5
    model = d.BayesianLinearRegression(sigma, tau).fit(X, Y)
    precision = X.T @ X / sigma**2 + np.eye(3) / tau**2
    np.testing.assert_allclose(model.posterior.covariance_matrix, np.linalg.inv(precision), rtol=1e-8, atol=1e-12)
    ridge = Ridge(alpha=sigma**2 / tau**2, fit_intercept=False).fit(X, Y)
    np.testing.assert_allclose(model.posterior.mean, ridge.coef_, rtol=1e-8)
    parts = d.BayesianLinearRegression(sigma, tau).fit(X[:7], Y[:7]).update(X[7:], Y[7:])
    np.testing.assert_allclose(parts.posterior.mean, model.posterior.mean, rtol=1e-8)
    new = rng.normal(size=(4, 3))
    predicted = model.predict(new)
    np.testing.assert_allclose(predicted.mean, new @ ridge.coef_, rtol=1e-8)
    spread = sigma**2 + np.einsum("ni,ij,nj->n", new, np.linalg.inv(precision), new)
    np.testing.assert_allclose(predicted.variance, spread, rtol=1e-8)
    evidence = stats.multivariate_normal(np.zeros(20), sigma**2 * np.eye(20) + tau**2 * X @ X.T).logpdf(Y)
    np.testing.assert_allclose(model.log_evidence(X, Y), evidence, rtol=1e-8)
    with pytest.raises(ModuleError, match="no data"):
        d.BayesianLinearRegression().predict(X)
    with pytest.raises(ShapeError):
        model.update(X, Y[:5])
    with pytest.raises(ShapeError, match="features"):
        model.update(X[:, :2], Y)
    with pytest.raises(InputError, match="noise=0"):
        d.BayesianLinearRegression(noise=0.0)


@pytest.mark.book("3.34", name=("wl.distributions.metropolis", "wl.distributions.langevin"))
def test_chains_find_the_conjugate_posterior():
    """A normal mean with a normal prior has a normal posterior, whose mean and variance the chains recover."""
    y = wl.asarray(rng.normal(1.0, 0.8, size=12))
    precision = 1 / 4.0 + 12 / 0.64
    mean, std = (float(wl.sum(y)) / 0.64) / precision, precision**-0.5

    def log_density(m):
        return d.Normal(0.0, 2.0).log_prob(m) + wl.sum(d.Normal(m, 0.8).log_prob(y))

    start = wl.tensor(0.0, wl.float64)
    for sampler, size in ((d.metropolis, 0.6), (d.langevin, 0.3)):
        chain = sampler(log_density, start, 6000, size, 200, wl.random.key(1))
        assert chain.samples.shape == (6000,)
        assert 0.2 < chain.acceptance < 0.99
        assert chain.samples.mean().item() == pytest.approx(mean, abs=5 * std / np.sqrt(500))
        assert chain.samples.std().item() == pytest.approx(std, rel=0.12)
    free = d.langevin(log_density, start, 6000, 0.1, 200, wl.random.key(1), adjust=False)
    assert free.acceptance == 1.0
    assert free.samples.mean().item() == pytest.approx(mean, abs=0.1)


def test_chains_of_vectors_and_bad_settings():
    target = d.MultivariateNormal(np.zeros(2), np.array([[1.0, 0.6], [0.6, 1.0]]))
    chain = d.metropolis(target.log_prob, wl.zeros(2, dtype=wl.float64), 6000, 1.2, 100, wl.random.key(0))
    np.testing.assert_allclose(np.cov(chain.samples.numpy().T), target.covariance_matrix, atol=0.2)
    with pytest.raises(InputError, match="at the start"):
        d.metropolis(d.Exponential(1.0).log_prob, -1.0, 10)
    with pytest.raises(InputError, match="steps=0"):
        d.metropolis(target.log_prob, wl.zeros(2), 0)
    with pytest.raises(InputError, match="step_size=0"):
        d.langevin(target.log_prob, wl.zeros(2), 10, 0.0)


@pytest.mark.book("3.37", name=("wl.distributions.ElasticPenalty", "wl.distributions.forgetting"))
def test_what_was_learned_first_is_forgotten_less_with_a_penalty():
    F = wl.nn.functional
    inputs = [rng.normal(size=(40, 2)) * scale for scale in ([1.0, 0.1], [0.1, 1.0])]
    targets = [x @ w for x, w in zip(inputs, ([2.0, 0.0], [-1.0, 1.0]), strict=True)]
    tasks = [(wl.asarray(x), wl.asarray(y[:, None])) for x, y in zip(inputs, targets, strict=True)]
    loss = lambda model, x, y: F.mse_loss(model(x), y)

    def history(strength):
        model = wl.nn.Linear(2, 1, bias=False, key=wl.random.key(0), dtype=wl.float64)
        penalty, rows = None, []
        for x, y in tasks:
            objective = loss if penalty is None else lambda m, x, y, penalty=penalty: loss(m, x, y) + penalty(m)
            step = wl.jit(wl.grad(objective))
            optimizer = wl.optim.SGD(model, lr=0.2)
            for _ in range(300):
                optimizer.step(step(model, x, y))
            examples = [(x[i : i + 1], y[i : i + 1] + 0.3) for i in range(0, 40, 4)]
            penalty = d.ElasticPenalty(model, loss, examples, strength)
            rows.append([loss(model, *task).item() for task in tasks[: len(rows) + 1]])
        return rows

    plain, kept = history(0.0), history(20.0)
    assert d.forgetting(plain) > 0
    assert d.forgetting(kept) < 0.5 * d.forgetting(plain)
    with pytest.raises(InputError, match="no examples"):
        d.ElasticPenalty(wl.nn.Linear(2, 1), loss, [])
    with pytest.raises(InputError, match="two tasks"):
        d.forgetting([[0.1]])
