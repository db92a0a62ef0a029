"""Frozen encoders with new heads, and gradients through training itself."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import ModuleError, ShapeError
from wonderland.models import Autoencoder, LinearAutoencoder, fit_head
from wonderland.models.classical.descent import descend


def few_labels(seed=0):
    """Two classes along one strong direction of 80 noisy numbers: 300 inputs, of which 4 have labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 300)
    direction = np.linalg.qr(rng.normal(size=(80, 1)))[0][:, 0]
    X = np.outer(2 * y - 1, 2.5 * direction) + rng.normal(size=(300, 80))
    chosen = np.concatenate([np.flatnonzero(y == 0)[:2], np.flatnonzero(y == 1)[:2]])
    return X.astype(np.float32), y, chosen


def accuracy(model, X, y):
    return float((wl.argmax(model(wl.asarray(X)), axis=-1).numpy() == y).mean())


@pytest.mark.book("A1-05", "A8-14", "A2-20", name=("wl.models.fit_head", "wl.models.Autoencoder"))
def test_a_pretrained_encoder_helps_where_labels_are_few():
    X, y, chosen = few_labels()
    autoencoder = LinearAutoencoder(80, 1, key=wl.random.key(0)).fit(X, epochs=60, batch_size=100, lr=0.02)
    before = {path: p.numpy().copy() for path, p in autoencoder.encoder.named_parameters()}
    settings = {"epochs": 100, "lr": 0.1}
    model = fit_head(autoencoder.encoder, nn.Linear(1, 2, key=wl.random.key(1)), X[chosen], y[chosen], **settings)
    for path, p in autoencoder.encoder.named_parameters():
        np.testing.assert_array_equal(p, before[path])  # bit by bit
        assert not p.trainable
    k = wl.random.split(wl.random.key(2), 2)
    scratch = nn.Sequential(nn.Linear(80, 2, key=k[0]), nn.Linear(2, 2, key=k[1]))
    loss = lambda m, x, y: nn.functional.cross_entropy(m(x), y)
    descend(scratch, loss, X[chosen], y[chosen], **settings)
    assert accuracy(model, X, y) > accuracy(scratch, X, y) + 0.05
    assert accuracy(model, X, y) > 0.95


@pytest.mark.book("A2-05", name="wl.models.fit_head")
def test_another_head_leaves_the_encoder_as_it_is():
    encoder = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), wl.tanh)
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    state = {path: value.numpy().copy() for path, value in encoder.state_dict().items()}
    first = fit_head(encoder, nn.Linear(4, 2), X, (X[:, 0] > 0).astype(int), epochs=3)
    second = fit_head(encoder, nn.Linear(4, 1), X, X[:, :1], loss=nn.functional.mse_loss, epochs=3)
    assert first[0] is second[0]
    assert (first(wl.asarray(X)).shape, second(wl.asarray(X)).shape) == ((20, 2), (20, 1))
    for path, value in encoder.state_dict().items():
        np.testing.assert_array_equal(value, state[path])
    assert encoder[1].training  # its mode, too


@pytest.mark.book("3.06", name="wl.nn.Module.register_forward_hook")
def test_a_hook_reads_the_hidden_state_of_a_trained_model():
    model = nn.Sequential(nn.Linear(3, 4), wl.tanh, nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 1))
    x = wl.random.normal((5, 3), key=wl.random.key(0))
    seen = []
    with model[3].register_forward_hook(lambda module, args, output: seen.append(output)):
        model(x)
    (embedding,) = seen
    w = [p.numpy() for p in model.parameters()]
    by_hand = np.maximum(np.tanh(x.numpy() @ w[0] + w[1]) @ w[2] + w[3], 0)
    np.testing.assert_allclose(embedding, by_hand, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(embedding, model[:4](x))


@pytest.mark.book("3.12", name="wl.grad")
def test_gradients_of_gradients_and_through_a_step_of_training():
    assert float(wl.grad(wl.grad(lambda x: x**3))(wl.tensor(5.0))) == 30.0
    # the loss after one step from w, as a function of w: for 0.5 a w^2 the step is w (1 - lr a)
    lr, a, b = 0.1, wl.tensor(3.0, wl.float64), wl.tensor(2.0, wl.float64)
    inner = lambda w: 0.5 * a * w**2
    outer = lambda w: 0.5 * b * (w - lr * wl.grad(inner)(w)) ** 2
    w = wl.tensor(1.5, wl.float64)
    expected = 2.0 * 1.5 * (1 - 0.1 * 3.0) ** 2
    for f in (wl.grad(outer), wl.jit(wl.grad(outer))):
        np.testing.assert_allclose(f(w), expected, rtol=1e-12)

    # the same for a network and a task: against finite differences
    x, y = wl.random.normal((2, 8, 1), key=wl.random.key(0), dtype=wl.float64)

    def after_a_step(params):
        loss = lambda p: ((wl.tanh(x @ p[0]) @ p[1] - y) ** 2).mean()
        return loss([p - 0.5 * g for p, g in zip(params, wl.grad(loss)(params), strict=True)])

    k = wl.random.split(wl.random.key(1), 2)
    start = [wl.random.normal((1, 3), key=k[0], dtype=wl.float64), wl.random.normal((3, 1), key=k[1], dtype=wl.float64)]
    wl.check_grads(after_a_step, (start,), order=1)


def test_bad_input():
    with pytest.raises(ShapeError, match="fit_head: inputs of shape"):
        fit_head(nn.Linear(2, 2), nn.Linear(2, 2), np.zeros((3, 2)), np.zeros(2, int))
    with pytest.raises(ModuleError, match="no parameters"):
        fit_head(nn.Linear(2, 2), nn.ReLU(), np.zeros((3, 2)), np.zeros(3, int))
    with pytest.raises(ModuleError, match="mirror"):
        Autoencoder(wl.tanh)
