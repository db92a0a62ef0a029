"""Convolutions over one, two and three spatial axes, and their transposes, with channels last. Book, section 7.1.3."""

from __future__ import annotations

from typing import Any

from ...arrays.conversion import for_products, promote
from ...core.arguments import as_int
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, ShapeLike
from ...primitives import convolution as p
from ...primitives.windows import Pairs
from .windows import PaddingLike, Sizes, as_padding, as_sizes, check_fit, with_axes, with_one_batch

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]


def conv1d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: ShapeLike = 1,
    padding: PaddingLike = 0,
    dilation: ShapeLike = 1,
    groups: int = 1,
) -> Tensor:
    r"""\(y_{iz} = b_z + \sum_{i', d} W_{i'dz} x_{s i + i', d}\): (..., length, in) to (..., length', out).

    >>> import wonderland as wl
    >>> x, w = wl.tensor([1.0, 2.0, 3.0, 4.0]), wl.tensor([1.0, 2.0, 3.0])
    >>> wl.nn.functional.conv1d(x[:, None], w[:, None, None], padding="same")[:, 0]
    tensor([ 8., 14., 20., 11.])

    `weight` is (kernel, in / groups, out). Arguments are those of `conv2d`. Book, E.8.1 to E.8.3.
    """
    return conv_nd("conv1d", 1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: ShapeLike = 1,
    padding: PaddingLike = 0,
    dilation: ShapeLike = 1,
    groups: int = 1,
) -> Tensor:
    r"""\(y_{ijz} = b_z + \sum_{i', j', d} W_{i'j'dz} x_{i + i', j + j', d}\), on each window. Book, D.7.4, E.7.7.

    >>> import wonderland as wl
    >>> x, w = wl.ones((16, 32, 32, 3)), wl.ones((5, 5, 3, 64))
    >>> wl.nn.functional.conv2d(x, w, padding="same").shape
    (16, 32, 32, 64)

    x is (..., height, width, in), the result (..., height', width', out), and `weight` is
    (*kernel, in / groups, out), not flipped: the operation is a cross-correlation. Of tensors with channels first they
    are `wl.moveaxis(x, -3, -1)` and `wl.permute_dims(weight, (2, 3, 1, 0))`.

    stride, dilation: the distance of windows, and of places in a window: one number, or one for each axis.
    padding: zeros added at both ends of each axis: a number, one for each axis, a pair (low, high) for each axis,
        "valid" (none), "same", which keeps the size (an even kernel needs an odd number of zeros, and one more of
        them is then at the end), or "causal": all zeros come before the first axis, which is time, so that no output
        sees what comes later; the other axes are as with "same".
    groups: the channels are split into so many groups, and each output channel sees the inputs of its group only.
        With groups = in, a group has one channel: depthwise convolution (section 7.2.2).
    """
    return conv_nd("conv2d", 2, x, weight, bias, stride, padding, dilation, groups)


def conv3d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: ShapeLike = 1,
    padding: PaddingLike = 0,
    dilation: ShapeLike = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of (..., depth, height, width, in), as of videos; see `conv2d`. Book, section 8.1.2.

    >>> import wonderland as wl
    >>> wl.nn.functional.conv3d(wl.ones((2, 4, 8, 8, 3)), wl.ones((2, 3, 3, 3, 5)), padding=(0, 1, 1)).shape
    (2, 3, 8, 8, 5)
    """
    return conv_nd("conv3d", 3, x, weight, bias, stride, padding, dilation, groups)


def conv_nd(
    name: Any,
    axes: int,
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    stride: ShapeLike,
    padding: PaddingLike,
    dilation: ShapeLike,
    groups: int,
) -> Tensor:
    """Convolution over `axes` spatial axes; `name` is what errors begin with, a function's name or a layer."""
    x, w, b = _operands(name, axes, x, weight, bias)
    x, lead = with_one_batch(name, x, axes)
    stride, dilation = as_sizes(name, "stride", stride, axes), as_sizes(name, "dilation", dilation, axes)
    pairs = as_padding(name, padding, w.shape[:-2], stride, dilation)
    check_fit(name, (*lead, *x.shape[1:]), w.shape[:-2], pairs, dilation)
    groups = as_int(name, "groups", groups, 1)
    y = p.convolution(x, w, stride=stride, padding=pairs, dilation=dilation, groups=groups)
    return with_axes(y if b is None else _plus(name, y, b), lead)


