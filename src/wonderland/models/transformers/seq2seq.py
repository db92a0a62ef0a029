"""The transformer as it was first, from one sequence to another, and what remains with one half of it. Book, 11.1.

    encoder-decoder   source --> encoder --> memory;  tokens --> decoder, which attends to the memory --> logits
    decoder-only      tokens --> decoder without that attention --> logits of the next token
    encoder-only      tokens --> encoder --> vectors, or logits of classes

All three are made of the same blocks, and their parameters have the same names.
"""

from __future__ import annotations

import math

from ... import arrays
from ...core.arguments import as_int, shown
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn import functional as F  # noqa: N812 - as everybody calls it
from ...nn.attention.absolute_positions import AbsolutePositions, LearnedPositions, SinusoidalPositions
from ...nn.attention.blocks import TransformerBlock, TransformerStack
from ...nn.layers.dropout import Dropout
from ...nn.layers.embedding import Embedding
from ...nn.layers.fully_connected import ActivationLike
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LayerNorm
from ...nn.module.lazy import at_once
from ...nn.module.module import Module
from ...nn.sequences.token_masks import as_token_mask, places_of
from ...random.keys import split
from ...random.streams import take_key
from .encoder_decoder import EncoderDecoder
from .language_model import CausalLanguageModel, as_tokens

__all__ = ["DecoderOnly", "EncoderOnly", "Seq2SeqTransformer", "transformer"]


