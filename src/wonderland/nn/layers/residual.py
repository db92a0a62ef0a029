"""Connections around layers: residual, skip and dense ones, and the blocks made of them. Book, section 9.4.1."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.arguments import as_function, as_int, as_number, shown
from ...core.errors import InputError, ModuleError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.streams import Source
from ..activations.piecewise import ReLU
from ..module.containers import ModuleList, Sequential
from ..module.module import Module
from ..module.parameter import Parameter
from .convolution import Conv2d, _Convolution
from .dropout import Dropout, own_stream
from .fully_connected import ActivationLike, as_activation
from .linear import Linear
from .normalization import BatchNorm, BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm, RMSNorm

__all__ = [
    "Residual", "ReZero", "LayerScale", "Skip", "DenseBlock", "ResidualStack", "FCBlock", "BasicBlock",
    "BottleneckBlock",
]  # fmt: skip


class Residual(Module):
    r"""\(r(x) = s(x) + f(x)\) with the identity, or another layer, as the shortcut s. Book, section 9.4.1.

    >>> import wonderland as wl
    >>> block = wl.nn.Residual(wl.nn.Sequential(wl.nn.Linear(8, 8), wl.relu, wl.nn.Linear(8, 8)), zero_init=True)
    >>> x = wl.random.normal((2, 8))
    >>> bool((block(x) == x).all())
    True

    With `zero_init` the last layer of f with weights, or with the scale of a normalization, starts from 0, so that the
    block starts as the shortcut. With `init_scale` a number \(\alpha\) that is trained and starts from there multiplies
    f: \(x + \alpha f(x)\). The shapes have to agree, nothing is broadcast; a `shortcut` such as a linear layer or a
    convolution of one pixel, which may have the stride of f, makes them. f should not end in a ReLU, see `lint`.
    """

    def __init__(
        self,
        f: Callable[..., Tensor],
        shortcut: Callable[..., Tensor] | None = None,
        *,
        init_scale: float | None = None,
        zero_init: bool = False,
    ) -> None:
        self.f = as_function("Residual", f)
        self.shortcut = None if shortcut is None else as_function("Residual", shortcut)
        self.scale = None
        if init_scale is not None:
            start = float(as_number("Residual", "init_scale", init_scale))
            self.scale = Parameter(arrays.full((), start, dtype=dtypes.default_float))
        if zero_init:
            _end_at_zero(self.f)

    def forward(self, x: ArrayLike) -> Tensor:
        short = arrays.asarray(x) if self.shortcut is None else self.shortcut(x)
        return _sum("Residual", short, self._update(x))

    def _update(self, x: ArrayLike) -> Tensor:
        y = self.f(x)
        return y if self.scale is None else arrays.astype(self.scale, y.dtype) * y


class ReZero(Residual):
    r"""\(x + \alpha f(x)\) with a number \(\alpha\) that is trained and starts from 0: `Residual(f, init_scale=0)`.

    >>> import wonderland as wl
    >>> block = wl.nn.ReZero(wl.nn.Linear(4, 4))
    >>> block(wl.ones(4))
    tensor([1., 1., 1., 1.])
    """

    def __init__(self, f: Callable[..., Tensor], shortcut: Callable[..., Tensor] | None = None) -> None:
        super().__init__(f, shortcut, init_scale=0.0)


class LayerScale(Module):
    r"""\(\lambda \odot x\) with a number per channel that starts small, as the last layer of a residual path.

    >>> import wonderland as wl
    >>> wl.nn.LayerScale(2, 0.5)(wl.ones((3, 2))).tolist()[0]
    [0.5, 0.5]
    """

    def __init__(self, num_features: int, init_scale: float = 1e-5, dtype: DTypeLike | None = None) -> None:
        shape = (as_int("LayerScale", "num_features", num_features, 0),)
        start = as_number("LayerScale", "init_scale", init_scale)
        self.weight = Parameter(arrays.full(shape, float(start), dtype=dtype or dtypes.default_float))

    def forward(self, x: ArrayLike) -> Tensor:
        x = as_real("LayerScale", x)
        if x.shape[-1:] != self.weight.shape:
            raise ShapeError(f"LayerScale: an input of shape {x.shape}.", f"(..., {self.weight.shape[0]})")
        return x * self.weight


class Skip(Module):
    r"""x past one or more layers f, combined with f(x). Notes, section 3.7.3.

    >>> import wonderland as wl
    >>> wl.nn.Skip(wl.nn.Linear(4, 3), "concat")(wl.ones((2, 4))).shape
    (2, 7)

    `combine` is "add", "mean", "max" (elementwise), "concat" (along the last axis), or "attention": a weighted mean
    \(\sum_i a_i v_i\) of x and f(x) with \(a = \operatorname{softmax}(v q/\sqrt{d})\) and a trained query q of
    `features` = d numbers, which starts from 0, the mean. All but "concat" need equal shapes.
    """

    def __init__(self, f: Callable[..., Tensor], combine: str = "add", features: int | None = None) -> None:
        if combine not in ("add", "concat", "mean", "max", "attention"):
            raise InputError(f"Skip: combine={shown(combine)}.", "'add', 'concat', 'mean', 'max' or 'attention'")
        self.f = as_function("Skip", f)
        self.combine = combine
        self.query = None
        if combine == "attention":
            if features is None:
                raise InputError("Skip: attention has a query with a number per feature.", "features=...")
            self.query = Parameter(arrays.zeros(as_int("Skip", "features", features, 1)))

    def forward(self, x: ArrayLike) -> Tensor:
        x = arrays.asarray(x)
        y = self.f(x)
        if self.combine == "concat":
            return arrays.concat([x, y], axis=-1)
        if self.combine == "max":
            _check_equal("Skip", x, y)
            return arrays.maximum(x, y)
        if self.query is None:
            total = _sum("Skip", x, y)
            return total if self.combine == "add" else total * 0.5
        _check_equal("Skip", x, y)
        if x.shape[-1:] != self.query.shape:
            raise ShapeError(f"Skip: an input of shape {x.shape}.", f"(..., {self.query.shape[0]}), as the query")
        both = arrays.stack([x, y], axis=-2)
        scores = arrays.sum(both * self.query, axis=-1, keepdims=True) * self.query.size**-0.5
        return arrays.sum(arrays.softmax(scores, axis=-2) * both, axis=-2)

    def extra_repr(self) -> str:
        return f"combine={self.combine!r}"


class DenseBlock(Module):
    r"""Layers that see the input and the outputs of all layers before them. Notes, section 3.7.3.

    >>> import wonderland as wl
    >>> block = wl.nn.DenseBlock(8, growth=4, layers=3, bias=False)
    >>> block(wl.ones((2, 8))).shape, block.num_parameters()
    ((2, 20), 144)

    Layer l of L maps D + (l-1)Z numbers to Z (`growth`), so its matrix grows linearly with l and all of them together,
    \(\sum_l (D + (l-1)Z)\,Z\), quadratically with L. The output is everything, D + LZ numbers. `layer(inputs, outputs)`
    makes another kind of layer, such as `lambda i, o: nn.Conv2d(i, o, 3, padding="same")`.
    """

    def __init__(
        self,
        in_features: int,
        growth: int,
        layers: int,
        activation: ActivationLike = "relu",
        bias: bool = True,
        layer: Callable[[int, int], Callable[..., Tensor]] | None = None,
    ) -> None:
        width = as_int("DenseBlock", "in_features", in_features, 1)
        growth = as_int("DenseBlock", "growth", growth, 1)
        make = functools.partial(Linear, bias=bias) if layer is None else as_function("DenseBlock", layer)
        n = as_int("DenseBlock", "layers", layers, 0)
        self.layers = ModuleList([make(width + i * growth, growth) for i in range(n)])
        self.activation = as_activation("DenseBlock", activation)

    def forward(self, x: ArrayLike) -> Tensor:
        seen = [arrays.asarray(x)]
        for layer in self.layers:
            seen.append(self.activation(layer(arrays.concat(seen, axis=-1))))
        return arrays.concat(seen, axis=-1)


class ResidualStack(Module):
    r"""\(x_{t+1} = x_t + h f_t(x_t)\), one after the other; `shared`, all \(f_t\) are one. Book, section 9.4.1.

    >>> import wonderland as wl
    >>> stack = wl.nn.ResidualStack(lambda: wl.nn.Linear(4, 4), steps=10, shared=True, step_size=0.1)
    >>> stack(wl.ones((2, 4))).shape, stack.num_parameters()
    ((2, 4), 20)

    `make` gives a new f. A shared stack is a recurrent network without inputs, and Euler's method for the differential
    equation \(\dot x = f(x)\) with steps of h = `step_size`.
    """

    def __init__(
        self,
        make: Callable[[], Callable[..., Tensor]],
        steps: int,
        *,
        shared: bool = False,
        step_size: float = 1.0,
    ) -> None:
        as_function("ResidualStack", make)
        if isinstance(make, Module):
            raise ModuleError("ResidualStack: received a module.", "a function that makes one: lambda: nn.Linear(8, 8)")
        self.steps = as_int("ResidualStack", "steps", steps, 0)
        self.shared = bool(shared)
        self.step_size = as_number("ResidualStack", "step_size", step_size)
        self.blocks = ModuleList([make() for _ in range(min(self.steps, 1) if shared else self.steps)])

    def forward(self, x: ArrayLike) -> Tensor:
        x = arrays.asarray(x)
        for step in range(self.steps):
            update = self.blocks[0 if self.shared else step](x)
            x = _sum("ResidualStack", x, update if self.step_size == 1.0 else self.step_size * update)
        return x

    def extra_repr(self) -> str:
        return f"steps={self.steps}, shared={self.shared}, step_size={self.step_size}"


NORMS: dict[str, Callable[[int], Module]] = {"batch": BatchNorm1d, "layer": LayerNorm, "rms": RMSNorm}


class FCBlock(Sequential):
    """Linear, normalization, activation and dropout, in this order; what is not wanted is left out. Book, 9.3.

    >>> import wonderland as wl
    >>> wl.nn.FCBlock(4, 8, norm="batch", dropout=0.1)
    FCBlock(
      0: Linear(in_features=4, out_features=8, bias=False)
      1: BatchNorm1d(8, eps=1e-05, momentum=0.1, affine=True)
      2: ReLU()
      3: Dropout(p=0.1)
    )

    `norm` is None, "batch", "layer", "rms" or a function of the width; `activation` a name, a
    module, a function or None. Normalization over the batch has its own shift,
    so there is no bias before it unless `bias=True`. `dropout` is the probability to drop.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        norm: str | Callable[[int], Module] | None = None,
        activation: ActivationLike = "relu",
        dropout: float = 0.0,
        bias: bool | None = None,
    ) -> None:
        if isinstance(norm, str) and norm not in NORMS:
            raise InputError(f"FCBlock: norm={shown(norm)}.", f"one of {', '.join(map(repr, NORMS))}, or a function")
        made = None if norm is None else (NORMS[norm] if isinstance(norm, str) else norm)(out_features)
        bias = not isinstance(made, BatchNorm) if bias is None else bias
        active = None if activation is None else as_activation("FCBlock", activation)
        parts = [Linear(in_features, out_features, bias), made, active, Dropout(dropout) if dropout else None]
        super().__init__(*(part for part in parts if part is not None))


