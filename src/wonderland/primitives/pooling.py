"""Windows over (batch, *spatial, channels) that choose or add what they see, channel by channel. Book, section 7.2.1.

The largest element of each window is `window_pick(x, window_argmax(x))`: a choice, which has no derivative, and a
linear map. Of several largest elements the first is chosen, and it alone receives the adjoint. `window_put` is the
transpose of `window_pick`, and `window_spread` that of `window_sum`; where windows overlap, both add.
"""

from __future__ import annotations

import functools
import math
from typing import TypedDict, Unpack

import numpy as np

from ..core.dtypes import DType, bool_, float32, int32, is_half, is_integer, uint8
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.primitive import LINEAR, TABLE, ZERO, Aval, Primitive, Rule, Shape
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from .structure import all_batched, reshape
from .windows import Pairs, count_windows, pad, padded_shape, places, unpad


class Steps(TypedDict):
    """How windows move over the spatial axes, see windows.py."""

    stride: Shape
    padding: Pairs
    dilation: Shape


class Windows(Steps):
    window: Shape


def _pooled(name: str, x: Shaped, **windows: Unpack[Windows]) -> Shape:
    """The shape (batch, *places, channels) of what windows over x give."""
    if len(x.shape) < 3:
        raise ShapeError(f"{name}: a tensor of shape {x.shape}.", "(batch, *spatial, channels)")
    return (x.shape[0], *count_windows(name, x.shape[1:-1], **windows), x.shape[-1])


def _check_index(name: str, index: Shaped, wanted: Shape) -> None:
    if not is_integer(index.dtype):
        raise DTypeError(f"{name}: positions of {index.dtype}.", "integers, as window_argmax gives them")
    if index.shape != wanted:
        raise ShapeError(f"{name}: positions of shape {index.shape} for windows of {wanted}.", "one for each window")


def _check_places(name: str, y: Shaped, spatial: Shape, windows: Windows) -> Aval:
    """What the transposes give; y has the shape of what windows over that would give."""
    x = Aval((y.shape[0], *spatial, y.shape[-1]), y.dtype)
    wanted = _pooled(name, x, **windows)
    if y.shape != wanted:
        raise ShapeError(f"{name}: a tensor of shape {y.shape} for windows of {wanted}.", "one number for each window")
    return x


def _widened(f: Rule) -> Rule:
    """Half-precision sums are accumulated in float32."""

    def impl(x: Array, *rest: Array, **params: object) -> Array:
        if is_half(x.dtype):
            return f(x.astype(float32), *rest, **params).astype(x.dtype)
        return f(x, *rest, **params)

    return impl


def _batch(name: str) -> Rule:
    """The batch joins the axis of examples."""

    def batch(args: list[Tensor], batched: list[bool], **params: object) -> Tensor:
        full = all_batched(args, batched)
        size, examples = full[0].shape[:2]
        out = TABLE[name](*[reshape(a, shape=(size * examples, *a.shape[2:])) for a in full], **params)
        return reshape(out, shape=(size, examples, *out.shape[1:]))

    return batch


def _cost(pooled: Shape, window: Shape) -> int:
    return math.prod(pooled) * math.prod(window)


# --- the position of the largest element


@functools.lru_cache(maxsize=1024)
def _first_inside(n: int, count: int, window: int, stride: int, padding: tuple[int, int], dilation: int) -> Array:
    """For each window along an axis the first place that lies on an element, `window` if there is none."""
    at = np.arange(count)[:, None] * stride + np.arange(window) * dilation - padding[0]
    inside = (at >= 0) & (at < n + min(padding[1], 0))
    return np.where(inside.any(1), inside.argmax(1), window)


def _along_axes(
    spatial: Shape, counts: Shape, window: Shape, stride: Shape, padding: Pairs, dilation: Shape
) -> list[Array]:
    return list(map(_first_inside, spatial, counts, window, stride, padding, dilation))


def first_places(spatial: Shape, counts: Shape, window: Shape, **rest: Unpack[Steps]) -> Array:
    """For each window the number of the first of its places that lies on an element; there is one."""
    return np.ravel_multi_index(np.ix_(*_along_axes(spatial, counts, window, **rest)), window)


def index_dtype(window: Shape) -> DType:
    """Bytes count the places of all but the largest windows."""
    return uint8 if math.prod(window) <= 256 else int32


def _argmax_abstract(x: Shaped, window: Shape, **rest: Unpack[Steps]) -> Aval:
    if x.dtype.kind == "c":
        raise DTypeError(f"window_argmax: {x.dtype} has no order.", "wl.abs(x) or wl.real(x)")
    shape = _pooled("window_argmax", x, window=window, **rest)
    firsts = _along_axes(x.shape[1:-1], shape[1:-1], window, **rest)
    if any((first == n).any() for first, n in zip(firsts, window, strict=True)):
        raise InputError(
            f"window_argmax: a window of shape {window} over the spatial shape {x.shape[1:-1]} with padding "
            f"{rest['padding']} sees nothing but padding and has no largest element.",
            "less padding than the window reaches",
        )
    return Aval(shape, index_dtype(window))


