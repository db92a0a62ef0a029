"""The linear model, least squares and ridge regression against NumPy, scikit-learn and the book's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import linear_model as sk

import wonderland as wl
from wonderland import models
from wonderland.errors import InputError, LinearAlgebraError, ModuleError, NonFiniteError, ShapeError
from wonderland.models.classical.convex import settle

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 4))
Y = X @ [1.0, -2.0, 0.5, 3.0] + 1.5 + 0.1 * rng.normal(size=30)
INPUTS, TARGETS = wl.asarray(X), wl.asarray(Y)
W = np.linalg.lstsq(X, Y, rcond=None)[0]


def descending(n, c, seed=0):
    """The book's data for gradient descent: y = X w + noise, as (n, 1)."""
    r = np.random.default_rng(seed)
    data = r.normal(size=(n, c))
    return wl.asarray(data), wl.asarray(data @ r.normal(size=(c, 1)) + 0.1 * r.normal(size=(n, 1)))


@pytest.mark.book("4.10", "4.13", "4.14", "B4-06", name="wl.models.linear_model")
@pytest.mark.parametrize("compiled", [False, True])
def test_the_linear_model(compiled):
    f = wl.jit(models.linear_model) if compiled else models.linear_model
    w, b = wl.asarray(W), wl.asarray(np.float64(0.5))
    out = f(w, b, INPUTS)
    assert out.shape == (30,), "not (n, 1)"
    np.testing.assert_allclose(out, X @ W + 0.5, rtol=1e-12)
    np.testing.assert_allclose(f(w, b, wl.zeros((30, 4), dtype=wl.float64)), 0.5)
    # affine: a mixture of inputs gives the mixture of outputs
    mixed = f(w, b, 0.3 * INPUTS + 0.7 * INPUTS[::-1])
    np.testing.assert_allclose(mixed, 0.3 * out + 0.7 * out[::-1], atol=1e-12)
    with pytest.raises(ShapeError, match="c"):
        f(w[:3], b, INPUTS)


@pytest.mark.book("4.02", name="wl.models.linear_model")
def test_names_of_sizes_are_those_of_the_book():
    with pytest.raises(ShapeError, match=r"c = 4|c=4|c.*4"):
        models.linear_model(wl.zeros(3, dtype=wl.float64), 0.0, INPUTS)
    task = models.Task.of(X, Y)
    assert (task.n, task.c, task.m) == (30, 4, 1)


@pytest.mark.book("4.11", "B4-05", name="wl.models.add_bias_column")
def test_the_bias_is_the_weight_of_a_last_feature_that_is_one():
    w, b = wl.asarray(W), wl.asarray(np.float64(1.25))
    wide = models.add_bias_column(INPUTS)
    assert wide.shape == (30, 5)
    np.testing.assert_array_equal(wide[:, -1], 1.0)
    together = wl.concat([w, b[None]])
    zero = wl.asarray(np.float64(0))
    np.testing.assert_allclose(models.linear_model(together, zero, wide), models.linear_model(w, b, INPUTS), rtol=1e-12)
    gw, gb = wl.grad(lambda w, b: models.ls_loss(w, b, INPUTS, TARGETS), argnums=(0, 1))(w, b)
    joint = wl.grad(lambda v: models.ls_loss(v, zero, wide, TARGETS))(together)
    np.testing.assert_allclose(joint, np.r_[gw.numpy(), gb.numpy()], rtol=1e-10)
    with pytest.raises(ShapeError, match="no features"):
        models.add_bias_column(1.0)


@pytest.mark.book("4.12", "4.16", "B4-07", "B4-10", name="wl.models.ls_loss")
def test_least_squares_loss_and_its_gradient():
    w, b = wl.asarray(W + 0.1), wl.asarray(np.float64(0.3))
    loop = sum((Y[i] - (X[i] @ (W + 0.1) + 0.3)) ** 2 for i in range(30)) / 30
    np.testing.assert_allclose(models.ls_loss(w, b, INPUTS, TARGETS), loop, rtol=1e-12)
    gradient = wl.grad(models.ls_loss)(w, b, INPUTS, TARGETS)
    np.testing.assert_allclose(gradient, 2 / 30 * X.T @ (X @ (W + 0.1) + 0.3 - Y), rtol=1e-10)
    with pytest.raises(ShapeError):
        models.ls_loss(w, b, INPUTS, TARGETS[:, None])


