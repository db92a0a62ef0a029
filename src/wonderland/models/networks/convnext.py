"""ConvNeXt: a convolutional network with the habits of transformers. Book, section 9.4.1.

The book shows this block under the name ResNeXt. That is another network: a `BottleneckBlock` with many `groups`.

    images (b, h, w, 3)
      |  patches of 4 x 4 as vectors, LayerNorm          (b, h/4, w/4, 96)
      |  stage 1      blocks x + f(x)
      |  LayerNorm, 2 x 2 convolution of stride 2        (b, h/8, w/8, 192)
      |  stage 2 ...                                     up to (b, h/32, w/32, 768)
      |  mean over pixels, LayerNorm, a linear layer
    scores (b, classes)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.arguments import as_int, as_list
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...nn.activations.activations import GELU
from ...nn.init.schemes import trunc_normal
from ...nn.layers.convolution import Conv2d
from ...nn.layers.dropout import DropPath, own_stream
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LayerNorm
from ...nn.layers.residual import LayerScale, Residual
from ...nn.module.containers import Layer, Sequential
from ...nn.module.module import Module
from ...random.streams import Source
from .image_classifier import ImageClassifier


class ConvNeXtBlock(Module):
    r"""\(x + W_2\,\mathrm{GELU}(W_1\,\mathrm{LN}(\mathrm{DepthwiseConv}(x)))\). Book, section 9.4.1.

    >>> import wonderland as wl
    >>> block = wl.models.ConvNeXtBlock(96)
    >>> f = block.residual.f
    >>> f[0].num_parameters(), f[2].num_parameters() + f[4].num_parameters()
    (4800, 74208)

    The depthwise convolution (one `kernel_size` x `kernel_size` filter per channel) mixes pixels, the two linear layers
    mix channels and widen them `expansion` times in between: \((k^2+1)c + (ec+1)c + (c+1)ec\) parameters, 2c of the
    normalization, and c numbers that scale the path if `layer_scale` is not None. `drop_path` is the probability to
    leave the path out of an example while training.
    """

    def __init__(
        self,
        channels: int,
        kernel_size: int = 7,
        expansion: int = 4,
        drop_path: float = 0.0,
        layer_scale: float | None = 1e-6,
        key: Source = None,
    ) -> None:
        c, stream = as_int("ConvNeXtBlock", "channels", channels, 1), own_stream(key)
        wide = as_int("ConvNeXtBlock", "expansion", expansion, 1) * c
        start: dict[str, Any] = {"key": stream, "init": trunc_normal(std=0.02), "bias_init": "zeros"}
        path: list[Layer] = [
            Conv2d(c, c, kernel_size, padding="same", groups=c, **start),  # (b, h, w, c)
            LayerNorm(c, eps=1e-6),
            Linear(c, wide, **start),  # a 1 x 1 convolution, (b, h, w, 4c)
            GELU(),
            Linear(wide, c, **start),  # (b, h, w, c)
        ]
        if layer_scale is not None:
            path.append(LayerScale(c, layer_scale))
        if drop_path:
            path.append(DropPath(drop_path))
        self.residual = Residual(Sequential(*path))

    def forward(self, x: ArrayLike) -> Tensor:
        return self.residual(x)


class ConvNeXt(ImageClassifier):
    """Patches, stages of `ConvNeXtBlock`s with halvings between them, the mean over pixels and a head. Book, 9.4.1.

    >>> import wonderland as wl
    >>> model = wl.models.ConvNeXt([1, 1], [8, 16], num_classes=10, in_channels=1, patch=2, kernel_size=3)
    >>> model(wl.ones((2, 28, 28, 1))).shape
    (2, 10)

    `depths` are the numbers of blocks of the stages and `channels` their widths; `patch` is the side of the squares
    that the stem turns into vectors. `drop_path` grows linearly from 0 at the first block to its value at the last one.
    Other settings as in `ConvNeXtBlock`.
    """

    def __init__(
        self,
        depths: Sequence[int] = (3, 3, 9, 3),
        channels: Sequence[int] = (96, 192, 384, 768),
        num_classes: int = 1000,
        in_channels: int = 3,
        patch: int = 4,
        kernel_size: int = 7,
        expansion: int = 4,
        drop_path: float = 0.0,
        layer_scale: float | None = 1e-6,
        key: Source = None,
    ) -> None:
        stream = own_stream(key)
        counts, widths = (as_list("ConvNeXt", what, n) for what, n in (("depths", depths), ("channels", channels)))
        if len(counts) != len(widths) or not counts:
            raise InputError(
                f"ConvNeXt: {len(counts)} depths and {len(widths)} channels.", "one of each for every stage"
            )
        start: dict[str, Any] = {"key": stream, "init": trunc_normal(std=0.02), "bias_init": "zeros"}
        side = as_int("ConvNeXt", "patch", patch, 1)
        total, done = sum(counts), 0
        stages: list[Layer] = [
            Sequential(Conv2d(in_channels, widths[0], side, stride=side, **start), LayerNorm(widths[0], eps=1e-6))
        ]
        for i, (depth, width) in enumerate(zip(counts, widths, strict=True)):
            if i:
                before = widths[i - 1]
                stages.append(Sequential(LayerNorm(before, eps=1e-6), Conv2d(before, width, 2, stride=2, **start)))
            rates = [drop_path * (done + j) / max(total - 1, 1) for j in range(as_int("ConvNeXt", "a depth", depth, 1))]
            done += depth
            row = [ConvNeXtBlock(width, kernel_size, expansion, rate, layer_scale, key=stream) for rate in rates]
            stages.append(Sequential(*row))
        head = Sequential(LayerNorm(widths[-1], eps=1e-6), Linear(widths[-1], num_classes, **start))
        super().__init__(Sequential(*stages), head)


def convnext_tiny(num_classes: int = 1000, **settings: Any) -> ConvNeXt:
    """ConvNeXt-T: 3, 3, 9 and 3 blocks of 96 to 768 channels, 28,589,128 parameters for 1000 classes.

    >>> import wonderland as wl
    >>> wl.eval_shape(lambda: wl.models.convnext_tiny()).num_parameters()
    28589128
    """
    return ConvNeXt(num_classes=num_classes, **settings)
