"""The multilayer perceptron: fully-connected layers one after another. Book, section 5.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.init.naming import InitializerLike
from ...nn.layers.dropout import Dropout
from ...nn.layers.fully_connected import ActivationLike, as_activation
from ...nn.layers.identity import Identity
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import BatchNorm1d, LayerNorm, RMSNorm
from ...nn.module.containers import Sequential
from ...nn.module.module import Module
from ...random.keys import split
from ...random.streams import take_key

NORMS: dict[str, Callable[[int], Module]] = {"batch": BatchNorm1d, "layer": LayerNorm, "rms": RMSNorm}


class MLP(Module):
    r"""\(y = W_l\,\phi(W_{l-1}\,\phi(\cdots) + b_{l-1}) + b_l\): fully-connected layers. Book, E.5.6.

    >>> import wonderland as wl
    >>> model = wl.models.MLP(5, [4, 3], 2)
    >>> model(wl.ones((7, 5))).shape, model.num_parameters(), model.depth, model.widths
    ((7, 2), 47, 2, (5, 4, 3, 2))
    >>> wl.models.MLP([3, 8, 1], activation="tanh")
    MLP(
      0: Linear(in_features=3, out_features=8, bias=True)
      1: Tanh()
      2: Linear(in_features=8, out_features=1, bias=True)
    )

    (..., in_features) becomes (..., out_features). `hidden` is a list of widths, or one width; all sizes may also come
    as one list. The last layer has no activation: its outputs are predictions of a regression, or logits. `activation`
    is a name, a function or a module, of which every layer gets a copy. `norm` ("batch", "layer", "rms", or a function
    from a width to a module) stands before the activation, dropout after it. `init` and `bias_init` are initialisers,
    see `wl.nn.init`. With `in_features=None` the first input decides.
    """

    ends_linear = True

    def __init__(
        self,
        in_features: int | Sequence[int] | None,
        hidden: int | Sequence[int] = (),
        out_features: int | None = None,
        activation: ActivationLike = "relu",
        dropout: float = 0.0,
        norm: str | Callable[[int], Module] | None = None,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        *,
        init: InitializerLike | None = None,
        bias_init: InitializerLike | None = None,
    ) -> None:
        name = type(self).__name__
        self.widths = _as_widths(name, in_features, hidden, out_features)
        keys = split(take_key(name, key), len(self.widths) - 1)
        layers: list[Module] = []
        for i, (inputs, outputs) in enumerate(zip(self.widths[:-1], self.widths[1:], strict=True)):
            layers.append(Linear(inputs, outputs, bias, dtype, keys[i], init=init, bias_init=bias_init))
            last = i == len(self.widths) - 2
            self._head = len(layers) - 1  # where the last linear layer is
            if last and self.ends_linear:
                break
            layers += [] if norm is None else [_as_norm(name, norm, outputs, dtype)]
            step = as_activation(name, activation)
            layers += [] if isinstance(step, Identity) else [step]
            layers += [Dropout(dropout)] if dropout and not last else []
        self.layers = Sequential(*layers)

    @property
    def depth(self) -> int:
        """The number of hidden layers; a network with more than one is deep."""
        return len(self.widths) - 2

    def forward(self, x: ArrayLike) -> Tensor:
        return self.layers(x)

    def encode(self, x: ArrayLike) -> Tensor:
        """The embedding of x: what the last layer receives, (..., last hidden width)."""
        return self.layers[: self._head](x)

    @property
    def head(self) -> Module:
        """The last linear layer."""
        return self.layers[self._head]

    @head.setter
    def head(self, layer: Module) -> None:
        self.layers[self._head] = layer

    def extra_repr(self) -> str:
        return ""

    def _shown(self) -> list[tuple[str, object]]:
        return self.layers._shown()


class RectifierNet(MLP):
    r"""An MLP with ReLU after every layer, the last one too: a piecewise linear function that is never negative.

    >>> import wonderland as wl
    >>> net = wl.models.RectifierNet(2, [4, 4], 1)
    >>> bool((net(wl.random.normal((100, 2))) >= 0).all())
    True

    `wl.nn.regions` counts its pieces.
    """

    ends_linear = False


def width_for_budget(in_features: int, out_features: int, depth: int, parameters: int) -> int:
    """The width of `depth` equal hidden layers with which an MLP comes closest to a number of parameters.

    >>> import wonderland as wl
    >>> widths = [wl.models.width_for_budget(64, 10, depth, 20_000) for depth in (1, 2, 4)]
    >>> [wl.models.MLP(64, [z] * depth, 10).num_parameters() for z, depth in zip(widths, (1, 2, 4))]
    [20035, 19882, 20170]

    For comparing depth with width at an equal cost.
    """
    name = "width_for_budget"
    c, m = as_int(name, "in_features", in_features, 1), as_int(name, "out_features", out_features, 1)
    deep, budget = as_int(name, "depth", depth, 1), as_int(name, "parameters", parameters, 1)

    def count(z: int) -> int:
        return (c + 1) * z + (deep - 1) * (z + 1) * z + (z + 1) * m

    if count(1) > budget:
        raise InputError(f"{name}: {deep} hidden layers have at least {count(1)} parameters.", "a larger budget")
    high = 1
    while count(high) <= budget:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) <= budget else (low, middle)
    return min(low, high, key=lambda z: abs(count(z) - budget))


def _as_widths(
    name: str, first: int | Sequence[int] | None, hidden: int | Sequence[int], last: int | None
) -> tuple[Any, ...]:
    """All sizes, from the input's to the output's."""
    if isinstance(first, (list, tuple)):
        if last is not None or hidden != ():
            raise InputError(f"{name}: a list of all sizes comes alone.", f"{name}([3, 8, 1]) or {name}(3, [8], 1)")
        sizes = list(first)
    else:
        if last is None:
            raise InputError(f"{name}: there is no out_features.", f"{name}(3, [8], 1) or {name}([3, 8, 1])")
        sizes = [first, *([hidden] if isinstance(hidden, int) else hidden), last]
    if len(sizes) < 2:
        raise InputError(f"{name}: the sizes {sizes} make no layer.", "at least those of the input and the output")
    checked = [as_int(name, "a width", size, 1) for size in sizes[1:]]
    return (None if sizes[0] is None else as_int(name, "in_features", sizes[0], 1), *checked)


def _as_norm(name: str, norm: str | Callable[[int], Module], width: int, dtype: DTypeLike | None) -> Module:
    if isinstance(norm, str) and norm in NORMS:
        made = NORMS[norm](width)
        return made if dtype is None else made.astype(dtype)
    if isinstance(norm, str) or not callable(norm):
        raise InputError(f"{name}: norm={norm!r}.", f"{', '.join(map(repr, NORMS))}, or a function of a width")
    return norm(width)
