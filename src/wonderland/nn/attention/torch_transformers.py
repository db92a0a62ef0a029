"""PyTorch's `Transformer` and its parts with their arguments and numbers, but one sense of masks: TRUE = MAY ATTEND.

They are `TransformerBlock`s under other names; what `torch_attention` tells about masks is so here, too. The settings
are PyTorch's, also those that we would choose otherwise: normalization after the sums, ReLU, dropout of 0.1, and
sequences (time, batch, features) unless `batch_first`.
"""

from __future__ import annotations

import math

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..init.schemes import xavier_uniform
from ..layers.fully_connected import ActivationLike
from ..layers.normalization import LayerNorm
from ..mixing.feed_forward import FeedForward
from ..module.containers import ModuleList
from ..module.module import Module
from ..sequences.token_masks import silenced
from .blocks import TransformerBlock
from .multi_head import MultiHeadAttention
from .torch_attention import Masks, batch_first, masks_of, start_as_there

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


class _Layer(TransformerBlock):
    """What layers of encoder and decoder share."""

    crossed = False

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: ActivationLike = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        keys = split(take_key(name, key), 3)
        attentions = []
        for k in keys[: 1 + self.crossed]:
            made = MultiHeadAttention(d_model, nhead, bias=bias, dropout=dropout, fused=True, dtype=dtype, key=k)
            start_as_there(made, bias, dtype, k)
            attentions.append(made)
        mlp = FeedForward(d_model, 1, activation, bias, dropout, hidden=dim_feedforward, dtype=dtype, key=keys[2])
        super().__init__(
            d_model, nhead, attention=attentions[0], cross=attentions[-1] if self.crossed else False, feed_forward=mlp,
            norm=lambda e: LayerNorm(e, layer_norm_eps, bias=bias, dtype=dtype), norm_first=norm_first,
            dropout=dropout, dtype=dtype,
        )  # fmt: skip
        self.nhead, self.batch_first = nhead, bool(batch_first)

    def _turned(self, y: Tensor) -> Tensor:
        return y if y.ndim == 2 or self.batch_first else arrays.swapaxes(y, 0, 1)


class TransformerEncoderLayer(_Layer):
    r"""\(H = N(X + \mathrm{MHA}(X))\), \(Y = N(H + \mathrm{MLP}(H))\), as PyTorch calls it. Notes, section 5.6.4.

    >>> import wonderland as wl
    >>> layer = wl.nn.TransformerEncoderLayer(16, 4, dim_feedforward=32, batch_first=True)
    >>> layer(wl.ones((2, 7, 16)), src_key_padding_mask=wl.nn.functional.length_mask([7, 3], 7)).shape
    (2, 7, 16)

    **Masks: true = may attend or is real, not as in PyTorch; see `MultiheadAttention`.** `norm_first` normalizes before
    attention and MLP. To read on with a cache, take a causal `TransformerBlock`.
    """

    def forward(  # type: ignore[override]  # PyTorch's arguments
        self, src: ArrayLike, src_mask: Masks = None, src_key_padding_mask: Masks = None, is_causal: bool = False
    ) -> Tensor:
        x = batch_first(self, self._describe(), src)
        mask, real = masks_of(self._describe(), src_mask, src_key_padding_mask, self.nhead, is_causal, x, x)
        x = silenced(x, real)
        return self._turned(self._run(x, lambda h: self.attention(h, attn_mask=mask, token_mask=real), _none))


