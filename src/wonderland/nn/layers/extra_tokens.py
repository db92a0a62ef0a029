"""Trained tokens beside those of the data: class tokens and registers. Book, section 10.3.2.

A convolution has no place for them; attention works on sets, and takes in any further token.
"""

from __future__ import annotations

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int, as_number
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.continuous import normal
from ...random.streams import take_key
from ..module.lazy import at_once
from ..module.module import Module
from ..module.parameter import Held, Parameter
from ..sequences.token_masks import as_mask, as_sequence

__all__ = ["AppendTokens"]


class AppendTokens(Module):
    r"""\([X ; C]\), with `count` trained tokens C (count, e) after those of each sequence. Book, section 10.3.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.AppendTokens(1, 64)
    >>> h = layer(wl.ones((8, 10, 64)))
    >>> h.shape, layer.own(h).shape, layer.strip(h).shape
    ((8, 11, 64), (8, 1, 64), (8, 10, 64))

    One tensor `weight` serves all sequences of a batch, so its gradient is the sum over them. A class token is one
    whose result goes to the head, `own(h)[..., 0, :]`; registers are some whose results are thrown away: `strip(h)`.
    `prepend=True` puts them before the others, as BERT and the vision transformer do. `mask(token_mask)` is the mask of
    the longer sequences. They start from \(N(0, \sigma^2)\) with \(\sigma\) = `std`.
    """

    weight: Held[Parameter]

    def __init__(
        self,
        count: int,
        e: int,
        prepend: bool = False,
        std: float = 0.02,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.count, self.e = as_int("AppendTokens", "count", count, 0), as_int("AppendTokens", "e", e, 1)
        self.prepend = bool(prepend)
        key = take_key("AppendTokens", key)
        with at_once(key):
            start = normal((self.count, self.e), key=key, dtype=dtypes.default_float if dtype is None else dtype)
            self.weight = Parameter(start * float(as_number("AppendTokens", "std", std)))

    def forward(self, x: ArrayLike) -> Tensor:
        x = as_sequence(self, x, self.e)
        own = arrays.broadcast_to(arrays.astype(self.weight, x.dtype), (*x.shape[:-2], self.count, self.e))
        return arrays.concat([own, x] if self.prepend else [x, own], axis=-2)

    def mask(self, token_mask: ArrayLike | None) -> Tensor | None:
        """The mask (..., n + count) for one of (..., n): the tokens of this layer are real."""
        if token_mask is None:
            return None
        real = as_mask(type(self).__name__, token_mask, arrays.asarray(token_mask).shape)
        assert real is not None
        own = arrays.full((*real.shape[:-1], self.count), True)
        return arrays.concat([own, real] if self.prepend else [real, own], axis=-1)

    def own(self, h: Tensor) -> Tensor:
        """What became of the tokens of this layer: (..., count, e)."""
        n = self._others(h)
        return h[..., : self.count, :] if self.prepend else h[..., n:, :]

    def strip(self, h: Tensor) -> Tensor:
        """What became of the other tokens: (..., n, e)."""
        n = self._others(h)
        return h[..., self.count :, :] if self.prepend else h[..., :n, :]

    def _others(self, h: Tensor) -> int:
        if h.ndim < 2 or h.shape[-2] < self.count:
            raise ShapeError(f"{self._describe()}: tokens of shape {h.shape}.", f"(..., n + {self.count}, features)")
        return h.shape[-2] - self.count

    def extra_repr(self) -> str:
        return ", ".join([f"{self.count}, {self.e}", *self._changed(prepend=False)])
