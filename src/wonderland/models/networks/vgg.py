"""VGG networks: 3 x 3 convolutions only, in blocks whose channels double. Book, section 7.2.1.

images (b, 224, 224, 3)
  |  block 1      2 convolutions of 64 channels, pool       (b, 112, 112, 64)
  |  block 2      2 of 128                                  (b, 56, 56, 128)
  |  block 3      3 of 256                                  (b, 28, 28, 256)
  |  block 4      3 of 512                                  (b, 14, 14, 512)
  |  block 5      3 of 512: no more doubling                (b, 7, 7, 512)
  |  linear 4096, linear 4096, linear 1000
scores (b, 1000)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.arguments import as_int, as_list
from ...core.errors import InputError
from ...nn.activations.piecewise import ReLU
from ...nn.layers.conv_block import ConvBlock
from ...nn.layers.dropout import Dropout, own_stream
from ...nn.layers.linear import Linear
from ...nn.layers.pooling import AdaptiveAvgPool2d
from ...nn.module.containers import Layer, Sequential
from ...nn.module.module import Module
from ...random.streams import Source
from .image_classifier import ImageClassifier

#: convolutions in the five blocks, by the number of layers with weights
CONVS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
MOST = 512  # channels


class VGG(ImageClassifier):
    """Blocks of 3 x 3 convolutions; channels are constant in a block and double from block to block. Book, 7.2.1.

    >>> import wonderland as wl
    >>> model = wl.models.VGG([1, 2], channels=8, num_classes=10, in_channels=1, hidden=[], places=None)
    >>> model(wl.ones((2, 28, 28, 1))).shape, [block[0].out_channels for block in model.backbone]
    ((2, 10), [8, 16])

    `convs` are the numbers of convolutions of the blocks, `channels` those of the first block, doubled up to 512, or a
    list of all. `norm` ("batch") stands after each convolution. The head has linear layers of the widths `hidden` with
    dropout, and sees the last maps averaged to `places` x `places`, or their mean over all pixels (None).
    """

    def __init__(
        self,
        convs: Sequence[int] = CONVS[16],
        channels: int | Sequence[int] = 64,
        num_classes: int = 1000,
        in_channels: int = 3,
        norm: str | Callable[[int], Module] | None = None,
        hidden: Sequence[int] = (4096, 4096),
        places: int | None = 7,
        dropout: float = 0.5,
        key: Source = None,
    ) -> None:
        stream = own_stream(key)
        counts = as_list("VGG", "convs", convs)
        if isinstance(channels, int):
            widths = [min(as_int("VGG", "channels", channels, 1) << i, max(MOST, channels)) for i in range(len(counts))]
        else:
            widths = as_list("VGG", "channels", channels)
        if len(widths) != len(counts) or not counts:
            raise InputError(f"VGG: {len(counts)} convs and {len(widths)} channels.", "one of each for every block")
        layers: list[Layer] = [
            ConvBlock(before, after, n, norm=norm, key=stream)
            for n, before, after in zip(counts, [in_channels, *widths], widths, strict=False)
        ]
        if places is not None:
            layers.append(AdaptiveAvgPool2d(as_int("VGG", "places", places, 1)))
        head: list[Layer] = []
        before = widths[-1] * (places or 1) ** 2
        for width in hidden:
            head += [Linear(before, width, key=stream), ReLU(), Dropout(dropout)]
            before = width
        head.append(Linear(before, num_classes, key=stream))
        super().__init__(Sequential(*layers), Sequential(*head), "mean" if places is None else "flatten")


def vgg(layers: int = 16, num_classes: int = 1000, **settings: Any) -> VGG:
    """VGG-11, -13, -16 or -19, by the number of layers with weights.

    >>> import wonderland as wl
    >>> [wl.eval_shape(lambda: wl.models.vgg(n)).num_parameters() for n in (11, 16)]
    [132863336, 138357544]

    Nine tenths of the parameters are in the first two linear layers. Settings as in `VGG`.
    """
    if layers not in CONVS:
        raise InputError(f"vgg: layers={layers!r}.", f"one of {', '.join(map(str, CONVS))}")
    return VGG(CONVS[layers], num_classes=num_classes, **settings)
