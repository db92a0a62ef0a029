"""RWKV, version 4: a language model with a state that does not grow. Book, section 13.4.2.

tokens --> embedding --> norm --> [ x + time mix(norm(x)); x + channel mix(norm(x)) ] x depth --> norm --> head
"""

from __future__ import annotations

from ...core.arguments import as_int
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...nn.layers.embedding import Embedding
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LayerNorm
from ...nn.linear_attention.rwkv import RWKVBlock
from ...nn.sequences.stack import SequenceStack
from ...random.keys import split
from ...random.streams import take_key
from ..transformers.initialization import small_normal
from ..transformers.language_model import CausalLanguageModel

__all__ = ["RWKV"]


class RWKV(CausalLanguageModel):
    r"""Tokens (batch, time) to logits (batch, time, vocabulary), trained at once and read token by token.

    >>> import wonderland as wl
    >>> model = wl.models.RWKV(vocabulary=100, embed_dim=32, depth=2)
    >>> model(wl.zeros((8, 50), dtype=wl.int64)).shape
    (8, 50, 100)
    >>> wl.generation.greedy(model, [1, 2, 3], max_new_tokens=5, jit=False).shape
    (8,)

    With V tokens, e features, h channels of time mixing, p hidden units and L blocks there are
    2 V e + L (4 e h + 2 h + e^2 + 2 e p + 9 e) + 4 e parameters, V e less if `tied`: then the last layer is the table
    of the tokens. By default h = e and p = 4 e. What is kept for a row are L (2 e + 3 h) numbers, after any number of
    tokens. `convention` is that of `RWKVTimeMix`: published models have "official". `context` is only a bound that is
    checked, if any.
    """

    def __init__(
        self,
        vocabulary: int,
        embed_dim: int = 512,
        depth: int = 8,
        *,
        hidden: int | None = None,
        time_hidden: int | None = None,
        convention: str = "book",
        context: int | None = None,
        tied: bool = False,
        eps: float = 1e-5,
        std: float = 0.02,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        e, layers = as_int("RWKV", "embed_dim", embed_dim, 1), as_int("RWKV", "depth", depth, 0)
        self.vocabulary = as_int("RWKV", "vocabulary", vocabulary, 1)
        self.context = None if context is None else as_int("RWKV", "context", context, 1)
        keys = iter(split(take_key("RWKV", key), layers + 3))
        self.tokens = Embedding(self.vocabulary, e, dtype=dtype, key=next(keys))
        self.token_norm = LayerNorm(e, eps, dtype=dtype)
        blocks = [
            RWKVBlock(e, hidden, time_hidden, convention, i, layers, eps, dtype, next(keys)) for i in range(layers)
        ]
        self.stack = SequenceStack(blocks, LayerNorm(e, eps, dtype=dtype))
        self.head = None if tied else Linear(e, self.vocabulary, bias=False, dtype=dtype, key=next(keys))
        small_normal(self, std, next(keys))

    def embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        return self.token_norm(self.tokens(tokens))  # (b, t, e)

    def logits(self, h: Tensor) -> Tensor:
        return self.tokens.attend(h) if self.head is None else self.head(h)  # (b, t, V)

    def extra_repr(self) -> str:
        return f"vocabulary={self.vocabulary}, context={self.context}"
