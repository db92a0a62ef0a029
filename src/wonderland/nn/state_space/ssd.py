r"""Mamba-2's recurrence, one decay for each head: step by step, or by chunks as products of matrices.

Within a chunk it is attention without softmax, \((C B^\top \odot L) X\) with the decays between two tokens in L;
between chunks it is a recurrence of their states. Book, section 13.4.3 (the extensions of Mamba).
"""

from __future__ import annotations

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...transforms.control.loops import scan

__all__ = ["ssd"]

MODES = ("chunked", "loop")


def ssd(
    x: ArrayLike,
    delta: ArrayLike,
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    D: ArrayLike | None = None,
    start: ArrayLike | None = None,
    *,
    chunk: int = 64,
    mode: str = "chunked",
) -> tuple[Tensor, Tensor]:
    r"""\(S_i = e^{\Delta_i A} S_{i-1} + \Delta_i x_i B_i^\top,\; y_i = S_i C_i + D x_i\) for each head.

    >>> import wonderland as wl
    >>> x, delta = wl.ones((2, 5, 4, 8)), wl.ones((2, 5, 4))  # (rows, time, heads, p), (rows, time, heads)
    >>> B = C = wl.ones((2, 5, 1, 16))  # (rows, time, groups, n)
    >>> y, state = wl.nn.ssd(x, delta, -wl.ones(4), B, C)
    >>> y.shape, state.shape
    ((2, 5, 4, 8), (2, 4, 8, 16))

    `A` (heads,) is negative, `D` (heads,). Heads share the B and C of their group. With `mode="chunked"` chunks of
    `chunk` tokens are products of matrices and the states of their ends a short recurrence: n c (n + p) products for n
    tokens instead of 2 n p n' ones in n steps; "loop" goes step by step. Both give the same, and the state after the
    last token.
    """
    name = "ssd"
    if mode not in MODES:
        raise InputError(f"{name}: mode={mode!r}.", "'chunked' or 'loop'")
    x, delta, A, B, C = (arrays.asarray(value) for value in (x, delta, A, B, C))
    shapes = [t.shape for t in (x, delta, A, B, C)]
    remedy = "(b, t, h, p), (b, t, h), (h,), (b, t, g, n) twice, with g that divides h"
    if x.ndim != 4 or B.ndim != 4:
        raise ShapeError(f"{name}: x, delta, A, B, C of shapes {shapes}.", remedy)
    (b, t, h, p), (g, n) = x.shape, B.shape[2:]
    if shapes[1:] != [(b, t, h), (h,), (b, t, g, n), (b, t, g, n)] or not g or h % g:
        raise ShapeError(f"{name}: x, delta, A, B, C of shapes {shapes}.", remedy)
    kind = dtypes.promote_types(dtypes.promote_types(x.dtype, delta.dtype), A.dtype)
    first = arrays.zeros((b, h, p, n), dtype=kind) if start is None else arrays.astype(arrays.asarray(start), kind)
    if first.shape != (b, h, p, n):
        raise ShapeError(f"{name}: a start of shape {first.shape}.", f"{(b, h, p, n)}")
    # heads by groups, so that B and C are not repeated
    grouped = (
        arrays.reshape(x * delta[..., None], (b, t, g, h // g, p)),
        arrays.reshape(delta * A, (b, t, g, h // g)),
        arrays.reshape(first, (b, g, h // g, p, n)),
    )
    if mode == "loop" or t < 2:
        y, last = _loop(*grouped, B, C)
    else:
        y, last = _chunked(*grouped, B, C, min(as_int(name, "chunk", chunk, 1), t))
    y = arrays.reshape(y, (b, t, h, p))
    y = y if D is None else y + arrays.asarray(D)[:, None] * x
    return y, arrays.reshape(last, (b, h, p, n))


def _loop(x: Tensor, logs: Tensor, first: Tensor, B: Tensor, C: Tensor) -> tuple[Tensor, Tensor]:
    def step(s: Tensor, now: tuple[Tensor, Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        u, log, into, out = now  # (b, g, k, p), (b, g, k), (b, g, n) twice
        s = arrays.exp(log)[..., None, None] * s + u[..., None] * into[:, :, None, None]
        return s, arrays.sum(s * out[:, :, None, None], axis=-1)

    last, y = scan(step, first, tuple(arrays.swapaxes(part, 0, 1) for part in (x, logs, B, C)))
    return arrays.swapaxes(y, 0, 1), last


def _chunked(x: Tensor, logs: Tensor, first: Tensor, B: Tensor, C: Tensor, size: int) -> tuple[Tensor, Tensor]:
    t = x.shape[1]
    count = -(-t // size)

    def cut(part: Tensor) -> Tensor:
        """(b, t, ...) to (b, chunks, size, ...); zeros at the end have no decay and no input."""
        part = arrays.pad(part, [(0, 0), (0, count * size - t), *[(0, 0)] * (part.ndim - 2)])
        return arrays.reshape(part, (part.shape[0], count, size, *part.shape[2:]))

    x, logs, B, C = (cut(part) for part in (x, logs, B, C))
    past = arrays.cumsum(logs, axis=2)  # (b, c, l, g, k): the logarithm of the decay since the chunk began
    seen = arrays.tril(arrays.ones((size, size), dtype=dtypes.bool_))[:, :, None, None]
    # differences of later and earlier sums are not positive; those of the others, which might overflow, are left out
    apart = arrays.where(seen, past[:, :, :, None] - past[:, :, None], -arrays.inf)
    scores = arrays.einsum("bclgn,bcmgn->bclmg", C, B)
    y = arrays.einsum("bclmgk,bcmgkp->bclgkp", scores[..., None] * arrays.exp(apart), x)
    left = arrays.exp(past[:, :, -1:] - past)  # what of a token is there at the end of its chunk
    made = arrays.einsum("bcmgn,bcmgkp->bcgkpn", B, x * left[..., None])
    whole = arrays.exp(past[:, :, -1])  # (b, c, g, k)

    def step(s: Tensor, now: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return now[0][..., None, None] * s + now[1], s

    last, before = scan(step, first, (arrays.swapaxes(whole, 0, 1), arrays.swapaxes(made, 0, 1)))
    carried = arrays.einsum("bclgn,bcgkpn->bclgkp", C, arrays.swapaxes(before, 0, 1))
    y = y + carried * arrays.exp(past)[..., None]
    return arrays.reshape(y, (y.shape[0], count * size, *y.shape[3:]))[:, :t], last
