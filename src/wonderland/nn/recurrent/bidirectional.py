"""Sequences read in both directions. Book, section 13.2.1; notes, section 5.1.2."""

from __future__ import annotations

from ... import arrays
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..module.module import Module
from ..sequences.state_layer import StateLayer
from ..sequences.token_masks import as_sequence, as_token_mask
from .recurrent import Recurrent, token_at_end

__all__ = ["Bidirectional"]


class Bidirectional(Module):
    """Two layers, one from left to right and one from right to left, side by side: (..., time, 2o). Book, 13.2.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.Bidirectional(wl.nn.Recurrent(wl.nn.GRUCell(3, 5)))
    >>> layer(wl.random.normal((2, 7, 3)), lengths=[7, 4]).shape
    (2, 7, 10)

    `layer` is any that carries a state (`nn.StateLayer`), or a cell, which `nn.Recurrent` runs. The other direction is
    a copy with parameters of its own, drawn anew with `key`; for a layer that cannot draw its own (`reset_parameters`)
    give the second one as `backward`. Results stand at the places of their tokens. Every one of them depends on every
    token, so nothing can read on, and there is no cache. Padding enters neither direction: the backward one begins at
    the last real token.
    """

    def __init__(
        self, layer: StateLayer | Module, backward: StateLayer | Module | None = None, key: KeyLike = None
    ) -> None:
        self.ahead = _as_layer(layer)
        self.back = _drawn_anew(self.ahead, key) if backward is None else _as_layer(backward)
        if self.ahead is self.back or set(map(id, self.ahead.parameters())) & set(map(id, self.back.parameters())):
            raise InputError("Bidirectional: one layer for both directions.", "two layers with parameters of their own")

    def forward(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        x = as_sequence(self, x, self.ahead.features())
        real = as_token_mask(self._describe(), x.shape[:-1], token_mask, lengths)
        turned = None if real is None else arrays.flip(real, axis=-1)
        ahead = self.ahead(x, token_mask=real)
        back = self.back(arrays.flip(x, axis=-2), token_mask=turned)
        return arrays.concat([ahead, arrays.flip(back, axis=-2)], axis=-1)

    def thought_vector(
        self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> Tensor:
        r"""\(h_\tau\) of one direction beside \(h_1\) of the other, where each has read everything. Notes, 5.3.

        >>> import wonderland as wl
        >>> layer = wl.nn.Bidirectional(wl.nn.GRUCell(3, 5))
        >>> layer.thought_vector(wl.ones((2, 7, 3)), lengths=[7, 4]).shape
        (2, 10)
        """
        x = as_sequence(self, x, self.ahead.features())
        real = as_token_mask(self._describe(), x.shape[:-1], token_mask, lengths)
        turned = None if real is None else arrays.flip(real, axis=-1)
        ahead = token_at_end(self.ahead, x, real, None)
        back = token_at_end(self.back, arrays.flip(x, axis=-2), turned, None)
        return arrays.concat([ahead, back], axis=-1)


def _as_layer(layer: StateLayer | Module) -> StateLayer:
    if isinstance(layer, StateLayer):
        return layer
    return Recurrent(layer)  # type: ignore[arg-type]  # which says what is no cell


def _drawn_anew(layer: StateLayer, key: KeyLike) -> StateLayer:
    """A copy with other parameters; those of layers that have none to draw, such as normalizations, stay."""
    other = layer.copy()
    own = {id(cell) for module in other.modules() if hasattr(module, "reset_parameters") for cell in _cells(module)}
    left = [path for path, cell in other.named_parameters() if id(cell) not in own]
    if left:
        raise InputError(
            f"Bidirectional: a {type(layer).__name__} cannot draw parameters of its own, {left[0]!r} first of all.",
            "Bidirectional(layer, backward) with a second layer",
        )
    drawing = [module for module in other.modules() if hasattr(module, "reset_parameters")]
    for module, part in zip(drawing, split(take_key("Bidirectional", key), max(1, len(drawing))), strict=False):
        module.reset_parameters(part)
    return other


def _cells(module: Module) -> list[object]:
    return list(module.parameters())
