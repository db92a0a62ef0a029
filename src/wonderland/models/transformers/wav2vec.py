"""Wav2vec: speech without labels first, by guessing hidden frames; then transcripts, by CTC. Book, section 11.2.4.

waves (b, samples) --convolutions--> frames z (b, n, f) --hidden ones become one vector--> transformer --> c (b, n, e)

    pre-training    c_i must point to z_i among all hidden frames of its row (contrastive), or guess it (regression)
    fine-tuning     a linear layer on c gives a class for each frame, and the CTC loss sums over alignments
"""

from __future__ import annotations

import math

from ... import arrays
from ...arrays import stop_gradient
from ...arrays.conversion import as_real
from ...core.arguments import as_int, as_number, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn import functional as F  # noqa: N812 - as everybody calls it
from ...nn.attention.absolute_positions import SinusoidalPositions
from ...nn.attention.blocks import TransformerBlock, TransformerStack
from ...nn.layers.audio_tokenizer import AudioTokenizer
from ...nn.layers.dropout import Dropout
from ...nn.layers.extra_tokens import AppendTokens
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LayerNorm
from ...nn.module.module import Module
from ...nn.sequences.token_masks import as_mask, as_token_mask, silenced
from ...random.keys import split
from ...random.streams import take_key

__all__ = ["Wav2Vec", "Wav2VecCTC"]

OBJECTIVES = ("contrastive", "regression")


