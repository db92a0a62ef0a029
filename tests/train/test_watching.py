"""Warnings of what keeps a model from learning."""

import warnings

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, train

X = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]


def watched(model, loss="mse_loss", data=(X, X**2), **settings):
    """The callback after an epoch, and the texts of its warnings."""
    watch = train.Watch()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train.fit(model, loss, data, epochs=1, callbacks=[watch], progress=False, **settings)
    assert all(issubclass(w.category, train.TrainingWarning) for w in caught)
    return watch, "\n".join(str(w.message) for w in caught)


@pytest.mark.book("A3-57", "A3-75", name="wl.train.Watch")
def test_a_deep_sigmoid_net_is_said_to_vanish():
    wl.random.seed(0)
    layers = [part for _ in range(14) for part in (nn.Linear(4, 4), nn.Sigmoid())]
    model = nn.Sequential(nn.Linear(1, 4), nn.Sigmoid(), *layers, nn.Linear(4, 1))
    watch, text = watched(model)
    assert "the gradient of 0.weight is vanishing" in text
    assert "30.weight" not in text
    sizes = watch.norms[0]
    assert sizes["0.weight"] < 1e-6 * sizes["30.weight"]


@pytest.mark.book("5.46", name=("wl.train.Watch", "wl.nn.diagnostics.dead_units"))
def test_dead_layers_are_named():
    layer = nn.Linear.from_matrix(np.ones((1, 4)), np.full(4, -100.0))
    watch, text = watched(nn.Sequential(layer, nn.ReLU(), nn.Linear(4, 1)))
    assert "4 of the 4 units of 0 are dead" in text
    assert watch.dead == {"0": [0, 1, 2, 3]}
    assert watch.norms[0]["0.weight"] == 0.0


def test_exploding_gradients_are_named():
    _, text = watched(nn.Linear(1, 1), data=(X, 1e6 * X), lr=1e-9)
    assert "weight is exploding" in text


def test_a_healthy_run_is_left_alone_and_the_norms_are_right():
    wl.random.seed(0)
    model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    before = model.copy()
    watch, text = watched(model, batch_size=64, optimizer=wl.optim.SGD, lr=0.0)
    assert text == ""
    assert bool((before[0].weight == model[0].weight).all())
    first = np.asarray(model[0](wl.asarray(X)))
    assert watch.activations[0].path == "0"
    assert watch.activations[0].activation_std == pytest.approx(first.std(), rel=1e-4)
    grads = wl.grad(lambda m: nn.functional.mse_loss(m(wl.asarray(X)), wl.asarray(X**2)))(model)
    for path, g in grads.items():
        assert watch.norms[0][path] == pytest.approx(np.linalg.norm(np.asarray(g)), rel=1e-5)


def test_looking_changes_nothing():
    def run(callbacks):
        wl.random.seed(2)
        model = nn.Sequential(nn.Linear(1, 4, bias=False), nn.BatchNorm1d(4), nn.Dropout(0.1), nn.Linear(4, 1))
        train.fit(model, "mse_loss", (X, X), epochs=3, callbacks=callbacks, progress=False)
        return [np.asarray(value) for value in model.state_dict().values()]

    for a, b in zip(run([]), run([train.Watch()]), strict=True):
        np.testing.assert_array_equal(a, b)
