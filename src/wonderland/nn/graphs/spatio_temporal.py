r"""Time series at the nodes of a graph. Book, section 12.3.2."""

from __future__ import annotations

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ..layers.convolution import Conv1d
from ..layers.fully_connected import ActivationLike, as_activation
from .layer import GraphLayer
from .shift import DenseShift, Shift, as_norm

__all__ = ["SpatioTemporalConv"]


class SpatioTemporalConv(GraphLayer):
    r"""\(h_i = \phi(\sum_{j \in N(i)} A_{ij}\,\mathrm{Conv1d}(x_j))\): (n, time, c) to (n, time, c'). Book, 12.3.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.SpatioTemporalConv(4, 2, kernel_size=3)
    >>> layer(wl.ones((3, 20, 4)), wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    (3, 20, 2)

    What is convolved is the neighbour's series, not the node's own as the book prints, which would be scaled by the
    degree and nothing more. Both steps are linear, so without a bias their order does not matter; channels decide which
    is less work. `padding` ("same" by default), `stride` and `dilation` are those of `Conv1d`, `norm` and `self_loops`
    those of `GraphConv`; `causal` pads on the left alone, so that no result sees the future.
    """

    takes_dense = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        activation: ActivationLike = None,
        norm: str | None = "sym",
        self_loops: bool = False,
        bias: bool = True,
        causal: bool = False,
        stride: int = 1,
        dilation: int = 1,
        padding: str | int = "same",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        self.in_channels = as_int(name, "in_channels", in_channels, 1)
        self.out_channels = as_int(name, "out_channels", out_channels, 1)
        self.norm, self.self_loops, self.causal = as_norm(name, norm), bool(self_loops), bool(causal)
        if self.causal and padding != "same":
            raise InputError(f"{name}: padding={padding!r} with causal=True.", "one of them")
        self.reach = (as_int(name, "kernel_size", kernel_size, 1) - 1) * as_int(name, "dilation", dilation, 1)
        self.conv = Conv1d(
            self.in_channels, self.out_channels, kernel_size, stride=stride, dilation=dilation,
            padding=0 if self.causal else padding, bias=bias, dtype=dtype, key=key,
        )  # fmt: skip
        self.activation = as_activation(name, activation)

    def channels(self) -> int:
        return self.in_channels

    def compute(self, x: Tensor, shift: Shift | DenseShift) -> Tensor:
        shift = shift.normalized(self.norm, self.self_loops, dtype=x.dtype)
        if self.in_channels < self.out_channels and self.conv.bias is None:
            return self.activation(self.convolved(shift.apply(x)))
        return self.activation(shift.apply(self.convolved(x)))

    def convolved(self, x: Tensor) -> Tensor:
        """The series of every node, convolved."""
        if self.causal and self.reach:
            x = arrays.concat([arrays.zeros((*x.shape[:-2], self.reach, x.shape[-1]), dtype=x.dtype), x], axis=-2)
        return self.conv(x)

    def extra_repr(self) -> str:
        return ", ".join([f"{self.in_channels}, {self.out_channels}", *self._changed(norm="sym", causal=False)])
