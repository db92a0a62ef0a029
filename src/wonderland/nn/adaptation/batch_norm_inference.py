"""Batch normalization after training: exact statistics, and none at all. Book, section 9.3.2."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeVar

from ... import arrays
from ...core import dtypes
from ...core.errors import InputError, ModuleError
from ...core.tensor import Tensor
from ...transforms.imperative import no_grad
from ..layers.convolution import Conv1d, Conv2d, Conv3d
from ..layers.identity import Identity
from ..layers.linear import Linear
from ..layers.normalization import BatchNorm
from ..layers.weighted import Weighted
from ..module.containers import Sequential
from ..module.modes import kept_modes
from ..module.module import Module
from ..module.parameter import Parameter

__all__ = ["recalibrate_bn", "fuse_linear_bn", "fuse_conv_bn", "fuse_bn"]

M = TypeVar("M", bound=Module)
W = TypeVar("W", bound=Weighted)
Conv = TypeVar("Conv", Conv1d, Conv2d, Conv3d)


class _Moments:
    """The count, the mean and the sum of squares about it, of batches that come one after the other."""

    def __init__(self) -> None:
        self.count = 0
        self.mean: Tensor | float = 0.0
        self.about: Tensor | float = 0.0

    def add(self, x: Tensor) -> None:
        """By the law of total variance: the variance within batches, and that of their means."""
        x = arrays.astype(arrays.reshape(x, (-1, x.shape[-1])), dtypes.float64)
        n = x.shape[0]
        if not n:
            return
        mean = arrays.mean(x, axis=0)
        total = self.count + n
        apart = mean - self.mean
        within = arrays.sum(arrays.square(x - mean), axis=0)
        self.about = self.about + within + arrays.square(apart) * (self.count * n / total)
        self.mean = self.mean + apart * (n / total)
        self.count = total


def recalibrate_bn(model: M, batches: Iterable[object]) -> M:
    r"""Replace running statistics by the exact ones of a pass over the data. Book, section 9.3.2.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.BatchNorm1d(1))
    >>> _ = wl.nn.recalibrate_bn(model, [wl.tensor([[0.0], [2.0]]), wl.tensor([[4.0], [6.0]])])
    >>> print(model[0].running_mean.tolist(), model[0].running_var.tolist())
    [3.0] [5.0]

    `batches` are inputs, or tuples that begin with them, such as a `DataLoader` gives. Batches of different sizes count
    by their sizes: \(\sigma^2 = \overline{\sigma_b^2} + \overline{(\mu_b - \mu)^2}\), over n. Meanwhile the layers of
    batch normalization use the statistics of each batch, as in training, and all others are in `eval()`.
    """
    layers = [m for m in model.modules() if isinstance(m, BatchNorm) and m.running_mean is not None]
    if not layers:
        raise ModuleError("recalibrate_bn: the model has no running statistics.", "a model with batch normalization")
    seen = [_Moments() for _ in layers]
    counts = [layer.num_batches_tracked.value for layer in layers if layer.num_batches_tracked is not None]
    with contextlib.ExitStack() as stack, no_grad():
        stack.enter_context(kept_modes(model))
        model.eval()
        for layer, moments in zip(layers, seen, strict=True):
            layer.training = True

            def note(_: Module, args: tuple[Any, ...], moments: _Moments = moments) -> None:
                moments.add(arrays.asarray(args[0]))

            stack.enter_context(layer.register_forward_pre_hook(note))
        for batch in batches:
            model(batch[0] if isinstance(batch, (tuple, list)) else batch)
    if not any(moments.count for moments in seen):
        raise InputError("recalibrate_bn: there were no batches.", "data; an iterator is empty after its first use")
    for layer, moments, count in zip(layers, seen, counts, strict=True):
        layer.num_batches_tracked = count
        mean, variance = layer.running_mean, layer.running_var
        if moments.count and mean is not None and variance is not None:  # else the model does not call it
            mean.assign(arrays.astype(moments.mean, mean.dtype))
            variance.assign(arrays.astype(moments.about / moments.count, variance.dtype))
    return model


def fuse_linear_bn(linear: Linear, bn: BatchNorm) -> Linear:
    r"""One linear layer for a linear layer and the batch normalization after it, in inference. Book, section 9.3.2.

    >>> import wonderland as wl
    >>> linear, bn = wl.nn.Linear(3, 2), wl.nn.BatchNorm1d(2).eval()
    >>> x = wl.ones((1, 3))
    >>> bool(wl.allclose(wl.nn.fuse_linear_bn(linear, bn)(x), bn(linear(x))))
    True

    \(W' = W s\) and \(b' = (b - \mu)\,s + \beta\) with \(s = \alpha/\sqrt{\sigma^2 + \varepsilon}\), from the running
    statistics.
    """
    return _fused("fuse_linear_bn", linear, bn, Linear)


def fuse_conv_bn(conv: Conv, bn: BatchNorm) -> Conv:
    """One convolution for a convolution and the batch normalization after it; see `fuse_linear_bn`.

    >>> import wonderland as wl
    >>> conv, bn = wl.nn.Conv2d(3, 8, 3), wl.nn.BatchNorm2d(8).eval()
    >>> wl.nn.fuse_conv_bn(conv, bn)
    Conv2d(3, 8, kernel_size=3)
    """
    return _fused("fuse_conv_bn", conv, bn, (Conv1d, Conv2d, Conv3d))


def fuse_bn(model: M) -> M:
    """A copy for inference, in which each linear or convolutional layer of a `Sequential` takes in the batch
    normalization after it.

    >>> import wonderland as wl
    >>> wl.nn.fuse_bn(wl.nn.Sequential(wl.nn.Linear(3, 2), wl.nn.BatchNorm1d(2), wl.nn.ReLU()))
    Sequential(
      0: Linear(in_features=3, out_features=2, bias=True)
      1: Identity()
      2: ReLU()
    )
    """
    model = model.copy().eval()
    for module in model.modules():
        if isinstance(module, Sequential):
            for i, (layer, after) in enumerate(pairwise(module)):
                fits = isinstance(layer, (Linear, Conv1d, Conv2d, Conv3d)) and isinstance(after, BatchNorm)
                if fits and after.running_mean is not None:
                    module[i], module[i + 1] = _fused("fuse_bn", layer, after, Module).eval(), Identity()
    return model.eval()


def _fused(name: str, layer: W, bn: BatchNorm, kinds: type | tuple[type, ...]) -> W:
    if (
        not isinstance(layer, kinds)
        or not isinstance(bn, BatchNorm)
        or bn.running_mean is None
        or bn.running_var is None
    ):
        raise ModuleError(
            f"{name}: received {type(layer).__name__} and {type(bn).__name__}.",
            f"{name}(layer, bn), the second with running statistics",
        )
    out = layer.weight.shape[-1]
    if bn.num_features != out:
        raise ModuleError(f"{name}: {out} outputs and {bn.num_features} channels to normalize.", "equal numbers")
    scale = arrays.rsqrt(bn.running_var + bn.eps)
    scale = scale if bn.weight is None else scale * bn.weight
    shift = -bn.running_mean if layer.bias is None else layer.bias - bn.running_mean
    shift = shift * scale if bn.bias is None else shift * scale + bn.bias
    fused = layer.copy()
    fused.weight = arrays.stop_gradient(layer.weight * scale)
    fused.bias = Parameter(arrays.stop_gradient(shift))
    return fused