class Seq2SeqTransformer(EncoderDecoder):
    r"""The original transformer: source (batch, s), tokens (batch, t) to logits (batch, t, vocabulary). Book, F.11.2.

    >>> import wonderland as wl
    >>> model = wl.models.Seq2SeqTransformer(13, embed_dim=32, num_heads=4, encoder_layers=2, decoder_layers=2)
    >>> source, targets = wl.ones((8, 20), dtype=wl.int64), wl.ones((8, 5), dtype=wl.int64)
    >>> model(source, wl.series.shift_right(targets, start=model.start_token)).shape
    (8, 5, 13)

    Tokens become \(\sqrt{e}\,W_i\) plus sinusoidal positions. A block of the encoder is \(H = N(X + A(X))\),
    \(Y = N(H + F(H))\), one of the decoder \(H = N(X + A(X))\), \(G = N(H + C(H, M))\), \(Y = N(G + F(G))\): causal
    attention A, attention C with queries from H and with keys and values from the encoder's memory M, and an MLP F with
    `hidden` units (4e). `norm_first` puts the norms N before A, C and F instead, and one after the last block, which
    trains more easily. `positions` is "sinusoidal" or "learned", which needs a `context`.

    Source and target have one table of tokens, which is also that of the logits, \(h W^\top\). With
    `source_vocabulary` the source has one of its own, with `tied=False` the logits have a matrix of their own. With V
    tokens, e features, p hidden units, L blocks in the encoder and D in the decoder there are
    V e + L (4 e² + 2 e p + p + 9 e) + D (8 e² + 2 e p + p + 15 e) parameters; `norm_first` adds 4 e. The defaults are
    those of the base model of "Attention is all you need".
    """

    def __init__(
        self,
        vocabulary: int,
        source_vocabulary: int | None = None,
        *,
        embed_dim: int = 512,
        num_heads: int = 8,
        encoder_layers: int = 6,
        decoder_layers: int = 6,
        hidden: int | None = None,
        activation: ActivationLike = "relu",
        positions: str = "sinusoidal",
        context: int | None = None,
        norm_first: bool = False,
        tied: bool = True,
        start_token: int = 1,
        dropout: float = 0.1,
        eps: float = 1e-5,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "Seq2SeqTransformer"
        e = self.embed_dim = as_int(name, "embed_dim", embed_dim, 1)
        self.vocabulary = as_int(name, "vocabulary", vocabulary, 1)
        self.context = None if context is None else as_int(name, "context", context, 1)
        self.start_token = as_start(name, start_token, self.vocabulary)
        keys = split(take_key(name, key), 6)
        self.tokens = table(self.vocabulary, e, dtype, keys[0])
        self.source_tokens = None
        if source_vocabulary is not None:
            self.source_tokens = table(as_int(name, "source_vocabulary", source_vocabulary, 1), e, dtype, keys[1])
        self.positions = positions_of(name, positions, self.context, e, dtype, keys[2])
        self.dropout = Dropout(dropout) if dropout else None
        settings = Settings(e, num_heads, hidden, activation, norm_first, dropout, eps, dtype)
        self.encoder = settings.stack(as_int(name, "encoder_layers", encoder_layers, 1), keys[3])
        self.decoder = settings.stack(as_int(name, "decoder_layers", decoder_layers, 1), keys[4], True, cross=True)
        self.head = None if tied else Linear(e, self.vocabulary, bias=False, dtype=dtype, key=keys[5])

    def embed_source(self, source: Tensor, places: Tensor) -> Tensor:
        return embedded(self, self.source_tokens or self.tokens, source, places)

    def embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        return embedded(self, self.tokens, tokens, places)

    def logits(self, h: Tensor) -> Tensor:
        return self.tokens.attend(h) if self.head is None else self.head(h)  # (b, t, V)

    def extra_repr(self) -> str:
        return f"vocabulary={self.vocabulary}, context={self.context}, start_token={self.start_token}"


class DecoderOnly(CausalLanguageModel):
    """The decoder of a `Seq2SeqTransformer` without attention to a memory: a language model. Book, section 11.1.3.

    >>> import wonderland as wl
    >>> model = wl.models.DecoderOnly(13, embed_dim=32, num_heads=4, decoder_layers=2)
    >>> model(wl.ones((8, 20), dtype=wl.int64)).shape
    (8, 20, 13)

    A sequence is made from another one by reading both in a row, `wl.series.next_tokens` saying which tokens are
    learned. There are V e + D (4 e² + 2 e p + p + 9 e) parameters, see `Seq2SeqTransformer`, whose settings these are.
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        embed_dim: int = 512,
        num_heads: int = 8,
        decoder_layers: int = 6,
        hidden: int | None = None,
        activation: ActivationLike = "relu",
        positions: str = "sinusoidal",
        context: int | None = None,
        norm_first: bool = False,
        tied: bool = True,
        dropout: float = 0.1,
        eps: float = 1e-5,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "DecoderOnly"
        e = self.embed_dim = as_int(name, "embed_dim", embed_dim, 1)
        self.vocabulary = as_int(name, "vocabulary", vocabulary, 1)
        self.context = None if context is None else as_int(name, "context", context, 1)
        keys = split(take_key(name, key), 4)
        self.tokens = table(self.vocabulary, e, dtype, keys[0])
        self.positions = positions_of(name, positions, self.context, e, dtype, keys[1])
        self.dropout = Dropout(dropout) if dropout else None
        settings = Settings(e, num_heads, hidden, activation, norm_first, dropout, eps, dtype)
        self.decoder = settings.stack(as_int(name, "decoder_layers", decoder_layers, 1), keys[2], True)
        self.head = None if tied else Linear(e, self.vocabulary, bias=False, dtype=dtype, key=keys[3])

    @property
    def stack(self) -> TransformerStack:  # type: ignore[override]  # what other language models call it
        return self.decoder

    def embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        return embedded(self, self.tokens, tokens, places)

    def logits(self, h: Tensor) -> Tensor:
        return self.tokens.attend(h) if self.head is None else self.head(h)  # (b, t, V)

    def extra_repr(self) -> str:
        return f"vocabulary={self.vocabulary}, context={self.context}"


class EncoderOnly(Module):
    """The encoder of a `Seq2SeqTransformer`: vectors of tokens that saw each other, or classes. Book, section 11.1.

    >>> import wonderland as wl
    >>> tokens = wl.ones((8, 20), dtype=wl.int64)
    >>> wl.models.EncoderOnly(13, embed_dim=32, num_heads=4, encoder_layers=2)(tokens).shape
    (8, 20, 32)
    >>> wl.models.EncoderOnly(13, classes=3, embed_dim=32, num_heads=4, encoder_layers=2)(tokens).shape
    (8, 3)

    With `classes` there are logits of classes (batch, classes) from the mean over the real tokens. Otherwise there are
    V e + L (4 e² + 2 e p + p + 9 e) parameters, see `Seq2SeqTransformer`, whose settings these are.
    """

    def __init__(
        self,
        vocabulary: int,
        classes: int | None = None,
        *,
        embed_dim: int = 512,
        num_heads: int = 8,
        encoder_layers: int = 6,
        hidden: int | None = None,
        activation: ActivationLike = "relu",
        positions: str = "sinusoidal",
        context: int | None = None,
        norm_first: bool = False,
        dropout: float = 0.1,
        eps: float = 1e-5,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "EncoderOnly"
        e = self.embed_dim = as_int(name, "embed_dim", embed_dim, 1)
        self.vocabulary = as_int(name, "vocabulary", vocabulary, 1)
        self.context = None if context is None else as_int(name, "context", context, 1)
        keys = split(take_key(name, key), 4)
        self.tokens = table(self.vocabulary, e, dtype, keys[0])
        self.positions = positions_of(name, positions, self.context, e, dtype, keys[1])
        self.dropout = Dropout(dropout) if dropout else None
        settings = Settings(e, num_heads, hidden, activation, norm_first, dropout, eps, dtype)
        self.encoder = settings.stack(as_int(name, "encoder_layers", encoder_layers, 1), keys[2])
        many = None if classes is None else as_int(name, "classes", classes, 1)
        self.head = None if many is None else Linear(e, many, dtype=dtype, key=keys[3])

    def forward(
        self, tokens: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> Tensor:
        ids = as_tokens(self, tokens)
        real = as_token_mask(self._describe(), ids.shape, token_mask, lengths)
        ids = ids if real is None else arrays.where(real, ids, 0)
        h = embedded(self, self.tokens, ids, places_of(real, ids.shape[1]))  # (b, t, e)
        h = self.encoder(h, token_mask=real)
        return h if self.head is None else self.head(F.global_avg_pool(h, axes=1, mask=real))  # (b, classes)

    def extra_repr(self) -> str:
        return f"vocabulary={self.vocabulary}, context={self.context}"


KINDS = {"encoder-only": EncoderOnly, "decoder-only": DecoderOnly, "encoder-decoder": Seq2SeqTransformer}


def transformer(kind: str, vocabulary: int, **settings: object) -> EncoderOnly | DecoderOnly | Seq2SeqTransformer:
    """One of the three kinds by its name, "encoder-only", "decoder-only" or "encoder-decoder". Book, section 11.1.

    >>> import wonderland as wl
    >>> small = {"embed_dim": 16, "num_heads": 2}
    >>> whole = wl.models.transformer("encoder-decoder", 13, encoder_layers=1, decoder_layers=1, **small)
    >>> half = wl.models.transformer("encoder-only", 13, encoder_layers=1, **small)
    >>> set(half.state_dict()) <= set(whole.state_dict())
    True

    They are for understanding (BERT), for writing (GPT), and for writing what something else says (T5). What has a name
    in several of them has the same shape, too, so weights can be carried over.
    """
    if kind not in KINDS:
        raise InputError(f"transformer: kind={shown(kind)}.", " or ".join(map(repr, KINDS)))
    return KINDS[kind](vocabulary, **settings)


# --- the parts


class Settings:
    """What all blocks of a model have in common."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        hidden: int | None,
        activation: ActivationLike,
        norm_first: bool,
        dropout: float,
        eps: float,
        dtype: DTypeLike | None,
    ) -> None:
        self.embed_dim, self.num_heads, self.hidden, self.activation = embed_dim, num_heads, hidden, activation
        self.norm_first, self.dropout, self.eps, self.dtype = norm_first, dropout, eps, dtype

    def norm(self, e: int) -> LayerNorm:
        return LayerNorm(e, self.eps, dtype=self.dtype)

    def stack(self, depth: int, key: Tensor, causal: bool = False, cross: bool = False) -> TransformerStack:
        blocks = [
            TransformerBlock(
                self.embed_dim, self.num_heads, hidden=self.hidden, activation=self.activation, causal=causal,
                cross=cross, norm=self.norm, norm_first=self.norm_first, dropout=self.dropout,
                attention_dropout=self.dropout, dtype=self.dtype, key=k,
            )
            for k in split(key, depth)
        ]  # fmt: skip
        return TransformerStack(blocks, self.norm(self.embed_dim) if self.norm_first else None)


