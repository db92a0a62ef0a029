"""Losses of a few sampled classes: what they tend to, which rows they touch, and where they are biased."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, IndexOutOfRange, InputError, ShapeError

F = nn.functional
RNG = np.random.default_rng(0)
C, D = 12, 5
Z, W, B = RNG.normal(size=(6, D)), RNG.normal(size=(C, D)), RNG.normal(size=C)
Y = np.array([0, 3, 11, 5, 5, 7])
ETA = Z @ W.T + B
z, w, b, y = (wl.asarray(a) for a in (Z, W, B, Y))


@pytest.mark.book("A4-26", name="wl.log_softmax")
def test_the_gradient_of_the_log_likelihood_is_positive_minus_expected():
    for f in (lambda e: wl.log_softmax(e)[3], lambda e: e[3] - wl.logsumexp(e)):
        p = np.exp(log_softmax(ETA[0]))
        np.testing.assert_allclose(wl.grad(f)(wl.asarray(ETA[0])), np.eye(C)[3] - p, atol=1e-12)
    # with respect to z: grad eta_y - E_p[grad eta_c], where grad eta_c = w_c
    f = lambda z: wl.log_softmax(w @ z + b)[3]
    np.testing.assert_allclose(wl.grad(f)(z[0]), W[3] - p @ W, atol=1e-12)


@pytest.mark.book("A4-28", name="wl.nn.functional.sampled_softmax_loss")
def test_with_every_class_sampled_it_is_the_softmax():
    exact = -log_softmax(ETA, axis=1)[np.arange(6), Y]
    every = wl.arange(C)
    uniform = wl.full(C, -np.log(C), dtype=wl.float64)
    for samples, log_q in ((every, uniform), (wl.stack([every] * 6), wl.stack([uniform] * 6))):
        loss = F.sampled_softmax_loss(z, w, b, y, samples, log_q, reduction="none")
        np.testing.assert_allclose(loss, exact, rtol=1e-12)
    np.testing.assert_allclose(F.sampled_softmax_loss(z, w, b, y, every, uniform), exact.mean(), rtol=1e-12)
    gradient = wl.grad(lambda w: F.sampled_softmax_loss(z, w, b, y, every, uniform))(w)
    np.testing.assert_allclose(gradient, wl.grad(lambda w: F.cross_entropy(z @ w.mT + b, y))(w), atol=1e-12)


@pytest.mark.book("A4-28", name="wl.nn.functional.sampled_softmax_loss")
def test_the_estimate_of_the_normaliser_is_unbiased_for_any_q():
    q = RNG.dirichlet(np.ones(C))
    # the exact expectation over one sample: e^loss = Z_estimate / e^eta_y
    samples = wl.asarray(np.tile(np.arange(C), (6, 1)))
    each = [
        np.exp(
            F.sampled_softmax_loss(
                z, w, b, y, samples[:, c : c + 1], wl.full((6, 1), np.log(q[c]), dtype=wl.float64), reduction="none"
            ).numpy()
        )
        for c in range(C)
    ]
    expected = np.exp(logsumexp(ETA, axis=1) - ETA[np.arange(6), Y])
    np.testing.assert_allclose(q @ np.array(each), expected, rtol=1e-10)


@pytest.mark.book("A4-27", name="wl.nn.SampledSoftmax")
@pytest.mark.parametrize("loss", ["softmax", "nce", "negative"])
@pytest.mark.parametrize("compiled", [False, True])
def test_only_the_class_and_the_samples_get_gradients(loss, compiled):
    layer = nn.SampledSoftmax(D, 1000, 5, loss=loss, corrected=False, dtype=wl.float64, key=wl.random.key(0))
    stream = wl.random.Stream(layer.stream.value)
    samples = set(layer.sample(key=stream).tolist())
    gradient = wl.grad(lambda m: m(z, y))
    gradient = wl.jit(gradient) if compiled else gradient
    found = gradient(layer)
    for values in (found["weight"].numpy(), found["bias"].numpy()[:, None]):
        assert set(np.flatnonzero(np.abs(values).sum(1))) == samples | set(Y)


@pytest.mark.book("A4-27", name="wl.nn.SampledSoftmax")
def test_uniform_samples_without_correction_are_biased():
    # the expectation over samples, exactly: one sample, each class with probability 1/C
    def mean_gradient(log_q):
        total = 0.0
        for c in range(C):
            q = None if log_q is None else wl.full(1, log_q, dtype=wl.float64)
            total = total + wl.grad(lambda e, c=c, q=q: F.sampled_softmax_loss(e, eye, None, y, wl.tensor([c]), q))(eta)
        return (total / C).numpy()

    eta, eye = wl.asarray(ETA), wl.eye(C, dtype=wl.float64)
    exact = wl.grad(lambda e: F.cross_entropy(e, y))(eta).numpy()
    plain, corrected = mean_gradient(None), mean_gradient(-np.log(C))
    assert np.abs(plain - exact).max() > 0.02
    assert np.abs(corrected - exact).sum() < np.abs(plain - exact).sum()


@pytest.mark.book("A4-29", name="wl.nn.functional.nce_loss")
def test_nce_is_least_at_the_log_density():
    p, q, k = RNG.dirichlet(np.full(4, 2.0)), RNG.dirichlet(np.full(4, 2.0)), 3
    # the expectation over data y ~ p and k independent samples ~ q, which counts k times one sample
    Yg, Sg = (g.ravel() for g in np.meshgrid(np.arange(4), np.arange(4), indexing="ij"))
    chance = wl.asarray(p[Yg] * q[Sg])

    def expected(eta, k=k):
        codes = wl.ones((16, 1), dtype=wl.float64)
        repeated = wl.asarray(np.tile(Sg[:, None], (1, k)))
        log_q = wl.asarray(np.log(q))
        each = F.nce_loss(codes, eta[:, None], None, wl.asarray(Yg), repeated, log_q[Yg], log_q[repeated], "none")
        return (chance * each).sum()

    best = wl.asarray(np.log(p))
    np.testing.assert_allclose(wl.grad(expected)(best), 0.0, atol=1e-14)
    assert np.linalg.eigvalsh(wl.hessian(expected)(best).numpy()).min() > 0
    assert float(expected(best + 0.3)) > float(expected(best))  # no free constant: it normalises itself


@pytest.mark.book("A4-27", name=("wl.nn.functional.negative_sampling_loss", "wl.nn.unigram_probabilities"))
def test_word2vecs_negative_sampling():
    samples = np.array([1, 3, 3, 9])
    sigma = lambda v: 1 / (1 + np.exp(-v))
    expected = -np.log(sigma(ETA[np.arange(6), Y]))
    for s in samples:
        expected = expected - np.where(s == Y, 0.0, np.log(sigma(-ETA[:, s])))
    got = F.negative_sampling_loss(z, w, b, y, wl.asarray(samples), reduction="none")
    np.testing.assert_allclose(got, expected, rtol=1e-10)
    wl.check_grads(lambda z, w: F.negative_sampling_loss(z, w, b, y, wl.asarray(samples)), (z, w), order=1)
    counts = np.array([100, 10, 1, 0])
    np.testing.assert_allclose(nn.unigram_probabilities(counts), counts**0.75 / (counts**0.75).sum())
    layer = nn.SampledSoftmax(2, 4, 20000, q=nn.unigram_probabilities(counts), key=wl.random.key(0))
    frequencies = np.bincount(layer.sample().numpy(), minlength=4) / 20000
    np.testing.assert_allclose(frequencies, nn.unigram_probabilities(counts), atol=0.01)
    assert frequencies[3] == 0


def test_samples_that_are_all_the_right_class_teach_nothing():
    same = wl.asarray(np.repeat(Y[:, None], 3, axis=1))
    log_q = wl.full((6, 3), -2.0, dtype=wl.float64)
    value, gradient = wl.value_and_grad(lambda w: F.sampled_softmax_loss(z, w, b, y, same, log_q))(w)
    assert abs(float(value)) < 1e-12
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)
    value = F.negative_sampling_loss(z, w, b, y, same, reduction="none")
    np.testing.assert_allclose(value, np.log1p(np.exp(-ETA[np.arange(6), Y])), rtol=1e-10)


@pytest.mark.parametrize("loss, least", [("softmax", 0.95), ("nce", 0.7)])
def test_training_with_samples_finds_the_classes(loss, least):
    rng = np.random.default_rng(0)
    centers = 2 * rng.normal(size=(30, 8))
    labels = rng.integers(0, 30, 400)
    X = wl.asarray((centers[labels] + 0.3 * rng.normal(size=(400, 8))).astype(np.float32))
    layer = nn.SampledSoftmax(8, 30, 6, loss=loss, key=wl.random.key(0))
    optimizer = wl.optim.Adam(layer, lr=0.1)

    @wl.jit
    def step(layer, optimizer, x, y):
        value, grads = wl.value_and_grad(lambda m, x, y: m(x, y))(layer, x, y)
        optimizer.step(grads)
        return value

    for _ in range(200):
        step(layer, optimizer, X, wl.asarray(labels))
    assert (layer.predict(X).numpy() == labels).mean() > least
    exact = layer.eval()(X, wl.asarray(labels))
    np.testing.assert_allclose(exact, F.cross_entropy(layer.logits(X), wl.asarray(labels)), rtol=1e-6)


@pytest.mark.book("A4-15", "A4-31", name="wl.nn.SampledSoftmax")
def test_the_most_likely_class_has_the_largest_inner_product():
    layer = nn.SampledSoftmax(D, C, 2, bias=False, dtype=wl.float64, key=wl.random.key(0))
    similarity = Z @ layer.class_vectors().numpy().T
    np.testing.assert_array_equal(layer.predict(z), similarity.argmax(1))
    np.testing.assert_array_equal(layer.predict(z), np.exp(layer.log_probs(z).numpy()).argmax(1))
    np.testing.assert_allclose(layer.log_probs(z), log_softmax(similarity, axis=1), rtol=1e-9)


def test_bad_input():
    with pytest.raises(IndexOutOfRange):
        F.sampled_softmax_loss(z, w, b, y, wl.tensor([C]))
    with pytest.raises(IndexOutOfRange):
        F.negative_sampling_loss(z, w, b, y - 1, wl.tensor([0]))
    with pytest.raises(ShapeError, match="codes of shape"):
        F.negative_sampling_loss(z[:, :2], w, b, y, wl.tensor([0]))
    with pytest.raises(ShapeError, match="samples of shape"):
        F.negative_sampling_loss(z, w, b, y, wl.tensor([[0]]))
    with pytest.raises(ShapeError, match="log_q of shape"):
        F.sampled_softmax_loss(z, w, b, y, wl.tensor([0]), wl.zeros(2))
    with pytest.raises(DTypeError, match="samples of float32"):
        F.negative_sampling_loss(z, w, b, y, wl.ones(1))
    with pytest.raises(InputError, match="reduction='max'"):
        F.negative_sampling_loss(z, w, b, y, wl.tensor([0]), reduction="max")
    with pytest.raises(InputError, match="loss='hinge'"):
        nn.SampledSoftmax(2, 3, 1, loss="hinge")
    with pytest.raises(InputError, match="no probabilities"):
        nn.SampledSoftmax(2, 3, 1, q=[0.5, 0.5, 0.5])
    with pytest.raises(ShapeError, match="q of shape"):
        nn.SampledSoftmax(2, 3, 1, q=[0.5, 0.5])
    with pytest.raises(InputError, match="not all 0"):
        nn.unigram_probabilities([0, 0])
