"""Scaled losses: the factor backs off and grows, steps that are not finite change nothing, with and without `jit`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn

F = nn.functional


def numbers(*shape: int, seed: int = 0) -> wl.Tensor:
    return wl.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def step(model: Any, optimizer: Any, scaler: Any, x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
    def loss_of(model: Any) -> tuple[wl.Tensor, wl.Tensor]:
        with wl.autocast("float16"):
            loss = F.mse_loss(model(x), y)
        return scaler.scale(loss), loss

    (_, loss), grads = wl.value_and_grad(loss_of, has_aux=True)(model)
    scaler.step(optimizer, grads)
    scaler.update()
    return loss


@pytest.mark.parametrize("compiled", [False, True])
def test_it_backs_off_and_grows(compiled: bool) -> None:
    model = nn.Linear(3, 1)
    optimizer = wl.optim.Adam(model, lr=0.01)
    scaler = wl.optim.GradScaler(2.0**12, growth_interval=3)
    run = wl.jit(step) if compiled else step
    x, y = numbers(4, 3), wl.zeros((4, 1))
    for _ in range(2):
        run(model, optimizer, scaler, x, y)
    before = {**model.state_dict(), **optimizer.state_dict()}
    run(model, optimizer, scaler, x, wl.full((4, 1), 1e6))  # a derivative that float16 does not hold
    assert not bool(scaler.finite)
    assert (scaler.get_scale(), int(scaler.skipped)) == (2.0**11, 1)
    for name, value in {**model.state_dict(), **optimizer.state_dict()}.items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(before[name]), err_msg=name)
    for _ in range(3):
        run(model, optimizer, scaler, x, y)
    assert (scaler.get_scale(), int(scaler.skipped), int(scaler.steady)) == (2.0**12, 1, 0)
    assert int(optimizer.count) == 5


def test_small_derivatives_are_kept() -> None:
    """A derivative of 1e-9 is 0 in float16, and right with a scaled loss."""
    w, x = nn.Parameter(wl.ones((2, 2))), wl.ones((1, 2))

    def grad(scaler: wl.optim.GradScaler) -> wl.Tensor:
        def loss_of(w: Any) -> wl.Tensor:
            with wl.autocast("float16"):
                return scaler.scale(wl.sum(x @ w) * 1e-9)

        return scaler.unscale(wl.grad(loss_of)(w))

    assert float(wl.max(grad(wl.optim.GradScaler(enabled=False)))) == 0
    np.testing.assert_allclose(np.asarray(grad(wl.optim.GradScaler())), 1e-9, rtol=1e-3)


def test_a_static_factor_stays() -> None:
    model = nn.Linear(3, 1)
    optimizer, scaler = wl.optim.SGD(model, lr=0.01), wl.optim.GradScaler(1024.0, dynamic=False)
    for target in (0.0, 1e6):
        step(model, optimizer, scaler, numbers(4, 3), wl.full((4, 1), target))
    assert (scaler.get_scale(), int(scaler.skipped), int(optimizer.count)) == (1024.0, 1, 1)


def test_the_imperative_style() -> None:
    models = [nn.Linear(3, 2), nn.Linear(3, 2)]
    models[1].load_state_dict(models[0].state_dict())
    x, y = numbers(4, 3), numbers(4, 2, seed=1)
    plain, scaled = (wl.optim.SGD(m, lr=0.1) for m in models)
    scaler = wl.optim.GradScaler()
    F.mse_loss(models[0](x), y).backward()
    plain.step()
    scaler.scale(F.mse_loss(models[1](x), y)).backward()
    scaler.step(scaled)
    scaler.update()
    for (_, a), (_, b) in zip(models[0].named_parameters(), models[1].named_parameters(), strict=True):
        np.testing.assert_array_equal(np.asarray(a.value), np.asarray(b.value))  # by powers of two: exact


def test_without_it_nothing_is_changed() -> None:
    scaler = wl.optim.GradScaler(enabled=False)
    loss = wl.tensor(3.0)
    assert scaler.scale(loss) is loss
    assert scaler.unscale({"w": loss})["w"] is loss


def test_bad_settings_are_refused() -> None:
    for bad in ({"init_scale": 0.0}, {"growth_factor": 0.5}, {"backoff_factor": 1.5}, {"growth_interval": 0}):
        with pytest.raises(wl.errors.InputError, match="GradScaler"):
            wl.optim.GradScaler(**bad)  # type: ignore[arg-type]
    with pytest.raises(wl.errors.DTypeError, match="float16"):
        wl.optim.GradScaler().unscale([wl.ones(2, dtype=wl.float16)])
    with pytest.raises(wl.errors.GradientError, match="backward"):
        wl.optim.GradScaler().step(wl.optim.SGD(nn.Linear(2, 1)))
