"""What a transformer does to each token by itself: an MLP with one wide hidden layer, plain or gated. Book, 10.3.1."""

from __future__ import annotations

from ...core.arguments import as_int, as_number
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..layers.dropout import Dropout
from ..layers.fully_connected import ActivationLike, as_activation
from ..layers.gated import GatedLinear
from ..layers.linear import Linear
from ..module.module import Module

__all__ = ["FeedForward", "GatedFeedForward"]


class FeedForward(Module):
    r"""\(\phi(x W_1) W_2\) on every token: (..., e) to (..., e), p = `mult` e units in between. Book, section 10.3.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.FeedForward(512)
    >>> layer(wl.ones((2, 7, 512))).shape, layer.num_parameters()  # 2 p e
    ((2, 7, 512), 2097152)

    It mixes channels and no tokens, so it needs no mask. `activation` is a name, a function or a module. With `bias`
    there are p + e parameters more. `hidden` gives p itself. `dropout` acts on the hidden units while training.
    """

    def __init__(
        self,
        e: int,
        mult: float = 4,
        activation: ActivationLike = "gelu",
        bias: bool = False,
        dropout: float = 0.0,
        hidden: int | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        e = as_int(name, "e", e, 1)
        wide = round(as_number(name, "mult", mult) * e) if hidden is None else as_int(name, "hidden", hidden, 1)
        if wide < 1:
            raise InputError(f"{name}: mult={mult} leaves no hidden units.", "mult=4, or hidden=...")
        keys = split(take_key(name, key), 2)
        self.up = Linear(e, wide, bias, dtype=dtype, key=keys[0])
        self.activation = as_activation(name, activation)
        self.dropout = Dropout(dropout) if dropout else None
        self.down = Linear(wide, e, bias, dtype=dtype, key=keys[1])

    def forward(self, x: ArrayLike) -> Tensor:
        h = self.activation(self.up(x))
        return self.down(h if self.dropout is None else self.dropout(h))


class GatedFeedForward(Module):
    r"""\((\phi(x W_g) \odot x W_v) W_2\) on every token, as in LLaMA: (..., e) to (..., e). Book, section 11.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.GatedFeedForward(64)
    >>> layer(wl.ones((2, 7, 64))).shape, layer.num_parameters()  # 3 p e
    ((2, 7, 64), 33792)
    >>> wl.eval_shape(lambda: wl.nn.GatedFeedForward(4096, multiple_of=256)).down.in_features
    11008

    By `activation` it is SwiGLU ("silu"), GEGLU ("gelu"), ReGLU ("relu"), GLU ("sigmoid") or bilinear (None). There are
    p = `hidden` units, by default 8e/3, rounded up to a `multiple_of`: three matrices then have about the numbers that
    the two of a `FeedForward` have. `gated` is the `GatedLinear` that makes the units, `down` the layer after it.
    """

    def __init__(
        self,
        e: int,
        hidden: int | None = None,
        activation: ActivationLike = "silu",
        bias: bool = False,
        dropout: float = 0.0,
        multiple_of: int = 8,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        e, unit = as_int(name, "e", e, 1), as_int(name, "multiple_of", multiple_of, 1)
        wide = unit * -(-8 * e // (3 * unit)) if hidden is None else as_int(name, "hidden", hidden, 1)
        keys = split(take_key(name, key), 2)
        self.gated = GatedLinear(e, wide, bias, as_activation(name, activation), dtype=dtype, key=keys[0])
        self.dropout = Dropout(dropout) if dropout else None
        self.down = Linear(wide, e, bias, dtype=dtype, key=keys[1])

    def forward(self, x: ArrayLike) -> Tensor:
        h = self.gated(x)
        return self.down(h if self.dropout is None else self.dropout(h))
