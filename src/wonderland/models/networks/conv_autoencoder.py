"""Autoencoders of images: convolutions down to a small code, transposed convolutions back up. Book, chapter 7.

images (b, 28, 28, 1)
  |  conv 3 x 3, stride 2         (b, 14, 14, 16)
  |  conv 3 x 3, stride 2         (b, 7, 7, 32)
  |  flatten, linear              (b, code)              only if a `code` is wanted
  |  linear, unflatten            (b, 7, 7, 32)
  |  transposed conv, stride 2    (b, 14, 14, 16)
  |  transposed conv, stride 2    (b, 28, 28, 1)
images (b, 28, 28, 1)
"""

from __future__ import annotations

from collections.abc import Sequence

from ...arrays.conversion import as_tensor
from ...core.arguments import as_int, as_list
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, ShapeLike
from ...nn.layers.convolution import Conv2d, ConvTranspose2d
from ...nn.layers.dropout import own_stream
from ...nn.layers.fully_connected import ActivationLike, as_activation
from ...nn.layers.linear import Linear
from ...nn.layers.reshaping import Flatten, Unflatten
from ...nn.module.containers import Layer, Sequential
from ...random.streams import Source
from .autoencoder import Autoencoder
from .image_classifier import as_image_shape


class ConvAutoencoder(Autoencoder):
    """Strided convolutions as the encoder, their transposes in reverse order as the decoder.

    >>> import wonderland as wl
    >>> model = wl.models.ConvAutoencoder(1, [8, 16])
    >>> x = wl.ones((2, 28, 28, 1))
    >>> model.encode(x).shape, model(x).shape
    ((2, 7, 7, 16), (2, 28, 28, 1))
    >>> model = wl.models.ConvAutoencoder(1, [8, 16], code=10, image_size=(28, 28))
    >>> model.encode(x).shape, model(x).shape
    ((2, 10), (2, 28, 28, 1))

    Each of the `channels` halves height and width, so that they have to be multiples of \\(2^n\\). Without a `code` the
    code is an image itself and images of any such size fit; with one it is a vector, and `image_size` says how large
    images are. The last layer has no activation. Train it with `fit`, as any `Autoencoder`.
    """

    def __init__(
        self,
        in_channels: int = 1,
        channels: Sequence[int] = (16, 32),
        code: int | None = None,
        image_size: ShapeLike | None = None,
        activation: ActivationLike = "relu",
        key: Source = None,
    ) -> None:
        name, stream = "ConvAutoencoder", own_stream(key)
        widths = [as_int(name, "a number of channels", c, 1) for c in as_list(name, "channels", channels)]
        if not widths:
            raise InputError(f"{name}: there is no layer.", "channels=[16, 32]")
        sizes = [in_channels, *widths]
        down: list[Layer] = []
        up: list[Layer] = []
        for before, after in zip(sizes, widths, strict=False):
            down += [Conv2d(before, after, 3, stride=2, padding=1, key=stream), as_activation(name, activation)]
            back = ConvTranspose2d(after, before, 3, stride=2, padding=1, output_padding=1, key=stream)
            up = [back, *([as_activation(name, activation)] if up else []), *up]
        self.factor = 2 ** len(widths)
        if code is not None:
            if image_size is None:
                raise InputError(f"{name}: a code needs the size of the images.", "image_size=(28, 28)")
            height, width, _ = as_image_shape(name, image_size)
            self._check(height, width)
            last = (height // self.factor, width // self.factor, widths[-1])
            flat = last[0] * last[1] * last[2]
            down += [Flatten(-3), Linear(flat, as_int(name, "code", code, 1), key=stream)]
            up = [Linear(code, flat, key=stream), as_activation(name, activation), Unflatten(-1, last), *up]
        super().__init__(Sequential(*down), Sequential(*up))

    def forward(self, x: ArrayLike) -> Tensor:
        x = as_tensor("ConvAutoencoder", x)
        if x.ndim >= 3:
            self._check(*x.shape[-3:-1])
        return self.decoder(self.encoder(x))

    def _check(self, height: int, width: int) -> None:
        if height % self.factor or width % self.factor:
            raise ShapeError(
                f"ConvAutoencoder: images of {height} x {width} pixels, which {self.factor} does not divide.",
                f"multiples of {self.factor}: pad them with wl.pad, or fewer channels",
            )
