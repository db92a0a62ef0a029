"""Models that may not write some tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import arrays
from ..core.arguments import as_int
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..nn.module.module import Module
from ..nn.module.parameter import Buffer
from .cached import reads_on

__all__ = ["suppressed"]


def suppressed(model: Module, tokens: Iterable[int], first: Iterable[int] = ()) -> Module:
    r"""A model that never writes `tokens`, nor those of `first` right after the prompt: their logits are \(-\infty\).

    >>> import wonderland as wl
    >>> model = wl.models.GPT(10, context=16, embed_dim=8, num_heads=2, depth=1, key=wl.random.key(0))
    >>> written = wl.generation.greedy(wl.generation.suppressed(model, [1, 2, 3]), [5], 8)
    >>> {1, 2, 3} & set(written[1:].tolist())
    set()

    `model` has a cache (`new_cache`, `extend`, `step`), whose weights are shared. The result is for `wl.generation`.
    """
    return _Suppressed(model, list(tokens), list(first))


class _Suppressed(Module):
    """A decoder with something added to its logits: after what was read at once, and after every further token."""

    def __init__(self, model: Module, tokens: list[int], first: list[int]) -> None:
        if not reads_on(model):
            raise InputError(
                f"suppressed: a {type(model).__name__} has no cache.", "a model with new_cache, extend and step"
            )
        inner: Any = model
        size = inner.vocabulary
        later = np.zeros(size, np.float32)
        for token in tokens:
            if as_int("suppressed", "a token", token, 0) >= size:
                raise InputError(f"suppressed: the token {token} of {size}.", f"tokens from 0 to {size - 1}")
            later[token] = -np.inf
        begin = later.copy()
        for token in first:
            if as_int("suppressed", "a token", token, 0) >= size:
                raise InputError(f"suppressed: the token {token} of {size}.", f"tokens from 0 to {size - 1}")
            begin[token] = -np.inf
        if not np.isfinite(begin).any():
            raise InputError("suppressed: all tokens are forbidden.", "some that may be written")
        self.model, self.begin, self.later = inner, Buffer(arrays.asarray(begin)), Buffer(arrays.asarray(later))
        self.vocabulary, self.context = size, getattr(model, "context", None)
        self.start_token, self.stop_tokens = getattr(model, "start_token", None), getattr(model, "stop_tokens", ())
        if callable(getattr(model, "encode", None)):
            self.encode, self.memory_mask = inner.encode, inner.memory_mask

    def forward(self, *args: ArrayLike, **settings: Any) -> Tensor:
        return self.model(*args, **settings) + self.later

    def new_cache(self, *args: Any) -> Any:
        return self.model.new_cache(*args)

    def extend(self, tokens: ArrayLike, cache: Any = None, lengths: ArrayLike | None = None, last: bool = False) -> Any:
        logits, cache = self.model.extend(tokens, cache, lengths, last=last)
        return logits + self.begin, cache

    def step(self, token: ArrayLike, cache: Any = None) -> Any:
        logits, cache = self.model.step(token, cache)
        return logits + self.later, cache
