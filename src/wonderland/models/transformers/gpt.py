"""GPT: a decoder-only transformer in the manner of GPT-2, with learned positions or others. Book, section 11.2.4.

tokens --> embedding + positions --> [ x + attention(norm(x)); x + MLP(norm(x)) ] x depth --> norm --> head
"""

from __future__ import annotations

from ...core.arguments import as_int
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...nn.attention.blocks import TransformerBlock, TransformerStack
from ...nn.layers.dropout import Dropout
from ...nn.layers.embedding import Embedding
from ...nn.layers.fully_connected import ActivationLike
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LayerNorm
from ...random.keys import split
from ...random.streams import take_key
from .initialization import small_normal
from .language_model import CausalLanguageModel
from .positions import check_positions, positions_before, positions_within

__all__ = ["GPT"]


class GPT(CausalLanguageModel):
    r"""\(p(x_{i+1} \mid x_1, \dots, x_i) = \operatorname{softmax}(h_i W^\top)\): tokens (batch, time) to logits.

    >>> import wonderland as wl
    >>> model = wl.models.GPT(vocabulary=65, context=128, embed_dim=64, num_heads=4, depth=2)
    >>> model(wl.zeros((8, 100), dtype=wl.int64)).shape
    (8, 100, 65)

    With V tokens, context m, e features and L blocks there are (V + m) e + L (12 e² + 13 e) + 2 e parameters; with
    `tied=False` the last layer has a matrix of its own instead of the table of the tokens. Weights start from
    \(N(0, 0.02^2)\), those that write to the residual stream from a smaller one, by \(1/\sqrt{2L}\): the first loss is
    close to \(\ln V\). `GPT(50257, 1024, 768, 12, 12)` is as large as the smallest GPT-2, with 124 million parameters.

    `positions` may also be "sinusoidal", or act in the attention of every block: "rotary", "relative" or "alibi"; None
    leaves them out. Only learned ones have the m e parameters.
    """

    def __init__(
        self,
        vocabulary: int,
        context: int = 1024,
        embed_dim: int = 768,
        num_heads: int = 12,
        depth: int = 12,
        *,
        hidden: int | None = None,
        activation: ActivationLike = "gelu_tanh",
        positions: str | None = "learned",
        bias: bool = True,
        tied: bool = True,
        dropout: float = 0.0,
        eps: float = 1e-5,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        e, layers = as_int("GPT", "embed_dim", embed_dim, 1), as_int("GPT", "depth", depth, 0)
        self.vocabulary = as_int("GPT", "vocabulary", vocabulary, 1)
        self.context = as_int("GPT", "context", context, 1)
        keys = split(take_key("GPT", key), layers + 4)
        self.tokens = Embedding(self.vocabulary, e, dtype=dtype, key=keys[0])
        check_positions("GPT", positions)
        self.positions = positions_before(positions, self.context, e, dtype, keys[1])
        heads = as_int("GPT", "num_heads", num_heads, 1)
        within = positions_within(positions, self.context, heads, e // heads, dtype)
        self.dropout = Dropout(dropout) if dropout else None

        def norm(e: int) -> LayerNorm:
            return LayerNorm(e, eps, dtype=dtype)

        blocks = [
            TransformerBlock(
                e, heads, hidden=hidden, activation=activation, causal=True, positions=within(), bias=bias, norm=norm,
                dropout=dropout, attention_dropout=dropout, dtype=dtype, key=k,
            )
            for k in keys[4:]
        ]  # fmt: skip
        self.stack = TransformerStack(blocks, norm(e))
        self.head = None if tied else Linear(e, self.vocabulary, bias=False, dtype=dtype, key=keys[2])
        small_normal(self, 0.02, keys[3], residual_layers=2 * layers)

    def embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        x = self.tokens(tokens)  # (b, t, e)
        x = x if self.positions is None else self.positions(x, places)
        return x if self.dropout is None else self.dropout(x)

    def logits(self, h: Tensor) -> Tensor:
        return self.tokens.attend(h) if self.head is None else self.head(h)  # (b, t, V)

    def extra_repr(self) -> str:
        return f"vocabulary={self.vocabulary}, context={self.context}"
