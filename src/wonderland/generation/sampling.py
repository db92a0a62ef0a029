"""Writing sequences token by token: ancestral sampling, its variants, and greedy decoding. Book, section 8.4.2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from .. import arrays
from ..core.arguments import as_int
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, DTypeLike, KeyLike
from ..data.collation import Padded
from ..random.discrete import categorical
from ..random.keys import fold_in, split
from ..random.streams import take_key
from ..train.evaluation import evaluating
from ..train.step import Model
from ..transforms.batching import vmap
from ..transforms.imperative import no_grad
from .cached import Prefix
from .filters import Sampling
from .next_token import Then, check_sound, check_tokens, program
from .prompts import Array, Prompt, StopTokens, stop_set
from .readers import Task, task_for


def generate(
    model: Model,
    prompt: Prompt = None,
    max_new_tokens: int = 100,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    stop_tokens: StopTokens = None,
    bos: int | None = None,
    context: int | None = None,
    causal: bool = True,
    key: KeyLike = None,
    callback: Callable[[int, int], object] | None = None,
    jit: bool | None = None,
    source: ArrayLike | Padded | None = None,
    source_mask: ArrayLike | None = None,
    prefix: Prefix | None = None,
    cache_dtype: DTypeLike | None = None,
) -> Array | list[Array]:
    r"""Ancestral sampling: \(x_i \sim p(x_i \mid x_1, \dots, x_{i-1})\), token after token. Book, section 8.4.2.

    >>> import wonderland as wl
    >>> model = wl.nn.Embedding(4, 4)
    >>> model.weight.assign(wl.log(wl.tensor([[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0.0]])))
    >>> wl.generation.generate(model, [2], max_new_tokens=5)
    array([2, 3, 0, 1, 2, 3])
    >>> wl.generation.generate(model, [[0], [2, 3]], max_new_tokens=9, stop_tokens=1)
    [array([0, 1]), array([2, 3, 0, 1])]

    `model` gives logits (batch, time, vocabulary) for tokens (batch, time), those at place i for the token at i + 1.
    One with `new_cache`, `extend` and `step` (see `wl.nn.Cache`) reads all prompts at once and every further token
    once; one with `step(token, state) -> (logits, state)` alone reads token by token (the state is None at first). It
    runs in evaluation mode; a module is compiled unless `jit=False`, a plain function if `jit=True`.

    `prompt` is None, tokens (n,), or several prompts of any lengths: a list, an array (batch, n), a `Padded`. `bos` is
    put in front of each, and begins an empty one. The result is the prompt with what follows, an array, or a list of
    arrays for several prompts: `max_new_tokens` tokens, or fewer if one of the `stop_tokens` comes, which is the last.
    By default they are `model.stop_tokens`, and with () there are none.

    With `temperature`, `top_k`, `top_p`, `min_p` and `repetition_penalty` (over prompt and new tokens) the logits are
    filtered by the functions of these names, as `Sampling` does. `temperature=0` is greedy decoding.

    An encoder-decoder writes about a `source`: tokens (rows, time), or what its encoder takes otherwise, of which
    `source_mask` (rows, time) is true where it is real; a list of sequences or a `Padded` brings its own mask. It is
    encoded once. Rows begin with `bos`, by default `model.start_token`, or with one prompt for all.
    `prefix` is the common beginning of all prompts, which `read_prefix` has read before. With `cache_dtype`, "bfloat16"
    or "float16", keys and values are kept in half the memory and read in half the time; see `wl.nn.Cache.store_as`.

    `context` is how many tokens the model can take (by default `model.context`, else any number): longer sequences are
    seen through a window that slides, and that is read anew for every token. Models whose layers all have a `window`
    and no learned positions, or keep a state, need no such thing: their cache rolls, and nothing is read twice. With
    `causal=False` the model never sees padding after the tokens, at the cost of compilation.

    `callback(row, token)` is told every new token. The same key gives the same sequences. What a row draws depends on
    the key, the row's number in the batch and the places of its tokens, not on the other rows or on padding; with keys
    (rows, 2), one for each row, not on its number either: `key=wl.random.split(key, rows)` is what one key stands for.
    """
    with evaluating(model), no_grad():
        writer = writer_for(
            "generate", model, prompt, max_new_tokens, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
            repetition_penalty=repetition_penalty, stop_tokens=stop_tokens, key=key, bos=bos, context=context,
            causal=causal, jit=jit, source=source, source_mask=source_mask, prefix=prefix,
            cache_dtype=cache_dtype,
        )  # fmt: skip
        for rows, tokens in writer:
            if callback is not None:
                for row in rows.tolist():
                    callback(row, int(tokens[row]))
    return writer.prompts.given_as(writer.results())


def greedy(model: Model, prompt: Prompt = None, max_new_tokens: int = 100, **settings: Any) -> Array | list[Array]:
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


def writer_for(
    name: str,
    model: Model,
    prompt: Prompt,
    max_new_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float = 1.0,
    stop_tokens: StopTokens = None,
    key: KeyLike = None,
    **given: Any,
) -> Writer:
    """What writes the rows that the arguments of `generate` ask for."""
    settings = Sampling(repetition_penalty, temperature, top_k, top_p, min_p)
    count = as_int(name, "max_new_tokens", max_new_tokens, 0)
    stops = stop_set(name, stop_tokens, model)
    task = task_for(name, model, prompt, count, **given)
    return Writer(name, task, count, settings, row_keys(name, settings, key, len(task.table)), stops)


def row_keys(name: str, settings: Sampling, key: KeyLike, rows: int) -> Tensor | None:
    """A key for each row, (rows, 2): those given, or made of one; none if nothing is drawn."""
    if settings.temperature == 0:
        return None
    given = take_key(name, key)
    if given.ndim == 1:
        return split(given, rows)
    if given.shape != (rows, 2):
        raise ShapeError(f"{name}: keys of shape {given.shape} for {rows} rows.", f"one key, or keys ({rows}, 2)")
    return given


class Writer:
    """Writes a task's rows: each turn of the iteration gives the rows that wrote, and the tokens of all rows.

    `end(row)` ends one before its time.
    """

    def __init__(
        self, name: str, task: Task, count: int, settings: Sampling, keys: Tensor | None, stops: Array
    ) -> None:
        self.name, self.prompts, self.table, self.reader = name, task.prompts, task.table, task.reader
        self.keys = keys
        self.lengths = task.lengths.copy()  # of the rows, with what they have written
        self.last = task.lengths + count  # the lengths at which they end
        self.writing = np.full(len(self.lengths), count > 0)
        self.stops = frozenset(stops.tolist())
        self.penalized = settings.repetition_penalty != 1.0
        self.choose = _chooser(settings)
        self.seen: object = None

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        if not self.writing.any():
            return
        logits = self.reader.begin(self.table, self.lengths)
        check_tokens(self.name, self.table, logits.shape[-1])
        if self.penalized:
            self.seen = arrays.asarray(_seen(self.table, self.lengths, logits.shape[-1]))
        found = program(self.choose, self.reader.compiled)(logits, self.seen, self.keys, arrays.asarray(self.lengths))
        while True:
            tokens, self.seen = found
            yield self._written(tokens.numpy())
            if not self.writing.any():
                return
            places = arrays.asarray(self.lengths.copy())
            found = self.reader.advance(
                self.table, self.lengths, self.writing, self.choose, self.seen, self.keys, places
            )

    def _written(self, tokens: Array) -> tuple[Array, Array]:
        rows = np.flatnonzero(self.writing)
        chosen = tokens[rows]
        check_sound(self.name, chosen >= 0, int(self.lengths[rows[chosen.argmin()]]) - 1)
        self.table[rows, self.lengths[rows]] = chosen
        self.lengths[rows] += 1
        for row, token in zip(rows.tolist(), chosen.tolist(), strict=True):
            if token in self.stops or self.lengths[row] >= self.last[row]:
                self.writing[row] = False
        return rows, tokens

    def end(self, row: int) -> None:
        self.writing[row] = False

    def results(self) -> list[Array]:
        """The rows as they are now."""
        return [row[:length].copy() for row, length in zip(self.table, self.lengths.tolist(), strict=True)]


def _seen(table: Array, lengths: Array, vocabulary: int) -> Array:
    """Which tokens each row has had, (rows, vocabulary)."""
    seen = np.zeros((len(table), vocabulary), bool)
    for row, length in enumerate(lengths.tolist()):
        seen[row, table[row, :length]] = True
    return seen


@lru_cache(maxsize=64)
def _chooser(settings: Sampling) -> Then:
    """A function from logits (rows, vocabulary) to one token per row, -1 if they are no distribution."""

    def draw(z: Tensor, key: Tensor, place: Tensor) -> Tensor:
        return categorical(z, key=fold_in(key, place))

    def choose(
        logits: Tensor, seen: Tensor | None, keys: Tensor | None, places: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        z = settings(logits, seen)
        drawn = arrays.argmax(z, axis=-1) if keys is None else vmap(draw)(z, keys, places)
        if seen is not None:
            seen = seen | (arrays.arange(z.shape[-1]) == arrays.expand_dims(drawn, -1))
        sound = arrays.isfinite(arrays.max(logits, axis=-1))  # the maximum of a row with NaN is NaN
        return arrays.where(sound, drawn, -1), seen

    return choose
