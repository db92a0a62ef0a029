"""Numerical differentiation and subgradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import GradientError, InputError

rng = np.random.default_rng(0)


def f64(x: Any) -> wl.Tensor:
    return wl.asarray(np.asarray(x, np.float64))


@pytest.mark.book("6-21", "B6-04", name="wl.numerical_grad")
def test_number_of_calls() -> None:
    x = f64(rng.normal(size=(2, 3)))
    for method, calls in (("central", 2 * 6), ("forward", 6 + 1)):
        seen: list[int] = []
        g = wl.numerical_grad(lambda x, seen=seen: seen.append(1) or wl.sin(x).sum(), x, method=method)
        assert len(seen) == calls
        np.testing.assert_allclose(g, np.cos(x.numpy()), atol=1e-6)


@pytest.mark.book("6-21", "B6-04", name="wl.numerical_grad")
def test_order_of_accuracy() -> None:
    """Halving the step divides the error by 4 for central and by 2 for forward differences."""
    x, want = f64(0.7), np.exp(0.7)
    for method, ratio in (("central", 4.0), ("forward", 2.0)):
        errors = [abs(wl.numerical_grad(wl.exp, x, eps, method).item() - want) for eps in (1e-2, 5e-3)]
        assert errors[0] / errors[1] == pytest.approx(ratio, rel=0.01)
        errors = [abs(wl.numerical_jvp(wl.exp, (x,), (f64(1.0),), eps, method).item() - want) for eps in (1e-2, 5e-3)]
        assert errors[0] / errors[1] == pytest.approx(ratio, rel=0.01)


@pytest.mark.book("6-22", name="wl.numerical_grad")
def test_float64_unless_told_otherwise() -> None:
    x = wl.tensor([0.5, 1.0])  # float32
    f = lambda x: wl.exp(x).sum()
    wide = wl.numerical_grad(f, x)
    assert wide.dtype == wl.float64
    np.testing.assert_allclose(wide, np.exp([0.5, 1.0]), rtol=1e-9)
    narrow = wl.numerical_grad(f, x, dtype=None)
    assert narrow.dtype == wl.float32
    assert 1e-6 < np.max(np.abs(narrow.numpy() / np.exp([0.5, 1.0]) - 1)) < 1e-2
    assert wl.numerical_grad(lambda x: x, 0.1).item() == pytest.approx(1.0, rel=1e-9)


def test_large_numbers_get_a_larger_step() -> None:
    for x in (1e8, -3e4, 1.0, 1e-8, 0.0):
        assert wl.numerical_grad(lambda x: x**2, f64(x)).item() == pytest.approx(2 * x, rel=1e-8, abs=1e-10)


def test_trees_modules_and_complex_numbers() -> None:
    tree = {"a": f64([1.0, 2.0]), "b": (f64(3.0), None)}
    g = wl.numerical_grad(lambda t: (t["a"] ** 2).sum() * t["b"][0], tree)
    np.testing.assert_allclose(g["a"], [6.0, 12.0], rtol=1e-8)
    assert g["b"][0].item() == pytest.approx(5.0)
    assert g["b"][1] is None

    model = nn.Linear(3, 2)
    x = wl.asarray(rng.normal(size=(4, 3)).astype(np.float32))
    loss = lambda model: wl.tanh(model(x)).sum()
    before = {name: p.numpy().copy() for name, p in model.named_parameters()}
    want, got = wl.grad(loss)(model), wl.numerical_grad(loss, model)
    assert set(got) == set(want)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-5)
        assert got[name].dtype == wl.float64
    for name, p in model.named_parameters():
        np.testing.assert_array_equal(p.numpy(), before[name])
        assert p.dtype == wl.float32

    z = wl.asarray(np.array([1 + 2j, 0.5j]))
    f = lambda z: wl.real(wl.exp(z) * wl.conj(z)).sum()
    np.testing.assert_allclose(wl.numerical_grad(f, z), wl.grad(f)(z), rtol=1e-8)


def test_numerical_jvp() -> None:
    f = lambda x, y: {"p": x @ y, "i": wl.arange(2)}
    x, y = f64(rng.normal(size=(2, 3))), f64(rng.normal(size=3))
    t, u = f64(rng.normal(size=(2, 3))), f64(rng.normal(size=3))
    got = wl.numerical_jvp(f, (x, y), (t, u))
    np.testing.assert_allclose(got["p"], t.numpy() @ y.numpy() + x.numpy() @ u.numpy(), rtol=1e-8)
    np.testing.assert_array_equal(got["i"], [0, 0])
    zero = wl.numerical_jvp(f, (x, y), (wl.zeros_like(t), wl.zeros_like(u)))
    np.testing.assert_array_equal(zero["p"], [0, 0])
    assert wl.numerical_jvp(lambda x: x, (wl.ones(0),), (wl.ones(0),)).shape == (0,)


def test_bad_calls_explain_themselves() -> None:
    with pytest.raises(GradientError, match=r"returned float64\[3\]; only a real scalar has a gradient"):
        wl.numerical_grad(lambda x: x, wl.ones(3))
    with pytest.raises(InputError, match="no method 'backward'"):
        wl.numerical_grad(wl.sin, 1.0, method="backward")
    with pytest.raises(GradientError, match="int64"):
        wl.numerical_grad(lambda x: x.sum(), wl.arange(3))
    with pytest.raises(GradientError, match="tangent"):
        wl.numerical_jvp(wl.sin, (wl.ones(2),), (wl.ones(3),))
    with pytest.raises(InputError, match=r"x has shape \(2,\), z \(\) and the grid \(3,\)"):
        wl.is_subgradient(wl.norm, wl.ones(2), 0.0, wl.ones(3))
    with pytest.raises(InputError, match="a function of one number"):
        wl.subdifferential(wl.norm, wl.ones(2))


@pytest.mark.book("6-74", name="wl.is_subgradient")
def test_subgradients_of_the_absolute_value() -> None:
    grid = wl.linspace(-2, 2, 41)
    for z in (-1.0, -0.4, 0.0, 0.9, 1.0):
        assert wl.is_subgradient(wl.abs, 0.0, z, grid)
    for z in (-1.1, 1.1, 3.0):
        assert not wl.is_subgradient(wl.abs, 0.0, z, grid)
    assert wl.is_subgradient(wl.abs, 0.5, 1.0, grid)
    assert not wl.is_subgradient(wl.abs, 0.5, 0.9, grid)


def test_subgradients_in_several_dimensions() -> None:
    grid = wl.asarray(rng.normal(size=(200, 2)))
    assert wl.is_subgradient(wl.norm, wl.zeros(2), wl.tensor([0.6, 0.7]), grid)
    assert not wl.is_subgradient(wl.norm, wl.zeros(2), wl.tensor([0.9, 0.9]), grid)
    x = f64([1.0, 2.0])
    assert wl.is_subgradient(wl.norm, x, wl.grad(wl.norm)(x), grid)


@pytest.mark.book("6-75", name="wl.subdifferential")
def test_subdifferential_of_relu() -> None:
    for s, want in ((-1.0, (0.0, 0.0)), (0.0, (0.0, 1.0)), (2.0, (1.0, 1.0))):
        assert wl.subdifferential(wl.relu, s) == pytest.approx(want, abs=1e-6)
    assert wl.subdifferential(lambda x: wl.abs(x) + x, 0.0) == pytest.approx((0.0, 2.0), abs=1e-6)
    assert wl.subdifferential(wl.exp, 1.0) == pytest.approx((np.e, np.e), abs=1e-6)
