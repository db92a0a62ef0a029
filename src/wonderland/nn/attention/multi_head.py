"""Multi-head attention. Book, sections 10.1.2, 10.1.3, 11.1 and 11.3.

query (b, t, e) --> (b, heads, t, k) --+
                                       +--> softmax(q k^T / sqrt(k)) --> weights (b, heads, t, s)
key   (b, s, e) --> (b, heads, s, k) --+                                     |
value (b, s, e) --> (b, heads, s, v) ----------------------------------------+--> (b, t, heads v) --> (b, t, o)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..functional.noise import check_probability
from ..layers.linear import Linear
from ..module.module import Module
from ..sequences.cache import KeyValueCache, MemoryCache
from ..sequences.reading import one_more
from ..sequences.token_masks import as_lengths, as_token_mask, places_of, silenced
from .relative_positions import ALiBi, ScoreBias
from .rotary import Rotary
from .sight import Sight, both_masks, by_heads

__all__ = ["MultiHeadAttention", "SelfAttention"]

ScoreMod = Callable[[Tensor, Tensor, Tensor], Tensor]  # scores (b, heads, t, s), query places, key places


class MultiHeadAttention(Module):
    r"""\([A_1 ; \dots ; A_h] W_o\) with \(A_i = \operatorname{softmax}(Q_i K_i^\top/\sqrt{k}) V_i\). Book, 10.1.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.MultiHeadAttention(64, 8)
    >>> x, z = wl.ones((2, 10, 64)), wl.ones((2, 7, 64))
    >>> layer(x).shape, layer(x, z).shape, layer(x, return_weights=True)[1].shape
    ((2, 10, 64), (2, 10, 64), (2, 8, 10, 10))

    \(Q = X_q W_q\), \(K = X_k W_k\) and \(V = X_v W_v\), cut into `num_heads` heads of `key_size` k and `value_size` v
    features, by default embed_dim / num_heads each. Called with one tensor it is self-attention; with two, the keys
    and values come from the second, which is cross-attention; with three, from the second and the third. Their
    features are `key_dim` and `value_dim`, by default embed_dim. The result has `out_features`, by default embed_dim.

    With `kv_heads` fewer heads of keys and values than of queries, each shared by as many in a row: 1 is multi-query
    attention. Without biases there are h k e + g (k e_k + v e_v) + h v o parameters, with g = kv_heads. `fused` keeps
    the weights of all three projections side by side in one matrix, `qkv`, which is one product instead of three.

    `causal`: token i sees the tokens j <= i, with `window` only the last so many of them (without `causal`, those less
    than `window` away on both sides). `positions` is a `Rotary`, which turns queries and keys, or a `ScoreBias` such as
    `ALiBi`, added to the scores. `query_norm` and `key_norm` are modules for the features of a head, before that.
    `score_mod(scores, i, j)` may change the scores (batch, heads, t, s) of queries at places i and keys at places j
    in any other way. `scale` replaces \(1/\sqrt{k}\). `dropout` leaves out weights while training.

    When called, `attn_mask` (t, s), (batch, t, s) or (batch, heads, t, s) is bool, true where a query may attend, or
    floating and added to the scores. `token_mask` (batch, s), or `lengths` (batch,), says which keys are real. What is
    not never reaches the result, even if it is NaN; a query that may attend to nothing gets zeros from the heads.
    `return_weights` also gives the weights (batch, heads, t, s).

    A causal layer also reads on: `extend(x, cache)` and `step(x, cache)`, see `Cache`.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        key_size: int | None = None,
        value_size: int | None = None,
        out_features: int | None = None,
        *,
        kv_heads: int | None = None,
        key_dim: int | None = None,
        value_dim: int | None = None,
        bias: bool = True,
        out_bias: bool | None = None,
        causal: bool = False,
        window: int | None = None,
        positions: Rotary | ScoreBias | None = None,
        query_norm: Module | None = None,
        key_norm: Module | None = None,
        score_mod: ScoreMod | None = None,
        scale: float | None = None,
        dropout: float = 0.0,
        fused: bool = False,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        e, h = as_int(name, "embed_dim", embed_dim, 1), as_int(name, "num_heads", num_heads, 1)
        self.embed_dim, self.num_heads = e, h
        if (key_size is None or value_size is None) and e % h:
            raise InputError(
                f"{name}: {e} features cannot be cut into {h} heads of equal size.",
                f"a number of heads that divides {e}, or key_size and value_size",
            )
        self.key_size = as_int(name, "key_size", e // h if key_size is None else key_size, 1)
        self.value_size = as_int(name, "value_size", e // h if value_size is None else value_size, 1)
        self.out_features = as_int(name, "out_features", e if out_features is None else out_features, 1)
        self.kv_heads = as_int(name, "kv_heads", h if kv_heads is None else kv_heads, 1)
        if h % self.kv_heads:
            raise InputError(f"{name}: {h} heads cannot share {self.kv_heads} of keys and values.", f"a divisor of {h}")
        self.key_dim = as_int(name, "key_dim", e if key_dim is None else key_dim, 1)
        self.value_dim = as_int(name, "value_dim", self.key_dim if value_dim is None else value_dim, 1)
        self.causal = bool(causal)
        self.window = None if window is None else as_int(name, "window", window, 1)
        if isinstance(positions, ScoreBias) and positions.heads not in (1, h):
            raise InputError(f"{name}: {h} heads, positions for {positions.heads}.", f"positions with {h} heads")
        if isinstance(positions, Rotary) and positions.size > self.key_size:
            raise InputError(f"{name}: {positions} for keys of {self.key_size} features.", f"Rotary({self.key_size})")
        self.positions, self.query_norm, self.key_norm, self.score_mod = positions, query_norm, key_norm, score_mod
        self.scale = None if scale is None else float(as_number(name, "scale", scale))
        self.dropout = check_probability(name, dropout)
        self.fused = bool(fused)
        keys = split(take_key(name, key), 4)
        wide = [h * self.key_size, self.kv_heads * self.key_size, self.kv_heads * self.value_size]
        if self.fused:
            if (self.key_dim, self.value_dim) != (e, e):
                raise InputError(f"{name}: fused projections of inputs with different features.", "fused=False")
            self.qkv = Linear(e, sum(wide), bias, dtype, keys[0])
        else:
            self.query = Linear(e, wide[0], bias, dtype, keys[0])
            self.key = Linear(self.key_dim, wide[1], bias, dtype, keys[1])
            self.value = Linear(self.value_dim, wide[2], bias, dtype, keys[2])
        self.output = Linear(
            h * self.value_size, self.out_features, bias if out_bias is None else out_bias, dtype, keys[3]
        )

    @property
    def _drops(self) -> bool:
        """Whether it has dropout, for `enable_dropout_only`."""
        return self.dropout > 0.0

    # --- the whole

    if TYPE_CHECKING:  # what a call gives depends on return_weights

        @overload  # type: ignore[override]
        def __call__(
            self,
            query: ArrayLike,
            key: ArrayLike | None = None,
            value: ArrayLike | None = None,
            *,
            attn_mask: ArrayLike | None = None,
            token_mask: ArrayLike | None = None,
            lengths: ArrayLike | None = None,
            places: ArrayLike | None = None,
            return_weights: Literal[False] = False,
        ) -> Tensor: ...
        @overload
        def __call__(
            self,
            query: ArrayLike,
            key: ArrayLike | None = None,
            value: ArrayLike | None = None,
            *,
            attn_mask: ArrayLike | None = None,
            token_mask: ArrayLike | None = None,
            lengths: ArrayLike | None = None,
            places: ArrayLike | None = None,
            return_weights: Literal[True],
        ) -> tuple[Tensor, Tensor]: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def forward(
        self,
        query: ArrayLike,
        key: ArrayLike | None = None,
        value: ArrayLike | None = None,
        *,
        attn_mask: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        places: ArrayLike | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        name = self._describe()
        x = self._tokens("query", query, self.embed_dim)
        own = key is None and value is None
        z = x if key is None else self._tokens("key", key, self.key_dim)
        y = z if value is None else self._tokens("value", value, self.value_dim)
        if z.shape[:-1] != y.shape[:-1]:
            raise ShapeError(f"{name}: keys {z.shape} and values {y.shape}.", "one value for each key")
        if x.shape[:-2] != z.shape[:-2]:
            raise ShapeError(f"{name}: queries {x.shape} and keys {z.shape}.", "the same batch for both")
        real = as_token_mask(name, z.shape[:-1], token_mask, lengths)
        y = silenced(y, real) if y is not z else y
        z, z_given = silenced(z, real), z
        x, y = z if x is z_given else x, z if y is z_given else y
        stands = places_of(real, z.shape[-2]) if places is None else arrays.asarray(places)  # of keys
        queries = stands if own else arrays.arange(x.shape[-2])
        q, k, v = self._projected(x, z, y)
        q, k = self._query_heads(q, queries), self._key_heads(k, stands)  # (b, h, t, k), (b, g, s, k)
        v = by_heads(v, self.kv_heads)  # (b, g, s, v)
        straight = own and places is None and token_mask is None  # padding by a mask may be anywhere
        sight = Sight(self.causal, self.window, 0, straight)
        out = self._attend(q, k, v, self._mask(attn_mask, real, q, k), sight, (queries, stands), return_weights)
        if isinstance(out, tuple):
            return self._joined(out[0]), out[1]
        return self._joined(out)

    def _tokens(self, what: str, x: ArrayLike, features: int) -> Tensor:
        x = as_real(self._describe(), x)
        if x.ndim < 2 or x.shape[-1] != features:
            raise ShapeError(f"{self._describe()}: a {what} of shape {x.shape}.", f"(..., time, {features})")
        return x

    def _projected(self, x: Tensor, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values side by side: (b, t, h k), (b, s, g k), (b, s, g v)."""
        if not self.fused:
            return self.query(x), self.key(z), self.value(y)
        first, second = self._cuts()
        if x is z and z is y:
            together = self.qkv(x)
            return together[..., :first], together[..., first:second], together[..., second:]
        parts = (slice(first), slice(first, second), slice(second, None))
        q, k, v = (self._part(source, part) for source, part in zip((x, z, y), parts, strict=True))
        return q, k, v

    def _cuts(self) -> tuple[int, int]:
        """Where the columns of queries and of keys end in fused projections."""
        first = self.num_heads * self.key_size
        return first, first + self.kv_heads * self.key_size

    def _part(self, x: Tensor, columns: slice) -> Tensor:
        bias = None if self.qkv.bias is None else self.qkv.bias[columns]
        return F.linear(x, self.qkv.weight[:, columns], bias)

    def _query_heads(self, q: Tensor, places: Tensor) -> Tensor:
        return self._turned(by_heads(q, self.num_heads), self.query_norm, places)

    def _key_heads(self, k: Tensor, places: Tensor) -> Tensor:
        return self._turned(by_heads(k, self.kv_heads), self.key_norm, places)

    def _turned(self, x: Tensor, norm: Module | None, places: Tensor) -> Tensor:
        x = x if norm is None else norm(x)
        return self.positions(x, places) if isinstance(self.positions, Rotary) else x

    def _mask(self, attn_mask: ArrayLike | None, real: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
        """Both masks in one that broadcasts to (b, heads, t, s)."""
        mask = None if attn_mask is None else arrays.asarray(attn_mask)
        if mask is not None:
            t, s = q.shape[-2], k.shape[-2]
            if mask.ndim < 2 or mask.shape[-2] not in (1, t) or mask.shape[-1] not in (1, s):
                raise ShapeError(
                    f"{self._describe()}: attn_mask {mask.shape} for {t} queries and {s} keys.",
                    f"({t}, {s}), (batch, {t}, {s}) or (batch, {self.num_heads}, {t}, {s}), true = may attend; "
                    "which tokens are real is said by token_mask or lengths",
                )
            if 2 < mask.ndim < q.ndim:
                mask = arrays.expand_dims(mask, -3)
        if real is None:
            return mask
        seen = arrays.expand_dims(real, (-2, -3))  # (b, 1, 1, s)
        if mask is None:
            return seen
        return mask & seen if mask.dtype == dtypes.bool_ else arrays.where(seen, mask, -math.inf)

    def _attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        sight: Sight,
        places: tuple[Tensor, Tensor],
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """The heads' results (b, h, t, v), and the weights if they are wanted; `places` of queries and of keys."""
        slopes = None
        if isinstance(self.positions, ALiBi) and sight.straight and self.score_mod is None and not return_weights:
            slopes = self.positions.slopes  # distances that need no matrix
        elif isinstance(self.positions, ScoreBias):
            mask = both_masks(mask, arrays.astype(self.positions(*places), q.dtype))
        p = self.dropout if self.training else 0.0
        if self.score_mod is None and not return_weights:
            return F.scaled_dot_product_attention(
                q, k, v, mask, p, sight.causal, self.scale, True,
                window=sight.window, offset=sight.offset, alibi=slopes,
            )  # fmt: skip
        seen = sight.mask(q.shape[-2], k.shape[-2])
        mask = mask if seen is None else both_masks(mask, seen)
        out, weights = F.attention_with_weights(q, k, v, mask, p, False, self.scale, self.score_mod, *places)
        return (out, weights) if return_weights else out

    def _side_by_side(self, out: Tensor) -> Tensor:
        """(b, h, t, v) as (b, t, h v)."""
        together = arrays.swapaxes(out, -2, -3)  # (b, t, h, v)
        return arrays.reshape(together, (*together.shape[:-2], self.num_heads * self.value_size))

    def _joined(self, out: Tensor) -> Tensor:
        """(b, h, t, v) side by side, and the last product."""
        return self.output(self._side_by_side(out))

    # --- reading on

    def new_cache(self, rows: int, capacity: int = 0, dtype: DTypeLike | None = None) -> KeyValueCache:
        """A cache for so many sequences, with room for `capacity` tokens each."""
        kind = (self.qkv if self.fused else self.key).weight_dtype if dtype is None else dtype
        return KeyValueCache(rows, self.kv_heads, self.key_size, self.value_size, capacity, self.window, kind)

    def extend(
        self, x: ArrayLike, cache: KeyValueCache | None = None, lengths: ArrayLike | None = None
    ) -> tuple[Tensor, KeyValueCache]:
        """The results for further tokens (batch, t, e), and the cache with them; None begins.

        Of each row the first `lengths` tokens are real, by default all.
        """
        if not self.causal:
            raise InputError(
                f"{self._describe()}: reads on, but its tokens see what comes later.",
                "causal=True, or the whole sequence at once",
            )
        x = self._tokens("token", x, self.embed_dim)
        if x.ndim != 3:
            raise ShapeError(f"{self._describe()}: tokens of shape {x.shape}.", f"(batch, time, {self.embed_dim})")
        cache = self.new_cache(x.shape[0], x.shape[1]) if cache is None else cache
        if cache.rows != x.shape[0]:
            raise ShapeError(f"{self._describe()}: {x.shape[0]} rows, a cache for {cache.rows}.", "the same number")
        counts = None if lengths is None else as_lengths(self._describe(), lengths, x.shape[:-1])
        x = x if counts is None else silenced(x, F.length_mask(counts, x.shape[1]))
        parts = []
        for first in range(0, x.shape[1], cache.chunk):
            some = x[:, first : first + cache.chunk]
            real = None if counts is None else arrays.clip(counts - first, 0, some.shape[1])
            parts.append(self._extend(some, cache, real))
        if not parts:
            return arrays.zeros((*x.shape[:-1], self.out_features), dtype=x.dtype), cache
        return parts[0] if len(parts) == 1 else arrays.concat(parts, axis=1), cache

    def _extend(self, x: Tensor, cache: KeyValueCache, lengths: Tensor | None) -> Tensor:
        """As many tokens as may come together."""
        return self._joined(self._read_on(*self._projected(x, x, x), cache, lengths))

    def _read_on(self, q: Tensor, k: Tensor, v: Tensor, cache: KeyValueCache, lengths: Tensor | None) -> Tensor:
        """The heads' results (b, h, t, v) for projected tokens, which join the cache."""
        start = cache.lengths + 0  # before it is changed
        places = arrays.expand_dims(start, -1) + arrays.arange(q.shape[1])  # (b, t)
        if lengths is not None:  # padding has no places of its own, which might be too many
            places = arrays.minimum(places, arrays.maximum(arrays.expand_dims(start + lengths, -1) - 1, 0))
        q, k = self._query_heads(q, places), self._key_heads(k, places)
        cache.append(arrays.swapaxes(k, 1, 2), arrays.reshape(v, (*v.shape[:-1], self.kv_heads, -1)), lengths)
        # (b, g, places, k), which may be kept in another type
        kept, values = (arrays.astype(arrays.swapaxes(c, 1, 2), q.dtype) for c in (cache.keys, cache.values))
        stands = cache.key_places()
        if isinstance(self.positions, ScoreBias):  # nor have keys that are not there yet
            stands = arrays.clip(stands, 0, arrays.maximum(arrays.expand_dims(cache.lengths, -1) - 1, 0))
        if cache.rolls:  # the keys lie in any order
            sight, seen = Sight(), arrays.expand_dims(cache.seen(places), 1)
        else:
            sight, seen = Sight(True, self.window, start, straight=True), None
        out = self._attend(q, kept, values, seen, sight, (places, stands))
        assert isinstance(out, Tensor)
        return out

    def step(self, x: ArrayLike, cache: KeyValueCache | None = None) -> tuple[Tensor, KeyValueCache]:
        """The result (batch, o) for one more token (batch, e), and the cache with it."""
        return one_more(self.extend, x, cache)

    # --- attending to another sequence, again and again

    def memory_cache(self, memory: ArrayLike, token_mask: ArrayLike | None = None) -> MemoryCache:
        """The keys and values of a sequence (batch, s, key_dim) that further queries attend to, computed once."""
        z = self._tokens("key", memory, self.key_dim)
        real = as_token_mask(self._describe(), z.shape[:-1], token_mask)
        z = silenced(z, real)
        nothing = arrays.zeros((*z.shape[:-2], 0, self.embed_dim), dtype=z.dtype)
        _, k, v = self._projected(nothing, z, z)
        k = self._key_heads(k, places_of(real, z.shape[-2]))
        return MemoryCache(k, by_heads(v, self.kv_heads), real)

    def recall(self, x: ArrayLike, memory: MemoryCache, places: Tensor | None = None) -> Tensor:
        """Cross-attention of queries (batch, t, e) to what a memory cache holds."""
        x = self._tokens("query", x, self.embed_dim)
        stands = arrays.arange(x.shape[-2]) if places is None else places
        q = self._query_heads(self.query(x) if not self.fused else self._part(x, slice(self._cuts()[0])), stands)
        seen = arrays.expand_dims(memory.real, (1, 2))  # (b, 1, 1, s)
        keys = places_of(memory.real, memory.real.shape[-1])
        sight = Sight(self.causal, self.window, 0 if places is None else places[..., 0])
        k, v = (arrays.astype(c, q.dtype) for c in (memory.keys, memory.values))
        out = self._attend(q, k, v, seen, sight, (stands, keys))
        assert isinstance(out, Tensor)
        return self._joined(out)

    def multiply_adds(self, args: tuple[Tensor, ...], output: Tensor) -> int | None:
        """Of the products with the weights, and of queries with keys and weights with values."""
        x, z = args[0], args[1] if len(args) > 1 and args[1] is not None else args[0]
        tokens, others = math.prod(x.shape[:-1]), math.prod(z.shape[:-1])
        h, g, k, v = self.num_heads, self.kv_heads, self.key_size, self.value_size
        pairs = tokens * z.shape[-2] * h * (k + v)
        weights = h * k * self.embed_dim + h * v * self.out_features
        return pairs + tokens * weights + others * g * (k * self.key_dim + v * self.value_dim)

    # --- what a head does, as matrices

    def qk_matrices(self) -> Tensor:
        r"""\(W_{q,h} W_{k,h}^\top\) of every head, (heads, e, key_dim): which tokens it compares how. Book, 10.1.3."""
        q, k, _ = self._weights()
        return q @ arrays.swapaxes(k, -1, -2)

    def ov_matrices(self) -> Tensor:
        r"""\(W_{v,h} W_{o,h}\) of every head, (heads, value_dim, o): what it writes for what it reads. Book, 10.16."""
        return self._weights()[2] @ self._out_weights()

    def contributions(self, *args: ArrayLike, **options: ArrayLike) -> Tensor:
        """What every head adds to the result, (batch, heads, t, o); with the last bias their sum is the result."""
        _, weights = self(*args, **options, return_weights=True)
        source = next((arrays.asarray(a) for a in args[::-1] if a is not None), None)
        assert source is not None
        written = arrays.expand_dims(source, -3) @ self.ov_matrices()  # (b, h, s, o)
        bias = self.qkv.bias if self.fused else self.value.bias
        if bias is not None:
            own = arrays.reshape(bias[-self.kv_heads * self.value_size :], (self.kv_heads, 1, self.value_size))
            written = written + arrays.repeat(own, self.num_heads // self.kv_heads, axis=0) @ self._out_weights()
        return weights @ written

    def _weights(self) -> tuple[Tensor, Tensor, Tensor]:
        """The weights of queries, keys and values by heads, each (heads, features, size); shared ones are repeated."""
        if self.fused:
            first, second = self._cuts()
            whole = self.qkv.weight
            q, k, v = whole[:, :first], whole[:, first:second], whole[:, second:]
        else:
            q, k, v = self.query.weight, self.key.weight, self.value.weight
        q = by_heads(q, self.num_heads)
        k, v = (arrays.repeat(by_heads(w, self.kv_heads), self.num_heads // self.kv_heads, axis=0) for w in (k, v))
        return q, k, v

    def _out_weights(self) -> Tensor:
        return arrays.reshape(self.output.weight, (self.num_heads, self.value_size, self.out_features))

    def extra_repr(self) -> str:
        sizes = [f"{self.embed_dim}, {self.num_heads}"]
        usual = {"kv_heads": self.num_heads, "causal": False, "window": None, "dropout": 0.0, "fused": False}
        return ", ".join([*sizes, *self._changed(**usual)])


class SelfAttention(MultiHeadAttention):
    r"""\(\operatorname{softmax}(X W_q W_k^\top X^\top/\sqrt{k})\,X W_v\): one head, and no last product. Book, D.10.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.SelfAttention(8, key_size=4, value_size=6)
    >>> layer(wl.ones((10, 8))).shape, layer.num_parameters()
    ((10, 6), 112)

    It has 2 k e + v e parameters, for sequences of any length. The other options are those of `MultiHeadAttention`.
    """

    def __init__(
        self,
        embed_dim: int,
        key_size: int | None = None,
        value_size: int | None = None,
        bias: bool = False,
        **options: Any,
    ) -> None:
        k = embed_dim if key_size is None else key_size
        v = k if value_size is None else value_size
        super().__init__(embed_dim, 1, k, v, v, bias=bias, **options)
        del self.output

    def _joined(self, out: Tensor) -> Tensor:
        return out[..., 0, :, :]

    def _out_weights(self) -> Tensor:
        return arrays.eye(self.value_size)[None]
