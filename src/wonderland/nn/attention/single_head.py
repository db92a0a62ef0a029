"""Attention with one head and scores of any kind: what the softmax is taken of, and what comes in its place.

    scores   e_ij = a(q_i, k_j)       a dot product, divided by sqrt(k) or not, a small MLP, or a function of your own
    weights  softmax_j(e_ij)          or 1 for the largest score ("hard"), or the scores themselves ("linear")
    result   sum_j weight_ij v_j

Book, section 10.1.2; notes, section 5.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.arguments import as_int, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..functional.attention_weights import MODES
from ..layers.linear import Linear
from ..module.module import Module
from ..sequences.token_masks import as_token_mask, silenced

__all__ = ["AdditiveScore", "Attention"]

ScoreLike: TypeAlias = "str | Callable[[Tensor, Tensor], Tensor]"
NAMED = ("scaled", "dot", "additive")


class AdditiveScore(Module):
    r"""\(a(q, k) = w^\top \tanh(q W_q + k W_k + b)\), a small MLP of a query and a key. Notes, section 5.5.2.

    >>> import wonderland as wl
    >>> score = wl.nn.AdditiveScore(query_size=6, key_size=4, hidden=16)
    >>> score(wl.ones((2, 5, 6)), wl.ones((2, 7, 4))).shape, score.num_parameters()
    ((2, 5, 7), 192)

    Queries (..., t, query_size) and keys (..., s, key_size), which may have different features, give scores
    (..., t, s). The hidden units of all t s pairs are in memory.
    """

    def __init__(
        self,
        query_size: int,
        key_size: int | None = None,
        hidden: int | None = None,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        self.query_size = as_int(name, "query_size", query_size, 1)
        self.key_size = self.query_size if key_size is None else as_int(name, "key_size", key_size, 1)
        units = self.query_size if hidden is None else as_int(name, "hidden", hidden, 1)
        keys = split(take_key(name, key), 3)
        self.query = Linear(self.query_size, units, bias, dtype, keys[0])
        self.key = Linear(self.key_size, units, False, dtype, keys[1])
        self.output = Linear(units, 1, False, dtype, keys[2])

    def forward(self, query: ArrayLike, key: ArrayLike) -> Tensor:
        q, k = arrays.expand_dims(self.query(query), -2), arrays.expand_dims(self.key(key), -3)
        return self.output(arrays.tanh(q + k))[..., 0]  # (..., t, s, hidden) to (..., t, s)

    def extra_repr(self) -> str:
        return f"{self.query_size}, {self.key_size}"


class Attention(Module):
    r"""\(h_i = \sum_j \alpha_{ij} v_j\) with weights of scores \(a(q_i, k_j)\), one head. Book, E.10.5 to E.10.11.

    >>> import wonderland as wl
    >>> layer = wl.nn.Attention(8, key_size=4, value_size=6)
    >>> x, z = wl.ones((2, 10, 8)), wl.ones((2, 7, 8))
    >>> layer(x).shape, layer(x, z).shape, layer.num_parameters()  # 2 k e + v e
    ((2, 10, 6), (2, 10, 6), 112)

    \(q_i = x_i W_q\), \(k_j = z_j W_k\) and \(v_j = z_j W_v\) with weights (e, k), (e, k) and (e, v); the token form of
    the book, \(W x\), has their transposes. Queries come from the first argument, keys and values from the second, by
    default the same, and values from the third, if there is one.

    `score` is "scaled", \(q \cdot k/\sqrt{k}\), "dot" without the divisor, "additive", an `AdditiveScore` with `hidden`
    units, or a function, modules among them, from queries (..., t, k) and keys (..., s, k) to scores (..., t, s).
    `mode` is "soft", a softmax over the keys; "hard", the value of the key with the largest score, which gives no
    gradient to queries and keys; or "linear", the scores themselves. Masks and `return_weights` are those of
    `MultiHeadAttention`, with weights (..., t, s).
    """

    def __init__(
        self,
        embed_dim: int,
        key_size: int | None = None,
        value_size: int | None = None,
        score: ScoreLike = "scaled",
        mode: str = "soft",
        *,
        hidden: int | None = None,
        key_dim: int | None = None,
        bias: bool = False,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        self.embed_dim = as_int(name, "embed_dim", embed_dim, 1)
        self.key_size = as_int(name, "key_size", embed_dim if key_size is None else key_size, 1)
        self.value_size = as_int(name, "value_size", self.key_size if value_size is None else value_size, 1)
        self.key_dim = as_int(name, "key_dim", embed_dim if key_dim is None else key_dim, 1)
        if not callable(score) and score not in NAMED:
            raise InputError(f"{name}: score={shown(score)}.", f"{', '.join(map(repr, NAMED))}, or a function")
        if mode not in MODES:
            raise InputError(f"{name}: mode={shown(mode)}.", f"one of {', '.join(map(repr, MODES))}")
        keys = split(take_key(name, key), 4)
        if score == "additive":
            score = AdditiveScore(self.key_size, self.key_size, hidden, dtype=dtype, key=keys[3])
        elif hidden is not None:
            raise InputError(f"{name}: hidden={hidden} units of the score {shown(score)}.", 'score="additive"')
        self.score, self.mode = score, mode
        self.query = Linear(self.embed_dim, self.key_size, bias, dtype, keys[0])
        self.key = Linear(self.key_dim, self.key_size, bias, dtype, keys[1])
        self.value = Linear(self.key_dim, self.value_size, bias, dtype, keys[2])

    def forward(
        self,
        query: ArrayLike,
        key: ArrayLike | None = None,
        value: ArrayLike | None = None,
        *,
        attn_mask: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        name = self._describe()
        x = as_real(name, query)
        z = x if key is None else as_real(name, key)
        y = z if value is None else as_real(name, value)
        for what, given, size in (("query", x, self.embed_dim), ("key", z, self.key_dim), ("value", y, self.key_dim)):
            if given.ndim < 2 or given.shape[-1] != size:
                raise ShapeError(f"{name}: a {what} of shape {given.shape}.", f"(..., time, {size})")
        if z.shape[:-1] != y.shape[:-1]:
            raise ShapeError(f"{name}: keys {z.shape} and values {y.shape}.", "one value for each key")
        real = as_token_mask(name, z.shape[:-1], token_mask, lengths)
        z, y, x = silenced(z, real), silenced(y, real), silenced(x, real) if key is None else x
        q, k, v = self.query(x), self.key(z), self.value(y)  # (..., t, k), (..., s, k), (..., s, v)
        scale = 1.0 if self.score == "dot" else None
        plain = isinstance(self.score, str)
        mask = _with_padding(attn_mask, real)
        if plain and self.mode == "soft" and not return_weights:
            return F.scaled_dot_product_attention(q, k, v, mask, scale=scale)
        if plain:
            out, weights = F.attention_with_weights(q, k, v, mask, scale=scale, mode=self.mode)
        else:
            out, weights = self._by_function(q, k, v, mask)
        return (out, weights) if return_weights else out

    def _by_function(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        assert callable(self.score)
        scores = self.score(q, k)
        wanted = (*q.shape[:-1], k.shape[-2])
        if scores.shape != wanted:
            raise ShapeError(
                f"{self._describe()}: scores {scores.shape} of queries {q.shape} and keys {k.shape}.", f"{wanted}"
            )
        if mask is not None and mask.dtype != dtypes.bool_:
            scores, mask = scores + mask, mask != -math.inf
        return F.attention_from_scores(scores, v, mask, self.mode)

    def extra_repr(self) -> str:
        score = [] if not isinstance(self.score, str) else self._changed(score="scaled")
        sizes = f"{self.embed_dim}, {self.key_size}, {self.value_size}"
        return ", ".join([sizes, *score, *self._changed(mode="soft")])


def _with_padding(attn_mask: ArrayLike | None, real: Tensor | None) -> Tensor | None:
    """Who may attend to whom, and which keys are real, as one mask (..., t, s)."""
    mask = None if attn_mask is None else arrays.asarray(attn_mask)
    if real is None:
        return mask
    seen = arrays.expand_dims(real, -2)  # (..., 1, s)
    if mask is None:
        return seen
    return mask & seen if mask.dtype == dtypes.bool_ else arrays.where(seen, mask, -math.inf)
