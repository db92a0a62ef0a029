"""What is computed from parameters alone is kept between calls, and never longer than the parameters are the same."""

from __future__ import annotations

import gc
import itertools
import threading
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.engines.native.engine import ENGINE
from wonderland.engines.native.lasting import Lasting

X = wl.random.normal((2, 9, 9, 16), key=wl.random.key(3))


def network(key: int = 0) -> nn.Sequential:
    """Filters to pack, a normalisation to fold, a weight that is read transposed."""
    keys = wl.random.split(wl.random.key(key), 3)
    layers = [nn.Conv2d(16, 20, 3, padding=1, key=keys[0]), nn.BatchNorm2d(20), nn.ReLU()]
    layers.append(nn.Conv2d(20, 24, 3, key=keys[1]))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(24 * 49, 8, key=keys[2])).eval()


def program_of(f: Any) -> Any:
    return ENGINE.program(f.last_trace.graph)


@pytest.fixture
def forward() -> Any:
    @wl.jit
    def f(model: Any, x: Any) -> Any:
        return model(x)

    return f


def check(f: Any, model: Any, x: Any = X) -> None:
    """The answer is that of NumPy for the parameters of now."""
    with wl.using_backend("native"), wl.no_grad():
        got = f(model, x)
    with wl.no_grad():
        np.testing.assert_allclose(np.asarray(got), np.asarray(model(x)), rtol=2e-4, atol=2e-5)


def kept(f: Any) -> bool:
    """Whether the next call with the same arrays would find what the last one computed."""
    found = program_of(f).lasting
    assert isinstance(found, Lasting)
    return found.ready


def test_what_depends_on_parameters_alone_is_computed_once(forward: Any) -> None:
    model = network()
    check(forward, model)
    assert kept(forward)
    assert program_of(forward).lasting.bytes >= 4 * (16 * 20 + 20 * 24) * 9
    for step in range(3):
        check(forward, model, X + step)


def test_a_training_step_between_two_calls_is_seen(forward: Any) -> None:
    model = network()
    optimizer = wl.optim.SGD(model, lr=0.1, momentum=0.9)

    @wl.jit
    def step(model: Any, optimizer: Any, x: Any) -> Any:
        loss, grads = wl.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
        optimizer.step(grads)
        return loss

    for _ in range(3):
        check(forward, model)
        weight = model[0].weight.value._data
        place = weight.ctypes.data
        del weight
        with wl.using_backend("native"):
            step(model.train(), optimizer, X)
            step(model, optimizer, X)
        assert not kept(forward)
        assert model[0].weight.value._data.ctypes.data == place  # what is kept does not keep training from its place
        check(forward, model.eval())


def test_other_values_in_parameters_are_seen(forward: Any) -> None:
    model, other = network(), network(7)
    check(forward, model)
    model.load_state_dict(other.state_dict())
    check(forward, model)
    model[0].weight.assign(2 * model[0].weight)
    check(forward, model)
    model[0].weight = wl.ones((3, 3, 16, 20))
    check(forward, model)
    with wl.no_grad():
        model[0].weight[0, 0] = 0.5
    check(forward, model)
    model[1].running_var.assign(model[1].running_var + 3)
    check(forward, model)


def test_models_of_one_kind_take_turns(forward: Any) -> None:
    models = [network(key) for key in (0, 10, 20)]
    for turn in range(6):
        check(forward, models[turn % 3])
        check(forward, models[turn // 2])


def test_memory_of_others_is_read_at_every_call(forward: Any) -> None:
    model = network()
    mine = np.random.default_rng(0).normal(size=(3, 3, 16, 20)).astype(np.float32)
    model[0].weight.assign(wl.asarray(mine))
    for _ in range(3):
        check(forward, model)
        mine *= 1.5
    wide = np.ones((3, 3, 16, 40), np.float32)
    model[0].weight.assign(wl.asarray(wide)[..., ::2])
    check(forward, model)
    wide[...] = 2
    check(forward, model)


def test_constants_of_a_function_are_kept_and_changes_seen() -> None:
    w = wl.random.normal((300, 200), key=wl.random.key(1))

    @wl.jit
    def f(x: Any) -> Any:
        return x @ w.T

    x = wl.random.normal((50, 200), key=wl.random.key(2))
    for _ in range(2):
        with wl.using_backend("native"):
            np.testing.assert_allclose(np.asarray(f(x)), np.asarray(x) @ np.asarray(w).T, rtol=1e-4, atol=1e-4)
        w[3] = 7.0


def test_memory_goes_with_the_model(forward: Any) -> None:
    model = network()
    check(forward, model)
    assert kept(forward)
    del model
    gc.collect()
    assert not kept(forward)


def test_a_function_that_trains_keeps_nothing() -> None:
    model = network()
    optimizer = wl.optim.SGD(model, lr=0.1)

    @wl.jit
    def step(model: Any, optimizer: Any, x: Any) -> None:
        optimizer.step(wl.grad(lambda m: (m(x) ** 2).mean())(model))

    with wl.using_backend("native"):
        step(model, optimizer, X)
    assert program_of(step).lasting is None


def test_threads_with_models_of_their_own(forward: Any) -> None:
    models = [network(key) for key in range(3)]
    wanted = [np.asarray(model(X)) for model in models]
    wrong: list[int] = []

    def work(i: int) -> None:
        with wl.using_backend("native"), wl.no_grad():
            for _ in range(15):
                if not np.allclose(np.asarray(forward(models[i], X)), wanted[i], rtol=2e-4, atol=2e-5):
                    wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_thread_that_trains_and_one_that_looks_on(forward: Any) -> None:
    """What is seen is always all of one step: parameters are equal to each other before and after each."""
    model = nn.Linear(128, 160, bias=False)
    model.weight.assign(wl.zeros((128, 160)))

    @wl.jit
    def step(model: Any) -> None:
        model.weight.assign(model.weight + 1)

    @wl.jit
    def look(model: Any, x: Any) -> Any:
        return x @ model.weight.T

    x = wl.ones((40, 160)) / 160
    seen: list[float] = []

    def watch() -> None:
        with wl.using_backend("native"), wl.no_grad():
            for _ in range(60):
                got = np.asarray(look(model, x))
                assert np.ptp(got) < 1e-3
                seen.append(float(got.mean()))

    thread = threading.Thread(target=watch)
    thread.start()
    with wl.using_backend("native"):
        for _ in range(60):
            step(model)
    thread.join()
    assert len(seen) == 60
    assert all(a <= b + 1e-3 for a, b in itertools.pairwise(seen))
    with wl.using_backend("native"), wl.no_grad():
        np.testing.assert_allclose(np.asarray(look(model, x)), 60, rtol=1e-4)


def test_nothing_kept_is_read_before_it_is_written(forward: Any) -> None:
    model = network()
    with wl.debug.filled_memory():
        check(forward, model)
        check(forward, model)
    check(forward, model)
