"""Layers that disturb what goes through them while training. Book, section 9.3.1."""

from __future__ import annotations

from ...core.tensor import Tensor
from ...core.typing import ArrayLike, ShapeLike
from ...random.streams import Source
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..functional.noise import check_std
from ..functional.windows import as_sizes
from ..module.module import Module
from .dropout import own_stream

__all__ = ["GaussianNoise", "Cutout"]


class GaussianNoise(Module):
    r"""\(x + \epsilon\), \(\epsilon \sim N(0, \mathrm{std}^2)\), while training; x otherwise. Book, section 9.3.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.GaussianNoise(0.1, key=0)
    >>> layer(wl.zeros(3)).shape, layer.eval()(wl.zeros(3))
    ((3,), tensor([0., 0., 0.]))

    `key` gives the layer a random stream of its own, as in `Dropout`.
    """

    def __init__(self, std: float, key: Source = None) -> None:
        self.std = check_std("GaussianNoise", std)
        self.stream = own_stream(key)

    def forward(self, x: ArrayLike) -> Tensor:
        return F.gaussian_noise(x, self.std, self.training, key=self.stream)

    def extra_repr(self) -> str:
        return f"std={self.std}"


class Cutout(Module):
    """Images (..., height, width, channels) with a patch set to `value` while training. Book, section 9.3.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.Cutout(3, key=0)
    >>> layer(wl.ones((2, 9, 9, 3))).shape, bool((layer.eval()(wl.ones((2, 9, 9, 3))) == 1).all())
    ((2, 9, 9, 3), True)

    The patch has the `size` of one number or two, lies around a random pixel and is cut off at the border. With
    `per_channel` every channel has a patch of its own, as in the book; else one goes through all channels.
    """

    def __init__(self, size: ShapeLike, per_channel: bool = False, value: float = 0.0, key: Source = None) -> None:
        self.size = as_sizes("Cutout", "size", size, 2)
        self.per_channel = bool(per_channel)
        self.value = value
        self.stream = own_stream(key)

    def forward(self, x: ArrayLike) -> Tensor:
        return F.cutout(x, self.size, self.training, per_channel=self.per_channel, value=self.value, key=self.stream)

    def extra_repr(self) -> str:
        return f"size={self.size}, per_channel={self.per_channel}"
