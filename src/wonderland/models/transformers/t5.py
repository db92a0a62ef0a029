"""T5: an encoder-decoder whose positions are biases of the scores, one number per bucket of distances. Book, 11.2.4.

source --> embedding --> [ x + attention(norm(x)); x + MLP(norm(x)) ] x L --> norm --> memory
tokens --> embedding --> [ x + attention(norm(x)); x + cross(norm(x), memory); x + MLP(norm(x)) ] x D --> norm --> head
"""

from __future__ import annotations

import math

from ...core.arguments import as_int
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...nn.attention.blocks import TransformerBlock, TransformerStack
from ...nn.attention.multi_head import MultiHeadAttention
from ...nn.attention.relative_positions import BucketedBias
from ...nn.layers.dropout import Dropout
from ...nn.layers.embedding import Embedding
from ...nn.layers.fully_connected import ActivationLike
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import RMSNorm
from ...nn.mixing.feed_forward import FeedForward, GatedFeedForward
from ...nn.module.lazy import at_once
from ...nn.module.module import Module
from ...random.continuous import normal
from ...random.keys import split
from ...random.streams import take_key
from .encoder_decoder import EncoderDecoder
from .seq2seq import as_start

__all__ = ["T5"]


class T5(EncoderDecoder):
    r"""A text-to-text model: source (batch, s) and tokens (batch, t) to logits (batch, t, vocabulary). Book, 11.2.4.

    >>> import wonderland as wl
    >>> model = wl.models.T5(100, embed_dim=32, num_heads=4, encoder_layers=2, decoder_layers=2)
    >>> model(wl.ones((8, 20), dtype=wl.int64), wl.zeros((8, 5), dtype=wl.int64)).shape
    (8, 5, 100)

    The scores of a head are \(q_i \cdot k_j + b_{u(j - i)}\), not divided by \(\sqrt{d}\), which the start of the
    weights makes up for. u is the bucket of a distance: there are `buckets`, of which half are for one distance each
    and the others grow up to `max_distance`, see `wl.nn.BucketedBias`. The encoder's blocks share one table b, the
    decoder's another, in which all later places have one bucket. Norms are `RMSNorm`, and nothing else has a bias.
    The MLP is \(\phi(x W_1) W_2\), or if `gated` \((\phi(x W_g) \odot x W_v) W_2\), with `activation` \(\phi\).

    All tokens have one table W, and logits are \(h W^\top / \sqrt{e}\), unless not `tied`: then they have a matrix of
    their own and are not divided (`scaled` says otherwise). The `start_token` is the one of padding. With V tokens, e
    features, h heads of `head_size` d, p hidden units, u buckets, L blocks in the encoder and D in the decoder there
    are V e + 2 u h + L (4 e h d + 2 e p + 2 e) + D (8 e h d + 2 e p + 3 e) + 2 e parameters; a gated MLP has e p more,
    a head that is not tied V e. The defaults are those of the smallest published model.
    """

    def __init__(
        self,
        vocabulary: int,
        embed_dim: int = 512,
        num_heads: int = 8,
        encoder_layers: int = 6,
        decoder_layers: int | None = None,
        *,
        head_size: int | None = None,
        hidden: int | None = None,
        activation: ActivationLike = "relu",
        gated: bool = False,
        buckets: int = 32,
        max_distance: int = 128,
        tied: bool = True,
        scaled: bool | None = None,
        start_token: int = 0,
        dropout: float = 0.0,
        eps: float = 1e-6,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        e, heads = as_int("T5", "embed_dim", embed_dim, 1), as_int("T5", "num_heads", num_heads, 1)
        layers = as_int("T5", "encoder_layers", encoder_layers, 1)
        later = layers if decoder_layers is None else as_int("T5", "decoder_layers", decoder_layers, 1)
        self.vocabulary, self.embed_dim, self.context = as_int("T5", "vocabulary", vocabulary, 1), e, None
        self.start_token = as_start("T5", start_token, self.vocabulary)
        self.scaled = tied if scaled is None else bool(scaled)
        self.dropout = Dropout(dropout) if dropout else None
        d = e // heads if head_size is None else as_int("T5", "head_size", head_size, 1)
        wide = 4 * e if hidden is None else as_int("T5", "hidden", hidden, 1)
        keys = iter(split(take_key("T5", key), 2 * layers + 3 * later + 3))

        def norm(e: int) -> RMSNorm:
            return RMSNorm(e, eps, dtype=dtype)

        def attention(bias: BucketedBias | None, causal: bool = False) -> MultiHeadAttention:
            return MultiHeadAttention(
                e, heads, d, d, bias=False, causal=causal, positions=bias, scale=1.0, dropout=dropout, dtype=dtype,
                key=next(keys),
            )  # fmt: skip

        def mlp() -> Module:
            k = next(keys)
            if gated:
                return GatedFeedForward(e, wide, activation, dropout=dropout, dtype=dtype, key=k)
            return FeedForward(e, activation=activation, dropout=dropout, hidden=wide, dtype=dtype, key=k)

        near = BucketedBias(heads, buckets, max_distance, dtype=dtype)  # one for all blocks of the encoder
        past = BucketedBias(heads, buckets, max_distance, bidirectional=False, dtype=dtype)
        encoder = [
            TransformerBlock(e, attention=attention(near), feed_forward=mlp(), norm=norm, dropout=dropout)
            for _ in range(layers)
        ]
        decoder = [
            TransformerBlock(
                e, attention=attention(past, causal=True), cross=attention(None), feed_forward=mlp(), norm=norm,
                dropout=dropout,
            )
            for _ in range(later)
        ]  # fmt: skip
        self.tokens = Embedding(self.vocabulary, e, dtype=dtype, key=next(keys))  # from N(0, 1)
        self.encoder, self.decoder = TransformerStack(encoder, norm(e)), TransformerStack(decoder, norm(e))
        self.head = None if tied else Linear(e, self.vocabulary, bias=False, dtype=dtype, key=next(keys))
        _start(self, d, next(keys))

    def embed_source(self, source: Tensor, places: Tensor) -> Tensor:
        return self.embed(source, places)

    def embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        x = self.tokens(tokens)  # (b, t, e)
        return x if self.dropout is None else self.dropout(x)

    def logits(self, h: Tensor) -> Tensor:
        h = h / math.sqrt(self.embed_dim) if self.scaled else h
        return self.tokens.attend(h) if self.head is None else self.head(h)  # (b, t, V)

    def extra_repr(self) -> str:
        return f"vocabulary={self.vocabulary}, start_token={self.start_token}"


def _start(model: T5, d: int, key: Tensor) -> None:
    r"""Matrices of c inputs from \(N(0, 1/c)\), those of queries from \(N(0, 1/(c d))\), for scores of size 1."""
    queries = {id(part.query) for part in model.modules() if isinstance(part, MultiHeadAttention)}
    layers = [part for part in model.modules() if isinstance(part, Linear)]
    with at_once(key):
        for layer, k in zip(layers, split(key, len(layers)), strict=True):
            c = layer.weight.shape[0] * (d if id(layer) in queries else 1)
            layer.weight = normal(layer.weight.shape, key=k, dtype=layer.weight.dtype) / math.sqrt(c)
