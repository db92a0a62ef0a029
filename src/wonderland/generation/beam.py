"""Beam search: the likeliest sequences that a search of limited width finds. Book, section 8.4.2."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from .. import arrays
from ..core import dtypes
from ..core.arguments import as_function, as_int, as_number
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, DTypeLike
from ..data.collation import Padded
from ..train.evaluation import evaluating
from ..train.step import Model
from ..transforms.imperative import no_grad
from .cached import Prefix
from .next_token import Then, check_sound, check_tokens, program
from .prompts import Array, Prompt, StopTokens, stop_set
from .readers import task_for

EarlyStopping = bool | Literal["never"] | None
Score = Callable[[float, int, Array], float]  # of a log-probability, a number of new tokens, and all tokens


class Hypothesis(NamedTuple):
    """A sequence that beam search found: prompt and continuation, the log-probability of the latter, and its rank."""

    tokens: Array
    log_prob: float
    score: float


class _Beam(NamedTuple):
    """A sequence on the way: which row of the table it is in, and what its continuation has so far."""

    row: int
    log_prob: float
    length: int
    closed: bool
    score: float


class _Choice(NamedTuple):
    """A continuation that is kept: of which row, by which token (None if it had ended), and the sequence then."""

    parent: int
    token: int | None
    beam: _Beam


def beam_search(
    model: Model,
    prompt: Prompt = None,
    max_new_tokens: int = 100,
    *,
    beams: int = 4,
    length_penalty: float = 0.0,
    early_stopping: EarlyStopping = None,
    stop_tokens: StopTokens = None,
    bos: int | None = None,
    reward: Callable[[Array], float] | None = None,
    context: int | None = None,
    causal: bool = True,
    jit: bool | None = None,
    source: ArrayLike | Padded | None = None,
    source_mask: ArrayLike | None = None,
    prefix: Prefix | None = None,
    cache_dtype: DTypeLike | None = None,
) -> Any:
    r"""The best continuations of a prompt, found by keeping the `beams` best beginnings. Book, section 8.4.2.

    >>> import wonderland as wl
    >>> table = wl.log(wl.tensor([[0, 0.6, 0.4, 0], [0, 0, 0.45, 0.55], [0.9, 0.1, 0, 0], [0, 0, 0, 1.0]]))
    >>> model = lambda tokens: table[tokens]
    >>> best = wl.generation.beam_search(model, [0], 2, beams=2)[0]
    >>> best.tokens, round(best.log_prob, 4) == round(float(wl.log(wl.tensor(0.36))), 4)
    (array([0, 2, 0]), True)
    >>> wl.generation.greedy(model, [0], 2)  # the likeliest first token leads to 0.6 * 0.55 = 0.33
    array([0, 1, 3])

    In every step each beam is continued by its `beams` likeliest tokens, and of all these the best are kept. A sequence
    that ends in one of the `stop_tokens` stays as it is and competes with the others. The score by which they compete
    is \(\log p / n^\alpha\) with n new tokens and \(\alpha\) the `length_penalty`: 0 prefers the likeliest, which tends
    to be short, 1 the likeliest per token. `reward(tokens)`, if there is one, is added to it.

    With `early_stopping` the search is that of Hugging Face's `generate(num_beams=...)`: sequences on the way compete
    by \(\log p\) alone; one that ends while it is among the `beams` best is put aside with its score, where n counts
    the stop token, and the others go on in its place. False stops when the best one on the way, as long as it is now,
    scores below all that were put aside; "never" when it would at the full length; True as soon as there are `beams`.

    The result is a list of `Hypothesis(tokens, log_prob, score)`, best first, `beams` of them or as many as there are;
    for several prompts a list of such lists. One beam is greedy decoding. Prompts are read once for all of their beams,
    whose caches are then reordered as they win or lose. The other arguments are those of `generate`.
    """
    name = "beam_search"
    width = as_int(name, "beams", beams, 1)
    count = as_int(name, "max_new_tokens", max_new_tokens, 0)
    alpha = float(as_number(name, "length_penalty", length_penalty))
    if not np.isfinite(alpha):
        raise InputError(f"{name}: length_penalty={alpha}.", "a finite number, usually from 0 to 1")
    if early_stopping not in (None, False, True, "never"):
        raise InputError(f"{name}: early_stopping={early_stopping!r}.", 'None, False, True or "never"')
    if reward is not None:
        as_function("reward", reward)
    stops = frozenset(stop_set(name, stop_tokens, model).tolist())

    def score(log_prob: float, length: int, tokens: Array) -> float:
        value = log_prob / length**alpha if alpha else log_prob
        return value if reward is None else value + float(reward(tokens))

    with evaluating(model), no_grad():
        task = task_for(
            name, model, prompt, count, bos=bos, context=context, causal=causal, jit=jit, source=source,
            source_mask=source_mask, prefix=prefix, cache_dtype=cache_dtype,
        )  # fmt: skip
        groups: list[_Competing | _SetAside] = [
            _Competing(number, start, width, count, stops, score)
            if early_stopping is None
            else _SetAside(number, start, width, count, stops, score, alpha, early_stopping)
            for number, start in enumerate(task.lengths.tolist())
        ]
        table = task.table
        if count:
            best = _likeliest(groups[0].candidates)
            logits = task.reader.begin(table, task.lengths)
            check_tokens(name, table, logits.shape[-1])
            found = program(best, task.reader.compiled)(logits)
            lengths, writing = task.lengths, np.ones(len(groups), bool)
        while count:
            assert found[1] is not None
            values, tokens = found[0].numpy(), found[1].numpy()
            check_sound(name, np.isfinite(values[writing, 0]), int(lengths[writing].max()) - 1)
            rows = np.repeat(np.arange(len(groups)), width) if len(table) == len(groups) else np.arange(len(table))
            choices = [group.grow(values, tokens, table) if group.open else [] for group in groups]
            for number, kept in enumerate(choices):
                for place, choice in enumerate(kept):
                    rows[number * width + place] = choice.parent
            table, lengths = table[rows], lengths[rows]
            writing = np.zeros(len(rows), bool)
            for number, kept in enumerate(choices):
                for place, choice in enumerate(kept):
                    row = number * width + place
                    if choice.token is not None:
                        table[row, lengths[row]] = choice.token
                        lengths[row] += 1
                    writing[row] = groups[number].open and not choice.beam.closed
            if not writing.any():
                break
            task.reader.reorder(rows)
            found = task.reader.advance(table, lengths, writing, best)
    return task.prompts.given_as([group.results(table) for group in groups])


@lru_cache(maxsize=64)
def _likeliest(count: int) -> Then:
    """The largest log-probabilities of each row, and of which tokens they are."""

    def likeliest(logits: Tensor) -> tuple[Tensor, Tensor]:
        log_probs = arrays.log_softmax(arrays.astype(logits, dtypes.float64), axis=-1)
        found = arrays.top_k(log_probs, min(count, logits.shape[-1]))
        return found.values, found.indices

    return likeliest


class _Competing:
    """The search for one prompt: sequences that have ended stay, and compete with the others by score."""

    def __init__(self, row: int, start: int, width: int, count: int, stops: frozenset[int], score: Score) -> None:
        self.width, self.start, self.last, self.stops, self.score = width, start, count, stops, score
        self.first = row * width  # the row of the first beam, from the first choice on
        # one beam to begin with, so that the first step takes different tokens and not one of them `beams` times
        self.beams = [_Beam(row, 0.0, 0, count == 0, 0.0)]
        self.candidates = width

    @property
    def open(self) -> bool:
        return any(not beam.closed for beam in self.beams)

    def grow(self, values: Array, tokens: Array, table: Array) -> list[_Choice]:
        """The best of all continuations."""
        found: list[_Choice] = []
        for beam in self.beams:
            if beam.closed:
                found.append(_Choice(beam.row, None, beam))
                continue
            n = beam.length + 1
            for value, token in zip(values[beam.row].tolist(), tokens[beam.row].tolist(), strict=True):
                if value == -np.inf:
                    break  # what cannot be is no candidate
                text = np.append(table[beam.row, : self.start + beam.length], token)
                log_prob = beam.log_prob + value
                closed = token in self.stops or n >= self.last
                new = _Beam(beam.row, log_prob, n, closed, self.score(log_prob, n, text))
                found.append(_Choice(beam.row, token, new))
        kept = sorted(found, key=lambda choice: -choice.beam.score)[: self.width]
        self.beams = [choice.beam._replace(row=self.first + place) for place, choice in enumerate(kept)]
        return kept

    def results(self, table: Array) -> list[Hypothesis]:
        return [Hypothesis(table[b.row, : self.start + b.length].copy(), b.log_prob, b.score) for b in self.beams]


class _SetAside:
    """The search for one prompt: sequences that end are put aside, the others go on and compete by log-probability."""

    def __init__(
        self,
        row: int,
        start: int,
        width: int,
        count: int,
        stops: frozenset[int],
        score: Score,
        alpha: float,
        early: EarlyStopping,
    ) -> None:
        self.width, self.start, self.last, self.stops, self.score = width, start, count, stops, score
        self.first, self.alpha, self.early = row * width, alpha, early
        self.running = [_Beam(row, 0.0, 0, False, 0.0)]
        self.ended: list[Hypothesis] = []
        self.length, self.open = 0, count > 0
        self.empty = row if not count else None
        # so many that enough are left to go on when those that end are taken out
        self.candidates = max(2, 1 + len(stops)) * width

    def grow(self, values: Array, tokens: Array, table: Array) -> list[_Choice]:
        """The best continuations that do not end; those that do are put aside if they are good enough."""
        found = [
            (beam.log_prob + value, beam.row, token)
            for beam in self.running
            for value, token in zip(values[beam.row].tolist(), tokens[beam.row].tolist(), strict=True)
            if value > -np.inf
        ]
        found = sorted(found, key=lambda candidate: -candidate[0])[: self.candidates]
        full = len(self.ended) == self.width
        n = self.length = self.length + 1
        kept: list[_Choice] = []
        for rank, (log_prob, row, token) in enumerate(found):
            if token not in self.stops and n < self.last:
                kept.append(_Choice(row, token, _Beam(row, log_prob, n, False, log_prob)))
            elif rank < self.width and not (full and self.early is True):
                text = np.append(table[row, : self.start + n - 1], token)
                self.ended.append(Hypothesis(text, log_prob, self.score(log_prob, n, text)))
        kept = kept[: self.width]
        self.ended = sorted(self.ended, key=lambda hypothesis: -hypothesis.score)[: self.width]
        self.running = [choice.beam._replace(row=self.first + place) for place, choice in enumerate(kept)]
        self.open = bool(kept) and self._may_improve()
        return kept

    def _may_improve(self) -> bool:
        """Whether what is on the way may still be better than the worst that was put aside."""
        if len(self.ended) < self.width:
            return True
        if self.early is True:
            return False
        length = self.last if self.early == "never" and self.alpha > 0 else self.length
        best = self.running[0].log_prob / length**self.alpha if self.alpha else self.running[0].log_prob
        return best > self.ended[-1].score

    def results(self, table: Array) -> list[Hypothesis]:
        if self.empty is not None:
            return [Hypothesis(table[self.empty, : self.start].copy(), 0.0, 0.0)]
        return self.ended
