"""Scaled dot-product attention, in two layouts, without the matrix of scores. Book, sections 10.1.2 and 11.2.2."""

from __future__ import annotations

import math

from ... import arrays
from ...arrays.conversion import as_tensor, for_products, promote_inexact
from ...core.arguments import as_int, as_number
from ...core.broadcasting import broadcast_shapes, broadcasts_to
from ...core.dtypes import bool_, is_floating, is_integer
from ...core.errors import DTypeError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, KeyLike
from ...primitives.attention import Seen, attention, scores
from ...primitives.attention_tiles import wide_of
from ...primitives.sight import Options, Parameters
from .noise import dropout

__all__ = ["dot_product_attention", "scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    window: int | None = None,
    offset: ArrayLike = 0,
    alibi: ArrayLike | None = None,
    random_key: KeyLike = None,
) -> Tensor:
    r"""\(\operatorname{softmax}(q k^\top / \sqrt{d})\, v\): (..., t, d), (..., s, d) and (..., s, e) give (..., t, e).

    >>> import wonderland as wl
    >>> q, k, v = wl.ones((2, 8, 5, 4)), wl.ones((2, 8, 7, 4)), wl.ones((2, 8, 7, 3))
    >>> wl.nn.functional.scaled_dot_product_attention(q, k, v).shape
    (2, 8, 5, 3)

    Leading axes (batch, heads, or none) broadcast. `attn_mask` broadcasts to the scores (..., t, s): bool, true where a
    query may attend to a key, or floating and added to the scores. With `is_causal`, query i sees the keys j <= i,
    counted from the first of both. A query that may attend to nothing gives zeros, and its gradients are zeros.

    >>> x = wl.tensor([[1.0], [2.0], [6.0]])
    >>> wl.nn.functional.scaled_dot_product_attention(wl.zeros((3, 1)), wl.zeros((3, 1)), x, is_causal=True)
    tensor([[1. ],
            [1.5],
            [3. ]])

    Query i sits at the place `offset` + i: a number, or integers that broadcast to the leading axes without the heads
    (one for each row of a batch, whose cache of keys has its own length). Key j sits at j. With `is_causal` a query
    sees the keys up to its place; with a `window`, those less than `window` places away. Whole tiles of scores that
    are out of sight take no time: with a window it is linear in t.

    >>> wl.nn.functional.scaled_dot_product_attention(wl.zeros((1, 1)), x, x, is_causal=True, offset=2, window=2)
    tensor([[4.]])

    `alibi` are slopes, one for each head (axis -3 of the query), that are learned or not: scores fall by slope times
    the distance of query and key. (ALiBi; it needs no matrix either.)

    `scale` takes the place of \(1/\sqrt{d}\). With `enable_gqa`, axis -3 holds heads, of which several in a row of the
    query share one of key and value. `dropout_p` is the probability with which a weight is left out, others growing by
    1 / (1 - p); it acts whenever it is not 0, with `random_key` or one from the global stream.

    Only tiles of the scores are ever in memory, also in the backward pass, so that it grows linearly with t and s. The
    exceptions are dropout, the gradient of a floating mask, and second derivatives. Book, D.10.1, E.11.4 to E.11.8.
    """
    name = "scaled_dot_product_attention"
    q, k, v = for_products(*promote_inexact(name, query, key, value))
    mask = None if attn_mask is None else as_tensor(name, attn_mask)
    slopes = None if alibi is None else _slopes(name, q, alibi)
    group = 1
    if enable_gqa:
        group, k, v = _sharing(name, q, k, v)
    rows = q.shape
    if group > 1:  # heads that share keys become rows, so that no key is repeated
        q, mask = _folded(q, group), mask if mask is None else _folded_mask(mask, rows, group)
        slopes = slopes if slopes is None else _folded(slopes, group)
    q, k, v = _broadcast_lead(name, q, k, v)
    params: Parameters = {
        "causal": bool(is_causal),
        "scale": 1 / math.sqrt(max(1, q.shape[-1])) if scale is None else float(as_number(name, "scale", scale)),
    }
    if window is not None:
        params["window"] = as_int(name, "window", window, least=1)
    if group > 1:
        params["group"] = group
    given: dict[str, Tensor] = {}
    if mask is not None:
        given["mask"] = arrays.astype(mask, q.dtype) if is_floating(mask.dtype) else mask
    if not isinstance(offset, int) or offset:
        given["offsets"] = _offsets(name, offset, q)
    if slopes is not None:
        given["slopes"] = arrays.broadcast_to(slopes[..., 0], q.shape[:-1])
    if set(given) - {"mask"}:
        params["given"] = tuple(given)
    out = _attended(q, k, v, [*given.values()], params, dropout_p, random_key)
    return out if group == 1 else _unfolded(out, group)


def _attended(
    q: Tensor, k: Tensor, v: Tensor, operands: list[Tensor], params: Parameters, dropout_p: float, key: KeyLike
) -> Tensor:
    if not dropout_p:
        return attention(q, k, v, *operands, **params)[0]
    attention.abstract(q, k, v, *operands, **params)  # explains wrong shapes
    seen = Seen(q, k, operands, Options(**params))
    weights = arrays.softmax(scores(q, k, *operands, **params)).astype(q.dtype)
    return dropout(weights, dropout_p, key=key) @ seen.keys(v)


