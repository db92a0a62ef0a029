"""The base of layers that carry a state along a sequence: written once, called in three ways that agree.

    layer(x, token_mask=None, lengths=None)      the whole, (..., time, features)
    layer.extend(x, cache, lengths=None)         some more tokens, (rows, t, features)
    layer.step(x_t, cache)                       one more, (rows, features)

A subclass says what its state looks like and how it runs over tokens; this file takes care of masks, caches and errors.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from ... import arrays
from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ..module.module import Module
from .cache import StateCache
from .reading import one_more
from .token_masks import as_lengths, as_sequence, as_token_mask, silenced

__all__ = ["StateLayer"]

State: TypeAlias = dict[str, Tensor]  # (rows, ...) each


class StateLayer(Module):
    r"""\(s_i = f(s_{i-1}, x_i),\ h_i = g(s_i, x_i)\): from tokens to tokens, with a state of a fixed size. Book, 13.2.

    A subclass writes `state_shapes` and `run`, and `start` if a sequence does not begin with zeros. Here is a sum:

    >>> import wonderland as wl
    >>> class Sum(wl.nn.StateLayer):
    ...     def state_shapes(self):
    ...         return {"total": (3,)}
    ...     def run(self, x, state, real):
    ...         y = state["total"][:, None] + wl.cumsum(x, axis=1)
    ...         return y, {"total": y[:, -1]}
    >>> layer = Sum()
    >>> y, cache = layer.extend(wl.ones((2, 5, 3)))
    >>> layer.step(wl.ones((2, 3)), cache)[0].tolist()
    [[6.0, 6.0, 6.0], [6.0, 6.0, 6.0]]

    What is padded is zero when `run` sees it, and must leave the state as it is; what comes out for it does not matter.
    """

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the parts of the state, without the axis of the rows."""
        raise NotImplementedError

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        """Results (rows, t, out) for tokens (rows, t, features), and the state after the last of them.

        `real` (rows, t) is False at padding, None if there is none.
        """
        raise NotImplementedError

    def start(self, rows: int) -> State:
        """The state before a sequence begins: zeros of the dtype of the parameters."""
        kind = self.state_dtype()
        return {name: arrays.zeros((rows, *shape), dtype=kind) for name, shape in self.state_shapes().items()}

    def state_dtype(self) -> DType:
        """The dtype of the state, by default that of the first parameter of real or complex numbers."""
        return first_dtype(self)

    def features(self) -> int | None:
        """The number of features of a token, if the layer is tied to one."""
        return None

    # --- the whole

    def forward(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        x = as_sequence(self, x, self.features())
        lead = x.shape[:-1]  # (..., time)
        real = as_token_mask(self._describe(), lead, token_mask, lengths)
        rows = (math.prod(lead[:-1]), lead[-1])
        x = arrays.reshape(silenced(x, real), (*rows, x.shape[-1]))
        y, _ = self._carry(x, self.start(rows[0]), None if real is None else arrays.reshape(real, rows))
        return silenced(arrays.reshape(y, (*lead, *y.shape[2:])), real)

    # --- reading on

    def new_cache(self, rows: int, capacity: int = 0) -> StateCache:
        """The state before sequences begin; it holds any `capacity`."""
        return StateCache(rows, **self.start(rows))

    def extend(
        self, x: ArrayLike, cache: StateCache | None = None, lengths: ArrayLike | None = None
    ) -> tuple[Tensor, StateCache]:
        """The results (rows, t, out) for further tokens, of which `lengths` are real in each row, and the cache."""
        x = as_sequence(self, x, self.features())
        if x.ndim != 3:
            raise ShapeError(f"{self._describe()}: tokens of shape {x.shape}.", "(rows, time, features)")
        rows, time = x.shape[:2]
        kept = self.new_cache(rows) if cache is None else cache
        self._check_cache(kept, rows)
        real = counts = None
        if lengths is not None:
            counts = as_lengths(self._describe(), lengths, (rows, time))
            real = arrays.arange(time) < arrays.expand_dims(counts, -1)
        y, after = self._carry(silenced(x, real), kept.state, real)
        for name, value in after.items():
            setattr(kept, name, arrays.astype(value, getattr(kept, name).dtype))
        kept.advance(time if counts is None else counts)
        return silenced(y, real), kept

    def step(self, x: ArrayLike, cache: StateCache | None = None) -> tuple[Tensor, StateCache]:
        """The result (rows, out) for one more token (rows, features), and the cache with it."""
        return one_more(self.extend, x, cache)

    def _carry(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        """`run`, with a state as wide as the numbers that meet it."""
        wide = {name: arrays.astype(value, dtypes.promote_types(value.dtype, x.dtype)) for name, value in state.items()}
        return self.run(x, wide, real) if x.shape[1] else (self._nothing(x, wide), state)

    def _nothing(self, x: Tensor, state: State) -> Tensor:
        """The results for no tokens, of which the shape must be known: that of one token, cut off."""
        one = arrays.zeros((x.shape[0], 1, x.shape[2]), dtype=x.dtype)
        return self.run(one, state, None)[0][:, :0]

    def _check_cache(self, cache: StateCache, rows: int) -> None:
        wanted = {name: (rows, *shape) for name, shape in self.state_shapes().items()}
        if not isinstance(cache, StateCache):
            raise InputError(f"{self._describe()}: a {type(cache).__name__} as cache.", "layer.new_cache(rows)")
        found = {name: cell.shape for name, cell in cache._kept()}
        if found != wanted:
            raise ShapeError(
                f"{self._describe()}: a cache of {found} for {rows} rows.",
                f"that of a call before, {wanted}, or None",
            )


def first_dtype(module: Module) -> DType:
    """The dtype of a module's first parameter of real or complex numbers, or the default if it has none."""
    found = (cell.dtype for cell in module.parameters() if dtypes.is_inexact(cell.dtype))
    return next(found, dtypes.default_float)