@pytest.mark.book("4.15", "B4-08", name=("wl.models.linear_model", "wl.models.ls_loss"))
def test_rows_may_be_permuted():
    order = rng.permutation(30)
    w, b = wl.asarray(W), wl.asarray(np.float64(0.5))
    out = models.linear_model(w, b, INPUTS).numpy()
    np.testing.assert_allclose(models.linear_model(w, b, wl.asarray(X[order])), out[order], rtol=1e-13)
    loss = models.ls_loss(w, b, INPUTS, TARGETS).item()
    assert models.ls_loss(w, b, wl.asarray(X[order]), wl.asarray(Y[order])).item() == pytest.approx(loss, rel=1e-12)
    layer = wl.nn.Linear(4, 3, dtype=wl.float64)
    np.testing.assert_allclose(layer(wl.asarray(X[order])), layer(INPUTS).numpy()[order], rtol=1e-12)


@pytest.mark.book("4.17", "4.18", "B4-09", name="wl.models.ls_solve")
def test_normal_equations():
    for stable in (True, False):
        w = models.ls_solve(INPUTS, TARGETS, numerically_stable=stable).numpy()
        np.testing.assert_allclose(w, W, rtol=1e-10)
        np.testing.assert_allclose(X.T @ (Y - X @ w), 0, atol=1e-11)
    both = models.ls_solve(INPUTS, wl.asarray(np.stack([Y, -Y], 1))).numpy()
    np.testing.assert_allclose(both, np.stack([W, -W], 1), rtol=1e-10)
    np.testing.assert_allclose(wl.jit(models.ls_solve)(INPUTS, TARGETS), W, rtol=1e-9)
    wl.check_grads(lambda X, y: models.ls_solve(X, y), (INPUTS[:8], TARGETS[:8]), order=1, rtol=1e-4)
    with pytest.raises(ShapeError):
        models.ls_solve(INPUTS, TARGETS[:5])


@pytest.mark.book("4.18", "4.29", name="wl.models.ls_solve")
@pytest.mark.filterwarnings("ignore::wonderland.models.IllConditionedWarning")
def test_digits_are_lost_with_the_condition_number():
    """A Hilbert-like matrix: solve beats the inverse, and float64 beats float32 by far."""
    H = 1.0 / (np.arange(12)[:, None] + np.arange(5)[None, :] + 1)
    w = np.ones(5)
    y = H @ w
    errors = {}
    for dtype in (np.float32, np.float64):
        A, b = wl.asarray(H.astype(dtype)), wl.asarray(y.astype(dtype))
        found = models.ls_solve(A, b)
        assert found.dtype == dtype, "no silent cast"
        errors[dtype] = np.abs(found.numpy() - w).max()
    assert errors[np.float64] < 1e-4 < 1e-2 < errors[np.float32]
    # steeper still: products with columns of very different sizes
    A = 1.0 / (np.arange(14)[:, None] + np.arange(6)[None, :] + 1)
    b = A @ np.ones(6)
    residual = {
        stable: np.linalg.norm(A @ models.ls_solve(wl.asarray(A), wl.asarray(b), stable).numpy() - b)
        for stable in (True, False)
    }
    assert residual[True] < residual[False]


@pytest.mark.book("4.20", "4.28", "B4-09", "B4-15", name=("wl.models.IllConditionedWarning", "wl.linalg.cond"))
def test_dependent_features_are_noticed():
    same = np.c_[X, 2 * X[:, 0]]
    A = wl.asarray(same)
    assert wl.linalg.matrix_rank(A).item() == 4
    gram = same.T @ same
    assert wl.linalg.cond(wl.asarray(gram)).item() > 1e15
    assert wl.linalg.cond(wl.asarray(gram + 1e-3 * np.eye(5))).item() < 1e6
    exactly = wl.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    with (
        pytest.warns(models.IllConditionedWarning, match="2 features are worth 1.*Ridge"),
        pytest.raises(LinearAlgebraError, match="ridge_solve"),
    ):
        models.ls_solve(exactly, wl.ones(3))
    with pytest.warns(models.IllConditionedWarning, match="LinearRegression"):
        model = models.LinearRegression().fit(same, Y)
    shortest = np.linalg.lstsq(same - same.mean(0), Y - Y.mean(), rcond=None)[0]
    np.testing.assert_allclose(model.weight, shortest, atol=1e-10)
    ridge = models.ridge_solve(A, TARGETS, 1e-8).numpy()
    np.testing.assert_allclose(same @ ridge, X @ W, atol=1e-5)
    # two equal rows of features in float32 are too close for the normal equations, not for a decomposition
    near = wl.asarray(np.c_[X, X[:, 0] + 1e-4 * X[:, 1] ** 2].astype(np.float32))
    with pytest.warns(models.IllConditionedWarning, match="float32"):
        models.ls_solve(near, TARGETS.astype(wl.float32))
    # kappa(X^T X) = kappa(X)^2
    assert wl.linalg.cond(wl.eye(3)).item() == pytest.approx(1)
    assert wl.linalg.cond(wl.asarray(np.diag([1.0, 10.0]))).item() == pytest.approx(10)
    assert wl.linalg.cond(INPUTS.T @ INPUTS).item() == pytest.approx(wl.linalg.cond(INPUTS).item() ** 2, rel=1e-8)


