"""Minimisation: the driver, its methods, line searches, and the landscape. SciPy is the oracle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize

import wonderland as wl
from wonderland import nn, optim
from wonderland.errors import DTypeError, InputError, ShapeError
from wonderland.optim import schedules

A = np.array([[3.0, 1.0, 0.0], [1.0, 5.0, 0.5], [0.0, 0.5, 10.0]])
LARGEST = float(np.linalg.eigvalsh(A)[-1])
B = np.array([1.0, -2.0, 0.5])
X0 = np.array([1.0, -2.0, 0.5])


def quadratic(x):
    return 0.5 * x @ (wl.asarray(A) @ x)


def tilted(x):
    return quadratic(x) - wl.asarray(B) @ x


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def waves(x):
    """The function of the exercises of chapter 2."""
    return wl.sin(x[0]) * wl.cos(x[1]) + wl.sin(0.5 * x[0]) * wl.cos(0.5 * x[1])


def dents(x):
    return x * wl.sin(2 * x)


def softmax_loss(x):
    return wl.logsumexp(wl.asarray(A) @ x) + 0.1 * (x**2).sum()


@pytest.mark.book("2.60", "B2-15", name="wl.optim.minimize")
@pytest.mark.parametrize("method", ["newton", "cg", "lbfgs"])
@pytest.mark.parametrize("f, x0", [(tilted, X0), (rosenbrock, [-1.2, 1.0, 0.5]), (softmax_loss, X0)])
def test_methods_find_what_scipy_finds(method, f, x0):
    result = optim.minimize(f, x0, method, tol=1e-8)
    value_and_grad = wl.value_and_grad(f)
    expected = optimize.minimize(
        lambda x: tuple(v.numpy() for v in value_and_grad(wl.asarray(x))), x0, jac=True, options={"gtol": 1e-8}
    )
    assert result.converged
    np.testing.assert_allclose(result.x, expected.x, atol=2e-6)
    np.testing.assert_allclose(result.value, expected.fun, atol=1e-9)
    assert result.value == f(result.x).item()
    assert result.grad_norm <= 1e-8
    assert result.steps < 200
    assert result.path.shape == (result.steps + 1, len(x0))


@pytest.mark.parametrize("method", ["gd", "momentum", "nesterov", "adam", "rmsprop", "adagrad", optim.Lion])
def test_first_order_methods_go_down(method):
    rate = {"gd": 0.1, "momentum": 0.05, "nesterov": 0.05, "adagrad": 1.0}.get(method, schedules.cosine(0.3, 100))
    result = optim.minimize(tilted, X0, method, lr=rate, max_iter=100)
    np.testing.assert_allclose(result.x, np.linalg.solve(A, B), atol=0.02)


@pytest.mark.book("2.60", name="wl.optim.minimize")
def test_maximising_is_minimising_the_negative():
    up = optim.minimize(lambda x: -tilted(x), X0, "momentum", lr=0.02, maximize=True, max_iter=30)
    down = optim.minimize(tilted, X0, "momentum", lr=0.02, max_iter=30)
    np.testing.assert_array_equal(up.path, down.path)
    np.testing.assert_allclose(up.value, -down.value)


@pytest.mark.book("2.61", name="wl.optim.minimize")
@pytest.mark.parametrize("method", ["gd", "adam"])
def test_a_constant_rate_and_a_function_agree(method):
    a = optim.minimize(tilted, X0, method, lr=0.05, max_iter=20)
    b = optim.minimize(tilted, X0, method, lr=lambda step: 0.05, max_iter=20)
    np.testing.assert_array_equal(a.path, b.path)


@pytest.mark.book("2.64", "A3-35", name="wl.optim.gradient_descent")
def test_descent_on_a_quadratic_is_a_power():
    path = optim.gradient_descent(quadratic, X0, lr=0.05, steps=10).numpy()
    expected = [np.linalg.matrix_power(np.eye(3) - 0.05 * A, t) @ X0 for t in range(11)]
    np.testing.assert_allclose(path, expected, rtol=1e-10, atol=1e-12)
    path = optim.gradient_descent(lambda t: t**2, 3.0, lr=0.1, steps=8)
    np.testing.assert_allclose(path, 3.0 * (1 - 0.2) ** np.arange(9))
    below, above = (optim.minimize(quadratic, X0, "gd", lr=c / LARGEST, max_iter=2000) for c in (1.9, 2.1))
    assert below.converged
    assert not above.converged


@pytest.mark.book("2.65", "B2-18", name="wl.optim.minimize")
def test_divergence_is_seen():
    result = optim.minimize(quadratic, X0, "gd", lr=2.1 / LARGEST)
    assert result.reason == "diverged"
    assert result.steps < 1000
    assert optim.minimize(lambda x: x**2, 1.0, "gd", lr=1.1).reason == "diverged"
    around = optim.minimize(lambda x: x**2, 1.0, "gd", lr=1.0, max_iter=50)
    assert around.reason == "max_iter"
    np.testing.assert_array_equal(np.abs(around.path), 1.0)
    searched = optim.minimize(lambda x: x**2, 1.0, "gd", line_search="backtracking")
    assert searched.converged  # halving finds a step that is small enough
    assert optim.minimize(lambda x: -wl.exp(x), 1.0, "gd", lr=1.0).reason == "diverged"


@pytest.mark.book("2.62", "B2-16", name="wl.optim.is_descent_direction")
def test_descent_directions():
    x = wl.asarray(X0)
    g = wl.grad(tilted)(x).numpy()
    assert optim.is_descent_direction(tilted, X0, -g, strict=True)
    assert not optim.is_descent_direction(tilted, X0, g)
    rng = np.random.default_rng(0)
    for p in rng.normal(size=(20, 3)):
        down = bool(g @ p < 0)
        assert optim.is_descent_direction(tilted, X0, p, strict=True) == down
        assert (tilted(x + 1e-6 * wl.asarray(p)).item() < tilted(x).item()) == down
    f = lambda x: (x**2).sum()
    assert optim.is_descent_direction(f, [1.0, 0.0], [0.0, 1.0])  # orthogonal: on the border
    assert not optim.is_descent_direction(f, [1.0, 0.0], [0.0, 1.0], strict=True)
    with pytest.raises(ShapeError):
        optim.is_descent_direction(f, [1.0, 0.0], [1.0])


@pytest.mark.book("2.63", "B2-17", name="wl.optim.steepest_direction")
def test_no_unit_direction_is_steeper():
    g = wl.grad(tilted)(wl.asarray(X0)).numpy()
    best = optim.steepest_direction(tilted, X0).numpy()
    np.testing.assert_allclose(np.linalg.norm(best), 1.0)
    np.testing.assert_allclose(g @ best, -np.linalg.norm(g))
    p = np.random.default_rng(0).normal(size=(1000, 3))
    assert (p / np.linalg.norm(p, axis=1, keepdims=True) @ g >= -np.linalg.norm(g)).all()
    path = optim.minimize(tilted, X0, "gd", lr=0.07, normalized=True, max_iter=5).path.numpy()
    np.testing.assert_allclose(np.linalg.norm(np.diff(path, axis=0), axis=1), 0.07)
    assert not optim.steepest_direction(quadratic, np.zeros(3)).numpy().any()


@pytest.mark.book("2.66", name="wl.optim.check_local_min")
def test_local_minima():
    f = lambda x: x**2 - 1.5 * x
    assert optim.check_local_min(f, 0.75)
    assert not optim.check_local_min(f, 0.74)
    assert optim.check_local_min(dents, 2.456590)
    assert not optim.check_local_min(dents, 1.014379)
    assert optim.check_local_min(lambda x: wl.zeros((), dtype=x.dtype) + 0 * x.sum(), [1.0, 2.0])  # flat counts


@pytest.mark.book("2.67", "B2-19", name="wl.optim.classify_stationary")
def test_stationary_points():
    saddle = lambda x: x[0] ** 2 - x[1] ** 2
    assert optim.classify_stationary(saddle, [0.0, 0.0]) == "saddle"
    assert optim.classify_stationary(quadratic, np.zeros(3)) == "minimum"
    assert optim.classify_stationary(lambda x: -quadratic(x), np.zeros(3)) == "maximum"
    assert optim.classify_stationary(lambda x: x**3, 0.0) == "degenerate"
    assert optim.classify_stationary(quadratic, X0) == "not stationary"
    stays = optim.minimize(saddle, [0.7, 0.0], "gd", lr=0.1)
    assert stays.converged
    np.testing.assert_allclose(stays.x, [0.0, 0.0], atol=1e-7)
    assert optim.classify_stationary(saddle, stays.x) == "saddle"


@pytest.mark.book("2.68", "B2-20", name=("wl.optim.convexity_counterexample", "wl.optim.is_convex_sampled"))
def test_counterexamples_to_convexity():
    x1, x2, a = optim.convexity_counterexample(dents, -3.0, 3.0)
    assert dents(a * x1 + (1 - a) * x2).item() > a * dents(x1).item() + (1 - a) * dents(x2).item()
    assert not optim.is_convex_sampled(wl.sin, -3.0, 3.0)
    low, high = np.full(3, -4.0), np.full(3, 4.0)
    squares = lambda w: ((wl.asarray(A) @ w - wl.asarray(B)) ** 2).sum()
    logistic = lambda w: wl.logaddexp(wl.zeros(3, dtype=wl.float64), wl.asarray(A) @ w).sum()
    for f in (tilted, squares, logistic):
        assert optim.is_convex_sampled(f, low, high, samples=150)
    assert optim.is_convex_sampled(wl.abs, -1.0, 1.0, samples=100)
    assert not optim.is_convex_sampled(wl.abs, -1.0, 1.0, samples=100, strict=True)
    assert optim.is_convex_sampled(lambda x: x**2, -1.0, 1.0, samples=100, strict=True)
    with pytest.raises(InputError, match="low <= high"):
        optim.is_convex_sampled(wl.sin, 1.0, 0.0)


@pytest.mark.book("2.69", "A3-37", name="wl.optim.multistart")
def test_three_regimes():
    parabola = optim.multistart(lambda x: x**2 - 1.5 * x, [-3.0, 0.0, 4.0])
    np.testing.assert_allclose([r.x.item() for r in parabola], 0.75, atol=1e-7)
    dented = optim.multistart(dents, [0.5, 2.0, 5.0, -2.0], "gd", lr=0.02)
    assert len({round(r.x.item(), 4) for r in dented}) == 4
    short = np.array([[1.0, 1.0], [2.0, 2.0]])  # of rank one
    loss = lambda w: ((wl.asarray(short) @ w - wl.tensor([1.0, 1.0], wl.float64)) ** 2).sum()
    many = optim.multistart(loss, [[0.0, 0.0], [3.0, 0.0]], "gd", lr=0.02, max_iter=3000)
    np.testing.assert_allclose(many[0].value, many[1].value, rtol=1e-10)
    assert np.abs(many[0].x.numpy() - many[1].x.numpy()).max() > 1
    wells = optim.multistart(lambda x: (x**2 - 1) ** 2, [-0.5, 0.5], "gd", lr=0.05)
    np.testing.assert_allclose(sorted(r.x.item() for r in wells), [-1, 1], atol=1e-6)


@pytest.mark.book("2.70", name="wl.optim.multistart")
def test_the_best_of_more_starts_is_no_worse():
    starts = np.random.default_rng(0).uniform(-6, 6, size=8)
    best = [optim.multistart(dents, starts[:k])[0].value for k in range(1, 9)]
    assert all(b <= a for a, b in itertools.pairwise(best))


@pytest.mark.book("2.73", name="wl.optim.line_search")
def test_exact_steps_make_gradients_orthogonal():
    f = lambda x: 0.5 * (wl.tensor([1.0, 10.0], wl.float64) * x**2).sum()
    result = optim.minimize(f, [10.0, 1.0], "gd", line_search="exact", max_iter=12)
    slopes = [wl.grad(f)(x).numpy() for x in result.path]
    for a, b in itertools.pairwise(slopes):
        assert abs(a @ b) <= 1e-12 * np.linalg.norm(a) * np.linalg.norm(b) + 1e-14
    conjugate = optim.minimize(tilted, X0, "cg", line_search="exact", tol=1e-10)
    assert conjugate.steps <= 4  # as many as dimensions, and rounding


@pytest.mark.book("B2-16", "2.65", name="wl.optim.line_search")
@pytest.mark.parametrize("f", [tilted, rosenbrock, softmax_loss])
def test_searched_steps_keep_their_promises(f):
    x = wl.asarray(X0)
    value, g = wl.value_and_grad(f)(x)
    p, slope = -g, -float((g**2).sum().item())
    for method in ("backtracking", "wolfe"):
        for start in (1e-6, 1.0, 1e3):
            step = optim.line_search(f, x, p, method, start)
            new, gradient = wl.value_and_grad(f)(x + step * p)
            assert new.item() <= value.item() + 1e-4 * step * slope
            if method == "wolfe":
                assert abs(float((gradient * p).sum().item())) <= -0.9 * slope
    with pytest.raises(InputError, match="no step along this direction"):
        optim.line_search(f, x, g)
    with pytest.raises(InputError, match="method 'golden'"):
        optim.line_search(f, x, p, "golden")


@pytest.mark.book("2.74", name="wl.optim.minimize")
def test_momentum_and_the_start_beside_a_maximum():
    for eps, end in ((0.015, 2.456590), (0.014, 0.0)):
        result = optim.minimize(dents, 1 + eps, "gd", lr=0.05, tol=1e-8)
        np.testing.assert_allclose(result.x.item(), end, atol=1e-6)
    plain = optim.minimize(dents, 1.015, "gd", lr=0.05, tol=1e-8)
    ball = optim.minimize(dents, 1.015, "momentum", lr=0.05, momentum=0.3, tol=1e-8)
    np.testing.assert_allclose(ball.value, -2.407235, atol=1e-6)
    assert (plain.steps, ball.steps) == (59, 51)


@pytest.mark.book("2.79", name="wl.optim.minimize")
@pytest.mark.parametrize("method", ["gd", "momentum", "adam"])
def test_one_evaluation_per_step(method):
    calls = []

    def f(x):
        calls.append(1)
        return tilted(x)

    result = optim.minimize(f, X0, method, lr=0.05, max_iter=17)
    assert result.steps == 17
    assert result.evaluations == len(calls) == 18  # the start, and one more per step


@pytest.mark.book("9-17", name="wl.optim.minimize")
def test_stopping_rules():
    by_value = optim.minimize(tilted, X0, "gd", lr=0.05, value_tol=1e-16, tol=0.0)
    assert (by_value.reason, by_value.converged) == ("value", True)
    np.testing.assert_allclose(by_value.x, np.linalg.solve(A, B), atol=1e-3)
    plateau = lambda x: wl.tanh(x) + 1e-3 * x**2  # flat at 30, low near -1
    fooled = optim.minimize(plateau, 30.0, "gd", lr=0.01, value_tol=1e-6)
    assert (fooled.reason, fooled.steps) == ("value", 1)
    slopes = optim.minimize(plateau, 30.0, "gd", lr=5.0, tol=1e-6, max_iter=1000)
    assert slopes.reason == "gradient"
    assert slopes.value < -0.9
    stopped = optim.minimize(tilted, X0, "gd", callback=lambda step, point: step == 3, lr=0.01)
    assert (stopped.reason, stopped.steps, stopped.converged) == ("callback", 3, False)
    assert optim.minimize(tilted, X0, max_iter=0).steps == 0


@pytest.mark.book("2.84", name=("wl.optim.gradient_descent", "wl.viz.plot_paths"))
def test_many_starts_side_by_side():
    grid = np.stack(np.meshgrid(np.linspace(0, 10, 21), np.linspace(0, 10, 21)), axis=-1).reshape(-1, 2)
    path = optim.gradient_descent(waves, grid, lr=0.1, steps=200, batched=True).numpy()
    assert path.shape == (201, 441, 2)
    one = optim.gradient_descent(waves, grid[17], lr=0.1, steps=40).numpy()
    np.testing.assert_allclose(path[:41, 17], one, rtol=1e-12)
    assert ((path[-1] < 0) | (path[-1] > 10)).any(axis=1).sum() == 59  # nothing keeps them in the domain
    minima = np.array(
        [[4.41133, 6.28319], [1.63783, 3.50969], [1.63783, 9.05668], [7.92102, 2.77349], [7.92102, 9.79288]]
    )
    values = [-1.760173, -1.064591, -1.064591, -1.064591, -1.064591]
    for x, value in zip(minima, values, strict=True):
        refined = optim.minimize(waves, x)
        np.testing.assert_allclose(refined.x, x, atol=1e-5)
        np.testing.assert_allclose(refined.value, value, atol=1e-6)
        assert (np.linalg.norm(path[-1] - x, axis=1) < 1e-2).any()
    np.testing.assert_allclose(waves(wl.tensor([5.14753, 0.0], wl.float64)).item(), -0.369009, atol=1e-6)
    picture = wl.viz.plot_paths(
        lambda x, y: np.sin(x) * np.cos(y) + np.sin(0.5 * x) * np.cos(0.5 * y),
        [path[:, ::40]],
        (0.0, 10.0),
        (0.0, 10.0),
        resolution=25,
    )
    assert picture.count("<circle") == len(path[0, ::40])


@pytest.mark.book("2.85", name="wl.optim.minimize")
def test_gradient_norms_go_to_zero():
    result = optim.minimize(waves, [4.0, 5.0], "momentum", lr=0.1, momentum=0.9, tol=1e-8)
    assert result.grad_norms[-1] < 1e-8
    norms = [np.linalg.norm(wl.grad(waves)(x).numpy()) for x in result.path[:5]]
    np.testing.assert_allclose(result.grad_norms[:5], norms, rtol=1e-12)
    assert len(result.grad_norms) == len(result.values) == result.steps + 1


def test_trees_float32_and_compiled():
    def f(p):
        return ((p["a"] - 1) ** 2).sum() + ((p["b"] + 2) ** 4).sum()

    result = optim.minimize(f, {"a": wl.zeros((2, 2)), "b": wl.zeros(3)}, jit=True, max_iter=50)
    assert result.x["a"].shape == (2, 2)
    assert result.x["a"].dtype == wl.float32
    np.testing.assert_allclose(result.x["a"], 1.0, atol=1e-3)
    np.testing.assert_allclose(result.x["b"], -2.0, atol=0.1)
    assert result.path.shape == (result.steps + 1, 7)


def test_lbfgs_as_an_optimizer():
    w = nn.Parameter([-1.2, 1.0, 0.5], wl.float64)
    optimizer = optim.LBFGS([w], max_iter=200, tolerance_change=0.0)

    def closure():
        optimizer.zero_grad()
        loss = rosenbrock(w)
        loss.backward()
        return loss

    first = optimizer.step(closure)
    np.testing.assert_allclose(first.item(), rosenbrock(wl.tensor([-1.2, 1.0, 0.5], wl.float64)).item())
    np.testing.assert_allclose(w, 1.0, atol=1e-6)
    with pytest.raises(InputError, match="needs a closure"):
        optimizer.step()
    with pytest.raises(InputError, match="several groups"):
        optim.LBFGS([{"params": [w]}, {"params": [nn.Parameter(1.0)]}])


def test_lbfgs_of_a_model_with_gradients_goes_on_after_loading():
    rng = np.random.default_rng(0)
    x, y = wl.asarray(rng.normal(size=(30, 3))), wl.asarray(rng.normal(size=(30, 1)))

    def make():
        wl.random.seed(0)
        model = nn.Linear(3, 1).astype(wl.float64)
        return model, optim.LBFGS(model, max_iter=3, history_size=4)

    @wl.jit
    def both(model, x, y):
        return wl.value_and_grad(lambda m, x, y: nn.functional.mse_loss(m(x), y))(model, x, y)

    model, optimizer = make()
    optimizer.step(lambda: both(model, x, y))
    twin, other = make()
    twin.load_state_dict(model.state_dict())
    other.load_state_dict({k: v.numpy() for k, v in optimizer.state_dict().items()})
    for _ in range(4):
        optimizer.step(lambda: both(model, x, y))
        other.step(lambda: both(twin, x, y))
    np.testing.assert_array_equal(model.weight.numpy(), twin.weight.numpy())
    design = np.c_[x.numpy(), np.ones(30)]
    exact = np.linalg.lstsq(design, y.numpy(), rcond=None)[0]
    np.testing.assert_allclose(np.r_[model.weight.numpy(), model.bias.numpy()[:, None]], exact, atol=1e-6)


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: optim.minimize(tilted, X0, "anneal"), InputError, "method 'anneal'"),
        (lambda: optim.minimize(tilted, X0, "gd", speed=3), InputError, "does not take"),
        (lambda: optim.minimize(tilted, X0, "adam", speed=3), InputError, "does not take"),
        (lambda: optim.minimize(tilted, X0, "adam", eps=-1.0), InputError, "eps=-1"),
        (lambda: optim.minimize(lambda x: x, X0), ShapeError, r"f\(x\) has shape \(3,\)"),
        (lambda: optim.minimize(tilted, wl.tensor([1, 2, 3])), DTypeError, "x0 is int64"),
        (lambda: optim.minimize(lambda x: wl.log(x), -1.0), InputError, r"f\(x0\) is nan"),
        (lambda: optim.minimize(3, X0), InputError, "is not a function"),  # type: ignore[arg-type]
        (lambda: optim.minimize(tilted, X0, max_iter=-1), InputError, "max_iter=-1"),
        (lambda: optim.multistart(dents, []), InputError, "there is no start"),
        (lambda: optim.gradient_descent(tilted, {"a": 1.0}), InputError, "x0 is a tree"),  # type: ignore[arg-type]
    ],
)
def test_bad_input(call, kind, message):
    with np.errstate(invalid="ignore"), pytest.raises(kind, match=message):
        call()
