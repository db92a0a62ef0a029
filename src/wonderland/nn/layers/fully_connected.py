"""The fully-connected layer with its activation function, and relatives. Book, section 5.2."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ... import arrays
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ..activations import activations as smooth
from ..activations import piecewise
from ..activations import trainable_activations as trained
from ..module.module import Module
from ..module.parameter import Buffer
from .gated import GLU
from .identity import Identity
from .linear import Linear

__all__ = ["FullyConnected", "SoftmaxLayer", "MaskedLinear"]

# fmt: off
_NAMED: tuple[type[Module], ...] = (
    Identity, piecewise.ReLU, piecewise.ReLU6, piecewise.LeakyReLU, piecewise.RReLU, trained.PReLU, smooth.ELU,
    smooth.CELU, smooth.SELU, smooth.GELU, smooth.SiLU, smooth.Mish, smooth.Tanh, smooth.Sigmoid, smooth.LogSigmoid,
    smooth.Softplus, smooth.Softsign, smooth.Tanhshrink, smooth.PolyActivation, piecewise.Hardtanh,
    piecewise.Hardsigmoid, piecewise.Hardswish, piecewise.Softshrink, piecewise.Hardshrink, piecewise.Step,
    piecewise.StochasticBinary, trained.TrainableSwish, trained.KAF, trained.APL, smooth.Softmax, smooth.Softmin,
    smooth.LogSoftmax, GLU,
)
# fmt: on
ActivationLike: TypeAlias = str | type[Module] | Callable[..., Tensor] | None  # see `as_activation`
ACTIVATIONS: dict[str, Callable[[], Module]] = {
    **{kind.__name__.lower(): kind for kind in _NAMED},
    "linear": Identity,
    "swish": smooth.SiLU,
    "gelutanh": functools.partial(smooth.GELU, approximate="tanh"),
}


def as_activation(name: str, activation: ActivationLike) -> Module:
    """What an `activation` argument stands for, as a module of its own.

    A name such as "relu", a module class, a module (copied, so that layers share no parameters), a function, or
    None for the identity.
    """
    if activation is None:
        return Identity()
    if isinstance(activation, str):
        if activation.lower().replace("_", "") not in ACTIVATIONS:
            import difflib

            near = difflib.get_close_matches(activation.lower(), ACTIVATIONS, 3) or ["relu", "tanh", "gelu"]
            raise InputError(f"{name}: there is no activation {activation!r}.", " or ".join(map(repr, near)))
        return ACTIVATIONS[activation.lower().replace("_", "")]()
    if isinstance(activation, type) and issubclass(activation, Module):
        return activation()
    if isinstance(activation, Module):
        return activation.copy()
    if not callable(activation):
        raise InputError(f"{name}: activation={activation!r} is not a function.", 'a function, a module or "relu"')
    return smooth.Activation(activation)  # type: ignore[arg-type]  # classes of modules have been dealt with


class FullyConnected(Module):
    r"""\(\mathrm{FC}(X) = \phi(XW + b)\): (..., in_features) to (..., out_features). Book, D.5.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.FullyConnected(3, 5, "relu")
    >>> layer
    FullyConnected(
      linear: Linear(in_features=3, out_features=5, bias=True)
      activation: ReLU()
    )
    >>> layer(wl.ones((7, 3))).shape, layer.num_parameters()
    ((7, 5), 20)

    (in_features + 1) out_features parameters. `activation` is a function, a module (the layer gets a copy), or a name;
    hooks on `layer.linear` and `layer.activation` see what comes before and after it. The last layer of a model should
    not have a ReLU: nothing negative would come out. Other settings are those of `Linear`.
    """

    def __init__(
        self,
        in_features: int | None,
        out_features: int,
        activation: ActivationLike = "relu",
        bias: bool = True,
        **settings: Any,
    ) -> None:
        self.linear = Linear(in_features, out_features, bias, **settings)
        self.activation = as_activation("FullyConnected", activation)

    def forward(self, x: ArrayLike) -> Tensor:
        return self.activation(self.linear(x))


class SoftmaxLayer(FullyConnected):
    r"""\(\mathrm{softmax}((xW + b)/\tau)\): probabilities, (..., in_features) to (..., classes). Book, section 4.2.

    >>> import wonderland as wl
    >>> wl.is_simplex(wl.nn.SoftmaxLayer(3, 5)(wl.ones((7, 3))), strict=True)
    True

    Train on the logits of a plain `Linear` with `wl.nn.CrossEntropyLoss` instead, which is more accurate.
    """

    def __init__(
        self, in_features: int | None, classes: int, temperature: float = 1.0, bias: bool = True, **settings: Any
    ) -> None:
        super().__init__(in_features, classes, smooth.Softmax(temperature=temperature), bias, **settings)


class MaskedLinear(Linear):
    r"""\(y = x (W \odot M) + b\) with a fixed mask M of zeros and ones: only some inputs reach an output.

    >>> import wonderland as wl
    >>> layer = wl.nn.MaskedLinear([[1, 0], [1, 1], [0, 1]])
    >>> layer(wl.ones(3)).shape, layer.connections
    ((2,), 4)

    `mask` is (in_features, out_features). Masked weights are kept at 0 and get no gradient.
    """

    def __init__(self, mask: ArrayLike, bias: bool = True, dtype: DTypeLike | None = None, key: KeyLike = None) -> None:
        given = np.asarray(mask)
        if given.ndim != 2 or not np.isin(given, (0, 1)).all():
            raise ShapeError(
                f"MaskedLinear: a mask of shape {given.shape} is not a matrix of zeros and ones.",
                "a mask of shape (in_features, out_features)",
            )
        super().__init__(given.shape[0], given.shape[1], bias, dtype, key)
        self.connections = int(given.sum())
        self.mask = Buffer(arrays.asarray(given, dtype=self.dtype))
        self.weight.assign(self.weight * self.mask)

    def forward(self, x: ArrayLike) -> Tensor:
        x = arrays.asarray(x)
        if not x.ndim or x.shape[-1] != self.in_features:
            raise ShapeError(
                f"{self._describe()}: an input of shape {x.shape} does not have {self.in_features} features.",
                f"an input of shape (..., {self.in_features})",
            )
        y = arrays.matmul(x, self.weight * self.mask)
        return y if self.bias is None else y + self.bias

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, connections={self.connections}"