class _ImageBlock(Module):
    residual: Residual
    post_act: bool

    def forward(self, x: ArrayLike) -> Tensor:
        y = self.residual(x)
        return arrays.relu(y) if self.post_act else y


class BasicBlock(_ImageBlock):
    r"""\(x + \mathrm{BN}(\mathrm{Conv}(\mathrm{ReLU}(\mathrm{BN}(\mathrm{Conv}(x)))))\) on images. Book, section 9.4.1.

    >>> import wonderland as wl
    >>> wl.nn.BasicBlock(8).num_parameters()
    1184
    >>> wl.nn.BasicBlock(8, 16, stride=2)(wl.ones((2, 6, 6, 8))).shape
    (2, 3, 3, 16)

    Convolutions are 3 x 3 without bias: \(18c^2 + 4c\) parameters. If channels or `stride` change the shape, the
    shortcut is a 1 x 1 convolution with batch normalization. `post_act` adds a ReLU after the sum, as the first
    residual networks had it; `zero_init` starts the block as its shortcut.
    """

    def __init__(
        self,
        channels: int,
        out_channels: int | None = None,
        stride: int = 1,
        post_act: bool = False,
        zero_init: bool = False,
        key: Source = None,
    ) -> None:
        out = channels if out_channels is None else out_channels
        stream = own_stream(key)
        path = Sequential(
            Conv2d(channels, out, 3, stride, padding=1, bias=False, key=stream),
            BatchNorm2d(out),
            ReLU(),
            Conv2d(out, out, 3, padding=1, bias=False, key=stream),
            BatchNorm2d(out),
        )
        shortcut = _projection(channels, out, stride, stream)
        self.residual, self.post_act = Residual(path, shortcut, zero_init=zero_init), bool(post_act)


