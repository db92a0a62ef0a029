r"""A signal at another sample rate, through a windowed sinc filter, computed only where it is needed.

With up / down the ratio of the rates in lowest terms, the signal is imagined with up - 1 zeros after every sample,
smoothed by a low-pass filter h, and every down-th sample is kept:

    y_m = sum_k x_k h(m down - k up)

The outputs m = p + up q, for each phase p, are a convolution with stride `down`; all phases together are one with `up`
output channels. Book, section 8.1.1.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from .. import arrays
from ..arrays.conversion import as_real
from ..core.arguments import as_int, as_number
from ..core.broadcasting import normalize_axis
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike
from ..nn.functional.convolution import conv1d


def resample(
    x: ArrayLike, orig_freq: int, new_freq: int, *, axis: int = -1, zeros: int = 10, beta: float = 5.0
) -> Tensor:
    r"""The signal at `new_freq` instead of `orig_freq` samples a second: \(\lceil n \cdot new / orig \rceil\) of them.

    >>> import wonderland as wl
    >>> wl.audio.resample(wl.ones((2, 441)), 44_100, 16_000).shape
    (2, 160)

    Frequencies above half the lower rate are removed first; they would come back as others. The filter is a sinc with
    `zeros` zero crossings on each side under a Kaiser window with `beta` (more zeros: sharper and slower), as in
    SciPy's `resample_poly`. Before and after the signal is silence. `axis` is that of time: 0 for sound (time,
    channels). Book, section 8.1.1.
    """
    x = as_real("resample", x)
    old, new = (as_int("resample", *pair, least=1) for pair in (("orig_freq", orig_freq), ("new_freq", new_freq)))
    zeros = as_int("resample", "zeros", zeros, least=1)
    if not as_number("resample", "beta", beta) >= 0:
        raise InputError(f"resample: beta={beta}.", "beta >= 0")
    axis = normalize_axis("resample", axis, x.ndim)
    n = x.shape[axis]
    if not n:
        raise ShapeError(f"resample: a signal of shape {x.shape} has no samples along axis {axis}.", "some samples")
    common = math.gcd(old, new)
    up, down = new // common, old // common
    if up == down:
        return x
    kernel, reach = _phases(up, down, zeros, float(beta))
    x = arrays.moveaxis(x, axis, -1)[..., None]  # (..., time, 1)
    length = -(-n * up // down)
    steps = -(-length // up)
    after = max(0, (steps - 1) * down + len(kernel) - reach - n)
    x = arrays.pad(x, ((0, 0),) * (x.ndim - 2) + ((reach, after), (0, 0)))
    weight = arrays.asarray(kernel.astype(x.dtype))[:, None, :]  # (taps, 1, up)
    y = conv1d(x, weight, stride=down)[..., :steps, :]  # (..., steps, up)
    y = arrays.reshape(y, (*y.shape[:-2], steps * up))[..., :length]
    return arrays.moveaxis(y, -1, axis)


@functools.lru_cache(maxsize=16)
def _phases(up: int, down: int, zeros: int, beta: float) -> tuple[Array, int]:
    """The filter of each phase, (taps, up), and how many samples before the first one it begins."""
    widest = max(up, down)
    half = zeros * widest
    places = np.arange(-half, half + 1)
    low_pass = np.sinc(places / widest) * np.kaiser(2 * half + 1, beta)
    low_pass *= up / low_pass.sum()  # a constant stays what it is
    # Phase p of step q reads x[down q + j]; the filter's argument is then p down - j up.
    reach = half // up
    j = np.arange(-reach, ((up - 1) * down + half) // up + 1)[:, None]
    place = np.arange(up) * down - j * up + half
    inside = (place >= 0) & (place <= 2 * half)
    return np.where(inside, low_pass[np.clip(place, 0, 2 * half)], 0.0), reach
