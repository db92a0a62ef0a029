"""The image models that `wonderland train` knows: built for images of several sizes, or refused with a reason."""

from __future__ import annotations

import pytest

import wonderland as wl
from wonderland.errors import ShapeError
from wonderland.recipes import MODELS, build
from wonderland.recipes.settings import TrainSettings

NAMES = ["cnn", "lenet", "vgg", "resnet", "convnext", "mixer", "vit"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(8, 8, 1), (28, 28, 1), (32, 24, 3)])
def test_models_fit_images_of_any_usual_size(name, shape):
    model = wl.eval_shape(lambda: build({"name": name}, shape, 7))
    assert model.output_shape((2, *shape)) == (2, 7)
    assert model.num_parameters() < 1_000_000  # small by default
    TrainSettings(**MODELS[name].train).check()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_image_is_refused(name):
    with pytest.raises(ShapeError, match=rf"{name}: an input of shape \(13,\) is no image"):
        build({"name": name}, (13,), 2)


@pytest.mark.parametrize(
    "settings, shape, message",
    [
        ({"name": "vgg"}, (7, 28, 1), "vgg: images of 7 x 28 pixels"),
        ({"name": "convnext", "patch": 8}, (12, 12, 1), "convnext: images of 12 x 12"),
        ({"name": "cnn", "channels": [4] * 5}, (28, 28, 1), "too small for 5 poolings"),
        ({"name": "lenet"}, (3, 3, 1), "3 x 3 pixels"),
        ({"name": "alexnet"}, (32, 32, 3), "alexnet: images of 32 x 32 pixels"),
    ],
)
def test_images_that_would_shrink_to_nothing_are_refused(settings, shape, message):
    with pytest.raises(ShapeError, match=message):
        build(settings, shape, 2)


def test_options():
    deep = build({"name": "resnet", "channels": [4, 8], "depth": 2, "block": "bottleneck"}, (16, 16, 1), 3)
    assert len(wl.models.residual_blocks(deep)) == 4
    assert isinstance(deep.get_submodule("backbone.1.0"), wl.nn.BottleneckBlock)
    assert set(MODELS["convnext"].options()) == {"channels", "depth", "patch", "kernel_size", "drop_path"}


def test_alexnet_for_large_images():
    model = wl.eval_shape(lambda: build({"name": "alexnet"}, (64, 64, 3), 1000))
    assert model.output_shape((2, 64, 64, 3)) == (2, 1000)
    assert model.num_parameters() == 61_100_840
