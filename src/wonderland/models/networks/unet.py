"""The U-shaped network: an answer for every pixel. Book, chapter 7.

    images (b, h, w, c)                                              answers (b, h, w, m)
      |  block 16 ------------------------------ concat, block 16  ->  1 x 1
      |  pool, block 32 ------------ concat, block 32, up
      |  pool, block 64, up ----------'
      (b, h/4, w/4, 64)

Down, the network sees more and more of the image; up, the maps from the way down say again where things are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ... import arrays
from ...arrays.conversion import as_tensor
from ...core.arguments import as_int, as_list
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...nn.functional.pooling import max_pool2d
from ...nn.functional.windows import with_one_batch
from ...nn.layers.conv_block import ConvBlock
from ...nn.layers.convolution import Conv2d, ConvTranspose2d
from ...nn.layers.dropout import own_stream
from ...nn.layers.fully_connected import ActivationLike
from ...nn.module.containers import ModuleList
from ...nn.module.module import Module
from ...random.streams import Source


class UNet(Module):
    """An encoder and a decoder with connections between equal sizes: (..., h, w, in) to (..., h, w, out).

    >>> import wonderland as wl
    >>> model = wl.models.UNet(3, 2, [8, 16, 32])
    >>> model(wl.ones((2, 16, 24, 3))).shape
    (2, 16, 24, 2)

    `channels` are those of the levels; all but the first halve height and width, which have to be multiples of
    \\(2^{n-1}\\). Each level is a `wl.nn.ConvBlock` of two convolutions with `norm`. The outputs are logits of the
    classes of pixels, or the numbers of an image.
    """

    def __init__(
        self,
        in_channels: int = 3,
        out_channels: int = 2,
        channels: Sequence[int] = (16, 32, 64),
        norm: str | Callable[[int], Module] | None = "batch",
        activation: ActivationLike = "relu",
        key: Source = None,
    ) -> None:
        stream = own_stream(key)
        widths = [as_int("UNet", "a number of channels", c, 1) for c in as_list("UNet", "channels", channels)]
        if not widths:
            raise InputError("UNet: there is no level.", "channels=[16, 32, 64]")

        def block(before: int, after: int) -> ConvBlock:
            return ConvBlock(before, after, 2, pool=None, norm=norm, activation=activation, key=stream)

        self.down = ModuleList([block(i, o) for i, o in zip([in_channels, *widths], widths, strict=False)])
        pairs = list(zip(widths[1:], widths, strict=False))[::-1]
        self.up = ModuleList([ConvTranspose2d(deep, here, 2, stride=2, key=stream) for deep, here in pairs])
        self.merge = ModuleList([block(2 * here, here) for _, here in pairs])
        self.head = Conv2d(widths[0], out_channels, 1, key=stream)

    def forward(self, x: ArrayLike) -> Tensor:
        x, lead = with_one_batch("UNet", as_tensor("UNet", x), 2)
        least = 2 ** (len(self.down) - 1)
        if x.shape[1] % least or x.shape[2] % least:
            raise ShapeError(
                f"UNet: images of {x.shape[1]} x {x.shape[2]} pixels, which {least} does not divide.",
                f"multiples of {least}: pad them with wl.pad",
            )
        passed = []
        for i, block in enumerate(self.down):
            x = block(max_pool2d(x, 2) if i else x)  # (b, h / 2^i, w / 2^i, channels[i])
            passed.append(x)
        for up, merge, beside in zip(self.up, self.merge, passed[-2::-1], strict=True):
            x = merge(arrays.concat([beside, up(x)], axis=-1))
        y = self.head(x)  # (b, h, w, out)
        return y if len(lead) == 1 else arrays.reshape(y, (*lead, *y.shape[1:]))