def _operands(
    name: str, axes: int, x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The tensors in one dtype."""
    xs = for_products(*promote(name, x, weight) if bias is None else promote(name, x, weight, bias))
    if xs[1].ndim != axes + 2:
        raise ShapeError(
            f"{name}: a weight of shape {xs[1].shape} does not have {axes + 2} axes.",
            f"(*kernel, in / groups, out) with {axes} axes of the kernel",
        )
    return xs[0], xs[1], None if bias is None else xs[2]


def _plus(name: str, y: Tensor, bias: Tensor) -> Tensor:
    if bias.shape != y.shape[-1:]:
        raise ShapeError(
            f"{name}: a bias of shape {bias.shape} does not fit {y.shape[-1]} output channels.",
            f"a bias of shape {y.shape[-1:]}",
        )
    return y + bias


# --- the transposes


def conv_transpose1d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: ShapeLike = 1,
    padding: PaddingLike = 0,
    output_padding: ShapeLike = 0,
    groups: int = 1,
    dilation: ShapeLike = 1,
) -> Tensor:
    """The transpose of `conv1d` as a linear map: each input adds a multiple of the kernel to the output.

    >>> import wonderland as wl
    >>> x, w = wl.tensor([1.0, 10.0]), wl.tensor([1.0, 2.0, 3.0])
    >>> wl.nn.functional.conv_transpose1d(x[:, None], w[:, None, None], stride=2)[:, 0]
    tensor([ 1., 2., 13., 20., 30.])

    Arguments are those of `conv_transpose2d`.
    """
    return conv_transpose_nd("conv_transpose1d", 1, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: ShapeLike = 1,
    padding: PaddingLike = 0,
    output_padding: ShapeLike = 0,
    groups: int = 1,
    dilation: ShapeLike = 1,
) -> Tensor:
    """The transpose of `conv2d` as a linear map, which makes images larger. Book, section 7.1.3.

    >>> import wonderland as wl
    >>> F, w = wl.nn.functional, wl.ones((3, 3, 8, 16))
    >>> y = F.conv2d(wl.ones((32, 32, 8)), w, stride=2, padding=1)
    >>> y.shape, F.conv_transpose2d(y, w, stride=2, padding=1, output_padding=1).shape
    ((16, 16, 16), (32, 32, 8))

    `weight` is that of the convolution which is transposed: (*kernel, out / groups, in) for the in and out channels of
    this function. The size along an axis is (n - 1) stride - 2 padding + dilation (kernel - 1) + 1 + output_padding;
    `output_padding` chooses among the sizes that a convolution with a stride would make n.
    """
    return conv_transpose_nd("conv_transpose2d", 2, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: ShapeLike = 1,
    padding: PaddingLike = 0,
    output_padding: ShapeLike = 0,
    groups: int = 1,
    dilation: ShapeLike = 1,
) -> Tensor:
    """The transpose of `conv3d` as a linear map; see `conv_transpose2d`.

    >>> import wonderland as wl
    >>> wl.nn.functional.conv_transpose3d(wl.ones((1, 2, 2, 5)), wl.ones((2, 2, 2, 3, 5)), stride=2).shape
    (2, 4, 4, 3)
    """
    return conv_transpose_nd("conv_transpose3d", 3, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose_nd(
    name: Any,
    axes: int,
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    stride: ShapeLike,
    padding: PaddingLike,
    output_padding: ShapeLike,
    groups: int,
    dilation: ShapeLike,
) -> Tensor:
    """The transpose of `conv_nd`."""
    x, w, b = _operands(name, axes, x, weight, bias)
    x, lead = with_one_batch(name, x, axes)
    stride, dilation = as_sizes(name, "stride", stride, axes), as_sizes(name, "dilation", dilation, axes)
    further = as_sizes(name, "output_padding", output_padding, axes, least=0)
    pairs = as_padding(name, padding, w.shape[:-2], stride, dilation)
    spatial = _transposed_sizes(name, x.shape[1:-1], w.shape[:-2], stride, pairs, further, dilation)
    # what is padded to the output is cut off from the padding, so that the windows end where the output does
    pairs = tuple((low, high - more) for (low, high), more in zip(pairs, further, strict=True))
    groups = as_int(name, "groups", groups, 1)
    y = p.convolution_input(x, w, spatial=spatial, stride=stride, padding=pairs, dilation=dilation, groups=groups)
    return with_axes(y if b is None else _plus(name, y, b), lead)


def _transposed_sizes(
    name: str,
    spatial: Sizes,
    kernel: Sizes,
    stride: Sizes,
    padding: Pairs,
    further: Sizes,
    dilation: Sizes,
) -> tuple[int, ...]:
    """The spatial shape of a transposed convolution."""
    sizes = tuple(
        (n - 1) * s - low - high + d * (k - 1) + 1 + more
        for n, k, s, (low, high), more, d in zip(spatial, kernel, stride, padding, further, dilation, strict=True)
    )
    if min(sizes) < 1:
        raise ShapeError(
            f"{name}: an input of spatial shape {spatial} with a kernel of {kernel} and padding {padding} makes an "
            f"output of {sizes}.",
            "less padding",
        )
    return sizes
