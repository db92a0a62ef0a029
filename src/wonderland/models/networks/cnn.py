"""The convolutional network of the book's chapter 7, and its larger relatives of chapter 9. Book, section 7.2.2.

images (b, h, w, c)
  |  block 1      conv, activation, conv, activation, pool      (b, h/2, w/2, 32)
  |  block 2      the same with more channels                   (b, h/4, w/4, 64)
  |  mean over pixels                                           (b, 64)
  |  linear layers
scores (b, classes)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.arguments import as_list
from ...core.errors import InputError, ShapeError
from ...core.typing import ShapeLike
from ...nn.layers.conv_block import ConvBlock
from ...nn.layers.dropout import Dropout, own_stream
from ...nn.layers.fully_connected import ActivationLike
from ...nn.module.containers import Sequential
from ...nn.module.module import Module
from ...random.streams import Source
from .image_classifier import ImageClassifier, as_image_shape
from .mlp import MLP


class CNN(ImageClassifier):
    r"""Blocks of convolutions and pooling, the mean over pixels, and an MLP. Book, E.7.10 to E.7.12, figure 7.4.

    >>> import wonderland as wl
    >>> model = wl.models.CNN(10, in_channels=3, channels=[8, 16])
    >>> model.summary((1, 32, 32, 3)).rows[-1].shape, model.num_parameters()
    ((1, 10), 4466)
    >>> model(wl.ones((2, 28, 20, 3))).shape  # images of any size
    (2, 10)

    `channels` are those of the blocks; each block has `convs` convolutions and halves height and width. To make it
    larger: more `channels` (depth and width), `norm="batch"`, `dropout` (before the last layers), `residual=True`.
    `hidden` are widths of an MLP in the place of the linear head. With `pool="flatten"` the head sees where things are,
    but takes images of one size only: `image_size`. See `wl.nn.ConvBlock` for the other settings.
    """

    def __init__(
        self,
        num_classes: int = 10,
        in_channels: int = 3,
        channels: Sequence[int] = (32, 64),
        convs: int = 2,
        kernel_size: ShapeLike = 3,
        norm: str | Callable[[int], Module] | None = None,
        activation: ActivationLike = "relu",
        dropout: float = 0.0,
        residual: bool = False,
        hidden: int | Sequence[int] = (),
        pool: str = "mean",
        image_size: ShapeLike | None = None,
        key: Source = None,
    ) -> None:
        stream = own_stream(key)
        widths = as_list("CNN", "channels", channels)
        if not widths:
            raise InputError("CNN: there is no block.", "channels=[32, 64]")
        blocks = [
            ConvBlock(before, after, convs, kernel_size, 2, norm, activation, residual, key=stream)
            for before, after in zip([in_channels, *widths], widths, strict=False)
        ]
        places = 1
        if pool == "flatten":
            if image_size is None:
                raise InputError("CNN: pool='flatten' needs the size of the images.", "image_size=(28, 28)")
            height, width, _ = as_image_shape("CNN", image_size)
            places = (height >> len(widths)) * (width >> len(widths))
            if not places:
                raise ShapeError(
                    f"CNN: images of {height} x {width} pixels are too small for {len(widths)} poolings.",
                    "fewer channels",
                )
        head = MLP(widths[-1] * places, hidden, num_classes, activation, key=stream)
        super().__init__(Sequential(*blocks), Sequential(Dropout(dropout), head) if dropout else head, pool)
