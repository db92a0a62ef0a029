"""A convolutional network that hears: classes of sounds from their waveforms. Book, section 8.1.

sound (b, time, 1)
  |  log-mel picture, each pitch with its own mean and scale     (b, frames, mels, 1)
  |  blocks of convolutions that halve time and pitch            (b, frames/8, mels/8, 64)
  |  mean over time; which pitch it was stays                    (b, mels/8 * 64)
  |  linear layer
scores (b, classes)
"""

from __future__ import annotations

from collections.abc import Sequence

from ... import arrays
from ...arrays.conversion import as_tensor
from ...audio.framing import frame_count
from ...audio.layers import LogMel
from ...audio.mel import mel_filter_bank
from ...core.arguments import as_int, as_list
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...nn.layers.conv_block import ConvBlock
from ...nn.layers.dropout import Dropout, own_stream
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import BatchNorm1d
from ...nn.module.containers import Sequential
from ...nn.module.module import Module
from ...random.streams import Source

FRAMES = 128  # about, of a sound that is not short


class SoundCNN(Module):
    """Waveforms (..., time, 1) to scores, through a log-mel picture that the model computes itself.

    >>> import wonderland as wl
    >>> model = wl.models.SoundCNN(5, sample_rate=8000, length=4000, channels=[8, 16])
    >>> model.picture(wl.ones((2, 4000, 1))).shape, model(wl.ones((2, 4000, 1))).shape
    ((2, 51, 40), (2, 5))

    Windows last about 25 ms and begin every 10 ms, or less often in long sounds. `n_mels` is the most pitches: where
    windows are too short to tell so many apart, there are fewer. `channels` are those of the blocks, of which there are
    as many as the picture can be halved.
    """

    def __init__(
        self,
        num_classes: int,
        sample_rate: int = 16_000,
        length: int = 16_000,
        channels: Sequence[int] = (16, 32, 64),
        n_mels: int = 40,
        dropout: float = 0.2,
        key: Source = None,
    ) -> None:
        stream = own_stream(key)
        rate, length = as_int("SoundCNN", "sample_rate", sample_rate, 1), as_int("SoundCNN", "length", length, 1)
        widths = as_list("SoundCNN", "channels", channels)
        n_fft, hop = _windows(rate, length)
        mels = _pitches(as_int("SoundCNN", "n_mels", n_mels, 1), n_fft, rate)
        halvings = min(len(widths), min(frame_count(length, n_fft, hop, center=True), mels).bit_length() - 1)
        if not widths or not halvings:
            raise ShapeError(
                f"SoundCNN: sounds of {length} samples, channels={channels}.", "longer sounds, and a block or more"
            )
        self.length = length
        self.log_mel = LogMel(rate, n_fft, hop_length=hop, n_mels=mels)
        self.norm = BatchNorm1d(mels)
        self.backbone = Sequential(
            *(
                ConvBlock(before, after, 2, 3, 2, "batch", key=stream)
                for before, after in zip([1, *widths], widths[:halvings], strict=False)
            )
        )
        self.drop = Dropout(dropout)
        self.head = Linear(widths[halvings - 1] * (mels >> halvings), num_classes, key=stream)

    def picture(self, x: ArrayLike) -> Tensor:
        """The loudness (..., frames, mels), before it is brought to a common scale."""
        x = as_tensor("SoundCNN", x)
        if x.ndim < 2 or x.shape[-2:] != (self.length, 1):
            raise ShapeError(f"SoundCNN: sounds of shape {x.shape}.", f"(..., {self.length}, 1)")
        return self.log_mel(x[..., 0])

    def embed(self, x: ArrayLike) -> Tensor:
        """What the head sees: the mean over time of the last maps."""
        maps = self.backbone(self.norm(self.picture(x))[..., None])  # (b, frames', mels', c)
        return arrays.flatten(arrays.mean(maps, axis=-3), -2, -1)

    def forward(self, x: ArrayLike) -> Tensor:
        return self.head(self.drop(self.embed(x)))


def _windows(rate: int, length: int) -> tuple[int, int]:
    """How long windows are, a power of two, and how many samples lie between them."""
    n_fft = 1 << max(3, (rate // 40 - 1).bit_length())
    while n_fft > max(8, length):
        n_fft //= 2
    hop = max(1, min(max(rate // 100, length // FRAMES), n_fft // 2))
    return n_fft, hop


def _pitches(most: int, n_fft: int, rate: int) -> int:
    """The largest number of mel filters up to `most` of which each hears something."""
    for count in range(most, 0, -1):
        try:
            mel_filter_bank(n_fft // 2 + 1, count, rate)
        except InputError:  # some lie between two frequencies
            continue
        return count
    raise ShapeError(f"SoundCNN: windows of {n_fft} samples tell no pitches apart.", "longer sounds")
