"""The models that `wonderland train` knows by name: a table."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import nn
from ..errors import InputError, ShapeError
from ..models import (
    CNN,
    MLP,
    VGG,
    ConvClassifier1d,
    ConvClassifier3d,
    ConvNeXt,
    LeNet,
    NeuralODE,
    ODEFunc,
    small_resnet,
)

Builder = Callable[..., nn.Module]


@dataclass(frozen=True)
class ModelEntry:
    """A model by name: what builds it from (input shape, outputs, options), and how it is best trained."""

    build: Builder
    description: str
    train: Mapping[str, Any] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """The options and their defaults."""
        parameters = list(inspect.signature(self.build).parameters.values())[2:]
        return {p.name: p.default for p in parameters}


def linear(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Scores that are linear in the inputs: softmax regression, or least squares. Book, chapter 4."""
    return nn.Sequential(nn.Flatten(), nn.Linear(_size(shape), outputs))


def mlp(
    shape: tuple[int, ...],
    outputs: int,
    hidden: Any = (256, 128),
    activation: str = "relu",
    norm: str | None = "batch",
    dropout: float = 0.2,
) -> nn.Module:
    """Fully-connected layers. Book, chapter 5."""
    widths = [hidden] if isinstance(hidden, int) else list(hidden)
    layers = MLP(_size(shape), widths, outputs, activation=activation, norm=norm or None, dropout=dropout)
    return nn.Sequential(nn.Flatten(), layers)


def cnn(shape: tuple[int, ...], outputs: int, channels: Any = (32, 64), dropout: float = 0.3) -> nn.Module:
    """Two convolutions and a pooling for each number of channels, then a linear layer. Book, chapter 7."""
    c = _channels("cnn", shape)
    return CNN(outputs, c, channels, norm="batch", dropout=dropout, pool="flatten", image_size=shape)


def lenet(shape: tuple[int, ...], outputs: int, activation: str = "relu", pool: str = "max") -> nn.Module:
    """Two convolutions with pooling and three linear layers. Book, chapter 7."""
    _channels("lenet", shape)
    return LeNet(outputs, shape, activation, pool)


def vgg(
    shape: tuple[int, ...],
    outputs: int,
    convs: Any = (2, 2, 2),
    channels: int = 16,
    norm: str | None = "batch",
    hidden: Any = (64,),
    dropout: float = 0.3,
) -> nn.Module:
    """Blocks of 3 x 3 convolutions whose channels double. Book, section 7.2.1."""
    c = _channels("vgg", shape, least=2 ** len(convs))
    return VGG(convs, channels, outputs, c, norm or None, hidden, None, dropout)


def resnet(
    shape: tuple[int, ...],
    outputs: int,
    channels: Any = (16, 32, 64),
    depth: int = 1,
    block: str = "basic",
    dropout: float = 0.0,
) -> nn.Module:
    """Stages of residual blocks, `depth` in each. Book, section 9.4.1."""
    c = _channels("resnet", shape)
    stem = "half" if min(shape[:2]) >= 16 else "small"
    return small_resnet(outputs, c, channels, depth, block=block, stem=stem, dropout=dropout)


def convnext(
    shape: tuple[int, ...],
    outputs: int,
    channels: Any = (32, 64),
    depth: int = 2,
    patch: int = 2,
    kernel_size: int = 5,
    drop_path: float = 0.1,
) -> nn.Module:
    """Depthwise convolutions and linear layers around which the input is added. Book, section 9.4.1."""
    c = _channels("convnext", shape, least=patch * 2 ** (len(channels) - 1))
    settings: dict[str, Any] = {"patch": patch, "kernel_size": kernel_size, "drop_path": drop_path, "layer_scale": None}
    return ConvNeXt((depth,) * len(channels), channels, outputs, c, **settings)


def conv1d(
    shape: tuple[int, ...], outputs: int, channels: Any = (32, 64), kernel_size: int = 5, dropout: float = 0.1
) -> nn.Module:
    """Convolutions and poolings over time, for sequences. Book, section 8.1.2."""
    if len(shape) != 2:
        raise ShapeError(f"conv1d: an input of shape {shape} is no sequence.", "sequences (time, channels)")
    _long_enough("conv1d", shape, channels)
    return ConvClassifier1d(shape[-1], outputs, channels, kernel_size, dropout)


