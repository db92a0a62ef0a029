"""What it means that a layer reads on: it keeps a `Cache`, and takes some more tokens, or one more."""

from __future__ import annotations

from typing import Protocol, TypeGuard

from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from .cache import Cache

__all__ = ["ReadsOn", "reads_on"]


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
