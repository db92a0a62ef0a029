"""Averages of weights against their closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, optim
from wonderland.errors import InputError, ModuleError

WEIGHTS = np.random.default_rng(0).normal(size=(6, 3, 2))


def model(value=0.0, dtype=wl.float64):
    made = nn.Linear(3, 2, bias=False).astype(dtype)
    made.weight = wl.asarray(np.full((3, 2), value), dtype=dtype)
    return made


def follow(average, net, compiled=False):
    def step(net, average, w):
        net.weight = w
        average.update(net)

    run = wl.jit(step) if compiled else step
    for w in WEIGHTS:
        run(net, average, wl.asarray(w))
    return average.values()["weight"].numpy()


@pytest.mark.parametrize("compiled", [False, True])
def test_exponential_average(compiled):
    net = model(5.0)
    found = follow(optim.EMA(net, decay=0.8), net, compiled)
    expected = np.full((3, 2), 5.0)
    for w in WEIGHTS:
        expected = 0.8 * expected + 0.2 * w
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_bias_correction_forgets_the_start(compiled):
    net = model(1e6)
    found = follow(optim.EMA(net, decay=0.8, bias_correction=True), net, compiled)
    shares = 0.8 ** np.arange(5, -1, -1)
    np.testing.assert_allclose(found, np.tensordot(shares / shares.sum(), WEIGHTS, 1), rtol=1e-8)


def test_warm_up():
    net = model(5.0)
    found = follow(optim.EMA(net, decay=0.3, warmup=True), net)
    expected = np.full((3, 2), 5.0)
    for t, w in enumerate(WEIGHTS, 1):
        decay = min(0.3, (1 + t) / (10 + t))
        expected = decay * expected + (1 - decay) * w
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_plain_mean(compiled):
    net = model(7.0)
    np.testing.assert_allclose(follow(optim.SWA(net), net, compiled), WEIGHTS.mean(0), rtol=1e-12)


def test_swapping_and_applying():
    net = model(1.0)
    ema = optim.EMA(net, decay=0.5)
    net.weight = wl.asarray(np.full((3, 2), 3.0))
    ema.update(net)

    def fail(net):
        with ema.swapped(net):
            assert net.weight.numpy()[0, 0] == 2.0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail(net)
    assert net.weight.numpy()[0, 0] == 3.0
    assert ema.values()["weight"].numpy()[0, 0] == 2.0
    other = model()
    ema.apply_to(other)
    assert other.weight.numpy()[0, 0] == 2.0


def test_swapping_inside_a_compiled_function():
    net = model(1.0)
    ema = optim.EMA(net, decay=0.5)

    @wl.jit
    def evaluate(net, ema, x):
        with ema.swapped(net):
            averaged = net(x).sum()
        return averaged, net(x).sum()

    for value in (3.0, 5.0):
        net.weight = wl.asarray(np.full((3, 2), value))
        ema.update(net)
        averaged, own = evaluate(net, ema, wl.ones(3, dtype=wl.float64))
        np.testing.assert_allclose([averaged.item(), own.item()], [6 * {3.0: 2.0, 5.0: 3.5}[value], 6 * value])
        assert net.weight.numpy()[0, 0] == value


def test_saving_goes_on_to_the_same_bits():
    net, twin = model(1.0), model(1.0)
    a, b = optim.EMA(net, 0.9), optim.EMA(twin, 0.9)
    follow(a, net)
    b.load_state_dict({k: v.numpy() for k, v in a.state_dict().items()})
    follow(a, net)
    follow(b, twin)
    np.testing.assert_array_equal(a.values()["weight"], b.values()["weight"])
    assert a.count.item() == b.count.item() == 12


def test_other_state_is_copied_and_half_precision_averages_in_float32():
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    ema = optim.EMA(net, decay=0.9)
    net(wl.asarray(WEIGHTS[:, 0, :1] * np.ones(3), dtype=wl.float32))
    ema.update(net)
    for name, buffer in net.named_buffers():
        np.testing.assert_array_equal(ema.values()[name].numpy(), buffer.numpy())
    small = model(1.0, wl.bfloat16)
    average = optim.EMA(small, decay=0.999)
    small.weight = wl.full((3, 2), 2.0, dtype=wl.bfloat16)
    for _ in range(3):
        average.update(small)
    assert average.values()["weight"].dtype == wl.float32
    np.testing.assert_allclose(average.values()["weight"], 2 - 0.999**3, rtol=1e-6)
    average.apply_to(small)
    assert small.weight.dtype == wl.bfloat16


def test_averaging_finds_a_better_point_under_noise():
    rng = np.random.default_rng(0)
    w = nn.Parameter(np.zeros(20))
    net = nn.Module()
    net.w = w
    optimizer, swa = optim.SGD(net, lr=0.3), optim.SWA(net)
    last = []
    for t in range(300):
        optimizer.step({"w": w.value - 1.0 + wl.asarray(rng.normal(size=20))})
        if t >= 100:
            swa.update(net)
            last.append(((w.numpy() - 1) ** 2).sum())
    assert ((swa.values()["w"].numpy() - 1) ** 2).sum() < 0.2 * np.mean(last)


def test_bad_input():
    with pytest.raises(InputError, match=r"decay=1\.5"):
        optim.EMA(model(), decay=1.5)
    with pytest.raises(InputError, match="both bias_correction and warmup"):
        optim.EMA(model(), bias_correction=True, warmup=True)
    with pytest.raises(InputError, match="no parameters and no state"):
        optim.SWA(nn.ReLU())
    with pytest.raises(ModuleError, match="not like the one"):
        optim.EMA(model()).update(nn.Linear(2, 2))
