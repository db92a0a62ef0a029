"""Special functions against SciPy and the C library: digits, ends of the domain, types, derivatives, both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special as scipy_special

import wonderland as wl
from wonderland import special

RNG = np.random.default_rng(4)


def error(got: Any, want: Any) -> float:
    """The largest relative error."""
    got, want = np.asarray(got), np.asarray(want)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(all="ignore"):
        return float(np.where(same, 0.0, np.abs(got - want) / np.abs(want)).max())


def positive() -> Any:
    return np.concatenate(
        [np.linspace(1e-3, 12, 4001), 10.0 ** RNG.uniform(-300, 300, 500), 10.0 ** RNG.uniform(0, 4, 500)]
    )


def off_the_roots() -> Any:
    """Where SciPy's logarithm has all its digits: it loses some next to 1 and 2."""
    x = positive()
    return x[(np.abs(x - 1) > 0.02) & (np.abs(x - 2) > 0.02)]


def negative() -> Any:
    """Away from the poles and from the roots between them."""
    return -RNG.integers(0, 30, 300) - RNG.choice([0.05, 0.2, 0.85, 0.97], 300)


ONE: dict[str, tuple[Any, Any, float]] = {
    "gammaln": (off_the_roots(), scipy_special.gammaln, 3e-14),
    "digamma": (positive(), scipy_special.digamma, 1e-14),
    "i0": (np.linspace(-700, 700, 3001), scipy_special.i0, 3e-15),
    "i1": (np.linspace(-40, 40, 3001), scipy_special.i1, 3e-15),
    "i0e": (np.linspace(-1e4, 1e4, 3001), scipy_special.i0e, 3e-15),
    "i1e": (np.linspace(-1e4, 1e4, 3001), scipy_special.i1e, 3e-15),
    "erfcinv": (
        np.concatenate([10.0 ** RNG.uniform(-300, 0, 500), np.linspace(0.01, 1.99, 99)]),
        scipy_special.erfcinv,
        2e-14,
    ),
    "ndtri": (
        np.concatenate([10.0 ** RNG.uniform(-300, -1, 300), np.linspace(0.01, 0.98, 98)]),
        scipy_special.ndtri,
        2e-14,
    ),
    "ndtr": (np.linspace(-30, 8, 999), scipy_special.ndtr, 3e-13),
    "log_ndtr": (np.concatenate([np.linspace(-30, 8, 999), [-1e3, -1e10]]), scipy_special.log_ndtr, 1e-13),
    "gamma": (np.concatenate([np.linspace(0.01, 20, 999), negative()]), scipy_special.gamma, 1e-13),
    "entr": (np.linspace(-1, 3, 99), scipy_special.entr, 1e-14),
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_argument(name: str) -> None:
    x, oracle, bound = ONE[name]
    want = oracle(x)
    assert error(getattr(special, name)(x), want) < bound
    assert error(wl.jit(getattr(special, name))(x), want) < max(bound, 1e-14)
    narrow = x[(np.abs(x) > 1e-6) & (np.abs(x) < 80)].astype(np.float32)
    got = getattr(special, name)(narrow)
    assert got.dtype == wl.float32
    np.testing.assert_allclose(got, oracle(narrow.astype(np.float64)), rtol=3e-6, atol=1e-37)


def test_gamma_next_to_its_roots_and_poles() -> None:
    u = RNG.choice([-1, 1], 200) * 10.0 ** RNG.uniform(-15, -4, 200)
    u = (1 + u) - 1  # what a number near 1 can be away from it
    zeta = [scipy_special.zeta(k) for k in range(2, 6)]
    taylor = u * (-np.euler_gamma + u * (zeta[0] / 2 - u * (zeta[1] / 3 - u * (zeta[2] / 4 - u * zeta[3] / 5))))
    assert error(special.gammaln(1 + u), taylor) < 1e-14
    u = (2 + u) - 2
    taylor = u * (-np.euler_gamma + u * (zeta[0] / 2 - u * (zeta[1] / 3 - u * (zeta[2] / 4 - u * zeta[3] / 5))))
    assert error(special.gammaln(2 + u), taylor + np.log1p(u)) < 1e-14
    x = negative()
    assert error(special.gammaln(x), scipy_special.gammaln(x)) < 1e-13
    assert error(special.digamma(x), scipy_special.digamma(x)) < 1e-13
    # next to a pole at -n: psi is -1/r + psi(n + 1), and ln|Gamma| is -ln|r n!|
    n = RNG.integers(0, 9, 99)
    x = RNG.choice([-1, 1], 99) * 10.0 ** RNG.uniform(-13, -7, 99) - n
    r = x + n
    assert error(special.digamma(x), -1 / r + scipy_special.digamma(n + 1.0)) < 1e-13
    assert error(special.gammaln(x), -np.log(np.abs(r)) - scipy_special.gammaln(n + 1.0)) < 1e-6


def test_ends_of_the_domain() -> None:
    x = np.array([0.0, -0.0, -1.0, -2.0, np.inf, -np.inf, np.nan])
    inf, nan = np.inf, np.nan
    for f in (lambda f: f, wl.jit):
        np.testing.assert_array_equal(f(special.gammaln)(x), [inf, inf, inf, inf, inf, inf, nan])
        np.testing.assert_array_equal(f(special.digamma)(x), [-inf, inf, nan, nan, inf, nan, nan])
        np.testing.assert_array_equal(f(lambda x: special.polygamma(1, x))(x), [inf, inf, inf, inf, 0, nan, nan])
        np.testing.assert_array_equal(f(special.i0)(x[4:]), [inf, inf, nan])
        np.testing.assert_array_equal(f(special.i1e)(x[4:]), [0, 0, nan])
        y = np.array([0.0, 2.0, -0.1, 2.1, nan])
        np.testing.assert_array_equal(f(special.erfcinv)(y), [inf, -inf, nan, nan, nan])
    np.testing.assert_array_equal(special.gamma(x[:4]), [inf, -inf, nan, nan])


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_polygamma(n: int) -> None:
    x = np.concatenate([np.linspace(0.05, 30, 999), 10.0 ** RNG.uniform(-10, 20, 99)])
    assert error(special.polygamma(n, x), scipy_special.polygamma(n, x)) < 1e-13
    # the reflection: a finite difference of the order before agrees
    y = wl.asarray(np.array([-0.3, -1.6, -4.2]))
    np.testing.assert_allclose(
        special.polygamma(n + 1, y),
        wl.numerical_jvp(lambda y: special.polygamma(n, y), (y,), (wl.ones_like(y),)),
        rtol=1e-5,
    )


def test_zeta_and_beta() -> None:
    s, q = RNG.uniform(1.01, 20, 500), 10.0 ** RNG.uniform(-3, 6, 500)
    assert error(special.zeta(s, q), scipy_special.zeta(s, q)) < 1e-13
    assert np.isnan(special.zeta(wl.tensor([0.5, 2.0]), wl.tensor([1.0, -1.0])).numpy()).all()
    a, b = 10.0 ** RNG.uniform(-3, 3, (2, 500))
    np.testing.assert_allclose(special.betaln(a, b), scipy_special.betaln(a, b), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(special.beta(a, b), scipy_special.beta(a, b), rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(
        special.multigammaln(a + 3, 4), [scipy_special.multigammaln(v + 3, 4) for v in a], rtol=1e-12
    )


# --- incomplete functions


def test_incomplete_gamma() -> None:
    a = 10.0 ** RNG.uniform(-3, 4, 2000)
    x = a * np.where(
        RNG.random(2000) < 0.5, np.abs(1 + 3 * RNG.normal(size=2000) / np.sqrt(a)), 10 ** RNG.uniform(-2, 2, 2000)
    )
    for name in ("gammainc", "gammaincc"):
        want = getattr(scipy_special, name)(a, x)
        seen = want > 1e-200
        assert error(getattr(special, name)(a, x).numpy()[seen], want[seen]) < 2e-11
        small = slice(0, 200)
        got = wl.jit(getattr(special, name))(a[small], x[small])
        np.testing.assert_allclose(got, getattr(special, name)(a[small], x[small]), rtol=1e-11, atol=1e-200)


@pytest.mark.parametrize("least, bound", [(-1, 5e-11), (-2, 1e-9)])
def test_incomplete_beta(least: float, bound: float) -> None:
    a, b = 10.0 ** RNG.uniform(least, 3.5, (2, 2000))
    mean = a / (a + b)
    x = np.clip(mean + 3 * RNG.normal(size=2000) * np.sqrt(mean * (1 - mean) / (a + b + 1)), 1e-8, 1 - 1e-8)
    want = scipy_special.betainc(a, b, x)
    seen = want > 1e-200
    assert error(special.betainc(a, b, x).numpy()[seen], want[seen]) < bound


def test_incomplete_functions_at_the_ends() -> None:
    inf, nan = np.inf, np.nan
    a = np.array([1.0, 1.0, 0.0, 2.0, -1.0, 1.0, nan, inf])
    x = np.array([0.0, inf, 3.0, nan, 1.0, -1.0, 1.0, 2.0])
    for name in ("gammainc", "gammaincc"):
        np.testing.assert_array_equal(getattr(special, name)(a, x), getattr(scipy_special, name)(a, x))
    b = np.array([2.0, 2.0, 2.0, 2.0, -1.0, nan])
    y = np.array([0.0, 1.0, -0.1, 1.1, 0.5, 0.5])
    np.testing.assert_array_equal(special.betainc(np.ones(6), b, y), [0, 1, nan, nan, nan, nan])


# --- derivatives


def test_derivatives_are_exact_to_all_orders() -> None:
    """The derivative of the logarithm is digamma, that of I0 is I1: with all digits, not those of a fitted curve."""
    x = wl.asarray(np.array([0.3, 1.0, 1.7, 2.9, 3.1, 40.0]))
    f: Any = special.gammaln
    for n in range(4):
        f = wl.grad(lambda x, f=f: f(x).sum())
        np.testing.assert_allclose(f(x), scipy_special.polygamma(n, x.numpy()), rtol=1e-13)
        np.testing.assert_allclose(wl.jit(f)(x), f(x), rtol=1e-12)
    g: Any = special.i0
    at_zero = [1, 0, 1 / 2, 0, 3 / 8, 0, 5 / 16]
    for value in at_zero:
        assert g(wl.tensor(0.0, wl.float64)).item() == pytest.approx(value, abs=1e-13)
        g = wl.grad(g)


def test_derivatives_of_incomplete_functions() -> None:
    a, b, x = (wl.asarray(v) for v in (RNG.uniform(0.5, 20, 6), RNG.uniform(0.5, 20, 6), RNG.uniform(0.2, 0.8, 6)))
    wl.check_grads(special.gammainc, (a, a * (x + 0.5)), order=2)
    wl.check_grads(special.gammaincc, (a, a * (x + 0.5)))
    wl.check_grads(special.betainc, (a, b, x))
    np.testing.assert_allclose(
        wl.grad(lambda x: special.betainc(a, b, x).sum())(x),
        np.exp((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - scipy_special.betaln(a, b)),
        rtol=1e-11,
    )
    # at the end of the support
    slope = wl.grad(lambda x: special.gammainc(wl.tensor([1.0, 2.0]), x).sum())(wl.zeros(2))
    np.testing.assert_array_equal(slope, [1.0, 0.0])


def test_entropies() -> None:
    x, y = np.array([0.0, 0.0, 1.0, 2.0, -1.0, 1.0, np.nan]), np.array([0.0, 1.0, 0.0, 3.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(special.rel_entr(x, y), scipy_special.rel_entr(x, y))
    np.testing.assert_allclose(special.kl_div(x, y), scipy_special.kl_div(x, y))
    np.testing.assert_allclose(special.xlog1py(x, y), scipy_special.xlog1py(x, y))
    wl.check_grads(special.rel_entr, (np.array([0.5, 2.0]), np.array([1.0, 3.0])), order=2)
    wl.check_grads(special.log_ndtr, (np.array([-30.0, -10.5, -9.0, -0.4, 2.0]),), order=2)
    wl.check_grads(special.ndtri, (np.array([0.01, 0.4, 0.9]),))


def test_where_the_functions_are_found() -> None:
    assert wl.lgamma is special.lgamma is special.gammaln
    assert wl.digamma is special.digamma is special.psi
    assert all(hasattr(special, name) for name in special.__all__)
    x = wl.asarray(np.array([0.5, 2.0]))
    np.testing.assert_allclose(np.asarray(np.i0(x)), np.i0(x.numpy()))
    assert isinstance(np.sinc(x), wl.Tensor)
    for f in (special.gammaln, special.digamma, special.i0, special.erfcinv):
        with pytest.raises(wl.errors.DTypeError, match="takes real"):
            f(wl.tensor(1j))
        assert f(wl.tensor([1, 2])).dtype == wl.float32
        assert f(wl.tensor([0.5], wl.bfloat16)).dtype == wl.bfloat16
    with pytest.raises(wl.errors.InputError, match="n=-1"):
        special.polygamma(-1, 1.0)
    with pytest.raises(wl.errors.DTypeError, match="takes real"):
        special.gammainc(1j, 1.0)


def test_no_step_is_left_to_numpy() -> None:
    x = wl.asarray(np.linspace(0.1, 3.0, 50))
    for f in (special.gammaln, special.digamma, special.i1e, lambda x: special.gammainc(x, x), special.erfcinv):
        assert "NumPy computes: nothing" in str(wl.explain(f, x))


def test_nans_of_branches_that_are_not_taken_are_not_reported() -> None:
    with wl.debug.nans():
        assert special.gammaln(wl.tensor([1.0, 5.0])).shape == (2,)
        wl.jit(special.gammaln)(wl.tensor([1.0, 5.0]))
