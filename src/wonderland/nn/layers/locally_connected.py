"""Layers that look at patches with other weights at each place. Book, section 7.1.2."""

from __future__ import annotations

import math

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike, ShapeLike
from ...primitives.windows import count_windows
from ..functional.patches import unfold
from ..functional.windows import PaddingLike, as_sizes, check_fit, with_axes, with_one_batch
from .weighted import Weighted
from .windowed import Windowed

__all__ = ["LocallyConnected1d", "LocallyConnected2d", "LocallyConnected3d"]


class _LocallyConnected(Windowed, Weighted):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: ShapeLike,
        input_size: ShapeLike | None = None,
        stride: ShapeLike = 1,
        padding: PaddingLike = 0,
        dilation: ShapeLike = 1,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        self.in_channels = as_int(name, "in_channels", in_channels, 1)
        self.out_channels = as_int(name, "out_channels", out_channels, 1)
        self._keep(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
        self._padding()  # the padding is checked, too
        self.dtype = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
        self.input_size: tuple[int, ...] | None = None
        self._wait(name, bias, key)
        if input_size is not None:
            self._build(as_sizes(name, "input_size", input_size, self.axes))

    def _build(self, spatial: tuple[int, ...]) -> None:
        """Make the weights for all places of an input of this spatial shape."""
        kernel, stride, dilation = (self._sizes(what) for what in ("kernel_size", "stride", "dilation"))
        check_fit(self, (*spatial, self.in_channels), kernel, self._padding(), dilation)
        places = count_windows(type(self).__name__, spatial, kernel, stride, self._padding(), dilation)
        width = math.prod(kernel) * self.in_channels
        shape = (*places, width, self.out_channels)
        self._make(shape, (*places, self.out_channels), width, input_size=spatial)

    def forward(self, x: ArrayLike) -> Tensor:
        x, lead = with_one_batch(type(self).__name__, arrays.asarray(x), self.axes)
        if self.input_size is None and x.shape[-1] == self.in_channels:
            self._build(x.shape[1:-1])
        if x.shape[1:] != (*(self.input_size or ()), self.in_channels):
            raise ShapeError(
                f"{self}: an input of shape {(*lead, *x.shape[1:])}; there are weights for each place of "
                f"{self.input_size} and {self.in_channels} channels.",
                "inputs of one size, or a convolution, which has the same weights everywhere",
            )
        kernel, stride, dilation = (self._sizes(what) for what in ("kernel_size", "stride", "dilation"))
        patches = unfold(x, kernel, stride, self._padding(), dilation, self.axes)  # (batch, *places, patch)
        # a matrix product for each place: (*places, batch, patch) by (*places, patch, out)
        y = arrays.moveaxis(arrays.matmul(arrays.moveaxis(patches, 0, -2), self.weight), -2, 0)
        return with_axes(y if self.bias is None else y + self.bias, lead)

    def multiply_adds(self, args: tuple[Tensor, ...], output: Tensor) -> int | None:
        return output.size * self.weight.shape[-2]

    def extra_repr(self) -> str:
        changed = self._changed(stride=1, padding=0, dilation=1)
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"]
        parts += [f"input_size={self.input_size}", *changed, *(["bias=False"] if self.bias is None else [])]
        return ", ".join(parts)


class LocallyConnected1d(_LocallyConnected):
    """Sequences through other weights at each place; see `LocallyConnected2d`.

    >>> import wonderland as wl
    >>> wl.nn.LocallyConnected1d(8, 4, 3, input_size=20)(wl.ones((2, 20, 8))).shape
    (2, 18, 4)
    """

    axes = 1


class LocallyConnected2d(_LocallyConnected):
    r"""\(H_{ij} = W_{ij}\,\mathrm{vect}(P_k(i, j)) + b_{ij}\): local, but without sharing. Book, section 7.1.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.LocallyConnected2d(3, 8, 5, input_size=(32, 32), padding="same", bias=False)
    >>> layer(wl.ones((32, 32, 3))).shape, layer.num_parameters()
    ((32, 32, 8), 614400)

    There are h w s s c c' weights, (h', w', s s c, c'), one matrix for each place, and a bias (h', w', c'). Without
    `input_size` the first input decides about it. With all matrices equal it is a `Conv2d`, whose gradient is the sum
    of theirs.
    """

    axes = 2


class LocallyConnected3d(_LocallyConnected):
    """Volumes through other weights at each place; see `LocallyConnected2d`.

    >>> import wonderland as wl
    >>> wl.nn.LocallyConnected3d(1, 2, 2)(wl.ones((3, 3, 3, 1))).shape
    (2, 2, 2, 2)
    """

    axes = 3
