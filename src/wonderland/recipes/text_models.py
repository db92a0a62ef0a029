"""How models of texts are built for the catalogue, from what a run knows of its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import nn
from ..core.tensor import Tensor
from ..models import (
    BERT,
    GPT,
    ConvLanguageModel,
    EncoderDecoder,
    KimCNN,
    Llama,
    MaskedLanguageModel,
    Seq2SeqTransformer,
)


def wavenet(
    shape: tuple[int, ...],
    outputs: int,
    channels: int = 128,
    dilations: Sequence[int] = (1, 2, 4, 8, 16, 32, 1, 2, 4, 8, 16, 32),
    kernel_size: int = 2,
    dropout: float = 0.05,
) -> nn.Module:
    """Dilated causal convolutions over tokens: a language model. Book, section 8.4.1."""
    return ConvLanguageModel(outputs, channels, dilations, kernel_size, dropout=dropout)


def gpt(
    shape: tuple[int, ...],
    outputs: int,
    embed_dim: int = 128,
    num_heads: int = 4,
    depth: int = 4,
    positions: str = "rotary",
    tied: bool = True,
    dropout: float = 0.0,
) -> nn.Module:
    """Transformer blocks whose tokens see those before them: a language model. Book, section 11.2.4."""
    settings: dict[str, Any] = {"positions": positions or None, "tied": tied, "dropout": dropout}
    return GPT(outputs, shape[0], embed_dim, num_heads, depth, **settings)


def llama(
    shape: tuple[int, ...],
    outputs: int,
    embed_dim: int = 128,
    num_heads: int = 4,
    depth: int = 4,
    kv_heads: int = 0,
    tied: bool = True,
) -> nn.Module:
    """RMSNorm, rotary positions and a gated MLP; `kv_heads=0`: as many as there are heads. Book, section 11.3."""
    return Llama(outputs, embed_dim, num_heads, depth, kv_heads=kv_heads or None, context=shape[0], tied=tied)


def bert(
    shape: tuple[int, ...],
    outputs: int,
    embed_dim: int = 128,
    num_heads: int = 4,
    depth: int = 4,
    dropout: float = 0.0,
) -> nn.Module:
    """Transformer blocks whose tokens see all others, and fill in hidden ones. Book, section 11.2.4."""
    encoder = BERT(outputs, shape[0], embed_dim, num_heads, depth, segments=1, pooler=False, dropout=dropout)
    return MaskedLanguageModel(encoder)


class TeacherForced(nn.Module):
    """An encoder-decoder that takes the source and the tokens before each target side by side; 0 is padding."""

    def __init__(self, net: EncoderDecoder, source_length: int) -> None:
        self.net, self.source_length = net, source_length

    def forward(self, x: Tensor) -> Tensor:
        source = x[:, : self.source_length]
        return self.net(source, x[:, self.source_length :], source_mask=source != 0)


def seq2seq(
    shape: tuple[int, ...],
    outputs: int,
    embed_dim: int = 64,
    num_heads: int = 4,
    encoder_layers: int = 2,
    decoder_layers: int = 2,
    dropout: float = 0.0,
    *,
    source_length: int,
    start_token: int,
) -> nn.Module:
    """The transformer with an encoder and a decoder, from one text to another. Book, section 11.1."""
    net = Seq2SeqTransformer(
        outputs,
        embed_dim=embed_dim,
        num_heads=num_heads,
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        dropout=dropout,
        norm_first=True,
        start_token=start_token,
    )
    return TeacherForced(net, source_length)


class PaddedTexts(nn.Module):
    """A classifier of texts that are filled up with the token 0, which it does not see."""

    def __init__(self, net: nn.Module) -> None:
        self.net = net

    def forward(self, tokens: Tensor) -> Tensor:
        return self.net(tokens, mask=tokens != 0)


def text_cnn(
    shape: tuple[int, ...],
    outputs: int,
    embedding_size: int = 64,
    channels: int = 64,
    widths: Sequence[int] = (2, 3, 4),
    dropout: float = 0.5,
    *,
    vocabulary: int,
) -> nn.Module:
    """Convolutions of several widths over words, and their maxima. Book, section 8.2."""
    return PaddedTexts(KimCNN(vocabulary, embedding_size, outputs, channels, widths, dropout))
