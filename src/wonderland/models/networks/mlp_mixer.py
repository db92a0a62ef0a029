"""MLP-Mixer: images as a set of patches, mixed by MLPs along tokens and along channels. Book, E.11.9, figure 11.7.

images (b, h, w, c)
  |  patches, each by the same linear layer      (b, n, e), n = (h/p)(w/p)
  |  blocks: MLP along the tokens of a channel, MLP along the channels of a token
  |  normalization, mean over tokens             (b, e)
  |  a linear layer
scores (b, classes)
"""

from __future__ import annotations

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, ShapeLike
from ...nn.layers.convolution import Conv2d
from ...nn.layers.dropout import own_stream
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LayerNorm
from ...nn.mixing.mixing_block import MixerBlock
from ...nn.module.containers import ModuleList
from ...nn.module.module import Module
from ...random.streams import Source
from .image_classifier import as_image_shape


class MLPMixer(Module):
    r"""Patches, `depth` blocks `wl.nn.MixerBlock`, the mean over tokens, and a linear layer. Book, section 11.3.

    >>> import wonderland as wl
    >>> model = wl.models.MLPMixer(10, (8, 8), patch=2, e=16, depth=2)
    >>> model(wl.ones((5, 8, 8, 1))).shape, model.embed(wl.ones((5, 8, 8, 1))).shape
    ((5, 10), (5, 16))
    >>> wl.eval_shape(lambda: wl.models.MLPMixer(1000, (224, 224, 3), 16, 512, 8)).num_parameters()  # Mixer-S/16
    18528264

    The weights along tokens are tied to images of one `image_size`, (height, width, channels) or (height, width), of
    which `patch` is the side of a patch. Blocks have `token_hidden` units along tokens (by default e/2) and
    `channel_hidden` along channels (4e). Without attention, and without positions: each token has its own weights.
    """

    def __init__(
        self,
        num_classes: int = 10,
        image_size: ShapeLike = (28, 28, 1),
        patch: int = 4,
        e: int = 64,
        depth: int = 4,
        token_hidden: int | None = None,
        channel_hidden: int | None = None,
        dropout: float = 0.0,
        key: Source = None,
    ) -> None:
        stream = own_stream(key)
        self.image_size = height, width, channels = as_image_shape("MLPMixer", image_size)
        side = as_int("MLPMixer", "patch", patch, 1)
        if height % side or width % side:
            raise ShapeError(
                f"MLPMixer: images of {height} x {width} pixels do not divide into patches of {side} x {side}.",
                "a patch that divides height and width, or wl.nn.functional.pad the images",
            )
        n = (height // side) * (width // side)
        self.patches = Conv2d(channels, e, side, stride=side, key=stream)
        self.blocks = ModuleList(
            MixerBlock(n, e, token_hidden, channel_hidden, dropout=dropout, key=stream)
            for _ in range(as_int("MLPMixer", "depth", depth, 0))
        )
        self.norm = LayerNorm(e)
        self.head = Linear(e, num_classes, key=stream)

    def embed(self, images: ArrayLike) -> Tensor:
        """The mean of the last tokens (..., e), of which the head makes scores."""
        images = as_real("MLPMixer", images)
        if images.shape[-3:] != self.image_size:
            raise ShapeError(
                f"MLPMixer: images of shape {images.shape}.", f"(..., {', '.join(map(str, self.image_size))})"
            )
        x = arrays.flatten(self.patches(images), -3, -2)  # (b, h/p, w/p, e) -> (b, n, e)
        for block in self.blocks:
            x = block(x)  # (b, n, e)
        return arrays.mean(self.norm(x), axis=-2)  # (b, e)

    def forward(self, images: ArrayLike) -> Tensor:
        return self.head(self.embed(images))  # (b, classes)

    def extra_repr(self) -> str:
        return f"image_size={self.image_size}"
