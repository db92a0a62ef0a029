"""The model for tables: its bins, its members, what it learns, and how the catalogue builds and trains it."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.models.promises import learns, same_when_compiled, survives_saving
from wonderland import nn, recipes
from wonderland.errors import InputError, ShapeError
from wonderland.models import Tabular
from wonderland.recipes.table_models import by_size

F = nn.functional


def rows(n=40, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def made(key=0, x=None, **settings):
    x = rows() if x is None else x
    model = Tabular(x.shape[1], settings.pop("outputs", 2), hidden=(8, 5), key=wl.random.key(key), **settings)
    model.look_at(x)
    # the linear path begins at zero; here it must count
    weight = np.random.default_rng(key + 1).normal(size=model.linear.weight.shape)
    model.linear.weight.value = wl.tensor(weight.astype(np.float32))
    return model


# --- bins


def test_places_in_bins_are_those_of_interpolation():
    x = np.random.default_rng(0).exponential(size=(400, 1)).astype(np.float32)
    layer = nn.PiecewiseLinear.of(x, bins=4)
    edges = np.quantile(x, np.linspace(0, 1, 5))
    asked = np.array([[-1.0], [0.1], [0.7], [2.0], [50.0]], np.float32)
    expected = [[np.interp(v, edges[b : b + 2], [0, 1]) for b in range(4)] for v in asked[:, 0]]
    np.testing.assert_allclose(layer(wl.tensor(asked)), expected, atol=1e-5)


def test_few_values_make_few_bins_and_the_rest_is_zero():
    layer = nn.PiecewiseLinear.of(np.repeat([[0.0, 7.0], [1.0, 7.0]], 50, axis=0), bins=5)
    found = layer(wl.tensor([[0.25, 7.0], [9.0, 9.0]])).numpy().reshape(2, 2, 5)
    assert np.count_nonzero(layer.rates.numpy()[0]) == 1
    np.testing.assert_allclose(found[:, 0, 0], [0.25, 1.0])
    assert not found[:, 1].any()  # a constant has no bins
    assert np.count_nonzero(nn.PiecewiseLinear.of(rows(50, 1), bins=16).rates.numpy()) == 2  # 20 examples in each


@pytest.mark.parametrize("x", [np.ones(3), np.ones((0, 2)), np.array([[np.nan, 1.0]])])
def test_bins_need_numbers(x):
    with pytest.raises(InputError, match="PiecewiseLinear"):
        nn.PiecewiseLinear(2).look_at(x)


# --- members


def by_hand(model, x):
    """The answers of all members (members, n, outputs), one after another, in NumPy."""
    e = np.concatenate([x, model.bins(wl.tensor(x[:, list(model.numeric)])).numpy()], axis=1)
    found = []
    for k in range(model.members):
        h = e * model.scales.numpy()[k]
        for layer in model.layers:
            h = np.maximum(h @ layer.weight.numpy() + layer.bias.numpy(), 0)
        straight = e @ model.linear.weight.numpy() + model.linear.bias.numpy()
        found.append(straight + h @ model.heads.numpy()[k] + model.bias.numpy()[k])
    return np.stack(found)


def test_numbers_are_the_mean_of_the_members():
    x, model = rows(), made(members=3, classes=False, outputs=1).eval()
    np.testing.assert_allclose(model(wl.tensor(x)), by_hand(model, x).mean(0), rtol=1e-4, atol=1e-5)


def test_probabilities_are_the_mean_of_the_members():
    x, model = rows(), made(members=4, outputs=3).eval()
    each = np.exp(by_hand(model, x))
    expected = (each / each.sum(-1, keepdims=True)).mean(0)
    np.testing.assert_allclose(wl.softmax(model(wl.tensor(x))), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n", [12, 7, 1])
def test_in_training_each_row_goes_to_one_member(n):
    x, model = rows(n), made(members=4, dropout=0.0)
    expected = by_hand(model, x)[np.arange(n) % 4, np.arange(n)]
    np.testing.assert_allclose(model(wl.tensor(x)), expected, rtol=1e-4, atol=1e-5)


def test_only_numeric_features_have_bins():
    x = rows(50, 4)
    some, none = made(x=x, numeric=(1, 3), bins=6), made(x=x, numeric=())
    assert some.bins.lows.shape == (2, 6)
    assert (some.linear.weight.shape[0], none.linear.weight.shape[0]) == (4 + 12, 4)
    np.testing.assert_allclose(some.eval()(wl.tensor(x)).shape, (50, 2))
    edges = np.quantile(x[:, 3], [0, 0.5, 1])
    np.testing.assert_allclose(some.bins.lows.numpy()[1, :2], edges[:2], rtol=1e-5)


def test_gradients_agree_with_differences():
    x, y = rows(6).astype(np.float64), wl.tensor([0, 1, 1, 0, 1, 0])
    model = made(members=2, dropout=0.0).astype(wl.float64)
    grads = wl.grad(lambda m: F.cross_entropy(m(wl.tensor(x)), y))(model)
    for path, g in grads.items():
        cell, step = dict(model.named_parameters())[path], 1e-6
        value, direction = cell.numpy().copy(), np.sign(g.numpy())
        both = []
        for sign in (1, -1):
            cell.value = wl.tensor(value + sign * step * direction)
            both.append(F.cross_entropy(model(wl.tensor(x)), y).item())
        cell.value = wl.tensor(value)
        np.testing.assert_allclose((both[0] - both[1]) / (2 * step), np.abs(g.numpy()).sum(), rtol=1e-5, atol=1e-8)


def test_what_every_model_promises(tmp_path):
    x = wl.tensor(rows(20))
    same_when_compiled(made(), x)
    survives_saving(lambda key: made(key, rows(seed=key)), tmp_path, x)


# --- what it learns


def test_it_learns_what_linear_models_cannot():
    x = rows(256, 2)
    y = wl.tensor((x[:, 0] * x[:, 1] > 0).astype(np.int64))
    model = made(x=x, dropout=0.0)
    learns(model, lambda m, a, b: F.cross_entropy(m(a), b), wl.tensor(x), y, steps=300, lr=1e-2)
    assert np.mean(model.eval()(wl.tensor(x)).numpy().argmax(1) == y.numpy()) > 0.95


def test_it_learns_a_linear_law_beyond_its_data():
    x = rows(200, 3)
    law = np.array([[2.0], [-1.0], [0.5]], np.float32)
    model = Tabular(3, 1, hidden=8, members=2, dropout=0.0, classes=False)
    model.look_at(x)
    learns(model, lambda m, a, b: F.mse_loss(m(a), b), wl.tensor(x), wl.tensor(x @ law), steps=500, lr=1e-2)
    new = rows(100, 3, seed=1)
    found = model.eval()(wl.tensor(new)).numpy()
    assert 1 - np.mean((found - new @ law) ** 2) / np.var(new @ law) > 0.98


@pytest.mark.parametrize(
    "wrong", [{"hidden": ()}, {"numeric": (5,)}, {"numeric": (0, 0)}, {"members": 0}, {"in_features": 0}]
)
def test_bad_settings_are_refused(wrong):
    settings = {"in_features": 3, "out_features": 2, **wrong}
    with pytest.raises(InputError, match="Tabular"):
        Tabular(**settings)


def test_rows_of_another_width_are_refused():
    with pytest.raises(ShapeError, match="Tabular"):
        made()(wl.ones((2, 9)))


# --- the catalogue


def test_small_tables_are_passed_through_often_and_large_ones_seldom():
    passes = [by_size(n)["steps"] * min(by_size(n)["batch_size"], n) / n for n in (100, 1_000, 30_000, 10**6)]
    assert passes == sorted(passes, reverse=True)
    assert passes[-1] > 5


def test_a_run_on_a_table_has_bins_of_its_numbers_and_is_rebuilt(tmp_path):
    rng = np.random.default_rng(0)
    x, town = rng.exponential(size=200) * 1000, rng.integers(0, 3, 200)
    price = 5 * x + 2000 * town + rng.normal(size=200)
    path = tmp_path / "houses.csv"
    lines = [f"{a:.2f},{'abc'[b]},{c:.2f}" for a, b, c in zip(x, town, price, strict=True)]
    path.write_text("\n".join(["size,town,price", *lines]) + "\n")
    settings = recipes.Settings.of(data=str(path), changes=["data.target=price", "steps=160", "epochs=4"])
    run = recipes.run(settings, tmp_path / "run", progress=False, png=False)
    assert settings.model["name"] == "tabular"
    (model,) = (part for part in run.model.modules() if isinstance(part, Tabular))
    assert model.numeric == (0,)  # size; the towns are indicators
    assert np.count_nonzero(model.bins.rates.numpy()) > 5
    assert run.results["r2"] > 0.95
    row = {"size": x[0], "town": "abc"[town[0]]}
    again = wl.runs.open(tmp_path / "run").predict(row).predictions
    np.testing.assert_allclose(again, run.predict(row).predictions, rtol=1e-5)
