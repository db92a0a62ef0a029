"""Scaled dot-product attention in memory linear in the sequences, and its derivatives. Book, 10.1.2 and 11.2.2.

With q (lead, t, d), k (lead, s, d), v (lead, s, e), the same leading axes everywhere, any number of them:

    S_ij = scale <q_i, k_j>                     scores: plus mask_ij if the mask is floating,
                                                -inf where it is bool and false, and where the place of the query
                                                keeps the key out of sight (sight.py: if causal, j > i; a window)
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
parameters are `causal: bool` and `scale: float`; `window: int`, `group: int` and `given`, which sight.py explains, are
there only if they say something. `given` names the operands behind v: "mask", "offsets" (integers that broadcast to
lead: the place of the first query, also where keys are cached) and "slopes" (lead, t), for which S_ij changes by
-slope_i |p_i - j|. With slopes, attention_tangent takes their tangents behind tv and attention_backward gives a fourth
result, their adjoints. For half types all sums are in float32, and lse, g, h, slopes and the results of
attention_tangent are float32 tensors; else everything has the dtype of q.

The last two primitives are transposes of each other, in (tq, tk, tv) and in (g, h). The derivative of attention is

    d lse = rowsum(P * dS),    d out = (P * dS) v + P tv - d lse * out

so that g is the adjoint of out, and h = (adjoint of lse) - rowsum(g * out). The derivatives of the last two with
respect to their other arguments, and that of attention with respect to a floating mask, form the matrix P: second
derivatives take memory in proportion to t s. There, what is not finite is kept out where nobody may attend to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Unpack

from ..core.broadcasting import broadcasts_to
from ..core.context import current, enter, leave
from ..core.dtypes import DType, bool_, int64, is_integer
from ..core.errors import DTypeError, ShapeError
from ..core.interpreter import Tangent
from ..core.primitive import Aval, Primitive, Rule
from ..core.tangents import JVPTrace, JVPTracer, add_tangents
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from . import attention_tiles, creation
from . import elementwise as e
from .attention_tiles import wide_of
from .contraction import swap_last
from .reduction import any_
from .sight import Extras, Options, Parameters
from .structure import broadcast_to, reshape, sum_

# --- types and shapes


def _check(name: str, q: Shaped, k: Shaped, v: Shaped, operands: tuple[Shaped, ...], options: Options) -> None:
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
    options.check(name, q.shape[-2])
    extras = Extras.of(operands, options)
    if extras.offsets is not None:
        if not is_integer(extras.offsets.dtype) or extras.offsets.dtype == bool_:
            raise DTypeError(f"{name}: offsets of {extras.offsets.dtype}.", "integers: the place of the first query")
        if not broadcasts_to(extras.offsets.shape, q.shape[:-2]):
            raise ShapeError(
                f"{name}: offsets of shape {extras.offsets.shape} do not broadcast to the leading axes {q.shape[:-2]}.",
                "one number, or one for each matrix of queries",
            )
    if extras.slopes is not None:
        _check_like(name, "slopes", extras.slopes, q.shape[:-1], wide_of(q.dtype))
    if extras.mask is not None:
        m, whole = extras.mask, (*q.shape[:-1], k.shape[-2])
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


def _check_like(name: str, what: str, x: Shaped, shape: tuple[int, ...], dtype: DType) -> None:
    if x.shape != shape or x.dtype != dtype:
        raise (ShapeError if x.shape != shape else DTypeError)(
            f"{name}: {what} is {x.dtype}{list(x.shape)}.", f"{dtype}{list(shape)}"
        )


def _attention_abstract(q: Shaped, k: Shaped, v: Shaped, *operands: Shaped, **params: Unpack[Parameters]) -> list[Aval]:
    _check("attention", q, k, v, operands, Options(**params))
    return [Aval((*q.shape[:-1], v.shape[-1]), q.dtype), Aval(q.shape[:-1], wide_of(q.dtype))]


def _tangents(options: Options) -> int:
    """How many arguments attention_tangent has before q."""
    return 3 + options.tilted


def _tangent_abstract(*args: Shaped, **params: Unpack[Parameters]) -> list[Aval]:
    name, options = "attention_tangent", Options(**params)
    count = _tangents(options)
    q, k, v, lse, *operands = args[count:]
    _check(name, q, k, v, tuple(operands), options)
    for what, t, x in zip(("tq", "tk", "tv"), args, (q, k, v), strict=False):
        _check_like(name, what, t, x.shape, x.dtype)
    wide = wide_of(q.dtype)
    for what, x in zip(("lse", "the tangent of slopes"), (lse, *args[3:count]), strict=False):
        _check_like(name, what, x, q.shape[:-1], wide)
    return [Aval((*q.shape[:-1], v.shape[-1]), wide), Aval(q.shape[:-1], wide)]


def _backward_abstract(
    g: Shaped, h: Shaped, q: Shaped, k: Shaped, v: Shaped, lse: Shaped, *operands: Shaped, **params: Unpack[Parameters]
) -> list[Aval]:
    name, options = "attention_backward", Options(**params)
    _check(name, q, k, v, operands, options)
    wide = wide_of(q.dtype)
    _check_like(name, "g", g, (*q.shape[:-1], v.shape[-1]), wide)
    _check_like(name, "h", h, q.shape[:-1], wide)
    _check_like(name, "lse", lse, q.shape[:-1], wide)
    return [Aval(x.shape, x.dtype) for x in (q, k, v, *([lse] if options.tilted else []))]


def _attention(*args: Array, **params: Unpack[Parameters]) -> list[Array]:
    _attention_abstract(*args, **params)  # NumPy itself would not notice all that is wrong
    options = Options(**params)
    q, k, v, *operands = args
    return attention_tiles.attend(q, k, v, Extras.of(operands, options), options)


def _attention_tangent(*args: Array, **params: Unpack[Parameters]) -> list[Array]:
    _tangent_abstract(*args, **params)
    options = Options(**params)
    count = _tangents(options)
    q, k, v, lse, *operands = args[count:]
    return attention_tiles.push(args[:count], q, k, v, lse, Extras.of(operands, options), options)


def _attention_backward(*args: Array, **params: Unpack[Parameters]) -> list[Array]:
    _backward_abstract(*args, **params)
    options = Options(**params)
    g, h, q, k, v, lse, *operands = args
    return attention_tiles.pull((g, h), q, k, v, lse, Extras.of(operands, options), options)


# --- the same in whole matrices: what second derivatives, and those of floating masks, are made of


def _wide(x: Tensor) -> Tensor:
    wide = wide_of(x.dtype)
    return x if x.dtype == wide else e.astype(x, dtype=wide)


def _column(x: Tensor) -> Tensor:
    return reshape(x, shape=(*x.shape, 1))


def _places(q: Tensor, offsets: Tensor | None, options: Options) -> Tensor:
    """Where queries sit: (t, 1), or (.., t, 1) if there are offsets."""
    found = reshape(creation.iota(size=q.shape[-2], dtype=int64), shape=(q.shape[-2], 1))
    if options.group > 1:
        found = e.floor_divide(found, creation.full((), options.group, int64))
    if offsets is None:
        return found
    wide = offsets if offsets.dtype == int64 else e.astype(offsets, dtype=int64)
    return reshape(wide, shape=(*wide.shape, 1, 1)) + found


def _keys(k: Tensor) -> Tensor:
    return reshape(creation.iota(size=k.shape[-2], dtype=int64), shape=(1, k.shape[-2]))


def _distances(q: Tensor, k: Tensor, offsets: Tensor | None, options: Options) -> Tensor:
    """-|place - j|."""
    return e.astype(e.negative(e.abs_(_places(q, offsets, options) - _keys(k))), dtype=wide_of(q.dtype))


class Seen:
    """Which queries and keys meet, as a mask and their places say."""

    def __init__(self, q: Tensor, k: Tensor, operands: Sequence[Tensor], options: Options) -> None:
        t, s = q.shape[-2], k.shape[-2]
        self.pairs: Tensor | None = None  # None: all
        m, offsets, _ = Extras.of(operands, options)
        if m is not None:
            self.pairs = m if m.dtype == bool_ else e.not_equal(m, creation.full((), -math.inf, m.dtype))
        if options.ahead is not None:
            ahead = _keys(k) - _places(q, offsets, options)
            self._also(e.less(ahead, creation.full((), options.ahead, int64)))
            if options.window is not None:
                self._also(e.greater(ahead, creation.full((), -options.window, int64)))
        if self.pairs is not None and self.pairs.shape[-2:] != (t, s):
            self.pairs = broadcast_to(self.pairs, shape=(*self.pairs.shape[:-2], t, s))

    def _also(self, pairs: Tensor) -> None:
        self.pairs = pairs if self.pairs is None else e.bitwise_and(self.pairs, pairs)

    def where(self, x: Tensor, otherwise: float = 0.0) -> Tensor:
        """A matrix of scores or weights, with another number where no query and key meet."""
        return x if self.pairs is None else e.where(self.pairs, x, creation.full((), otherwise, x.dtype))

    def queries(self, x: Tensor) -> Tensor:
        """Rows, one for each query, with zeros for those that see nothing: 0 times NaN is NaN."""
        return self._rows(x, -1)

    def keys(self, x: Tensor) -> Tensor:
        """Rows, one for each key, with zeros for those that nobody sees."""
        return self._rows(x, -2)

    def _rows(self, x: Tensor, axis: int) -> Tensor:
        if self.pairs is None:
            return x
        met = any_(self.pairs, axes=(self.pairs.ndim + axis,))
        return e.where(_column(met), x, creation.full((), 0, x.dtype))


def scores(q: Tensor, k: Tensor, *operands: Tensor, **params: Unpack[Parameters]) -> Tensor:
    """The matrix S, with -inf where a query may not attend."""
    options = Options(**params)
    seen, (mask, offsets, slopes) = Seen(q, k, operands, options), Extras.of(operands, options)
    found = (_wide(seen.queries(q)) @ swap_last(_wide(seen.keys(k)))) * options.scale
    if slopes is not None:
        found = found + _column(slopes) * _distances(q, k, offsets, options)
    if mask is not None and mask.dtype != bool_:
        found = found + _wide(mask)
    return seen.where(found, -math.inf)


def _weights(q: Tensor, k: Tensor, lse: Tensor, *operands: Tensor, **params: Unpack[Parameters]) -> Tensor:
    found = e.exp(scores(q, k, *operands, **params) - _column(lse))
    return Seen(q, k, operands, Options(**params)).where(found)  # also if lse is not a number


def _row_sum(x: Tensor) -> Tensor:
    return sum_(x, axes=(len(x.shape) - 1,))


def _whole_tangent(*args: Tensor, **params: Unpack[Parameters]) -> list[Tensor]:
    options = Options(**params)
    count = _tangents(options)
    (tq, tk, tv, *tilts), (q, k, v, lse, *operands) = args[:count], args[count:]
    p, seen = _weights(q, k, lse, *operands, **params), Seen(q, k, operands, options)
    away = [_column(tilt) * _distances(q, k, Extras.of(operands, options).offsets, options) for tilt in tilts]
    q, tq = (seen.queries(_wide(x)) for x in (q, tq))
    k, v, tk, tv = (seen.keys(_wide(x)) for x in (k, v, tk, tv))
    moved = (tq @ swap_last(k) + q @ swap_last(tk)) * options.scale
    for tilt in away:
        moved = moved + tilt
    change = seen.where(p * moved)
    return [change @ v + p @ tv, _row_sum(change)]


def _whole_backward(
    g: Tensor, h: Tensor, q: Tensor, k: Tensor, v: Tensor, lse: Tensor, *operands: Tensor, **params: Unpack[Parameters]
) -> list[Tensor]:
    options, dtype = Options(**params), q.dtype
    p, seen = _weights(q, k, lse, *operands, **params), Seen(q, k, operands, options)
    away = _distances(q, k, Extras.of(operands, options).offsets, options) if options.tilted else None
    q, g = (seen.queries(_wide(x)) for x in (q, g))
    k, v = (seen.keys(_wide(x)) for x in (k, v))
    plain = seen.where(p * (g @ swap_last(v) + _column(h)))
    change = plain * options.scale
    found = [change @ k, swap_last(change) @ q, swap_last(p) @ g]
    found = [d if d.dtype == dtype else e.astype(d, dtype=dtype) for d in found]
    return found if away is None else [*found, _row_sum(plain * away)]


# --- rules


def _attention_jvp(
    primals: list[Tensor], tangents: list[Tensor | None], out: list[Tensor], **params: Unpack[Parameters]
) -> list[Tensor]:
    (q, k, v, *operands), (y, lse), options = primals, out, Options(**params)
    moved = shift = None
    given, changed = Extras.of(operands, options), Extras.of(tangents[3:], options)
    linear = [*zip(tangents[:3], primals[:3], strict=True)]
    linear += [] if given.slopes is None else [(changed.slopes, given.slopes)]
    if any(t is not None for t, _ in linear):
        filled = _filled([t for t, _ in linear], [x for _, x in linear])
        moved, shift = attention_tangent(*filled, q, k, v, lse, *operands, **params)
    if changed.mask is not None:
        seen = Seen(q, k, operands, options)
        change = seen.where(_weights(q, k, lse, *operands, **params) * _wide(changed.mask))
        moved = add_tangents(moved, change @ seen.keys(_wide(v)))
        shift = add_tangents(shift, _row_sum(change))
    assert moved is not None  # some argument has a tangent
    assert shift is not None
    turned = moved - _column(shift) * _wide(y)
    return [turned if turned.dtype == y.dtype else e.astype(turned, dtype=y.dtype), shift]


def _filled(tangents: Sequence[Tensor | None], primals: Sequence[Shaped]) -> list[Tensor]:
    return [creation.zeros_like(p) if t is None else t for t, p in zip(tangents, primals, strict=True)]


Count = Callable[[Options], int]


def _linear_jvp(primitive: Primitive, count: Count, whole: Rule) -> Rule:
    """The derivative of a primitive that is linear in its first arguments; in the others, that of `whole`."""

    def jvp(
        primals: list[Tensor], tangents: list[Tensor | None], out: list[Tensor], **params: Unpack[Parameters]
    ) -> list[Tensor | None]:
        linear = count(Options(**params))
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


def _linear_transpose(primitive: Primitive, other: Primitive, count: Count) -> Rule:
    """Adjoints of the first arguments, by the primitive that is the transpose."""

    def transpose(cts: list[Tensor | None], args: list[Tensor], **params: Unpack[Parameters]) -> list[Tensor | None]:
        linear = count(Options(**params))
        found = other(*_filled(cts, primitive.abstract(*args, **params)), *args[linear:], **params)
        wanted = [ct if type(arg) is Tangent else None for ct, arg in zip(found, args[:linear], strict=True)]
        return wanted + [None] * len(args[linear:])

    return transpose


def _batch(primitive: Primitive, count: Count) -> Rule:
    """The batch becomes the first of the leading axes, of the arguments up to the values and of those behind them."""

    def batch(args: list[Tensor], batched: list[bool], **params: Unpack[Parameters]) -> list[Tensor]:
        options, pairs = Options(**params), list(zip(args, batched, strict=True))
        before, size = count(options), next(a.shape[0] for a, on in pairs if on)

        def broad(x: Tensor, on: bool) -> Tensor:
            return x if on else broadcast_to(x, shape=(size, *x.shape))

        full = [broad(x, on) for x, on in pairs[:before]]
        rank = full[0].ndim
        for name, (x, on) in zip(options.names, pairs[before:], strict=False):
            if name == "slopes":
                full.append(broad(x, on))
            elif on:
                missing = (rank if name == "mask" else rank - 2) - x.ndim
                full.append(reshape(x, shape=(size, *(1,) * missing, *x.shape[1:])))
            else:
                full.append(x)
        return primitive(*full, **params)

    return batch


def _cost(first: Count, keys: int, values: int) -> Rule:
    """Per pair that may attend, products over the features of keys and of values, so many; q is at `first`."""

    def cost(*args: Shaped, **params: Unpack[Parameters]) -> int:
        options = Options(**params)
        q, k, v = args[first(options) : first(options) + 3]
        pairs = options.pairs(q.shape[-2], k.shape[-2])
        return math.prod(q.shape[:-2]) * pairs * (keys * q.shape[-1] + values * v.shape[-1])

    return cost


attention: Primitive = Primitive(
    "attention",
    _attention,
    _attention_abstract,
    jvp=_attention_jvp,
    multiple=True,
    cost=_cost(lambda options: 0, keys=1, values=1),
    single=1 << 18,
)
attention.batch = _batch(attention, lambda options: 3)

attention_tangent: Primitive = Primitive(
    "attention_tangent",
    _attention_tangent,
    _tangent_abstract,
    multiple=True,
    cost=_cost(_tangents, keys=3, values=2),
)
attention_tangent.batch = _batch(attention_tangent, lambda options: _tangents(options) + 4)

attention_backward: Primitive = Primitive(
    "attention_backward",
    _attention_backward,
    _backward_abstract,
    multiple=True,
    cost=_cost(lambda options: 2, keys=3, values=2),
    single=1 << 18,
)
attention_backward.batch = _batch(attention_backward, lambda options: 6)

attention_tangent.jvp = _linear_jvp(attention_tangent, _tangents, _whole_tangent)
attention_tangent.transpose = _linear_transpose(attention_tangent, attention_backward, _tangents)
attention_backward.jvp = _linear_jvp(attention_backward, lambda options: 2, _whole_backward)
attention_backward.transpose = _linear_transpose(attention_backward, attention_tangent, lambda options: 2)