@pytest.mark.book("4.21", name="wl.models.ls_dual_weights")
def test_a_prediction_is_a_weighted_sum_of_training_targets():
    new = rng.normal(size=(3, 4))
    weights = models.ls_dual_weights(X, new)
    assert weights.shape == (3, 30)
    np.testing.assert_allclose(weights.numpy() @ Y, new @ W, rtol=1e-9)
    M = models.ls_dual_weights(X, X).numpy()
    np.testing.assert_allclose(M, M.T, atol=1e-12)
    np.testing.assert_allclose(M @ M, M, atol=1e-12)
    assert np.trace(M) == pytest.approx(4)


@pytest.mark.book("4.22", "B4-12", name="wl.models.ls_gd")
def test_gradient_descent_of_the_book():
    A, y = descending(10, 3)
    exact = np.linalg.lstsq(A.numpy(), y.numpy(), rcond=None)[0]
    w = models.ls_gd(A, y, lr=0.02, max_iter=3000, key=wl.random.key(1))
    assert w.shape == (3, 1)
    assert np.abs(w.numpy() - exact).max() < 1e-9
    fastest = np.linalg.eigvalsh(A.numpy().T @ A.numpy()).max()
    away = models.ls_gd(A, y, lr=2.2 / fastest, max_iter=300, key=wl.random.key(1))
    assert np.abs(away.numpy()).max() > 1e6, "diverges above 2 / lambda_max"
    # the step is along the sum of squares, halved: its sign is + because of y - X w
    start = wl.zeros((3, 1), dtype=wl.float64)
    one = models.ls_gd(A, y, lr=1e-3, max_iter=1, w=start)
    slope = wl.grad(lambda w: 0.5 * ((y - A @ w) ** 2).sum())(start)
    np.testing.assert_allclose(one, -1e-3 * slope.numpy(), rtol=1e-12)
    compiled = wl.jit(lambda A, y, w: models.ls_gd(A, y, lr=0.02, max_iter=50, w=w))(A, y, start)
    np.testing.assert_allclose(compiled, models.ls_gd(A, y, lr=0.02, max_iter=50, w=start), rtol=1e-10)


@pytest.mark.book("4.23", "B4-13", name="wl.models.ls_gd")
def test_targets_without_a_second_axis_are_refused():
    A, y = descending(10, 3)
    with pytest.raises(ShapeError, match="y"):
        models.ls_gd(A, y[:, 0])
    w = wl.zeros((3, 1), dtype=wl.float64)
    assert (w + A.T @ (y[:, 0] - A @ w)).shape == (3, 10), "what would have happened"


@pytest.mark.book("4.25", "B4-11", name=("wl.models.ls_gd", "wl.models.LinearRegression"))
def test_stopping_by_the_squared_length_of_a_step():
    A, y = descending(10, 3)
    start = wl.zeros((3, 1), dtype=wl.float64)
    tol = 1e-6
    w = models.ls_gd(A, y, lr=0.02, tol=tol, w=start)
    v, steps = start.numpy(), 0
    while True:
        new = v + 0.02 * A.numpy().T @ (y.numpy() - A.numpy() @ v)
        steps += 1
        moved, v = ((new - v) ** 2).sum(), new
        if moved < tol:
            break
    assert 1 < steps < 1000
    np.testing.assert_allclose(w, v, rtol=1e-12)
    assert np.sqrt(moved) > tol, "the norm itself is not below it"
    found = settle(lambda w: ((w - 3.0) ** 2).sum(), wl.zeros(2, dtype=wl.float64), lr=0.1, tol=1e-8)
    steps = len(found.losses)
    assert found.converged
    assert steps < 10_000
    # w_t = 3 (1 - 0.8^t): the first step below the limit
    lengths = 2 * (3 * 0.2 * 0.8 ** np.arange(steps)) ** 2
    assert lengths[-1] < 1e-8 <= lengths[-2]
    cut = settle(lambda w: (w**2).sum(), wl.ones(2, dtype=wl.float64), lr=0.01, max_iter=5)
    assert not cut.converged
    assert len(cut.losses) == 5


