"""The gamma function and its relatives against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import wonderland as wl
from wonderland import distributions as d

X = np.concatenate([np.geomspace(1e-8, 1e6, 60), [0.5, 1.0, 2.0, 7.999, 8.0, 8.001]])


def test_log_gamma_and_its_derivatives():
    x = wl.asarray(X)
    np.testing.assert_allclose(d.log_gamma(x), special.gammaln(X), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(d.digamma(x), special.digamma(X), rtol=1e-12, atol=1e-13)
    slope = wl.grad(lambda x: wl.sum(d.log_gamma(x)))
    np.testing.assert_allclose(slope(x), special.digamma(X), rtol=1e-10, atol=1e-13)
    curvature = wl.grad(lambda x: wl.sum(slope(x)))
    np.testing.assert_allclose(curvature(x), special.polygamma(1, X), rtol=1e-9)
    assert d.log_gamma(wl.tensor([3.0])).dtype == wl.float32
    np.testing.assert_allclose(wl.jit(d.log_gamma)(x), d.log_gamma(x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("a", [0.05, 0.5, 1.0, 3.3, 40.0, 1000.0])
def test_incomplete_gamma(a):
    x = a * np.array([0.0, 1e-4, 0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 5.0, 20.0])
    np.testing.assert_allclose(
        d.gamma_probability(wl.asarray(np.float64(a)), x), special.gammainc(a, x), rtol=1e-9, atol=1e-12
    )
    assert d.gamma_probability(a, np.inf).item() == 1.0
    assert np.isnan(d.gamma_probability(a, np.nan).item())
    wl.check_grads(lambda a, x: d.gamma_probability(a, x), (wl.asarray(np.float64(a)), wl.asarray(x[3:8])))


@pytest.mark.parametrize("a, b", [(0.05, 0.3), (0.5, 0.5), (1.0, 3.0), (5.0, 0.7), (30.0, 40.0), (500.0, 2.0)])
def test_incomplete_beta(a, b):
    x = np.array([0.0, 1e-6, 0.1, 0.3, 0.5, 0.7, 0.95, 0.999, 1.0])
    a64, b64 = (wl.asarray(np.float64(v)) for v in (a, b))
    np.testing.assert_allclose(d.beta_probability(a64, b64, x), special.betainc(a, b, x), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(d.log_beta(a64, b64), special.betaln(a, b), rtol=1e-11, atol=1e-12)
