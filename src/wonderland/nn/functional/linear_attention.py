"""Attention by kernels: as it is defined, and in three forms that are linear in the tokens. Book, section 13.1.

    h_i = phi(q_i)^T S_i / (phi(q_i)^T z_i)      S_i = S_{i-1} + phi(k_i) v_i^T      z_i = z_{i-1} + phi(k_i)

In all forms a column of ones goes along with the values, so that the sums z are one more column of S.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ... import arrays
from ...arrays.conversion import as_tensor, promote_inexact
from ...core import dtypes
from ...core.arguments import as_int, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...transforms.control.loops import runs_in_python, scan
from .feature_maps import elu_plus_one

__all__ = ["KernelMemory", "kernel_attention", "linear_attention"]

FeatureMap: TypeAlias = Callable[[Tensor], Tensor]
Kernel: TypeAlias = Callable[[Tensor, Tensor], Tensor]

MODES = ("auto", "whole", "chunked", "recurrent")
GUARDS = ("zero", "raise")
SHORTEST, LONGEST = 16, 256  # tokens of a chunk


class KernelMemory(NamedTuple):
    r"""All that linear attention keeps of the tokens before: \(S = \sum \phi(k) v^\top\) and \(z = \sum \phi(k)\)."""

    sums: Tensor  # (..., e, v)
    total: Tensor | None = None  # (..., e); None where nothing is divided by it


def kernel_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    alpha: Kernel,
    causal: bool = False,
    *,
    token_mask: ArrayLike | None = None,
    guard: str = "zero",
) -> Tensor:
    r"""\(h_i = \sum_j \alpha(q_i, k_j) v_j / \sum_j \alpha(q_i, k_j)\): attention by its definition. Book, E.13.1.

    >>> import wonderland as wl
    >>> q, k, v = wl.ones((5, 4)), wl.ones((7, 4)), wl.ones((7, 3))
    >>> dot = lambda x, y: wl.exp((x * y).sum(-1) / 2)  # self-attention
    >>> wl.nn.functional.kernel_attention(q, k, v, dot).shape
    (5, 3)

    `alpha` gives similarities (...) of vectors (..., c) whose leading axes broadcast; all pairs of them are computed,
    so this is for reference and for kernels without a finite feature map. `token_mask` (..., s) is true at real keys.
    Similarities may be negative: where those of a query do not have a positive sum there is no average, and the result
    is 0, or with `guard="raise"` an error (in compiled code 0).
    """
    name = "kernel_attention"
    q, k, v = _checked(name, query, key, value)
    weights = alpha(arrays.expand_dims(q, -2), arrays.expand_dims(k, -3))  # (..., t, s)
    if weights.shape[-2:] != (q.shape[-2], k.shape[-2]):
        raise ShapeError(
            f"{name}: alpha gives {weights.shape} for {q.shape[-2]} queries and {k.shape[-2]} keys.",
            "a function that sums over the last axis of both",
        )
    if token_mask is not None:
        real = _real(name, token_mask, k)
        weights, v = arrays.where(arrays.expand_dims(real, -2), weights, 0), _zeroed(v, real)
    if causal:
        weights = arrays.where(_past(*weights.shape[-2:]), weights, 0)
    return guarded_ratio(name, weights @ v, arrays.sum(weights, axis=-1, keepdims=True), guard)


def linear_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    feature_map: FeatureMap = elu_plus_one,
    causal: bool = False,
    normalize: bool = True,
    mode: str = "auto",
    *,
    token_mask: ArrayLike | None = None,
    chunk: int | None = None,
    guard: str = "zero",
) -> Tensor:
    r"""\(h_i = \phi(q_i)^\top \sum_j \phi(k_j) v_j^\top / \phi(q_i)^\top \sum_j \phi(k_j)\). Book, E.13.3 to E.13.9.

    >>> import wonderland as wl
    >>> q, k, v = wl.random.normal((2, 8, 100, 4)), wl.random.normal((2, 8, 100, 4)), wl.ones((2, 8, 100, 3))
    >>> h = wl.nn.functional.linear_attention(q, k, v, causal=True)
    >>> h.shape, bool(wl.allclose(h, 1.0, atol=1e-5))
    ((2, 8, 100, 3), True)

    Queries (..., t, c), keys (..., s, c) and values (..., s, v), whose features `feature_map` turns into e others. It
    is the attention of the kernel \(\alpha(x, y) = \phi(x) \cdot \phi(y)\), in time and memory that are linear in the
    tokens. With `causal` the sums go to j <= i, and without `normalize` nothing is divided.

    All modes give the same. "whole": both products for all tokens; with `causal` it forms a matrix (t, s).
    "chunked": the tokens in chunks, within which pairs are formed, and before which sums are. "recurrent": token
    by token, with a memory of e (v + 1) numbers. "auto": chunked if `causal`, else whole. A sum that is kept for each
    token would take n e v numbers; a `chunk` of C tokens takes n C + n e v / C, which is least for \(C=\sqrt{e v}\):
    the default is the power of two next to it, from 16 to 256.

    Kernels are positive definite, and that does not make them positive: odd polynomials and random Fourier features
    have negative values. Where the sum of a query's similarities is not above 0 the result is 0, or with
    `guard="raise"` an error (in compiled code 0). `token_mask` (..., s) is true at real keys.
    """
    name = "linear_attention"
    if mode not in MODES:
        raise InputError(f"{name}: mode={shown(mode)}.", f"one of {', '.join(MODES)}")
    q, k, v = _checked(name, query, key, value)
    if causal and q.shape[-2] != k.shape[-2]:
        raise ShapeError(f"{name}: causal, with queries {q.shape} and keys {k.shape}.", "as many of both")
    real = None if token_mask is None else _real(name, token_mask, k)
    if real is not None:  # before the features, where NaN might become something else
        k, v = _zeroed(k, real), _zeroed(v, real)
    h, _ = attend_features(name, feature_map(q), feature_map(k), v, real, causal, normalize, mode, chunk, guard)
    return h


def attend_features(
    name: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    real: Tensor | None,
    causal: bool,
    normalize: bool,
    mode: str = "auto",
    chunk: int | None = None,
    guard: str = "zero",
    start: KernelMemory | None = None,
) -> tuple[Tensor, KernelMemory]:
    """The same for features (..., t, e) that are there already, after what was read before; and all that was read."""
    if q.ndim < 2 or q.shape[-1] != k.shape[-1]:
        raise ShapeError(f"{name}: features {q.shape} of queries and {k.shape} of keys.", "a map (..., c) to (..., e)")
    if real is not None:
        k = _zeroed(k, real)
    width = v.shape[-1]
    if normalize:
        v = arrays.concat([v, arrays.ones((*v.shape[:-1], 1), dtype=v.dtype)], axis=-1)
    if start is None:
        before = arrays.zeros((*k.shape[:-2], k.shape[-1], v.shape[-1]), dtype=v.dtype)
    elif start.total is None:
        before = start.sums
    else:
        before = arrays.concat([start.sums, arrays.expand_dims(start.total, -1)], axis=-1)
    if not causal:
        after = before + arrays.swapaxes(k, -1, -2) @ v
        out = q @ after
    elif mode == "recurrent":
        out, after = _token_by_token(q, k, v, before)
    elif mode == "whole":
        out, after = _pairs(q, k, v, before)
    else:
        size = chunk_size(k.shape[-1], width) if chunk is None else as_int(name, "chunk", chunk, 1)
        out, after = _by_chunks(q, k, v, before, size)
    if not normalize:
        return out, KernelMemory(after)
    memory = KernelMemory(after[..., :width], after[..., width])
    return guarded_ratio(name, out[..., :width], out[..., width:], guard), memory


def chunk_size(e: int, v: int) -> int:
    r"""The power of two next to \(\sqrt{e v}\), within bounds.

    >>> [chunk_size(e, v) for e, v in [(4, 4), (64, 64), (2145, 64), (4096, 4096)]]
    [16, 64, 256, 256]
    """
    return min(LONGEST, max(SHORTEST, 1 << round(math.log2(max(1, e * v)) / 2)))


# --- the forms


def _past(t: int, s: int) -> Tensor:
    return arrays.arange(s) <= arrays.arange(t)[:, None]


def _pairs(q: Tensor, k: Tensor, v: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """All pairs of tokens, of which those in the past count."""
    weights = q @ arrays.swapaxes(k, -1, -2)
    weights = arrays.where(_past(*weights.shape[-2:]), weights, 0)
    return weights @ v + q @ before, before + arrays.swapaxes(k, -1, -2) @ v


def _by_chunks(q: Tensor, k: Tensor, v: Tensor, before: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Pairs within chunks, and the sums of all chunks before."""
    t = q.shape[-2]
    count = max(1, -(-t // size))
    if count == 1:
        return _pairs(q, k, v, before)
    q, k, v = (_cut(x, count, size) for x in (q, k, v))  # (..., count, size, features)
    parts = arrays.swapaxes(k, -1, -2) @ v  # (..., count, e, v)
    first = arrays.expand_dims(before, -3)
    sums = arrays.cumulative_sum(arrays.concat([first, parts], axis=-3), axis=-3)
    inner = arrays.where(_past(size, size), q @ arrays.swapaxes(k, -1, -2), 0) @ v
    out = inner + q @ sums[..., :-1, :, :]
    out = arrays.reshape(out, (*out.shape[:-3], count * size, out.shape[-1]))
    return out[..., :t, :], sums[..., -1, :, :]


def _cut(x: Tensor, count: int, size: int) -> Tensor:
    """(..., t, f) in chunks (..., count, size, f), the last one with zeros after it."""
    missing = count * size - x.shape[-2]
    if missing:
        x = arrays.concat([x, arrays.zeros((*x.shape[:-2], missing, x.shape[-1]), dtype=x.dtype)], axis=-2)
    return arrays.reshape(x, (*x.shape[:-2], count, size, x.shape[-1]))


def _token_by_token(q: Tensor, k: Tensor, v: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    def step(memory: Tensor, now: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        q, k, v = now
        memory = memory + arrays.expand_dims(k, -1) * arrays.expand_dims(v, -2)
        return memory, (arrays.expand_dims(q, -2) @ memory)[..., 0, :]

    after, out = scan(step, before, tuple(arrays.moveaxis(x, -2, 0) for x in (q, k, v)))
    return arrays.moveaxis(out, 0, -2), after


# --- what goes in, and what may go wrong


def _checked(name: str, query: ArrayLike, key: ArrayLike, value: ArrayLike) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = promote_inexact(name, query, key, value)
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            f"{name}: queries {q.shape}, keys {k.shape} and values {v.shape}.",
            "(..., t, c), (..., s, c) and (..., s, v)",
        )
    return q, k, v


def _real(name: str, token_mask: ArrayLike, k: Tensor) -> Tensor:
    real = as_tensor(name, token_mask)
    if real.dtype != dtypes.bool_ or real.shape[-1:] != k.shape[-2:-1] or real.ndim > k.ndim - 1:
        raise ShapeError(
            f"{name}: a token_mask {real.dtype}{list(real.shape)} for keys {k.shape}.",
            "bools (..., s), true where a key is real",
        )
    return real


def _zeroed(x: Tensor, real: Tensor) -> Tensor:
    return arrays.where(arrays.expand_dims(real, -1), x, 0)


def guarded_ratio(name: str, numerator: Tensor, denominator: Tensor, guard: str = "zero") -> Tensor:
    """numerator / denominator where that is positive, else 0 or an error.

    >>> import wonderland as wl
    >>> guarded_ratio("attention", wl.tensor([1.0, 1.0]), wl.tensor([4.0, -1e-9]))
    tensor([0.25, 0.  ])
    """
    if guard not in GUARDS:
        raise InputError(f"{name}: guard={shown(guard)}.", f"one of {', '.join(GUARDS)}")
    sound = denominator > 0
    if guard == "raise" and runs_in_python() and not bool(arrays.all(sound)):
        count = int(arrays.sum(~sound))
        raise InputError(
            f"{name}: the similarities of {count} queries have a sum that is not above 0.",
            "a positive feature map such as elu_plus_one, an even degree, normalize=False, or guard='zero'",
        )
    return arrays.where(sound, numerator / arrays.where(sound, denominator, 1), 0)
