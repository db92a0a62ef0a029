"""Expected values: sums, integrals and means over draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import wonderland as wl
from wonderland import distributions as d
from wonderland.errors import InputError, ShapeError

f64 = lambda v: wl.asarray(np.float64(v))


@pytest.mark.book("A.17", name=("wl.distributions.expectation", "wl.distributions.Normal"))
@pytest.mark.parametrize(
    "ours, oracle",
    [
        (d.Normal(f64(1.5), f64(0.01)), stats.norm(1.5, 0.01)),
        (d.Laplace(f64(-1.0), f64(2.0)), stats.laplace(-1, 2)),
        (d.StudentT(f64(9.0)), stats.t(9)),
        (d.LogNormal(f64(0.1), f64(0.4)), stats.lognorm(0.4, scale=np.exp(0.1))),
        (d.Gamma(f64(0.3), f64(5.0)), stats.gamma(0.3, scale=0.2)),
        (d.Exponential(f64(40.0)), stats.expon(scale=1 / 40)),
        (d.Beta(f64(0.5), f64(2.5)), stats.beta(0.5, 2.5)),
        (d.Uniform(f64(-3.0), f64(2.0)), stats.uniform(-3, 5)),
        (d.Poisson(f64(7.0)), stats.poisson(7)),
        (d.Binomial(6, f64(0.3)), stats.binom(6, 0.3)),
    ],
    ids=lambda v: type(v).__name__,
)
def test_moments(ours, oracle):
    np.testing.assert_allclose(
        d.expectation(ours, wl.ones_like if not ours.discrete else lambda k: k * 0 + 1.0), 1.0, rtol=1e-8
    )
    for p in (1, 2, 3):
        np.testing.assert_allclose(ours.moment(p), oracle.moment(p), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.variance, ours.moment(2) - ours.mean**2, rtol=1e-6, atol=1e-12)


def test_expectations_of_batches_and_their_gradients():
    loc = wl.asarray(np.array([[0.0, 1.0], [2.0, -1.0]]))
    np.testing.assert_allclose(d.expectation(d.Normal(loc, 0.5), lambda x: x**2), loc.numpy() ** 2 + 0.25, rtol=1e-10)
    slope = wl.grad(lambda m: d.expectation(d.Normal(m, 2.0), lambda x: x**3))(wl.tensor(1.0, wl.float64))
    np.testing.assert_allclose(slope, 3 * (1 + 4), rtol=1e-8)  # of m^3 + 3 m s^2
    cauchy = d.expectation(d.Cauchy(0.0, 2.0), lambda x: 1 / (1 + x * x))
    np.testing.assert_allclose(cauchy, 1 / 3, rtol=1e-5)
    vectors = d.MultivariateNormal(np.zeros(2), scale_diag=1.0)
    found = d.expectation(vectors, lambda x: wl.sum(x**2, axis=-1), n=20000, key=wl.random.key(0))
    np.testing.assert_allclose(found, 2.0, atol=0.06)


@pytest.mark.book("A.18", name="wl.distributions.monte_carlo")
def test_monte_carlo():
    normal = d.Normal(f64(0.0), f64(1.0))
    errors = {}
    for n in (100, 10_000):
        found = [d.monte_carlo(lambda x: x**2, normal, n, wl.random.key(i)) for i in range(30)]
        values = np.array([e.value.item() for e in found])
        told = np.mean([e.standard_error.item() for e in found])
        assert abs(values.mean() - 1.0) < 4 * told / math.sqrt(30)  # no bias
        assert values.std() == pytest.approx(told, rel=0.5)
        errors[n] = told
    assert errors[100] / errors[10_000] == pytest.approx(10.0, rel=0.15)
    by_function = d.monte_carlo(lambda x: x, lambda n, key: wl.random.uniform((n,), key=key), 1000, wl.random.key(0))
    assert abs(by_function.value.item() - 0.5) < 4 * by_function.standard_error.item()
    with pytest.raises(InputError, match="n=1"):
        d.monte_carlo(lambda x: x, normal, 1)
    with pytest.raises(ShapeError, match="a first axis"):
        d.monte_carlo(wl.sum, normal, 10)


@pytest.mark.book("A.10", name="wl.distributions.integrate")
def test_integrals():
    np.testing.assert_allclose(d.integrate(lambda x: wl.exp(-x), 0.0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(d.integrate(lambda x: wl.exp(x), high=1.0), math.e, rtol=1e-12)
    np.testing.assert_allclose(d.integrate(wl.sqrt, 0.0, 4.0), 16 / 3, rtol=1e-12)
    np.testing.assert_allclose(d.integrate(lambda x: 1 / wl.sqrt(x), 0.0, 1.0), 2.0, rtol=1e-9)
    np.testing.assert_allclose(d.integrate(lambda x: wl.exp(-x * x)[:, None] * np.ones(2)), [math.sqrt(math.pi)] * 2)
    with pytest.raises(InputError, match="low < high"):
        d.integrate(wl.sqrt, 1.0, 1.0)
    with pytest.raises(ShapeError):
        d.integrate(wl.sum)
