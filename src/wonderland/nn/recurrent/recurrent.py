"""Any cell along sequences, whole or token by token. Book, section 13.2.1."""

from __future__ import annotations

import math
from typing import NamedTuple

from ... import arrays
from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...transforms.control.loops import scan
from ..sequences.state_layer import StateLayer
from ..sequences.token_masks import as_sequence, as_token_mask, silenced
from .cell import RecurrentCell, Shape, State, StateLike, as_state

__all__ = ["Recurrent", "Unrolled"]


class Unrolled(NamedTuple):
    """A recurrence that was run: its results (..., time, out), the state after the last real step, and its gates."""

    outputs: Tensor
    state: Tensor | tuple[Tensor, ...]
    gates: dict[str, Tensor]


class Recurrent(StateLayer):
    r"""\(s_i = f(s_{i-1}, x_i),\ h_i = g(s_i, x_i)\) for any cell: (..., time, c) to (..., time, o). Book, D.13.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.Recurrent(wl.nn.GRUCell(3, 5))
    >>> x = wl.random.normal((2, 7, 3))
    >>> layer(x, lengths=[7, 4]).shape
    (2, 7, 5)
    >>> y, cache = layer.extend(x[:, :6])
    >>> y, cache = layer.step(x[:, 6], cache)
    >>> bool(wl.allclose(y, layer(x)[:, 6], atol=1e-6))
    True

    The cell is an `nn.RecurrentCell`: `RNNCell`, `GRUCell`, `LSTMCell`, `ElmanCell`, `LiGRUCell`, `FunctionCell`, or
    one of your own. It is a layer like all that carry a state (`nn.StateLayer`): padding on either side leaves the
    state as it is and gives zeros, so a sequence without tokens keeps its first state; reading on takes constant
    memory. One after another in an `nn.SequenceStack` they are a deep network; `nn.Bidirectional` runs both ways.
    """

    def __init__(self, cell: RecurrentCell) -> None:
        if not isinstance(cell, RecurrentCell):
            raise InputError(
                f"Recurrent: a {type(cell).__name__} is no cell.",
                "nn.RNNCell(3, 5), for example; nn.FunctionCell(f, g, state_size) for functions; nn.RNN is one already",
            )
        self.cell = cell

    def state_shapes(self) -> dict[str, Shape]:
        return self.cell.state_shapes()

    def features(self) -> int | None:
        return self.cell.features()

    def state_dtype(self) -> DType:
        return self.cell.state_dtype()

    def multiply_adds(self, args: tuple[Tensor, ...], output: Tensor) -> int | None:
        return self.cell.multiply_adds(args, output)

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        y, after, _ = self._scan(x, state, real, False)
        return y, after

    def _scan(
        self, x: Tensor, state: State, real: Tensor | None, gates: bool
    ) -> tuple[Tensor, State, dict[str, Tensor]]:
        """Results (rows, t, out), the last state, and gates (rows, t, n) if they are asked for."""
        x = arrays.swapaxes(x, 0, 1)  # before the product, which makes more of it
        u = self.cell.prepare(x)
        seen = None if real is None else arrays.swapaxes(real, 0, 1)

        def body(before: State, now: tuple[Tensor, Tensor | None]) -> tuple[State, tuple[Tensor, dict[str, Tensor]]]:
            u, is_real = now
            step = self.cell.advance(u, before)
            after = step.state if is_real is None else kept_where(is_real, step.state, before)
            return after, (step.kept, step.gates if gates else {})

        last, (kept, found) = scan(body, state, (u, seen))
        y = arrays.swapaxes(self.cell.finish(kept, x), 0, 1)
        return y, last, {name: silenced(arrays.swapaxes(gate, 0, 1), real) for name, gate in found.items()}

    def unroll(
        self,
        x: ArrayLike,
        state: StateLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        gates: bool = False,
    ) -> Unrolled:
        r"""The results from a state of your own, with the state after the last real step; gradients reach both.

        >>> import wonderland as wl
        >>> layer = wl.nn.Recurrent(wl.nn.LSTMCell(3, 5))
        >>> y, (h, c), gates = layer.unroll(wl.ones((2, 7, 3)), lengths=[7, 4], gates=True)
        >>> h.shape, c.shape, gates["f"].shape
        ((2, 5), (2, 5), (2, 7, 5))
        >>> y, state, _ = layer.unroll(wl.ones((2, 3, 3)), (h, c))

        States are those of `cell(x_t, state)`: a tensor (..., e), or a tuple of several. With `gates` the gates of all
        steps come along, (..., time, e), zeros at padding.
        """
        x = as_sequence(self, x, self.features())
        lead = x.shape[:-1]
        real = as_token_mask(self._describe(), lead, token_mask, lengths)
        parts = as_state(self.cell, state, lead[:-1], dtypes.promote_types(x.dtype, self.state_dtype()))
        rows = (math.prod(lead[:-1]), lead[-1])
        flat = {name: arrays.reshape(part, (rows[0], *part.shape[len(lead) - 1 :])) for name, part in parts.items()}
        tokens = arrays.reshape(silenced(x, real), (*rows, x.shape[-1]))
        seen = None if real is None else arrays.reshape(real, rows)
        y, last, found = self._scan(tokens, flat, seen, gates)
        ends = {name: arrays.reshape(part, (*lead[:-1], *part.shape[1:])) for name, part in last.items()}
        y = silenced(arrays.reshape(y, (*lead, *y.shape[2:])), real)
        shaped = {name: arrays.reshape(gate, (*lead, *gate.shape[2:])) for name, gate in found.items()}
        return Unrolled(y, self.cell.public(ends), shaped)

    def final_state(
        self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> Tensor | tuple[Tensor, ...]:
        r"""\(s_\tau\), the state after the last real step of each sequence. Notes, section 5.3.

        >>> import wonderland as wl
        >>> layer = wl.nn.Recurrent(wl.nn.RNNCell(3, 5))
        >>> layer.final_state(wl.ones((2, 7, 3)), lengths=[7, 4]).shape
        (2, 5)
        """
        return self.unroll(x, None, token_mask, lengths).state

    def thought_vector(
        self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> Tensor:
        r"""\(h_\tau\), what comes out at the last real step: a sequence as one vector (..., o). Notes, section 5.3.

        >>> import wonderland as wl
        >>> layer = wl.nn.Recurrent(wl.nn.LSTMCell(3, 5))
        >>> layer.thought_vector(wl.ones((2, 7, 3)), lengths=[7, 4]).shape
        (2, 5)

        A sequence without tokens gives zeros.
        """
        return token_at_end(self, x, token_mask, lengths)

    def gates(
        self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> dict[str, Tensor]:
        """The gates of all steps by name, (..., time, e) each, from 0 to 1 and 0 at padding. Book, section 13.2.3.

        >>> import wonderland as wl
        >>> gates = wl.nn.Recurrent(wl.nn.GRUCell(3, 5)).gates(wl.ones((2, 7, 3)))
        >>> {name: gate.shape for name, gate in gates.items()}
        {'r': (2, 7, 5), 'z': (2, 7, 5)}
        """
        return self.unroll(x, None, token_mask, lengths, gates=True).gates


def kept_where(real: Tensor, after: State, before: State) -> State:
    """The state after a step in the rows (rows,) where the step is real, and as it was in the others."""
    return {
        name: arrays.where(arrays.reshape(real, (*real.shape, *[1] * (part.ndim - 1))), part, before[name])
        for name, part in after.items()
    }


def end_places(real: Tensor) -> tuple[Tensor, Tensor]:
    """Where the first and the last real token of sequences (..., time) stand; 0 and the last if there is none."""
    time = real.shape[-1]
    found = arrays.astype(real, dtypes.int64)
    return arrays.argmax(found, axis=-1), time - 1 - arrays.argmax(arrays.flip(found, axis=-1), axis=-1)


def token_at_end(
    layer: StateLayer, x: ArrayLike, token_mask: ArrayLike | None, lengths: ArrayLike | None, first: bool = False
) -> Tensor:
    """What a layer gives at the last real token of each sequence, or at the first: (..., out)."""
    y = layer(x, token_mask=token_mask, lengths=lengths)
    if not y.shape[-2]:
        return arrays.zeros((*y.shape[:-2], y.shape[-1]), dtype=y.dtype)
    real = as_token_mask(layer._describe(), y.shape[:-1], token_mask, lengths)
    if real is None:
        return y[..., 0 if first else -1, :]
    place = end_places(real)[0 if first else 1]  # of no tokens, some padding, which is 0
    return arrays.take_along_axis(y, place[..., None, None], axis=-2)[..., 0, :]
