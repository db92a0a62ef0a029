"""Weights that are made of other parameters: normalized, factored, noisy, masked."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError, ShapeError

WRAPPERS = {
    "WeightNorm": nn.WeightNorm,
    "SpectralNorm": nn.SpectralNorm,
    "SparseReparam": nn.SparseReparam,
    "WeightNoise": lambda layer: nn.WeightNoise(layer, 0.1, key=0),
    "Masked": lambda layer: nn.Masked(layer, np.arange(layer.weight.size).reshape(layer.weight.shape) % 2),
}
LAYERS = {"linear": (lambda: nn.Linear(4, 3), (5, 4)), "conv": (lambda: nn.Conv2d(4, 3, 3), (2, 5, 5, 4))}


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("name", WRAPPERS)
def test_every_wrapper_is_a_layer(name, kind):
    make, shape = LAYERS[kind]
    layer, x = make(), wl.random.normal(shape)
    expected = layer.output_shape(shape)
    wrapped = nn.Sequential(WRAPPERS[name](layer))
    assert wrapped.output_shape(shape) == expected
    twin = wrapped.copy()
    optimizers = [wl.optim.SGD(m, lr=0.1) for m in (wrapped, twin)]

    def step(model, optimizer):
        loss, grads = wl.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
        optimizer.step(grads)
        return loss

    compiled = wl.jit(step)
    losses = [(step(wrapped, optimizers[0]).item(), compiled(twin, optimizers[1]).item()) for _ in range(3)]
    np.testing.assert_allclose(*np.transpose(losses), rtol=1e-4)
    assert losses[-1][0] < losses[0][0] or name == "WeightNoise"
    for path, value in wrapped.state_dict().items():
        np.testing.assert_allclose(value, twin.state_dict()[path], rtol=1e-3, atol=1e-5)
    again = pickle.loads(pickle.dumps(wrapped))
    np.testing.assert_array_equal(again.eval()(x), wrapped.eval()(x))
    other = nn.Sequential(WRAPPERS[name](make()))
    other.load_state_dict(wrapped.state_dict())
    np.testing.assert_allclose(other.eval()(x), wrapped(x), rtol=1e-6)
    before = wrapped(x)
    plain = wrapped[0].remove()
    assert type(plain) is type(layer)
    assert isinstance(plain.weight, nn.Parameter)
    np.testing.assert_allclose(plain(x), before, rtol=1e-5, atol=1e-6)


def test_the_inner_layer_keeps_its_hooks_and_its_place():
    wrapped = nn.Sequential(nn.WeightNorm(nn.Linear(4, 3)))
    seen = []
    wrapped[0].layer.register_forward_hook(lambda module, args, output: seen.append((module, output.shape)))
    wrapped(wl.ones((2, 4)))
    assert seen == [(wrapped[0].layer, (2, 3))]
    with pytest.raises(ShapeError, match=r"in module: 0\.layer \(Linear\)"):
        wrapped(wl.ones((2, 5)))
    table = nn.summary(wrapped, (2, 4))
    assert sum(row.parameters for row in table.rows) == table.parameters == 3 + 3 + 12
    assert table.multiply_adds == 24


@pytest.mark.book("A3-79", name=("wl.nn.weight_norm", "wl.nn.WeightNorm"))
def test_weight_norm():
    layer = nn.Linear(4, 3, dtype=wl.float64)
    w, x = layer.weight.numpy().copy(), wl.random.normal((5, 4), dtype=wl.float64)
    before = layer(x)
    wrapped = nn.weight_norm(layer)
    np.testing.assert_allclose(wrapped.g, np.linalg.norm(w, axis=0), rtol=1e-12)
    np.testing.assert_allclose(wrapped(x), before, rtol=1e-12)
    wrapped.v = 7.0 * wrapped.v
    np.testing.assert_allclose(wrapped(x), before, rtol=1e-12)
    gradient = wl.grad(lambda m: (m(x) ** 2).sum())(wrapped)["v"].numpy()
    np.testing.assert_allclose((gradient * wrapped.v.numpy()).sum(0), 0.0, atol=1e-12)  # at right angles to v
    wrapped.g = wl.tensor([1.0, 2.0, 3.0], wl.float64)
    np.testing.assert_allclose(np.linalg.norm(wrapped.weight.numpy(), axis=0), [1, 2, 3], rtol=1e-12)
    zero = nn.WeightNorm(nn.Linear.from_matrix(wl.zeros((2, 1))))
    assert zero(wl.ones(2)).tolist() == [0.0]
    assert np.isfinite(wl.grad(lambda m: m(wl.ones(2)).sum())(zero)["v"].numpy()).all()
    assert isinstance(nn.remove_weight_norm(wrapped), nn.Linear)


def test_frozen_weights_stay_frozen():
    layer = nn.weight_norm(nn.Linear(4, 3).freeze("weight"))
    assert [path for path, p in layer.named_parameters() if p.trainable] == ["layer.bias"]


def test_spectral_norm():
    wrapped = nn.spectral_norm(nn.Linear(6, 4, dtype=wl.float64), n_power_iterations=3)
    for _ in range(20):
        wrapped(wl.ones((1, 6)).astype(wl.float64))
    largest = np.linalg.svd(wrapped.v.numpy(), compute_uv=False)[0]
    np.testing.assert_allclose(wrapped.weight, wrapped.v.numpy() / largest, rtol=1e-5)
    wrapped.eval()
    before = wrapped.left.numpy().copy()
    wrapped(wl.ones((1, 6)).astype(wl.float64))
    np.testing.assert_array_equal(wrapped.left, before)
    conv = nn.SpectralNorm(nn.Conv2d(3, 5, 3), n_power_iterations=30)
    matrix = conv.weight.numpy().reshape(-1, 5)
    np.testing.assert_allclose(np.linalg.svd(matrix, compute_uv=False)[0], 1.0, rtol=1e-2)
    with pytest.raises(ShapeError, match="no matrix"):
        nn.SpectralNorm(nn.Linear(2, 3), "bias")


@pytest.mark.book("9-14", name="wl.nn.SparseReparam")
def test_products_of_two_weights_are_sparse():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(6, 1))
    layer = nn.SparseReparam(nn.Linear.from_matrix(w))
    np.testing.assert_allclose(layer.weight, w, rtol=1e-12)
    np.testing.assert_allclose(layer.penalty(), 2 * np.abs(w).sum(), rtol=1e-12)  # the factor 2
    for stretch in rng.uniform(0.2, 5.0, size=(20, 6, 1)):
        a, b = layer.a.numpy() * stretch, layer.b.numpy() / stretch  # the same w
        assert (a**2).sum() + (b**2).sum() >= 2 * np.abs(w).sum()

    truth = np.zeros((20, 1))
    truth[:3] = [[2.0], [-3.0], [1.0]]
    x = rng.normal(size=(60, 20))
    data, target = wl.asarray(x), wl.asarray(x @ truth + 0.1 * rng.normal(size=(60, 1)))

    def fitted(model, penalty):
        optimizer = wl.optim.SGD(model, lr=0.05)

        @wl.jit
        def step(model, optimizer):
            optimizer.step(wl.grad(lambda m: ((m(data) - target) ** 2).mean() + 0.1 * penalty(m))(model))

        for _ in range(2000):
            step(model, optimizer)
        return nn.sparsity(model, tol=1e-3).fraction

    start = nn.Linear.from_matrix(rng.normal(size=(20, 1)))
    sparse = fitted(nn.SparseReparam(start.copy()), lambda m: m.penalty())
    assert fitted(start, lambda m: (m.weight**2).sum()) < 0.2
    assert sparse > 0.7
    with pytest.raises(InputError, match="all weights are 0"):
        nn.SparseReparam(nn.Linear.from_matrix(wl.zeros((2, 2))))


def test_bad_input():
    with pytest.raises(ModuleError, match="has no parameter 'weight'"):
        nn.WeightNorm(nn.ReLU())
    with pytest.raises(ModuleError, match="has no parameter 'weight'"):
        nn.WeightNorm(nn.Linear(None, 3))
    with pytest.raises(ModuleError, match="a function has no parameter"):
        nn.WeightNorm(wl.relu)
    with pytest.raises(InputError, match=r"a mask of shape \(2,\)"):
        nn.Masked(nn.Linear(2, 3), [1, 0])
    twice = nn.WeightNorm(nn.Linear(2, 3))
    with pytest.raises(ModuleError, match="has no parameter"):
        nn.WeightNorm(twice.layer)
