"""Writing down what is said, with a model such as `wl.models.Whisper`. Book, section 11.2.4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import arrays
from ..arrays.conversion import as_real
from ..core.arguments import shown
from ..core.errors import InputError, ShapeError
from ..core.typing import Array, ArrayLike
from ..models.transformers.whisper import HOP, RATE, Whisper, whisper_features
from ..text.tokenizer import Tokenizer
from ..train.evaluation import evaluating
from ..transforms.imperative import no_grad
from .sampling import generate
from .suppression import suppressed

__all__ = ["transcribe"]


def transcribe(
    model: Whisper,
    waveform: ArrayLike,
    tokenizer: Tokenizer | None = None,
    *,
    language: str | None = None,
    task: str = "transcribe",
    max_new_tokens: int | None = None,
    **settings: Any,
) -> Any:
    """The text of a sound (time,) of 16 kHz, numbers from -1 to 1; without a tokenizer its tokens.

    >>> import wonderland as wl
    >>> model = wl.models.Whisper(50, bands=20, embed_dim=8, encoder_heads=2, encoder_layers=1, frames=50, context=30)
    >>> wave = wl.sin(0.1 * wl.arange(20_000))
    >>> len(wl.generation.transcribe(model, wave, max_new_tokens=5))  # two pieces of up to one second
    10

    The sound is cut into pieces of as many seconds as the model hears at once, 30 for published ones, and what is
    written for them is joined. A piece begins with `model.start_token`, the tokens of `language` and `task`
    ("transcribe", or "translate" to English) and the one for "no times", as far as `model.speech_tokens` has them;
    without a language the likeliest one of the first piece is taken. Tokens that the model's folder suppresses are not
    written. The text is greedy, unless `settings`, which are those of `generate`, say otherwise; each piece ends at
    `model.stop_tokens`.

    The model makes things up where nobody speaks, see `Whisper`.
    """
    name = "transcribe"
    if not isinstance(model, Whisper):
        raise InputError(f"{name}: a {type(model).__name__} does not listen.", "a wl.models.Whisper")
    sound = as_real(name, waveform).numpy()
    if sound.ndim != 1 or not len(sound):
        raise ShapeError(f"{name}: a waveform of shape {sound.shape}.", "one sound (time,), samples at 16 kHz")
    if not np.isfinite(sound).all():
        raise InputError(f"{name}: the waveform has NaN or infinite samples.", "numbers from -1 to 1")
    pieces = _pieces(model, sound)
    start = _start(model, pieces[:1], language, task)
    room = model.context - len(start)
    count = room if max_new_tokens is None else max_new_tokens
    if room < 1:
        raise InputError(f"{name}: {len(start)} tokens to begin with, a context of {model.context}.", "a longer one")
    tokens = model.speech_tokens
    writer = suppressed(model, tokens.suppressed, tokens.suppressed_first)
    found = generate(writer, [start] * len(pieces), min(count, room), source=pieces, **{"temperature": 0.0} | settings)
    rows = [_without(row[len(start) :], model.stop_tokens) for row in found]
    return np.concatenate(rows) if tokenizer is None else "".join(tokenizer.decode(row) for row in rows).strip()


def _pieces(model: Whisper, sound: Array) -> Array:
    """Spectra (pieces, frames, bands) of as many seconds as the model hears at once."""
    length = 2 * model.frames * HOP
    parts = [sound[i : i + length] for i in range(0, len(sound), length)]
    padded = np.stack([np.pad(part, (0, length - len(part))) for part in parts])
    kind = model.tokens.weight.dtype
    return np.stack([np.asarray(whisper_features(p, model.bands, length / RATE)) for p in padded]).astype(kind)


def _start(model: Whisper, piece: Array, language: str | None, task: str) -> list[int]:
    tokens, start = model.speech_tokens, [model.start_token]
    if tokens.languages:
        if language is not None and language not in tokens.languages:
            raise InputError(f"transcribe: language={shown(language)}.", f"one of {', '.join(tokens.languages)}")
        start.append(_heard(model, piece) if language is None else tokens.languages[language])
    elif language is not None:
        raise InputError(f"transcribe: language={shown(language)} of a model that knows one.", "language=None")
    if tokens.tasks:
        if task not in tokens.tasks:
            raise InputError(f"transcribe: task={shown(task)}.", f"one of {', '.join(tokens.tasks)}")
        start.append(tokens.tasks[task])
    elif task != "transcribe":
        raise InputError(f"transcribe: task={shown(task)} of a model without tasks.", 'task="transcribe"')
    return start if tokens.no_timestamps is None else [*start, tokens.no_timestamps]


def _heard(model: Whisper, piece: Array) -> int:
    """The token of the likeliest language."""
    with evaluating(model), no_grad():
        logits = model(piece, arrays.asarray([[model.start_token]])).numpy()[0, 0]
    return max(model.speech_tokens.languages.values(), key=lambda token: float(logits[token]))


def _without(row: Array, stops: Sequence[int]) -> Array:
    """A row without the token that ended it."""
    return row[:-1] if len(row) and int(row[-1]) in stops else row