def conv3d(
    shape: tuple[int, ...], outputs: int, channels: Any = (16, 32), kernel_size: int = 3, dropout: float = 0.1
) -> nn.Module:
    """Convolutions and poolings over time, height and width, for videos and volumes. Book, section 8.1.2."""
    if len(shape) != 4:
        raise ShapeError(f"conv3d: an input of shape {shape} is no video.", "videos (time, height, width, channels)")
    _long_enough("conv3d", shape, channels)
    return ConvClassifier3d(shape[-1], outputs, channels, kernel_size, dropout)


def neural_ode(
    shape: tuple[int, ...], outputs: int, features: int = 16, hidden: int = 64, steps: int = 8, method: str = "rk4"
) -> nn.Module:
    """A differential equation between two linear layers. Book, section 9.4.2."""
    layer = NeuralODE(ODEFunc(features, hidden), 1.0, method, steps)
    return nn.Sequential(nn.Flatten(), nn.Linear(_size(shape), features), layer, nn.Linear(features, outputs))


MODELS: dict[str, ModelEntry] = {
    "linear": ModelEntry(linear, "a linear model: softmax regression or least squares", {"lr": 0.02}),
    "mlp": ModelEntry(mlp, "fully-connected layers with batch normalization and dropout", {"label_smoothing": 0.05}),
    "cnn": ModelEntry(
        cnn,
        "a small convolutional network for images",
        {"lr": 5e-3, "label_smoothing": 0.05, "weight_decay": 0.02, "augment": True},
    ),
    "lenet": ModelEntry(lenet, "LeNet: two convolutions, three linear layers", {"augment": True}),
    "vgg": ModelEntry(
        vgg,
        "blocks of 3 x 3 convolutions whose channels double",
        {"lr": 5e-3, "label_smoothing": 0.05, "weight_decay": 0.02, "augment": True},
    ),
    "resnet": ModelEntry(
        resnet,
        "residual blocks: deep networks that train well",
        {"epochs": 12, "batch_size": 100, "lr": 1e-2, "weight_decay": 0.02, "augment": True},
    ),
    "convnext": ModelEntry(
        convnext,
        "depthwise convolutions in residual blocks, as transformers are built",
        {
            "lr": 4e-3,
            "label_smoothing": 0.05,
            "weight_decay": 0.05,
            "warmup": 0.1,
            "schedule": "cosine",
            "augment": True,
        },
    ),
    "conv1d": ModelEntry(conv1d, "convolutions over time, for sequences (time, channels)", {"lr": 5e-3}),
    "conv3d": ModelEntry(conv3d, "convolutions over time and space, for videos and volumes", {"lr": 5e-3}),
    "neural_ode": ModelEntry(neural_ode, "a differential equation between two linear layers", {"lr": 3e-2}),
}


def entry(name: Any) -> ModelEntry:
    """The model of a name."""
    if name not in MODELS:
        near = difflib.get_close_matches(str(name), MODELS, 1)
        raise InputError(f"there is no model {name!r}.", f"{near[0]}?" if near else f"one of {', '.join(MODELS)}")
    return MODELS[name]


def build(settings: Mapping[str, Any], shape: tuple[int, ...], outputs: int) -> nn.Module:
    """The model of the settings `{"name": ..., option: value, ...}` for inputs of a shape.

    >>> build({"name": "mlp", "hidden": [8]}, (4,), 3).num_parameters()
    83
    """
    found = entry(settings["name"])
    options = {name: value for name, value in settings.items() if name != "name"}
    known = found.options()
    if unknown := [name for name in options if name not in known]:
        raise InputError(
            f"the model {settings['name']} has no option {unknown[0]!r}.",
            f"one of {', '.join(known)}" if known else "no options: it has none",
        )
    return found.build(shape, outputs, **options)


def _channels(name: str, shape: tuple[int, ...], least: int = 1) -> int:
    """The channels of images of a shape; anything else is refused."""
    if len(shape) != 3:
        raise ShapeError(
            f"{name}: an input of shape {shape} is no image.", "images (height, width, channels), or model=mlp"
        )
    if min(shape[:2]) < least:
        raise ShapeError(f"{name}: images of {shape[0]} x {shape[1]} pixels.", f"{least} or more a side, or model=cnn")
    return shape[2]


def _long_enough(name: str, shape: tuple[int, ...], channels: Any) -> None:
    """Refuse inputs of which the poolings, one for each number of channels, would leave nothing."""
    least = 2 ** len(channels)
    if min(shape[:-1]) < least:
        raise ShapeError(f"{name}: an input of shape {shape}.", f"{least} or more along every axis, or fewer channels")


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size