class Wav2Vec(Module):
    r"""Waves (batch, samples) to vectors of frames (batch, n, e), learned from sound alone. Book, section 11.2.4.

    >>> import wonderland as wl
    >>> tokenizer = wl.nn.AudioTokenizer([(16, 10, 5), (32, 4, 2)], pool=2)
    >>> model = wl.models.Wav2Vec(tokenizer, embed_dim=32, num_heads=4, depth=2)
    >>> waves = wl.random.normal((3, 1000))
    >>> model(waves, lengths=[1000, 700, 1000]).shape, model.loss(waves).shape
    ((3, 24, 32), ())

    `loss` hides spans of frames, see `mask_spans`, and counts hidden frames alone. With the "contrastive" `objective`
    it is \(-\ln \operatorname{softmax}_j(\cos(c_i W, z_j V)/\tau)_i\) with j over the hidden frames of the same row:
    which of them belongs here? With "regression" it is the squared error between \(c_i W\) and the normalized frame
    \(z_i\), as a fixed target. `hidden` (batch, n) says which frames to hide instead of a draw.

    Frames are added to sinusoidal positions, so they may be any number; rows may be padded at the end, with `lengths`
    (batch,) real samples each. With f features from the tokenizer, e features, L blocks and targets of d numbers there
    are, besides the tokenizer's, 2 f + (f + 1) e + e + L (12 e² + 13 e) + 2 e + (e + 1) d parameters, for contrast
    (f + 1) d more.
    """

    generates = False

    def __init__(
        self,
        tokenizer: AudioTokenizer | None = None,
        embed_dim: int = 256,
        num_heads: int = 8,
        depth: int = 6,
        *,
        objective: str = "contrastive",
        target_size: int | None = None,
        temperature: float = 0.1,
        span: int = 10,
        p: float = 0.065,
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "Wav2Vec"
        if objective not in OBJECTIVES:
            raise InputError(f"{name}: objective={shown(objective)}.", '"contrastive" or "regression"')
        self.objective, self.span, self.p = objective, as_int(name, "span", span, 1), p
        self.temperature = float(as_number(name, "temperature", temperature))
        if not self.temperature > 0:
            raise InputError(f"{name}: temperature={temperature}.", "a number above 0")
        e, layers = as_int(name, "embed_dim", embed_dim, 1), as_int(name, "depth", depth, 0)
        self.embed_dim = e
        keys = split(take_key(name, key), layers + 5)
        self.tokenizer = AudioTokenizer(dtype=dtype, key=keys[0]) if tokenizer is None else tokenizer
        f = self.tokenizer.features
        if objective == "regression" and target_size not in (None, f):
            raise InputError(f"{name}: target_size={target_size} for frames of {f} features.", f"{f}, or contrast")
        size = f if target_size is None else as_int(name, "target_size", target_size, 1)
        self.norm = LayerNorm(f, dtype=dtype)
        self.project = Linear(f, e, dtype=dtype, key=keys[1])
        self.hidden_frame = AppendTokens(1, e, dtype=dtype, key=keys[2])  # stands where something is hidden
        self.positions = SinusoidalPositions(e)
        self.dropout = Dropout(dropout) if dropout else None
        blocks = [TransformerBlock(e, num_heads, dropout=dropout, dtype=dtype, key=k) for k in keys[5:]]
        self.stack = TransformerStack(blocks, LayerNorm(e, dtype=dtype))
        self.guess = Linear(e, size, dtype=dtype, key=keys[3])
        self.target = Linear(f, size, dtype=dtype, key=keys[4]) if objective == "contrastive" else None

    def frames(self, waves: ArrayLike, lengths: ArrayLike | None = None) -> tuple[Tensor, Tensor | None]:
        """Normalized latent frames (b, n, f), and which of them are real."""
        x = as_real("Wav2Vec", waves)
        if x.ndim != 2:
            raise ShapeError(f"Wav2Vec: waves of shape {x.shape}.", "(batch, samples)")
        z = self.tokenizer(x, lengths)  # (b, n, f)
        if lengths is None:
            return self.norm(z), None
        real = as_token_mask("Wav2Vec", z.shape[:2], lengths=self.tokenizer.output_length(lengths))
        return silenced(self.norm(z), real), real

    def forward(self, waves: ArrayLike, lengths: ArrayLike | None = None, hidden: ArrayLike | None = None) -> Tensor:
        z, real = self.frames(waves, lengths)
        return self.context(z, real, as_mask("Wav2Vec", hidden, z.shape[:2]))

    def context(self, z: Tensor, real: Tensor | None = None, hidden: Tensor | None = None) -> Tensor:
        """Vectors (b, n, e) of frames (b, n, f), each of which depends on all that are not hidden."""
        x = self.project(z)  # (b, n, e)
        if hidden is not None:
            x = arrays.where(arrays.expand_dims(hidden, -1), self.hidden_frame.weight[0], x)
        x = self.positions(x)  # padding is at the end, so frames stand where they are
        return self.stack(x if self.dropout is None else self.dropout(x), token_mask=real)

    def loss(
        self,
        waves: ArrayLike,
        lengths: ArrayLike | None = None,
        hidden: ArrayLike | None = None,
        key: KeyLike = None,
    ) -> Tensor:
        """How badly hidden frames are recognized: a mean over them."""
        z, real = self.frames(waves, lengths)
        chosen = as_mask("Wav2Vec", hidden, z.shape[:2])
        if chosen is None:
            ends = None if lengths is None else self.tokenizer.output_length(lengths)
            chosen = F.mask_spans(z.shape[:2], self.p, self.span, lengths=ends, key=take_key("Wav2Vec", key))
        chosen = chosen if real is None else chosen & real
        return self.loss_of(self.context(z, real, chosen), z, chosen)

    def loss_of(self, c: Tensor, z: Tensor, hidden: Tensor) -> Tensor:
        """The loss of context vectors (b, n, e) for latent frames (b, n, f), at the hidden ones."""
        found = self.guess(c)  # (b, n, d)
        if self.target is None:
            error = arrays.mean((found - stop_gradient(z)) ** 2, axis=-1)  # (b, n)
        else:
            wanted = arrays.normalize(self.target(z), axis=-1)
            scores = arrays.normalize(found, axis=-1) @ arrays.swapaxes(wanted, -1, -2) / self.temperature  # (b, n, n)
            scores = arrays.where(arrays.expand_dims(hidden, -2), scores, -math.inf)
            # rows that do not count have all frames as candidates, lest they have none
            scores = arrays.where(arrays.expand_dims(hidden, -1), scores, 0.0)
            n = scores.shape[-1]
            own = arrays.broadcast_to(arrays.arange(n), scores.shape[:-1])
            error = F.cross_entropy(scores, own, reduction="none")
        total = arrays.sum(arrays.where(hidden, error, 0.0))
        return total / arrays.maximum(arrays.sum(arrays.astype(hidden, error.dtype)), 1.0)

    def extra_repr(self) -> str:
        return ", ".join([str(self.embed_dim), *self._changed(objective="contrastive")])


class Wav2VecCTC(Module):
    """Log-probabilities (batch, n, classes) of a class for each frame, class 0 being the blank. Book, section 11.2.4.

    >>> import wonderland as wl
    >>> tokenizer = wl.nn.AudioTokenizer([(16, 10, 5), (32, 4, 2)], pool=2)
    >>> model = wl.models.Wav2VecCTC(wl.models.Wav2Vec(tokenizer, 32, 4, 2), 5).freeze_tokenizer()
    >>> waves, targets = wl.random.normal((3, 1000)), wl.tensor([[1, 2], [3, 4], [1, 0]])
    >>> model(waves).shape, model.loss(waves, targets, [2, 2, 1]).shape
    ((3, 24, 5), ())

    It is called and `loss` is the CTC loss, with `lengths` (batch,) samples in each row. `freeze_tokenizer` keeps the
    convolutions as they were learned without labels, `freeze_encoder` all but the last layer, which is how fine-tuning
    begins, and `unfreeze` trains everything. `wl.generation.ctc_greedy` reads the result.
    """

    generates = False

    def __init__(self, encoder: Wav2Vec, classes: int, dtype: DTypeLike | None = None, key: KeyLike = None) -> None:
        self.encoder = encoder
        self.head = Linear(encoder.embed_dim, as_int("Wav2VecCTC", "classes", classes, 2), dtype=dtype, key=key)

    def forward(self, waves: ArrayLike, lengths: ArrayLike | None = None) -> Tensor:
        return arrays.log_softmax(self.head(self.encoder(waves, lengths)), axis=-1)  # (b, n, classes)

    def loss(
        self,
        waves: ArrayLike,
        targets: ArrayLike,
        target_lengths: ArrayLike,
        lengths: ArrayLike | None = None,
        zero_infinity: bool = False,
    ) -> Tensor:
        """The CTC loss of targets (batch, s), of which `target_lengths` count, from 1 up."""
        log_p = self(waves, lengths)
        count = arrays.full(log_p.shape[0], log_p.shape[1])
        frames = count if lengths is None else self.encoder.tokenizer.output_length(lengths)
        first = arrays.swapaxes(log_p, 0, 1)  # (n, b, classes)
        return F.ctc_loss(first, targets, frames, target_lengths, zero_infinity=zero_infinity)

    def freeze_tokenizer(self) -> Wav2VecCTC:
        """Train all but the convolutions."""
        self.unfreeze()
        self.encoder.tokenizer.freeze()
        return self

    def freeze_encoder(self) -> Wav2VecCTC:
        """Train the last layer alone."""
        self.unfreeze()
        self.encoder.freeze()
        return self
