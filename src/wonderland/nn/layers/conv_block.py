"""The block that convolutional networks repeat: convolutions and activations, then a pooling. Book, section 7.2.1."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ...core.arguments import as_int, shown
from ...core.errors import InputError
from ...core.typing import ShapeLike
from ...random.streams import Source
from ..module.containers import Sequential
from ..module.module import Module
from .convolution import Conv2d
from .dropout import own_stream
from .fully_connected import ActivationLike, as_activation
from .normalization import BatchNorm, BatchNorm2d, GroupNorm, InstanceNorm2d, LayerNorm
from .pooling import MaxPool2d
from .residual import Residual

__all__ = ["ConvBlock"]

IMAGE_NORMS: dict[str, Callable[[int], Module]] = {
    "batch": BatchNorm2d,
    "layer": LayerNorm,
    "group": functools.partial(GroupNorm, 4),
    "instance": InstanceNorm2d,
}


class ConvBlock(Sequential):
    r"""MaxPool \(\circ\ \phi\ \circ\) Conv \(\circ \dots \circ\ \phi\ \circ\) Conv on images. Book, section 7.2.1.

    >>> import wonderland as wl
    >>> block = wl.nn.ConvBlock(3, 8)
    >>> block
    ConvBlock(
      0: Conv2d(3, 8, kernel_size=3, padding='same')
      1: ReLU()
      2: Conv2d(8, 8, kernel_size=3, padding='same')
      3: ReLU()
      4: MaxPool2d(kernel_size=2)
    )
    >>> block(wl.ones((2, 32, 32, 3))).shape
    (2, 16, 16, 8)

    `convs` convolutions keep height and width, the pooling divides them by `pool` (None: there is none). `norm` is
    "batch", "layer", "group", "instance" or a function of the channels, and stands before each activation; a
    convolution before batch normalization has no bias. With `residual` the input is added (through a 1 x 1 convolution
    if channels differ) before the last activation.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        convs: int = 2,
        kernel_size: ShapeLike = 3,
        pool: int | None = 2,
        norm: str | Callable[[int], Module] | None = None,
        activation: ActivationLike = "relu",
        residual: bool = False,
        key: Source = None,
    ) -> None:
        stream = own_stream(key)
        path: list[Module] = []
        before = in_channels
        for _ in range(as_int("ConvBlock", "convs", convs, 1)):
            normal = _as_norm(norm, out_channels)
            bias = not isinstance(normal, BatchNorm)
            path.append(Conv2d(before, out_channels, kernel_size, padding="same", bias=bias, key=stream))
            path += [part for part in (normal, as_activation("ConvBlock", activation)) if part is not None]
            before = out_channels
        if residual:
            *path, last = path
            shortcut = None if in_channels == out_channels else Conv2d(in_channels, out_channels, 1, key=stream)
            path = [Residual(Sequential(*path), shortcut), last]
        super().__init__(*path, *([MaxPool2d(pool)] if pool is not None else []))


def _as_norm(norm: str | Callable[[int], Module] | None, channels: int) -> Module | None:
    if norm is None or callable(norm):
        return None if norm is None else norm(channels)
    if norm not in IMAGE_NORMS:
        raise InputError(
            f"ConvBlock: norm={shown(norm)}.", f"one of {', '.join(map(repr, IMAGE_NORMS))}, a function, or None"
        )
    return IMAGE_NORMS[norm](channels)