class BottleneckBlock(_ImageBlock):
    r"""1 x 1 to fewer channels, 3 x 3 among them, 1 x 1 back to all, and x added. Book, section 9.4.1, figure 9.6.

    >>> import wonderland as wl
    >>> block = wl.nn.BottleneckBlock(256)
    >>> sum(p.size for path, p in block.named_parameters() if p.ndim == 4)  # 256 * 64 + 9 * 64**2 + 64 * 256
    69632
    >>> wl.nn.BottleneckBlock(64, 128, stride=2)(wl.ones((2, 6, 6, 64))).shape
    (2, 3, 3, 128)

    The 3 x 3 convolution has out_channels / `reduction` channels (or `width` of them), in `groups`; it also has the
    stride. With many groups this is the block of ResNeXt. Every convolution is followed by batch normalization, the
    first two also by a ReLU. Other settings as in `BasicBlock`.
    """

    def __init__(
        self,
        channels: int,
        out_channels: int | None = None,
        stride: int = 1,
        reduction: int = 4,
        groups: int = 1,
        post_act: bool = False,
        zero_init: bool = False,
        width: int | None = None,
        key: Source = None,
    ) -> None:
        out = channels if out_channels is None else out_channels
        narrow = out // as_int("BottleneckBlock", "reduction", reduction, 1) if width is None else width
        stream = own_stream(key)
        path = Sequential(
            Conv2d(channels, narrow, 1, bias=False, key=stream),
            BatchNorm2d(narrow),
            ReLU(),
            Conv2d(narrow, narrow, 3, stride, padding=1, groups=groups, bias=False, key=stream),
            BatchNorm2d(narrow),
            ReLU(),
            Conv2d(narrow, out, 1, bias=False, key=stream),
            BatchNorm2d(out),
        )
        shortcut = _projection(channels, out, stride, stream)
        self.residual, self.post_act = Residual(path, shortcut, zero_init=zero_init), bool(post_act)


