"""Normalization: formulas, invariances, running statistics eagerly and under jit."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional
rng = np.random.default_rng(0)
X = rng.normal(2.0, 3.0, size=(4, 6, 5, 8))
A, B = rng.normal(size=8), rng.normal(size=8)


def standard(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def grouped(x, groups):
    parts = np.split(x, groups, axis=-1)
    return np.concatenate([standard(part, tuple(range(1, x.ndim))) for part in parts], axis=-1)


FUNCTIONS = [
    (lambda x: F.layer_norm(x, 8, A, B), standard(X, -1) * A + B),
    (lambda x: F.layer_norm(x, (5, 8)), standard(X, (-2, -1))),
    (lambda x: F.layer_norm(x, (8,), eps=0.5), standard(X, -1, 0.5)),
    (lambda x: F.rms_norm(x, 8, A), X / np.sqrt((X**2).mean(-1, keepdims=True) + 2.2e-16) * A),
    (lambda x: F.rms_norm(x, (5, 8), eps=0.1), X / np.sqrt((X**2).mean((-2, -1), keepdims=True) + 0.1)),
    (lambda x: F.batch_norm(x, weight=A, bias=B, training=True), standard(X, (0, 1, 2)) * A + B),
    (lambda x: F.batch_norm(x, A, B**2, training=False), (X - A) / np.sqrt(B**2 + 1e-5)),
    (lambda x: F.group_norm(x, 4, A, B), grouped(X, 4) * A + B),
    (lambda x: F.group_norm(x, 1), standard(X, (1, 2, 3))),
    (lambda x: F.group_norm(x, 8), standard(X, (1, 2))),
]


@pytest.mark.book("9-57", "9-73", "9-77", "9-79", name=("wl.nn.functional.batch_norm", "wl.nn.functional.layer_norm"))
@pytest.mark.parametrize("f, expected", FUNCTIONS)
def test_formulas(f, expected):
    np.testing.assert_allclose(f(wl.asarray(X)), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(wl.jit(f)(wl.asarray(X)), expected, rtol=1e-9, atol=1e-12)
    small = wl.asarray(X[:2, :2, :])
    wl.check_grads(lambda x: (f(x) ** 3).sum(), (small,))


@pytest.mark.book("A3-72", "A3-76", "9-79", name=("wl.nn.BatchNorm1d", "wl.nn.LayerNorm", "wl.nn.RMSNorm"))
def test_numbers_of_the_notes():
    column = wl.tensor([[1.0], [2.0], [3.0]])
    np.testing.assert_allclose(nn.BatchNorm1d(1)(column).ravel(), [-1.2247, 0, 1.2247], atol=1e-4)
    np.testing.assert_allclose(nn.LayerNorm(3)(column.ravel()), [-1.2247, 0, 1.2247], atol=1e-4)
    np.testing.assert_allclose(nn.RMSNorm(2)(wl.tensor([3.0, 4.0])), [0.84852814, 1.13137085], rtol=1e-6)
    assert nn.RMSNorm(2)(wl.zeros(2)).tolist() == [0.0, 0.0]


@pytest.mark.book("9-76", name="wl.nn.LayerNorm")
def test_parameter_counts():
    assert nn.LayerNorm([3, 32, 32]).num_parameters() == 6144
    assert nn.LayerNorm(7, bias=False).num_parameters() == 7
    assert nn.LayerNorm(7, elementwise_affine=False).num_parameters() == 0
    assert nn.RMSNorm(7).num_parameters() == 7
    assert nn.BatchNorm2d(7).num_parameters() == 14
    assert nn.BatchNorm2d(7, affine=False).num_parameters() == 0
    assert nn.GroupNorm(2, 8).num_parameters() == 16


def test_layer_norm_sees_one_example_at_a_time():
    layer = nn.LayerNorm(8, dtype=wl.float64)
    x = wl.asarray(X)
    np.testing.assert_allclose(layer(x)[1, 2, 3], layer(x[1, 2, 3]), rtol=1e-12)
    np.testing.assert_allclose(layer(3 * x + 5), layer(x), atol=1e-5)
    np.testing.assert_array_equal(layer.eval()(x), layer.train()(x))


@pytest.mark.book("9-58", name="wl.nn.functional.batch_norm")
def test_gradients_of_batch_norm_flow_through_the_statistics():
    x, c = wl.asarray(X[:, 0, 0]), wl.asarray(rng.normal(size=(4, 8)))
    gradient = wl.grad(lambda x: (F.batch_norm(x, training=True, eps=0.0) * c).sum())(x).numpy()
    np.testing.assert_allclose(gradient.sum(0), 0, atol=1e-13)
    np.testing.assert_allclose((gradient * standard(X[:, 0, 0], 0, 0.0)).sum(0), 0, atol=1e-13)


@pytest.mark.book("9-59", name="wl.nn.BatchNorm1d")
def test_the_scale_is_a_standard_deviation():
    layer = nn.BatchNorm1d(2, dtype=wl.float64, eps=0.0)
    layer.weight = wl.tensor([3.0, 3.0], wl.float64)
    y = layer(wl.random.normal((50, 2), dtype=wl.float64)).numpy()
    np.testing.assert_allclose(y.std(0), 3.0)
    np.testing.assert_allclose(y.var(0), 9.0)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("momentum", [0.1, 0.7, None])
def test_running_statistics(compiled, momentum):
    layer = nn.BatchNorm2d(8, momentum=momentum, dtype=wl.float64)
    call = wl.jit(lambda layer, x: layer(x)) if compiled else (lambda layer, x: layer(x))
    mean, variance = np.zeros(8), np.ones(8)
    for i in range(3):
        batch = X * (i + 1) + i
        call(layer, wl.asarray(batch))
        m = 1 / (i + 1) if momentum is None else momentum
        mean = (1 - m) * mean + m * batch.mean((0, 1, 2))
        variance = (1 - m) * variance + m * batch.var((0, 1, 2), ddof=1)
    np.testing.assert_allclose(layer.running_mean, mean, rtol=1e-12)
    np.testing.assert_allclose(layer.running_var, variance, rtol=1e-12)
    assert layer.num_batches_tracked.item() == 3
    layer.eval()
    expected = (X - mean) / np.sqrt(variance + 1e-5)
    np.testing.assert_allclose(call(layer, wl.asarray(X)), expected, rtol=1e-10)
    np.testing.assert_allclose(layer(wl.asarray(X[:1, :1, :1])), expected[:1, :1, :1], rtol=1e-10)
    assert layer.num_batches_tracked.item() == 3
    other = nn.BatchNorm2d(8, momentum=momentum, dtype=wl.float64)
    other.load_state_dict(layer.state_dict())
    np.testing.assert_array_equal(other.eval()(wl.asarray(X)), layer(wl.asarray(X)))


def test_running_statistics_inside_a_training_step():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    twin = model.copy()
    x, y = wl.random.normal((16, 3)), wl.random.randint((16,), 0, 2)

    def step(model, optimizer):
        loss, grads = wl.value_and_grad(lambda m: F.cross_entropy(m(x), y))(model)
        optimizer.step(grads)
        return loss

    fast, (a, b) = wl.jit(step), (wl.optim.SGD(m, lr=0.1) for m in (model, twin))
    for _ in range(3):
        np.testing.assert_allclose(fast(model, a), step(twin, b), rtol=1e-5)
    for path, value in model.state_dict().items():
        np.testing.assert_allclose(value, twin.state_dict()[path], rtol=1e-4, atol=1e-6)
    assert model[1].running_mean.numpy().any()


def test_without_running_statistics_the_batch_always_counts():
    layer = nn.BatchNorm1d(8, track_running_stats=False, dtype=wl.float64).eval()
    x = X[:, 0]
    np.testing.assert_allclose(layer(wl.asarray(x)), standard(x, (0, 1)), rtol=1e-10)
    assert layer.running_mean is None
    assert not layer.buffers()


@pytest.mark.parametrize(
    "layer",
    [nn.LayerNorm(8), nn.RMSNorm(8), nn.BatchNorm2d(8), nn.GroupNorm(4, 8), nn.BatchNorm(8)],
    ids=lambda m: type(m).__name__,
)
def test_in_float32(layer):
    x = wl.asarray(X, dtype=wl.float32)
    y = layer(x)
    assert y.dtype == wl.float32
    assert y.shape == x.shape == layer.output_shape(x.shape)
    double = layer.copy().astype(wl.float64)
    np.testing.assert_allclose(y, double(wl.asarray(X)), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "make", [nn.LayerNorm, nn.RMSNorm, nn.BatchNorm2d, lambda n, dtype: nn.GroupNorm(4, n, dtype=dtype)]
)
def test_short_types_lose_digits_only_at_the_end(make):
    x = wl.asarray(X + 100.0).astype(wl.bfloat16)  # a large mean: differences would drown in rounding
    short, double = make(8, dtype=wl.bfloat16), make(8, dtype=wl.float64)
    expected = double(x.astype(wl.float64))
    y = short(x)
    assert y.dtype == wl.bfloat16
    np.testing.assert_allclose(y.astype(wl.float64), expected, rtol=2**-7, atol=2**-7)
    np.testing.assert_allclose(wl.jit(short)(x).astype(wl.float64), y.astype(wl.float64), rtol=2**-7, atol=2**-7)


def test_bad_input():
    with pytest.raises(ShapeError, match=r"shape \(2, 3\) does not end in the normalized shape \(4,\)"):
        nn.LayerNorm(4)(wl.ones((2, 3)))
    with pytest.raises(ShapeError, match="a weight of shape"):
        F.layer_norm(wl.ones((2, 3)), 3, wl.ones(2))
    with pytest.raises(ShapeError, match=r"BatchNorm2d.*an input of shape \(2, 3, 8\)"):
        nn.BatchNorm2d(8)(wl.ones((2, 3, 8)))
    with pytest.raises(ShapeError, match=r"BatchNorm2d.*shape \(2, 8, 4, 4\)"):
        nn.BatchNorm2d(8)(wl.ones((2, 8, 4, 4)))
    with pytest.raises(InputError, match="1 values per channel"):
        nn.BatchNorm1d(3)(wl.ones((1, 3)))
    with pytest.raises(InputError, match="no running statistics"):
        F.batch_norm(wl.ones((2, 3)))
    with pytest.raises(InputError, match="one of the running statistics is missing"):
        F.batch_norm(wl.ones((2, 3)), wl.ones(3))
    with pytest.raises(InputError, match="cannot be changed"):
        F.batch_norm(wl.ones((2, 3)), wl.ones(3), wl.ones(3), training=True)
    with pytest.raises(ShapeError, match="in 3 groups"):
        F.group_norm(wl.ones((2, 8)), 3)
    with pytest.raises(InputError, match="8 channels in 3 groups"):
        nn.GroupNorm(3, 8)
    with pytest.raises(ShapeError, match=r"GroupNorm\(2, 8"):
        nn.GroupNorm(2, 8)(wl.ones((2, 6)))
