"""The models of sequences and videos, and the differential equation, that `wonderland train` knows."""

from __future__ import annotations

import json

import pytest

import wonderland as wl
from wonderland import recipes
from wonderland.errors import ShapeError
from wonderland.recipes import MODELS, Settings, build
from wonderland.recipes.settings import TrainSettings


@pytest.mark.parametrize(
    "name, shape", [("conv1d", (50, 3)), ("conv3d", (6, 8, 8, 1)), ("neural_ode", (2,)), ("neural_ode", (8, 8, 1))]
)
def test_models_fit_their_inputs(name, shape):
    model = wl.eval_shape(lambda: build({"name": name}, shape, 7))
    assert model.output_shape((2, *shape)) == (2, 7)
    assert model.num_parameters() < 100_000
    TrainSettings(**MODELS[name].train).check()


@pytest.mark.parametrize(
    "name, shape, message",
    [
        ("conv1d", (13,), r"conv1d: an input of shape \(13,\) is no sequence"),
        ("conv1d", (3, 1), r"4 or more along every axis"),
        ("conv3d", (8, 8, 1), r"conv3d: an input of shape \(8, 8, 1\) is no video"),
        ("conv3d", (3, 8, 8, 1), "4 or more"),
    ],
)
def test_other_inputs_are_refused(name, shape, message):
    with pytest.raises(ShapeError, match=message):
        build({"name": name}, shape, 2)


@pytest.mark.book("9-98", name=("wonderland train", "wl.models.NeuralODE"))
def test_a_differential_equation_separates_moons(tmp_path):
    settings = Settings.of(model="neural_ode", data="moons", changes=["epochs=60"])
    recipes.run(settings, tmp_path / "run", progress=False, png=False)
    assert json.loads((tmp_path / "run" / "results.json").read_text())["test"]["accuracy"] > 0.95