@pytest.mark.book("4.24", "A2-17", name="wl.models.LinearRegression")
def test_gradient_descent_falls_at_every_step_to_the_closed_form():
    r = np.random.default_rng(3)
    A = r.normal(size=(10, 2))
    y = np.stack([A @ [1.0, -1.0], A @ [0.5, 2.0]], 1) + 0.1 * r.normal(size=(10, 2))
    model = models.LinearRegression(bias=False).fit(A, y, method="gradient")
    assert np.all(np.diff(model.losses.numpy()[:200]) < 0)
    np.testing.assert_allclose(model.weight, np.linalg.lstsq(A, y, rcond=None)[0], atol=1e-6)
    with pytest.raises(NonFiniteError, match="smaller lr"):
        models.LinearRegression(bias=False).fit(A, y, method="gradient", lr=50.0)
    with pytest.warns(models.ConvergenceWarning, match="still move after 3 steps"):
        models.LinearRegression(bias=False).fit(A, y, method="gradient", max_iter=3)


@pytest.mark.book("4.26", "B4-14", "4.42", name="wl.models.LinearRegression")
@pytest.mark.parametrize("bias", [True, False])
def test_linear_regression_against_scikit_learn(bias):
    targets = np.stack([Y, Y**2, -X[:, 0]], 1)
    theirs = sk.LinearRegression(fit_intercept=bias).fit(X, targets)
    ours = models.LinearRegression(bias=bias).fit(X, targets)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-10)
    np.testing.assert_allclose(np.broadcast_to(ours.intercept_, 3), np.broadcast_to(theirs.intercept_, 3), atol=1e-10)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-10)
    assert ours.score(X, targets) == pytest.approx(theirs.score(X, targets), rel=1e-10)
    # the noise variance is the mean squared error, without Bessel's correction
    np.testing.assert_allclose(ours.sigma2, ((targets - theirs.predict(X)) ** 2).mean(0), rtol=1e-9, atol=1e-20)
    # m outputs are m models
    one = models.LinearRegression(bias=bias).fit(X, targets[:, 1])
    assert one.predict(X).shape == (30,)
    np.testing.assert_allclose(ours.weight[:, 1], one.weight, rtol=1e-9)
    column = models.LinearRegression(bias=bias).fit(X, targets[:, 1:2])
    assert column.predict(X).shape == (30, 1)


@pytest.mark.book("4.30", "4.31", "B4-16", name="wl.count")
def test_costs_of_solving_and_of_descending():
    n, c = 64, 8
    A, w, y = wl.zeros((n, c)), wl.zeros(c), wl.zeros(n)

    def madds(f, *args):
        return wl.count(f, *args).multiply_adds

    small = 4 * n  # what differences and squares of vectors cost
    cheap = madds(lambda A, w, y: A.T @ (A @ w - y), A, w, y)
    dear = madds(lambda A, w, y: (A.T @ A) @ w - A.T @ y, A, w, y)
    assert 0 <= cheap - 2 * n * c <= small
    assert 0 <= dear - (n * c * c + c * c + n * c) <= small
    # reverse mode finds the cheap order by itself: once n c forward, once backward
    automatic = madds(wl.grad(lambda w: 0.5 * ((A @ w - y) ** 2).sum()), w)
    assert 0 <= automatic - 2 * n * c <= small
    # the closed form: linear in n for the products, cubic in c for the solution
    gram = [madds(lambda A: A.T @ A, wl.zeros((n, 8))) for n in (1000, 2000)]
    assert gram[1] == 2 * gram[0]
    solved = [madds(wl.linalg.solve, wl.eye(c), wl.zeros(c)) for c in (200, 400)]
    assert np.log2(solved[1] / solved[0]) == pytest.approx(3, abs=0.1)


