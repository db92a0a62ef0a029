"""Steps of few parameters outside of `jit` run as programs from the 64th on, with the numbers of NumPy."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, optim
from wonderland.core.sightings import CALLS_OF_FEW
from wonderland.errors import NonFiniteError, ShapeError
from wonderland.optim import few_parameters
from wonderland.optim.by_name import OPTIMIZERS


@pytest.fixture(autouse=True)
def native():
    with wl.using_backend("native"):
        yield


def network(dtype=wl.float32):
    wl.random.seed(3)
    return nn.Sequential(nn.Linear(3, 7), nn.Tanh(), nn.Linear(7, 2)).astype(dtype)


def gradients(model, turn):
    draw = np.random.default_rng(turn)
    return {name: wl.asarray(draw.normal(size=p.shape), dtype=p.dtype) for name, p in model.named_parameters()}


def entered(monkeypatch):
    """How often a step was one of a function of C."""
    counts = []
    original = few_parameters.again

    def counted(optimizer, grads):
        done = original(optimizer, grads)
        counts.append(done)
        return done

    monkeypatch.setattr(few_parameters, "again", counted)
    return counts


def on_both(train):
    """What a training gives, compiled and by the reference."""
    results = []
    for backend in ("native", "numpy"):
        with wl.using_backend(backend):
            results.append(train())
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_rules_agree_with_the_reference(name, monkeypatch):
    counts = entered(monkeypatch)

    def train():
        model = network()
        optimizer = OPTIMIZERS[name](model)
        for turn in range(CALLS_OF_FEW + 6):
            optimizer.step(gradients(model, turn))
        return [*model.state_dict().values(), *optimizer.state_dict().values()]

    on_both(train)
    assert sum(counts) == 5


def test_settings_rates_state_and_gradients_may_change():
    def train():
        model = network()
        optimizer = optim.Adam(model, lr=0.01)
        for turn in range(CALLS_OF_FEW + 40):
            grads = gradients(model, turn)
            if turn == CALLS_OF_FEW + 4:
                saved = {name: value.numpy().copy() for name, value in optimizer.state_dict().items()}
            if turn == CALLS_OF_FEW + 8:
                optimizer.groups[0]["maximize"] = True
            if turn == CALLS_OF_FEW + 12:
                model[0].weight.trainable = False
            if turn == CALLS_OF_FEW + 16:
                model[0].weight.trainable = True
            if turn > CALLS_OF_FEW + 20:
                optimizer.lr = 0.01 / turn
                grads = dict(reversed(grads.items()))
            if turn == CALLS_OF_FEW + 24:
                optimizer.load_state_dict(saved)
            if turn == CALLS_OF_FEW + 28:
                model[2].weight = wl.ones_like(model[2].weight)
            optimizer.step(grads)
        return [*model.state_dict().values(), *optimizer.state_dict().values()]

    on_both(train)


def test_the_imperative_style():
    def train():
        model = network()
        optimizer = optim.Adam(model, lr=0.01)
        x = wl.asarray(np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32))
        losses = []
        for turn in range(CALLS_OF_FEW + 20):
            optimizer.zero_grad()
            parts = (model(x), model[0](x).sum()) if turn % 5 else (model[0](x), 0.0)  # some have no gradient
            loss = (parts[0] ** 2).mean() + parts[1]
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return [losses, *model.state_dict().values()]

    on_both(train)


def test_values_that_others_hold_stay():
    model = network()
    optimizer = optim.SGD(model, lr=0.1)
    for turn in range(CALLS_OF_FEW + 5):
        held = model[0].weight.numpy()
        copy = held.copy()
        optimizer.step(gradients(model, turn))
        assert np.array_equal(held, copy)
        assert not np.array_equal(model[0].weight.numpy(), copy)


def test_bad_gradients_are_refused_as_ever():
    model = network()
    optimizer = optim.SGD(model, lr=0.1)
    grads = gradients(model, 0)
    for _ in range(CALLS_OF_FEW + 2):
        optimizer.step(grads)
    before = model[0].weight.numpy().copy()
    with pytest.raises(ShapeError, match=r"the gradient '0.weight' is float32\[7, 3\]"):
        optimizer.step({**grads, "0.weight": wl.ones((7, 3))})
    with pytest.raises(ShapeError, match="float64"):
        optimizer.step({**grads, "0.weight": wl.ones((3, 7), dtype=wl.float64)})
    with pytest.raises(wl.errors.GradientError, match=r"there is none for '0.bias'"):
        optimizer.step({name: g for name, g in grads.items() if name != "0.bias"})
    np.testing.assert_array_equal(before, model[0].weight.numpy())
    assert optimizer.count.item() == CALLS_OF_FEW + 2


def test_one_tensor_may_be_the_gradient_of_several_parameters():
    def train():
        parameters = {"a": nn.Parameter(wl.ones(3)), "b": nn.Parameter(wl.zeros(3))}
        optimizer = optim.SGD(parameters, lr=0.1)
        for turn in range(CALLS_OF_FEW + 6):
            g = wl.full((3,), float(turn))
            optimizer.step({"a": g, "b": g} if turn % 2 else {"a": g, "b": -g})
        return [p.numpy() for p in parameters.values()]

    on_both(train)


def test_a_debugger_sees_every_step():
    w = nn.Parameter(wl.ones(3))
    optimizer = optim.SGD({"w": w}, lr=1e20)
    for _ in range(CALLS_OF_FEW + 2):
        optimizer.step({"w": wl.zeros(3)})
    with wl.debug.nans(), pytest.raises(NonFiniteError):
        optimizer.step({"w": wl.full((3,), 1e30)})


def test_inside_transformations_the_step_is_theirs():
    w = nn.Parameter(wl.ones(()))
    optimizer = optim.SGD({"w": w}, lr=0.1)
    for _ in range(CALLS_OF_FEW + 2):
        optimizer.step({"w": wl.ones(())})
    before = w.item()

    @wl.grad
    def through(g):
        optimizer.step({"w": g})
        return w * 2.0

    np.testing.assert_allclose(through(wl.tensor(1.0)), -0.2, rtol=1e-6)
    np.testing.assert_allclose(w.item(), before - 0.1, rtol=1e-6)
    wl.jit(lambda optimizer, g: optimizer.step({"w": g}))(optimizer, wl.tensor(1.0))
    np.testing.assert_allclose(w.item(), before - 0.2, rtol=1e-6)


def test_several_threads_and_optimizers_of_one_structure():
    def train(seed):
        model = network()
        optimizer = optim.Adam(model)
        for turn in range(CALLS_OF_FEW + 40):
            optimizer.step(gradients(model, seed + turn))
        found.update({seed: [*model.state_dict().values()]})

    found = {}
    train(0), train(1)
    alone = dict(found)
    threads = [threading.Thread(target=train, args=(seed,)) for seed in (0, 1)]
    with wl.using_backend("native"):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for seed, values in alone.items():
        for one, other in zip(values, found[seed], strict=True):
            np.testing.assert_array_equal(one, other)


def test_an_optimizer_that_is_gone_is_forgotten():
    w = nn.Parameter(wl.ones(3))
    optimizer = optim.SGD({"w": w}, lr=0.1)
    for _ in range(CALLS_OF_FEW + 2):
        optimizer.step({"w": wl.ones(3)})
    place = id(optimizer)
    assert place in few_parameters._known
    del optimizer
    assert place not in few_parameters._known
