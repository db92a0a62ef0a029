r"""A signal at another sample rate, through a windowed sinc filter, computed only where it is needed.

With up / down the ratio of the rates in lowest terms, the signal is imagined with up - 1 zeros after every sample,
smoothed by a low-pass filter h, and every down-th sample is kept:

    y_m = sum_k x_k h(m down - k up)

The outputs m = p + up q, for each phase p, are a convolution with stride `down`; all phases together are one with `up`
output channels. Book, section 8.1.1.
"""

from __future__ import annotations

import math

from .. import arrays
from ..arrays.conversion import as_real
from ..core.arguments import as_int, as_number
from ..core.broadcasting import normalize_axis
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..data.formats.rates import phases
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
    kernel, reach = phases(up, down, zeros, float(beta))
    x = arrays.moveaxis(x, axis, -1)[..., None]  # (..., time, 1)
    length = -(-n * up // down)
    steps = -(-length // up)
    after = max(0, (steps - 1) * down + len(kernel) - reach - n)
    x = arrays.pad(x, ((0, 0),) * (x.ndim - 2) + ((reach, after), (0, 0)))
    weight = arrays.asarray(kernel.astype(x.dtype))[:, None, :]  # (taps, 1, up)
    y = conv1d(x, weight, stride=down)[..., :steps, :]  # (..., steps, up)
    y = arrays.reshape(y, (*y.shape[:-2], steps * up))[..., :length]
    return arrays.moveaxis(y, -1, axis)
