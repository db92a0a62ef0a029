"""A decoder in the manner of LLaMA: RMSNorm, rotary positions, grouped heads, a gated MLP. Book, sections 11.2.4, 11.3.

tokens --> embedding --> [ x + attention(norm(x)); x + GatedMLP(norm(x)) ] x depth --> norm --> head
"""

from __future__ import annotations

from collections.abc import Mapping

from ...core.arguments import as_int
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...nn.attention.blocks import TransformerBlock, TransformerStack
from ...nn.attention.multi_head import MultiHeadAttention
from ...nn.attention.rotary import Rotary
from ...nn.layers.embedding import Embedding
from ...nn.layers.fully_connected import ActivationLike
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import RMSNorm
from ...nn.mixing.feed_forward import GatedFeedForward
from ...random.keys import split
from ...random.streams import take_key
from .initialization import small_normal
from .language_model import CausalLanguageModel

__all__ = ["Llama"]


class Llama(CausalLanguageModel):
    r"""Tokens (batch, time) to logits (batch, time, vocabulary), for sequences of any length.

    >>> import wonderland as wl
    >>> model = wl.models.Llama(vocabulary=100, embed_dim=64, num_heads=4, depth=2, kv_heads=2)
    >>> model(wl.zeros((8, 100), dtype=wl.int64)).shape
    (8, 100, 100)

    With V tokens, e features, h heads of size d, of which g for keys and values, p hidden units and L blocks there are
    2 V e + L (2 e d (h + g) + 3 e p + 2 e) + e parameters, V e less if `tied`: then the last layer is the table of the
    tokens. `qkv_bias` (Qwen2), `qk_norm` (Qwen3: an RMSNorm of each head's queries and keys) and `window` (Mistral)
    make relatives of it; `out_bias` and `mlp_bias` give biases to the last layer of attention and to those of the MLP.
    `rope_scaling` is that of `Rotary`. `context` is only a bound that is checked, if any.
    """

    def __init__(
        self,
        vocabulary: int,
        embed_dim: int = 512,
        num_heads: int = 8,
        depth: int = 8,
        *,
        kv_heads: int | None = None,
        head_size: int | None = None,
        hidden: int | None = None,
        activation: ActivationLike = "silu",
        context: int | None = None,
        window: int | None = None,
        rope_base: float = 10_000.0,
        rope_scaling: Mapping[str, object] | None = None,
        qkv_bias: bool = False,
        out_bias: bool = False,
        mlp_bias: bool = False,
        qk_norm: bool = False,
        tied: bool = False,
        eps: float = 1e-6,
        std: float = 0.02,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        e, layers = as_int("Llama", "embed_dim", embed_dim, 1), as_int("Llama", "depth", depth, 0)
        self.vocabulary = as_int("Llama", "vocabulary", vocabulary, 1)
        self.context = None if context is None else as_int("Llama", "context", context, 1)
        d = e // as_int("Llama", "num_heads", num_heads, 1) if head_size is None else head_size
        keys = iter(split(take_key("Llama", key), 2 * layers + 3))
        rotary = Rotary(d, rope_base, scaling=rope_scaling)  # one for all blocks
        blocks = []
        for _ in range(layers):
            attention = MultiHeadAttention(
                e, num_heads, d, d, kv_heads=kv_heads, bias=qkv_bias, out_bias=out_bias, causal=True, window=window,
                positions=rotary, query_norm=RMSNorm(d, eps, dtype=dtype) if qk_norm else None,
                key_norm=RMSNorm(d, eps, dtype=dtype) if qk_norm else None, dtype=dtype, key=next(keys),
            )  # fmt: skip
            mlp = GatedFeedForward(e, hidden, activation, mlp_bias, dtype=dtype, key=next(keys))
            norm = lambda e: RMSNorm(e, eps, dtype=dtype)  # noqa: E731
            blocks.append(TransformerBlock(e, attention=attention, feed_forward=mlp, norm=norm))
        self.tokens = Embedding(self.vocabulary, e, dtype=dtype, key=next(keys))
        self.stack = TransformerStack(blocks, RMSNorm(e, eps, dtype=dtype))
        self.head = None if tied else Linear(e, self.vocabulary, bias=False, dtype=dtype, key=next(keys))
        small_normal(self, std, next(keys), residual_layers=2 * layers)

    def embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        return self.tokens(tokens)  # (b, t, e)

    def logits(self, h: Tensor) -> Tensor:
        return self.tokens.attend(h) if self.head is None else self.head(h)  # (b, t, V)

    def extra_repr(self) -> str:
        return f"vocabulary={self.vocabulary}, context={self.context}"
