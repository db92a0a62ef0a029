"""Gradients of shards: their weighted sum is the gradient of the batch. Layers cut in two give the same outputs."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import data, nn
from wonderland.errors import InputError, ShapeError


def loss(model, x, y):
    return ((model(x) - y) ** 2).mean()


def problem(n=12):
    rng = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(3, 4, dtype=wl.float64), nn.Tanh(), nn.Linear(4, 2, dtype=wl.float64))
    return model, wl.tensor(rng.normal(size=(n, 3))), wl.tensor(rng.normal(size=(n, 2)))


@pytest.mark.book("5.39", "5.38", name="wl.data.sharded_value_and_grad")
@pytest.mark.parametrize("count", [1, 3, 4, 5, 12])
def test_shards_give_the_gradient_of_the_whole_batch(count):
    model, x, y = problem()
    value, grads = wl.value_and_grad(loss)(model, x, y)
    sharded, parts = data.sharded_value_and_grad(loss, count)(model, x, y)
    np.testing.assert_allclose(sharded, value, rtol=1e-12)
    for key, expected in grads.items():
        np.testing.assert_allclose(parts[key], expected, rtol=1e-12, atol=1e-14)
    compiled = wl.jit(data.sharded_value_and_grad(loss, count))(model, x, y)[1]
    np.testing.assert_allclose(compiled["0.weight"], grads["0.weight"], rtol=1e-10)


@pytest.mark.book("5.39", name="wl.data.shards")
def test_the_plain_mean_of_unequal_shards_is_wrong():
    model, x, y = problem(9)
    expected = wl.grad(loss)(model, x, y)["0.weight"].numpy()
    pieces = [(x[:1], y[:1]), (x[1:], y[1:])]
    grads = [wl.grad(loss)(model, a, b)["0.weight"].numpy() for a, b in pieces]
    np.testing.assert_allclose((1 * grads[0] + 8 * grads[1]) / 9, expected, rtol=1e-12)
    assert np.abs(np.mean(grads, axis=0) - expected).max() > 1e-3


@pytest.mark.book("5.39", name="wl.data.sharded_value_and_grad")
def test_replicas_stay_identical():
    model, x, y = problem()
    replicas = [problem()[0] for _ in range(3)]
    for replica in replicas:
        replica.load_state_dict(model.state_dict())
    optimizers = [wl.optim.SGD(replica, lr=0.1) for replica in replicas]
    for _ in range(3):
        parts = [
            wl.grad(loss)(replica, *shard) for replica, shard in zip(replicas, data.shards((x, y), 3), strict=True)
        ]
        mean = wl.tree.map(lambda *g: sum(g) / 3, *parts)
        for optimizer in optimizers:
            optimizer.step(mean)
    single = wl.optim.SGD(model, lr=0.1)
    for _ in range(3):
        single.step(wl.grad(loss)(model, x, y))
    for replica in replicas:
        for key, value in model.state_dict().items():
            np.testing.assert_array_equal(replica.state_dict()[key], replicas[0].state_dict()[key])
            np.testing.assert_allclose(replica.state_dict()[key], value, rtol=1e-12)


@pytest.mark.book("5.40", name="wl.nn.Linear")
def test_a_layer_cut_by_columns_or_rows():
    layer = nn.Linear(6, 4, dtype=wl.float64)
    x = wl.random.normal((5, 6), dtype=wl.float64)
    W, b = layer.weight, layer.bias
    whole = layer(x).numpy()
    by_columns = wl.concat([x @ W[:, :2] + b[:2], x @ W[:, 2:] + b[2:]], axis=-1)  # each part has some outputs
    by_rows = x[:, :3] @ W[:3] + x[:, 3:] @ W[3:] + b  # each part has some inputs; outputs are summed
    np.testing.assert_allclose(by_columns, whole, rtol=1e-12)
    np.testing.assert_allclose(by_rows, whole, rtol=1e-12)


def test_shards_and_refusals():
    parts = data.shards({"x": wl.arange(7), "y": wl.ones((7, 2))}, 3)
    assert [part["x"].tolist() for part in parts] == [[0, 1, 2], [3, 4], [5, 6]]
    assert [part["y"].shape for part in parts] == [(3, 2), (2, 2), (2, 2)]
    with pytest.raises(InputError, match="a batch of 2 has no 3 parts"):
        data.shards(wl.ones(2), 3)
    with pytest.raises(ShapeError, match="first axes"):
        data.shards((wl.ones(2), wl.ones(3)), 2)
