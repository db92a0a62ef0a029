"""The logits of the next token, from any model: one that reads on with a cache, one that has steps, or neither.

Decoding asks a `Reader` twice over: `begin(table, lengths)` for the logits after the first `lengths` tokens of each row
of a table (rows, time), then `advance(table, lengths, then)` whenever rows have become longer by one. Rows have lengths
of their own; one that has ended keeps its length, and what is said of it means nothing. Decoding does not know which
kind of model answers:

    WholeSequences   model(tokens) -> logits                   windows of the table, padded at the end
    TreeSteps        model.step(token, state) -> logits, state   any tree of tensors as state
    CachedReader     model.extend(tokens, cache, lengths)      see cached.py
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol, TypeAlias, TypeGuard

import numpy as np

from .. import arrays
from ..core import trees
from ..core.arguments import as_int
from ..core.errors import InputError, NonFiniteError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import Array
from ..nn.module.module import Module
from ..train.step import Model
from ..transforms.jit.jit import jit

ROUND = 32  # lengths of windows are rounded up to this, so that calls of similar lengths share compiled code
Found: TypeAlias = tuple[Tensor, "Tensor | None"]  # what is wanted of logits
Then: TypeAlias = Callable[..., Found]  # of logits (rows, vocabulary) and other arguments


class Stepwise(Protocol):
    """A model that reads token by token."""

    def step(self, token: Tensor, state: object, /) -> tuple[Tensor, object]: ...


class Reader(Protocol):
    """What answers for a model."""

    compiled: bool

    def begin(self, table: Array, lengths: Array) -> Tensor: ...
    def advance(self, table: Array, lengths: Array, writing: Array, then: Then, *args: object) -> Found: ...
    def reorder(self, rows: Array) -> None: ...


def as_context(name: str, model: object, context: int | None) -> int | None:
    """How many tokens a model can take: what is said, else what the model says."""
    if not callable(model):
        raise InputError(f"{name}: a {type(model).__name__} is no model.", "a function from tokens to logits")
    if getattr(model, "generates", True) is False:
        raise InputError(
            f"{name}: a {type(model).__name__} does not write text: its tokens see those that come later.",
            "a decoder such as wl.models.GPT; an encoder gives vectors of texts, and can be fine-tuned",
        )
    if context is None:
        context = getattr(model, "context", None)
    return None if context is None else as_int(name, "context", context, 1)


def is_compiled(model: object, compiled: bool | None) -> bool:
    """Whether programs are made of a model: of modules, unless it is said."""
    return isinstance(model, Module) if compiled is None else bool(compiled)


def has_steps(model: object) -> TypeGuard[Stepwise]:
    """Whether a model reads token by token."""
    return callable(getattr(model, "step", None))


class WholeSequences:
    """Asks a model (rows, time) -> (rows, time, vocabulary), with the tokens that fit into its context.

    A compiled model sees windows of one length: the tokens at the beginning, anything after them. A causal model
    cannot tell, and the answer is read at the last token, not at the end of the window. Book, section 8.3.2. A model
    that is not causal sees no padding: rows of equal lengths are asked for together.
    """

    def __init__(self, name: str, model: Model, context: int | None, total: int, causal: bool, compiled: bool) -> None:
        self.name, self.model, self.causal, self.compiled = name, model, causal, compiled and causal
        length = -(-total // ROUND) * ROUND
        self.length = length if context is None else min(context, length)

    def begin(self, table: Array, lengths: Array) -> Tensor:
        seen = np.minimum(lengths, self.length)  # tokens in sight of each row
        if self.compiled:
            return _at(self.model, windows(table, lengths, self.length), seen - 1, self.name)
        if self.causal:
            window = windows(table, lengths, int(seen.max()))
            return _at.__wrapped__(self.model, arrays.asarray(window), arrays.asarray(seen - 1), self.name)
        parts: list[Tensor | None] = [None] * len(lengths)
        for count in sorted(set(seen.tolist())):
            rows = np.flatnonzero(seen == count)
            window = windows(table[rows], lengths[rows], count)
            logits = checked(self.name, self.model(arrays.asarray(window)), window.shape)[:, -1]
            for row, answer in zip(rows.tolist(), logits, strict=True):
                parts[row] = answer
        return arrays.stack([part for part in parts if part is not None])

    def advance(self, table: Array, lengths: Array, writing: Array, then: Then, *args: object) -> Found:
        return program(then, self.compiled)(self.begin(table, lengths), *args)

    def reorder(self, rows: Array) -> None:
        """Nothing is kept from step to step."""


class TreeSteps:
    """Asks `model.step(token (rows,), state) -> (logits (rows, vocabulary), state)`; the state is None at first.

    What all prompts have at the beginning is read by `model.extend(tokens, None)` if there is such a method, the rest
    token by token; a row whose prompt has ended keeps its state until the others are there. Beyond the context every
    answer reads the window anew. Leaves of the state have the rows as their first axis.
    """

    def __init__(self, name: str, model: Stepwise, context: int | None, compiled: bool) -> None:
        self.name, self.model, self.context, self.compiled = name, model, context, compiled
        self.step = _step_compiled if compiled else _step
        self.state: object = None

    def begin(self, table: Array, lengths: Array) -> Tensor:
        if self.context is not None:
            table, lengths = windows(table, lengths, self.context), np.minimum(lengths, self.context)
        common, longest = int(lengths.min()), int(lengths.max())
        logits: Tensor | None = None
        self.state = None
        extend = getattr(self.model, "extend", None)
        if common > 1 and extend is not None:
            tokens = arrays.asarray(table[:, :common])
            logits, self.state = extend(tokens, None)
            logits = checked(self.name, logits, tokens.shape)[:, -1]
        else:
            common = 0
        for place in range(common, longest):
            reading = place < lengths
            new, state = self._next(table[:, place])
            if logits is not None and not reading.all():
                new = _held(reading, new, logits)
                state = trees.map(lambda a, b, r=reading: _held(r, a, b), state, self.state)
            logits, self.state = new, state
        assert logits is not None
        return logits

    def advance(self, table: Array, lengths: Array, writing: Array, then: Then, *args: object) -> Found:
        if self.context is not None and int(lengths[writing].max()) > self.context:
            logits = self.begin(table, lengths)
        else:
            logits, self.state = self._next(table[np.arange(len(table)), lengths - 1])
        return program(then, self.compiled)(logits, *args)

    def _next(self, tokens: Array) -> tuple[Tensor, object]:
        logits, state = self.step(self.model, arrays.asarray(np.ascontiguousarray(tokens)), self.state)
        return checked(self.name, logits, tokens.shape), state

    def reorder(self, rows: Array) -> None:
        """Give every row the state of another."""
        chosen = arrays.asarray(rows)
        self.state = trees.map(lambda leaf: arrays.take(leaf, chosen, axis=0), self.state)


def windows(table: Array, lengths: Array, size: int) -> Array:
    """The last `size` tokens of each row that has so many, else its beginning: (rows, size)."""
    starts = np.maximum(lengths - size, 0)
    if not starts.any():
        out = np.zeros((len(table), size), np.int64)
        count = min(size, table.shape[1])
        out[:, :count] = table[:, :count]
        return out
    places = np.minimum(starts[:, None] + np.arange(size), table.shape[1] - 1)
    return np.take_along_axis(table, places, axis=1)


def _held(reading: Array, new: Tensor, old: Tensor) -> Tensor:
    """The new values of rows that read, the old ones of the others."""
    return arrays.where(arrays.asarray(reading.reshape(-1, *[1] * (new.ndim - 1))), new, old)


@jit
def _at(model: Model, window: Tensor | Array, last: Tensor | Array, name: str) -> Tensor:
    logits = checked(name, model(window), window.shape)
    index = arrays.reshape(arrays.asarray(last), (-1, 1, 1))
    return arrays.take_along_axis(logits, index, axis=1)[:, 0]


def _step(model: Stepwise, token: Tensor, state: object) -> tuple[Tensor, object]:
    return model.step(token, state)


_step_compiled = jit(_step)


@lru_cache(maxsize=64)
def _compiled(then: Then) -> Then:
    return jit(then)


def program(then: Then, compiled: bool) -> Then:
    """A function, or the program of it that is made once."""
    return _compiled(then) if compiled else then


def checked(name: str, logits: object, shape: tuple[int, ...]) -> Tensor:
    """The logits of a model, if they have the shape (*shape, vocabulary)."""
    if not isinstance(logits, (Tensor, np.ndarray)):
        raise InputError(f"{name}: the model gave a {type(logits).__name__}.", "logits, one tensor")
    if logits.ndim != len(shape) + 1 or tuple(logits.shape[:-1]) != tuple(shape) or not logits.shape[-1]:
        raise ShapeError(
            f"{name}: for tokens of shape {tuple(shape)} the model gave logits of shape {tuple(logits.shape)}.",
            f"({', '.join(map(str, shape))}, vocabulary)",
        )
    return arrays.asarray(logits)


def check_sound(name: str, sound: Array, place: int) -> None:
    """Refuse logits that are no distribution: `sound` says of rows whether their largest is finite."""
    if not sound.all():
        raise NonFiniteError(
            f"{name}: the logits after place {place} have NaN, +inf, or -inf for every token.",
            "`with wl.debug.nans():` finds where it comes from",
        )


def check_tokens(name: str, sequences: Array, vocabulary: int) -> None:
    """Refuse tokens that the model has no logits for."""
    if sequences.max() >= vocabulary:
        raise InputError(
            f"{name}: the prompt has the token {sequences.max()}, and the model {vocabulary} tokens.",
            f"tokens from 0 to {vocabulary - 1}: the tokenizer that the model was trained with",
        )
