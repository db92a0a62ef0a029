"""Training in low precision: it converges as in float32, leaves out steps that are not finite, and resumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn


def data() -> tuple[wl.Tensor, wl.Tensor]:
    x = np.random.default_rng(0).normal(size=(256, 2)).astype(np.float32)
    return wl.asarray(x), wl.asarray((x[:, 0] * x[:, 1] > 0).astype(np.int64))


def fitted(epochs: int = 30, **settings: Any) -> tuple[Any, wl.train.History]:
    wl.random.seed(0)
    model = wl.models.MLP(2, [32], 2)
    settings = {"optimizer": "adam", "lr": 0.02, "metrics": ["accuracy"], "progress": False, **settings}
    return model, wl.train.fit(model, "cross_entropy", data(), epochs=epochs, **settings)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_it_learns_as_in_float32(precision: str) -> None:
    _, wide = fitted()
    model, low = fitted(precision=precision)
    assert {p.dtype for p in model.parameters()} == {wl.float32}
    assert low["accuracy"][-1] > 0.9
    assert abs(low["loss"][-1] - wide["loss"][-1]) < 0.05


def test_the_forward_pass_is_low() -> None:
    seen: list[object] = []

    def objective(model: Any, loss: Any, batch: Any) -> tuple[wl.Tensor, wl.Tensor]:
        outputs = model(batch[0])
        seen.append(outputs.dtype)
        return loss(outputs, batch[1]), outputs

    fitted(1, precision="bfloat16", objective=objective, check=False, validation=0.2)
    assert set(seen) == {wl.bfloat16}


def test_a_step_that_is_not_finite_is_left_out_and_said() -> None:
    _, history = fitted(2, precision="float16", loss_scale=wl.optim.GradScaler(2.0**24))
    said = [event["text"] for event in history.events]
    assert said
    assert all("left out" in text for text in said)


def test_a_run_without_finite_gradients_ends() -> None:
    def loss(outputs: wl.Tensor, targets: wl.Tensor) -> wl.Tensor:
        return wl.sqrt(wl.sum(outputs * 0.0)) + 1.0  # 1, with an infinite derivative times 0

    with pytest.raises(wl.errors.NonFiniteError, match="gradients are not finite"):
        wl.train.fit(nn.Linear(2, 2), loss, data(), epochs=20, loss_scale="dynamic", progress=False, check=False)


def test_the_factor_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    scaler = wl.optim.GradScaler(2.0**10, growth_interval=5)
    fitted(2, checkpoint=tmp_path, precision="float16", loss_scale=scaler)
    again = wl.optim.GradScaler(2.0**10, growth_interval=5)
    fitted(2, checkpoint=tmp_path, precision="float16", loss_scale=again)  # nothing left to do
    assert again.get_scale() == scaler.get_scale() > 2.0**10


def test_bad_settings_are_refused() -> None:
    with pytest.raises(wl.errors.DTypeError, match="precision"):
        fitted(1, precision="float64")
    with pytest.raises(wl.errors.InputError, match="loss_scale"):
        fitted(1, loss_scale="much")
    with pytest.raises(wl.errors.ArgumentError, match="precision"):
        fitted(1, mixed_precision="fp16")
