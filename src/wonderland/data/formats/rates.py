"""Sound at another sample rate: the filter of a windowed sinc, phase by phase, and its use on arrays.

With up / down the ratio of the rates in lowest terms, the signal is imagined with up - 1 zeros after every sample,
smoothed by a low-pass filter h, and every down-th sample is kept: y_m = sum_k x_k h(m down - k up). Book, 8.1.1.
"""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np

from ...core.errors import InputError

FINEST = 1000  # the largest term of a ratio; another is replaced by the nearest, less than a millionth away
FARTHEST = 64  # times as fast or as slow
BLOCK = 1 << 14  # windows that are copied at a time, for products


@functools.lru_cache(maxsize=16)
def phases(up: int, down: int, zeros: int = 10, beta: float = 5.0) -> tuple[np.ndarray, int]:
    """The filter of each phase, (taps, up), and how many samples before the first one it begins.

    >>> kernel, reach = phases(1, 2)
    >>> kernel.shape, reach, float(kernel.sum())
    ((41, 1), 20, 1.0)
    """
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


def at_rate(samples: np.ndarray, old: int, new: int) -> np.ndarray:
    """A signal (time,) at another rate: n * new / old samples, rounded up; before and after it is silence.

    >>> at_rate(np.ones(441, np.float32), 44_100, 16_000).shape
    (160,)
    """
    if old == new:
        return samples
    if not old <= FARTHEST * new or not new <= FARTHEST * old:
        raise InputError(
            f"a sound of {old} Hz among those of {new} Hz.", f"rates that differ by less than {FARTHEST} times"
        )
    ratio = Fraction(new, old)
    small = min(ratio, 1 / ratio).limit_denominator(FINEST)
    ratio = small if new < old else 1 / small
    up, down = ratio.numerator, ratio.denominator
    kernel, reach = phases(up, down)
    length = -(-len(samples) * up // down)
    steps = -(-length // up)
    after = max(0, (steps - 1) * down + len(kernel) - reach - len(samples))
    padded = np.pad(samples.astype(np.float32), (reach, after))
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(kernel))[::down][:steps]  # (steps, taps)
    kernel = kernel.astype(np.float32)
    blocks = (np.ascontiguousarray(windows[i : i + BLOCK]) @ kernel for i in range(0, steps, BLOCK))
    return np.concatenate([block.reshape(-1) for block in blocks])[:length]