def _offsets(name: str, offset: ArrayLike, q: Tensor) -> Tensor:
    """The place of the first query, for each matrix of queries."""
    found = as_tensor(name, offset)
    if not is_integer(found.dtype) or found.dtype == bool_:
        raise DTypeError(f"{name}: an offset of {found.dtype}.", "integers: the place of the first query")
    rows = q.shape[:-3]
    if found.ndim and not broadcasts_to(found.shape, rows):
        raise ShapeError(
            f"{name}: offsets of shape {found.shape} for queries whose axes before the heads are {rows}.",
            "one number, or one for each row of the batch",
        )
    return arrays.expand_dims(found, axis=-1) if found.ndim else found


def _slopes(name: str, q: Tensor, alibi: ArrayLike) -> Tensor:
    """Slopes as (heads, t, 1), in the precision of sums."""
    found = as_tensor(name, alibi)
    heads = q.shape[-3] if q.ndim > 2 else 1
    if found.shape not in ((heads,), ()) or not is_floating(found.dtype):
        raise ShapeError(
            f"{name}: alibi is {found.dtype}{list(found.shape)} for queries {q.shape}.",
            f"a slope for each of {heads} heads: floating, of shape ({heads},)",
        )
    found = arrays.astype(found, wide_of(q.dtype))
    if q.ndim < 3:
        return arrays.broadcast_to(arrays.reshape(found, (1, 1)), (q.shape[-2], 1))
    return arrays.broadcast_to(arrays.reshape(found, (-1, 1, 1)), (heads, q.shape[-2], 1))


def _broadcast_lead(name: str, *xs: Tensor) -> list[Tensor]:
    """The tensors with the same axes before the last two."""
    if all(x.shape[:-2] == xs[0].shape[:-2] for x in xs):
        return list(xs)
    try:
        lead = broadcast_shapes(name, *[x.shape[:-2] for x in xs])
    except ShapeError:
        raise ShapeError(
            f"{name}: the leading axes of query {xs[0].shape}, key {xs[1].shape} and value {xs[2].shape} do not "
            "broadcast.",
            "the same batch and heads for all, or enable_gqa=True if several query heads share a key head",
        ) from None
    return [arrays.broadcast_to(x, (*lead, *x.shape[-2:])) for x in xs]


def _sharing(name: str, q: Tensor, *xs: Tensor) -> tuple[int, Tensor, Tensor]:
    """How many heads of the query in a row share one of key and value, which have as many heads."""
    for x in xs:
        if q.ndim < 3 or x.ndim < 3 or x.shape[-3] == 0 or q.shape[-3] % x.shape[-3]:
            raise ShapeError(
                f"{name}: the heads (axis -3) of shape {x.shape} cannot be shared by those of the query {q.shape}.",
                "a number of query heads that is a multiple of that of key and value",
            )
    k, v = xs
    if k.shape[-3] != v.shape[-3]:
        k, v = (arrays.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in xs)
    return q.shape[-3] // k.shape[-3], k, v


def _folded(x: Tensor, group: int) -> Tensor:
    """(.., heads, t, d) as (.., heads / group, t group, d): heads that share keys beside each other."""
    *lead, heads, t, d = x.shape
    apart = arrays.reshape(x, (*lead, heads // group, group, t, d))
    return arrays.reshape(arrays.swapaxes(apart, -2, -3), (*lead, heads // group, t * group, d))


def _unfolded(x: Tensor, group: int) -> Tensor:
    *lead, heads, rows, d = x.shape
    apart = arrays.reshape(x, (*lead, heads, rows // group, group, d))
    return arrays.reshape(arrays.swapaxes(apart, -2, -3), (*lead, heads * group, rows // group, d))


def _folded_mask(mask: Tensor, rows: tuple[int, ...], group: int) -> Tensor:
    """A mask for (.., heads, t, s) as one for the folded queries; one that is the same for all of them stays."""
    heads = mask.shape[-3] if mask.ndim > 2 else 1
    t = mask.shape[-2] if mask.ndim > 1 else 1
    if heads == t == 1 or heads not in (1, rows[-3]) or t not in (1, rows[-2]):
        return mask  # what does not fit is explained by those who get it
    full = arrays.reshape(mask, (*mask.shape[:-3], heads, t, mask.shape[-1]))
    return _folded(arrays.broadcast_to(full, (*full.shape[:-3], rows[-3], rows[-2], full.shape[-1])), group)


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    window: int | None = None,
    offset: ArrayLike = 0,
    alibi: ArrayLike | None = None,
) -> Tensor:
    r"""Attention on (..., t, heads, d), (..., s, heads, d), (..., s, heads, e), which give (..., t, heads, e).

    >>> import wonderland as wl
    >>> x = wl.ones((2, 5, 8, 4))
    >>> wl.nn.functional.dot_product_attention(x, x, x).shape
    (2, 5, 8, 4)

    `bias` is added to the scores, and where the bool `mask` is false a query may not attend; both broadcast to
    (..., heads, t, s). Several heads of the query in a row may share one of key and value. Otherwise as
    `scaled_dot_product_attention`.
    """
    name = "dot_product_attention"
    q, k, v = promote_inexact(name, query, key, value)
    if min(q.ndim, k.ndim, v.ndim) < 3:
        raise ShapeError(
            f"{name}: query {q.shape}, key {k.shape}, value {v.shape} have no axis for heads.",
            "(..., t, heads, d), or scaled_dot_product_attention for one head",
        )
    q, k, v = (arrays.moveaxis(x, -2, -3) for x in (q, k, v))
    both = bias if mask is None else mask if bias is None else arrays.where(mask, bias, -math.inf)
    out = scaled_dot_product_attention(
        q, k, v, both, is_causal=is_causal, scale=scale, enable_gqa=True, window=window, offset=offset, alibi=alibi
    )
    return arrays.moveaxis(out, -3, -2)
