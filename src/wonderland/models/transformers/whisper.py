"""Whisper: speech to text by an encoder of spectra and a decoder of tokens. Book, section 11.2.4.

waveform --> log-mel spectrum (b, s, m) --> gelu(conv) --> gelu(conv, stride 2) --> + sinusoids --> encoder --> memory
tokens (b, t) --> embedding + learned positions --> decoder, which attends to the memory --> logits (b, t, V)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...audio.mel import mel_spectrogram
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike, DTypeLike, KeyLike
from ...nn import functional as F  # noqa: N812 - as everybody calls it
from ...nn.attention.absolute_positions import LearnedPositions
from ...nn.attention.blocks import TransformerBlock, TransformerStack
from ...nn.attention.multi_head import MultiHeadAttention
from ...nn.layers.convolution import Conv1d
from ...nn.layers.embedding import Embedding
from ...nn.layers.fully_connected import ActivationLike, as_activation
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LayerNorm
from ...nn.module.parameter import Parameter
from ...nn.sequences.token_masks import as_sequence, as_token_mask, silenced
from ...random.keys import split
from ...random.streams import take_key
from ...transforms.control.loops import runs_in_python
from .encoder_decoder import EncoderDecoder
from .initialization import small_normal
from .seq2seq import as_start

__all__ = ["SpeechTokens", "Whisper", "whisper_features"]

RATE, WINDOW, HOP = 16_000, 400, 160  # samples per second, per frame, and from frame to frame


@dataclass(frozen=True, eq=False)
class SpeechTokens:
    """The tokens that steer a transcriber, as its published folder names them.

    `languages` ("en") and `tasks` ("transcribe", "translate") stand after the first token, then `no_timestamps`. Those
    in `suppressed` are never written, those in `suppressed_first` not as the first one.
    """

    languages: Mapping[str, int] = field(default_factory=dict)
    tasks: Mapping[str, int] = field(default_factory=dict)
    no_timestamps: int | None = None
    suppressed: tuple[int, ...] = ()
    suppressed_first: tuple[int, ...] = ()


def whisper_features(waveform: ArrayLike, bands: int = 80, seconds: float | None = 30.0) -> Tensor:
    r"""The spectra that Whisper reads: a waveform (..., time) of 16 kHz to (..., frames, bands), 100 frames a second.

    >>> import wonderland as wl
    >>> wave = wl.sin(0.1 * wl.arange(16_000))
    >>> wl.models.whisper_features(wave).shape, wl.models.whisper_features(wave, bands=20, seconds=None).shape
    ((3000, 80), (100, 20))

    The sound is filled with silence, or cut, to so many `seconds`. Its energies x in mel bands become
    \(y = (\max(\log_{10} x, m - 8) + 4)/4\), where m is the largest \(\log_{10} x\) of the sound, and
    \(x \ge 10^{-10}\): eight decades, from about -1 to 1 for loud sounds.
    """
    name = "whisper_features"
    x = as_real(name, waveform)
    if not x.ndim:
        raise ShapeError(f"{name}: a waveform of shape ().", "(..., time), samples at 16 kHz")
    if seconds is not None:
        count = round(RATE * as_number(name, "seconds", seconds))
        x = x[..., :count]
        x = arrays.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, count - x.shape[-1])])
    if x.shape[-1] < WINDOW:  # of which half is mirrored at the ends
        raise ShapeError(f"{name}: {x.shape[-1]} samples.", f"{WINDOW} or more, which are 25 ms, or seconds=...")
    energy = mel_spectrogram(x, RATE, WINDOW, HOP, n_mels=bands, norm="slaney", mel_scale="slaney")[..., :-1, :]
    logs = arrays.log10(arrays.maximum(energy, 1e-10))
    loudest = arrays.max(logs, axis=(-1, -2), keepdims=True)
    return (arrays.maximum(logs, loudest - 8.0) + 4.0) / 4.0


class Whisper(EncoderDecoder):
    r"""Spectra (batch, s, bands) and tokens (batch, t) to logits (batch, t, vocabulary). Book, section 11.2.4.

    >>> import wonderland as wl
    >>> model = wl.models.Whisper(100, bands=20, embed_dim=32, encoder_heads=4, encoder_layers=2)
    >>> spectra = wl.models.whisper_features(wl.sin(0.1 * wl.arange(16_000)), bands=20, seconds=None)
    >>> model.encode(spectra[None]).shape, model(spectra[None], wl.zeros((1, 5), dtype=wl.int64)).shape
    ((1, 50, 32), (1, 5, 100))

    Two convolutions of width 3 look at the spectra, the second at every other place, so that there are s/2 tokens of
    20 ms. To them sinusoids are added, \(\sin \omega_l i\) and \(\cos \omega_l i\) with
    \(\omega_l = 10000^{-l/(e/2 - 1)}\), up to `frames` tokens; what is written has learned positions, up to `context`.
    Blocks are normalized first; keys have no bias, as it would add the same to all scores of a query; logits are
    \(h W^\top\) with the table W of the tokens. `lengths` (batch,) are numbers of spectra; the published models were
    trained without, on 30 seconds of sound and silence.

    With V tokens, m bands, f frames, context c, e features, p hidden units, L blocks in the encoder and D in the
    decoder there are (V + f + c) e + 3 m e + 3 e² + 6 e + L (4 e² + 2 e p + p + 8 e) + D (8 e² + 2 e p + p + 13 e)
    parameters, of which f e, the sinusoids, are not trained. `Whisper(51865)` is as large as the smallest published
    model, with 37.8 million.

    The decoder is a language model that also listens. It always writes something likely: of silence, noise or music,
    or where the sound ends too early, it makes up sentences that nobody said (hallucination), and it may repeat itself.
    Ask for the probability of what it writes, leave out parts without speech, and do not take its text for evidence.
    `wl.generation.transcribe` writes what it hears.
    """

    speech_tokens = SpeechTokens()

    def __init__(
        self,
        vocabulary: int,
        bands: int = 80,
        embed_dim: int = 384,
        encoder_heads: int = 6,
        encoder_layers: int = 4,
        decoder_heads: int | None = None,
        decoder_layers: int | None = None,
        *,
        encoder_hidden: int | None = None,
        decoder_hidden: int | None = None,
        activation: ActivationLike = "gelu",
        frames: int = 1500,
        context: int = 448,
        scale_embedding: bool = False,
        start_token: int = 0,
        dropout: float = 0.0,
        eps: float = 1e-5,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        e = self.embed_dim = as_int("Whisper", "embed_dim", embed_dim, 2)
        if e % 2:
            raise InputError(f"Whisper: {e} features cannot be pairs of a sine and a cosine.", "an even embed_dim")
        self.bands, self.frames = as_int("Whisper", "bands", bands, 1), as_int("Whisper", "frames", frames, 1)
        self.vocabulary = as_int("Whisper", "vocabulary", vocabulary, 1)
        self.context: int = as_int("Whisper", "context", context, 1)
        self.start_token = as_start("Whisper", start_token, self.vocabulary)
        self.factor = math.sqrt(e) if scale_embedding else 1.0
        layers = as_int("Whisper", "encoder_layers", encoder_layers, 1)
        later = layers if decoder_layers is None else as_int("Whisper", "decoder_layers", decoder_layers, 1)
        keys = iter(split(take_key("Whisper", key), 2 * layers + 3 * later + 6))

        def attention(heads: int, causal: bool = False) -> MultiHeadAttention:
            k = next(keys)
            layer = MultiHeadAttention(e, heads, causal=causal, dropout=dropout, dtype=dtype, key=k)
            layer.key = Linear(e, e, bias=False, dtype=dtype, key=k)
            return layer

        def block(heads: int, hidden: int | None, decodes: bool) -> TransformerBlock:
            return TransformerBlock(
                e, heads, attention=attention(heads, causal=decodes), cross=attention(heads) if decodes else False,
                hidden=hidden, activation=activation, norm=norm, dropout=dropout, dtype=dtype, key=next(keys),
            )  # fmt: skip

        def norm(e: int) -> LayerNorm:
            return LayerNorm(e, eps, dtype=dtype)

        self.conv1 = Conv1d(self.bands, e, 3, padding=1, dtype=dtype, key=next(keys))
        self.conv2 = Conv1d(e, e, 3, stride=2, padding=1, dtype=dtype, key=next(keys))
        self.activation = as_activation("Whisper", activation)
        self.source_positions = LearnedPositions(self.frames, e, dtype=dtype, key=next(keys))
        sinusoids = arrays.asarray(_sinusoids(self.frames, e), dtype=self.source_positions.weight.dtype)
        self.source_positions.weight = Parameter(sinusoids, trainable=False)
        self.encoder = TransformerStack([block(encoder_heads, encoder_hidden, False) for _ in range(layers)], norm(e))
        self.tokens = Embedding(self.vocabulary, e, dtype=dtype, key=next(keys))
        self.positions = LearnedPositions(self.context, e, dtype=dtype, key=next(keys))
        heads = encoder_heads if decoder_heads is None else decoder_heads
        self.decoder = TransformerStack([block(heads, decoder_hidden, True) for _ in range(later)], norm(e))
        small_normal(self, 0.02, next(keys), residual_layers=2 * max(layers, later))

    def encode(
        self, source: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> Tensor:
        """The memory (batch, s/2, e) of spectra (batch, s, bands), of which `lengths` are real."""
        x = as_sequence(self, source, self.bands)  # (b, s, m)
        if x.ndim != 3:
            raise ShapeError(f"{self._describe()}: spectra of shape {x.shape}.", "(batch, frames, bands)")
        if x.shape[1] > 2 * self.frames:
            raise InputError(
                f"{self._describe()}: {x.shape[1]} spectra, and room for {2 * self.frames}.",
                "whisper_features(wave, seconds=...), or pieces of the sound one after another",
            )
        real = self._real(x.shape[:2], token_mask, lengths)
        x = silenced(x, real)
        x = silenced(self.activation(self.conv1(x)), real)  # (b, s, e); beyond the end is nothing
        x = self.activation(self.conv2(x))  # (b, s/2, e)
        return self.encoder(self.source_positions(x), token_mask=None if real is None else real[:, ::2])

    def memory_mask(
        self, source: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> Tensor | None:
        real = self._real(arrays.asarray(source).shape[:2], token_mask, lengths)
        return None if real is None else real[:, ::2]

    def _real(self, shape: tuple[int, ...], token_mask: ArrayLike | None, lengths: ArrayLike | None) -> Tensor | None:
        """Which spectra are real; the second convolution begins with the first one, so padding is at the end."""
        real = as_token_mask(self._describe(), shape, token_mask, lengths)
        if token_mask is None or real is None or not runs_in_python():
            return real
        if not np.array_equal(real, F.length_mask(arrays.sum(real, axis=1), shape[1])):
            raise InputError(f"{self._describe()}: a mask with padding before spectra.", "padding at the end")
        return real

    def embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        return self.positions(self.tokens(tokens) * self.factor, places)  # (b, t, e)

    def logits(self, h: Tensor) -> Tensor:
        return self.tokens.attend(h)  # (b, t, V)

    def extra_repr(self) -> str:
        return f"vocabulary={self.vocabulary}, bands={self.bands}, frames={self.frames}, context={self.context}"


def _sinusoids(frames: int, e: int) -> Array:
    """All sines, then all cosines; frequencies fall from 1 to 1/10000, both among them."""
    pairs = e // 2
    falling = 10_000.0 ** (-np.arange(pairs) / max(1, pairs - 1))
    angles = np.arange(frames)[:, None] * falling
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
