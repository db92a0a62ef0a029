"""Self-supervision from a text: predict each token from those before it. Book, section 3.1.1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.arguments import as_int
from ..core.errors import InputError
from ..core.typing import Array, ArrayLike
from .dataset import Dataset, as_column


class NextTokenDataset(Dataset[tuple[Array, Array]]):
    r"""Self-supervision from a text: inputs \(x = (t_i, \dots, t_{i+c-1})\), targets \(y = (t_{i+1}, \dots, t_{i+c})\).

    >>> x, y = NextTokenDataset(np.arange(10), context=4)[1]
    >>> x, y
    (array([4, 5, 6, 7]), array([5, 6, 7, 8]))

    Windows start every `stride` tokens, by default every `context`, so that each token is predicted once. Book, section
    3.1.1.
    """

    def __init__(self, tokens: ArrayLike, context: int, stride: int | None = None) -> None:
        self.tokens = as_column(tokens)
        self.context = as_int("NextTokenDataset", "context", context, least=1)
        self.stride = as_int("NextTokenDataset", "stride", context if stride is None else stride, least=1)
        if self.tokens.ndim != 1 or self.tokens.dtype.kind not in "iu":
            raise InputError(
                f"NextTokenDataset: the tokens are {self.tokens.dtype}{list(self.tokens.shape)}.",
                "one long row of integers",
            )
        if len(self.tokens) <= self.context:
            raise InputError(
                f"NextTokenDataset: {len(self.tokens)} tokens are too few for context={self.context}.",
                "a shorter context; a window needs context + 1 tokens",
            )

    def __len__(self) -> int:
        return (len(self.tokens) - self.context - 1) // self.stride + 1

    def __getitem__(self, index: int) -> tuple[Array, Array]:
        start = self._place(index) * self.stride
        window = np.asarray(self.tokens[start : start + self.context + 1])
        return window[:-1], window[1:]

    def __getitems__(self, indices: Sequence[int] | Array) -> tuple[Array, Array]:
        starts = np.array([self._place(index) for index in np.asarray(indices).tolist()]) * self.stride
        windows = self.tokens[starts[:, None] + np.arange(self.context + 1)]
        return np.ascontiguousarray(windows[:, :-1]), np.ascontiguousarray(windows[:, 1:])
