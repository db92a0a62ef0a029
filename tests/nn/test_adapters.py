"""Adapters and low-rank updates: unchanged at the start, few parameters, mergeable."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError


def pretrained():
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))


def train(model, steps=5):
    x, y = wl.random.normal((8, 16)), wl.random.normal((8, 4))
    optimizer = wl.optim.Adam(model, lr=0.05)

    @wl.jit
    def step(model, optimizer):
        loss, grads = wl.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(model)
        optimizer.step(grads)
        return loss

    return [step(model, optimizer).item() for _ in range(steps)]


@pytest.mark.book("A8-20", "3.10", name=("wl.nn.Adapter", "wl.nn.inject_adapters", "wl.nn.trainable_report"))
def test_adapters():
    model, x = pretrained(), wl.random.normal((8, 16))
    before, weights = model(x), {p: v.numpy().copy() for p, v in model.state_dict().items()}
    assert nn.inject_adapters(model, ["2", "3"], r=2) is model
    np.testing.assert_allclose(model(x), before, atol=2e-3)  # a small up-projection
    trainable = 2 * (2 * 32 * 2 + 2 + 32)
    report = nn.trainable_report(model)
    assert report == (trainable, trainable + sum(w.size for w in weights.values()), trainable / report.total)
    assert all(".adapter." in path for path, p in model.named_parameters() if p.trainable)
    losses = train(model)
    assert losses[-1] < losses[0]
    state = model.state_dict()
    for path, value in weights.items():
        place, name = path.split(".")
        kept = state[f"{place}.base.{name}"] if place in "23" else state[path]
        np.testing.assert_array_equal(kept, value)
    exact = nn.inject_adapters(pretrained(), "3", init_std=0.0)
    base = exact[3].base
    h = wl.random.normal((2, 32))
    np.testing.assert_array_equal(exact[3](h), base(h))
    conv = nn.inject_adapters(nn.Sequential(nn.Conv2d(3, 6, 3)), "0", r=1)
    assert conv(wl.ones((1, 4, 4, 3))).shape == (1, 2, 2, 6)
    with pytest.raises(ModuleError, match="the width of the ReLU"):
        nn.inject_adapters(pretrained(), "1")
    assert nn.inject_adapters(pretrained(), "1", features=32)(x).shape == (8, 4)


@pytest.mark.book("A8-21", "3.10", name=("wl.nn.LoRALinear", "wl.nn.inject_lora", "wl.nn.merge_lora"))
def test_low_rank_updates():
    model, x = pretrained(), wl.random.normal((8, 16))
    before = model(x)
    weights = model[3].weight.numpy().copy()
    nn.inject_lora(model, ["0", "3"], r=2, alpha=4.0, key=0)
    np.testing.assert_array_equal(model(x), before)  # B starts from 0
    assert nn.trainable_report(model).trainable == 2 * (16 + 32) + 2 * (32 + 32)
    losses = train(model)
    assert losses[-1] < losses[0]
    layer = model[3]
    np.testing.assert_array_equal(layer.base.weight, weights)
    delta = layer.delta().numpy()
    np.testing.assert_allclose(delta, layer.A.numpy() @ layer.B.numpy() * 2.0, rtol=1e-5, atol=1e-7)
    assert np.linalg.matrix_rank(delta, tol=1e-6) == 2
    apart = model(x)
    layer.merge()
    np.testing.assert_allclose(model(x), apart, rtol=1e-4, atol=1e-5)
    layer.merge()  # a second time changes nothing
    np.testing.assert_allclose(layer.base.weight, weights + delta, rtol=1e-5, atol=1e-6)
    layer.unmerge()
    np.testing.assert_allclose(layer.base.weight, weights, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model(x), apart, rtol=1e-4, atol=1e-5)
    merged = nn.merge_lora(model)
    assert [type(m).__name__ for m in merged] == [type(m).__name__ for m in pretrained()]
    np.testing.assert_allclose(merged(x), apart, rtol=1e-4, atol=1e-5)


@pytest.mark.book("A8-21", name="wl.nn.inject_lora")
def test_low_rank_updates_with_all_biases():
    model = nn.inject_lora(pretrained(), r=1, train_biases=True)
    trained = [path for path, p in model.named_parameters() if p.trainable]
    assert [path for path in trained if path.endswith("bias")] == [
        "0.base.bias",
        "2.bias",
        "3.base.bias",
        "5.base.bias",
    ]
    assert sum(path.endswith((".A", ".B")) for path in trained) == 6
    assert len(trained) == 10


def test_dropout_acts_on_the_update_alone():
    layer = nn.LoRALinear(nn.Linear(4, 3), r=2, dropout=0.5)
    x = wl.random.normal((5, 4))
    np.testing.assert_array_equal(layer(x), layer.base(x))
    layer.B = wl.ones((2, 3))
    assert not np.array_equal(layer(x), layer(x))
    layer.eval()
    np.testing.assert_allclose(layer(x), layer.base(x) + x @ layer.delta(), rtol=1e-5, atol=1e-5)


def test_places_inside_other_modules():
    class Block(nn.Module):
        def __init__(self):
            self.maps = [nn.Linear(4, 4), nn.Linear(4, 4)]
            self.named = {"out": nn.Linear(4, 4)}

        def forward(self, x):
            return self.named["out"](self.maps[1](self.maps[0](x)))

    model = nn.Sequential(Block(), Block())
    x = wl.ones((2, 4))
    before = model(x)
    nn.inject_lora(model, ["*.maps.1", "1.named.out"])
    assert [path for path, m in model.named_modules() if isinstance(m, nn.LoRALinear)] == [
        "0.maps.1",
        "1.maps.1",
        "1.named.out",
    ]
    np.testing.assert_array_equal(model(x), before)


def test_what_is_wrapped_is_left_alone():
    model = nn.Sequential(nn.Linear(4, 4), nn.weight_norm(nn.Linear(4, 4)))
    nn.inject_lora(model, r=1)
    with pytest.raises(ModuleError, match="no Linear module"):
        nn.inject_lora(model, r=1)
    assert nn.trainable_report(model).trainable == 8


def test_a_refusal_changes_nothing():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    for call in (lambda: nn.inject_lora(model, r=0), lambda: nn.inject_adapters(model, "*")):
        with pytest.raises((InputError, ModuleError)):
            call()
        assert isinstance(model[0], nn.Linear)


def test_a_key_repeats_and_layers_differ():
    first, second = (nn.inject_lora(pretrained(), ["0", "3"], r=2, key=5) for _ in range(2))
    np.testing.assert_array_equal(first[0].A, second[0].A)
    first, second = (nn.inject_adapters(pretrained(), ["3", "2"], r=2, key=5) for _ in range(2))
    down = [m.adapter.residual.f[0].weight.numpy() for m in (first[2], first[3], second[2])]
    np.testing.assert_array_equal(down[0], down[2])
    assert not np.array_equal(down[0], down[1])


def test_bad_input():
    with pytest.raises(ModuleError, match="no Linear module at 'attention'"):
        nn.inject_lora(pretrained(), "attention")
    with pytest.raises(ModuleError, match="no module at '9'"):
        nn.inject_adapters(pretrained(), ["0", "9"])
    with pytest.raises(ModuleError, match="received a ReLU"):
        nn.LoRALinear(nn.ReLU())
    with pytest.raises(InputError, match="r=0 is too small"):
        nn.LoRALinear(nn.Linear(2, 2), r=0)
    with pytest.raises(InputError, match="init_std"):
        nn.Adapter(4, init_std=-1.0)