def _argmax(x: Array, window: Shape, stride: Shape, padding: Pairs, dilation: Shape) -> Array:
    shape, dtype = _argmax_abstract(x, window=window, stride=stride, padding=padding, dilation=dilation)
    if is_half(x.dtype):
        x = x.astype(float32)
    least = -np.inf if x.dtype.kind == "f" else False if x.dtype == bool_ else np.iinfo(x.dtype).min
    # what is not above the least number does not win, so each window starts from its first element
    index = np.empty(shape, dtype)
    start = first_places(x.shape[1:-1], shape[1:-1], window, stride=stride, padding=padding, dilation=dilation)
    index[...] = start[..., None]
    best = np.full(shape, least, x.dtype)
    x = pad(x, padding, least)
    for number, place in enumerate(places(shape[1:-1], window, stride, dilation)):
        seen = x[place]
        better = ~(seen <= best) & (best == best) if x.dtype.kind == "f" else seen > best  # the first NaN wins
        np.copyto(index, number, where=better, casting="unsafe")
        np.copyto(best, seen, where=better)
    return index


window_argmax: Primitive = Primitive(
    "window_argmax",
    _argmax,
    _argmax_abstract,
    jvp=(ZERO,),
    batch=_batch("window_argmax"),
    cost=lambda x, window, **rest: _cost(_pooled("window_argmax", x, window=window, **rest), window),
)

# --- the element at a position of each window, and its transpose


def _pick_abstract(x: Shaped, index: Shaped, **windows: Unpack[Windows]) -> Aval:
    shape = _pooled("window_pick", x, **windows)
    _check_index("window_pick", index, shape)
    return Aval(shape, x.dtype)


def _pick(x: Array, index: Array, window: Shape, stride: Shape, padding: Pairs, dilation: Shape) -> Array:
    _pick_abstract(x, index, window=window, stride=stride, padding=padding, dilation=dilation)
    out = np.zeros(index.shape, x.dtype)
    x = pad(x, padding)
    for number, place in enumerate(places(index.shape[1:-1], window, stride, dilation)):
        np.copyto(out, x[place], where=index == number)
    return out


window_pick: Primitive = Primitive(
    "window_pick",
    _pick,
    _pick_abstract,
    jvp=(LINEAR, ZERO),
    transpose=(lambda ct, x, index, **windows: window_put(ct, index, spatial=x.shape[1:-1], **windows), None),
    batch=_batch("window_pick"),
)


def _put_abstract(y: Shaped, index: Shaped, spatial: Shape, **windows: Unpack[Windows]) -> Aval:
    _check_index("window_put", index, y.shape)
    return _check_places("window_put", y, spatial, windows)


def _put(
    y: Array, index: Array, spatial: Shape, window: Shape, stride: Shape, padding: Pairs, dilation: Shape
) -> Array:
    _put_abstract(y, index, spatial, window=window, stride=stride, padding=padding, dilation=dilation)
    out = np.zeros((y.shape[0], *padded_shape(spatial, padding), y.shape[-1]), y.dtype)
    for number, place in enumerate(places(y.shape[1:-1], window, stride, dilation)):
        seen = out[place]
        np.add(seen, y, out=seen, where=index == number)
    return unpad(out, spatial, padding)


window_put: Primitive = Primitive(
    "window_put",
    _widened(_put),
    _put_abstract,
    jvp=(LINEAR, ZERO),
    transpose=(lambda ct, y, index, spatial, **windows: window_pick(ct, index, **windows), None),
    batch=_batch("window_put"),
)

# --- the sum over each window, and its transpose


def _sum_abstract(x: Shaped, **windows: Unpack[Windows]) -> Aval:
    if x.dtype == bool_:
        raise DTypeError("window_sum: a tensor of bools.", "x.astype(wl.int64)")
    return Aval(_pooled("window_sum", x, **windows), x.dtype)


def _sum(x: Array, window: Shape, stride: Shape, padding: Pairs, dilation: Shape) -> Array:
    shape = _sum_abstract(x, window=window, stride=stride, padding=padding, dilation=dilation).shape
    out = np.zeros(shape, x.dtype)
    x = pad(x, padding)
    for place in places(shape[1:-1], window, stride, dilation):
        out += x[place]
    return out


window_sum: Primitive = Primitive(
    "window_sum",
    _widened(_sum),
    _sum_abstract,
    jvp=(LINEAR,),
    transpose=(lambda ct, x, **windows: window_spread(ct, spatial=x.shape[1:-1], **windows),),
    batch=_batch("window_sum"),
    cost=lambda x, window, **rest: _cost(_pooled("window_sum", x, window=window, **rest), window),
)


def _spread_abstract(y: Shaped, spatial: Shape, **windows: Unpack[Windows]) -> Aval:
    if y.dtype == bool_:
        raise DTypeError("window_spread: a tensor of bools.", "y.astype(wl.int64)")
    return _check_places("window_spread", y, spatial, windows)


def _spread(y: Array, spatial: Shape, window: Shape, stride: Shape, padding: Pairs, dilation: Shape) -> Array:
    _spread_abstract(y, spatial, window=window, stride=stride, padding=padding, dilation=dilation)
    out = np.zeros((y.shape[0], *padded_shape(spatial, padding), y.shape[-1]), y.dtype)
    for place in places(y.shape[1:-1], window, stride, dilation):
        seen = out[place]
        seen += y
    return unpad(out, spatial, padding)


window_spread: Primitive = Primitive(
    "window_spread",
    _widened(_spread),
    _spread_abstract,
    jvp=(LINEAR,),
    transpose=(lambda ct, y, spatial, **windows: window_sum(ct, **windows),),
    batch=_batch("window_spread"),
    cost=lambda y, spatial, window, **rest: _cost(y.shape, window),
)
