"""A long sequence in pieces: the gradient cut between them, or computed again to save memory. Book, section 13.2.2."""

from __future__ import annotations

import math

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...transforms.checkpointing import checkpoint as checkpointed
from ..module.module import Module
from .cache import Cache
from .reading import ReadsOn, reads_on

__all__ = ["read_in_pieces"]


def read_in_pieces(
    layer: Module,
    x: ArrayLike,
    steps: int | None = None,
    *,
    cut: bool = False,
    checkpoint: bool = False,
    cache: Cache | None = None,
) -> Tensor:
    r"""`layer(x)` for sequences (rows, time, ...), read `steps` at a time with a cache. Book, section 13.2.2.

    >>> import wonderland as wl
    >>> layer, x = wl.models.EchoStateNetwork(1, 20), wl.random.normal((2, 9, 1))
    >>> bool(wl.allclose(wl.nn.read_in_pieces(layer, x, 4, cut=True), layer(x), atol=1e-6))
    True

    The results are those of the whole. With `cut` no gradient passes from a piece to the one before: truncated
    backpropagation through time, in which a result has gradients for the inputs of its own piece, at most steps - 1
    before it, and exactly none for others. With `checkpoint` only the states between the pieces are kept for the
    backward pass, which computes each piece again: n steps in pieces of k keep \(n/k + k\) states instead of n, least
    for \(k = \sqrt n\), which `steps=None` is; gradients are those of the whole. A `cache` is what came before; without
    one the sequences begin here. See `wl.train.Truncation` for training with steps between the pieces.
    """
    name = "read_in_pieces"
    if not reads_on(layer):
        raise InputError(
            f"{name}: a {type(layer).__name__} does not read on.", "a layer with new_cache, extend and step"
        )
    x = arrays.asarray(x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: an input of shape {x.shape}.", "sequences (rows, time, ...)")
    rows, time = x.shape[:2]
    size = max(1, math.isqrt(max(0, time - 1)) + 1) if steps is None else as_int(name, "steps", steps, 1)
    kept = layer.new_cache(rows, time) if cache is None else cache
    if cut:
        kept.cut()
    read = _again if checkpoint else _read
    parts = []
    for start in range(0, max(time, 1), size):
        if cut and start:
            kept.cut()
        parts.append(read(layer, kept, x[:, start : start + size]))
    return parts[0] if len(parts) == 1 else arrays.concat(parts, axis=1)


def _read(layer: ReadsOn, cache: Cache, x: Tensor) -> Tensor:
    return layer.extend(x, cache)[0]


_again = checkpointed(_read)
