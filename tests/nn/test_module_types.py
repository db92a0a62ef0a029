"""What a type checker sees of modules: calls have the signature of `forward`, and attributes with cells a type.

mypy reads this file: `assert_type` fails there if a value has another type, and an ignored error that is none is an
error itself. What stands here is run as well, so the types are those of the values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

import pytest

import wonderland as wl
from wonderland import Tensor, nn
from wonderland.errors import DTypeError
from wonderland.nn import Buffer, Parameter


class Gate(nn.Module):
    """A module of a user, with a signature of its own."""

    def __init__(self) -> None:
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor, *, scale: float = 1.0) -> tuple[Tensor, float]:
        return wl.sigmoid(self.layer(x)) * scale, scale


def twice(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return f(f(x))


def test_a_call_takes_and_gives_what_forward_does() -> None:
    x = wl.ones((2, 3))
    layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    assert assert_type(nn.Linear(3, 4)(x), Tensor).shape == (2, 4)
    assert assert_type(layers(x), Tensor).shape == (2, 3)
    assert assert_type(nn.MSELoss()(x, x), Tensor).item() == 0.0
    assert assert_type(twice(layers, x), Tensor).shape == (2, 3)
    y, scale = assert_type(Gate()(x, scale=2.0), tuple[Tensor, float])
    assert (y.shape, scale) == ((2, 3), 2.0)
    assert assert_type(wl.models.MLP(3, 4, 1)(x), Tensor).shape == (2, 1)


def test_what_forward_does_not_take_is_found() -> None:
    x = wl.ones((2, 3))
    with pytest.raises(DTypeError):
        nn.Linear(3, 4)("a")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Gate()(x, factor=2.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        nn.MSELoss()(x)  # type: ignore[call-arg]


def test_attributes_with_cells_are_read_as_cells_and_take_tensors() -> None:
    layer, norm = nn.Linear(3, 4), nn.BatchNorm1d(3)
    layer.weight = wl.zeros((3, 4))
    assert_type(layer.weight, Parameter)
    assert_type(layer.bias, Parameter | None)
    assert_type(norm.running_mean, Buffer | None)
    assert isinstance(layer.weight, Parameter)
    assert layer.weight.sum().item() == 0.0
    assert isinstance(layer.bias, Parameter)
    assert isinstance(norm.running_mean, Buffer)
    assert assert_type(nn.Embedding(5, 2).weight, Parameter).shape == (5, 2)


def test_recurrent_layers_tell_their_states() -> None:
    x = wl.ones((5, 2, 3))
    _, h = assert_type(nn.GRU(3, 4)(x), tuple[Tensor, Tensor])
    _, (g, c) = assert_type(nn.LSTM(3, 4)(x), tuple[Tensor, tuple[Tensor, Tensor]])
    assert h.shape == g.shape == c.shape == (1, 2, 4)


def test_methods_that_give_the_model_keep_its_class() -> None:
    layer = assert_type(nn.Linear(3, 4).eval().freeze(), nn.Linear)
    assert assert_type(nn.functional_call(layer, layer.state_dict(), wl.ones(3)), Tensor).shape == (4,)
    model = assert_type(wl.models.LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0]), wl.models.LinearRegression)
    assert model.weight.shape == (1,)
