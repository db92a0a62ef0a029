"""Scaled dot-product attention in memory linear in the sequences, and its derivatives. Book, 10.1.2 and 11.2.2.

With q (lead, t, d), k (lead, s, d), v (lead, s, e), the same leading axes everywhere, any number of them:

    S_ij = scale <q_i, k_j>                     scores: plus mask_ij if the mask is floating,
                                                -inf where it is bool and false, and, if causal, where j > i
    lse_i = log sum_j exp S_ij                  0 for a query that may attend to nothing (all S_ij = -inf)
    P_ij = exp(S_ij - lse_i)                    weights; hence 0 throughout such a row, and out_i = 0

    attention(q, k, v[, mask]) = P v, lse                                       (lead, t, e) and (lead, t)
    attention_tangent(tq, tk, tv, q, k, v, lse[, mask]) = (P * dS) v + P tv, rowsum(P * dS)
                                with dS = scale (tq k^T + q tk^T)               (lead, t, e) and (lead, t)
    attention_backward(g, h, q, k, v, lse[, mask]) = scale A k, scale A^T q, P^T g
                                with A = P * (g v^T + h), h_i in all of row i   like q, k, v

What a mask or `causal` keeps apart does not contribute, whatever is there: a NaN or an infinity among q, k, v or their
tangents and adjoints changes only what may attend to it, or what it may attend to.

The mask is one that broadcasts to (lead, t, s), bool (true: may attend) or of the dtype of q (-inf: may not). With
`causal`, queries and keys are both counted from the start, also if t and s differ: query i sees the keys j <= i. The
parameters are `causal: bool` and `scale: float`. For half types all sums are in float32, and lse, g, h and the results
of attention_tangent are float32 tensors; else everything has the dtype of q.

The last two primitives are transposes of each other, in (tq, tk, tv) and in (g, h). The derivative of attention is

    d lse = rowsum(P * dS),    d out = (P * dS) v + P tv - d lse * out

so that g is the adjoint of out, and h = (adjoint of lse) - rowsum(g * out). The derivatives of the last two with
respect to their other arguments, and that of attention with respect to a floating mask, form the matrix P: second
derivatives take memory in proportion to t s. There, what is not finite is kept out where nobody may attend to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..broadcasting import broadcasts_to
from ..context import current, enter, leave
from ..dtypes import bool_, int64
from ..errors import DTypeError, ShapeError
from ..interpreter import Tangent
from ..transforms.tangents import JVPTrace, JVPTracer, add_tangents
from . import attention_tiles, creation
from . import elementwise as e
from .attention_tiles import wide_of
from .contraction import swap_last
from .primitive import Aval, Primitive, Rule
from .reduction import any_
from .structure import broadcast_to, reshape, sum_

# --- types and shapes


def _check(name: str, q: Any, k: Any, v: Any, mask: tuple[Any, ...]) -> None:
    e.check_kind(name, e.FLOATING, q, k, v)
    if not q.dtype == k.dtype == v.dtype:
        raise DTypeError(f"{name}: queries, keys and values of {q.dtype}, {k.dtype}, {v.dtype}.", "one dtype for all")
    listed = f"{name}: queries {q.shape}, keys {k.shape}, values {v.shape}"
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError(
            f"{listed}: each needs at least two axes.", "(t, d), (s, d) and (s, e); x[None] for one vector"
        )
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise ShapeError(
            f"{listed}: the axes before the last two differ.",
            "(..., t, d), (..., s, d) and (..., s, e) with the same leading axes",
        )
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError(
            f"{listed}: a query has {q.shape[-1]} features and a key {k.shape[-1]}.",
            "queries and keys of one size; only values may have another",
        )
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"{listed}: {k.shape[-2]} keys and {v.shape[-2]} values.", "one value per key")
    for m in mask:
        whole = (*q.shape[:-1], k.shape[-2])
        if m.dtype not in (bool_, q.dtype):
            raise DTypeError(
                f"{name}: a mask of {m.dtype} for queries of {q.dtype}.",
                f"a bool mask (true: may attend), or one of {q.dtype} that is added to the scores",
            )
        if not broadcasts_to(m.shape, whole):
            raise ShapeError(
                f"{name}: a mask of shape {m.shape} does not broadcast to the scores {whole}.",
                "a mask (t, s), or (..., t, s) with 1 where it is the same for all",
            )


def _check_like(name: str, what: str, x: Any, shape: tuple[int, ...], dtype: Any) -> None:
    if x.shape != shape or x.dtype != dtype:
        raise (ShapeError if x.shape != shape else DTypeError)(
            f"{name}: {what} is {x.dtype}{list(x.shape)}.", f"{dtype}{list(shape)}"
        )


def _attention_abstract(q: Any, k: Any, v: Any, *mask: Any, causal: bool, scale: float) -> list[Aval]:
    _check("attention", q, k, v, mask)
    return [Aval((*q.shape[:-1], v.shape[-1]), q.dtype), Aval(q.shape[:-1], wide_of(q.dtype))]


def _tangent_abstract(
    tq: Any, tk: Any, tv: Any, q: Any, k: Any, v: Any, lse: Any, *mask: Any, causal: bool, scale: float
) -> list[Aval]:
    name = "attention_tangent"
    _check(name, q, k, v, mask)
    for what, t, x in (("tq", tq, q), ("tk", tk, k), ("tv", tv, v)):
        _check_like(name, what, t, x.shape, x.dtype)
    wide = wide_of(q.dtype)
    _check_like(name, "lse", lse, q.shape[:-1], wide)
    return [Aval((*q.shape[:-1], v.shape[-1]), wide), Aval(q.shape[:-1], wide)]


def _backward_abstract(
    g: Any, h: Any, q: Any, k: Any, v: Any, lse: Any, *mask: Any, causal: bool, scale: float
) -> list[Aval]:
    name = "attention_backward"
    _check(name, q, k, v, mask)
    wide = wide_of(q.dtype)
    _check_like(name, "g", g, (*q.shape[:-1], v.shape[-1]), wide)
    _check_like(name, "h", h, q.shape[:-1], wide)
    _check_like(name, "lse", lse, q.shape[:-1], wide)
    return [Aval(x.shape, x.dtype) for x in (q, k, v)]


def _in_tiles(f: Callable[..., Any], abstract: Rule, count: int) -> Rule:
    """The meaning of a primitive that has `count` arguments before the mask."""

    def impl(*args: Any, causal: bool, scale: float) -> Any:
        abstract(*args, causal=causal, scale=scale)  # NumPy itself would not notice all that is wrong
        return f(*args[:count], args[count] if len(args) > count else None, causal, scale)

    return impl


# --- the same in whole matrices: what second derivatives, and those of floating masks, are made of


def _wide(x: Any) -> Any:
    wide = wide_of(x.dtype)
    return x if x.dtype == wide else e.astype(x, dtype=wide)


def _column(x: Any) -> Any:
    return reshape(x, shape=(*x.shape, 1))


class Seen:
    """Which queries and keys meet, as a mask and `causal` say."""

    def __init__(self, q: Any, k: Any, mask: tuple[Any, ...], causal: bool) -> None:
        t, s = q.shape[-2], k.shape[-2]
        self.pairs: Any = None  # None: all
        for m in mask:
            self.pairs = m if m.dtype == bool_ else e.not_equal(m, creation.full((), -math.inf, m.dtype))
        if causal:
            first, second = creation.iota(size=t, dtype=int64), creation.iota(size=s, dtype=int64)
            until = e.less_equal(reshape(second, shape=(1, s)), reshape(first, shape=(t, 1)))
            self.pairs = until if self.pairs is None else e.bitwise_and(self.pairs, until)
        if self.pairs is not None and self.pairs.shape[-2:] != (t, s):
            self.pairs = broadcast_to(self.pairs, shape=(*self.pairs.shape[:-2], t, s))

    def where(self, x: Any, otherwise: float = 0.0) -> Any:
        """A matrix of scores or weights, with another number where no query and key meet."""
        return x if self.pairs is None else e.where(self.pairs, x, creation.full((), otherwise, x.dtype))

    def queries(self, x: Any) -> Any:
        """Rows, one for each query, with zeros for those that see nothing: 0 times NaN is NaN."""
        return self._rows(x, -1)

    def keys(self, x: Any) -> Any:
        """Rows, one for each key, with zeros for those that nobody sees."""
        return self._rows(x, -2)

    def _rows(self, x: Any, axis: int) -> Any:
        if self.pairs is None:
            return x
        met = any_(self.pairs, axes=(self.pairs.ndim + axis,))
        return e.where(_column(met), x, creation.full((), 0, x.dtype))


def scores(q: Any, k: Any, *mask: Any, causal: bool, scale: float) -> Any:
    """The matrix S, with -inf where a query may not attend."""
    seen = Seen(q, k, mask, causal)
    found = (_wide(seen.queries(q)) @ swap_last(_wide(seen.keys(k)))) * scale
    for m in mask:
        found = found if m.dtype == bool_ else found + _wide(m)
    return seen.where(found, -math.inf)


def _weights(q: Any, k: Any, lse: Any, *mask: Any, causal: bool, scale: float) -> Any:
    found = e.exp(scores(q, k, *mask, causal=causal, scale=scale) - _column(lse))
    return Seen(q, k, mask, causal).where(found)  # also if lse is not a number


def _row_sum(x: Any) -> Any:
    return sum_(x, axes=(len(x.shape) - 1,))


def _whole_tangent(
    tq: Any, tk: Any, tv: Any, q: Any, k: Any, v: Any, lse: Any, *mask: Any, causal: bool, scale: float
) -> list[Any]:
    p, seen = _weights(q, k, lse, *mask, causal=causal, scale=scale), Seen(q, k, mask, causal)
    q, tq = (seen.queries(_wide(x)) for x in (q, tq))
    k, v, tk, tv = (seen.keys(_wide(x)) for x in (k, v, tk, tv))
    change = seen.where(p * ((tq @ swap_last(k) + q @ swap_last(tk)) * scale))
    return [change @ v + p @ tv, _row_sum(change)]


def _whole_backward(
    g: Any, h: Any, q: Any, k: Any, v: Any, lse: Any, *mask: Any, causal: bool, scale: float
) -> list[Any]:
    p, seen, dtype = _weights(q, k, lse, *mask, causal=causal, scale=scale), Seen(q, k, mask, causal), q.dtype
    q, g = (seen.queries(_wide(x)) for x in (q, g))
    k, v = (seen.keys(_wide(x)) for x in (k, v))
    change = seen.where(p * (g @ swap_last(v) + _column(h)) * scale)
    found = [change @ k, swap_last(change) @ q, swap_last(p) @ g]
    return [d if d.dtype == dtype else e.astype(d, dtype=dtype) for d in found]


# --- rules


def _attention_jvp(primals: list[Any], tangents: list[Any], out: list[Any], causal: bool, scale: float) -> list[Any]:
    (q, k, v, *mask), (y, lse) = primals, out
    moved = shift = None
    if any(t is not None for t in tangents[:3]):
        moved, shift = attention_tangent(
            *_filled(tangents[:3], primals[:3]), q, k, v, lse, *mask, causal=causal, scale=scale
        )
    if mask and tangents[3] is not None:
        seen = Seen(q, k, tuple(mask), causal)
        change = seen.where(_weights(q, k, lse, *mask, causal=causal, scale=scale) * _wide(tangents[3]))
        moved = add_tangents(moved, change @ seen.keys(_wide(v)))
        shift = add_tangents(shift, _row_sum(change))
    turned = moved - _column(shift) * _wide(y)
    return [turned if turned.dtype == y.dtype else e.astype(turned, dtype=y.dtype), shift]


def _filled(tangents: list[Any], primals: list[Any]) -> list[Any]:
    return [creation.zeros_like(p) if t is None else t for t, p in zip(tangents, primals, strict=True)]


def _linear_jvp(primitive: Primitive, linear: int, whole: Rule) -> Rule:
    """The derivative of a primitive that is linear in its first arguments; in the others, that of `whole`."""

    def jvp(primals: list[Any], tangents: list[Any], out: list[Any], **params: Any) -> list[Any]:
        if all(t is None for t in tangents[linear:]):
            return primitive(*_filled(tangents[:linear], primals[:linear]), *primals[linear:], **params)
        trace = JVPTrace(current().trace)
        pairs = zip(primals, tangents, strict=True)
        before = enter(trace)
        try:
            found = whole(*[p if t is None else JVPTracer(trace, p, t) for p, t in pairs], **params)
        finally:
            leave(before)
        return [trace.split(x)[1] for x in found]

    return jvp


def _linear_transpose(primitive: Primitive, other: Primitive, linear: int) -> Rule:
    """Adjoints of the first arguments, by the primitive that is the transpose."""

    def transpose(cts: list[Any], args: list[Any], **params: Any) -> list[Any]:
        found = other(*_filled(cts, primitive.abstract(*args, **params)), *args[linear:], **params)
        wanted = [ct if type(arg) is Tangent else None for ct, arg in zip(found, args[:linear], strict=True)]
        return wanted + [None] * len(args[linear:])

    return transpose


def _batch(primitive: Primitive, count: int) -> Rule:
    """The batch becomes the first of the leading axes, of the `count` arguments before the mask and of the mask."""

    def batch(args: list[Any], batched: list[bool], **params: Any) -> list[Any]:
        pairs = list(zip(args, batched, strict=True))
        size = next(a.shape[0] for a, on in pairs if on)
        full = [a if on else broadcast_to(a, shape=(size, *a.shape)) for a, on in pairs[:count]]
        for mask, on in pairs[count:]:
            missing = (1,) * (full[0].ndim - mask.ndim)
            full.append(reshape(mask, shape=(size, *missing, *mask.shape[1:])) if on else mask)
        return primitive(*full, **params)

    return batch


def _cost(first: int, keys: int, values: int) -> Rule:
    """Per pair that may attend, products over the features of keys and of values, so many; q is at `first`."""

    def cost(*args: Any, causal: bool, scale: float) -> int:
        q, k, v = args[first : first + 3]
        t, s = q.shape[-2], k.shape[-2]
        both = min(t, s)
        pairs = both * (both + 1) // 2 + (t - both) * s if causal else t * s
        return math.prod(q.shape[:-2]) * pairs * (keys * q.shape[-1] + values * v.shape[-1])

    return cost


attention: Primitive = Primitive(
    "attention",
    _in_tiles(attention_tiles.attend, _attention_abstract, 3),
    _attention_abstract,
    jvp=_attention_jvp,
    multiple=True,
    cost=_cost(0, keys=1, values=1),
)
attention.batch = _batch(attention, 3)

attention_tangent: Primitive = Primitive(
    "attention_tangent",
    _in_tiles(attention_tiles.push, _tangent_abstract, 7),
    _tangent_abstract,
    multiple=True,
    cost=_cost(3, keys=3, values=2),
)
attention_tangent.batch = _batch(attention_tangent, 7)

attention_backward: Primitive = Primitive(
    "attention_backward",
    _in_tiles(attention_tiles.pull, _backward_abstract, 6),
    _backward_abstract,
    multiple=True,
    cost=_cost(2, keys=3, values=2),
)
attention_backward.batch = _batch(attention_backward, 6)

attention_tangent.jvp = _linear_jvp(attention_tangent, 3, _whole_tangent)
attention_tangent.transpose = _linear_transpose(attention_tangent, attention_backward, 3)
attention_backward.jvp = _linear_jvp(attention_backward, 2, _whole_backward)
attention_backward.transpose = _linear_transpose(attention_backward, attention_tangent, 2)
