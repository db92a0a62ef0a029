"""Sounds from WAV files to arrays of one length and one rate; a folder of them as a dataset. Book, section 8.1.1."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...core.errors import FileError, InputError, ShapeError, WonderlandError
from ...core.room import check_room
from ...core.typing import PathLike
from .files import damaged
from .media_files import LabelledFiles, list_media, read_all
from .rates import FARTHEST, at_rate
from .wav import WavHead, look_at_wav, read_wav

LONGEST = 10.0  # seconds of a sound that are read if nothing is said


@dataclass(frozen=True)
class SoundForm:
    """What every sound of a set is made to be: so many samples, so many of them a second, one channel.

    >>> SoundForm(8000, 4000).to_dict(), SoundForm(8000, 4000).seconds
    ({'kind': 'sound', 'rate': 8000, 'length': 4000}, 0.5)
    """

    rate: int
    length: int

    @property
    def seconds(self) -> float:
        """How long each is."""
        return self.length / self.rate

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"kind": "sound", "rate": self.rate, "length": self.length}

    @classmethod
    def of_dict(cls, data: Mapping[str, object]) -> SoundForm:
        """The form that a run kept."""
        rate, length = data.get("rate"), data.get("length")
        if type(rate) is not int or type(length) is not int or not (0 < rate < 2**32 and 0 < length < 2**32):
            raise FileError(f"the form of the sounds is damaged: {dict(data)}.", "a file that `wonderland train` wrote")
        return cls(rate, length)

    def __str__(self) -> str:
        return f"{self.seconds:.3g} s at {self.rate:,} Hz"


def read_sound(path: Path, form: SoundForm | None = None) -> np.ndarray:
    """A sound (time, 1): its channels mixed, and with a form at its rate and of its length.

    A longer one is cut to its loudest stretch, a shorter one is followed by silence.
    """
    samples, rate = read_wav(path)
    mixed = samples.mean(axis=1, dtype=np.float32)
    if not len(mixed):
        raise damaged("read_wav", path, "samples, found none")
    if not np.isfinite(mixed).all():
        raise damaged("read_wav", path, "finite samples, found NaN or infinities")
    if form is None:
        return mixed[:, None]
    if not 1 / FARTHEST <= rate / form.rate <= FARTHEST:
        raise InputError(f"read: {str(path)!r} has {rate:,} samples a second.", f"rates near {form.rate:,} Hz")
    mixed = at_rate(mixed, rate, form.rate)
    return fitted(mixed, form.length)[:, None]


def fitted(samples: np.ndarray, length: int) -> np.ndarray:
    """A signal (time,) of another length: its loudest stretch, or with silence after it.

    >>> fitted(np.array([0.0, 1.0, 2.0, 0.0]), 2), fitted(np.array([3.0]), 2)
    (array([1., 2.]), array([3., 0.]))
    """
    if len(samples) <= length:
        return np.pad(samples, (0, length - len(samples)))
    energy = np.concatenate([[0.0], np.cumsum(samples.astype(np.float64) ** 2)])
    start = int(np.argmax(energy[length:] - energy[:-length]))
    return samples[start : start + length]


def choose_form(
    files: Sequence[Path], rate: int | None = None, seconds: float | None = None
) -> tuple[SoundForm, tuple[str, ...]]:
    """The rate and the length that all sounds of a set are brought to, and notes on what was decided.

    The rate that most have; the longest length, if it is not much longer than usual, else that of which one in twenty
    is cut, and no more than ten seconds.
    """
    heads = [head for file in files if (head := _look(file)) is not None]
    if not heads:
        return SoundForm(rate or 16_000, 1), ()  # reading says what is wrong with each
    notes = []
    rates = Counter(head.sample_rate for head in heads)
    if rate is None:
        rate = max(rates, key=lambda found: (rates[found], found))
    if others := len(heads) - rates[rate]:
        shown = ", ".join(f"{found:,}" for found in sorted(rates) if found != rate)
        notes.append(f"{others:,} of {len(heads):,} sounds have another rate ({shown} Hz): resampled to {rate:,} Hz.")
    if many := sum(head.channels > 1 for head in heads):
        notes.append(f"{many:,} of {len(heads):,} sounds have several channels, which are mixed to one.")
    lengths = np.array([math.ceil(head.frames * rate / head.sample_rate) for head in heads])
    length = max(1, round(seconds * rate) if seconds is not None else _usual_length(lengths, rate))
    if (lengths != length).any():
        longer, shorter = np.count_nonzero(lengths > length), np.count_nonzero(lengths < length)
        changed = [f"{longer:,} longer ones are cut to their loudest stretch"] if longer else []
        changed += [f"{shorter:,} shorter ones are followed by silence"] if shorter else []
        notes.append(
            f"the sounds last {lengths.min() / rate:.3g} to {lengths.max() / rate:.3g} s; all are made "
            f"{length / rate:.3g} s: {' and '.join(changed)} (data.seconds=...)."
        )
    return SoundForm(rate, length), tuple(notes)


def _usual_length(lengths: np.ndarray, rate: int) -> int:
    longest, middle = int(lengths.max()), float(np.median(lengths))
    length = longest if longest <= 1.5 * middle else int(np.quantile(lengths, 0.95, method="higher"))
    return min(length, round(LONGEST * rate))


def _look(file: Path) -> WavHead | None:
    try:
        return look_at_wav(file)
    except WonderlandError:
        return None  # reading it will say so


def read_sounds(
    files: Sequence[Path], form: SoundForm, unreadable: str = "error"
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """The sounds (n, time, 1), the places of their files among those given, and notes."""
    check_room("read", 4 * len(files) * form.length, f"{len(files):,} sounds of {form} need", "smaller data.seconds")
    samples = np.zeros((len(files), form.length, 1), np.float32)
    kept, notes = read_all("sound", files, lambda file: read_sound(file, form), samples, unreadable)
    return (samples if len(kept) == len(files) else samples[kept]), kept, notes


def as_sounds(x: object, form: SoundForm) -> np.ndarray:
    """Arrays in memory at the rate of a form: (time,), (n, time) or (n, time, 1) to (n, time, 1) of its length.

    >>> as_sounds(np.zeros(3), SoundForm(8000, 4)).shape
    (1, 4, 1)
    """
    array = np.asarray(x)
    many = array[None] if array.ndim == 1 else array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    if many.ndim != 2 or not array.size or array.dtype.kind != "f":
        raise ShapeError(
            f"an array of shape {array.shape}, type {array.dtype}, is no sound.",
            f"floating samples (n, time) from -1 to 1, {form.rate} a second",
        )
    return np.stack([fitted(one.astype(np.float32), form.length) for one in many])[..., None]


class SoundFolder(LabelledFiles):
    """The WAV files under `root/class/...`, with their class: a dataset of (samples (time, 1) float32, label).

    >>> import os, tempfile, numpy as np, wonderland as wl
    >>> root = tempfile.mkdtemp()
    >>> for name in ("bark", "meow"):
    ...     os.mkdir(os.path.join(root, name))
    ...     wl.audio.write_wav(os.path.join(root, name, "1.wav"), np.zeros(100), 8000)
    >>> sounds = wl.data.SoundFolder(root)
    >>> sounds.classes, sounds.rate, sounds[1][0].shape
    (('bark', 'meow'), 8000, (100, 1))

    All have the rate that most have, and the same length: `seconds`, or what suits most of them. `notes` says what was
    decided. Classes are the subfolders in sorted order.
    """

    def __init__(self, root: PathLike, *, rate: int | None = None, seconds: float | None = None) -> None:
        found = list_media(root, "sound")
        if found.labels is None:
            raise InputError(f"SoundFolder: {str(found.root)!r} has no subfolders.", "a subfolder for each class")
        self.root, self.classes = found.root, found.classes
        self.samples = list(zip(found.files, found.labels, strict=True))
        self.form, notes = choose_form(found.files, *as_rate_and_seconds(rate, seconds))
        self.rate, self.notes = self.form.rate, (*found.notes, *notes)

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        path, label = self.samples[self._place(i)]
        return read_sound(path, self.form), label

    def __repr__(self) -> str:
        return f"SoundFolder({str(self.root)!r}, {len(self)} sounds of {self.form}, {len(self.classes)} classes)"


def as_rate_and_seconds(rate: object, seconds: object) -> tuple[int | None, float | None]:
    """The settings data.rate and data.seconds, checked."""
    if rate is not None and (type(rate) is not int or not 0 < rate < 2**32):
        raise InputError(f"data.rate = {rate!r}.", "samples a second, such as 16000")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0):
        raise InputError(f"data.seconds = {seconds!r}.", "a length above 0")
    return rate, None if seconds is None else float(seconds)
