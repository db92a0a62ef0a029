"""Looking into image models without gradients: what layers give, as numbers and as pictures. Book, section 7.1.3."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...core.errors import ModuleError, ShapeError
from ...core.typing import ArrayLike
from ...nn.adaptation.surgery import is_place
from ...nn.layers.convolution import Conv2d
from ...nn.module.modes import kept_modes
from ...nn.module.module import Module
from ...transforms.imperative import no_grad
from ...viz.images import image_grid


def get_activations(model: Module, *inputs: object, layers: str | Iterable[str] | None = None) -> dict[str, Any]:
    """What the layers of a model give for inputs: a dict from their paths, in the order of the calls.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Conv2d(1, 4, 3), wl.nn.ReLU(), wl.nn.MaxPool2d(2))
    >>> {path: y.shape for path, y in get_activations(model, wl.ones((1, 8, 8, 1))).items()}
    {'0': (1, 6, 6, 4), '1': (1, 6, 6, 4), '2': (1, 3, 3, 4)}

    `layers` are paths or patterns such as "backbone.*"; by default all modules without modules inside. Slice `[..., i]`
    of a convolution's output is the activation map of filter i: how much it answered to each region. The model is
    called in evaluation mode and does not change; of a module that is called several times the last output counts.
    """
    patterns = None if layers is None else [layers] if isinstance(layers, str) else list(layers)
    found: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        for path, module in model.named_modules():
            if is_place(path, patterns) if patterns is not None else not module.children():
                stack.enter_context(module.register_forward_hook(_note(found, path)))
        stack.enter_context(kept_modes(model))
        stack.enter_context(no_grad())
        model.eval()(*inputs)
    if not found:
        raise ModuleError(
            f"get_activations: the model called no layer {'' if patterns is None else patterns}.",
            "a path that named_modules lists: " + ", ".join(repr(path) for path, _ in model.named_modules()[1:4]),
        )
    return found


def _note(found: dict[str, Any], path: str) -> Callable[..., None]:
    def note(module: Module, args: tuple[object, ...], output: object) -> None:
        found.pop(path, None)
        found[path] = output

    return note


def show_filters(layer: Conv2d | ArrayLike, most: int = 16, zoom: int | None = None) -> str:
    """The filters of a convolution as SVG: a column per filter, a row per input channel (three are one in colour).

    >>> import wonderland as wl
    >>> show_filters(wl.nn.Conv2d(1, 8, 5))[:4]
    '<svg'

    Middle grey is 0, white and black are the largest weight of either sign among those shown: at most `most` filters
    and input channels. `layer` is a `Conv2d` or a weight (height, width, in, out).
    """
    return image_grid(filter_pictures(layer, most), zoom=zoom)


def filter_pictures(layer: Conv2d | ArrayLike, most: int = 16) -> list[list[np.ndarray]]:
    """The pictures that `show_filters` shows, in rows: numbers from 0 to 1, a weight of 0 is one half.

    >>> import wonderland as wl
    >>> rows = filter_pictures(wl.ones((3, 3, 2, 4)))
    >>> len(rows), len(rows[0]), rows[0][0].shape
    (2, 4, (3, 3, 1))
    """
    weight = np.asarray(layer.weight if isinstance(layer, Conv2d) else layer, np.float64)
    if weight.ndim != 4 or not weight.size:
        raise ShapeError(f"show_filters: a weight of shape {weight.shape}.", "a Conv2d, or (height, width, in, out)")
    weight = weight[..., :most]
    weight = weight if weight.shape[2] == 3 else weight[:, :, :most]
    shares = 0.5 + 0.5 * weight / (np.abs(weight).max() or 1.0)
    if weight.shape[2] == 3:
        return [[shares[..., z] for z in range(weight.shape[3])]]
    return [[shares[:, :, [c], z] for z in range(weight.shape[3])] for c in range(weight.shape[2])]


def show_feature_maps(maps: ArrayLike, most: int = 64, zoom: int | None = None) -> str:
    """Feature maps (h, w, c) of one image as SVG, each from black (its least number) to white (its largest).

    >>> import wonderland as wl
    >>> maps = get_activations(wl.models.LeNet(), wl.random.normal((1, 28, 28, 1)), layers="backbone.1")
    >>> show_feature_maps(maps["backbone.1"])[:4]
    '<svg'

    At most `most` of them are shown, in rows of eight.
    """
    values = np.asarray(maps, np.float64)
    if values.ndim > 3 and set(values.shape[:-3]) == {1}:  # a batch of one
        values = values.reshape(values.shape[-3:])
    if values.ndim != 3 or not values.size:
        raise ShapeError(f"show_feature_maps: maps of shape {values.shape}.", "(height, width, channels) of one image")
    pictures = []
    for z in range(min(values.shape[-1], most)):
        least, largest = values[..., z].min(), values[..., z].max()
        pictures.append((values[..., z, None] - least) / ((largest - least) or 1.0))
    return image_grid(pictures, zoom=zoom)
