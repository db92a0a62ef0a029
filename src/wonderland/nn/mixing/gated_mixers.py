"""Blocks in which one function of the tokens gates another: gMLP and the gated attention unit. Book, section 11.3."""

from __future__ import annotations

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..functional.attention import scaled_dot_product_attention
from ..init.schemes import uniform
from ..layers.fully_connected import ActivationLike, as_activation
from ..layers.linear import Linear
from ..sequences.token_masks import silenced
from .mixing_block import NormLike, as_norm
from .token_mixers import check_tokens
from .tokens import TokenMixer

__all__ = ["SpatialGatingUnit", "GMLPBlock", "GatedAttentionUnit"]


class SpatialGatingUnit(TokenMixer):
    r"""\(Z_1 \odot (W\,\mathrm{norm}(Z_2) + b)\) of the halves of Z: (..., n, features) to (..., n, features/2).

    >>> import wonderland as wl
    >>> layer = wl.nn.SpatialGatingUnit(16, 8)
    >>> layer(wl.ones((2, 16, 8))).shape, layer.num_parameters()  # n^2 + n + features
    ((2, 16, 4), 280)

    W is n x n and mixes tokens, whose number is fixed; padded ones count as zeros. It starts near 0 and b from 1, so
    that at first \(Z_1\) passes as it is. `spatial` holds both, transposed. Book, section 11.3.
    """

    def __init__(
        self, n: int, features: int, norm: NormLike = "layer", dtype: DTypeLike | None = None, key: KeyLike = None
    ) -> None:
        name = "SpatialGatingUnit"
        self.n, self.in_features = as_int(name, "n", n, 1), as_int(name, "features", features, 2)
        if self.in_features % 2:
            raise InputError(f"{name}: features={features} have no halves.", "an even number")
        self.norm = as_norm(name, norm, self.in_features // 2, dtype)
        small = uniform(-1e-3 / self.n, 1e-3 / self.n)
        self.spatial = Linear(self.n, self.n, dtype=dtype, key=key, init=small, bias_init="ones")

    def features(self) -> int | None:
        return self.in_features

    def mix(self, x: Tensor, mask: Tensor | None) -> Tensor:
        check_tokens(self, x, self.n)
        value, gate = arrays.split(x, 2, axis=-1)
        return value * self.spatial(silenced(self.norm(gate), mask).mT).mT

    def extra_repr(self) -> str:
        return f"n={self.n}, features={self.in_features}"


class GMLPBlock(TokenMixer):
    r"""\(X + \mathrm{SGU}(\phi(\mathrm{norm}(X) U)) V\) with a `SpatialGatingUnit`: (..., n, e) to itself. Book, 11.3.

    >>> import wonderland as wl
    >>> block = wl.nn.GMLPBlock(16, 8)
    >>> block(wl.ones((2, 16, 8))).shape, block.num_parameters()
    ((2, 16, 8), 744)

    Gated units are where a `MixerBlock` mixes channels, and there is no other mixing of tokens. With `hidden` = h units
    (by default 4e, an even number) it has \(eh + h + (h/2)e + e + n^2 + n + h + 2e\) parameters.
    """

    def __init__(
        self,
        n: int,
        e: int,
        hidden: int | None = None,
        activation: ActivationLike = "gelu",
        norm: NormLike = "layer",
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "GMLPBlock"
        self.e = as_int(name, "e", e, 1)
        wide = 4 * self.e if hidden is None else as_int(name, "hidden", hidden, 2)
        keys = split(take_key(name, key), 3)
        self.norm = as_norm(name, norm, self.e, dtype)
        self.up = Linear(self.e, wide, bias, dtype=dtype, key=keys[0])
        self.activation = as_activation(name, activation)
        self.gate = SpatialGatingUnit(n, wide, norm, dtype=dtype, key=keys[1])
        self.down = Linear(wide // 2, self.e, bias, dtype=dtype, key=keys[2])

    def features(self) -> int | None:
        return self.e

    def mix(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return x + self.down(self.gate(self.activation(self.up(self.norm(x))), mask))

    def extra_repr(self) -> str:
        return f"{self.gate.n}, {self.e}"


class GatedAttentionUnit(TokenMixer):
    r"""\(\mathrm{softmax}(Q K^\top/\sqrt{k})\,V \odot \phi(X B)\) of one head: (..., n, e) to itself. Book, 11.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.GatedAttentionUnit(8, key_size=4)
    >>> layer(wl.ones((2, 16, 8))).shape, layer.num_parameters()  # 2 e k + 2 e^2
    ((2, 16, 8), 192)

    Q, K, V are projections of X by `query`, `key` and `value`, and B is `gate`. \(\phi\) is the identity, unless there
    is an `activation`. With `hidden` = h, V and XB are that wide, and a last layer `out` brings their product back to
    e: \(2ek + 3eh\) parameters. With `is_causal` no token sees a later one.
    """

    def __init__(
        self,
        e: int,
        key_size: int | None = None,
        hidden: int | None = None,
        activation: ActivationLike = None,
        is_causal: bool = False,
        bias: bool = False,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "GatedAttentionUnit"
        self.e, self.is_causal = as_int(name, "e", e, 1), bool(is_causal)
        k = self.e if key_size is None else as_int(name, "key_size", key_size, 1)
        h = self.e if hidden is None else as_int(name, "hidden", hidden, 1)
        keys = split(take_key(name, key), 5)
        self.query, self.key = (Linear(self.e, k, bias, dtype=dtype, key=keys[i]) for i in (0, 1))
        self.value, self.gate = (Linear(self.e, h, bias, dtype=dtype, key=keys[i]) for i in (2, 3))
        self.activation = as_activation(name, activation)
        self.out = None if hidden is None else Linear(h, self.e, bias, dtype=dtype, key=keys[4])

    def features(self) -> int | None:
        return self.e

    def attend(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """What comes out of attention, before the gate: (..., n, h)."""
        seen = None if mask is None else arrays.expand_dims(mask, axis=-2)
        q, k, v = self.query(x), self.key(x), self.value(x)
        return scaled_dot_product_attention(q, k, v, seen, is_causal=self.is_causal)

    def mix(self, x: Tensor, mask: Tensor | None) -> Tensor:
        y = self.attend(x, mask) * self.activation(self.gate(x))
        return y if self.out is None else self.out(y)

    def extra_repr(self) -> str:
        return f"{self.e}" + (", is_causal=True" if self.is_causal else "")
