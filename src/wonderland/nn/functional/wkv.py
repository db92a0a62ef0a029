"""Averages of values with weights that grow with their keys and fade with time, channel by channel. Book, 13.4.

The weights are exponentials of any size. What is kept is therefore relative to the largest of them so far, m:

    m_i = max(m_{i-1} - w, k_i)      (a, b)_i = e^{m_{i-1} - w - m_i} (a, b)_{i-1} + e^{k_i - m_i} (v_i, 1)

The first line is a recurrence of its own, which has no part in derivatives, since the result does not depend on m; with
it the second one is linear. All exponentials are then computed at once, and none is above 1.
"""

from __future__ import annotations

from typing import NamedTuple

from ... import arrays
from ...arrays import stop_gradient
from ...arrays.conversion import promote_inexact
from ...core import dtypes
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...transforms.control.loops import scan
from .linear_recurrence import linear_recurrence

__all__ = ["FadingSums", "wkv"]

LEAST = -1e38  # of a largest exponent, where there is none yet: its exponential is 0, and differences are numbers


class FadingSums(NamedTuple):
    r"""What is kept of the tokens before, (rows, e) each: the sums are \(a e^m\), with values, and \(b e^m\)."""

    numerator: Tensor
    denominator: Tensor
    largest: Tensor


def wkv(
    key: ArrayLike, value: ArrayLike, decay: ArrayLike, bonus: ArrayLike, *, token_mask: Tensor | None = None
) -> Tensor:
    r"""\((\sum_{j<i} e^{k_j-(i-1-j)w} v_j + e^{k_i+u} v_i) / (\sum_{j<i} e^{k_j-(i-1-j)w} + e^{k_i+u})\).

    >>> import wonderland as wl
    >>> k, v = wl.zeros((1, 3, 1)), wl.tensor([[[1.0], [2.0], [6.0]]])
    >>> wl.nn.functional.wkv(k, v, 0.0, 0.0)[0, :, 0].tolist()  # the average so far
    [1.0, 1.5, 3.0]

    Keys and values (rows, time, e), a `decay` w not below 0 and a `bonus` u of the current token, numbers or (e,). It
    is the heart of RWKV, here with the offsets of its published code: the token before the current one has not faded
    yet. In the book it has, by one step; that is the same with the bonus u + w, as the factor \(e^{-w}\) cancels. Book,
    section 13.4.2. Keys may be of any size: all exponentials are relative to the largest so far.
    """
    k, v, w, u = promote_inexact("wkv", key, value, decay, bonus)
    if k.ndim != 3 or v.shape != k.shape or any(p.shape not in ((), k.shape[-1:]) for p in (w, u)):
        raise ShapeError(
            f"wkv: keys {k.shape}, values {v.shape}, a decay {w.shape} and a bonus {u.shape}.",
            "(rows, time, e) twice, and numbers or (e,)",
        )
    if token_mask is not None and token_mask.shape != k.shape[:2]:
        raise ShapeError(f"wkv: a token_mask {token_mask.shape} for keys {k.shape}.", f"{k.shape[:2]}, true where real")
    if not k.shape[1]:
        return v
    kind, wide = k.dtype, dtypes.promote_types(k.dtype, dtypes.float32)  # sixteen bits are too few for sums
    k, v, w, u = (arrays.astype(x, wide) for x in (k, v, w, u))
    nothing = arrays.zeros((k.shape[0], k.shape[2]), dtype=wide)
    out, _ = fading_average(k, v, w, u, FadingSums(nothing, nothing, nothing + LEAST), token_mask)
    return arrays.astype(out, kind)


def fading_average(
    k: Tensor, v: Tensor, w: Tensor, u: Tensor, start: FadingSums, real: Tensor | None
) -> tuple[Tensor, FadingSums]:
    """The averages (rows, time, e) after what was read before, and what is to be kept; there are tokens."""
    seen = None if real is None else arrays.expand_dims(real, -1)
    after = _largest(stop_gradient(k), stop_gradient(w), stop_gradient(start.largest), seen)
    before = _after_first(stop_gradient(start.largest), after)
    # in this order: the difference is exact where m fades, so what m - w lost in rounding is made good
    fading, weight = (before - after) - w, k - after
    if seen is not None:  # padding leaves all as it is; before the first token its exponentials would be infinite
        fading, weight = arrays.where(seen, fading, 0), arrays.where(seen, weight, LEAST)
    fading, weight = arrays.exp(fading), arrays.exp(weight)
    first = arrays.stack([start.numerator, start.denominator], axis=-2)  # (rows, 2, e)
    inputs = arrays.stack([weight * v, weight], axis=-2)  # (rows, time, 2, e)
    if k.shape[1] == 1:
        sums = arrays.expand_dims(fading, -2) * arrays.expand_dims(first, 1) + inputs
    else:
        sums = linear_recurrence(arrays.expand_dims(fading, -2), inputs, first)
    past = _after_first(first, sums)
    top = stop_gradient(arrays.maximum(before, k + u))
    old, new = arrays.exp(before - top), arrays.exp(k + u - top)
    out = (old * past[:, :, 0] + new * v) / (old * past[:, :, 1] + new)
    return out, FadingSums(sums[:, -1, 0], sums[:, -1, 1], after[:, -1])


def _after_first(first: Tensor, states: Tensor) -> Tensor:
    """The state before each token, from that before all and those after each: (rows, time, ...)."""
    return arrays.concat([arrays.expand_dims(first, 1), states[:, :-1]], axis=1)


def _largest(k: Tensor, w: Tensor, first: Tensor, seen: Tensor | None) -> Tensor:
    """The largest exponent after each token."""
    if k.shape[1] == 1:
        after = arrays.maximum(arrays.expand_dims(first, 1) - w, k)
        return after if seen is None else arrays.where(seen, after, arrays.expand_dims(first, 1))
    times = arrays.swapaxes(k, 0, 1)
    if seen is None:

        def step(m: Tensor, now: Tensor) -> tuple[Tensor, Tensor]:
            m = arrays.maximum(m - w, now)
            return m, m

        return arrays.swapaxes(scan(step, first, times)[1], 0, 1)

    def masked(m: Tensor, now: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        m = arrays.where(now[1], arrays.maximum(m - w, now[0]), m)
        return m, m

    return arrays.swapaxes(scan(masked, first, (times, arrays.swapaxes(seen, 0, 1)))[1], 0, 1)
