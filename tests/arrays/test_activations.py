"""Stable functions where the naive ones fail, norms, similarities and the book's constraints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wonderland as wl

special = pytest.importorskip("scipy.special")
matrices = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4),
    elements=st.floats(-800, 800),
)


@given(matrices, st.data())
def test_log_sum_exp_and_softmax(x: np.ndarray, data: Any) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    np.testing.assert_allclose(
        wl.logsumexp(x, axis=axis).numpy(), special.logsumexp(x, axis=axis), rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(wl.logsumexp(x).numpy(), special.logsumexp(x), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(wl.softmax(x, axis=axis).numpy(), special.softmax(x, axis=axis), atol=1e-12)
    np.testing.assert_allclose(wl.log_softmax(x, axis=axis).numpy(), special.log_softmax(x, axis=axis), atol=1e-9)
    # the gradient of logsumexp is the softmax
    gradient = wl.grad(lambda x: wl.logsumexp(x, axis=axis).sum())(wl.asarray(x))
    np.testing.assert_allclose(gradient.numpy(), special.softmax(x, axis=axis), atol=1e-10)
    weights = data.draw(hnp.arrays(np.float64, x.shape, elements=st.floats(0.1, 3)))
    np.testing.assert_allclose(
        wl.logsumexp(x, axis=axis, b=weights).numpy(), special.logsumexp(x, axis=axis, b=weights), atol=1e-9
    )


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float32", "float64"))
def test_extreme_arguments(dtype: str) -> None:
    big = float(wl.finfo(dtype).max) / 2
    x = wl.tensor([-big, -1.0, 0.0, 1.0, big], dtype=dtype)
    for f in (
        wl.sigmoid,
        wl.softplus,
        wl.log_sigmoid,
        wl.softmax,
        wl.log_softmax,
        wl.logsumexp,
        wl.relu,
        wl.tanh,
    ):
        y = f(x)
        assert y.dtype == dtype
        assert not bool(wl.isnan(y).any())
        gradient = wl.grad(lambda x, f=f: f(x)[..., 0].sum() if f(x).ndim else f(x))(x)
        assert gradient.dtype == dtype
        assert not bool(wl.isnan(gradient).any())
    assert wl.softplus(x)[-1].item() == x[-1].item()
    assert wl.log_sigmoid(x)[0].item() == x[0].item()
    assert wl.sigmoid(x).tolist()[2] == 0.5


def test_against_scipy() -> None:
    x = np.linspace(-40, 40, 401)
    np.testing.assert_allclose(wl.sigmoid(x).numpy(), special.expit(x), rtol=1e-14)
    np.testing.assert_allclose(wl.log_sigmoid(x).numpy(), special.log_expit(x), rtol=1e-13)
    np.testing.assert_allclose(wl.softplus(x).numpy(), np.logaddexp(0, x), rtol=1e-14)


def test_masked_softmax_with_an_empty_row() -> None:
    x = wl.tensor([[1.0, 2.0], [3.0, 4.0]])
    mask = wl.tensor([[True, False], [False, False]])
    assert wl.softmax(x, where=mask).tolist() == [[1, 0], [0, 0]]
    assert wl.logsumexp(x, axis=1, where=mask).tolist() == [1, -math.inf]
    assert wl.log_softmax(x, where=mask)[0].tolist() == [0, -math.inf]
    for f in (wl.softmax, wl.logsumexp, wl.log_softmax):
        finite = lambda x, f=f: wl.where(wl.isfinite(y := f(x, axis=1, where=mask)), y, 0.0).sum()
        assert bool(wl.isfinite(wl.grad(finite)(x)).all())
    everything = wl.softmax(wl.full((3,), -math.inf))
    assert everything.tolist() == [0, 0, 0]
    assert wl.softmax(wl.zeros((2, 0))).shape == (2, 0)
    assert wl.logsumexp(wl.zeros((2, 0)), axis=1).tolist() == [-math.inf, -math.inf]


@pytest.mark.book("1.11", name="wl.softmax")
def test_softmax_normalises_the_last_axis() -> None:
    X = wl.asarray(np.random.default_rng(0).normal(size=(5, 3)))
    P = wl.softmax(X)
    np.testing.assert_allclose(P.sum(axis=-1).numpy(), np.ones(5))
    assert not np.allclose(P.sum(axis=0).numpy(), 1)
    assert wl.is_simplex(P)
    assert not wl.is_simplex(P, axis=0)


@pytest.mark.book("1.11", name="wl.is_simplex")
def test_is_simplex() -> None:
    assert wl.is_simplex(wl.tensor([0.0, 1.0]))
    assert not wl.is_simplex(wl.tensor([0.0, 1.0]), strict=True)
    assert not wl.is_simplex(wl.tensor([-0.5, 1.5]))
    assert not wl.is_simplex(wl.tensor([0.5, 0.6]))
    assert not wl.is_simplex(wl.tensor([math.nan, 1.0]))


@pytest.mark.book("1.10", name="wl.is_binary")
def test_is_binary() -> None:
    assert wl.is_binary(wl.one_hot(wl.tensor([0, 2, 1]), 3))
    assert wl.is_binary(wl.tensor([True, False]))
    assert not wl.is_binary(wl.tensor([0.0, 0.5, 1.0]))


def test_xlogy_and_its_gradient_at_zero() -> None:
    g = wl.grad(lambda x, y: wl.xlogy(x, y).sum(), argnums=(0, 1))(wl.tensor([0.0, 2.0]), wl.tensor([0.0, 4.0]))
    assert g[1].tolist() == [0, 0.5]
    assert bool(wl.isfinite(g[0]).all())


@pytest.mark.book("2.10", name="wl.norm")
def test_norm() -> None:
    assert wl.norm(wl.tensor([3.0, 4.0])).item() == 5
    assert wl.sq_norm(wl.tensor([3.0, 4.0])).item() == 25
    x = np.random.default_rng(0).normal(size=(3, 4))
    for axis in (None, 0, 1, (0, 1)):
        expected = np.sqrt((x**2).sum(axis))
        np.testing.assert_allclose(wl.norm(x, axis=axis).numpy(), expected)
    np.testing.assert_allclose(wl.grad(wl.norm)(wl.asarray(x)).numpy(), x / np.linalg.norm(x))
    np.testing.assert_array_equal(wl.grad(wl.norm)(wl.zeros(3)).numpy(), np.zeros(3))
    z = wl.tensor([3 + 4j, 0j])
    assert wl.norm(z).item() == 5
    np.testing.assert_allclose(wl.grad(wl.norm)(z).numpy(), [0.6 + 0.8j, 0], rtol=1e-6)


@pytest.mark.book("2.13", name="wl.cosine_similarity")
def test_cosine_similarity() -> None:
    x = wl.tensor([1.0, 2.0, 2.0])
    cosine = wl.cosine_similarity
    assert cosine(x, 3 * x).item() == pytest.approx(1)
    assert cosine(x, -2 * x).item() == pytest.approx(-1)
    assert cosine(x, wl.tensor([2.0, -1.0, 0.0])).item() == pytest.approx(0, abs=1e-7)
    assert cosine(x, wl.zeros(3)).item() == 0
    assert cosine(wl.zeros(3), wl.zeros(3)).item() == 0
    assert bool(wl.isfinite(wl.grad(lambda x: cosine(x, wl.ones(3)))(wl.zeros(3))).all())
    rng = np.random.default_rng(0)
    for _ in range(50):
        v = rng.normal(size=7).astype(np.float32)
        assert -1 <= cosine(v, v).item() <= 1  # rounding does not take it past 1
    a, b = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    expected = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
    np.testing.assert_allclose(cosine(a, b).numpy(), expected)
    np.testing.assert_allclose(cosine(a.T, b.T, axis=0).numpy(), expected)


@pytest.mark.book("2.17", name="wl.pairwise_sq_distances")
def test_squared_distances_through_inner_products() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    loop = np.array([[((x - y) ** 2).sum() for y in Y] for x in X])
    np.testing.assert_allclose(wl.pairwise_sq_distances(X, Y).numpy(), loop, atol=1e-12)
    np.testing.assert_allclose(wl.pairwise_sq_distances(X, np.zeros((1, 3))).numpy()[:, 0], (X * X).sum(1))
    batch = rng.normal(size=(2, 5, 3))
    assert wl.pairwise_sq_distances(batch, Y).shape == (2, 5, 4)
    far = wl.asarray((rng.normal(size=(20, 8)) + 1000).astype(np.float32))
    distances = wl.pairwise_sq_distances(far, far)
    assert bool((distances >= 0).all())
    assert bool((wl.diagonal(distances) == 0).all())
    gradient = wl.grad(lambda X: wl.pairwise_sq_distances(X, Y).sum())(wl.asarray(X))
    np.testing.assert_allclose(gradient.numpy(), 2 * (4 * X - Y.sum(0)), atol=1e-12)
    with pytest.raises(wl.errors.ShapeError):
        wl.pairwise_sq_distances(X, Y[:, :2])
