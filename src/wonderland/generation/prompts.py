"""Prompts: the beginnings of sequences, one or several, of equal lengths or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from ..core.arguments import as_int, shown
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike
from ..data.collation import Padded

Prompt: TypeAlias = "ArrayLike | Padded | None"
StopTokens: TypeAlias = int | Iterable[int] | None
Result = TypeVar("Result")


class Prompts(NamedTuple):
    """Rows of tokens, and whether one prompt was given alone."""

    rows: list[Array]
    single: bool

    def table(self, extra: int) -> tuple[Array, Array]:
        """All rows in one array with room for `extra` tokens after each, and their lengths."""
        lengths = np.array([len(row) for row in self.rows], np.int64)
        table = np.zeros((len(self.rows), int(lengths.max()) + extra), np.int64)
        for line, row in zip(table, self.rows, strict=True):
            line[: len(row)] = row
        return table, lengths

    def given_as(self, results: list[Result]) -> Result | list[Result]:
        """Results as the prompts came: one, or a list."""
        return results[0] if self.single else results


class Source(NamedTuple):
    """What an encoder-decoder writes about: (rows, s, ...), and which parts are real."""

    values: ArrayLike
    mask: ArrayLike | None

    @property
    def rows(self) -> int:
        return np.shape(self.values)[0]


def as_prompts(name: str, prompt: Prompt, bos: int | None = None, front: Array | None = None) -> Prompts:
    """Prompts from None, tokens (n,), a list of those, an array (batch, n), or a `Padded`; bos in front of each.

    `front` are several tokens in front of each instead.

    >>> as_prompts("generate", [[3, 4], [5]], bos=0).rows
    [array([0, 3, 4]), array([0, 5])]
    """
    single, rows = _rows(prompt)
    start = [] if bos is None else [as_int(name, "bos", bos, 0)]
    start = start if front is None else front.tolist()
    out = []
    for row in rows:
        tokens = np.asarray(row)
        if tokens.ndim != 1:
            raise ShapeError(f"{name}: a prompt of shape {tokens.shape}.", "tokens (n,), or a list of prompts")
        if tokens.size and tokens.dtype.kind not in "iu":
            raise InputError(f"{name}: a prompt of type {tokens.dtype}.", "integers, as `tokenizer.encode` gives them")
        tokens = np.array([*start, *tokens.tolist()], np.int64)
        if not len(tokens):
            raise InputError(f"{name}: a prompt is empty, and there is no token to begin with.", "bos=tokenizer.bos_id")
        if tokens.min() < 0:
            raise InputError(f"{name}: the prompt has the token {tokens.min()}.", "tokens from 0")
        out.append(tokens)
    if not out:
        raise InputError(f"{name}: there are no prompts.", "one prompt or more; None for an empty one")
    return Prompts(out, single)


def as_source(name: str, source: ArrayLike | Padded | None, mask: ArrayLike | None) -> tuple[Source | None, bool]:
    """What is given as source, and whether it was one sequence of tokens alone."""
    if source is None:
        if mask is not None:
            raise InputError(f"{name}: source_mask without a source.", "source=..., too")
        return None, False
    if isinstance(source, Padded):
        return Source(source.values, source.mask if mask is None else mask), False
    if isinstance(source, (list, tuple)):
        rows = as_prompts(name, source)
        table, lengths = rows.table(0)
        real = np.arange(table.shape[1]) < lengths[:, None]
        return Source(table, mask if mask is not None else None if real.all() else real), rows.single
    values = source.numpy() if isinstance(source, Tensor) else np.asarray(source)
    if values.ndim == 1:
        return Source(values[None], None if mask is None else np.asarray(mask)[None]), True
    if not values.ndim:
        raise ShapeError(f"{name}: a source of shape {values.shape}.", "(rows, time), or (rows, time, features)")
    return Source(values, mask), False


def _rows(prompt: Prompt) -> tuple[bool, Sequence[ArrayLike]]:
    if prompt is None:
        return True, [[]]
    if isinstance(prompt, str):
        raise InputError(f"generate: {shown(prompt)} is text.", "tokenizer.encode(text), or generate_text")
    if isinstance(prompt, Padded):
        values, lengths = np.asarray(prompt.values), np.asarray(prompt.lengths)
        return False, [row[:length] for row, length in zip(values, lengths.tolist(), strict=True)]
    if isinstance(prompt, (list, tuple)):
        several = any(isinstance(part, (list, tuple)) or getattr(part, "ndim", 0) > 0 for part in prompt)
        return not several, prompt if several else [prompt]
    tokens = np.asarray(prompt.numpy() if isinstance(prompt, Tensor) else prompt)
    return tokens.ndim < 2, list(tokens) if tokens.ndim > 1 else [tokens]


def stop_set(name: str, stop_tokens: StopTokens, model: object = None) -> Array:
    """The tokens that end a sequence: one or several, or if it is None those of the model, which may have none."""
    if stop_tokens is None:
        stop_tokens = getattr(model, "stop_tokens", ())
    listed = stop_tokens if isinstance(stop_tokens, (list, tuple, set, frozenset, np.ndarray)) else [stop_tokens]
    return np.array([as_int(name, "a stop token", token, 0) for token in listed], np.int64)
