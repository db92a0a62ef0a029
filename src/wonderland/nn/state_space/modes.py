r"""What linear systems that do not change with time share: four ways to compute the same, chosen by a stated rule.

    recurrence    s_i = A s_{i-1} + B x_i, step after step
    closed        s_i = sum over j <= i of A^(i-j) B x_j, all pairs of tokens: a reference
    convolution   the same sum with spectra, n log n
    scan          all prefixes of an associative operator, about 2 log2(n) passes over the whole

Book, sections 13.3.1 and 13.3.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from ... import arrays, fft
from ...core import dtypes
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...transforms.control.loops import runs_in_python
from ..functional.fft_convolution import fast_size
from ..functional.linear_recurrence import linear_recurrence
from ..sequences.state_layer import State, StateLayer
from ..sequences.token_masks import as_sequence, as_token_mask, silenced
from .scan_operator import powers_of

__all__ = ["TimeInvariantSSM"]

MODES = ("recurrence", "scan", "convolution", "closed")
SHORT = 64  # tokens: up to here a loop in Python is as good as anything
Last: TypeAlias = Callable[[Tensor | None], State]  # the state after so many tokens of each row, or after all


class TimeInvariantSSM(StateLayer):
    """The base of linear systems with fixed matrices: `LinearSSM`, `DiagonalSSM`, `LRU`, `S5`, `S4`, `S4D`.

    `layer(x, mode=...)` computes the same in one of four modes; `layer.mode` is the mode of all calls that name none,
    and None leaves the choice to a rule: a recurrence in compiled code, where a step costs little and nothing is
    computed twice, and for up to 64 tokens; else a scan, since every step of a loop in Python takes its time. S4 has
    a rule of its own. Padding is left out of the recurrence; for the other modes the real tokens are moved together.
    """

    mode: str | None = None

    def recur(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        """The recurrence: results and the state after the last token."""
        raise NotImplementedError

    def at_once(self, x: Tensor, state: State, mode: str) -> tuple[Tensor, Last]:
        """The results in one of the other modes, for tokens without padding between them."""
        raise NotImplementedError

    def rule(self, time: int) -> str:
        """The mode for so many tokens, if none is asked for."""
        return "recurrence" if time <= SHORT or not runs_in_python() else "scan"

    # --- the calls of every layer with a state

    def forward(
        self,
        x: ArrayLike,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        mode: str | None = None,
    ) -> Tensor:
        return whole(self, x, token_mask, lengths, lambda x, state, real: self._by_mode(x, state, real, mode)[0])

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        y, last = self._by_mode(x, state, real, None)
        return y, last(None if real is None else arrays.sum(real, axis=-1))

    def _by_mode(self, x: Tensor, state: State, real: Tensor | None, mode: str | None) -> tuple[Tensor, Last]:
        mode = self.mode if mode is None else mode
        mode = self.rule(x.shape[1]) if mode is None else as_mode(self._describe(), mode)
        if not x.shape[1]:
            return self._nothing(x, state), lambda lengths: state
        if mode == "recurrence":
            y, after = self.recur(x, state, real)
            return y, lambda lengths: after
        if real is None:
            return self.at_once(x, state, mode)
        order = arrays.argsort(~real, axis=-1, stable=True)  # the real tokens first
        y, last = self.at_once(arrays.take_along_axis(x, order[..., None], axis=1), state, mode)
        return arrays.take_along_axis(y, arrays.argsort(order, axis=-1)[..., None], axis=1), last

    def _nothing(self, x: Tensor, state: State) -> Tensor:
        one = arrays.zeros((x.shape[0], 1, x.shape[2]), dtype=x.dtype)
        return self.recur(one, state, None)[0][:, :0]


def whole(
    layer: StateLayer,
    x: ArrayLike,
    token_mask: ArrayLike | None,
    lengths: ArrayLike | None,
    run: Callable[[Tensor, State, Tensor | None], Tensor],
) -> Tensor:
    """What `forward` of a layer with a state does, by a way to run that the call has chosen."""
    x = as_sequence(layer, x, layer.features())
    lead = x.shape[:-1]  # (..., time)
    real = as_token_mask(layer._describe(), lead, token_mask, lengths)
    rows = (math.prod(lead[:-1]), lead[-1])
    x = arrays.reshape(silenced(x, real), (*rows, x.shape[-1]))
    y = run(x, layer.start(rows[0]), None if real is None else arrays.reshape(real, rows))
    return silenced(arrays.reshape(y, (*lead, *y.shape[2:])), real)


def as_mode(name: str, mode: str | None) -> str:
    """One of the modes."""
    if mode not in MODES:
        raise InputError(f"{name}: mode={mode!r}.", "one of " + ", ".join(map(repr, MODES)) + ", or None")
    return mode


def state_after(states: Tensor, start: Tensor, lengths: Tensor | None) -> Tensor:
    """Of states (rows, n, ...) those after so many tokens of each row; the start where there were none."""
    if lengths is None:
        return states[:, -1]
    index = arrays.reshape(arrays.maximum(lengths - 1, 0), (-1, *[1] * (states.ndim - 1)))
    found = arrays.take_along_axis(states, arrays.broadcast_to(index, (states.shape[0], 1, *states.shape[2:])), axis=1)
    some = arrays.reshape(lengths > 0, (-1, *[1] * (start.ndim - 1)))
    return arrays.where(some, found[:, 0], start)


def diagonal_states(decay: Tensor, inputs: Tensor, start: Tensor, mode: str) -> Tensor:
    """The states (rows, n, e) of a diagonal system, by one of the four modes."""
    if mode in ("recurrence", "scan"):
        method = "sequential" if mode == "recurrence" else "associative"
        return linear_recurrence(decay, inputs, start, axis=1, method=method)
    n = inputs.shape[1]
    powers = powers_of(decay, n + 1)  # (n + 1, e)
    began = powers[1:] * start[:, None]
    if mode == "closed":
        return arrays.einsum("ije,rje->rie", toeplitz(powers[:n]), inputs) + began
    return convolved(inputs, powers[:n]) + began


def toeplitz(powers: Tensor) -> Tensor:
    """T[i, j] = powers[i - j], and 0 for j > i: (n, ...) to (n, n, ...)."""
    n = powers.shape[0]
    places = arrays.arange(n)
    lag = places[:, None] - places
    seen = arrays.reshape(lag >= 0, (n, n, *[1] * (powers.ndim - 1)))
    return arrays.where(seen, arrays.take(powers, arrays.maximum(lag, 0), axis=0), 0)


def convolved(x: Tensor, kernel: Tensor) -> Tensor:
    """The causal convolution of (rows, n, e) with a kernel (n, e), real or complex, with zeros where it would wrap."""
    n = x.shape[1]
    size = fast_size(2 * n - 1)
    if dtypes.is_complex(x.dtype) or dtypes.is_complex(kernel.dtype):
        spectrum = fft.fft(x, n=size, axis=1) * fft.fft(kernel, n=size, axis=0)
        return fft.ifft(spectrum, axis=1)[:, :n]
    spectrum = fft.rfft(x, n=size, axis=1) * fft.rfft(kernel, n=size, axis=0)
    return fft.irfft(spectrum, n=size, axis=1)[:, :n]
