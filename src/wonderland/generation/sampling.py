"""Writing sequences token by token: ancestral sampling, its variants, and greedy decoding. Book, section 8.4.2."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from .. import arrays
from ..arguments import as_int
from ..random.discrete import categorical
from ..random.keys import fold_in, split
from ..random.streams import take_key
from ..tensor import Tensor
from ..train.evaluation import evaluating
from ..transforms.batching import vmap
from ..transforms.jit import jit as compile_
from .filters import Sampling
from .next_token import check_finite, check_tokens, next_token_logits
from .prompts import Array, as_prompts, stop_set

__all__ = ["generate", "greedy"]


def generate(
    model: Any,
    prompt: Any = None,
    max_new_tokens: int = 100,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    stop_tokens: Any = None,
    bos: int | None = None,
    context: int | None = None,
    causal: bool = True,
    key: Any = None,
    callback: Callable[[int, int], Any] | None = None,
    jit: bool | None = None,
) -> Any:
    r"""Ancestral sampling: \(x_i \sim p(x_i \mid x_1, \dots, x_{i-1})\), token after token. Book, section 8.4.2.

    >>> import wonderland as wl
    >>> model = wl.nn.Embedding(4, 4)
    >>> model.weight.assign(wl.log(wl.tensor([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0.0]])))
    >>> wl.generation.generate(model, [2], max_new_tokens=5)
    array([2, 3, 0, 1, 2, 3])
    >>> wl.generation.generate(model, [[0], [2, 3]], max_new_tokens=9, stop_tokens=1)
    [array([0, 1]), array([2, 3, 0, 1])]

    `model` gives logits (batch, time, vocabulary) for tokens (batch, time), those at place i for the token at i + 1.
    One with a method `step(token, state) -> (logits, state)` reads every token once (the state is None at first). It
    runs in evaluation mode; a module is compiled unless `jit=False`, a plain function if `jit=True`.

    `prompt` is None, tokens (n,), or several prompts of any lengths: a list, an array (batch, n), a `Padded`. `bos` is
    put in front of each, and begins an empty one. The result is the prompt with what follows, an array, or a list of
    arrays for several prompts: `max_new_tokens` tokens, or fewer if one of the `stop_tokens` comes, which is the last.

    With `temperature`, `top_k`, `top_p`, `min_p` and `repetition_penalty` (over prompt and new tokens) the logits are
    filtered by the functions of these names, as `Sampling` does. `temperature=0` is greedy decoding.

    `context` is how many tokens the model can take (by default `model.context`, else any number): longer sequences are
    seen through a window that slides. With `causal=False` the model never sees padding after the tokens, at the cost of
    compilation. `callback(row, token)` is told every new token. The same key gives the same sequences, and what a row
    draws does not depend on the other rows.
    """
    name = "generate"
    settings = Sampling(repetition_penalty, temperature, top_k, top_p, min_p)
    prompts = as_prompts(name, prompt, bos)
    count = as_int(name, "max_new_tokens", max_new_tokens, 0)
    stops = stop_set(name, stop_tokens)
    sequences, lengths = prompts.table(count)
    ends = lengths + count
    open_rows = np.full(len(lengths), count > 0)
    keys = None if settings.temperature == 0 else split(take_key(name, key), len(lengths))
    with evaluating(model):
        logits_after = next_token_logits(name, model, context, sequences.shape[1], causal, jit)
        choose = _chooser(settings, logits_after.compiled)
        seen: Any = None
        t = int(lengths.min()) - 1  # all rows are read together; some may write while others still read their prompt
        while open_rows.any():
            logits = logits_after(sequences, t)
            writing = open_rows & (t + 1 >= lengths)
            check_finite(name, logits.numpy()[writing], t)
            if t == lengths.min() - 1:
                check_tokens(name, sequences, logits.shape[-1])
            if settings.repetition_penalty != 1.0:
                seen = _seen(seen, sequences[:, : t + 1], logits.shape[-1])
            tokens = choose(logits, seen, keys, np.int64(t + 1)).numpy()
            sequences[writing, t + 1] = tokens[writing]
            if callback is not None:
                for row in np.flatnonzero(writing).tolist():
                    callback(row, int(tokens[row]))
            closing = writing & ((t + 2 >= ends) | np.isin(tokens, stops))
            ends[closing] = t + 2
            open_rows &= ~closing
            t += 1
    return prompts.given_as([row[:end].copy() for row, end in zip(sequences, ends.tolist(), strict=True)])


def greedy(model: Any, prompt: Any = None, max_new_tokens: int = 100, **settings: Any) -> Any:
    r"""Greedy decoding: \(x_i = \arg\max_x p(x \mid x_1, \dots, x_{i-1})\), always the likeliest token.

    >>> import wonderland as wl
    >>> model = wl.nn.Embedding(3, 3)
    >>> model.weight.assign(wl.tensor([[0, 2, 1], [1, 0, 2], [2, 1, 0.0]]))
    >>> wl.generation.greedy(model, [0], max_new_tokens=4)
    array([0, 1, 2, 0, 1])

    It is `generate` with temperature 0, takes its other settings, and draws nothing. It is not ancestral sampling,
    although section 8.4.2 of the book gives the two one name. The sequence need not be the likeliest one; `beam_search`
    looks further.
    """
    return generate(model, prompt, max_new_tokens, temperature=0.0, **settings)


def _seen(before: Array | None, sequences: Array, vocabulary: int) -> Array:
    """Which tokens each row has had, (rows, vocabulary), given which it had before its last one."""
    seen = np.zeros((len(sequences), vocabulary), bool) if before is None else before.copy()
    np.put_along_axis(seen, sequences if before is None else sequences[:, -1:], True, axis=1)
    return seen


@lru_cache(maxsize=32)
def _chooser(settings: Sampling, compiled: bool) -> Callable[..., Tensor]:
    """A function from logits (rows, vocabulary) to one token per row."""

    def draw(z: Tensor, key: Tensor, position: Any) -> Tensor:
        return categorical(z, key=fold_in(key, position))

    def choose(logits: Tensor, seen: Any, keys: Any, position: Any) -> Tensor:
        z = settings(logits, seen)
        if keys is None:
            return arrays.argmax(z, axis=-1)
        return vmap(draw, in_axes=(0, 0, None))(z, keys, arrays.asarray(position))

    return compile_(choose) if compiled else choose
