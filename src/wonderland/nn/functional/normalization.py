"""Normalization: numbers with mean 0 and variance 1, then a scale and a shift that are learned. Book, section 9.3.2.

Channels are along the last axis, for images (batch, height, width, channels).
"""

from __future__ import annotations

import math
from typing import Any

from ... import arrays, linalg
from ...arrays.conversion import as_real, as_shape, as_tensor, convert
from ...core.arguments import as_int
from ...core.cell import Cell
from ...core.context import current
from ...core.dtypes import float32, is_half
from ...core.errors import InputError, ShapeError
from ...core.fused import MANY, fused
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike, ShapeLike
from ...primitives.meeting import all_sum

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm", "scale_norm"]


def layer_norm(
    x: ArrayLike,
    normalized_shape: ShapeLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""\(\frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}\,\alpha + \beta\) over the last axes. Book, section 9.3.2.

    >>> import wonderland as wl
    >>> wl.nn.functional.layer_norm(wl.tensor([[1.0, 3.0], [10.0, 30.0]]), 2, eps=0.0)
    tensor([[-1.,  1.],
            [-1.,  1.]])

    `normalized_shape` are the sizes of these axes, and the shape of `weight` \(\alpha\) and `bias` \(\beta\).
    """
    x = as_real("layer_norm", x)
    axes = _last_axes("layer_norm", x, normalized_shape, weight, bias)
    if weight is None or bias is None:
        return _affine(_standardized(x, axes=axes, eps=eps), weight, bias)
    return _layer_norm(x, as_tensor("layer_norm", weight), as_tensor("layer_norm", bias), axes=axes, eps=eps)


@fused(single=MANY)
def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor, *, axes: tuple[int, ...], eps: float) -> Tensor:
    return _affine(_standardized.formula(x, axes=axes, eps=eps), weight, bias)


def rms_norm(
    x: ArrayLike, normalized_shape: ShapeLike, weight: ArrayLike | None = None, eps: float | None = None
) -> Tensor:
    r"""\(\frac{x}{\sqrt{\overline{x^2} + \varepsilon}}\,\alpha\) over the last axes; eps is by default the type's.

    >>> import wonderland as wl
    >>> wl.nn.functional.rms_norm(wl.tensor([3.0, -3.0]), 2)
    tensor([ 1., -1.])

    Book, section 9.3.2. `normalized_shape` are the sizes of these axes, and the shape of `weight` \(\alpha\).
    """
    x = as_real("rms_norm", x)
    axes = _last_axes("rms_norm", x, normalized_shape, weight, None)
    eps = float(arrays.finfo(x.dtype).eps) if eps is None else eps
    return _affine(_scaled(x, axes=axes, eps=eps), weight, None)


@fused(single=MANY)
def _scaled(x: Tensor, *, axes: tuple[int, ...], eps: float) -> Tensor:
    """x with mean square 1 over the axes."""
    wide = _wide(x)
    scaled = wide * arrays.rsqrt(arrays.mean(arrays.square(wide), axis=axes, keepdims=True) + eps)
    return convert(scaled, x.dtype)


def batch_norm(
    x: ArrayLike,
    running_mean: Tensor | Array | None = None,
    running_var: Tensor | Array | None = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    r"""\(\frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}\,\alpha + \beta\) per channel, the last axis. Book, 9.3.2.

    >>> import wonderland as wl
    >>> wl.nn.functional.batch_norm(wl.tensor([[1.0, 10.0], [3.0, 30.0]]), training=True, eps=0.0)
    tensor([[-1., -1.],
            [ 1.,  1.]])

    While `training`, the statistics are those of the batch, over all other axes, and running statistics, if there are
    any, move towards them: \(r \leftarrow (1-m)\,r + m\,s\) with the momentum m and the variance over n - 1; they are
    `wl.nn.Buffer`s. Otherwise the running statistics are used.
    """
    x = as_real("batch_norm", x)
    if x.ndim < 2:
        raise ShapeError(f"batch_norm: an input of shape {x.shape}.", "an input of shape (batch, ..., channels)")
    _check_channels("batch_norm", x, running_mean, running_var, weight, bias)
    if not training:
        if running_mean is None or running_var is None:
            raise InputError(
                "batch_norm: there are no running statistics to use.", "training=True, or running_mean=..."
            )
        return _affine_channels(x, _wide(x) - running_mean, _wide(running_var), weight, bias, eps)
    axes = tuple(range(x.ndim - 1))
    n = x.size // max(x.shape[-1], 1)
    if n < 2 and current().settings.group is None:
        raise InputError(
            f"batch_norm: training with {n} values per channel, from an input of shape {x.shape}, leaves no variance.",
            "a batch of two or more, or model.eval(); LayerNorm and GroupNorm need no batch",
        )
    mean, variance, unbiased = _moments_of_batch(_wide(x), axes, n)
    centred = _wide(x) - mean
    if running_mean is not None:
        _move("batch_norm", (running_mean, running_var), (mean, variance * unbiased), momentum)
    return _affine_channels(x, centred, variance, weight, bias, eps)


def scale_norm(x: ArrayLike, g: ArrayLike, eps: float = 1e-5) -> Tensor:
    r"""\(g\,x/\max(\lVert x\rVert, \varepsilon)\) over the last axis, with one number g.

    >>> import wonderland as wl
    >>> wl.nn.functional.scale_norm(wl.tensor([3.0, 4.0]), 10.0)
    tensor([6., 8.])
    """
    x = as_real("scale_norm", x)
    if not x.ndim:
        raise ShapeError("scale_norm: an input without axes.", "an input of shape (..., features)")
    wide = _wide(x)
    length = linalg.vector_norm(wide, axis=-1, keepdims=True)
    return convert(wide / arrays.maximum(length, eps), x.dtype) * g


def local_response_norm(x: ArrayLike, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    r"""\(x_c\,(k + \frac{\alpha}{n}\sum_{c'} x_{c'}^2)^{-\beta}\) over n = `size` channels c' around c, the last axis.

    >>> import wonderland as wl
    >>> wl.nn.functional.local_response_norm(wl.ones((2, 4)), 2, alpha=2.0, beta=1.0)[0]
    tensor([0.5 , 0.33, 0.33, 0.33])

    Channels beyond the first and the last count as 0.
    """
    x = as_real("local_response_norm", x)
    size = as_int("local_response_norm", "size", size, 1)
    if x.ndim < 2:
        raise ShapeError(f"local_response_norm: an input of shape {x.shape}.", "an input (batch, ..., channels)")
    wide = _wide(x)
    widths = [(0, 0)] * (x.ndim - 1) + [(size // 2, (size - 1) // 2)]
    squares = arrays.pad(arrays.square(wide), widths)
    c = x.shape[-1]
    total = squares[..., :c]
    for first in range(1, size):
        total = total + squares[..., first : first + c]
    return convert(wide * arrays.pow(k + alpha / size * total, -beta), x.dtype)


def instance_norm(
    x: ArrayLike,
    running_mean: Tensor | Array | None = None,
    running_var: Tensor | Array | None = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    use_input_stats: bool = True,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    r"""Normalization of every channel of every example over its positions: x (batch, ..., channels).

    >>> import wonderland as wl
    >>> wl.nn.functional.instance_norm(wl.tensor([[[1.0, 10.0], [3.0, 30.0]]]), eps=0.0)
    tensor([[[-1., -1.],
             [ 1.,  1.]]])

    Running statistics, if there are any, move towards the means over the batch of the examples' statistics; without
    `use_input_stats` they are used. Book, section 9.3.2.
    """
    x = as_real("instance_norm", x)
    if x.ndim < 3:
        raise ShapeError(
            f"instance_norm: an input of shape {x.shape} has no positions.", "an input (batch, ..., channels)"
        )
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    _check_channels("instance_norm", x, running_mean, running_var, weight, bias)
    axes = tuple(range(1, x.ndim - 1))
    n = math.prod(x.shape[1:-1])
    if n < 2:
        raise InputError(
            f"instance_norm: {n} positions per channel, from an input of shape {x.shape}, leave no variance.",
            "larger images, or layer_norm",
        )
    if running_mean is not None:
        mean, variance = _moments(_wide(x), axes, keepdims=True)
        every = (0, *axes)
        over_batch = arrays.mean(mean, axis=every), arrays.mean(variance, axis=every) * (n / (n - 1))
        _move("instance_norm", (running_mean, running_var), over_batch, momentum)
    return _affine(_standardized(x, axes=axes, eps=eps), weight, bias)


def group_norm(
    x: ArrayLike, num_groups: int, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-5
) -> Tensor:
    r"""Normalization of every example over groups of channels and all positions: x (batch, ..., channels).

    >>> import wonderland as wl
    >>> wl.nn.functional.group_norm(wl.tensor([[1.0, 3.0, 10.0, 30.0]]), 2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]])

    One group normalizes like a layer, as many as channels like an instance. Book, section 9.3.2.
    """
    x = as_real("group_norm", x)
    if x.ndim < 2 or num_groups < 1 or x.shape[-1] % num_groups:
        raise ShapeError(
            f"group_norm: an input of shape {x.shape} in {num_groups} groups of channels.",
            "an input of shape (batch, ..., channels) whose channels divide evenly",
        )
    for what, shape in _shapes("group_norm", weight=weight, bias=bias):
        if shape != x.shape[-1:]:
            raise ShapeError(f"group_norm: a {what} of shape {shape} for {x.shape[-1]} channels.", "one each")
    grouped = arrays.reshape(x, (*x.shape[:-1], num_groups, x.shape[-1] // num_groups))
    axes = (*range(1, x.ndim - 1), x.ndim)
    return _affine(arrays.reshape(_standardized(grouped, axes=axes, eps=eps), x.shape), weight, bias)


def _shapes(name: str, **arguments: ArrayLike | None) -> list[tuple[str, tuple[int, ...]]]:
    """The shapes of those arguments that are given."""
    return [(what, as_tensor(name, value).shape) for what, value in arguments.items() if value is not None]


def _check_channels(
    name: str,
    x: Tensor,
    running_mean: Tensor | Array | None,
    running_var: Tensor | Array | None,
    weight: ArrayLike | None,
    bias: ArrayLike | None,
) -> None:
    for what, shape in _shapes(name, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias):
        if shape != x.shape[-1:]:
            raise ShapeError(
                f"{name}: a {what} of shape {shape} for an input of shape {x.shape}.",
                f"one number per channel, {x.shape[-1:]}",
            )
    if (running_mean is None) != (running_var is None):
        raise InputError(f"{name}: one of the running statistics is missing.", "both or none of them")


def _move(name: str, running: tuple[object, object], now: tuple[Tensor, Tensor], momentum: float | Tensor) -> None:
    """Running statistics move towards those of now."""
    for cell, value in zip(running, now, strict=True):
        if not isinstance(cell, Cell):
            raise InputError(f"{name}: a running statistic cannot be changed.", "wl.nn.Buffer(...)")
        cell.assign(cell + arrays.astype(momentum * (arrays.stop_gradient(value) - cell), cell.dtype))


def _last_axes(
    name: str, x: Tensor, normalized_shape: ShapeLike, weight: ArrayLike | None, bias: ArrayLike | None
) -> tuple[int, ...]:
    shape = as_shape(name, normalized_shape)
    if not shape or x.shape[x.ndim - len(shape) :] != shape or x.ndim < len(shape):
        raise ShapeError(
            f"{name}: an input of shape {x.shape} does not end in the normalized shape {shape}.",
            f"an input of shape (..., {', '.join(map(str, shape))})",
        )
    for what, given in _shapes(name, weight=weight, bias=bias):
        if given != shape:
            raise ShapeError(f"{name}: a {what} of shape {given}.", f"the normalized shape {shape}")
    return tuple(range(-len(shape), 0))


def _wide(x: Any) -> Any:
    """x, in float32 if its own type has too few digits for statistics."""
    return convert(x, float32) if is_half(x.dtype) else x


@fused(single=MANY)
def _standardized(x: Tensor, *, axes: tuple[int, ...], eps: float) -> Tensor:
    """x with mean 0 and variance 1 over the axes."""
    wide = _wide(x)
    mean, variance = _moments(wide, axes, keepdims=True)
    return convert((wide - mean) * arrays.rsqrt(variance + eps), x.dtype)


def _moments(x: Tensor, axes: tuple[int, ...], keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The mean and the variance over the axes.

    The variance is taken about the mean as a constant, less the square of the distance between the two, which is 0: its
    derivatives of every order are those of the variance, and the first needs no second sum over the adjoint.
    """
    mean = arrays.mean(x, axis=axes, keepdims=keepdims)
    fixed = arrays.stop_gradient(mean)
    about = arrays.mean(arrays.square(x - fixed), axis=axes, keepdims=keepdims)
    return mean, about - arrays.square(mean - fixed)


