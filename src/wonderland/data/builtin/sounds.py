"""Short sounds made from a seed: something to hear and to learn without any file. Book, section 8.1.1."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...core.arguments import as_int, as_number
from ...core.errors import InputError
from ...core.typing import DTypeLike, PathLike
from ..formats.wav import write_wav
from ..generators import Seed
from ..randomness import as_generator
from .generated import Pair, _deviation

SOUNDS = ("tone", "rising", "falling", "hiss", "clicks")
RATE = 8000  # samples a second


def make_sounds(
    n_samples: int = 100,
    *,
    seconds: float = 0.5,
    noise: float = 0.02,
    seed: Seed = 0,
    dtype: DTypeLike = np.float32,
) -> Pair:
    """Sounds (n, time, 1) in [-1, 1], 8,000 samples a second, and which they are of `SOUNDS`.

    >>> import wonderland as wl
    >>> X, y = wl.data.make_sounds(10)
    >>> X.shape, y.tolist()
    ((10, 4000, 1), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4])

    A tone of one pitch, one that rises by an octave or more, one that falls, a hiss, and clicks in a rhythm. Pitch,
    loudness, speed and beginning are drawn for each; the classes come in turn.
    """
    name = "make_sounds"
    rng = as_generator(name, seed)
    n = as_int(name, "n_samples", n_samples, least=1)
    length = round(as_number(name, "seconds", seconds) * RATE)
    if not 32 <= length <= 600 * RATE:
        raise InputError(f"{name}: seconds={seconds}.", "0.004 to 600 seconds")
    y = np.arange(n) % len(SOUNDS)
    t = np.arange(length) / RATE
    X = np.stack([_sound(SOUNDS[label], t, rng) * rng.uniform(0.2, 0.9) for label in y.tolist()])
    X = np.clip(X + _deviation(name, noise) * rng.standard_normal(X.shape), -1, 1)
    return X[..., None].astype(dtype), y


def _sound(kind: str, t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if kind == "hiss":
        return np.clip(0.4 * rng.standard_normal(len(t)), -1, 1)
    if kind == "clicks":
        gap, last = rng.uniform(0.03, 0.1), rng.uniform(0.001, 0.004)
        return np.exp(-((t + rng.uniform(0, gap)) % gap) / last) * np.sign(np.sin(2 * np.pi * 1500 * t) + 1e-9)
    low = rng.uniform(200, 800)
    high = low * (1.0 if kind == "tone" else rng.uniform(2.0, 4.0))
    start, end = (high, low) if kind == "falling" else (low, high)
    seconds = len(t) / RATE
    # the phase is the integral of a frequency that goes from one to the other
    return np.sin(2 * np.pi * (start * t + (end - start) * t**2 / (2 * seconds)) + rng.uniform(0, 2 * np.pi))


def write_sounds(folder: PathLike, n_samples: int = 100, *, seconds: float = 0.5, seed: Seed = 0) -> Path:
    """Write sounds of `make_sounds` as WAV files, a subfolder for each class; the path of the folder.

    >>> import tempfile, wonderland as wl
    >>> root = wl.data.write_sounds(tempfile.mkdtemp(), 10)
    >>> sorted(file.name for file in (root / "hiss").iterdir())
    ['hiss_003.wav', 'hiss_008.wav']
    """
    root = Path(folder).expanduser()
    for i, (sound, label) in enumerate(zip(*make_sounds(n_samples, seconds=seconds, seed=seed), strict=True)):
        place = root / SOUNDS[int(label)]
        place.mkdir(parents=True, exist_ok=True)
        write_wav(place / f"{place.name}_{i:03d}.wav", sound, RATE)
    return root
