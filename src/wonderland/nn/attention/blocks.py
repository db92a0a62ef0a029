"""The transformer block: attention mixes tokens, an MLP mixes channels, each around a residual connection.

    pre-norm    h = x + A(N(x))          y = h + F(N(h))            Book, section 10.3.1
    post-norm   h = N(x + A(x))          y = N(h + F(h))
    parallel    y = x + A(N(x)) + F(N(x))                           Book, section 11.3

A decoder block has a second attention between A and F, to the tokens of an encoder. Book, section 11.1.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..layers.dropout import Dropout
from ..layers.fully_connected import ActivationLike
from ..mixing.feed_forward import FeedForward
from ..mixing.mixing_block import NormLike, as_norm
from ..module.module import Module
from ..sequences.cache import Cache, KeyValueCache, LayerCaches, MemoryCache
from ..sequences.reading import one_more
from ..sequences.stack import SequenceStack
from ..sequences.token_masks import as_lengths, as_sequence, as_token_mask, silenced
from .multi_head import MultiHeadAttention
from .relative_positions import ScoreBias
from .rotary import Rotary

__all__ = ["BlockCache", "TransformerBlock", "TransformerStack"]

Memory: TypeAlias = "ArrayLike | None"
Part = Callable[[Tensor], Tensor]


class BlockCache(Cache):
    """What a block keeps: the keys and values of its own tokens, and those of a memory if it attends to one."""

    def __init__(self, own: KeyValueCache, memory: MemoryCache | None = None) -> None:
        super().__init__(own.rows)
        self.own, self.memory = own, memory

    @property
    def capacity(self) -> int | None:
        return self.own.capacity

    def reserve(self, count: int) -> None:
        self.own.reserve(count)


class TransformerBlock(Module):
    r"""\(H = X + \mathrm{MHA}(\mathrm{LN}(X))\), \(Y = H + \mathrm{MLP}(\mathrm{LN}(H))\). Book, section 10.3.1.

    >>> import wonderland as wl
    >>> block = wl.nn.TransformerBlock(64, 8)
    >>> block(wl.ones((2, 10, 64)), lengths=[10, 7]).shape
    (2, 10, 64)

    `norm_first=False` normalizes after each sum instead, as the original did; `parallel=True` computes both parts from
    one normalization and adds them at once. `norm` is "layer", "rms", a function of the width, or None. `attention` and
    `feed_forward` take the places of the layers that the other settings would make: `kv_heads`, `causal`, `window`,
    `positions` and `bias` are those of `MultiHeadAttention`, `hidden` (4 embed_dim by default) and `activation` those
    of the MLP. `dropout` acts on both parts before they are added.

    With `cross=True`, or an attention of your own, there is attention to a memory in between: `block(x, memory)`, with
    queries from x, keys and values from the memory (batch, s, `memory_dim`), of which `memory_mask` says what is real.

    A causal block reads on: `new_cache`, `extend` and `step`, see `Cache`.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int = 1,
        *,
        hidden: int | None = None,
        activation: ActivationLike = "gelu",
        attention: Module | None = None,
        feed_forward: Module | None = None,
        cross: bool | MultiHeadAttention = False,
        memory_dim: int | None = None,
        kv_heads: int | None = None,
        causal: bool = False,
        window: int | None = None,
        positions: Rotary | ScoreBias | None = None,
        bias: bool = True,
        norm: NormLike = "layer",
        norm_first: bool = True,
        parallel: bool = False,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        e = as_int(name, "embed_dim", embed_dim, 1)
        self.embed_dim, self.norm_first, self.parallel = e, bool(norm_first), bool(parallel)
        if self.parallel and (cross or not norm_first):
            raise InputError(f"{name}: parallel=True with cross or norm_first=False.", "one of them")
        keys = split(take_key(name, key), 3)
        self.norm1 = as_norm(name, norm, e, dtype)
        self.attention = attention or MultiHeadAttention(
            e, num_heads, kv_heads=kv_heads, causal=causal, window=window, positions=positions, bias=bias,
            dropout=attention_dropout, dtype=dtype, key=keys[0],
        )  # fmt: skip
        self.cross: MultiHeadAttention | None = None
        if cross:
            self.norm_cross = as_norm(name, norm, e, dtype)
            self.cross = cross if isinstance(cross, MultiHeadAttention) else MultiHeadAttention(
                e, num_heads, kv_heads=kv_heads, key_dim=memory_dim, bias=bias, dropout=attention_dropout, dtype=dtype,
                key=keys[1],
            )  # fmt: skip
        if not self.parallel:
            self.norm2 = as_norm(name, norm, e, dtype)
        self.feed_forward = feed_forward or FeedForward(
            e, 4, activation, bias, dropout=0.0, hidden=hidden, dtype=dtype, key=keys[2]
        )
        self.dropout = Dropout(dropout) if dropout else None

    # --- the whole

    def forward(
        self,
        x: ArrayLike,
        memory: Memory = None,
        *,
        attn_mask: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        memory_mask: ArrayLike | None = None,
    ) -> Tensor:
        x = as_sequence(self, x, self.embed_dim)
        real = as_token_mask(self._describe(), x.shape[:-1], token_mask, lengths)
        x = silenced(x, real)  # else what is NaN there would be in the gradients of the weights
        masks = {"attn_mask": attn_mask, "token_mask": real}
        given = {name: mask for name, mask in masks.items() if mask is not None}
        if (memory is None) != (self.cross is None):
            raise InputError(
                f"{self._describe()}: {'no memory' if memory is None else 'a memory'} for a block "
                f"{'with' if self.cross else 'without'} cross-attention.",
                "block(x, memory)" if memory is None else "cross=True",
            )

        def recall(h: Tensor) -> Tensor:
            assert self.cross is not None
            found = self.cross(h, memory, token_mask=memory_mask)
            return found

        return self._run(x, lambda h: self.attention(h, **given), recall)

    def _run(self, x: Tensor, attend: Part, recall: Part) -> Tensor:
        """The block around what is done to mix tokens."""
        if self.parallel:
            h = self.norm1(x)
            return x + self._dropped(attend(h)) + self._dropped(self.feed_forward(h))
        x = self._around(x, self.norm1, attend)
        if self.cross is not None:
            x = self._around(x, self.norm_cross, recall)
        return self._around(x, self.norm2, self.feed_forward)

    def _around(self, x: Tensor, norm: Module, part: Part) -> Tensor:
        if self.norm_first:
            return x + self._dropped(part(norm(x)))
        return norm(x + self._dropped(part(x)))

    def _dropped(self, x: Tensor) -> Tensor:
        return x if self.dropout is None else self.dropout(x)

    # --- reading on

    def new_cache(
        self, rows: int, capacity: int = 0, memory: Memory = None, memory_mask: ArrayLike | None = None
    ) -> BlockCache:
        """A cache for so many sequences with room for `capacity` tokens; a memory is read here, once."""
        if not isinstance(self.attention, MultiHeadAttention):
            raise InputError(
                f"{self._describe()}: a {type(self.attention).__name__} does not read on.",
                "a block with MultiHeadAttention(..., causal=True)",
            )
        kept = None
        if self.cross is not None:
            if memory is None:
                raise InputError(f"{self._describe()}: no memory.", "new_cache(rows, capacity, memory)")
            kept = self.cross.memory_cache(memory, memory_mask)
            if kept.rows != rows:
                raise ShapeError(f"{self._describe()}: {rows} rows, a memory of {kept.rows}.", "the same number")
        return BlockCache(self.attention.new_cache(rows, capacity), kept)

    def extend(
        self, x: ArrayLike, cache: BlockCache | None = None, lengths: ArrayLike | None = None
    ) -> tuple[Tensor, BlockCache]:
        """The results for further tokens (batch, t, e), of which `lengths` are real in each row, and the cache."""
        x = as_sequence(self, x, self.embed_dim)
        kept = self.new_cache(x.shape[0], x.shape[1]) if cache is None else cache
        if lengths is not None:
            counts = as_lengths(self._describe(), lengths, x.shape[:-1])
            x = silenced(x, arrays.arange(x.shape[1]) < arrays.expand_dims(counts, -1))
        start = kept.own.lengths + 0  # before it is changed
        attention = self.attention
        assert isinstance(attention, MultiHeadAttention)

        def recall(h: Tensor) -> Tensor:
            assert self.cross is not None
            assert kept.memory is not None
            return self.cross.recall(h, kept.memory, arrays.expand_dims(start, -1) + arrays.arange(h.shape[1]))

        y = self._run(x, lambda h: attention.extend(h, kept.own, lengths)[0], recall)
        kept.advance(x.shape[1] if lengths is None else arrays.asarray(lengths))
        return y, kept

    def step(self, x: ArrayLike, cache: BlockCache | None = None) -> tuple[Tensor, BlockCache]:
        """The result (batch, e) for one more token (batch, e), and the cache with it."""
        return one_more(self.extend, x, cache)

    def extra_repr(self) -> str:
        return ", ".join([str(self.embed_dim), *self._changed(norm_first=True, parallel=False)])


