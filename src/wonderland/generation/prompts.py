"""Prompts: the beginnings of sequences, one or several, of equal lengths or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arguments import as_int, shown
from ..data.collation import Padded
from ..errors import InputError, ShapeError
from ..tensor import Tensor

Array = np.ndarray[Any, Any]


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

    def given_as(self, results: list[Any]) -> Any:
        """Results as the prompts came: one, or a list."""
        return results[0] if self.single else results


def as_prompts(name: str, prompt: Any, bos: Any = None) -> Prompts:
    """Prompts from None, tokens (n,), a list of those, an array (batch, n), or a `Padded`; bos in front of each.

    >>> as_prompts("generate", [[3, 4], [5]], bos=0).rows
    [array([0, 3, 4]), array([0, 5])]
    """
    single, rows = _rows(prompt)
    start = [] if bos is None else [as_int(name, "bos", bos, 0)]
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


def _rows(prompt: Any) -> tuple[bool, Sequence[Any]]:
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


def stop_set(name: str, stop_tokens: Any) -> Array:
    """The tokens that end a sequence: None, one or several."""
    if stop_tokens is None:
        return np.zeros(0, np.int64)
    listed = stop_tokens if isinstance(stop_tokens, (list, tuple, set, frozenset, np.ndarray)) else [stop_tokens]
    return np.array([as_int(name, "a stop token", token, 0) for token in listed], np.int64)
