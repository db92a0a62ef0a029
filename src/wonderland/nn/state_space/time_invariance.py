"""Whether a layer treats a sequence the same, no matter when it comes. Book, section 13.4.3."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import ShapeError
from ...core.typing import Array, ArrayLike

__all__ = ["shift_error", "is_time_invariant"]


def shift_error(layer: Callable[..., object], x: ArrayLike, shift: int = 3) -> float:
    r"""\(\max \lvert f(\mathrm{shift}_d\, x) - \mathrm{shift}_d f(x)\rvert\), in parts of the largest result.

    >>> import wonderland as wl
    >>> x = wl.random.normal((2, 10, 4), key=wl.random.key(0))
    >>> wl.nn.shift_error(wl.nn.LRU(4, 8, 4), x) < 1e-6
    True

    It is 0 for a time-invariant layer. The shift puts d zeros in front of x (rows, time, features), and the layer must
    answer with d zeros, then with what it said without them.
    """
    given = np.asarray(arrays.asarray(x))
    if given.ndim < 2:
        raise ShapeError(f"shift_error: sequences of shape {given.shape}.", "(..., time, features)")
    d = as_int("shift_error", "shift", shift, 0)
    zeros = np.zeros((*given.shape[:-2], d, given.shape[-1]), given.dtype)
    plain = _run(layer, given)
    moved = _run(layer, np.concatenate([zeros, given], axis=-2))
    wanted = np.concatenate([np.zeros((*plain.shape[:-2], d, plain.shape[-1])), plain], axis=-2)
    return float(np.abs(moved - wanted).max(initial=0.0) / max(np.abs(plain).max(initial=0.0), 1e-30))


def is_time_invariant(layer: Callable[..., object], x: ArrayLike, shift: int = 3, tolerance: float = 1e-5) -> bool:
    """Whether a layer is a linear system with fixed matrices, as far as sequences x tell. Book, section 13.4.3.

    >>> import wonderland as wl
    >>> x = wl.random.normal((2, 10, 4), key=wl.random.key(0))
    >>> wl.nn.is_time_invariant(wl.nn.LRU(4, 8, 4), x), wl.nn.is_time_invariant(wl.nn.SelectiveSSM(4), x)
    (True, False)

    Two things are asked: later inputs give the same results later (`shift_error`), and the matrices do not depend on
    the content: the answer to x is that to its first half and then nothing, plus that to nothing and then its second
    half. A selective layer passes the first (zeros leave its state at zero) and fails the second, as its transitions
    are other ones for other tokens.
    """
    given = np.asarray(arrays.asarray(x))
    if shift_error(layer, given, shift) > tolerance:
        return False
    half = (np.arange(given.shape[-2]) < given.shape[-2] // 2)[:, None]
    whole = _run(layer, given)
    parts = _run(layer, np.where(half, given, 0).astype(given.dtype))
    parts = parts + _run(layer, np.where(half, 0, given).astype(given.dtype))
    return bool(np.abs(whole - parts).max(initial=0.0) <= tolerance * max(np.abs(whole).max(initial=0.0), 1e-30))


def _run(layer: Callable[..., object], x: Array) -> Array:
    return np.asarray(layer(arrays.asarray(x)))