@pytest.mark.book("4.32", name=("wl.ShapeDtype", "wl.nn.Flatten", "wl.Tensor.size"))
def test_sizes_of_a_batch_of_images():
    """The book says about 10^7 features; it is 3.1 10^6 for an image, and 10^8 numbers for a batch of 32."""
    batch = wl.ShapeDtype((32, 1024, 1024, 3), wl.float32)
    assert (batch.size, batch.nbytes) == (100_663_296, 402_653_184)
    assert wl.nn.Flatten().output_shape(batch.shape) == (32, 3_145_728)  # the c of a linear model
    image = wl.zeros((1024, 1024, 3), dtype=wl.uint8)
    assert (image.size, image.nbytes) == (3_145_728, 3_145_728)
    weights = wl.eval_shape(lambda: wl.nn.Linear(3_145_728, 1))
    assert weights.num_parameters() == 3_145_729
    # the normal equations would need a matrix of c^2 numbers: nobody tries
    gram = wl.eval_shape(lambda x: x.T @ x, wl.ShapeDtype((32, 3_145_728), wl.float32))
    assert gram.nbytes == 4 * 3_145_728**2 > 39e12


@pytest.mark.book("4.33", "B4-17", name=("wl.models.ridge_solve", "wl.models.Ridge"))
def test_ridge():
    w = models.ridge_solve(INPUTS, TARGETS, 0.7).numpy()
    np.testing.assert_allclose(w, np.linalg.solve(X.T @ X + 0.7 * np.eye(4), X.T @ Y), rtol=1e-10)
    np.testing.assert_allclose(models.ridge_solve(INPUTS, TARGETS, 1e-12), W, rtol=1e-9)
    assert np.abs(models.ridge_solve(INPUTS, TARGETS, 1e12).numpy()).max() < 1e-9
    norms = [np.linalg.norm(models.ridge_solve(INPUTS, TARGETS, lam).numpy()) for lam in (0.0, 0.1, 1.0, 10.0, 100.0)]
    assert np.all(np.diff(norms) < 0)
    for lam in (0.01, 3.0):
        theirs = sk.Ridge(alpha=lam).fit(X, Y)
        ours = models.Ridge(alpha=lam).fit(X, Y)
        np.testing.assert_allclose(ours.weight, theirs.coef_, rtol=1e-8)
        np.testing.assert_allclose(ours.bias, theirs.intercept_, rtol=1e-8)
        wide = models.ridge_solve(INPUTS, TARGETS, lam, bias=True)
        np.testing.assert_allclose(wide, np.r_[theirs.coef_, theirs.intercept_], rtol=1e-8)
    descended = models.Ridge(alpha=3.0).fit(X, Y, method="gradient")
    np.testing.assert_allclose(descended.weight, theirs.coef_, atol=1e-6)
    same = wl.asarray(np.c_[X, X[:, 0]])
    found = models.ridge_solve(same, TARGETS, 1.0).numpy()
    assert found[0] == pytest.approx(found[4]), "equal features share their weight"
    gram = X.T @ X
    assert np.linalg.cond(gram + 5 * np.eye(4)) < np.linalg.cond(gram)


@pytest.mark.book("4.34", "B4-18", name="wl.models.ridge_solve")
def test_which_objective_ridge_is_the_minimum_of():
    lam, n = 2.0, 30
    w = models.ridge_solve(INPUTS, TARGETS, lam)
    own = wl.grad(lambda w: ((TARGETS - INPUTS @ w) ** 2).sum() + lam * (w**2).sum())(w)
    np.testing.assert_allclose(own, 0, atol=1e-11)
    printed = lambda w: 2 / n * ((TARGETS - INPUTS @ w) ** 2).sum() + lam / 2 * (w**2).sum()
    assert np.linalg.norm(wl.grad(printed)(w).numpy()) > 0.1, "the printed pair does not belong together"
    np.testing.assert_allclose(wl.grad(printed)(models.ridge_solve(INPUTS, TARGETS, n * lam / 4)), 0, atol=1e-11)


@pytest.mark.book("4.35", name="wl.models.ridge_solve")
def test_ridge_is_the_most_probable_weight_under_a_normal_prior():
    s, t = 0.5, 2.0
    w = models.ridge_solve(INPUTS, TARGETS, s**2 / t**2)
    minus_log_posterior = lambda w: ((TARGETS - INPUTS @ w) ** 2).sum() / (2 * s**2) + (w**2).sum() / (2 * t**2)
    np.testing.assert_allclose(wl.grad(minus_log_posterior)(w), 0, atol=1e-10)


