"""Shapes and costs without computing."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import ShapeError


class Twice(nn.Module):
    """Uses one layer two times, has state and two outputs."""

    def __init__(self):
        self.layer = nn.Linear(4, 4)
        self.head = nn.LazyLinear(2)
        self.calls = nn.Buffer(0)
        self.stream = wl.random.Stream(0)

    def forward(self, x):
        self.calls = self.calls + 1
        x = self.layer(wl.tanh(self.layer(x + wl.random.normal(x.shape, key=self.stream))))
        return {"y": self.head(x), "x": x}


@pytest.mark.book("1.07", name="wl.nn.summary")
def test_rows_and_totals():
    model = Twice()
    stream = model.stream.tolist()
    found = model.summary((8, 4))
    assert [(r.path, r.kind, r.shape, r.parameters, r.multiply_adds) for r in found.rows] == [
        ("", "Twice", {"y": (8, 2), "x": (8, 4)}, 0, None),
        ("layer", "Linear", (8, 4), 20, 128),
        ("layer", "Linear", (8, 4), 0, 128),
        ("head", "LazyLinear", (8, 2), 10, 64),
    ]
    assert found.parameters == 30 == model.num_parameters()
    assert found.multiply_adds == 320
    assert model.calls.item() == 0
    assert model.stream.tolist() == stream
    assert all(not m._hooks for m in model.modules())
    assert "frozen: 20" in repr(nn.summary(model.freeze("layer"), wl.ones((8, 4))))


def test_nothing_is_computed():
    model = nn.Sequential(nn.Linear(4, 4), wl.tanh)
    huge = (10**7, 10**3, 4)
    assert model.output_shape(huge) == huge
    assert nn.summary(model, huge).rows[0].shape == huge


@pytest.mark.book("1.07", name=("wl.nn.Module.output_shape", "wl.eval_shape"))
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 0, 4)])
def test_output_shape_is_that_of_the_forward_pass(shape):
    model = nn.Sequential(nn.Linear(4, 8), wl.relu, nn.Sequential(nn.Linear(8, 3)), wl.softmax)
    real = model(wl.ones(shape))
    assert model.output_shape(shape) == real.shape
    abstract = wl.eval_shape(model, wl.ones(shape))
    assert (abstract.shape, abstract.dtype) == (real.shape, real.dtype)
    assert Twice().output_shape((2, 4)) == {"y": (2, 2), "x": (2, 4)}


def test_errors_come_with_the_path():
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(7, 3))
    with pytest.raises(ShapeError, match=r"in module: 1 \(Linear\)"):
        model.output_shape((2, 4))
    with pytest.raises(ShapeError, match=r"in module: 1 \(Linear\)"):
        model.summary((2, 4))
    assert all(not m._hooks for m in model.modules())
    np.testing.assert_equal(type(model[0].weight.value), wl.Tensor)
