"""Feature maps and their kernels: exact, approximate, and those that have negative values."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional


def numbers(*shape: int, seed: int = 0) -> wl.Tensor:
    return wl.tensor(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.book("13.06", name="wl.nn.functional.elu_plus_one")
def test_elu_plus_one_is_positive_and_smooth_at_zero() -> None:
    x = wl.tensor(np.linspace(-80, 80, 1001).astype(np.float32))
    found = np.asarray(F.elu_plus_one(x))
    assert (found > 0).all()
    np.testing.assert_allclose(found, np.where(x > 0, np.asarray(x) + 1, np.exp(np.minimum(x, 0))), rtol=1e-6)
    assert (np.asarray(F.elu(wl.tensor(np.float32(-80.0))) + 1) == 0).all()  # the sum of the two would round to nothing
    for side in (-1e-9, 0.0, 1e-9):
        value, slope = wl.value_and_grad(F.elu_plus_one)(wl.tensor(np.float64(side)))
        assert value.item() == pytest.approx(1, abs=1e-8)
        assert slope.item() == pytest.approx(1, abs=1e-8)
    wl.check_grads(F.elu_plus_one, (numbers(7),))


@pytest.mark.book("13.07", "13.08", name="wl.nn.PolynomialMap")
@pytest.mark.parametrize("c, d, size", [(3, 2, 10), (3, 3, 20), (5, 1, 6), (2, 4, 15)])
def test_polynomial_features(c: int, d: int, size: int) -> None:
    phi = nn.PolynomialMap(c, d)
    x, y = numbers(6, c), numbers(6, c, seed=1)
    assert phi.size == size == math.comb(c + d, d)
    assert phi(x).shape == (6, size)
    np.testing.assert_allclose(phi.kernel(x, y), (1 + (np.asarray(x) * np.asarray(y)).sum(-1)) ** d, rtol=1e-12)
    wl.check_grads(lambda x: F.polynomial_features(x, d), (x,))


@pytest.mark.book("13.07", "13.08", name="wl.nn.functional.polynomial_features")
def test_the_quadratic_expansion_by_hand() -> None:
    """All monomials of degree 2 and below, with the roots of how often they come up; without those it is no power."""
    a, b, c = 0.5, -2.0, 3.0
    root = math.sqrt(2)
    wanted = [1, root * a, root * b, root * c, a * a, root * a * b, root * a * c, b * b, root * b * c, c * c]
    np.testing.assert_allclose(F.polynomial_features(wl.tensor(np.array([a, b, c]))), wanted, rtol=1e-15)
    x = np.random.default_rng(3).normal(size=3)
    y = x * 1.480612 / (x @ x)
    phi, psi = (np.asarray(F.polynomial_features(wl.tensor(z))) for z in (x, y))
    assert phi @ psi == pytest.approx((1 + x @ y) ** 2, rel=1e-12)
    assert phi @ psi == pytest.approx(6.153434, abs=5e-6)
    plain = np.where(phi == 0, 0, 1) * np.array([1, *x, *[x[i] * x[j] for i in range(3) for j in range(i, 3)]])
    other = np.array([1, *y, *[y[i] * y[j] for i in range(3) for j in range(i, 3)]])
    assert abs(plain @ other - 6.153434) > 0.1
    without = np.asarray(F.polynomial_features(wl.tensor(x), offset=0.0))  # only those of degree 2
    assert (without[:4] == 0).all()
    assert without @ np.asarray(F.polynomial_features(wl.tensor(y), offset=0.0)) == pytest.approx((x @ y) ** 2)


@pytest.mark.book("13.09", name="wl.nn.RandomFourierMap")
@pytest.mark.parametrize("phases", [True, False])
def test_random_fourier_features_approach_the_gaussian_kernel(phases: bool) -> None:
    x = wl.tensor(np.array([0.3, -0.2, 0.9]))
    step = np.array([2.0, -1.0, 0.5])
    y = x + wl.tensor(step * math.sqrt(-2 * math.log(0.3601)) / np.linalg.norm(step))  # exactly .3601
    phi = nn.RandomFourierMap(3, 20_000, phases=phases, dtype=wl.float64, key=wl.random.key(0))
    assert phi.kernel(x, y).item() == pytest.approx(0.3601, abs=3 / math.sqrt(20_000))
    assert phi.kernel(x, x).item() == pytest.approx(1.0, abs=3 / math.sqrt(20_000))
    wide = nn.RandomFourierMap(3, 20_000, sigma=2.0, phases=phases, dtype=wl.float64, key=wl.random.key(1))
    assert wide.kernel(x, y).item() == pytest.approx(0.3601**0.25, abs=3 / math.sqrt(20_000))
    # fixed: buffers, the same at each call, and none of them is trained
    assert phi.num_parameters() == 0
    np.testing.assert_array_equal(phi(x), phi(x))
    assert (np.asarray(phi(x)) < 0).any()
    errors = []
    for size in (64, 1024):
        maps = [nn.RandomFourierMap(3, size, phases=phases, dtype=wl.float64, key=wl.random.key(s)) for s in range(60)]
        errors.append(np.sqrt(np.mean([(m.kernel(x, y).item() - 0.3601) ** 2 for m in maps])))
    assert 2.5 < errors[0] / errors[1] < 6.5  # the root of 16, about


def test_the_formula_of_random_fourier_features() -> None:
    phi = nn.RandomFourierMap(3, 5, dtype=wl.float64, key=wl.random.key(2))
    x = numbers(4, 3)
    wanted = np.sqrt(2 / 5) * np.cos(np.asarray(x) @ np.asarray(phi.waves.frequencies) + np.asarray(phi.phases))
    np.testing.assert_allclose(phi(x), wanted, rtol=1e-12)
    assert (np.asarray(phi.phases) >= 0).all()
    assert (np.asarray(phi.phases) < 2 * math.pi).all()


@pytest.mark.book("13.03", name="wl.nn.KernelFeatureMap")
def test_kernels_are_positive_definite_and_need_not_be_positive() -> None:
    x = numbers(12, 4)
    for phi in (nn.EluPlusOne(), nn.PolynomialMap(4, 2), nn.PolynomialMap(4, 3), nn.RandomFourierMap(4, 64)):
        gram = np.asarray(phi.kernel(x[:, None], x[None, :]), dtype=np.float64)
        assert np.linalg.eigvalsh(gram).min() > -1e-5 * np.abs(gram).max()
        if phi.positive:
            assert (gram > 0).all()
    odd = np.asarray(nn.PolynomialMap(4, 3).kernel(x[:, None], x[None, :]))
    assert (odd < 0).any()  # so "non-negative" and "kernel" are not the same
    assert not nn.PolynomialMap(4, 3).positive
    # nor is a non-negative function a kernel: that of distances beyond 1 has a negative eigenvalue
    far = np.asarray(wl.sum((x[:, None] - x[None, :]) ** 2, axis=-1)) > 1
    assert np.linalg.eigvalsh(far.astype(float)).min() < -0.1


@pytest.mark.book("13.03", name="wl.nn.functional.linear_attention")
def test_denominators_that_are_not_positive_are_guarded() -> None:
    q, k, v = wl.tensor([[1.0, 0.0]]), wl.tensor([[-4.0, 0.0], [1.0, 0.0]]), wl.tensor([[1.0], [2.0]])
    phi = nn.PolynomialMap(2, 3)  # (1 - 4)^3 + (1 + 1)^3 < 0
    assert (phi.kernel(q, k).sum()).item() == pytest.approx(-19)
    for f in (
        lambda guard: F.linear_attention(q, k, v, phi, guard=guard),
        lambda guard: F.kernel_attention(q, k, v, phi.kernel, guard=guard),
    ):
        assert f("zero").tolist() == [[0.0]]
        with pytest.raises(InputError, match=r"1 queries have a sum that is not above 0(.|\n)*normalize=False"):
            f("raise")
        with pytest.raises(InputError, match="guard='never'"):
            f("never")
    gradient = wl.grad(lambda q: F.linear_attention(q, k, v, phi).sum())(q)
    assert np.isfinite(np.asarray(gradient)).all()
    assert wl.jit(lambda q: F.linear_attention(q, k, v, phi, guard="raise"))(q).tolist() == [[0.0]]
    layer = nn.LinearAttention(4, 1, feature_map=nn.PolynomialMap(4, 3), guard="raise")
    with pytest.raises(InputError, match=r"LinearAttention\(4, 1, guard='raise'\): the similarities of"):
        layer(100 * numbers(8, 9, 4))


def test_bad_input() -> None:
    for make, message in (
        (lambda: nn.PolynomialMap(0), "c=0"),
        (lambda: nn.PolynomialMap(3, 0), "degree=0"),
        (lambda: nn.PolynomialMap(3, offset=-1.0), "offset=-1.0"),
        (lambda: nn.RandomFourierMap(3, 5, sigma=0.0), "sigma=0.0"),
        (lambda: nn.RandomFourierMap(3, 5, phases=False), "5 features in pairs"),
        (lambda: F.polynomial_features(wl.ones(3), offset=math.nan), "offset=nan"),
        (lambda: nn.LinearAttention(4, 2, feature_map="cosine"), r"feature_map='cosine'"),
    ):
        with pytest.raises(InputError, match=message):
            make()
    with pytest.raises(ShapeError, match=r"PolynomialMap\(3, degree=2\): an input of shape \(2, 4\)"):
        nn.PolynomialMap(3)(wl.ones((2, 4)))
    with pytest.raises(ShapeError, match="without an axis"):
        F.polynomial_features(wl.tensor(1.0))
    with pytest.raises(ShapeError, match=r"the feature map makes \(1,\)"):
        nn.LinearAttention(4, 2, feature_map=lambda x: x.sum(-1))