def _moments_of_batch(x: Tensor, axes: tuple[int, ...], n: int) -> tuple[Tensor, Tensor, Tensor | float]:
    """Mean and variance of a batch, of which this process may have a part, and n/(n - 1) of the whole."""
    group = current().settings.group
    if group is None:
        return *_moments(x, axes), n / (n - 1)
    sums = all_sum(arrays.concat([arrays.sum(x, axis=axes), arrays.full((1,), n, dtype=x.dtype)]), group=group)
    mean, count = sums[:-1] / sums[-1], arrays.stop_gradient(sums[-1])
    fixed = arrays.stop_gradient(mean)
    about = all_sum(arrays.sum(arrays.square(x - fixed), axis=axes), group=group) / count
    return mean, about - arrays.square(mean - fixed), count / arrays.maximum(count - 1, 1)


def _affine(x: Tensor, weight: ArrayLike | None, bias: ArrayLike | None) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _affine_channels(
    x: Tensor, centred: Tensor, variance: Tensor, weight: ArrayLike | None, bias: ArrayLike | None, eps: float
) -> Tensor:
    """Both factors are one number per channel, so they are put together before they meet the data."""
    scale = arrays.rsqrt(variance + eps)
    scaled = centred * (scale if weight is None else scale * weight)
    out = scaled if bias is None else scaled + bias
    return convert(out, x.dtype) if is_half(x.dtype) else out