class TransformerStack(SequenceStack):
    """Blocks one after another, and a last normalization: (batch, time, e) to the same. Book, section 10.3.1.

    >>> import wonderland as wl
    >>> blocks = [wl.nn.TransformerBlock(32, 4, causal=True) for _ in range(3)]
    >>> stack = wl.nn.TransformerStack(blocks, wl.nn.LayerNorm(32))
    >>> y, cache = stack.extend(wl.ones((2, 5, 32)))
    >>> y.shape, cache.lengths.tolist(), len(cache.layers)
    ((2, 5, 32), [5, 5], 3)

    It takes any tokens, and knows nothing of what they stand for. Calls are those of a block.
    """

    def __init__(self, blocks: list[TransformerBlock], norm: Module | None = None) -> None:
        super().__init__(blocks, norm)

    def forward(  # type: ignore[override]  # blocks of transformers may have a memory
        self,
        x: ArrayLike,
        memory: Memory = None,
        *,
        attn_mask: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        memory_mask: ArrayLike | None = None,
    ) -> Tensor:
        h = as_real(self._describe(), x)
        for block in self.blocks:
            h = block(h, memory, attn_mask=attn_mask, token_mask=token_mask, lengths=lengths, memory_mask=memory_mask)
        return self._normed(h)

    def new_cache(
        self, rows: int, capacity: int = 0, memory: Memory = None, memory_mask: ArrayLike | None = None
    ) -> LayerCaches:
        """The caches of all blocks."""
        return LayerCaches(block.new_cache(rows, capacity, memory, memory_mask) for block in self.blocks)
