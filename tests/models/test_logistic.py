"""Softmax, sigmoid and the two logistic regressions, against scikit-learn, closed forms and the book's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from sklearn import datasets
from sklearn import linear_model as sk

import wonderland as wl
from wonderland import models
from wonderland.errors import DTypeError, InputError, ModuleError, ShapeError

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
SCORES = X @ rng.normal(size=(3, 3)) + rng.normal(size=(60, 3))
Y = SCORES.argmax(1)
B = (X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=60) > 0.2).astype(int)
NAMES = np.array(["ant", "bee", "cat"])


# --- the functions


@pytest.mark.book("4.43", "B4-24", name="wl.softmax")
def test_softmax_in_three_steps():
    x = wl.tensor([1.0, 2.0, 3.0], dtype=wl.float64)
    h = wl.exp(x)
    np.testing.assert_allclose(h, [2.71828183, 7.3890561, 20.08553692], rtol=1e-8)
    Z = h.sum()
    np.testing.assert_allclose(h / Z, [0.09003057, 0.24472847, 0.66524096], atol=1e-8)
    y = wl.softmax(x)
    np.testing.assert_allclose(y, h / Z, rtol=1e-14)
    assert np.all(np.diff(y) > 0), "the order is preserved"
    np.testing.assert_allclose(wl.softmax(x + 999), y, rtol=1e-12)
    np.testing.assert_array_equal(wl.softmax(x, where=wl.tensor([False] * 3)), 0.0)


@pytest.mark.book("4.44", "4.45", "4.46", "B4-25", name="wl.softmax")
@pytest.mark.parametrize("compiled", [False, True])
def test_softmax_with_a_temperature(compiled):
    x = wl.tensor([1.0, 2.0, 3.0], dtype=wl.float64)
    softmax = (
        wl.jit(lambda x, t: wl.softmax(x, temperature=t)) if compiled else lambda x, t: wl.softmax(x, temperature=t)
    )
    np.testing.assert_allclose(softmax(x, 10.0), [0.30060961, 0.33222499, 0.3671654], atol=1e-8)
    np.testing.assert_allclose(softmax(x, 100.0), [0.33000561, 0.33332222, 0.33667217], atol=1e-8)
    np.testing.assert_allclose(softmax(x, 1e6), 1 / 3, atol=1e-6)
    np.testing.assert_allclose(softmax(x, 1e-3), [0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(softmax(wl.tensor([2.0, 2.0, 1.0], dtype=wl.float64), 1e-3), [0.5, 0.5, 0], atol=1e-12)
    entropies = [special.entr(softmax(x, t).numpy()).sum() for t in (1.0, 10.0, 100.0)]
    assert np.all(np.diff(entropies) > 0)
    assert softmax(x, 10.0).argmax().item() == 2


def test_temperatures_are_positive():
    for bad in (0.0, -1.0, wl.tensor(0.0), float("nan")):
        with pytest.raises(InputError, match="temperature"):
            wl.softmax(wl.ones(3), temperature=bad)
    x, warm = wl.asarray(SCORES[0]), wl.asarray(np.float64(1.5))
    wl.check_grads(lambda x, t: wl.softmax(x, temperature=t), (x, warm), order=2)


@pytest.mark.book("4.53", "B4-28", "4.51", name="wl.sigmoid")
def test_the_sigmoid_is_a_softmax_of_two():
    s = wl.asarray(np.array([-1000.0, -3.0, 0.0, 0.7, 30.0, 1000.0]))
    p = wl.sigmoid(s).numpy()
    assert p[2] == 0.5
    assert (p[0], p[-1]) == (0.0, 1.0)
    np.testing.assert_allclose(p + wl.sigmoid(-s).numpy(), 1, rtol=1e-14)
    pair = wl.softmax(wl.stack([s, wl.zeros_like(s)], axis=-1)).numpy()
    np.testing.assert_allclose(pair[:, 0], p, rtol=1e-13)
    np.testing.assert_allclose(wl.softmax(wl.stack([wl.zeros_like(s), s], axis=-1))[:, 1], p, rtol=1e-13)
    np.testing.assert_allclose(wl.vmap(wl.grad(wl.sigmoid))(s), p * (1 - p), atol=1e-14)
    # the last output follows from the others: one minus their sum
    many = wl.softmax(wl.asarray(SCORES)).numpy()
    np.testing.assert_allclose(many[:, -1], 1 - many[:, :-1].sum(1), atol=1e-14)


@pytest.mark.book("4.57", "B4-30", name="wl.logit")
@pytest.mark.parametrize("compiled", [False, True])
def test_log_odds(compiled):
    logit = wl.jit(wl.logit) if compiled else wl.logit
    s = wl.asarray(np.linspace(-29, 15, 50))
    np.testing.assert_allclose(logit(wl.sigmoid(s)), s, rtol=1e-8)
    p = wl.asarray(np.array([1e-300, 0.25, 0.5, 0.9]))
    np.testing.assert_allclose(logit(p), special.logit(p.numpy()), rtol=1e-14)
    np.testing.assert_allclose(wl.sigmoid(logit(p)), p, rtol=1e-12)
    assert logit(wl.asarray(np.array([0.0, 1.0]))).tolist() == [-np.inf, np.inf]


def test_log_odds_can_be_kept_finite():
    np.testing.assert_allclose(wl.logit(wl.asarray(np.array([0.0, 1.0])), eps=1e-3), special.logit([1e-3, 1 - 1e-3]))
    assert np.isnan(wl.logit(1.5).item())
    wl.check_grads(wl.logit, (wl.asarray(np.array([0.2, 0.7])),), order=2)
    with pytest.raises(InputError, match="eps"):
        wl.logit(0.5, eps=0.7)


# --- models


@pytest.mark.book("4.47", "A2-37", "A2-39", name="wl.models.LogisticRegression")
def test_outputs_are_on_the_simplex():
    model = models.LogisticRegression.from_weights(rng.normal(size=(3, 4)), rng.normal(size=4), temperature=2.0)
    p = model.predict_proba(X)
    assert p.shape == (60, 4)
    assert wl.is_simplex(p, strict=True)
    np.testing.assert_allclose(p, special.softmax(model(X).numpy() / 2, axis=1), rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X.reshape(5, 12, 3)).numpy().reshape(60, 4), p, rtol=1e-12)


@pytest.mark.book("4.41", "B4-22", name=("wl.is_simplex", "wl.models.LogisticRegression"))
def test_the_simplex_and_its_vertices():
    p = wl.tensor([0.2, 0.05, 0.75])
    assert wl.is_simplex(p)
    vertices = np.eye(3)
    assert np.linalg.norm(vertices - p.numpy(), axis=1).argmin() == p.argmax().item() == 2
    assert wl.is_simplex(wl.asarray(vertices))
    assert not wl.is_simplex(wl.asarray(vertices), strict=True)


@pytest.mark.book("A2-38", "4.50", name="wl.models.LogisticRegression")
def test_gradients_of_the_loss():
    W, b = wl.asarray(rng.normal(size=(3, 3))), wl.asarray(rng.normal(size=3))
    inputs, y = wl.asarray(X), wl.asarray(Y)
    loss = lambda z: wl.nn.functional.cross_entropy(z, y)
    z = inputs @ W + b
    P, hot = special.softmax(z.numpy(), axis=1), np.eye(3)[Y]
    np.testing.assert_allclose(wl.grad(loss)(z), (P - hot) / 60, atol=1e-14)
    slope = wl.grad(lambda W: loss(inputs @ W + b))(W)
    np.testing.assert_allclose(slope, X.T @ (P - hot) / 60, atol=1e-13)
    # convex: the chord is above the curve
    V = wl.asarray(rng.normal(size=(3, 3)))
    f = lambda W: loss(inputs @ W + b).item()
    assert all(f(t * W + (1 - t) * V) <= t * f(W) + (1 - t) * f(V) + 1e-12 for t in (0.25, 0.5, 0.75))


@pytest.mark.book("4.50", name="wl.models.LogisticRegression")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("method", ["newton", "lbfgs", "gradient"])
def test_softmax_regression_against_scikit_learn(bias, method):
    l2 = 0.02
    theirs = sk.LogisticRegression(C=1 / (60 * l2), fit_intercept=bias, tol=1e-12, max_iter=5000).fit(X, Y)
    ours = models.LogisticRegression(l2=l2, bias=bias).fit(
        X, Y, method, max_iter=100 if method != "gradient" else 20_000
    )
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, Y) == theirs.score(X, Y)
    assert np.all(np.diff(ours.losses.numpy()) <= 4 * np.finfo(float).eps)  # but for rounding


@pytest.mark.book("4.54", "B4-28", name=("wl.models.BinaryLogisticRegression", "wl.models.as_softmax"))
def test_binary_regression_is_the_softmax_of_zero_and_the_score():
    theirs = sk.LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X, B)
    ours = models.BinaryLogisticRegression().fit(X, B)
    np.testing.assert_allclose(ours.weight, theirs.coef_[0], atol=1e-5)
    np.testing.assert_allclose(ours.bias, theirs.intercept_[0], atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    wide = models.as_softmax(ours)
    np.testing.assert_array_equal(wide.weight[:, 0], 0.0)
    np.testing.assert_allclose(wide.predict_proba(X), ours.predict_proba(X), rtol=1e-12)
    F = wl.nn.functional
    one = F.binary_cross_entropy_with_logits(ours(X), B.astype(float)).item()
    assert F.cross_entropy(wide(X), wl.asarray(B)).item() == pytest.approx(one, rel=1e-12), "the same loss"
    # without a penalty the redundant model finds the same probabilities
    redundant = models.LogisticRegression().fit(X, B)
    np.testing.assert_allclose(redundant.predict_proba(X), ours.predict_proba(X), atol=1e-6)


@pytest.mark.book("B4-29", name="wl.models.BinaryLogisticRegression")
def test_gradient_of_the_binary_loss():
    w = rng.normal(size=3)
    one = lambda w, x, y: wl.nn.functional.binary_cross_entropy_with_logits(x @ w, y)
    for i in range(4):
        gradient = wl.grad(one)(wl.asarray(w), wl.asarray(X[i]), wl.asarray(np.float64(B[i])))
        np.testing.assert_allclose(gradient, (special.expit(X[i] @ w) - B[i]) * X[i], rtol=1e-10)


@pytest.mark.book("B4-27", "4.52", name="wl.models.BinaryLogisticRegression")
def test_a_score_of_zero_is_class_0_unless_told_otherwise():
    at = np.zeros((1, 3))
    assert models.BinaryLogisticRegression.from_weights([1.0, 2.0, 3.0]).predict(at).tolist() == [0]
    assert models.BinaryLogisticRegression.from_weights([1.0, 2.0, 3.0], tie=1).predict(at).tolist() == [1]
    eager = models.BinaryLogisticRegression.from_weights([1.0, 2.0, 3.0], 0.0, threshold=0.3)
    assert eager.predict(np.array([[-0.5, 0.0, 0.0], [-1.0, 0.0, 0.0]])).tolist() == [1, 0]


@pytest.mark.book("A2-33", name=("wl.models.BinaryLogisticRegression", "wl.models.Perceptron"))
def test_rounded_sigmoids_are_threshold_units_whatever_the_slope():
    w = rng.normal(size=3)
    unit = models.Perceptron.from_weights(w).predict(X)
    for c in (0.01, 1.0, 100.0):
        model = models.BinaryLogisticRegression.from_weights(c * w, tie=1)
        np.testing.assert_array_equal(model.predict(X), unit)
        cooled = models.BinaryLogisticRegression.from_weights(w, temperature=1 / c, tie=1)
        np.testing.assert_allclose(cooled.predict_proba(X), model.predict_proba(X), rtol=1e-9)
    steep = models.BinaryLogisticRegression.from_weights(1e6 * w).predict_proba(X)[:, 1]
    np.testing.assert_allclose(steep, unit, atol=1e-12)


@pytest.mark.book("4.50", name="wl.models.ConvergenceWarning")
def test_separable_classes_need_a_penalty():
    x, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    norms = []
    for steps in (10, 100, 1000):
        model = models.BinaryLogisticRegression()
        with pytest.warns(models.ConvergenceWarning, match="separated"):
            model.fit(x, y, "gradient", max_iter=steps, lr=1.0)
        norms.append(abs(model.weight.item()))
    assert norms[0] < norms[1] < norms[2], "the weights grow for ever"
    assert np.isfinite(models.LogisticRegression(l2=1e-3).fit(x, y).weight.numpy()).all()
    with pytest.warns(models.ConvergenceWarning, match="separated"):
        models.LogisticRegression().fit(x, y)


@pytest.mark.book("B4-23", "4.42", name="wl.nn.Linear")
def test_both_orientations_of_the_weight():
    W = rng.normal(size=(5, 3))  # (m, c), as W x reads
    layer = wl.nn.Linear.from_matrix(W, np.arange(5.0), layout="out in")
    assert layer.weight.shape == (3, 5)
    out = layer(wl.asarray(X))
    np.testing.assert_allclose(out, [W @ x + np.arange(5.0) for x in X], rtol=1e-12)
    row = models.linear_model(wl.asarray(W[2]), 2.0, wl.asarray(X))
    np.testing.assert_allclose(out[:, 2], row, rtol=1e-12)


@pytest.mark.book("A4-15", "A4-16", name=("wl.models.LogisticRegression.class_vectors", "wl.cosine_similarity"))
def test_class_vectors_and_similarity():
    W = rng.normal(size=(4, 3))  # the class vectors
    model = models.LogisticRegression.from_weights(W.T)
    np.testing.assert_array_equal(model.class_vectors, W)
    np.testing.assert_array_equal(model.predict_proba(X).argmax(-1), (X @ W.T).argmax(1))
    unit = W / np.linalg.norm(W, axis=1, keepdims=True)
    dots = X @ unit.T
    cosines = wl.cosine_similarity(wl.asarray(X)[:, None], wl.asarray(W)).numpy()
    np.testing.assert_array_equal(dots.argsort(1), cosines.argsort(1))
    x = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(x @ unit.T, cosines, atol=1e-12)


def test_names_and_gaps_in_labels():
    model = models.LogisticRegression(l2=0.1).fit(X, NAMES[Y])
    assert model.classes_ == ("ant", "bee", "cat")
    assert set(model.predict(X)) <= set(NAMES)
    column = models.LogisticRegression(l2=0.1).fit(X, NAMES[Y].astype(object))
    assert column.classes_ == model.classes_
    plain = models.LogisticRegression(l2=0.1).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), NAMES[plain.predict(X).numpy()])
    gaps = models.LogisticRegression(l2=0.1).fit(X, 10 * Y - 3)
    np.testing.assert_array_equal(gaps.predict(X), 10 * plain.predict(X).numpy() - 3)
    wide = models.LogisticRegression(l2=0.1).fit(X, Y, num_classes=5)
    assert wide.predict_proba(X).shape == (60, 5)
    assert models.SoftmaxRegression is models.LogisticRegression


@pytest.mark.book("4.76", name=("wl.models.LogisticRegression", "wl.models.KNeighborsClassifier", "wl.viz.plot"))
def test_iris_on_an_independent_test_set():
    data = datasets.load_iris()
    order = np.random.default_rng(0).permutation(150)
    (x, y), (tx, ty) = ((data.data[i], data.target[i]) for i in (order[:100], order[100:]))
    model = models.LogisticRegression(l2=1e-2).fit(x, y)
    assert model.score(tx, ty) > 0.9
    near = models.KNeighborsClassifier(1).fit(x, y)
    assert near.score(x, y) == 1.0
    assert near.score(tx, ty) > 0.9
    assert models.MajorityClassifier().fit(x, y).score(tx, ty) < 0.5
    svg = wl.viz.plot([wl.viz.Curve(np.arange(len(model.losses)), model.losses, "loss")], x_label="step")
    assert "<polyline" in svg


def test_units_of_features_do_not_matter():
    units = np.array([1e4, 1e-4, 1.0])
    for model in (models.LogisticRegression, models.BinaryLogisticRegression):
        plain, other = model().fit(X, B), model().fit(X * units + 5 * units, B)
        np.testing.assert_allclose(other.predict_proba(X * units + 5 * units), plain.predict_proba(X), atol=1e-6)
    # the penalty is on the weights as they are, whatever happens on the way
    theirs = sk.LogisticRegression(C=1 / (60 * 0.1), tol=1e-10, max_iter=10_000).fit(X * [1, 5, 0.2], B)
    ours = models.BinaryLogisticRegression(l2=0.1).fit(X * [1, 5, 0.2], B)
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-5)


def test_under_jit_and_in_float32():
    model = models.LogisticRegression(l2=0.1).fit(X.astype(np.float32), Y)
    assert model.weight.dtype == wl.float32
    inputs = wl.asarray(X.astype(np.float32))
    compiled = wl.jit(lambda m, x: m.predict_proba(x))(model, inputs)
    np.testing.assert_allclose(compiled, model.predict_proba(inputs), rtol=1e-5)
    exact = models.LogisticRegression(l2=0.1).fit(X, Y)
    np.testing.assert_allclose(model.weight, exact.weight, atol=1e-3)


def test_bad_data():
    model = models.LogisticRegression()
    with pytest.raises(ModuleError, match="not been fitted"):
        model.predict(X)
    with pytest.raises(InputError, match="all of one class"):
        model.fit(X, np.zeros(60, int))
    with pytest.raises(InputError, match="not all among the 2 classes"):
        model.fit(X, Y, num_classes=2)
    with pytest.raises(DTypeError, match="float64"):
        model.fit(X, Y + 0.0)
    with pytest.raises(ShapeError, match=r"\(59,\) for 60"):
        model.fit(X, Y[1:])
    with pytest.raises(InputError, match="not finite"):
        model.fit(X * np.nan, Y)
    with pytest.raises(InputError, match="method="):
        model.fit(X, Y, "magic")
    with pytest.raises(InputError, match="3 classes"):
        models.BinaryLogisticRegression().fit(X, Y)
    for bad in ({"l2": -1}, {"temperature": 0}):
        with pytest.raises(InputError):
            models.LogisticRegression(**bad)
    with pytest.raises(InputError, match="threshold"):
        models.BinaryLogisticRegression(threshold=2)
    with pytest.raises(ShapeError, match="single logit"):
        models.as_softmax(model)
    with pytest.raises(ShapeError, match="labels of shape"):
        models.LogisticRegression(l2=1.0).fit(X, Y).score(X, Y[1:])
