r"""The parallel block with its products fused: two large ones instead of six. Book, section 11.3.

    N(x) --[W_q W_k W_v W_1]--> q, k, v, u --> [attention ; phi(u)] --[W_o / W_2]--> y - x

The first products of attention and MLP have the same input, so their weights stand side by side; the last ones are
added, so their weights stand one above the other.
"""

from __future__ import annotations

from typing import Any

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..layers.fully_connected import ActivationLike, as_activation
from ..layers.linear import Linear
from ..mixing.feed_forward import FeedForward
from ..mixing.mixing_block import NormLike, as_norm
from ..module.parameter import Parameter
from ..sequences.cache import KeyValueCache
from ..sequences.token_masks import as_sequence, as_token_mask, places_of, silenced
from .blocks import TransformerBlock
from .multi_head import MultiHeadAttention
from .sight import Sight, by_heads

__all__ = ["ParallelBlock"]


class ParallelBlock(MultiHeadAttention):
    r"""\(Y = X + \mathrm{MHA}(\mathrm{LN}(X)) + \mathrm{MLP}(\mathrm{LN}(X))\), fused. Book, section 11.3.

    >>> import wonderland as wl
    >>> block = wl.nn.ParallelBlock(64, 8, causal=True)
    >>> block(wl.ones((2, 10, 64)), lengths=[10, 7]).shape, block.qkv.weight.shape, block.output.weight.shape
    ((2, 10, 64), (64, 448), (320, 64))

    `qkv` holds \([W_q\,W_k\,W_v\,W_1]\) and `output` \(W_o\) above \(W_2\). It is the same function as
    `TransformerBlock(..., parallel=True)`, from which `ParallelBlock.from_block(block)` takes the weights. `hidden`,
    `activation` and `norm` are those of the block, the other options those of `MultiHeadAttention`. It reads on as they
    do, with a cache of keys and values.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int = 1,
        *,
        hidden: int | None = None,
        activation: ActivationLike = "gelu",
        norm: NormLike = "layer",
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
        **options: Any,
    ) -> None:
        name = type(self).__name__
        first, second, third = split(take_key(name, key), 3)
        super().__init__(embed_dim, num_heads, bias=bias, fused=True, dtype=dtype, key=first, **options)
        e = self.embed_dim
        if self.out_features != e:
            raise InputError(f"{name}: {self.out_features} features are added to {e}.", f"out_features={e}")
        self.hidden = 4 * e if hidden is None else as_int(name, "hidden", hidden, 1)
        self.norm = as_norm(name, norm, e, dtype)
        self.activation = as_activation(name, activation)
        self.qkv = Linear(e, self._columns() + self.hidden, bias, dtype, second)
        self.output = Linear(self.num_heads * self.value_size + self.hidden, e, bias, dtype, third)

    @classmethod
    def from_block(cls, block: TransformerBlock) -> ParallelBlock:
        """The same function as a parallel block with attention and an MLP of its own."""
        attention, mlp = block.attention, block.feed_forward
        if not (block.parallel and isinstance(attention, MultiHeadAttention) and isinstance(mlp, FeedForward)):
            raise InputError(
                f"ParallelBlock.from_block: {block._describe()}.",
                "TransformerBlock(..., parallel=True) with MultiHeadAttention and FeedForward",
            )
        if block.dropout is not None or mlp.dropout is not None:
            raise InputError("ParallelBlock.from_block: a block with dropout of its parts.", "dropout=0.0")
        a = attention
        sources = [a.qkv] if a.fused else [a.query, a.key, a.value]
        biased = all(layer.bias is not None for layer in (*sources, a.output, mlp.up, mlp.down))
        if not biased and any(layer.bias is not None for layer in (*sources, a.output, mlp.up, mlp.down)):
            raise InputError("ParallelBlock.from_block: some biases, not all.", "bias=True or False for all parts")
        made = cls(
            a.embed_dim, a.num_heads, hidden=mlp.up.out_features, activation=mlp.activation, bias=biased,
            norm=lambda e: block.norm1, key_size=a.key_size, value_size=a.value_size, kv_heads=a.kv_heads,
            causal=a.causal, window=a.window, positions=a.positions, query_norm=a.query_norm, key_norm=a.key_norm,
            score_mod=a.score_mod, scale=a.scale, dropout=a.dropout, dtype=a.output.weight.dtype,
        )  # fmt: skip
        first = [*sources, mlp.up]
        made.qkv.weight = Parameter(arrays.concat([layer.weight for layer in first], axis=1))
        made.output.weight = Parameter(arrays.concat([a.output.weight, mlp.down.weight], axis=0))
        if a.output.bias is not None and mlp.down.bias is not None:
            made.qkv.bias = Parameter(arrays.concat([layer.bias for layer in first if layer.bias is not None]))
            made.output.bias = Parameter(a.output.bias + mlp.down.bias)
        return made

    def _columns(self) -> int:
        """How many columns of the first matrix belong to attention."""
        return self._cuts()[1] + self.kv_heads * self.value_size

    def _first(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries, keys, values and the MLP's hidden units, by one product."""
        together = self.qkv(self.norm(x))
        first, second = self._cuts()
        third = self._columns()
        hidden = self.activation(together[..., third:])
        return together[..., :first], together[..., first:second], together[..., second:third], hidden

    def _last(self, x: Tensor, out: Tensor, hidden: Tensor) -> Tensor:
        return x + self.output(arrays.concat([self._side_by_side(out), hidden], axis=-1))

    def forward(  # type: ignore[override]  # a block has one input
        self,
        x: ArrayLike,
        *,
        attn_mask: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> Tensor:
        x = as_sequence(self, x, self.embed_dim)
        real = as_token_mask(self._describe(), x.shape[:-1], token_mask, lengths)
        x = silenced(x, real)
        places = places_of(real, x.shape[-2])
        q, k, v, hidden = self._first(x)
        q, k = self._query_heads(q, places), self._key_heads(k, places)
        mask = self._mask(attn_mask, real, q, k)
        sight = Sight(self.causal, self.window, 0, straight=token_mask is None)
        out = self._attend(q, k, by_heads(v, self.kv_heads), mask, sight, (places, places))
        assert isinstance(out, Tensor)
        return self._last(x, out, hidden)

    def _extend(self, x: Tensor, cache: KeyValueCache, lengths: Tensor | None) -> Tensor:
        q, k, v, hidden = self._first(x)
        return self._last(x, self._read_on(q, k, v, cache, lengths), hidden)

    def _weights(self) -> tuple[Tensor, Tensor, Tensor]:
        raise InputError(f"{self._describe()}: heads as matrices.", "TransformerBlock(..., parallel=True).attention")

    def multiply_adds(self, args: tuple[Tensor, ...], output: Tensor) -> int | None:
        found = super().multiply_adds(args, output)
        return None if found is None else found + 2 * args[0].size * self.hidden
