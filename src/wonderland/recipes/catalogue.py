"""The models that `wonderland train` knows by name: a table."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import nn
from ..errors import InputError, ShapeError
from ..models import MLP

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
    if len(shape) != 3:
        raise ShapeError(
            f"cnn: an input of shape {shape} is no image.", "images (height, width, channels), or model=mlp"
        )
    height, width, before = shape
    layers: list[nn.Module] = []
    for after in channels:
        for _ in range(2):
            layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
            before = after
        layers.append(nn.MaxPool2d(2))
        height, width = height // 2, width // 2
        if not height or not width:
            raise ShapeError(
                f"cnn: images of {shape[:2]} are too small for {len(channels)} poolings.", "fewer channels"
            )
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(dropout), nn.Linear(height * width * before, outputs))


MODELS: dict[str, ModelEntry] = {
    "linear": ModelEntry(linear, "a linear model: softmax regression or least squares", {"lr": 0.02}),
    "mlp": ModelEntry(mlp, "fully-connected layers with batch normalization and dropout", {"label_smoothing": 0.05}),
    "cnn": ModelEntry(
        cnn,
        "a small convolutional network for images",
        {"lr": 5e-3, "label_smoothing": 0.05, "weight_decay": 0.02, "augment": True},
    ),
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


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size
