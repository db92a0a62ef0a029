"""Residual networks for images. Book, section 9.4.1.

images (b, h, w, c)
  |  stem            a few layers without shortcut that make the image smaller, (b, h/4, w/4, 64)
  |  stage 1         blocks x + f(x) of 64 channels
  |  stage 2         128 channels; its first block halves height and width
  |  stage 3         256
  |  stage 4         512, (b, h/32, w/32, 512)
  |  mean over pixels, a linear layer
scores (b, classes)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...core.arguments import as_int, as_list, shown
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import KeyLike
from ...nn.activations.piecewise import ReLU
from ...nn.layers.convolution import Conv2d
from ...nn.layers.dropout import Dropout, own_stream
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import BatchNorm2d
from ...nn.layers.pooling import MaxPool2d
from ...nn.layers.residual import BasicBlock, BottleneckBlock
from ...nn.module.containers import Sequential
from ...nn.module.module import Module
from ...random.streams import Source
from .image_classifier import ImageClassifier

BLOCKS: dict[str, Callable[..., Module]] = {"basic": BasicBlock, "bottleneck": BottleneckBlock}


class ResNet(ImageClassifier):
    r"""A stem, stages of residual blocks, the mean over pixels and a linear layer. Book, section 9.4.1.

    >>> import wonderland as wl
    >>> model = wl.models.ResNet([1, 1], [8, 16], num_classes=10, in_channels=1, stem="small")
    >>> model(wl.ones((2, 28, 28, 1))).shape, model.embed(wl.ones((2, 28, 28, 1))).shape
    ((2, 10), (2, 16))
    >>> [path for path, module in model.named_modules() if isinstance(module, wl.nn.BasicBlock)]
    ['backbone.1.0', 'backbone.2.0']

    `depths` are the numbers of blocks of the stages, `channels` those of their outputs; the first block of every stage
    but the first has stride 2. `block` is "basic" (two 3 x 3 convolutions), "bottleneck" (with `reduction` 4), or a
    function of (channels, out_channels, stride, key=...). `stem` is "large" (7 x 7 with stride 2 and a pooling: a
    quarter of the height and width), "half" (3 x 3 with stride 2), "small" (3 x 3, the size stays), or a module
    together with `stem_channels`.

    `post_act` puts a ReLU after each sum, as the first residual networks did; the book leaves it out. `zero_init`
    starts the last scale of every block from 0, so that the network starts as its shortcuts. `dropout` stands before
    the head. A basic block has \(18c^2 + 4c\) parameters; see `resnet18` for the usual settings.
    """

    def __init__(
        self,
        depths: Sequence[int] = (2, 2, 2, 2),
        channels: Sequence[int] = (64, 128, 256, 512),
        num_classes: int = 1000,
        in_channels: int = 3,
        block: str | Callable[..., Module] = "basic",
        stem: str | Callable[..., Tensor] = "large",
        post_act: bool = True,
        zero_init: bool = True,
        dropout: float = 0.0,
        stem_channels: int | None = None,
        key: Source = None,
    ) -> None:
        stream = own_stream(key)
        blocks, widths = (as_list("ResNet", what, n) for what, n in (("depths", depths), ("channels", channels)))
        if len(blocks) != len(widths) or not blocks:
            raise InputError(f"ResNet: {len(blocks)} depths and {len(widths)} channels.", "one of each for every stage")
        make = _as_block(block, post_act, zero_init)
        if stem_channels is None:
            stem_channels = widths[0] // 4 if block == "bottleneck" else widths[0]
        before = as_int("ResNet", "stem_channels", stem_channels, 1)
        stages = [_as_stem(stem, in_channels, before, stream)]
        for i, (depth, width) in enumerate(zip(blocks, widths, strict=True)):
            strides = [1 if i == 0 else 2] + [1] * (as_int("ResNet", "a depth", depth, 1) - 1)
            inputs = [before] + [width] * (depth - 1)
            row = [make(c, width, stride, key=stream) for c, stride in zip(inputs, strides, strict=True)]
            stages.append(Sequential(*row))
            before = width
        head = Linear(before, num_classes, key=stream)
        super().__init__(Sequential(*stages), Sequential(Dropout(dropout), head) if dropout else head)


def _as_block(block: str | Callable[..., Module], post_act: bool, zero_init: bool) -> Callable[..., Module]:
    if callable(block):
        return block
    if block not in BLOCKS:
        raise InputError(f"ResNet: block={shown(block)}.", f"{', '.join(map(repr, BLOCKS))}, or a function")
    return functools.partial(BLOCKS[block], post_act=post_act, zero_init=zero_init)


def _as_stem(stem: str | Callable[..., Tensor], in_channels: int, channels: int, key: KeyLike) -> Callable[..., Tensor]:
    if callable(stem):
        return stem
    if stem in ("small", "half"):
        stride = 2 if stem == "half" else 1
        first = Conv2d(in_channels, channels, 3, stride, padding=1, bias=False, key=key)  # (b, h/stride, w/stride, c)
        return Sequential(first, BatchNorm2d(channels), ReLU())
    if stem == "large":
        first = Conv2d(in_channels, channels, 7, stride=2, padding=3, bias=False, key=key)  # (b, h/2, w/2, c)
        return Sequential(first, BatchNorm2d(channels), ReLU(), MaxPool2d(3, stride=2, padding=1))  # (b, h/4, w/4, c)
    raise InputError(f"ResNet: stem={shown(stem)}.", "'large', 'half', 'small' or a module")


def resnet18(num_classes: int = 1000, **settings: Any) -> ResNet:
    """ResNet-18: 2 basic blocks in each of four stages, 11,689,512 parameters for 1000 classes.

    >>> import wonderland as wl
    >>> model = wl.eval_shape(lambda: wl.models.resnet18())  # without making the numbers
    >>> model.num_parameters()
    11689512

    Settings as in `ResNet`. For 32 x 32 images, `stem="small"`.
    """
    return ResNet((2, 2, 2, 2), num_classes=num_classes, **settings)


def resnet34(num_classes: int = 1000, **settings: Any) -> ResNet:
    """ResNet-34: 3, 4, 6 and 3 basic blocks, 21,797,672 parameters for 1000 classes.

    >>> import wonderland as wl
    >>> wl.eval_shape(lambda: wl.models.resnet34()).num_parameters()
    21797672
    """
    return ResNet((3, 4, 6, 3), num_classes=num_classes, **settings)


def resnet50(num_classes: int = 1000, **settings: Any) -> ResNet:
    """ResNet-50: 3, 4, 6 and 3 bottleneck blocks, 25,557,032 parameters for 1000 classes.

    >>> import wonderland as wl
    >>> wl.eval_shape(lambda: wl.models.resnet50()).num_parameters()
    25557032
    """
    return ResNet((3, 4, 6, 3), (256, 512, 1024, 2048), num_classes, block="bottleneck", **settings)


def cifar_resnet(depth: int = 20, num_classes: int = 10, **settings: Any) -> ResNet:
    r"""The networks for 32 x 32 images: three stages of n blocks with 16, 32 and 64 channels, depth = 6n + 2.

    >>> import wonderland as wl
    >>> [wl.eval_shape(lambda: wl.models.cifar_resnet(depth)).num_parameters() for depth in (20, 56)]
    [272474, 855770]

    The shortcuts that change the number of channels are 1 x 1 convolutions here, as in the book.
    """
    blocks, rest = divmod(as_int("cifar_resnet", "depth", depth, 8) - 2, 6)
    if rest:
        raise InputError(f"cifar_resnet: depth={depth} is not 6n + 2.", "20, 32, 44, 56 or 110")
    return ResNet((blocks,) * 3, (16, 32, 64), num_classes, **{"stem": "small", **settings})


def small_resnet(
    num_classes: int = 10, in_channels: int = 1, channels: Sequence[int] = (16, 32, 64), depth: int = 1, **settings: Any
) -> ResNet:
    """A network for images of about 28 x 28 that a laptop trains in a minute: `depth` blocks per stage, stem "half".

    >>> import wonderland as wl
    >>> model = wl.models.small_resnet()
    >>> model(wl.ones((2, 28, 28, 1))).shape, model.num_parameters()
    ((2, 10), 77754)
    """
    depths = (as_int("small_resnet", "depth", depth, 1),) * len(as_list("small_resnet", "channels", channels))
    return ResNet(depths, channels, num_classes, in_channels, **{"stem": "half", **settings})
