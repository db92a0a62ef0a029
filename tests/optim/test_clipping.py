"""Clipping by norm, by value and by unit."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, optim
from wonderland.errors import GradientError, InputError, NonFiniteError, TreeError

rng = np.random.default_rng(0)
W, C = rng.normal(size=(3, 4)), rng.normal(size=4)


def test_short_gradients_stay():
    g = wl.asarray(W)
    clipped, _ = optim.clip_grad_norm([g], 1e3)
    np.testing.assert_array_equal(clipped[0], W)


def test_the_norm_does_not_overflow():
    g = wl.tensor([3e30, 4e30])  # the squares are beyond float32
    clipped, norm = optim.clip_grad_norm([g], 1.0)
    assert norm.dtype == wl.float32
    np.testing.assert_allclose(norm.item(), 5e30, rtol=1e-6)
    np.testing.assert_allclose(clipped[0], [0.6, 0.8], rtol=1e-6)


def test_the_norm_of_other_kinds():
    assert optim.global_norm([]).item() == 0.0
    assert optim.global_norm({"a": wl.zeros((0, 3)), "b": wl.tensor(2.0)}).item() == 2.0
    assert optim.global_norm([wl.tensor([3 + 4j])]).item() == 5.0
    assert optim.global_norm([wl.tensor([3.0, 4.0], wl.bfloat16)]).dtype == wl.bfloat16


def test_clipping_by_value():
    np.testing.assert_array_equal(optim.clip_grad_value([wl.asarray(W)], 0.5)[0], np.clip(W, -0.5, 0.5))
    w = nn.Parameter([3.0, -0.2])
    (0.5 * w * w).sum().backward()
    optim.clip_grad_value_(w, 1.0)
    np.testing.assert_allclose(w.grad, [1.0, -0.2])


def test_adaptive_clipping_of_units():
    g = 0.1 * W
    found = optim.adaptive_clip({"w": wl.asarray(g)}, {"w": wl.asarray(W)}, clipping=0.05)["w"].numpy()
    np.testing.assert_allclose(found, 0.5 * g, rtol=1e-12)  # every column is twice too long
    model = nn.Linear(3, 4)
    grads = wl.grad(lambda m: (m(wl.ones((2, 3))) ** 2).sum())(model)
    small = optim.adaptive_clip(grads, model, clipping=1e-3)
    for name, p in model.named_parameters():
        limit = 1e-3 * np.maximum(np.linalg.norm(p.numpy(), axis=0) if p.ndim > 1 else abs(p.numpy()), 1e-3)
        size = np.linalg.norm(small[name].numpy(), axis=0) if p.ndim > 1 else abs(small[name].numpy())
        assert (size <= limit * (1 + 1e-5)).all()
    with pytest.raises(TreeError, match="do not have the shapes"):
        optim.adaptive_clip([wl.ones(3)], [wl.ones(4)])


def test_a_compiled_step_with_clipping():
    model = nn.Linear(3, 1)
    optimizer = optim.SGD(model, lr=1.0)
    before = {name: p.numpy().copy() for name, p in model.named_parameters()}

    @wl.jit
    def step(model, optimizer, x):
        grads = wl.grad(lambda m, x: 1e4 * m(x).sum())(model, x)
        grads, norm = optim.clip_grad_norm(grads, 1.0)
        optimizer.step(grads)
        return norm

    norm = step(model, optimizer, wl.ones((4, 3)))
    np.testing.assert_allclose(norm.item(), 1e4 * np.sqrt(3 * 16 + 16), rtol=1e-5)
    moved = sum(((p.numpy() - before[name]) ** 2).sum() for name, p in model.named_parameters())
    np.testing.assert_allclose(moved, 1.0, rtol=1e-4)


def test_bad_input():
    with pytest.raises(InputError, match="max_norm=-1"):
        optim.clip_grad_norm([wl.ones(2)], -1)
    with pytest.raises(InputError, match="norm_type=0"):
        optim.global_norm([wl.ones(2)], 0)
    with pytest.raises(InputError, match="clip_value='a'"):
        optim.clip_grad_value([wl.ones(2)], "a")
    with pytest.raises(NonFiniteError, match="is nan"):
        optim.clip_grad_norm([wl.tensor([float("nan")])], 1.0, error_if_nonfinite=True)
    with pytest.raises(GradientError, match="no parameter has a gradient"):
        optim.clip_grad_norm_(nn.Linear(2, 2), 1.0)


@pytest.mark.book("13.29", name=["wl.optim.clip_grad_norm", "wl.optim.clip_grad_value", "wl.train.fit"])
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_that_explode_over_time_are_clipped(compiled):
    """The gradient of a recurrence with eigenvalues above 1, clipped by norm, by value, and inside of fit."""
    x = wl.asarray(rng.normal(size=(40, 3)))
    A = wl.asarray(1.4 * np.linalg.qr(W[:, :3])[0])

    def loss(A):
        return (wl.scan(lambda s, u: (s @ A + u, None), wl.zeros(3, dtype=wl.float64), x)[0] ** 2).sum()

    grads = {"A": wl.grad(loss)(A), "other": wl.asarray(C)}
    size = np.sqrt(sum((np.asarray(g) ** 2).sum() for g in grads.values()))
    assert size > 1e6
    by_norm = lambda g, c: optim.clip_grad_norm(g, c)[0]
    by_value = lambda g, c: optim.clip_grad_value(g, c)
    if compiled:
        by_norm, by_value = (wl.jit(f, static_argnums=1) for f in (by_norm, by_value))
    for bound in (0.5, 10.0):
        clipped = by_norm(grads, bound)
        found = np.sqrt(sum((np.asarray(g) ** 2).sum() for g in clipped.values()))
        assert bound * (1 - 1e-5) <= found <= bound * (1 + 1e-12)
        for name, g in grads.items():  # the direction is kept, by one factor for all
            np.testing.assert_allclose(clipped[name], np.asarray(g) * (found / size), rtol=1e-10)
        cut = by_value(grads, bound)
        for name, g in grads.items():
            np.testing.assert_array_equal(cut[name], np.clip(np.asarray(g), -bound, bound))
    direction = np.asarray(by_value(grads, 0.5)["A"]).ravel() @ np.asarray(grads["A"]).ravel()
    lengths = np.linalg.norm(by_value(grads, 0.5)["A"]) * np.linalg.norm(grads["A"])
    assert direction < 0.999 * lengths  # which clipping by value does not keep
    for f in (by_norm, by_value):  # nothing happens below the bound
        for name, g in f(grads, 10 * size).items():
            np.testing.assert_array_equal(g, grads[name])
    # clipped by norm, a NaN in one gradient is in all of them, an infinity makes the others 0; by value a NaN stays
    for odd in (np.nan, np.inf):
        spoiled = {**grads, "other": wl.asarray(np.array([1.0, odd]))}
        clipped, norm = optim.clip_grad_norm(spoiled, 1.0)
        assert not np.isfinite(norm.item())
        assert not np.isfinite(np.asarray(clipped["other"])).all()
        assert (np.isnan(clipped["A"]) if np.isnan(odd) else np.asarray(clipped["A"]) == 0).all()
        with pytest.raises(NonFiniteError, match=r"the norm of the gradients is (nan|inf)"):
            optim.clip_grad_norm(spoiled, 1.0, error_if_nonfinite=True)
    cut = optim.clip_grad_value([wl.tensor([float("nan"), float("inf"), -float("inf")])], 2.0)[0]
    np.testing.assert_array_equal(cut, [np.nan, 2.0, -2.0])
    # in fit: one step of descent with rate 1 is as long as the bound
    model = nn.Linear(3, 1, dtype=wl.float64)
    before = {name: p.numpy().copy() for name, p in model.named_parameters()}
    data = [(x, 1e6 * x[:, :1])]
    wl.train.fit(
        model, "mse_loss", data, epochs=1, optimizer=optim.SGD, lr=1.0, clip_norm=0.25, jit=compiled, progress=False
    )
    moved = np.sqrt(sum(((p.numpy() - before[name]) ** 2).sum() for name, p in model.named_parameters()))
    assert moved == pytest.approx(0.25, rel=1e-5)