@pytest.mark.book("4.74", name=("wl.models.init_linear", "wl.models.apply_linear"))
@pytest.mark.parametrize(("m", "loss"), [(None, "mse_loss"), (3, "cross_entropy")])
def test_two_functions_serve_regression_and_classification(m, loss):
    params = models.init_linear(4, m, key=wl.random.key(0), dtype=wl.float64)
    out = models.apply_linear(params, INPUTS)
    assert out.shape == ((30,) if m is None else (30, 3))
    target = TARGETS if m is None else wl.asarray(np.arange(30) % 3)
    f = lambda params: getattr(wl.nn.functional, loss)(models.apply_linear(params, INPUTS), target)
    before = f(params).item()
    for _ in range(20):
        params = wl.tree.map(lambda w, g: w - 0.1 * g, params, wl.grad(f)(params))
    assert f(params).item() < before
    again = models.init_linear(4, m, key=wl.random.key(0), dtype=wl.float64)
    np.testing.assert_array_equal(
        again["weight"], models.init_linear(4, m, key=wl.random.key(0), dtype="float64")["weight"]
    )


@pytest.mark.book("4.75", name="wl.models.linear_gradients")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("m", [None, 3])
def test_gradients_by_hand_with_and_without_a_bias(bias, m):
    params = models.init_linear(4, m, bias=bias, key=wl.random.key(2), dtype=wl.float64)
    assert ("bias" in params) == bias
    scores = models.apply_linear(params, INPUTS)
    if m is None:
        adjoint = 2 / 30 * (scores - TARGETS)
        f = lambda p: wl.nn.functional.mse_loss(models.apply_linear(p, INPUTS), TARGETS)
    else:
        y = wl.asarray(np.arange(30) % 3)
        adjoint = (wl.softmax(scores) - wl.one_hot(y, 3, dtype=wl.float64)) / 30
        f = lambda p: wl.nn.functional.cross_entropy(models.apply_linear(p, INPUTS), y)
    by_hand, automatic = models.linear_gradients(params, INPUTS, adjoint), wl.grad(f)(params)
    assert by_hand.keys() == automatic.keys()
    for name in by_hand:
        np.testing.assert_allclose(by_hand[name], automatic[name], atol=1e-12)


def test_models_are_modules():
    model = models.LinearRegression().fit(X, Y)
    state = model.state_dict()
    assert set(state) == {"weight", "bias", "sigma2"}
    other = models.LinearRegression().fit(X, -Y)
    other.load_state_dict(state)
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    np.testing.assert_allclose(wl.jit(lambda m, x: m(x))(model, INPUTS), model(INPUTS), rtol=1e-12)
    assert model(wl.zeros((2, 5, 4), dtype=wl.float64)).shape == (2, 5)
    single = models.LinearRegression().fit(X.astype(np.float32), Y.astype(np.float32))
    assert single.predict(X.astype(np.float32)).dtype == wl.float32
    assert "weight=[4]" in repr(model)


def test_bad_data():
    model = models.LinearRegression()
    with pytest.raises(ModuleError, match="not been fitted"):
        model.predict(X)
    with pytest.raises(ShapeError, match=r"targets of shape \(29,\) for 30"):
        model.fit(X, Y[:-1])
    with pytest.raises(InputError, match="row 3 of the data is not finite"):
        model.fit(np.where(np.arange(30)[:, None] == 3, np.nan, X), Y)
    with pytest.raises(InputError, match="targets are not finite"):
        model.fit(X, np.where(np.arange(30) == 3, np.inf, Y))
    with pytest.raises(InputError, match="0 examples"):
        model.fit(np.zeros((0, 4)), np.zeros(0))
    with pytest.raises(ShapeError):
        model.fit(X[:, 0], Y)
    with pytest.raises(InputError, match="method="):
        model.fit(X, Y, method="magic")
    with pytest.raises(InputError, match="alpha=-1"):
        models.Ridge(alpha=-1)
    with pytest.raises(InputError, match="lam=-1"):
        models.ridge_solve(INPUTS, TARGETS, -1)
    with pytest.raises(ShapeError, match="c=4"):
        model.fit(X, Y).predict(X[:, :2])
    with pytest.raises(InputError, match="constant targets"):
        model.score(X, np.ones(30))
