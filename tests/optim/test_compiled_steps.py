"""Steps of many parameters outside of `jit` run as compiled programs, with the numbers of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, optim
from wonderland.optim import compiled
from wonderland.optim.by_name import OPTIMIZERS


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Compile steps however small they are."""
    monkeypatch.setattr(compiled, "MANY", 1)
    with wl.using_backend("native"):
        yield


def network(dtype=wl.float32):
    wl.random.seed(3)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).astype(dtype)


def gradients(model, turn):
    draw = np.random.default_rng(turn)
    return {name: wl.asarray(draw.normal(size=p.shape), dtype=p.dtype) for name, p in model.named_parameters()}


def trained(make, backend, dtype=wl.float32, steps=5):
    model = network(dtype)
    optimizer = make(model)
    with wl.using_backend(backend):
        for turn in range(steps):
            optimizer.step(gradients(model, turn))
    return {**model.state_dict(), **optimizer.state_dict()}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_rules_agree_with_the_reference(name):
    before = compiled._program.traces
    found = trained(OPTIMIZERS[name], "native")
    assert compiled._program.traces == before + 1
    expected = trained(OPTIMIZERS[name], "numpy")
    for path, value in expected.items():
        np.testing.assert_allclose(found[path], value, rtol=2e-5, atol=1e-6, err_msg=path)


@pytest.mark.parametrize("dtype", [wl.float16, wl.bfloat16, wl.float64])
def test_other_dtypes(dtype):
    found, expected = (trained(lambda m: optim.AdamW(m, 0.1), b, dtype) for b in ("native", "numpy"))
    for path, value in expected.items():
        tolerance = 1e-12 if dtype is wl.float64 else 1e-2
        np.testing.assert_allclose(found[path].astype(wl.float64), value.astype(wl.float64), rtol=tolerance, atol=1e-6)


def test_state_is_updated_where_it_lies_and_what_others_hold_stays():
    model = network()
    optimizer = optim.Adam(model)
    weight = model[0].weight
    for turn in range(3):
        optimizer.step(gradients(model, turn))
    place = weight.numpy().ctypes.data
    optimizer.step(gradients(model, 3))
    assert weight.numpy().ctypes.data == place
    held = weight.numpy()
    copy = held.copy()
    optimizer.step(gradients(model, 4))
    assert np.array_equal(held, copy)
    assert not np.array_equal(weight.numpy(), copy)


def test_parameters_without_gradients_stay_and_settings_may_change():
    results = []
    for backend in ("native", "numpy"):
        model = network()
        optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        with wl.using_backend(backend):
            for turn in range(9):
                for p in model.parameters()[: 2 + turn % 2]:
                    p.grad = wl.full_like(p, turn + 1.0)
                if turn == 6:
                    optimizer.groups[0]["momentum"] = 0.5
                optimizer.lr = 0.1 / (turn + 1)
                optimizer.step()
                optimizer.zero_grad()
        results.append([p.numpy() for p in model.parameters()])
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_rule_of_the_users_own_runs_as_it_is_written():
    seen = []

    class Mine(optim.SGD):
        def update(self, group, w, g, state, *scalars):
            seen.append(g.item())
            return super().update(group, w, g, state, *scalars)

    w = nn.Parameter([1.0])
    optimizer = Mine([w], lr=0.5)
    for i in range(5):
        optimizer.step([wl.tensor([float(i)])])
    assert seen == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_inside_transformations_the_step_is_theirs():
    model = network()
    optimizer = optim.SGD(model, lr=0.1)
    grads = gradients(model, 0)

    @wl.jit
    def step(model, optimizer, grads):
        optimizer.step(grads)

    before = compiled._program.traces
    for _ in range(4):
        step(model, optimizer, grads)
    assert compiled._program.traces == before


def test_what_is_trained_twice_ends_at_the_same_numbers(monkeypatch):
    for many in (1, 1 << 15):  # compiled or not, from the first step on
        monkeypatch.setattr(compiled, "MANY", many)
        first, second = (trained(lambda m: optim.Adam(m), "native", steps=70) for _ in range(2))
        for path, value in first.items():
            np.testing.assert_array_equal(value, second[path])


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_inside_jit_a_step_is_traced_once_for_batches_of_all_sizes(name, monkeypatch):
    """The graph of a training step is the one without that, equation by equation, and so are numbers."""

    def trained(sizes):
        model = network()
        optimizer = OPTIMIZERS[name](model, lr=0.01)
        traced = []

        @wl.jit
        def step(model, optimizer, x):
            loss, grads = wl.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
            optimizer.step(grads)
            return loss

        original = type(optimizer)._advance
        monkeypatch.setattr(
            type(optimizer), "_advance", lambda self, grads: traced.append(1) or original(self, grads), raising=True
        )
        for n in sizes:
            step(model, optimizer, wl.asarray(np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)))
        monkeypatch.undo()
        graph = step.graph(model, optimizer, wl.ones((sizes[-1], 3)))
        return len(traced), [str(e.primitive) for e in graph.equations], [*model.state_dict().values()]

    with wl.using_backend("numpy"):
        sizes = (4, 5, 6)
        traced, equations, found = trained(sizes)
        monkeypatch.setattr(compiled, "advance", lambda optimizer, gradients, grads: False)
        every, wanted, values = trained(sizes)
    assert equations == wanted
    assert every == 3
    assert traced <= 1
    for one, other in zip(found, values, strict=True):
        np.testing.assert_array_equal(one, other)


def test_inside_jit_settings_may_change():
    model = network()
    optimizer = optim.SGD(model, lr=1.0, momentum=0.0)
    step = wl.jit(lambda optimizer, grads: optimizer.step(grads))
    before = model.state_dict()["0.bias"].numpy().copy()
    ones = {name: wl.ones(p.shape) for name, p in model.named_parameters()}
    step(optimizer, ones)
    np.testing.assert_allclose(model.state_dict()["0.bias"].numpy(), before - 1)
    optimizer.groups[0].lr = 0.5
    optimizer.groups[0]["maximize"] = True
    step(optimizer, ones)
    np.testing.assert_allclose(model.state_dict()["0.bias"].numpy(), before - 0.5, rtol=1e-6)
