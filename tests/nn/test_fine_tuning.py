"""Heads, partial states, frozen layers, rates by layer, and parameters that are one."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError, ShapeError


def model(outputs=5):
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, outputs))


def train(model, optimizer, outputs, steps=4):
    x, y = wl.random.normal((8, 3)), wl.random.normal((8, outputs))

    @wl.jit
    def step(model, optimizer):
        optimizer.step(wl.grad(lambda m: ((m(x) - y) ** 2).mean())(model))

    for _ in range(steps):
        step(model, optimizer)


@pytest.mark.book("3.09", "A8-13", name=("wl.nn.replace_head", "wl.nn.Module.freeze", "wl.nn.Module.requires_grad_"))
def test_a_frozen_backbone_stays_to_the_last_bit():
    net = model()
    net.requires_grad_(False)
    nn.replace_head(net, 2)
    before = {path: value.numpy().tobytes() for path, value in net.state_dict().items()}
    groups = [{"params": net[:4].named_parameters()}, {"params": [("4." + n, p) for n, p in net[4].named_parameters()]}]
    groups[1]["lr"] = 0.5
    assert [path for path, p in net.named_parameters() if p.trainable] == ["4.weight", "4.bias"]
    train(net, wl.optim.SGD(groups, lr=0.01), 2)
    after = {path: value.numpy().tobytes() for path, value in net.state_dict().items()}
    assert {path for path in before if before[path] != after[path]} == {"4.weight", "4.bias"}


@pytest.mark.book("A8-15", name=("wl.nn.load_partial", "wl.nn.replace_head"))
def test_a_new_head_on_what_was_learned():
    old = model(5)
    new = nn.replace_head(old.copy(), 2)
    assert [type(m).__name__ for m in new] == [type(m).__name__ for m in old]
    assert new[4].out_features == 2
    np.testing.assert_array_equal(new[2].weight, old[2].weight)
    fresh = model(2)
    report = nn.load_partial(fresh, {**old.state_dict(), "extra": wl.ones(2)})
    assert report.mismatched == ["4.weight", "4.bias"]
    assert report.unexpected == ["extra"]
    assert report.missing == []
    assert len(report.loaded) == 4
    x = wl.random.normal((2, 3))
    np.testing.assert_array_equal(fresh[:4](x), old[:4](x))
    same = nn.load_partial(model(5).astype(wl.float64), old.state_dict())  # the head fits, and so do the types
    assert len(same.loaded) == 6
    assert nn.load_partial(model(2), {"0.weight": old[0].weight}).missing[:2] == ["0.bias", "2.weight"]
    replaced = nn.replace_head(model(), nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1)), path="4")
    assert replaced(x).shape == (2, 1)
    with pytest.raises(ModuleError, match="none of the 1 values fits"):
        nn.load_partial(model(), {"w": wl.ones(2)})
    with pytest.raises(ModuleError, match="contains no linear layer"):
        nn.replace_head(nn.Sequential(nn.Tanh()), 2)
    with pytest.raises(ModuleError, match="is not linear"):
        nn.replace_head(model(), 2, path="1")


@pytest.mark.book("A8-19", name=("wl.nn.layerwise_groups", "wl.nn.unfreeze_last"))
def test_rates_by_layer_and_gradual_unfreezing():
    net = model()
    groups = nn.layerwise_groups(net, lr=0.1, decay=0.5)
    assert [group["lr"] for group in groups] == [0.025, 0.05, 0.1]
    assert [name for group in groups for name, _ in group["params"]] == [path for path, _ in net.named_parameters()]
    before = [p.numpy().copy() for p in net.parameters()]
    x = wl.random.normal((8, 3))
    grads = wl.grad(lambda m: (m(x) ** 2).mean())(net)
    wl.optim.SGD(groups, lr=0.1).step(grads)
    for (path, p), old, rate in zip(net.named_parameters(), before, [0.025] * 2 + [0.05] * 2 + [0.1] * 2, strict=True):
        np.testing.assert_allclose(p, old - rate * grads[path].numpy(), rtol=1e-5, atol=1e-7)
    counts = [nn.unfreeze_last(net, n).num_parameters(trainable_only=True) for n in range(5)]
    assert counts == [0, 25, 45, 61, 61]
    with pytest.raises(InputError, match="n=-1 is too small"):
        nn.unfreeze_last(net, -1)
    with pytest.raises(InputError, match="decay"):
        nn.layerwise_groups(net, 0.1, -0.5)


def test_the_layers_of_a_model_of_ones_own():
    class Net(nn.Module):
        def __init__(self):
            self.embed = nn.Linear(3, 4)
            self.scale = nn.Parameter(wl.ones(4))
            self.blocks = nn.ModuleList([nn.Residual(nn.Linear(4, 4)) for _ in range(2)])
            self.head = nn.Linear(4, 1)

        def forward(self, x):
            x = self.scale * self.embed(x)
            for block in self.blocks:
                x = block(x)
            return self.head(x)

    layers = nn.layers_of(Net())
    assert [path for path, _ in layers] == ["", "embed", "blocks.0", "blocks.1", "head"]
    assert [name for _, pairs in layers for name, _ in pairs][:3] == ["scale", "embed.weight", "embed.bias"]


@pytest.mark.book("A8-02", name="wl.nn.tie")
def test_tied_parameters_are_one():
    net = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Tanh(), nn.Linear(3, 3, bias=False))
    apart = net.copy()
    apart[2].weight = apart[0].weight.value
    x = wl.random.normal((5, 3))
    separate = wl.grad(lambda m: (m(x) ** 2).sum())(apart)
    nn.tie(net, "0.weight", "2.weight")
    assert net[0].weight is net[2].weight
    assert net.num_parameters() == 9
    assert list(net.state_dict()) == ["0.weight"]
    shared = wl.grad(lambda m: (m(x) ** 2).sum())(net)
    assert list(shared) == ["0.weight"]
    np.testing.assert_allclose(shared["0.weight"], separate["0.weight"] + separate["2.weight"], rtol=1e-5, atol=1e-6)
    with pytest.raises(ShapeError, match=r"tie: '2\.weight' is"):
        nn.tie(model(), "0.weight", "2.weight")
    with pytest.raises(ModuleError, match="no parameter 'w'"):
        nn.tie(model(), "0.weight", "w")


def test_replacing_what_is_not_there():
    with pytest.raises(ModuleError, match="has nothing at"):
        nn.replace_submodule(model(), "7", nn.Tanh())
    with pytest.raises(ModuleError, match="has nothing at"):
        nn.replace_submodule(model(), "0.inner.x", nn.Tanh())
