"""How sounds become models for the catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import nn
from ..core.errors import ShapeError
from ..data.formats.sounds import SoundForm
from ..models import SoundCNN
from .media import form_of

UNKNOWN = 16_000  # samples a second


def sound(
    shape: tuple[int, ...],
    outputs: int,
    channels: Sequence[int] = (16, 32, 64),
    n_mels: int = 40,
    dropout: float = 0.2,
    *,
    inputs: Mapping[str, object],
) -> nn.Module:
    """Convolutions over the log-mel picture of a sound. Book, section 8.1.

    Of arrays nobody knows how many samples a second they have; they are taken as sounds of 16,000.
    """
    if len(shape) != 2 or shape[1] != 1:
        raise ShapeError(f"sound: an input of shape {shape} is no sound.", "a folder of WAV files, or (time, 1)")
    form = form_of(inputs)
    rate = form.rate if isinstance(form, SoundForm) else UNKNOWN
    return SoundCNN(outputs, rate, shape[0], channels, n_mels, dropout)
