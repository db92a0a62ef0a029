"""Attention through a few trained tokens, whose cost is linear in the sequence. Book, section 11.2.1."""

from __future__ import annotations

from typing import Any

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.arguments import as_int, shown
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.continuous import normal
from ...random.keys import split
from ...random.streams import take_key
from ..module.lazy import at_once
from ..module.module import Module
from ..module.parameter import Held, Parameter
from ..sequences.token_masks import as_sequence
from .multi_head import MultiHeadAttention

__all__ = ["LatentAttention"]


class LatentAttention(Module):
    r"""Cross-attention with a trained set of m tokens, as in a Perceiver. Book, section 11.2.1.

    >>> import wonderland as wl
    >>> x = wl.ones((2, 1000, 32))
    >>> wl.nn.LatentAttention(8, 32, num_heads=4)(x).shape  # what eight latents have found in x
    (2, 8, 32)
    >>> wl.nn.LatentAttention(8, 32, num_heads=4, queries="inputs")(x).shape
    (2, 1000, 32)

    With `queries="latents"` the latents ask, \(\mathrm{CA}(Z, X)\), and m tokens come out, whatever the number n of
    tokens; with "inputs" the tokens ask, \(\mathrm{CA}(X, Z)\), and n come out. The cost grows with n m, and there are
    m e parameters beside those of the attention, however long the sequences. `latents` (m, e) start from
    \(N(0, 0.02^2)\). The options are those of `MultiHeadAttention`.
    """

    latents: Held[Parameter]

    def __init__(
        self,
        m: int,
        embed_dim: int,
        num_heads: int = 1,
        queries: str = "latents",
        *,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        **options: Any,
    ) -> None:
        name = type(self).__name__
        self.m, e = as_int(name, "m", m, 1), as_int(name, "embed_dim", embed_dim, 1)
        if queries not in ("latents", "inputs"):
            raise InputError(f"{name}: queries={shown(queries)}.", '"latents" or "inputs"')
        self.queries = queries
        first, second = split(take_key(name, key), 2)
        with at_once(first):
            kind = dtypes.default_float if dtype is None else dtype
            self.latents = Parameter(normal((self.m, e), key=first, dtype=kind) * 0.02)
        self.attention = MultiHeadAttention(e, num_heads, dtype=dtype, key=second, **options)

    def forward(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        x = as_sequence(self, as_real(type(self).__name__, x), self.attention.embed_dim)
        latents = arrays.broadcast_to(self.latents, (*x.shape[:-2], *self.latents.shape))
        if self.queries == "latents":
            found = self.attention(latents, x, token_mask=token_mask, lengths=lengths)
        else:  # tokens do not see each other, so padding has nobody to reach
            found = self.attention(x, latents)
        return found

    def extra_repr(self) -> str:
        return ", ".join([f"{self.m}, {self.attention.embed_dim}", *self._changed(queries="latents")])
