"""Blocks of a model of sequences, one after another, that read on together."""

from __future__ import annotations

from collections.abc import Sequence

from ... import arrays
from ...arrays.conversion import as_real
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ..module.containers import ModuleList
from ..module.module import Module
from .cache import LayerCaches
from .reading import one_more, reads_on

__all__ = ["SequenceStack"]


class SequenceStack(Module):
    """Blocks one after another, and a last normalization: (batch, time, e) to the same. Book, sections 10.3.1 and 13.4.

    >>> import wonderland as wl
    >>> e = 8
    >>> blocks = [wl.nn.MixingBlock(wl.nn.MultiHeadAttention(e, 2, causal=True), e) for _ in range(3)]
    >>> stack = wl.nn.SequenceStack(blocks, wl.nn.LayerNorm(e))
    >>> y, cache = stack.extend(wl.ones((2, 5, e)))
    >>> y.shape, cache.lengths.tolist(), len(cache.layers)
    ((2, 5, 8), [5, 5], 3)

    The blocks are anything that takes `block(x, token_mask=...)`; if they have a cache, so has the stack.
    """

    def __init__(self, blocks: Sequence[Module], norm: Module | None = None) -> None:
        self.blocks = ModuleList(blocks)
        self.norm = norm

    def forward(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        h = as_real(self._describe(), x)
        for block in self.blocks:
            h = block(h, token_mask=token_mask, lengths=lengths)
        return self._normed(h)

    def new_cache(self, rows: int, capacity: int = 0) -> LayerCaches:
        """The caches of all blocks."""
        for block in self.blocks:
            if not reads_on(block):
                raise InputError(
                    f"{self._describe()}: a {type(block).__name__} does not read on.",
                    "blocks with new_cache, extend and step",
                )
        return LayerCaches(block.new_cache(rows, capacity) for block in self.blocks)

    def extend(
        self, x: ArrayLike, cache: LayerCaches | None = None, lengths: ArrayLike | None = None
    ) -> tuple[Tensor, LayerCaches]:
        """The results for further tokens (batch, t, e), of which `lengths` are real in each row, and the caches."""
        h = as_real(self._describe(), x)
        if h.ndim != 3:
            raise ShapeError(f"{self._describe()}: tokens of shape {h.shape}.", "(batch, time, features)")
        kept = self.new_cache(h.shape[0], h.shape[1]) if cache is None else cache
        if len(kept.layers) != len(self.blocks):
            raise InputError(f"{self._describe()}: {len(kept.layers)} caches for {len(self.blocks)} blocks.", "its own")
        for block, part in zip(self.blocks, kept.layers, strict=True):
            h, _ = block.extend(h, part, lengths)
        kept.advance(h.shape[1] if lengths is None else arrays.asarray(lengths))
        return self._normed(h), kept

    def step(self, x: ArrayLike, cache: LayerCaches | None = None) -> tuple[Tensor, LayerCaches]:
        """The result (batch, e) for one more token (batch, e), and the caches with it."""
        return one_more(self.extend, x, cache)

    def _normed(self, h: Tensor) -> Tensor:
        return h if self.norm is None else self.norm(h)
