"""Attention whose weights are formed: to look at them, or for scores of another kind. Book, 10.1.2; notes, 5.5.2."""

from __future__ import annotations

import math
from collections.abc import Callable

from ... import arrays
from ...arrays.conversion import as_real, as_tensor, promote_inexact
from ...core import dtypes
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, KeyLike
from .attention_masks import causal_mask
from .noise import dropout

__all__ = ["attention_from_scores", "attention_with_weights"]

MODES = ("soft", "hard", "linear")


def attention_with_weights(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    score_mod: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None,
    query_places: ArrayLike | None = None,
    key_places: ArrayLike | None = None,
    mode: str = "soft",
    *,
    random_key: KeyLike = None,
) -> tuple[Tensor, Tensor]:
    r"""`scaled_dot_product_attention`, and the weights (..., t, s) that it takes the mean with.

    >>> import wonderland as wl
    >>> k = wl.tensor([[0.1, 0, 2], [5, 4, 3], [-4, 0, -3], [-0.2, 0, 1], [5, -3, -4]])
    >>> out, weights = wl.nn.functional.attention_with_weights(wl.tensor([[5.0, 0, 0]]), k, k, scale=1.0)
    >>> weights.numpy().round(3).tolist()
    [[0.0, 0.5, 0.0, 0.0, 0.5]]

    `score_mod(scores, i, j)` changes the scores (..., t, s) before the mask; i (..., t, 1) and j (..., 1, s) are the
    places of queries and keys, 0, 1, ... if nothing is said. `mode` says what becomes of the scores, see
    `attention_from_scores`. There may be fewer heads of keys and values than of queries. Memory is quadratic.
    """
    name = "attention_with_weights"
    q, k, v = promote_inexact(name, query, key, value)
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1]:
        raise ShapeError(f"{name}: queries {q.shape} and keys {k.shape}.", "(..., t, d) and (..., s, d)")
    if k.ndim > 2 and q.ndim > 2 and q.shape[-3] != k.shape[-3]:
        if k.shape[-3] == 0 or q.shape[-3] % k.shape[-3]:
            raise ShapeError(
                f"{name}: the heads (axis -3) of keys {k.shape} cannot be shared by those of queries {q.shape}.",
                "a number of query heads that is a multiple of that of key and value",
            )
        k, v = (arrays.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v))
    factor = 1 / math.sqrt(max(1, q.shape[-1])) if scale is None else scale
    scores = (q * factor) @ arrays.swapaxes(k, -1, -2)
    t, s = scores.shape[-2:]
    if score_mod is not None:
        i = arrays.arange(t) if query_places is None else as_tensor(name, arrays.asarray(query_places))
        j = arrays.arange(s) if key_places is None else as_tensor(name, arrays.asarray(key_places))
        i, j = arrays.expand_dims(i, -1), arrays.expand_dims(j, -2)
        if scores.ndim > 2:  # places (batch, t) beside scores (batch, heads, t, s)
            i, j = (x if x.ndim < 3 else arrays.expand_dims(x, -3) for x in (i, j))
        changed = score_mod(scores, i, j)
        if changed.shape != scores.shape:
            raise ShapeError(f"{name}: score_mod made {changed.shape} of scores {scores.shape}.", "the same shape")
        scores = changed
    mask = None if attn_mask is None else as_tensor(name, arrays.asarray(attn_mask))
    if mask is not None and mask.dtype != dtypes.bool_:
        scores, mask = scores + arrays.astype(mask, scores.dtype), mask != -math.inf
    if is_causal:
        until = causal_mask(t, s)
        mask = until if mask is None else mask & until
    return attention_from_scores(scores, v, mask, mode, dropout_p, random_key=random_key)


def attention_from_scores(
    scores: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    mode: str = "soft",
    dropout_p: float = 0.0,
    *,
    random_key: KeyLike = None,
) -> tuple[Tensor, Tensor]:
    r"""\(\alpha V\) and \(\alpha\) for scores (..., t, s) and values (..., s, v). Notes, section 5.5.2.

    >>> import wonderland as wl
    >>> v = wl.tensor([[1.0], [2.0], [4.0]])
    >>> scores = wl.tensor([[0.0, 0.0, 1.0]])
    >>> [wl.nn.functional.attention_from_scores(scores, v, mode=m)[0].item() for m in ("hard", "linear")]
    [4.0, 4.0]

    `mode`: "soft", \(\alpha\) is the softmax of a row; "hard", 1 for the largest score (the first of equals) and 0
    else, which gives scores no gradient; "linear", the scores themselves, which need not sum to 1. Where the bool
    `attn_mask` is false the weight is 0, and a row without any true has zeros.
    """
    name = "attention_from_scores"
    e, v = as_real(name, scores), as_real(name, value)
    if mode not in MODES:
        raise InputError(f"{name}: mode={mode!r}.", f"one of {', '.join(map(repr, MODES))}")
    if e.ndim < 2 or v.ndim < 2 or e.shape[-1] != v.shape[-2]:
        raise ShapeError(f"{name}: scores {e.shape} and values {v.shape}.", "(..., t, s) and (..., s, v)")
    seen = None if attn_mask is None else arrays.broadcast_to(as_tensor(name, arrays.asarray(attn_mask)), e.shape)
    if seen is not None:
        heard = arrays.any(seen, axis=-2)  # keys that somebody sees: 0 times NaN is NaN
        v = arrays.where(arrays.expand_dims(heard, -1), v, arrays.zeros_like(v))
    low = e if seen is None or mode == "linear" else arrays.where(seen, e, -math.inf)
    if mode == "soft":
        weights = arrays.softmax(low, axis=-1)
    elif mode == "hard":
        weights = arrays.one_hot(arrays.argmax(low, axis=-1), e.shape[-1], dtype=e.dtype)
    else:
        weights = e
    if seen is not None:
        weights = arrays.where(seen, weights, 0.0)
    used = dropout(weights, dropout_p, key=random_key) if dropout_p else weights
    return used @ v, weights
