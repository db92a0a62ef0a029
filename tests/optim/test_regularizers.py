"""Penalties, proximal steps and projections. Book, section 9.2.1."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

import wonderland as wl
from wonderland import nn, optim
from wonderland.errors import AxisError, DTypeError, InputError

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 5))
TRUTH = np.array([2.0, -1.5, 0.0, 0.0, 0.05])
Y = X @ TRUTH + 0.1 * rng.normal(size=40)


def squares(w):
    return ((wl.asarray(X) @ w - wl.asarray(Y)) ** 2).sum()


def ridge(factor):
    return np.linalg.solve(X.T @ X + factor * np.eye(5), X.T @ Y)


def network():
    wl.random.seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2)).astype(wl.float64)


@pytest.mark.book("9-05", name=("wl.optim.l2", "wl.optim.l1", "wl.optim.group_lasso"))
@pytest.mark.parametrize("penalty", [optim.l1, optim.l2, optim.group_lasso, optim.elastic_net])
def test_a_factor_of_zero_changes_no_bit(penalty):
    model, x = network(), wl.asarray(rng.normal(size=(7, 3)))

    def loss(model, x):
        return (model(x) ** 2).sum()

    plain = wl.value_and_grad(loss)(model, x)
    with_penalty = wl.value_and_grad(lambda m, x: loss(m, x) + penalty(m, 0.0))(model, x)
    assert plain[0].item() == with_penalty[0].item()
    for name, g in plain[1].items():
        np.testing.assert_array_equal(g, with_penalty[1][name])
    for bad in (-1e-9, float("nan"), float("inf"), "much"):
        with pytest.raises(InputError, match="factor="):
            penalty(model, bad)


@pytest.mark.book("9-07", name="wl.optim.l2")
@pytest.mark.parametrize("compiled", [False, True])
def test_the_gradient_of_l2_is_twice_the_factor_times_the_weights(compiled):
    model = network()
    f = wl.grad(lambda m: optim.l2(m, 0.25))
    grads = (wl.jit(f) if compiled else f)(model)
    for name, p in model.named_parameters():
        np.testing.assert_array_equal(grads[name], 0.5 * p.numpy())
    weights = wl.grad(lambda m: optim.l2(m, 0.25, weights_only=True))(model)
    assert {name for name, g in weights.items() if np.any(g.numpy())} == {"0.weight", "2.weight"}
    total = sum((p.numpy() ** 2).sum() for _, p in model.named_parameters())
    np.testing.assert_allclose(optim.l2(model, 3.0).item(), 3 * total, rtol=1e-12)


@pytest.mark.book("9-07", name="wl.optim.l2")
def test_descent_ends_at_the_ridge_solution():
    result = optim.minimize(lambda w: squares(w) + optim.l2(w, 3.0), np.zeros(5), "gd", lr=0.005, tol=1e-9)
    assert result.converged
    np.testing.assert_allclose(result.x, ridge(3.0), rtol=1e-8)


@pytest.mark.book("9-06", name=("wl.optim.gaussian_prior", "wl.optim.laplace_prior", "wl.optim.map_objective"))
def test_penalties_are_priors():
    sigma, std, scale = 0.5, 0.3, 0.2

    def log_likelihood(w, x, y):
        return -0.5 * ((x @ w - y) ** 2).sum() / sigma**2

    x, y, w = wl.asarray(X), wl.asarray(Y), wl.asarray(rng.normal(size=5))

    def gradient(f):
        return wl.grad(f)(w).numpy()

    # densities from their formulas; constants do not move the maximum
    normal = optim.map_objective(log_likelihood, lambda w: -(w**2).sum() / (2 * std**2))
    laplace = optim.map_objective(log_likelihood, lambda w: -wl.abs(w).sum() / scale)
    by_l2 = gradient(lambda w: -log_likelihood(w, x, y) + optim.l2(w, optim.gaussian_prior(std)))
    by_l1 = gradient(lambda w: -log_likelihood(w, x, y) + optim.l1(w, optim.laplace_prior(scale)))
    np.testing.assert_allclose(gradient(lambda w: normal(w, x, y)), by_l2, rtol=1e-12)
    np.testing.assert_allclose(gradient(lambda w: laplace(w, x, y)), by_l1, rtol=1e-12)
    mode = optim.minimize(lambda w: normal(w, x, y), np.zeros(5), "newton").x
    np.testing.assert_allclose(mode, ridge(2 * sigma**2 * optim.gaussian_prior(std)), rtol=1e-8)
    for f in (optim.gaussian_prior, optim.laplace_prior):
        with pytest.raises(InputError, match="above 0"):
            f(0.0)


@pytest.mark.book("9-11", name=("wl.optim.l1", "wl.optim.soft_threshold"))
def test_proximal_steps_reach_zero_where_gradient_steps_jump():
    factor, lr = 8.0, 0.004
    w, plain = wl.zeros(5, dtype=wl.float64), wl.zeros(5, dtype=wl.float64)
    for _ in range(400):
        w = optim.soft_threshold(w - lr * wl.grad(squares)(w), lr * factor)
        plain = plain - lr * wl.grad(lambda w: squares(w) + optim.l1(w, factor))(plain)
    found = w.numpy()
    assert (found[2:] == 0.0).all()
    assert (found[:2] != 0.0).all()
    slope = wl.grad(squares)(w).numpy()  # optimal: the slope is -factor times the sign, or within it at zero
    np.testing.assert_allclose(slope[:2], -factor * np.sign(found[:2]), rtol=1e-6)
    assert (np.abs(slope[2:]) <= factor).all()
    assert (plain.numpy()[2:] != 0.0).any()
    np.testing.assert_array_equal(wl.grad(lambda w: optim.l1(w))(wl.tensor([-2.0, 0.0, 3.0])), [-1.0, 0.0, 1.0])


@pytest.mark.book("9-12", name=("wl.optim.group_lasso", "wl.optim.group_soft_threshold"))
def test_whole_groups_vanish():
    W = rng.normal(size=(4, 3))
    W[2] *= 0.01
    w = wl.asarray(W)
    np.testing.assert_allclose(optim.group_lasso(w, 0.5).item(), 0.5 * 2 * np.linalg.norm(W, axis=0).sum())
    rows = optim.group_lasso(w, 1.0, axis=1, by_size=False)
    np.testing.assert_allclose(rows.item(), np.linalg.norm(W, axis=1).sum())
    found = optim.group_soft_threshold(w, 0.2, axis=1).numpy()
    assert (found[2] == 0).all()
    assert (found[[0, 1, 3]] != 0).all()
    np.testing.assert_allclose(np.linalg.norm(found[0]), np.linalg.norm(W[0]) - 0.2)
    zero = wl.grad(lambda w: optim.group_lasso(w))(wl.zeros((2, 2)))
    np.testing.assert_array_equal(zero, np.zeros((2, 2)))
    with pytest.raises(AxisError):
        optim.group_lasso(wl.ones(3), axis=1)


def test_proximal_operators_solve_their_problems():
    x = rng.normal(size=6)
    for threshold in (0.0, 0.5):
        soft = optim.soft_threshold(wl.asarray(x), threshold).numpy()
        group = optim.group_soft_threshold(wl.asarray(x), threshold).numpy()
        for z in (soft, group):
            penalty = (lambda v: np.abs(v).sum()) if z is soft else np.linalg.norm
            best = 0.5 * ((z - x) ** 2).sum() + threshold * penalty(z)
            for _ in range(50):
                other = z + 0.1 * rng.normal(size=6)
                assert best <= 0.5 * ((other - x) ** 2).sum() + threshold * penalty(other) + 1e-12


def test_proximal_steps_of_a_model_in_a_compiled_step():
    model = network()
    wl.jit(lambda m: optim.apply_proximal(m, lambda w: optim.soft_threshold(w, 10.0)))(model)
    assert not model[0].weight.numpy().any()
    assert model[1].weight.numpy().all()  # a normalisation


@pytest.mark.book("9-15", name=("wl.optim.project_l2_ball", "wl.optim.project_l1_ball", "wl.optim.project_simplex"))
def test_projections_are_the_nearest_points():
    x = 2 * rng.normal(size=(3, 4))
    balls = {
        "l2": (optim.project_l2_ball, lambda z: 1.5 - np.sqrt((z**2).sum() + 1e-15)),
        "l1": (optim.project_l1_ball, lambda z: 1.5 - np.abs(z).sum()),
    }
    for name, (project, slack) in balls.items():
        found = project(wl.asarray(x), 1.5).numpy()
        for row, z in zip(x, found, strict=True):
            assert slack(z) > -1e-9
            for _ in range(100):
                other = z + 0.3 * rng.normal(size=4)
                if slack(other) >= 0:
                    assert ((z - row) ** 2).sum() <= ((other - row) ** 2).sum() + 1e-9, name
        inside = 0.01 * x
        np.testing.assert_array_equal(project(wl.asarray(inside), 1.5), inside)
    simplex = optim.project_simplex(wl.asarray(x)).numpy()
    assert (simplex >= 0).all()
    np.testing.assert_allclose(simplex.sum(-1), 1.0)
    for row, z in zip(x, simplex, strict=True):
        found = optimize.minimize(
            lambda v, row=row: ((v - row) ** 2).sum(),
            np.full(4, 0.25),
            bounds=[(0, None)] * 4,
            constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
            options={"ftol": 1e-12},
        )
        np.testing.assert_allclose(z, found.x, atol=1e-5)
    np.testing.assert_allclose(wl.jit(optim.project_simplex)(wl.asarray(x)), simplex, rtol=1e-12)
    columns = optim.project_simplex(wl.asarray(x.T), axis=0).numpy()
    np.testing.assert_allclose(columns.T, simplex)


@pytest.mark.book("9-15", name="wl.optim.project_l2_ball")
def test_the_constrained_solution_is_the_penalised_one():
    lr = 0.5 / np.linalg.eigvalsh(X.T @ X)[-1]
    target = ridge(20.0)
    w = wl.zeros(5, dtype=wl.float64)
    for _ in range(300):
        w = optim.project_l2_ball(w - lr * wl.grad(squares)(w), float(np.linalg.norm(target)))
    np.testing.assert_allclose(w, target, atol=1e-8)
    # and the l1 ball with the norm of the lasso solution
    lasso = wl.zeros(5, dtype=wl.float64)
    for _ in range(600):
        lasso = optim.soft_threshold(lasso - lr * wl.grad(squares)(lasso), 8.0 * lr)
    v = wl.zeros(5, dtype=wl.float64)
    for _ in range(600):
        v = optim.project_l1_ball(v - lr * wl.grad(squares)(v), float(wl.abs(lasso).sum().item()))
    np.testing.assert_allclose(v, lasso, atol=1e-7)


@pytest.mark.book("9-16", name="wl.optim.l2")
def test_the_bound_falls_as_the_factor_grows():
    norms = []
    for factor in (0.1, 1.0, 10.0, 100.0):
        w = optim.minimize(lambda w, factor=factor: squares(w) + optim.l2(w, factor), np.zeros(5), "newton").x
        norms.append(float((w**2).sum().item()))
    assert norms == sorted(norms, reverse=True)


def test_bad_input():
    with pytest.raises(InputError, match="threshold=-1"):
        optim.soft_threshold(wl.ones(3), -1)
    with pytest.raises(InputError, match="radius=-1"):
        optim.project_l1_ball(wl.ones(3), -1)
    with pytest.raises(InputError, match="total=0"):
        optim.project_simplex(wl.ones(3), 0)
    with pytest.raises(InputError, match="the axis is empty"):
        optim.project_simplex(wl.ones((2, 0)))
    with pytest.raises(DTypeError, match="received int64"):
        optim.project_l2_ball(wl.tensor([1, 2]))
    with pytest.raises(InputError, match="ratio=2"):
        optim.elastic_net(wl.ones(3), ratio=2)
    assert optim.project_l1_ball(wl.ones((2, 0))).shape == (2, 0)
    assert optim.l2({}, 1.0).item() == 0.0
