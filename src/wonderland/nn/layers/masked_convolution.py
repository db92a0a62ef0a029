"""Convolutions that see only what comes before, place by place and row by row. Book, section 8.3.2."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.tensor import Tensor, wrap
from ...core.typing import Array, DTypeLike, KeyLike, ShapeLike
from ..functional.windows import PaddingLike
from .convolution import _Conv

__all__ = ["MaskedConv1d", "MaskedConv2d", "MaskedConv3d"]


class _MaskedConv(_Conv):
    _shown_unless: ClassVar[dict[str, object]] = {**_Conv._shown_unless, "padding": "same", "colors": 1}

    def __init__(
        self,
        mask_type: str,
        in_channels: int | None,
        out_channels: int,
        kernel_size: ShapeLike,
        stride: ShapeLike = 1,
        padding: PaddingLike = "same",
        dilation: ShapeLike = 1,
        bias: bool = True,
        colors: int = 1,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        **options: Any,
    ) -> None:
        name = type(self).__name__
        if mask_type not in ("A", "B"):
            raise InputError(f"{name}: mask_type={mask_type!r}.", '"A" (without the centre) or "B" (with it)')
        self.mask_type = mask_type
        self.colors = as_int(name, "colors", colors, 1)
        settings = (stride, padding, dilation, 1, bias, "zeros", dtype, key)
        super().__init__(in_channels, out_channels, kernel_size, *settings, **options)

    def _build(self, in_channels: int) -> None:
        for what, channels in (("in_channels", in_channels), ("out_channels", self.out_channels)):
            if channels % self.colors:
                raise InputError(
                    f"{type(self).__name__}: {what}={channels} is not a multiple of colors={self.colors}.",
                    "as many channels of each colour",
                )
        super()._build(in_channels)

    @property
    def mask(self) -> Array:
        """Which weights are used: an array of bools of the shape of `weight`."""
        *kernel, inputs, outputs = self.weight.shape
        before = np.zeros(kernel, bool)
        centre = tuple((k - 1) // 2 for k in kernel)
        before.reshape(-1)[: np.ravel_multi_index(centre, kernel)] = True
        mask = np.broadcast_to(before[..., None, None], self.weight.shape).copy()
        # at the centre, a colour sees those before it, and with "B" itself
        seen, seeing = (np.arange(n) * self.colors // max(n, 1) for n in (inputs, outputs))
        mask[centre] = np.less_equal.outer(seen, seeing) if self.mask_type == "B" else np.less.outer(seen, seeing)
        return mask

    def _filter(self) -> Tensor:
        return arrays.where(wrap(self.mask), self.weight, 0.0)

    def extra_repr(self) -> str:
        return f"{self.mask_type!r}, {super().extra_repr()}"


class MaskedConv1d(_MaskedConv):
    r"""\(H_i = (W \odot M)\,\mathrm{vect}(P_k(i)) + b\), where M removes later inputs. Book, section 8.3.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.MaskedConv1d("B", 1, 1, 3)
    >>> layer.mask[:, 0, 0]
    array([ True,  True, False])

    "B" sees the present input too, "A" only those before it. See `MaskedConv2d`, and `CausalConv1d`, which computes the
    same without weights that are never used.
    """

    axes = 1


class MaskedConv2d(_MaskedConv):
    """Convolution of images in which a pixel sees the rows above and the pixels to its left, as in PixelCNN.

    >>> import wonderland as wl
    >>> wl.nn.MaskedConv2d("A", 1, 16, 3).mask[..., 0, 0].astype(int)
    array([[1, 1, 1],
           [1, 0, 0],
           [0, 0, 0]])

    `mask_type` "A" leaves out the pixel itself, as the first layer of an autoregressive model must; "B" has it. With
    `colors` the channels are so many parts of equal size, one for each colour, and at its own pixel a colour sees
    those before it ("A"), and itself ("B"). Masked weights have no influence and get no gradient, whatever an
    optimizer does to them. `padding` is "same" by default; other arguments are those of `Conv2d`.
    """

    axes = 2


class MaskedConv3d(_MaskedConv):
    """Convolution of volumes or videos that sees only what comes before in raster order; see `MaskedConv2d`.

    >>> import wonderland as wl
    >>> int(wl.nn.MaskedConv3d("B", 1, 1, 3).mask.sum())
    14
    """

    axes = 3
