"""Layers that hand their settings to a function."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import wonderland as wl
from wonderland import nn
from wonderland.nn.module.applied import Applied


def kinds(cls: type[Any]) -> list[Any]:
    found = [kind for below in cls.__subclasses__() for kind in [below, *kinds(below)]]
    return [kind for kind in found if hasattr(kind, "_function")]


@pytest.mark.parametrize("kind", kinds(Applied), ids=lambda kind: kind.__name__)
def test_settings_are_attributes_and_arguments_of_the_function(kind: Any) -> None:
    taken = inspect.signature(kind._function).parameters
    given = inspect.signature(kind).parameters
    needed = {name: 2 for name, p in given.items() if p.default is p.empty}
    needed |= {"size": 2} if kind is nn.Upsample else {}
    layer = kind(**needed)
    assert tuple(given) == kind._settings
    for name, parameter in given.items():
        assert name in taken, name
        assert hasattr(layer, name)
        if name not in needed:
            assert parameter.default == taken[name].default


def test_a_changed_setting_counts() -> None:
    x = wl.tensor([-1.0, 2.0])
    layer = nn.LeakyReLU(0.1)
    layer.negative_slope = 0.5
    layer.note = "an attribute that is no setting"
    assert layer(x).tolist() == [-0.5, 2.0]


def test_a_kind_of_loss_may_take_other_arguments() -> None:
    class Half(nn.HuberLoss):
        def __init__(self, factor: float) -> None:
            super().__init__("sum", delta=0.5)
            self.factor = factor

        def forward(self, input: Any, target: Any) -> Any:
            return self.factor * super().forward(input, target)

    x, y = wl.tensor([3.0]), wl.tensor([1.0])
    assert Half(0.5)(x, y).item() == 0.5 * nn.functional.huber_loss(x, y, "sum", 0.5).item()
