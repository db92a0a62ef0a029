"""Losses that are negative log-likelihoods, and losses of numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special, stats

import wonderland as wl
from wonderland import nn
from wonderland.distributions import Bernoulli, Categorical, Laplace, Normal, Poisson
from wonderland.errors import InputError, ShapeError

F = nn.functional
rng = np.random.default_rng(3)
MEAN, TARGET, SPREAD = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.uniform(0.3, 2.0, size=(4, 3))


@pytest.mark.book(
    "3.28", "B4-01", name=("wl.nn.functional.gaussian_nll_loss", "wl.nn.functional.heteroscedastic_nll_loss")
)
def test_gaussian_likelihood():
    expected = -stats.norm.logpdf(TARGET, MEAN, SPREAD)
    np.testing.assert_allclose(
        F.gaussian_nll_loss(MEAN, TARGET, SPREAD**2, full=True, reduction="none"), expected, rtol=1e-12
    )
    np.testing.assert_allclose(
        F.gaussian_nll_loss(MEAN, TARGET, 0.49, full=True), -stats.norm.logpdf(TARGET, MEAN, 0.7).mean(), rtol=1e-12
    )
    for sign in (1, -1):  # the second output is squared
        outputs = np.stack([MEAN, sign * SPREAD], axis=-1)
        np.testing.assert_allclose(F.heteroscedastic_nll_loss(outputs, TARGET, reduction="none"), expected, rtol=1e-12)
        np.testing.assert_allclose(nn.HeteroscedasticNLLLoss()(outputs, TARGET), expected.mean(), rtol=1e-12)
    one = F.heteroscedastic_nll_loss(np.array([1.0, 2.0]), np.array(0.0))
    np.testing.assert_allclose(one, 1.737086, rtol=1e-6)
    np.testing.assert_allclose(Normal(0.0, 1.0).log_prob(0.0), -0.918939, rtol=1e-5)


@pytest.mark.book("3.28", name="wl.nn.functional.heteroscedastic_nll_loss")
def test_a_spread_of_zero_is_finite_and_can_grow():
    outputs = wl.tensor([[1.0, 0.0], [0.0, 1e-5]])
    value, slope = wl.value_and_grad(lambda f: F.heteroscedastic_nll_loss(f, wl.zeros(2)))(outputs)
    assert np.isfinite(value.item())
    assert np.isfinite(slope.numpy()).all()
    var = wl.tensor([1e-9])
    slope = wl.grad(lambda v: F.gaussian_nll_loss(wl.tensor([1.0]), wl.tensor([0.0]), v))(var)
    assert slope.item() < 0  # descent makes it larger


@pytest.mark.book("3.28", name="wl.nn.functional.heteroscedastic_nll_loss")
def test_noise_that_depends_on_the_input_is_recovered():
    x = rng.uniform(0.2, 1.0, 4000)
    y = 2 * x + x * rng.normal(size=4000)  # the deviation is x

    def loss(w):
        return F.heteroscedastic_nll_loss(wl.stack([w[0] * x, w[1] * x + w[2]], axis=-1), y)

    found = optimize.minimize(
        lambda w: float(loss(wl.asarray(w))), [0.5, 0.5, 0.5], jac=lambda w: wl.grad(loss)(wl.asarray(w)).numpy()
    )
    np.testing.assert_allclose(np.abs(found.x), [2.0, 1.0, 0.0], atol=0.1)  # of the second the sign does not matter


def test_likelihoods_that_do_not_fit():
    with pytest.raises(ShapeError, match=r"variances of shape \(3,\)"):
        F.gaussian_nll_loss(MEAN, TARGET, np.ones(3))
    with pytest.raises(InputError, match="a variance is"):
        F.gaussian_nll_loss(MEAN, TARGET, -SPREAD)
    with pytest.raises(InputError, match="eps=0"):
        F.gaussian_nll_loss(MEAN, TARGET, SPREAD, eps=0.0)
    with pytest.raises(ShapeError, match=r"outputs of shape \(4, 3, 2\)"):
        F.heteroscedastic_nll_loss(MEAN, TARGET)
    with pytest.raises(InputError, match="a count is"):
        F.poisson_nll_loss(MEAN, -SPREAD)
    with pytest.raises(InputError, match="a rate is"):
        F.poisson_nll_loss(-SPREAD, SPREAD, log_input=False)
    with pytest.raises(ShapeError):
        F.laplace_nll_loss(MEAN, TARGET, np.ones((4, 1)))
    with pytest.raises(ShapeError, match="one target for every distribution"):
        F.nll(Normal(wl.zeros((4, 1)), 1.0), wl.zeros(4))


def test_laplace_and_poisson_likelihoods():
    expected = -stats.laplace.logpdf(TARGET, MEAN, SPREAD)
    np.testing.assert_allclose(nn.LaplaceNLLLoss(full=True)(MEAN, TARGET, SPREAD), expected.mean(), rtol=1e-12)
    wl.check_grads(lambda m, s: F.laplace_nll_loss(m, TARGET, s), (wl.asarray(MEAN), wl.asarray(SPREAD)))
    counts = rng.poisson(3.0, (4, 3)).astype(float)
    difference = F.poisson_nll_loss(MEAN, counts, reduction="none").numpy() + stats.poisson.logpmf(counts, np.exp(MEAN))
    np.testing.assert_allclose(difference, -special.gammaln(counts + 1), rtol=1e-10, atol=1e-12)


@pytest.mark.book("3.30", "B3-14", name="wl.nn.functional.nll")
def test_losses_are_likelihoods():
    """Each loss and the likelihood that it comes from have the same gradient, up to a factor."""
    x, y, hits = wl.asarray(MEAN), wl.asarray(TARGET), wl.asarray((TARGET > 0).astype(float))
    classes = wl.tensor([0, 2, 1, 1])
    pairs = [
        (lambda x: F.nll(Normal(x, 0.7), y), lambda x: F.mse_loss(x, y) / (2 * 0.49)),
        (lambda x: F.nll(Laplace(x, 2.0), y), lambda x: F.l1_loss(x, y) / 2),
        (lambda x: F.nll(Bernoulli(logits=x), hits), lambda x: F.binary_cross_entropy_with_logits(x, hits)),
        (lambda x: F.nll(Categorical(logits=x), classes), lambda x: F.cross_entropy(x, classes)),
        (lambda x: F.nll(Poisson(wl.exp(x)), hits), lambda x: F.poisson_nll_loss(x, hits)),
    ]
    for likelihood, loss in pairs:
        np.testing.assert_allclose(wl.grad(likelihood)(x), wl.grad(loss)(x), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(F.nll(Bernoulli(logits=x), hits, "sum"), F.nll(Bernoulli(logits=x), hits) * 12)


@pytest.mark.book("3.29", "B3-15", name="wl.nn.functional.nll")
def test_many_factors_underflow_and_their_logarithms_do_not():
    assert float(wl.prod(wl.full((1000,), 0.4, dtype=wl.float64))) == 0.0
    coin = Bernoulli(wl.full((1000,), 0.4, dtype=wl.float64))
    assert F.nll(coin, wl.ones(1000), "sum").item() == pytest.approx(916.29, abs=0.005)
    assert float(wl.prod(wl.full((1000,), 0.1, dtype=wl.float64))) == 0.0
    rare = Bernoulli(wl.full((1000,), 0.1, dtype=wl.float64))
    assert F.nll(rare, wl.ones(1000), "sum").item() == pytest.approx(2302.585, abs=5e-4)


@pytest.mark.book("4.03", "A3-03", name="wl.nn.functional.mse_loss")
def test_gradient_of_the_squared_error():
    slope = wl.grad(lambda x: F.mse_loss(x, TARGET))(wl.asarray(MEAN))
    np.testing.assert_allclose(slope, 2 * (MEAN - TARGET) / MEAN.size, rtol=1e-13)


@pytest.mark.book("4.05", "B4-02", name="wl.nn.functional.l1_loss")
def test_minimisers_are_mean_median_and_quantile():
    y = rng.exponential(size=101)

    def best(loss):
        grid = np.linspace(0, 4, 4001)
        return grid[np.argmin([loss(wl.full((101,), c, dtype=wl.float64), y).item() for c in grid[::10]]) * 10]

    assert best(F.l1_loss) == pytest.approx(np.median(y), abs=0.02)
    assert best(F.mse_loss) == pytest.approx(np.mean(y), abs=0.01)
    high = lambda x, y: F.quantile_loss(x, y, 0.9)
    assert best(high) == pytest.approx(np.quantile(y, 0.9), abs=0.05)
    x = wl.tensor([0.0, 1.0, -1.0])
    assert wl.grad(lambda x: F.l1_loss(x, wl.zeros(3), "sum"))(x).tolist() == [0.0, 1.0, -1.0]
    np.testing.assert_allclose(F.quantile_loss(MEAN, TARGET, 0.5), 0.5 * F.l1_loss(MEAN, TARGET), rtol=1e-12)
    with pytest.raises(InputError, match="quantile=1"):
        F.quantile_loss(MEAN, TARGET, 1.0)


@pytest.mark.book("4.06", "4.07", "B4-03", name="wl.nn.functional.huber_loss")
def test_huber_lies_below_the_other_two():
    e = wl.asarray(np.linspace(-4, 4, 801))
    zero = wl.zeros_like(e)
    huber, square, absolute = (f(e, zero, "none").numpy() for f in (F.huber_loss, F.mse_loss, F.l1_loss))
    assert (huber <= 0.5 * square + 1e-12).all()
    assert (huber <= absolute).all()
    slopes = wl.grad(lambda e: F.huber_loss(e, zero, "sum"))(e).numpy()
    np.testing.assert_allclose(slopes, np.clip(e.numpy(), -1, 1), atol=1e-12)
    for error, value in ((0.5, 0.125), (2.0, 1.5), (1.0, 0.5), (3.0, 2.5)):
        assert F.huber_loss(wl.tensor(error), wl.tensor(0.0)).item() == value


@pytest.mark.book("4.08", "B4-04", name="wl.nn.HuberLoss")
def test_one_outlier_moves_the_squared_error_most():
    x = np.linspace(-1, 1, 21)
    y = 3 * x
    y[-1] = -30.0

    def slope(loss):
        f = lambda w: loss(wl.asarray(w[0]) * wl.asarray(x), wl.asarray(y)).item()
        return optimize.minimize(f, [1.0], method="Nelder-Mead").x[0]

    square, huber, absolute = (abs(slope(loss) - 3) for loss in (F.mse_loss, F.huber_loss, F.l1_loss))
    assert square > 10 * huber
    assert square > 10 * absolute


@pytest.mark.book("4.09", name="wl.nn.functional.huber_loss")
def test_no_loss_has_a_nan_where_the_error_is_zero():
    x = wl.tensor([0.0, 1.0])
    for loss in (F.mse_loss, F.l1_loss, F.huber_loss, F.smooth_l1_loss, F.log_cosh_loss, F.quantile_loss):
        for order in (1, 2):
            f = lambda e, loss=loss: loss(x[0] + e, x[0])
            for _ in range(order):
                f = wl.grad(f)
            assert np.isfinite(f(wl.tensor(0.0)).item())


def test_log_cosh():
    e = np.array([-1000.0, -2.0, -1e-8, 0.0, 1e-4, 0.3, 1.0, 30.0])
    expected = np.abs(e) + np.log1p(np.exp(-2 * np.abs(e))) - np.log(2)
    found = F.log_cosh_loss(e, np.zeros(8), reduction="none").numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found[2], 0.5e-16, rtol=1e-6)
    np.testing.assert_allclose(
        wl.grad(lambda e: F.log_cosh_loss(e, np.zeros(8), reduction="sum"))(wl.asarray(e)), np.tanh(e), rtol=1e-12
    )


@pytest.mark.book("4.04", name="wl.distributions.Normal")
def test_the_most_likely_mean_minimises_the_squared_error():
    y = rng.normal(size=9)
    grid = wl.asarray(np.linspace(-2, 2, 2001))
    errors = wl.sum((grid[:, None] - y) ** 2, axis=-1)
    for scale in (0.3, 1.0, 5.0):
        total = wl.sum(Normal(grid[:, None], scale).log_prob(y), axis=-1)
        assert wl.argmax(total).item() == wl.argmin(errors).item()
