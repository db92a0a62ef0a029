r"""Frames: overlapping pieces of a signal, and the signal that overlapping pieces add up to.

The two are transposes of each other: the inner product of `frame(x)` with f is that of x with `overlap_add(f)`. Both
are made of slices, so no index is gathered. Book, section 8.1.1.
"""

from __future__ import annotations

from typing import TypeVar

from .. import arrays
from ..arrays.conversion import as_tensor
from ..core.arguments import as_int
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike

Lengths = TypeVar("Lengths", int, Array, Tensor)


def frame(x: ArrayLike, frame_length: int, hop_length: int) -> Tensor:
    r"""\(f_{ij} = x_{hi + j}\): (..., time) to (..., frames, frame_length), a frame every \(h\) samples.

    >>> import wonderland as wl
    >>> wl.audio.frame(wl.arange(6), frame_length=3, hop_length=2)
    tensor([[0, 1, 2],
            [2, 3, 4]])

    There are 1 + (time - frame_length) // hop_length whole frames; samples after the last one are left out.
    """
    x = as_tensor("frame", x)
    length, hop = _sizes("frame", frame_length, hop_length)
    if not x.ndim or x.shape[-1] < length:
        raise ShapeError(
            f"frame: a signal of shape {x.shape} is shorter than one frame of {length} samples.",
            "a longer signal, a shorter frame, or padding",
        )
    lead, time = x.shape[:-1], x.shape[-1]
    count = 1 + (time - length) // hop
    # The signal as rows of one hop; the j-th part of every frame is the row j places further.
    parts = -(-length // hop)
    rows = count - 1 + parts
    missing = rows * hop - time
    x = arrays.pad(x, ((0, 0),) * len(lead) + ((0, missing),)) if missing > 0 else x[..., : rows * hop]
    x = arrays.reshape(x, (*lead, rows, hop))
    pieces = [x[..., j : j + count, : min(hop, length - j * hop)] for j in range(parts)]
    return pieces[0] if parts == 1 else arrays.concat(pieces, axis=-1)


def overlap_add(frames: ArrayLike, hop_length: int) -> Tensor:
    r"""\(x_t = \sum_{hi + j = t} f_{ij}\): (..., frames, frame_length) to (..., time), the transpose of `frame`.

    >>> import wonderland as wl
    >>> wl.audio.overlap_add(wl.ones((2, 3)), hop_length=2)
    tensor([1., 1., 2., 1., 1.])

    time = (frames - 1) * hop_length + frame_length; where frames leave gaps the signal is 0.
    """
    frames = as_tensor("overlap_add", frames)
    if frames.ndim < 2 or not frames.shape[-2]:
        raise ShapeError(f"overlap_add: frames of shape {frames.shape}.", "(..., frames, frame_length)")
    length, hop = _sizes("overlap_add", frames.shape[-1], hop_length)
    lead, count = frames.shape[:-2], frames.shape[-2]
    parts = -(-length // hop)
    whole = ((0, 0),) * len(lead)
    frames = arrays.pad(frames, (*whole, (0, 0), (0, parts * hop - length)))
    total = sum(
        arrays.pad(frames[..., j * hop : (j + 1) * hop], (*whole, (j, parts - 1 - j), (0, 0))) for j in range(parts)
    )  # (..., rows, hop)
    flat = arrays.reshape(total, (*lead, (count + parts - 1) * hop))
    return flat[..., : (count - 1) * hop + length]


def frame_count(lengths: Lengths, n_fft: int, hop_length: int | None = None, *, center: bool = True) -> Lengths:
    """The number of frames that `stft` makes of signals of some lengths: a number, an array or a tensor of them.

    >>> import wonderland as wl
    >>> wl.audio.frame_count(16_000, n_fft=400, hop_length=160)
    101

    In a batch that was padded to one length these are the frames that belong to each signal; those after them hear
    padding. With `pad_mode="constant"` they are exactly the frames of the signal alone.
    """
    n_fft = as_int("frame_count", "n_fft", n_fft, least=1)
    hop = as_int("frame_count", "hop_length", n_fft // 4 if hop_length is None else hop_length, least=1)
    return (lengths + (2 * (n_fft // 2) if center else 0) - n_fft) // hop + 1


def _sizes(name: str, frame_length: int, hop_length: int) -> tuple[int, int]:
    return as_int(name, "frame_length", frame_length, least=1), as_int(name, "hop_length", hop_length, least=1)