class TransformerDecoderLayer(_Layer):
    r"""An encoder layer with attention to a memory in between, as PyTorch calls it. Book, section 11.1.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.TransformerDecoderLayer(16, 4, dim_feedforward=32, batch_first=True)
    >>> layer(wl.ones((2, 5, 16)), wl.ones((2, 7, 16)), tgt_is_causal=True).shape
    (2, 5, 16)

    **Masks: true = may attend or is real, not as in PyTorch; see `MultiheadAttention`.** `memory_mask` (t, s) says
    which of the memory's tokens each token may attend to, `memory_key_padding_mask` (batch, s) which are real.
    """

    crossed = True

    def forward(  # type: ignore[override]  # PyTorch's arguments
        self,
        tgt: ArrayLike,
        memory: ArrayLike,
        tgt_mask: Masks = None,
        memory_mask: Masks = None,
        tgt_key_padding_mask: Masks = None,
        memory_key_padding_mask: Masks = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        x, z = (batch_first(self, self._describe(), part) for part in (tgt, memory))
        if x.shape[:-2] != z.shape[:-2]:
            raise ShapeError(f"{self._describe()}: tgt {x.shape} and memory {z.shape}.", "the same batch for both")
        name = self._describe()
        mask, real = masks_of(f"{name}, tgt", tgt_mask, tgt_key_padding_mask, self.nhead, tgt_is_causal, x, x)
        seen, kept = masks_of(
            f"{name}, memory", memory_mask, memory_key_padding_mask, self.nhead, memory_is_causal, x, z
        )
        x, cross = silenced(x, real), self.cross
        assert cross is not None

        def recall(h: Tensor) -> Tensor:
            found = cross(h, z, attn_mask=seen, token_mask=kept)
            return found

        return self._turned(self._run(x, lambda h: self.attention(h, attn_mask=mask, token_mask=real), recall))


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after another, and a last normalization, as PyTorch calls it.

    >>> import wonderland as wl
    >>> layer = wl.nn.TransformerEncoderLayer(16, 4, dim_feedforward=32)
    >>> wl.nn.TransformerEncoder(layer, num_layers=3)(wl.ones((7, 2, 16)), is_causal=True).shape
    (7, 2, 16)

    **Masks: true = may attend or is real, not as in PyTorch; see `MultiheadAttention`.** All copies start with the same
    numbers, those of the layer.
    """

    def __init__(self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None) -> None:
        self.layers = _copies(self, encoder_layer, num_layers)
        self.norm = norm

    def forward(
        self, src: ArrayLike, mask: Masks = None, src_key_padding_mask: Masks = None, is_causal: bool = False
    ) -> Tensor:
        h = arrays.asarray(src)
        for layer in self.layers:
            h = layer(h, mask, src_key_padding_mask, is_causal)
        return h if self.norm is None else self.norm(h)


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after another, and a last normalization, as PyTorch calls it.

    >>> import wonderland as wl
    >>> layer = wl.nn.TransformerDecoderLayer(16, 4, dim_feedforward=32)
    >>> wl.nn.TransformerDecoder(layer, num_layers=3)(wl.ones((5, 2, 16)), wl.ones((7, 2, 16))).shape
    (5, 2, 16)

    **Masks: true = may attend or is real, not as in PyTorch; see `MultiheadAttention`.**
    """

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        self.layers = _copies(self, decoder_layer, num_layers)
        self.norm = norm

    def forward(
        self,
        tgt: ArrayLike,
        memory: ArrayLike,
        tgt_mask: Masks = None,
        memory_mask: Masks = None,
        tgt_key_padding_mask: Masks = None,
        memory_key_padding_mask: Masks = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        h = arrays.asarray(tgt)
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        for layer in self.layers:
            h = layer(h, memory, *masks, tgt_is_causal, memory_is_causal)
        return h if self.norm is None else self.norm(h)


class Transformer(Module):
    r"""Encoder and decoder of the original, from vectors to vectors, as PyTorch calls it. Book, section 11.1.3.

    >>> import wonderland as wl
    >>> model = wl.nn.Transformer(16, 4, 2, 2, dim_feedforward=32, batch_first=True)
    >>> model(wl.ones((2, 7, 16)), wl.ones((2, 5, 16)), tgt_is_causal=True).shape
    (2, 5, 16)

    **Masks: true = may attend or is real, not as in PyTorch; see `MultiheadAttention`.** There are no embeddings and
    no last layer. Matrices start from \(U(-a, a)\) with \(a = \sqrt{6/(\text{in} + \text{out})}\).
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: ActivationLike = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        first, second, third = split(take_key("Transformer", key), 3)
        self.d_model, self.batch_first = as_int("Transformer", "d_model", d_model, 1), bool(batch_first)
        shared = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*shared, dtype=dtype, key=first), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*shared, dtype=dtype, key=second), num_decoder_layers, norm()
        )
        matrices = [cell for _, cell in self.named_parameters() if cell.ndim > 1]
        for cell, k in zip(matrices, split(third, max(1, len(matrices))), strict=False):
            cell.assign(xavier_uniform()(cell.shape, key=k, dtype=cell.dtype))

    def forward(
        self,
        src: ArrayLike,
        tgt: ArrayLike,
        src_mask: Masks = None,
        tgt_mask: Masks = None,
        memory_mask: Masks = None,
        src_key_padding_mask: Masks = None,
        tgt_key_padding_mask: Masks = None,
        memory_key_padding_mask: Masks = None,
        src_is_causal: bool = False,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        padding = (tgt_key_padding_mask, memory_key_padding_mask)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, *padding, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int) -> Tensor:
        """0 where a token may attend, -inf above the diagonal: (sz, sz), to be added to scores.

        >>> Transformer.generate_square_subsequent_mask(2).tolist()
        [[0.0, -inf], [0.0, 0.0]]
        """
        places = arrays.arange(as_int("generate_square_subsequent_mask", "sz", sz, 0))
        return arrays.where(places[None, :] <= places[:, None], 0.0, -math.inf)

    def extra_repr(self) -> str:
        return f"{self.d_model}"


def _copies(owner: Module, layer: Module, count: int) -> ModuleList:
    name = type(owner).__name__
    if not isinstance(layer, _Layer):
        raise InputError(f"{name}: a layer of type {type(layer).__name__}.", f"a {name}Layer")
    return ModuleList([layer.copy() for _ in range(as_int(name, "num_layers", count, 0))])


def _none(h: Tensor) -> Tensor:
    return h
