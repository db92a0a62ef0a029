"""The logits of the next token, from any model: one that reads whole sequences, or one that reads a token at a time.

Decoding asks for the logits after column t of a table of sequences (rows, time), for t rising by one. It does not know
which kind of model answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import arrays, trees
from ..arguments import as_int
from ..errors import InputError, NonFiniteError, ShapeError
from ..nn.module import Module
from ..tensor import Tensor
from ..transforms.jit import jit

Array = np.ndarray[Any, Any]
_ROUND = 32  # lengths of windows are rounded up to this, so that calls of similar lengths share compiled code


def next_token_logits(
    name: str, model: Any, context: int | None, total: int, causal: bool, compiled: bool | None
) -> WholeSequences | SingleSteps:
    """What answers for a model: `model.step` if it has one, else the model itself."""
    if not callable(model):
        raise InputError(f"{name}: a {type(model).__name__} is no model.", "a function from tokens to logits")
    if context is None:
        context = getattr(model, "context", None)
    context = None if context is None else as_int(name, "context", context, 1)
    compiled = isinstance(model, Module) if compiled is None else bool(compiled)
    if callable(getattr(model, "step", None)):
        return SingleSteps(name, model, context, compiled)
    return WholeSequences(name, model, context, total, compiled and causal)


class WholeSequences:
    """Asks a model (rows, time) -> (rows, time, vocabulary), with the tokens that fit into its context.

    A compiled model sees windows of one length: the tokens at the beginning, anything after them. A causal model
    cannot tell, and the answer is read at the last token, not at the end of the window. Book, section 8.3.2.
    """

    def __init__(self, name: str, model: Any, context: int | None, total: int, compiled: bool) -> None:
        self.name, self.model, self.context, self.compiled = name, model, context, compiled
        length = -(-total // _ROUND) * _ROUND
        self.length = length if context is None else min(context, length)

    def __call__(self, sequences: Array, t: int) -> Tensor:
        start = max(0, t + 1 - self.length)
        window = sequences[:, start : t + 1]
        if not self.compiled:
            return checked(self.name, self.model(arrays.asarray(window)), window.shape)[:, -1]
        padded = np.zeros((len(window), self.length), np.int64)
        padded[:, : window.shape[1]] = window
        return _at(self.model, padded, np.int64(t - start), self.name)

    def reorder(self, rows: Array) -> None:
        """Nothing is kept from step to step."""


class SingleSteps:
    """Asks `model.step(token (rows,), state) -> (logits (rows, vocabulary), state)`; the state is None at first.

    The prompt is read by `model.extend(tokens, None)` if there is such a method, else token by token. Beyond the
    context every answer reads the window anew. Leaves of the state have the rows as their first axis.
    """

    def __init__(self, name: str, model: Any, context: int | None, compiled: bool) -> None:
        self.name, self.model, self.context, self.compiled = name, model, context, compiled
        self.step = _step_compiled if compiled else _step
        self.state: Any = None
        self.read = 0  # how many columns the state has seen

    def __call__(self, sequences: Array, t: int) -> Tensor:
        start = 0 if self.context is None else max(0, t + 1 - self.context)
        if start:
            self.state, self.read = None, start
        if self.state is None and t > self.read and hasattr(self.model, "extend"):
            tokens = arrays.asarray(sequences[:, self.read : t + 1])
            logits, self.state = self.model.extend(tokens, None)
            logits = checked(self.name, logits, tokens.shape)[:, -1]
        else:
            for place in range(self.read, t + 1):
                token = np.ascontiguousarray(sequences[:, place])
                logits, self.state = self.step(self.model, arrays.asarray(token), self.state)
            logits = checked(self.name, logits, token.shape)
        self.read = t + 1
        return logits

    def reorder(self, rows: Array) -> None:
        """Give every row the state of another."""
        self.state = trees.map(lambda leaf: arrays.take(leaf, arrays.asarray(rows), axis=0), self.state)


@jit
def _at(model: Any, window: Any, last: Any, name: str) -> Tensor:
    return arrays.take(checked(name, model(window), window.shape), last, axis=1)


def _step(model: Any, token: Any, state: Any) -> Any:
    return model.step(token, state)


_step_compiled = jit(_step)


def checked(name: str, logits: Any, shape: tuple[int, ...]) -> Tensor:
    """The logits of a model, if they have the shape (*shape, vocabulary)."""
    if not isinstance(logits, (Tensor, np.ndarray)):
        raise InputError(f"{name}: the model gave a {type(logits).__name__}.", "logits, one tensor")
    if logits.ndim != len(shape) + 1 or tuple(logits.shape[:-1]) != tuple(shape) or not logits.shape[-1]:
        raise ShapeError(
            f"{name}: for tokens of shape {tuple(shape)} the model gave logits of shape {tuple(logits.shape)}.",
            f"({', '.join(map(str, shape))}, vocabulary)",
        )
    return arrays.asarray(logits)


def check_finite(name: str, logits: Array, t: int) -> None:
    """Refuse logits (rows, vocabulary) that are no distribution."""
    if not np.isfinite(logits.max(axis=-1)).all():  # the maximum of a row with NaN is NaN
        raise NonFiniteError(
            f"{name}: the logits after place {t} have NaN, +inf, or -inf for every token.",
            "`with wl.debug.nans():` finds where it comes from",
        )


def check_tokens(name: str, sequences: Array, vocabulary: int) -> None:
    """Refuse tokens that the model has no logits for."""
    if sequences.max() >= vocabulary:
        raise InputError(
            f"{name}: the prompt has the token {sequences.max()}, and the model {vocabulary} tokens.",
            f"tokens from 0 to {vocabulary - 1}: the tokenizer that the model was trained with",
        )
