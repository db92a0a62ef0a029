"""Scaled dot-product attention, in two layouts, without the matrix of scores. Book, sections 10.1.2 and 11.2.2."""

from __future__ import annotations

import math
from typing import Any

from ... import arrays
from ...arguments import as_number
from ...arrays.conversion import as_tensor, promote_inexact
from ...broadcasting import broadcast_shapes
from ...dtypes import is_floating
from ...errors import ShapeError
from ...primitives.attention import Seen, attention, scores
from ...tensor import Tensor
from .noise import dropout

__all__ = ["dot_product_attention", "scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    random_key: Any = None,
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

    `scale` takes the place of \(1/\sqrt{d}\). With `enable_gqa`, axis -3 holds heads, of which several in a row of the
    query share one of key and value. `dropout_p` is the probability with which a weight is left out, others growing by
    1 / (1 - p); it acts whenever it is not 0, with `random_key` or one from the global stream.

    Only tiles of the scores are ever in memory, also in the backward pass, so that it grows linearly with t and s. The
    exceptions are dropout, the gradient of a floating mask, and second derivatives. Book, D.10.1, E.11.4 to E.11.8.
    """
    name = "scaled_dot_product_attention"
    q, k, v = promote_inexact(name, query, key, value)
    if enable_gqa:
        k, v = (_repeat_heads(name, q, x) for x in (k, v))
    q, k, v = _broadcast_lead(name, q, k, v)
    masks: list[Any] = []
    if attn_mask is not None:
        mask = as_tensor(name, attn_mask)
        masks.append(arrays.astype(mask, q.dtype) if is_floating(mask.dtype) else mask)
    factor = 1 / math.sqrt(max(1, q.shape[-1])) if scale is None else float(as_number(name, "scale", scale))
    causal = bool(is_causal)
    if not dropout_p:
        return attention(q, k, v, *masks, causal=causal, scale=factor)[0]
    attention.abstract(q, k, v, *masks, causal=causal, scale=factor)  # explains wrong shapes
    seen = Seen(q, k, tuple(masks), causal)
    weights = arrays.softmax(scores(q, k, *masks, causal=causal, scale=factor)).astype(q.dtype)
    return dropout(weights, dropout_p, key=random_key) @ seen.keys(v)


def _broadcast_lead(name: str, *xs: Any) -> list[Any]:
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


def _repeat_heads(name: str, q: Any, x: Any) -> Any:
    """Each head of x for as many heads of q in a row as it takes."""
    if q.ndim < 3 or x.ndim < 3 or x.shape[-3] == 0 or q.shape[-3] % x.shape[-3]:
        raise ShapeError(
            f"{name}: the heads (axis -3) of shape {x.shape} cannot be shared by those of the query {q.shape}.",
            "a number of query heads that is a multiple of that of key and value",
        )
    *lead, heads, s, d = x.shape
    times = q.shape[-3] // heads
    if times == 1:
        return x
    spread = arrays.broadcast_to(arrays.expand_dims(x, axis=-3), (*lead, heads, times, s, d))
    return arrays.reshape(spread, (*lead, heads * times, s, d))


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
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
    out = scaled_dot_product_attention(q, k, v, both, is_causal=is_causal, scale=scale, enable_gqa=True)
    return arrays.moveaxis(out, -3, -2)