def _projection(channels: int, out: int, stride: int, key: KeyLike) -> Sequential | None:
    """The shortcut: nothing if shapes stay, else 1 x 1 with the stride."""
    if stride == 1 and out == channels:
        return None
    return Sequential(Conv2d(channels, out, 1, stride, bias=False, key=key), BatchNorm2d(out))


def _check_equal(name: str, x: Tensor, y: Tensor) -> None:
    if x.shape != y.shape:
        shortcut = ", or shortcut=... that makes the shape of f(x)" if name == "Residual" else ""
        raise ShapeError(
            f"{name}: f makes {y.shape} of what the connection around it carries as {x.shape}.",
            f"a function f that keeps the shape{shortcut}",
        )


def _sum(name: str, x: Tensor, y: Tensor) -> Tensor:
    _check_equal(name, x, y)
    return arrays.add(x, y)


def _end_at_zero(f: object) -> None:
    """The last layer of f with a scale or weights gives 0 at the start."""
    layers = f.modules() if isinstance(f, Module) else []
    scales = (BatchNorm, LayerNorm, GroupNorm, RMSNorm, LayerScale)
    weighted = [m for m in layers if isinstance(m, (*scales, Linear, _Convolution)) and m.weight is not None]
    if not weighted:
        raise ModuleError("Residual: zero_init found no layer with a scale or weights.", "a module with parameters")
    last: Any = weighted[-1]
    last.weight = arrays.zeros_like(last.weight)
    if getattr(last, "bias", None) is not None:
        last.bias = arrays.zeros_like(last.bias)
