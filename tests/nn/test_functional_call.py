"""Modules as pure functions of their parameters."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import ModuleError, ShapeError
from wonderland.nn import functional_call


class Counting(nn.Module):
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(3, 4), wl.tanh, nn.Linear(4, 2))
        self.calls = nn.Buffer(0)

    def forward(self, x, fail=False):
        self.calls = self.calls + 1
        y = self.net(x)
        if fail:
            raise RuntimeError("on purpose")
        return y


@pytest.fixture
def model():
    return Counting()


@pytest.fixture
def x():
    return wl.random.normal((5, 3), key=wl.random.key(1))


def values(model):
    return {path: v.numpy().copy() for path, v in model.state_dict().items()}


def doubled(model):
    return {path: 2 * p.value for path, p in model.named_parameters()}


@pytest.mark.book("6-12", "1.14", name=("wl.nn.functional_call", "wl.grad"))
def test_both_styles_agree_bitwise(model, x):
    parameters = {path: p.value for path, p in model.named_parameters()}

    def by_object(model, x):
        return (model(x) ** 2).sum()

    def by_function(params, x):
        return (functional_call(model, params, x) ** 2).sum()

    def by_hand(p, x):
        h = wl.tanh(x @ p["net.0.weight"] + p["net.0.bias"])
        return ((h @ p["net.2.weight"] + p["net.2.bias"]) ** 2).sum()

    y, gradients = wl.value_and_grad(by_object)(model, x)
    for f in (by_function, by_hand):
        y2, gradients2 = wl.value_and_grad(f)(parameters, x)
        assert y.numpy().tobytes() == y2.numpy().tobytes()
        assert sorted(gradients) == sorted(gradients2)
        for path in gradients:
            assert gradients[path].numpy().tobytes() == gradients2[path].numpy().tobytes()
    by_object(model, x).backward()
    for path, p in model.named_parameters():
        np.testing.assert_allclose(p.grad, gradients[path], rtol=1e-6)


@pytest.mark.book("6-60", name="wl.nn.functional_call")
def test_the_module_stays_as_it_was(model, x):
    before = values(model)
    own = functional_call(model, dict(model.named_parameters()), x)
    np.testing.assert_array_equal(own, model.net(x))
    other = functional_call(model, doubled(model), x)
    assert not np.array_equal(own, other)
    with pytest.raises(RuntimeError, match="on purpose"):
        functional_call(model, doubled(model), x, fail=True)
    after = values(model)
    for path in before:
        np.testing.assert_array_equal(before[path], after[path])
    assert all(p.trainable and p._leaf is not None for p in model.parameters())


@pytest.mark.book("6-60", name="wl.nn.functional_call")
def test_gradients_with_respect_to_the_dict(model, x):
    params = doubled(model)
    loss = lambda p: (functional_call(model, p, x) ** 2).sum()
    gradients = wl.grad(loss)(params)
    step = 1e-2
    for path, value in params.items():
        index = (0,) * value.ndim
        up = loss({**params, path: value.at[index].add(step)})
        down = loss({**params, path: value.at[index].add(-step)})
        np.testing.assert_allclose(gradients[path][index], (up - down) / (2 * step), rtol=2e-2, atol=1e-2)
    partial = wl.grad(lambda b: loss({"net.2.bias": b}))(model.net[2].bias.value)
    np.testing.assert_allclose(partial, wl.grad(lambda m: (m(x) ** 2).sum())(model)["net.2.bias"], rtol=1e-6)


def test_gradients_in_the_imperative_style_go_to_the_given_tensors(model, x):
    params = {path: wl.tensor(v).requires_grad_() for path, v in doubled(model).items()}
    (functional_call(model, params, x) ** 2).sum().backward()
    expected = wl.grad(lambda p: (functional_call(model, p, x) ** 2).sum())(doubled(model))
    for path, value in params.items():
        np.testing.assert_allclose(value.grad, expected[path], rtol=1e-5)
    assert all(p.grad is None for p in model.parameters())
    own = dict(model.named_parameters())
    functional_call(model, own, x).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_ensembles_under_vmap(model, x):
    models = [Counting() for _ in range(3)]
    stacked = {
        path: wl.stack([dict(m.named_parameters())[path].value for m in models]) for path, _ in model.named_parameters()
    }
    call = lambda p, x: functional_call(model, p, x)
    together = wl.vmap(call, in_axes=(0, None))(stacked, x)
    assert together.shape == (3, 5, 2)
    for y, m in zip(together, models, strict=True):
        np.testing.assert_allclose(y, m(x), rtol=1e-5, atol=1e-6)
    gradients = wl.vmap(wl.grad(lambda p, x: call(p, x).sum()), in_axes=(0, None))(stacked, x)
    for i, m in enumerate(models):
        expected = wl.grad(lambda m: m(x).sum())(m)
        for path in expected:
            np.testing.assert_allclose(gradients[path][i], expected[path], rtol=1e-4, atol=1e-5)
    with pytest.raises(ShapeError, match=r"'net.0.weight' has shape \(3, 3, 4\), expected \(3, 4\)"):
        call(stacked, x)


def test_under_jit(model, x):
    """Given values may be traced or constant; later changes of the model must reach what was not given."""
    before = values(model)
    fixed = {"net.0.weight": wl.ones((3, 4))}
    traced = wl.jit(lambda p, x: functional_call(model, p, x))
    constant = wl.jit(lambda x: functional_call(model, fixed, x))
    mixed = wl.jit(lambda m, p, x: functional_call(m, p, x) + m(x))
    for _ in range(2):
        np.testing.assert_allclose(traced(fixed, x), functional_call(model, fixed, x), rtol=1e-5)
        np.testing.assert_allclose(constant(x), functional_call(model, fixed, x), rtol=1e-5)
        calls = model.calls.item()
        np.testing.assert_allclose(mixed(model, fixed, x), functional_call(model, fixed, x) + model.net(x), rtol=1e-5)
        assert model.calls.item() == calls + 1
    assert all(type(c.value) is wl.Tensor for c in (*model.parameters(), *model.buffers()))
    for path, value in values(model).items():
        if path != "calls":
            np.testing.assert_array_equal(value, before[path])
    model.net[2].bias = wl.tensor([7.0, -7.0])
    np.testing.assert_allclose(traced(fixed, x), functional_call(model, fixed, x), rtol=1e-5)
    np.testing.assert_allclose(constant(x), functional_call(model, fixed, x), rtol=1e-5)
    np.testing.assert_allclose(mixed(model, fixed, x), functional_call(model, fixed, x) + model.net(x), rtol=1e-5)
    gradients = wl.jit(wl.grad(lambda p, x: functional_call(model, p, x).sum()))(fixed, x)
    expected = wl.grad(lambda p, x: functional_call(model, p, x).sum())(fixed, x)
    np.testing.assert_allclose(gradients["net.0.weight"], expected["net.0.weight"], rtol=1e-5)


def test_inside_grad_of_the_same_module(model, x):
    """The module's own parameters do not enter; the given ones do."""
    given = {path: v for path, v in doubled(model).items() if path != "net.2.bias"}
    gradients = wl.grad(lambda m: functional_call(m, given, x).sum())(model)
    assert float(abs(gradients["net.0.weight"]).max()) == 0
    np.testing.assert_array_equal(gradients["net.2.bias"], [5, 5])
    from_own = wl.grad(lambda m: functional_call(m, {"net.2.bias": 3 * m.net[2].bias}, x).sum())(model)
    np.testing.assert_array_equal(from_own["net.2.bias"], [15, 15])


def test_bad_names_and_values(model, x):
    with pytest.raises(ModuleError, match=r"has no parameter or buffer 'net.1.weight'"):
        functional_call(model, {"net.1.weight": x}, x)
    with pytest.raises(ModuleError, match="is a str, not a tensor"):
        functional_call(model, {"net.0.bias": "text"}, x)
    model.tied = model.net[0]
    zero = wl.zeros(4)
    functional_call(model, {"net.0.bias": zero, "tied.bias": zero}, x)
    with pytest.raises(ModuleError, match=r"'net.0.bias' and 'tied.bias' are one parameter"):
        functional_call(model, {"net.0.bias": zero, "tied.bias": zero + 1}, x)
    with pytest.raises(ModuleError, match="has no weight"):
        functional_call(nn.LazyLinear(3), {}, x)
    assert functional_call(model, {"calls": 5}, x).shape == (5, 2)
