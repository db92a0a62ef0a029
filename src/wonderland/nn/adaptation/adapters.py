"""A few new parameters in a model that stays as it is: adapters and low-rank updates. Notes, section 8.5.6."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

from ... import arrays
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ModuleError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.continuous import normal, uniform
from ...random.keys import split
from ...random.streams import Source, Stream, take_key
from ..layers.convolution import _Convolution
from ..layers.dropout import Dropout
from ..layers.embedding import Embedding
from ..layers.fully_connected import ActivationLike, as_activation
from ..layers.linear import Linear
from ..layers.normalization import LayerNorm, RMSNorm, _ChannelNorm
from ..layers.residual import Residual
from ..module.containers import Sequential
from ..module.module import Module
from ..module.parameter import Parameter
from ..module.reparameterization import Reparameterized
from .surgery import is_place, replace_submodule

__all__ = ["Adapter", "Adapted", "inject_adapters", "LoRALinear", "inject_lora", "merge_lora"]

M = TypeVar("M", bound=Module)


class Adapter(Module):
    r"""A residual bottleneck, \(x + \phi(x A + a)\,B + b\), with few parameters. Notes, section 8.5.6.

    >>> import wonderland as wl
    >>> adapter = wl.nn.Adapter(64, r=4)
    >>> adapter(wl.ones((2, 64))).shape, adapter.num_parameters()
    ((2, 64), 580)

    A is (features, r) and B (r, features): 2 r features weights, and r + features biases. B starts from
    \(N(0, \mathrm{std}^2)\) with a small `init_std`, and b from 0, so that the output starts near x; with 0 it is x.
    """

    def __init__(
        self,
        features: int,
        r: int = 8,
        activation: ActivationLike = "relu",
        init_std: float = 1e-3,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        features, r = as_int("Adapter", "features", features, 1), as_int("Adapter", "r", r, 1)
        if not as_number("Adapter", "init_std", init_std) >= 0:
            raise InputError(f"Adapter: init_std={init_std!r}.", "a small number, 0 or more")
        keys = split(take_key("Adapter", key), 2)
        down = Linear(features, r, dtype=dtype, key=keys[0])
        up = Linear(r, features, dtype=dtype, key=keys[1], init="zeros", bias_init="zeros")
        if init_std:
            up.weight = normal(up.weight.shape, 0.0, init_std, key=keys[1], dtype=up.dtype)
        self.residual = Residual(Sequential(down, as_activation("Adapter", activation), up))

    def forward(self, x: ArrayLike) -> Tensor:
        return self.residual(x)


class Adapted(Module):
    """A module and the adapter that follows it, as `inject_adapters` puts them into a model.

    >>> import wonderland as wl
    >>> wl.nn.Adapted(wl.nn.Linear(2, 3), wl.nn.Adapter(3, 1))(wl.ones(2)).shape
    (3,)
    """

    def __init__(self, base: Module, adapter: Module) -> None:
        self.base = base
        self.adapter = adapter

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.adapter(self.base(*args, **kwargs))


def inject_adapters(
    model: M, places: str | Iterable[str], r: int = 8, features: int | None = None, key: Source = None, **settings: Any
) -> M:
    """Freeze a model and put an adapter after each module at `places`, in place. Notes, section 8.5.6.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(64, 64), wl.relu, wl.nn.Linear(64, 64))
    >>> wl.nn.trainable_report(wl.nn.inject_adapters(model, ["0", "2"], r=2))
    Trainable(trainable=644, total=8964, fraction=0.0718)

    `places` are paths or patterns of them. `features` is the width of the modules' outputs, which is known for linear,
    convolutional, embedding and normalization layers. Other settings are those of `Adapter`.
    """
    chosen = _chosen("inject_adapters", model, places, Module)
    stream = None if key is None else Stream(key)
    adapters = [Adapter(features or _width(path, module), r, key=stream, **settings) for path, module in chosen]
    model.freeze()
    for (path, module), adapter in zip(chosen, adapters, strict=True):
        replace_submodule(model, path, Adapted(module, adapter).train(module.training))
    return model


class LoRALinear(Module):
    r"""\(x W + b + \frac{\alpha}{r}\,x A B\): a linear layer with a low-rank update. Notes, section 8.5.6.

    >>> import wonderland as wl
    >>> base = wl.nn.Linear(64, 32)
    >>> layer = wl.nn.LoRALinear(base, r=4)
    >>> x = wl.ones((2, 64))
    >>> bool((layer(x) == base(x)).all()), layer.num_parameters(trainable_only=True)
    (True, 384)

    W is frozen; A (in, r) starts as the weight of a linear layer and B (r, out) from 0: r(in + out) numbers are
    trained, and the layer starts as it was. With `train_bias` b is trained, too. `alpha` is r by default; `dropout`
    acts on the input of A. `merge()` adds the update into W for inference, and `unmerge()` takes it out again; save the
    state of a layer that is not merged.
    """

    def __init__(
        self,
        base: Linear,
        r: int = 8,
        alpha: float | None = None,
        dropout: float = 0.0,
        train_bias: bool = False,
        key: KeyLike = None,
    ) -> None:
        if not isinstance(base, Linear) or base.in_features is None:
            raise ModuleError(
                f"LoRALinear: received a {type(base).__name__}.", "a Linear; a lazy one after its first input"
            )
        self.r = as_int("LoRALinear", "r", r, 1)
        self.alpha = float(self.r if alpha is None else as_number("LoRALinear", "alpha", alpha))
        self.base = base
        base.weight.trainable = False
        if base.bias is not None:
            base.bias.trainable = bool(train_bias)
        bound = 1 / math.sqrt(max(base.in_features, 1))
        shape = (base.in_features, self.r)
        self.A = Parameter(uniform(shape, -bound, bound, key=take_key("LoRALinear", key), dtype=base.weight.dtype))
        self.B = Parameter(arrays.zeros((self.r, base.out_features), dtype=base.weight.dtype))
        self.dropout = Dropout(dropout) if dropout else None
        self.merged = False

    def forward(self, x: ArrayLike) -> Tensor:
        y = self.base(x)
        if self.merged:
            return y
        x = arrays.asarray(x) if self.dropout is None else self.dropout(x)
        return y + arrays.matmul(arrays.matmul(x, self.A), self.B) * (self.alpha / self.r)

    def delta(self) -> Tensor:
        r"""\(\Delta W = \frac{\alpha}{r} A B\), of rank r at most."""
        return arrays.matmul(self.A, self.B) * (self.alpha / self.r)

    def merge(self) -> Linear:
        """Add the update into the weight, until `unmerge()`; the linear layer, which now computes it all."""
        if not self.merged:
            self.base.weight = arrays.stop_gradient(self.base.weight + self.delta())
            self.merged = True
        return self.base

    def unmerge(self) -> LoRALinear:
        """Take the update out of the weight again, up to rounding."""
        if self.merged:
            self.base.weight = arrays.stop_gradient(self.base.weight - self.delta())
            self.merged = False
        return self

    def extra_repr(self) -> str:
        return f"r={self.r}, alpha={self.alpha}" + (", merged=True" if self.merged else "")


def inject_lora(
    model: M,
    places: str | Iterable[str] = "*",
    r: int = 8,
    alpha: float | None = None,
    dropout: float = 0.0,
    train_biases: bool = False,
    key: Source = None,
) -> M:
    """Freeze a model and give each linear layer at `places` a low-rank update, in place. Notes, section 8.5.6.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(64, 64), wl.relu, wl.nn.Linear(64, 64))
    >>> wl.nn.trainable_report(wl.nn.inject_lora(model, r=2))
    Trainable(trainable=512, total=8832, fraction=0.058)

    `places` are patterns of paths, by default all linear layers. With `train_biases` all biases of the model are
    trained as well. `merge_lora` makes an ordinary model of it.
    """
    chosen = _chosen("inject_lora", model, places, Linear)
    stream = None if key is None else Stream(key)
    updates = [LoRALinear(module, r, alpha, dropout, key=stream) for _, module in chosen]
    model.freeze()
    for (path, module), update in zip(chosen, updates, strict=True):
        replace_submodule(model, path, update.train(module.training))
    if train_biases:
        for path, parameter in model.named_parameters():
            if path.rsplit(".", 1)[-1].startswith("bias"):
                parameter.trainable = True
    return model


def merge_lora(model: M) -> M:
    """Replace each `LoRALinear` in the model by the linear layer with the update in its weight, in place.

    >>> import wonderland as wl
    >>> wl.nn.merge_lora(wl.nn.inject_lora(wl.nn.Sequential(wl.nn.Linear(4, 4))))
    Sequential(
      0: Linear(in_features=4, out_features=4, bias=True)
    )
    """
    for path, module in model.named_modules():
        if path and isinstance(module, LoRALinear):
            replace_submodule(model, path, module.merge())
    return model


def _chosen(name: str, model: Module, places: str | Iterable[str], wanted: type[M]) -> list[tuple[str, M]]:
    """The modules of a kind at the places, without those that belong to an adapter or another wrapper already."""
    patterns = [places] if isinstance(places, str) else list(places)
    inner = {
        id(part)
        for module in model.modules()
        if isinstance(module, (Adapted, Adapter, LoRALinear, Reparameterized))
        for part in module.modules()[1:]
    }
    candidates = [
        (path, module)
        for path, module in model.named_modules()
        if path and isinstance(module, wanted) and id(module) not in inner
    ]
    found = [(path, module) for path, module in candidates if is_place(path, patterns)]
    for pattern in patterns:
        if not any(is_place(path, pattern) for path, _ in found):
            known = [path for path, _ in candidates]
            kind = "" if wanted is Module else f" {wanted.__name__}"
            raise ModuleError(
                f"{name}: this {type(model).__name__} has no{kind} module at {pattern!r}.",
                f"paths such as {', '.join(map(repr, known[:4]))}" if known else f"a model with a{kind} module in it",
            )
    return found


def _width(path: str, module: Module) -> int:
    """The size of the last axis of a module's outputs."""
    if isinstance(module, Linear):
        return module.out_features
    if isinstance(module, _Convolution):
        return module.out_channels
    if isinstance(module, Embedding):
        return module.embedding_dim
    if isinstance(module, (LayerNorm, RMSNorm)):
        return module.normalized_shape[-1]
    if isinstance(module, _ChannelNorm):
        return module.num_features
    raise ModuleError(
        f"inject_adapters: the width of the {type(module).__name__} at {path!r} is not known.", "features=..."
    )
