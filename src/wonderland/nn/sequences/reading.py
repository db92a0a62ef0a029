"""What it means that a layer reads on: it keeps a `Cache`, and takes some more tokens, or one more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeGuard, TypeVar

from ... import arrays
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from .cache import Cache

__all__ = ["ReadsOn", "reads_on"]

Before = TypeVar("Before")
After = TypeVar("After")


class ReadsOn(Protocol):
    """A layer of sequences with a cache: attention that is causal, a recurrence, a block of them."""

    def new_cache(self, rows: int, capacity: int = 0, /) -> Cache: ...
    def extend(self, x: Tensor, cache: Cache, lengths: ArrayLike | None = None, /) -> tuple[Tensor, Cache]: ...
    def step(self, x: Tensor, cache: Cache, /) -> tuple[Tensor, Cache]: ...


def reads_on(layer: object) -> TypeGuard[ReadsOn]:
    """Whether a layer has a cache.

    >>> import wonderland as wl
    >>> reads_on(wl.nn.MultiHeadAttention(8, 2, causal=True)), reads_on(wl.nn.Linear(8, 8))
    (True, False)
    """
    return all(callable(getattr(layer, name, None)) for name in ("new_cache", "extend", "step"))


def one_more(
    extend: Callable[[Tensor, Before], tuple[Tensor, After]], token: ArrayLike, cache: Before
) -> tuple[Tensor, After]:
    """A step: a token for each row is a sequence of length 1, and so is what comes of it.

    >>> import wonderland as wl
    >>> layer = wl.nn.MultiHeadAttention(8, 2, causal=True)
    >>> one_more(layer.extend, wl.ones((3, 8)), None)[0].shape
    (3, 8)
    """
    x = arrays.asarray(token)
    y, after = extend(arrays.expand_dims(x, 1) if x.ndim else x, cache)
    return y[:, 0], after
