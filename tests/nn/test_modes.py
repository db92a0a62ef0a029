"""Monte Carlo dropout, weight scaling, and modes that come back."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError


def network():
    return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))


@pytest.mark.book("9-46", name=("wl.nn.enable_dropout_only", "wl.nn.mc_predict"))
@pytest.mark.parametrize("training", [False, True])
def test_batch_normalization_stays_as_it_is(training):
    model = network().train(training)
    model[1].running_mean = wl.random.normal((8,))
    before = {path: value.numpy().copy() for path, value in model.state_dict().items()}
    mean, std = nn.mc_predict(model, wl.random.normal((5, 3)), k=6)
    assert mean.shape == std.shape == (5, 2)
    assert all(module.training == training for module in model.modules())
    for path, value in model.state_dict().items():
        np.testing.assert_array_equal(value, before[path])
    one, _ = nn.mc_predict(model, wl.random.normal((1, 3)), k=3)  # no batch statistics, so one example will do
    assert one.shape == (1, 2)


@pytest.mark.book("9-42", "A8-07", name=("wl.nn.mc_predict", "wl.nn.weight_scaling"))
def test_the_mean_of_a_linear_model_is_the_scaled_one():
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(6, 1)), rng.normal(size=(1, 6))
    model = nn.Sequential(nn.Dropout(drop=0.3, inverted=False, key=0), nn.Linear.from_matrix(w))
    scaled = nn.weight_scaling(model)
    exact = float((0.7 * x @ w).squeeze())
    np.testing.assert_allclose(scaled(wl.asarray(x)).item(), exact, rtol=1e-12)
    np.testing.assert_allclose(scaled[1].weight, 0.7 * w, rtol=1e-12)
    np.testing.assert_allclose(model[1].weight, w)  # a copy was scaled
    spread = float(np.sqrt(0.3 * 0.7 * (x**2 @ w**2).squeeze()))
    predict = wl.jit(lambda model, x: nn.mc_predict(model, x, k=100))
    means, stds = zip(*[[t.item() for t in predict(model, wl.asarray(x))] for _ in range(40)], strict=True)
    np.testing.assert_allclose(np.mean(means), exact, atol=4 * spread / np.sqrt(4000))
    np.testing.assert_allclose(np.mean(stds), spread, rtol=0.05)  # of the members
    np.testing.assert_allclose(np.std(means), spread / np.sqrt(100), rtol=0.4)  # of their mean: 1/sqrt(k)


def test_eager_and_compiled_agree():
    model, x = network(), wl.random.normal((4, 3))
    model[3] = nn.Dropout(0.5, key=2)
    twin = model.copy()
    eager = nn.mc_predict(model, x, k=4)
    compiled = wl.jit(lambda model, x: nn.mc_predict(model, x, k=4))(twin, x)
    for a, b in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert twin.training
    assert twin[1].training


def test_dropout_inside_recurrent_layers_counts():
    class Last(nn.Module):
        def __init__(self, dropout):
            self.rnn = nn.GRU(3, 4, num_layers=2, dropout=dropout)

        def forward(self, x):
            return self.rnn(x)[0][-1]

    _, std = nn.mc_predict(Last(0.5).eval(), wl.ones((5, 2, 3)), k=5)
    assert (std > 0).any()
    with pytest.raises(ModuleError, match="no dropout"):
        nn.mc_predict(Last(0.0), wl.ones((5, 2, 3)))


def test_modes_come_back_after_an_error():
    model = network()
    modes = []

    def fails():
        with nn.enable_dropout_only(model):
            modes.extend(m.training for m in model.modules())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert modes == [False, False, False, False, True, False]
    assert all(m.training for m in model.modules())


@pytest.mark.book("9-46", name="wl.nn.warn_if_training")
def test_predicting_while_training_is_noticed():
    model = network()
    with pytest.warns(UserWarning, match=r"'1', '3' of this Sequential .*model.eval"):
        assert nn.warn_if_training(model) == ["1", "3"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert nn.warn_if_training(model.eval()) == []


def test_bad_input():
    with pytest.raises(ModuleError, match="no dropout"):
        nn.mc_predict(nn.Linear(2, 2), wl.ones(2))
    with pytest.raises(InputError, match="k=1 is too small"):
        nn.mc_predict(network(), wl.ones((2, 3)), k=1)
