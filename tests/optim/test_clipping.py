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
