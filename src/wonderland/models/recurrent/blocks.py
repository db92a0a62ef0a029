"""Recurrent layers by name, and the block that stacks of them are made of. Book, section 13.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ... import arrays
from ...core.arguments import as_int, shown
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.layers.dropout import Dropout
from ...nn.layers.normalization import RMSNorm
from ...nn.module.module import Module
from ...nn.recurrent.cell import RecurrentCell
from ...nn.recurrent.cells import GRUCell, LSTMCell, RNNCell
from ...nn.recurrent.recurrent import Recurrent
from ...nn.sequences.cache import StateCache
from ...nn.sequences.reading import one_more
from ...nn.sequences.stack import SequenceStack
from ...nn.sequences.state_layer import State, StateLayer
from ...nn.sequences.token_masks import as_sequence, as_token_mask, silenced
from ...random.keys import split
from ...random.streams import take_key

__all__ = ["RecurrentBlock", "recurrent_layer", "recurrent_stack"]

CellLike: TypeAlias = "str | Callable[..., StateLayer]"


CELLS: dict[str, Callable[..., RecurrentCell]] = {"rnn": RNNCell, "gru": GRUCell, "lstm": LSTMCell}


def recurrent_layer(
    cell: CellLike, input_size: int, hidden_size: int, dtype: DTypeLike | None = None, key: KeyLike = None
) -> StateLayer:
    """A layer that carries a state, by the name of its cell: "rnn", "gru" or "lstm"; (..., time, in) to (..., hidden).

    >>> import wonderland as wl
    >>> recurrent_layer("gru", 3, 5)(wl.ones((2, 7, 3))).shape
    (2, 7, 5)

    `cell` may also be a function `f(input_size, hidden_size, dtype=, key=)` that gives such a layer.
    """
    if callable(cell):
        return cell(input_size, hidden_size, dtype=dtype, key=key)
    if cell not in CELLS:
        raise InputError(f"there is no cell {shown(cell)}.", f"{', '.join(map(repr, CELLS))} or a function of sizes")
    return Recurrent(CELLS[cell](input_size, hidden_size, dtype=dtype, key=key))


def one_step(layer: StateLayer, x: Tensor, state: State) -> tuple[Tensor, State]:
    """The result (rows, out) and the state after one more token (rows, in): for loops around a layer."""
    if isinstance(layer, Recurrent):
        step = layer.cell.advance(layer.cell.prepare(x), state)
        return layer.cell.finish(step.kept, x), step.state
    y, after = layer.run(arrays.expand_dims(x, 1), state, None)
    return y[:, 0], after


class RecurrentBlock(Module):
    r"""\(Y = \mathrm{dropout}(R(X))\), or with `residual` \(X + \mathrm{dropout}(R(\mathrm{norm}(X)))\). Book, 13.2.

    >>> import wonderland as wl
    >>> from wonderland.models.recurrent import recurrent_layer
    >>> block = wl.models.RecurrentBlock(recurrent_layer("lstm", 4, 4), 4, dropout=0.1, residual=True)
    >>> y, cache = block.extend(wl.ones((2, 3, 4)))
    >>> block.step(wl.ones((2, 4)), cache)[0].shape
    (2, 4)

    R is a layer that carries a state, for inputs of e features. Around a sum it keeps their number; the norm is that of
    `RMSNorm`. Padded tokens come out as zeros.
    """

    def __init__(
        self,
        layer: StateLayer,
        e: int,
        dropout: float = 0.0,
        residual: bool = False,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.e = as_int("RecurrentBlock", "e", e, 1)
        self.layer = layer
        self.norm = RMSNorm(self.e, dtype=dtype) if residual else None
        self.dropout = Dropout(dropout) if dropout else None

    def forward(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        x = as_sequence(self, x, self.e)
        real = as_token_mask(self._describe(), x.shape[:-1], token_mask, lengths)
        x = silenced(x, real)
        return silenced(self._around(x, self.layer(self._normed(x), token_mask=real)), real)

    def _normed(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)

    def _around(self, x: Tensor, y: Tensor) -> Tensor:
        y = y if self.dropout is None else self.dropout(y)
        return y if self.norm is None else x + y

    def new_cache(self, rows: int, capacity: int = 0) -> StateCache:
        """The cache of its layer."""
        return self.layer.new_cache(rows, capacity)

    def extend(
        self, x: ArrayLike, cache: StateCache | None = None, lengths: ArrayLike | None = None
    ) -> tuple[Tensor, StateCache]:
        """The results (batch, t, ...) for further tokens, of which `lengths` are real in each row, and the cache."""
        x = as_sequence(self, x, self.e)
        kept = self.new_cache(x.shape[0], x.shape[1]) if cache is None else cache
        real = as_token_mask(self._describe(), x.shape[:-1], None, lengths)
        x = silenced(x, real)
        y, kept = self.layer.extend(self._normed(x), kept, lengths)
        return silenced(self._around(x, y), real), kept

    def step(self, x: ArrayLike, cache: StateCache | None = None) -> tuple[Tensor, StateCache]:
        """The result for one more token (batch, e), and the cache with it."""
        return one_more(self.extend, x, cache)


def recurrent_stack(
    name: str,
    cell: CellLike,
    sizes: tuple[int, ...],
    dropout: float = 0.0,
    residual: bool = False,
    dtype: DTypeLike | None = None,
    key: KeyLike = None,
) -> SequenceStack:
    """Recurrent layers one after another: `sizes` are the features before, between and after them.

    >>> recurrent_stack("RNNLanguageModel", "gru", (3, 5, 5)).num_parameters()  # 3 (15 + 25 + 10) + 3 (25 + 25 + 10)
    330
    """
    depth = len(sizes) - 1
    if residual and len(set(sizes)) > 1:
        raise InputError(f"{name}: sums around layers of {list(sizes)} features.", "equal sizes, or residual=False")
    blocks = [
        RecurrentBlock(recurrent_layer(cell, sizes[i], sizes[i + 1], dtype, k), sizes[i], dropout, residual, dtype)
        for i, k in enumerate(split(take_key(name, key), max(depth, 1))[:depth])
    ]
    return SequenceStack(blocks, RMSNorm(sizes[-1], dtype=dtype) if residual else None)
