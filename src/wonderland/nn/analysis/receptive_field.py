"""Which part of the input an output depends on, by closed form and by gradients. Book, D.7.5."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ... import arrays
from ...arrays.conversion import as_shape
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import Array, KeyLike, ShapeLike
from ...random.continuous import normal
from ...random.streams import take_key
from ...transforms.reverse import grad
from ..functional.windows import as_padding, as_sizes
from ..layers.convolution import _ConvTranspose
from ..layers.global_pooling import _GlobalPool
from ..layers.patches import Fold
from ..layers.pooling import _AdaptivePool
from ..layers.reshaping import Flatten
from ..layers.residual import Residual
from ..layers.separable import _SeparableConv
from ..layers.upsampling import PixelShuffle, PixelUnshuffle, Upsample
from ..layers.windowed import Windowed
from ..module.containers import Sequential
from ..module.module import Module
from ..recurrent.layers import RecurrentLayers
from ..sequences.state_layer import StateLayer

__all__ = ["LayerField", "ReceptiveField", "receptive_field", "Footprint", "gradient_footprint"]

_WHOLE = (_AdaptivePool, _GlobalPool, Flatten)
_OTHERS = (_ConvTranspose, Upsample, PixelShuffle, PixelUnshuffle, Fold, RecurrentLayers, StateLayer)


class LayerField(NamedTuple):
    """The receptive field behind one layer: along each axis its size, the distance of neighbours, and its start."""

    path: str
    kind: str
    size: tuple[float, ...]
    jump: tuple[int, ...]
    start: tuple[int, ...]


class ReceptiveField(NamedTuple):
    """How many inputs along each axis an output sees, how far the fields of neighbours lie apart, and where they start.

    `start` is the index of the first input that output 0 sees; below 0 it lies in the padding. `layers` has the same
    for each layer on the way.
    """

    size: tuple[float, ...]
    jump: tuple[int, ...]
    start: tuple[int, ...]
    layers: list[LayerField]

    def window(self, *place: int) -> tuple[slice, ...]:
        """The inputs that the output at a place sees, along each axis; the padding is cut off at the beginning.

        >>> import wonderland as wl
        >>> wl.nn.receptive_field(wl.nn.Conv1d(1, 1, 3, stride=2, padding=1)).window(1)
        (slice(1, 4, None),)
        """
        firsts = [s + p * j for s, p, j in zip(self.start, place, self.jump, strict=True)]
        return tuple(
            slice(None) if math.isinf(n) else slice(max(a, 0), max(a + int(n), 0))
            for a, n in zip(firsts, self.size, strict=True)
        )

    def __repr__(self) -> str:
        return f"ReceptiveField(size={self.size}, jump={self.jump}, start={self.start})"


def receptive_field(model: Module) -> ReceptiveField:
    r"""The part of the input that an output depends on, from the settings of the layers. Book, D.7.5.

    >>> import wonderland as wl
    >>> nn = wl.nn
    >>> block = lambda: nn.Sequential(nn.Conv2d(4, 4, 3), wl.relu, nn.Conv2d(4, 4, 3), wl.relu, nn.MaxPool2d(2))
    >>> nn.receptive_field(nn.Sequential(block(), block())).size
    (16, 16)

    With windows of k places, r grows by (k - 1) dilation jump and the jump by the factor stride: linearly with depth
    for plain convolutions, exponentially with dilations 1, 2, 4, .. The model is a layer with windows or a
    `Sequential` of them and of functions of single places, `Residual` included. Global pooling and `Flatten` see
    everything: inf. See `gradient_footprint` for any model.
    """
    axes = next((m.axes for m in model.modules() if isinstance(m, (Windowed, _SeparableConv, _GlobalPool))), None)
    if axes is None:
        raise InputError(f"receptive_field: {_kind(model)} has no layer with windows.", "a model with convolutions")
    layers: list[LayerField] = []
    state = _follow(model, "", LayerField("", "input", (1,) * axes, (1,) * axes, (0,) * axes), layers)
    return ReceptiveField(state.size, state.jump, state.start, layers)


def _follow(layer: object, path: str, state: LayerField, layers: list[LayerField]) -> LayerField:
    """The field behind a layer, given that before it."""
    if isinstance(layer, Sequential):
        for i, inner in enumerate(layer):
            state = _follow(inner, _join(path, str(i)), state, layers)
        return state
    if isinstance(layer, _SeparableConv):
        return _follow(layer.depthwise, _join(path, "depthwise"), state, layers)
    if isinstance(layer, Residual):
        state = _union(
            _follow(layer.f, _join(path, "f"), state, layers),
            state if layer.shortcut is None else _follow(layer.shortcut, _join(path, "shortcut"), state, layers),
        )
    elif isinstance(layer, _WHOLE):
        state = state._replace(size=(math.inf,) * len(state.size))
    elif isinstance(layer, Windowed) and not isinstance(layer, _OTHERS):
        state = _through(layer, state)
    elif any(isinstance(m, (Windowed, *_OTHERS)) for m in (layer.modules() if isinstance(layer, Module) else [])):
        raise InputError(
            f"receptive_field: which places {_kind(layer)} at {path!r} sees is not known.",
            "a Sequential of convolutions and pooling, or gradient_footprint(model, shape) for any model",
        )
    else:
        return state
    state = state._replace(path=path, kind=_kind(layer))
    layers.append(state)
    return state


def _through(layer: Windowed, state: LayerField) -> LayerField:
    name, axes = _kind(layer), layer.axes
    if axes != len(state.size):
        raise InputError(
            f"receptive_field: {name} has {axes} spatial axes after layers with {len(state.size)}.",
            "layers for the same kind of signal, all 1d, 2d or 3d",
        )
    window, stride, dilation = (
        as_sizes(name, what, getattr(layer, what, 1), axes) for what in ("kernel_size", "stride", "dilation")
    )
    padding = as_padding(name, getattr(layer, "padding", 0), window, stride, dilation)
    size, jump = np.array(state.size, float), np.array(state.jump)
    size = size + (np.array(window) - 1) * np.array(dilation) * jump
    start = np.array(state.start) - np.array([low for low, _ in padding]) * jump
    return LayerField(
        "",
        "",
        tuple(n if math.isinf(n) else int(n) for n in size.tolist()),
        tuple((jump * np.array(stride)).tolist()),
        tuple(start.tolist()),
    )


def _union(a: LayerField, b: LayerField) -> LayerField:
    starts = tuple(map(min, a.start, b.start))
    ends = [max(s + n, t + m) for s, n, t, m in zip(a.start, a.size, b.start, b.size, strict=True)]
    return LayerField("", "", tuple(e - s for s, e in zip(starts, ends, strict=True)), a.jump, starts)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _kind(layer: object) -> str:
    return type(layer).__name__ if isinstance(layer, Module) else getattr(layer, "__name__", type(layer).__name__)


# --- by gradients


class Footprint(NamedTuple):
    """The mean size of the derivatives of one output by all inputs (*spatial), and the box where it is not 0."""

    values: Array
    box: tuple[slice, ...]

    @property
    def size(self) -> tuple[int, ...]:
        """The sides of the box."""
        return tuple(s.stop - s.start for s in self.box)


def gradient_footprint(
    model: Callable[..., Tensor],
    input_shape: ShapeLike,
    place: ShapeLike | None = None,
    examples: int = 4,
    key: KeyLike = None,
) -> Footprint:
    r"""\(\sum_c |\partial y_p / \partial x_{ijc}|\), a mean over random inputs: the effective receptive field.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Conv1d(1, 4, 3), wl.tanh, wl.nn.Conv1d(4, 1, 3))
    >>> wl.nn.gradient_footprint(model, (11, 1)).size
    (5,)

    `input_shape` is (*spatial, channels); `place` is a place of the output, by default its centre, and y there is the
    sum of its channels. The values show that inputs in the middle of the receptive field count most, as more paths
    lead from there to the output. Works for any model of single examples with a batch in front. Book, D.7.5.
    """
    shape = as_shape("gradient_footprint", input_shape)
    x = normal((examples, *shape), key=take_key("gradient_footprint", key))
    spatial = tuple(arrays.asarray(model(x)).shape[1:-1])
    place = tuple(n // 2 for n in spatial) if place is None else place
    at = place if isinstance(place, (tuple, list)) else (place,)
    if len(at) != len(spatial) or not all(-n <= i < n for i, n in zip(at, spatial, strict=True)):
        raise InputError(f"gradient_footprint: place={place} for an output with places {spatial}.", "one of them")
    found = grad(lambda x: arrays.sum(model(x)[(slice(None), *at)]))(x)
    values = np.abs(np.asarray(found)).sum(-1).mean(0)
    where = np.nonzero(values)
    box = tuple(slice(int(i.min()), int(i.max()) + 1) if i.size else slice(0, 0) for i in where)
    return Footprint(values, box)
