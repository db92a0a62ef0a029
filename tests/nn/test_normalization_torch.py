"""Every normalization layer that PyTorch has, too, against its outputs, gradients and running statistics.

The numbers are made by tools/torch_normalization.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn

REFERENCE = json.loads((Path(__file__).parent / "torch_normalization.json").read_text())
SAME = {"rtol": 1e-10, "atol": 1e-10}


def double(values):
    return wl.asarray(np.array(values, np.float64))


@pytest.mark.parametrize("case", REFERENCE["layers"], ids=lambda case: case["name"])
def test_a_layer(case):
    layer = getattr(nn, case["name"])(*case["args"], **case["settings"]).astype(wl.float64)
    for path, value in case["parameters"].items():
        setattr(layer, path, double(value))
    inputs, cotangent = [double(x) for x in case["inputs"]], double(case["cotangent"])
    np.testing.assert_allclose(layer(inputs[0]), case["outputs"][0], **SAME)

    @wl.jit
    def weighted(layer, x):
        y = layer(x)
        return (y * cotangent).sum(), y

    grads, y = wl.grad(weighted, argnums=(0, 1), has_aux=True)(layer, inputs[1])
    np.testing.assert_allclose(y, case["outputs"][1], **SAME)
    expected = dict(case["grads"])
    np.testing.assert_allclose(grads[1], expected.pop("input"), **SAME)
    assert set(grads[0]) == set(expected)
    for path, value in expected.items():
        np.testing.assert_allclose(grads[0][path], value, **SAME)
    buffers = dict(layer.named_buffers())
    assert set(buffers) == set(case["buffers"])
    for path, value in case["buffers"].items():
        if path == "num_batches_tracked" and case["name"].startswith("Instance"):
            continue  # there it never counts, so that momentum=None would not average
        np.testing.assert_allclose(buffers[path], value, **SAME)
    np.testing.assert_allclose(layer.eval()(inputs[0]), case["inference"], **SAME)


@pytest.mark.book("A3-79", name="wl.nn.weight_norm")
def test_weight_norm():
    case = REFERENCE["weight_norm"]
    layer = nn.weight_norm(nn.Linear.from_matrix(double(case["v"]), double(case["bias"])))
    layer.g = double(case["g"])
    x = double(case["input"])
    np.testing.assert_allclose(layer(x), case["output"], **SAME)
    grads = wl.grad(lambda layer, x: (layer(x) ** 2).sum(), argnums=(0, 1))(layer, x)
    for path, value in case["grads"].items():
        np.testing.assert_allclose(grads[1] if path == "input" else grads[0][path], value, **SAME)
