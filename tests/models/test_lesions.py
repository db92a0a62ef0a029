"""Residual networks without a block, and as sums over paths."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError
from wonderland.models import ablate, drop_block, residual_blocks, residual_paths, small_resnet

F = nn.functional


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.book("9-92", name="wl.models.residual_paths")
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_linear_blocks_are_a_sum_over_all_paths(n):
    maps = [np.random.default_rng(i).normal(size=(4, 4)) for i in range(n)]
    x = numbers(4)
    paths = residual_paths([lambda x, A=A: wl.asarray(A) @ x for A in maps], x)
    assert len(paths) == 2**n
    assert set(paths) == {c for k in range(n + 1) for c in itertools.combinations(range(n), k)}
    whole = x.numpy()
    for A in maps:
        whole = whole + A @ whole
    np.testing.assert_allclose(sum(value.numpy() for value in paths.values()), whole, rtol=1e-9, atol=1e-9)
    for chosen, value in paths.items():
        product = x.numpy()
        for i in chosen:
            product = maps[i] @ product
        np.testing.assert_allclose(value, product, rtol=1e-12)


@pytest.mark.book("9-92", name=("wl.models.residual_paths", "wl.nn.Residual"))
def test_other_blocks_do_not_split():
    x = numbers(3, 4)
    blocks = [nn.Residual(nn.Sequential(nn.Linear(4, 4, dtype=wl.float64), nn.Tanh())) for _ in range(2)]
    (f1, f2), x = (block.f for block in blocks), x
    h = f2(f1(x) + x) + f1(x) + x  # E.9.13
    np.testing.assert_allclose(nn.Sequential(*blocks)(x), h, rtol=1e-12)
    total = sum(residual_paths(blocks, x).values())
    assert np.abs(total - h).max() > 1e-3
    with pytest.raises(ModuleError, match="block 0 has more than the identity"):
        residual_paths([nn.BasicBlock(2, 4)], wl.ones((1, 3, 3, 2)))
    with pytest.raises(InputError, match="17 blocks have 131,072 paths"):
        residual_paths([wl.tanh] * 17, x)


def test_a_dropped_block_leaves_its_shortcut():
    model = small_resnet(3, channels=(4, 6), depth=2, zero_init=False).eval()
    x = numbers(2, 8, 8, 1).astype(wl.float32)
    assert residual_blocks(model) == ["backbone.1.0", "backbone.1.1", "backbone.2.0", "backbone.2.1"]
    before, stages = model(x), model.backbone
    with drop_block(model, "backbone.1.1", "backbone.2.0") as damaged:
        assert damaged is model
        h = stages[2][1](wl.relu(model.get_submodule("backbone.2.0.0")(stages[1][0](stages[0](x)))))
        np.testing.assert_allclose(model(x), model.head(h.mean(axis=(1, 2))), rtol=1e-5, atol=1e-6)
        assert np.abs(model(x) - before).max() > 1e-4
    np.testing.assert_array_equal(model(x), before)
    with pytest.raises(ZeroDivisionError), drop_block(model, "backbone.1.0"):
        _ = 1 // 0
    np.testing.assert_array_equal(model(x), before)  # whole again after an error, too
    with pytest.raises(ModuleError, match="backbone"), drop_block(model, "backbone.7"):
        pass
    with pytest.raises(InputError, match="no path"), drop_block(model):
        pass
    compiled = wl.jit(lambda model, x: model(x))
    np.testing.assert_allclose(compiled(model, x), before, rtol=1e-4, atol=1e-5)
    with drop_block(model, "backbone.1.0"):
        np.testing.assert_allclose(compiled(model, x), model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.book("9-93", name=("wl.models.ablate", "wl.models.drop_block"))
def test_residual_networks_survive_lesions_that_plain_ones_do_not():
    digits = wl.data.digits()
    x = wl.asarray((digits.features.reshape(-1, 64)[:900] - 0.3).astype(np.float32))
    y = wl.asarray(digits.targets[:900].astype(np.int64))

    def trained(wrap):
        wl.random.seed(0)
        blocks = [wrap(nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 24))) for _ in range(5)]
        model = nn.Sequential(nn.Linear(64, 24), *blocks, nn.Linear(24, 10))
        optimizer = wl.optim.Adam(model, lr=0.005)

        @wl.jit
        def step(model, optimizer):
            loss, grads = wl.value_and_grad(lambda model: F.cross_entropy(model(x[:600]), y[:600]))(model)
            optimizer.step(grads)
            return loss

        for _ in range(150):
            step(model, optimizer)
        return model

    def accuracy(model):
        return (wl.argmax(model(x[600:]), axis=-1) == y[600:]).numpy().mean()

    blocks = [str(i) for i in range(1, 6)]
    residual, plain = (ablate(trained(wrap), accuracy, blocks) for wrap in (nn.Residual, lambda f: f))
    assert residual.whole > 0.85
    assert plain.whole > 0.6
    assert set(residual.drops) == set(blocks)
    for path, drop in residual.drops.items():
        assert drop == pytest.approx(residual.whole - residual.without[path])
    assert np.mean(list(residual.drops.values())) < 0.3
    assert np.mean(list(plain.drops.values())) > 0.5
    assert max(residual.drops.values()) < min(plain.drops.values())
    with pytest.raises(ModuleError, match="no residual block"):
        ablate(nn.Linear(2, 2), accuracy)
