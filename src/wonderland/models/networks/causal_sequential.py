"""A stack of layers that may not look into the future. Book, definition D.8.1."""

from __future__ import annotations

from ...core.errors import InputError
from ...nn.layers.convolution import Conv1d
from ...nn.layers.normalization import BatchNorm, GroupNorm
from ...nn.layers.reshaping import Flatten
from ...nn.layers.windowed import Windowed
from ...nn.module.containers import Layer, Sequential
from ...nn.module.module import Module
from ...nn.recurrent.bidirectional import Bidirectional
from ...nn.recurrent.layers import RecurrentLayers


class CausalSequential(Sequential):
    r"""A `Sequential` over (..., time, channels) in which \(H_i\) depends on \(X_1, \dots, X_i\) only. Book, D.8.1.

    >>> import wonderland as wl
    >>> model = wl.models.CausalSequential(
    ...     wl.nn.Conv1d(1, 8, 3, padding="causal"), wl.relu, wl.nn.Conv1d(8, 1, 3, padding="causal", dilation=2)
    ... )
    >>> model(wl.ones((2, 20, 1))).shape
    (2, 20, 1)

    The composition of causal layers is causal. Layers that are not raise: convolutions that reach ahead or have a
    stride, pooling, recurrent layers in both directions, and normalization over time. Functions and layers of your own
    are trusted.
    """

    def __init__(self, *layers: Layer) -> None:
        super().__init__(*layers)
        for path, layer in self.named_modules():
            if reason := _sees_ahead(layer):
                raise InputError(
                    f"CausalSequential: layer {path}, {type(layer).__name__}({layer.extra_repr()}), {reason}.",
                    'Conv1d(..., padding="causal") with dilation instead of pooling; LayerNorm; one direction',
                )


def _sees_ahead(layer: Module) -> str:
    """Why a layer is not causal, or nothing."""
    if isinstance(layer, Conv1d):
        ((_, ahead),) = layer._padding()
        if ahead or layer._sizes("stride") != (1,) or layer.padding_mode != "zeros":
            return "sees what comes later or changes the length"
        if layer._padding()[0][0] != layer._sizes("dilation")[0] * (layer._sizes("kernel_size")[0] - 1):
            return "makes the sequence shorter, so that outputs are not at the place of their last input"
        return ""
    if isinstance(layer, (Windowed, Flatten)):
        return "mixes times or changes their number"
    if isinstance(layer, (BatchNorm, GroupNorm)):
        return "takes means over time"
    both = isinstance(layer, Bidirectional) or (isinstance(layer, RecurrentLayers) and layer.bidirectional)
    return "runs backwards, too" if both else ""
