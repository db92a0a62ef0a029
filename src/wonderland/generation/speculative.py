r"""Speculative decoding: a small model proposes, a large one checks several tokens at once. Book, section 11.2.1.

The draft model q writes k tokens; the target p reads them together. Token x is kept with probability
\(\min(1, p(x)/q(x))\); at the first that is not, one from \(\max(0, p - q)\) takes its place. What is written has the
distribution of the target alone: \(q \min(1, p/q) + (1 - \sum \min(p, q)) \frac{\max(0, p-q)}{\sum \max(0, p-q)} = p\).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .. import arrays
from ..core.arguments import as_int
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import Array, KeyLike
from ..nn.sequences.cache import Cache
from ..random.continuous import uniform
from ..random.discrete import categorical
from ..random.keys import fold_in, split
from ..train.evaluation import evaluating
from ..train.step import Model
from ..transforms.batching import vmap
from ..transforms.imperative import no_grad
from ..transforms.jit.jit import jit as compile_
from .cached import CachedReader, ReadsOn, reads_on
from .filters import Sampling
from .next_token import as_context, check_sound, check_tokens, checked, is_compiled
from .prompts import Prompt, StopTokens, as_prompts, stop_set
from .sampling import row_keys

DRAFT, CHECK, REPLACE = 0, 1, 2  # what a random number of a place is for


def speculative_generate(
    draft: Model,
    target: Model,
    prompt: Prompt = None,
    max_new_tokens: int = 100,
    *,
    draft_tokens: int = 4,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    stop_tokens: StopTokens = None,
    bos: int | None = None,
    key: KeyLike = None,
    jit: bool | None = None,
) -> Array | list[Array]:
    """What `generate(target, ...)` may write, with fewer calls of the target: `draft` proposes. Book, section 11.2.1.

    >>> import wonderland as wl
    >>> settings = {"vocabulary": 20, "context": 64, "num_heads": 2, "key": wl.random.key(0)}
    >>> draft, target = wl.models.GPT(embed_dim=4, depth=1, **settings), wl.models.GPT(embed_dim=8, depth=2, **settings)
    >>> tokens = wl.generation.speculative_generate(draft, target, [1, 2, 3], 10, temperature=0.0)
    >>> bool((tokens == wl.generation.greedy(target, [1, 2, 3], 10)).all())
    True

    In each round the draft model writes `draft_tokens`, and the target reads them all at once and keeps as many as its
    own probabilities allow, which leaves the distribution of what is written as it is: with `temperature=0` the tokens
    are those of greedy decoding. The filters act on both models. The caches of both, of keys and values, are rewound to
    what was kept, so models that keep a state instead cannot be used. Both have one vocabulary; prompts, result and the
    other arguments are those of `generate`, and rows are independent of each other. It is faster if the draft model is
    much smaller and often right.
    """
    name = "speculative_generate"
    settings = Sampling(1.0, temperature, top_k, top_p, min_p)
    count = as_int(name, "max_new_tokens", max_new_tokens, 0)
    ahead = as_int(name, "draft_tokens", draft_tokens, 1)
    prompts = as_prompts(name, prompt, bos)
    stops = frozenset(stop_set(name, stop_tokens, target).tolist())
    table, lengths = prompts.table(count)
    ends, rows = lengths + count, len(lengths)
    keys = row_keys(name, settings, key, rows)
    keys = split(arrays.asarray(np.zeros(2, np.uint32)), rows) if keys is None else keys  # unused: all is certain
    writing = np.full(rows, count > 0)
    with evaluating(draft), evaluating(target), no_grad():
        sides = [_Side(name, model, table.shape[1], jit, rows) for model in (draft, target)]
        limit = min((side.limit for side in sides if side.limit is not None), default=None)
        if limit is not None and table.shape[1] > limit:
            raise InputError(
                f"{name}: sequences of up to {table.shape[1]} tokens, and a context of {limit}.",
                f"max_new_tokens={max(0, limit - int(lengths.max()))}, or generate, which lets the context slide",
            )
        compiled = all(side.reader.compiled for side in sides)
        if writing.any():
            sizes = [side.begin(table, lengths) for side in sides]
            if sizes[0] != sizes[1]:
                raise InputError(f"{name}: models of {sizes[0]} and {sizes[1]} tokens.", "one vocabulary for both")
            check_tokens(name, table, sizes[1])
        while writing.any():
            longest = int(lengths.max())
            k = ahead if limit is None else min(ahead, limit - longest)
            last, places = arrays.asarray(table[np.arange(rows), lengths - 1]), arrays.asarray(lengths.copy())
            for side in sides:
                side.reader.cache.reserve(longest + ahead)
            programs = _programs(settings, k, compiled)
            proposed, guesses = programs.propose(draft, sides[0].reader.cache, last, keys, places)
            found, kept = programs.verify(target, sides[1].reader.cache, last, proposed, guesses, keys, places)
            tokens, counts = found.numpy(), kept.numpy()
            check_sound(name, counts[writing] >= 0, longest - 1)
            for row in np.flatnonzero(writing).tolist():
                for token in tokens[row, : counts[row] + 1].tolist():
                    table[row, lengths[row]] = token
                    lengths[row] += 1
                    if token in stops or lengths[row] >= ends[row]:
                        writing[row] = False
                        break
            for side in sides:
                side.reader.cache.rewind(lengths - 1)
    out = [row[:length].copy() for row, length in zip(table, lengths.tolist(), strict=True)]
    return prompts.given_as(out)


class _Side:
    """One of the two models: its cache has read all tokens of each row but the last."""

    def __init__(self, name: str, model: Model, total: int, jit: bool | None, rows: int) -> None:
        if not reads_on(model):
            raise InputError(f"{name}: a {type(model).__name__} has no cache.", "models with new_cache and extend")
        limit = as_context(name, model, None)
        self.reader = CachedReader(name, model, limit, total, is_compiled(model, jit), rows)
        self.limit = self.reader.context

    def begin(self, table: Array, lengths: Array) -> int:
        """Read the prompts; the size of the vocabulary."""
        logits = self.reader.begin(table, lengths)
        self.reader.cache.rewind(lengths - 1)
        return logits.shape[-1]


class _Programs(NamedTuple):
    propose: Callable[..., tuple[Tensor, Tensor]]
    verify: Callable[..., tuple[Tensor, Tensor]]


@lru_cache(maxsize=32)
def _programs(settings: Sampling, k: int, compiled: bool) -> _Programs:
    """What the two models do in a round of k tokens."""

    def purpose(keys: Tensor, places: Tensor, what: int) -> Tensor:
        """Keys for the tokens at some places, by row: (rows, 2)."""
        return vmap(lambda key, place: fold_in(fold_in(key, place), what))(keys, places)

    def propose(model: ReadsOn, cache: Cache, last: Tensor, keys: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """Further tokens (rows, k), and the distributions (rows, k, vocabulary) that they were drawn from."""
        tokens, guesses = [], []
        for i in range(k):
            logits = settings(checked("speculative_generate", model.step(last, cache)[0], last.shape))
            last = vmap(lambda z, key: categorical(z, key=key))(logits, purpose(keys, places + i, DRAFT))
            tokens.append(last)
            guesses.append(arrays.softmax(logits, axis=-1))
        model.step(last, cache)  # so that it has read as much as the target
        if not tokens:
            return arrays.zeros((last.shape[0], 0), dtype=last.dtype), arrays.zeros((last.shape[0], 0, 1))
        return arrays.stack(tokens, axis=1), arrays.stack(guesses, axis=1)

    def verify(
        model: ReadsOn, cache: Cache, last: Tensor, proposed: Tensor, q: Tensor, keys: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The tokens (rows, k + 1) after a round, and how many of the proposed are kept; -1: no distribution."""
        read = arrays.concat([last[:, None], proposed], axis=1)  # (rows, k + 1)
        logits = checked("speculative_generate", model.extend(read, cache)[0], read.shape)
        p = arrays.softmax(settings(logits), axis=-1)  # (rows, k + 1, vocabulary)
        kept = arrays.zeros_like(places)
        going = arrays.ones_like(places)
        rest = p[:, 0]  # what the token after those that are kept is drawn from
        for i in range(k):
            chosen = proposed[:, i : i + 1]
            mine = arrays.take_along_axis(p[:, i], chosen, axis=-1)[:, 0]
            guess = arrays.take_along_axis(q[:, i], chosen, axis=-1)[:, 0]
            u = vmap(lambda key: uniform((), key=key, dtype=p.dtype))(purpose(keys, places + i, CHECK))
            missing = arrays.maximum(p[:, i] - q[:, i], 0.0)
            # where nothing is missing, p = q up to rounding, and the proposed token is as good
            missing = arrays.where(arrays.sum(missing, axis=-1, keepdims=True) > 0, missing, p[:, i])
            good = arrays.astype(u * guess < mine, going.dtype)
            stops = (going == 1) & (good == 0)
            going = going * good
            kept = kept + going
            rest = arrays.where(stops[:, None], missing, arrays.where((going == 1)[:, None], p[:, i + 1], rest))
        drawn = vmap(lambda r, key: categorical(arrays.log(r), key=key))(rest, purpose(keys, places + kept, REPLACE))
        padded = arrays.concat([proposed, drawn[:, None]], axis=1)
        out = arrays.where(arrays.arange(k + 1) < kept[:, None], padded, drawn[:, None])
        sound = arrays.all(arrays.isfinite(arrays.max(logits, axis=-1)), axis=-1)
        sound = sound & arrays.all(arrays.isfinite(arrays.sum(q, axis=-1)), axis=-1)
        return out, arrays.where(sound, kept, -1)

    return _Programs(compile_(propose), compile_(verify)) if compiled else _Programs(propose, verify)
