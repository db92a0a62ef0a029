"""Linear recurrences, elementwise: what state-space models and gated sums run on. Book, section 13.3."""

from __future__ import annotations

from ... import arrays
from ...arrays.conversion import as_tensor
from ...core import dtypes
from ...core.broadcasting import normalize_axis
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...transforms.control.associative import associative_scan
from ...transforms.control.loops import scan

__all__ = ["linear_recurrence"]

METHODS = ("auto", "sequential", "associative")


def linear_recurrence(
    decay: ArrayLike,
    inputs: ArrayLike,
    start: ArrayLike | None = None,
    *,
    axis: int = 1,
    reverse: bool = False,
    method: str = "auto",
) -> Tensor:
    r"""\(s_i = a_i \odot s_{i-1} + b_i\) along an axis: all states, for `decay` a and `inputs` b. Book, E.13.18.

    >>> import wonderland as wl
    >>> wl.nn.functional.linear_recurrence(0.5, wl.ones(6), axis=0)  # row 13.36
    tensor([1.     , 1.5    , 1.75   , 1.875  , 1.9375 , 1.96875])

    The decay broadcasts against the inputs; one that is the same at all times has size 1 along the axis, or fewer axes.
    `start` is the state before the first input, the shape of the inputs without the axis, and 0 by default. With
    `reverse` time runs backwards.

    `method` is "sequential" (n steps) or "associative" (`associative_scan`, book section 13.3.2). "auto" is the
    sequential one, by this rule: on few cores it is as fast or faster, up to 18 times, from about 16 numbers a step on,
    and its numbers are never larger than the states, while products of decays beyond 1 overflow. The associative one
    pays for fewer numbers a step (4 times for one of them, compiled), and without `jit`, where a step is a Python call.
    """
    name = "linear_recurrence"
    if method not in METHODS:
        raise InputError(f"{name}: method={method!r}.", f"one of {', '.join(METHODS)}")
    a, b = as_tensor(name, decay), as_tensor(name, inputs)
    kind = dtypes.promote_types(a.dtype, b.dtype)
    axis = normalize_axis(name, axis, b.ndim)
    if a.ndim > b.ndim or any(m not in (1, n) for m, n in zip(a.shape[::-1], b.shape[::-1], strict=False)):
        raise ShapeError(f"{name}: a decay {a.shape} for inputs {b.shape}.", "shapes that broadcast to the inputs")
    a = arrays.reshape(arrays.astype(a, kind), (*[1] * (b.ndim - a.ndim), *a.shape))
    a, b = arrays.moveaxis(a, axis, 0), arrays.moveaxis(arrays.astype(b, kind), axis, 0)
    first = None
    if start is not None:
        first = arrays.astype(as_tensor(name, start), kind)
        if first.shape != b.shape[1:]:
            raise ShapeError(f"{name}: a start of shape {first.shape} for inputs {b.shape[1:]}.", f"{b.shape[1:]}")
    if method == "associative":
        states = _associative(a, b, first, reverse)
    else:
        states = _sequential(a, b, first, reverse)
    return arrays.moveaxis(states, 0, axis)


def _sequential(a: Tensor, b: Tensor, first: Tensor | None, reverse: bool) -> Tensor:
    first = arrays.zeros(b.shape[1:], dtype=b.dtype) if first is None else first
    if a.shape[0] == 1:  # one decay for all times is no sequence

        def step(s: Tensor, now: Tensor) -> tuple[Tensor, Tensor]:
            s = a[0] * s + now
            return s, s

        return scan(step, first, b, reverse=reverse)[1]

    def varying(s: Tensor, now: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        s = now[0] * s + now[1]
        return s, s

    return scan(varying, first, (a, b), reverse=reverse)[1]


def _associative(a: Tensor, b: Tensor, first: Tensor | None, reverse: bool) -> Tensor:
    """Prefixes of (Z, z) * (V, v) = (V Z, V z + v), in the order of time."""
    order = (lambda x: arrays.flip(x, axis=0)) if reverse else (lambda x: x)
    factors = order(arrays.broadcast_to(a, b.shape))
    products, states = associative_scan(lambda p, q: (q[0] * p[0], q[0] * p[1] + q[1]), (factors, order(b)))
    return order(states if first is None else states + products * first)
