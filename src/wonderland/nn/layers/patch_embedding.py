"""Images as tokens: patches side by side, each by the same linear layer. Book, section 11.2.4, figure 11.5."""

from __future__ import annotations

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..functional.patch_tokens import check_patches
from ..module.module import Module
from .linear import Linear

__all__ = ["PatchEmbed"]

IMPLEMENTATIONS = ("linear", "conv")


class PatchEmbed(Module):
    r"""\(\mathrm{vect}(P_{ij})\,W + b\) for each patch P of p x p pixels: (..., h, w, c) to (..., n, e). Book, 11.2.4.

    >>> import wonderland as wl
    >>> layer = wl.nn.PatchEmbed(8, 3, 128)
    >>> layer(wl.ones((2, 64, 64, 3))).shape, layer.projection.weight.shape
    ((2, 64, 128), (192, 128))

    There are n = (h/p)(w/p) tokens, row by row; sizes that p does not divide are refused. The numbers of a patch stand
    in the order (row, column, channel). `impl` is how it is computed, with the same parameters: "linear" rearranges the
    pixels and multiplies, "conv" is a convolution with W as a filter (p, p, c, e) and the stride p. With `patch=1`
    every pixel is a token. There are (p² c + 1) e parameters.
    """

    def __init__(
        self,
        patch: int,
        channels: int,
        e: int,
        impl: str = "linear",
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        if impl not in IMPLEMENTATIONS:
            raise InputError(f"PatchEmbed: impl={shown(impl)}.", '"linear" or "conv"')
        self.patch, self.channels = as_int("PatchEmbed", "patch", patch, 1), as_int("PatchEmbed", "channels", channels)
        self.impl = impl
        self.projection = Linear(self.patch**2 * self.channels, e, bias, dtype, key)

    def forward(self, images: ArrayLike) -> Tensor:
        x, p = as_real(self._describe(), images), self.patch
        if x.ndim < 3 or x.shape[-1] != self.channels:
            raise ShapeError(f"{self._describe()}: images of shape {x.shape}.", f"(..., h, w, {self.channels})")
        if self.impl == "linear":
            return self.projection(F.patchify(x, p))  # (..., n, p p c) -> (..., n, e)
        check_patches(self._describe(), x.shape, p)
        weight = arrays.reshape(self.projection.weight, (p, p, self.channels, -1))
        maps = F.conv2d(x, weight, self.projection.bias, stride=p)  # (..., h/p, w/p, e)
        return arrays.flatten(maps, -3, -2)

    def extra_repr(self) -> str:
        return ", ".join([f"{self.patch}, {self.channels}", *self._changed(impl="linear")])
