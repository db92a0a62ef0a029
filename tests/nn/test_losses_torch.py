"""Every loss that PyTorch has, too, against its values and gradients (made by tools/torch_losses.py)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl

REFERENCE = json.loads((Path(__file__).parent / "torch_losses.json").read_text())


def tensors(values):
    return [wl.asarray(np.asarray(v)) for v in values]


@pytest.mark.book("C-07", name="wl.nn.MSELoss")
@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: case["name"])
def test_values_and_gradients(case):
    settings = {k: np.asarray(v) if isinstance(v, list) else v for k, v in case["settings"].items()}
    inputs = tensors(case["inputs"])
    for reduction in ("mean", "sum", "none"):
        loss = getattr(wl.nn, case["name"])(reduction=reduction, **settings)
        np.testing.assert_allclose(loss(*inputs), case[reduction], rtol=1e-10, atol=1e-12)
        if reduction == "mean":
            slope = wl.grad(lambda x, loss=loss: loss(x, *inputs[1:]))(inputs[0])
            np.testing.assert_allclose(slope, case["grad"], rtol=1e-9, atol=1e-12)
            value, slope = wl.jit(wl.value_and_grad(lambda x, *rest, loss=loss: loss(x, *rest)))(*inputs)
            np.testing.assert_allclose(value, case["mean"], rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(slope, case["grad"], rtol=1e-9, atol=1e-12)