def table(vocabulary: int, e: int, dtype: DTypeLike | None, key: Tensor) -> Embedding:
    r"""Vectors from \(N(0, 1/e)\): of size 1 when multiplied by \(\sqrt{e}\), and so are the first logits."""
    layer = Embedding(vocabulary, e, dtype=dtype, key=key)
    with at_once(key):
        layer.weight.assign(layer.weight / math.sqrt(e))
    return layer


def positions_of(
    name: str, positions: str, context: int | None, e: int, dtype: DTypeLike | None, key: Tensor
) -> AbsolutePositions:
    """The layer that a name of positions stands for."""
    if positions == "sinusoidal":
        return SinusoidalPositions(e)
    if positions != "learned":
        raise InputError(f"{name}: positions={shown(positions)}.", '"sinusoidal" or "learned"')
    if context is None:
        raise InputError(f"{name}: learned positions, and no context.", "context=..., the largest number of tokens")
    return LearnedPositions(context, e, dtype=dtype, key=key)


def embedded(
    model: Seq2SeqTransformer | DecoderOnly | EncoderOnly, tokens: Embedding, ids: Tensor, places: Tensor
) -> Tensor:
    x = model.positions(tokens(ids) * math.sqrt(model.embed_dim), places)  # (b, t, e)
    return x if model.dropout is None else model.dropout(x)


def as_start(name: str, token: int, vocabulary: int) -> int:
    """The token that begins what is written."""
    start = as_int(name, "start_token", token, 0)
    if start >= vocabulary:
        raise InputError(f"{name}: start_token={start} of {vocabulary} tokens.", f"a token from 0 to {vocabulary - 1}")
    return start
