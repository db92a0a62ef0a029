"""Beam search: the likeliest sequences that a search of limited width finds. Book, section 8.4.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..arguments import as_function, as_int, as_number
from ..errors import InputError
from ..train.evaluation import evaluating
from .next_token import check_finite, check_tokens, next_token_logits
from .prompts import Array, as_prompts, stop_set

__all__ = ["Hypothesis", "beam_search"]


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


def beam_search(
    model: Any,
    prompt: Any = None,
    max_new_tokens: int = 100,
    *,
    beams: int = 4,
    length_penalty: float = 0.0,
    stop_tokens: Any = None,
    bos: int | None = None,
    reward: Callable[[Array], float] | None = None,
    context: int | None = None,
    causal: bool = True,
    jit: bool | None = None,
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

    The result is a list of `Hypothesis(tokens, log_prob, score)`, best first, `beams` of them or as many as there are;
    for several prompts a list of such lists. One beam is greedy decoding. The other arguments are those of `generate`.
    """
    name = "beam_search"
    width = as_int(name, "beams", beams, 1)
    count = as_int(name, "max_new_tokens", max_new_tokens, 0)
    alpha = float(as_number(name, "length_penalty", length_penalty))
    if not np.isfinite(alpha):
        raise InputError(f"{name}: length_penalty={alpha}.", "a finite number, usually from 0 to 1")
    if reward is not None:
        as_function("reward", reward)
    prompts = as_prompts(name, prompt, bos)
    stops = stop_set(name, stop_tokens)
    table, lengths = prompts.table(count)
    table = np.repeat(table, width, axis=0)
    # one beam to begin with, so that the first step takes different tokens and not one of them `beams` times
    groups = [[_Beam(number * width, 0.0, 0, count == 0, 0.0)] for number in range(len(lengths))]

    def score(log_prob: float, length: int, tokens: Array) -> float:
        value = log_prob / length**alpha if alpha else log_prob
        return value if reward is None else value + float(reward(tokens))

    with evaluating(model):
        logits_after = next_token_logits(name, model, context, table.shape[1], causal, jit)
        t = int(lengths.min()) - 1
        while any(not beam.closed for group in groups for beam in group):
            logits = logits_after(table, t).numpy().astype(np.float64)
            check_finite(name, logits[[beam.row for group in groups for beam in group]], t)
            if t == int(lengths.min()) - 1:
                check_tokens(name, table, logits.shape[-1])
            log_probs = _log_softmax(logits)
            before = table.copy()
            rows = np.arange(len(table))
            for number, group in enumerate(groups):
                start = int(lengths[number])
                if t + 1 < start or all(beam.closed for beam in group):
                    continue  # the prompt is still being read, or all is said
                chosen = _best(group, log_probs, before, t, width, score)
                kept = []
                for place, (beam, token) in enumerate(chosen):
                    row = number * width + place
                    rows[row] = beam.row
                    table[row] = before[beam.row]
                    closed = beam.closed
                    if token is not None:
                        table[row, t + 1] = token
                        closed = token in stops or t + 2 >= start + count
                    kept.append(beam._replace(row=row, closed=closed))
                groups[number] = kept
            logits_after.reorder(rows)
            t += 1
    results = []
    for group, start in zip(groups, lengths.tolist(), strict=True):
        results.append([Hypothesis(table[b.row, : start + b.length].copy(), b.log_prob, b.score) for b in group])
    return prompts.given_as(results)


def _best(
    group: list[_Beam],
    log_probs: Array,
    table: Array,
    t: int,
    width: int,
    score: Callable[[float, int, Array], float],
) -> list[tuple[_Beam, int | None]]:
    """The best of all continuations: beams (in the rows they come from) and their new tokens, None if closed before."""
    found: list[tuple[_Beam, int | None]] = []
    for beam in group:
        if beam.closed:
            found.append((beam, None))
            continue
        row = log_probs[beam.row]
        for token in np.argsort(-row, kind="stable")[:width].tolist():
            log_prob = beam.log_prob + float(row[token])
            if log_prob == -np.inf:
                break  # what cannot be is no candidate
            tokens = np.append(table[beam.row, : t + 1], token)
            value = score(log_prob, beam.length + 1, tokens)
            found.append((_Beam(beam.row, log_prob, beam.length + 1, False, value), token))
    return sorted(found, key=lambda candidate: -candidate[0].score)[:width]


def _log_softmax(logits: Array) -> Array:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
