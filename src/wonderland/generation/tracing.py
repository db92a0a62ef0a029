"""A sequence step by step: what each token's probability was, and what else might have come. Book, section 8.4.1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .. import arrays
from ..core.arguments import as_int
from ..core.errors import InputError, ShapeError
from ..core.typing import Array, ArrayLike
from ..train.evaluation import evaluating
from ..train.step import Model
from .next_token import check_sound, check_tokens, checked


class Step(NamedTuple):
    """A token that was written: its place, its probability given all before it, and the likeliest tokens there."""

    place: int
    token: int
    probability: float
    likeliest: list[tuple[int, float]]


class Trace:
    """The steps of a sequence. The product of their probabilities is that of the sequence, `exp(trace.log_prob)`."""

    def __init__(self, tokens: Array, steps: list[Step], log_prob: float, name_of: Callable[[int], str]) -> None:
        self.tokens, self.steps, self.log_prob, self.name_of = tokens, steps, log_prob, name_of

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        names = [self.name_of(token) for token in self.tokens.tolist()]
        lines = []
        for step in self.steps:
            given = " ".join(names[: step.place])
            lines.append(f"p({names[step.place]}{' | ' if given else ''}{given}) = {step.probability:.4g}")
        return "\n".join([*lines, f"product: {math.exp(self.log_prob):.4g}, log-probability {self.log_prob:.4f}"])


def trace(
    model: Model,
    tokens: ArrayLike,
    *,
    start: int | None = None,
    bos: int | None = None,
    top: int = 3,
    name_of: Callable[[int], str] = str,
) -> Trace:
    r"""The chain \(p(x_1), p(x_2 \mid x_1), p(x_3 \mid x_1, x_2), \dots\) of one sequence, as numbers and to print.

    >>> import wonderland as wl
    >>> words = ["<s>", "the", "dog", "ate", "cake"]
    >>> follows = wl.zeros((5, 5))
    >>> follows[[0, 2, 3, 4], [1, 3, 1, 0]] = 1.0
    >>> follows[1, [2, 4]] = 0.5
    >>> chain = wl.generation.trace(lambda x: wl.log(follows)[x], [1, 2, 3, 1, 4], bos=0, name_of=words.__getitem__)
    >>> print(chain)
    p(the) = 1
    p(dog | the) = 0.5
    p(ate | the dog) = 1
    p(the | the dog ate) = 1
    p(cake | the dog ate the) = 0.5
    product: 0.25, log-probability -1.3863
    >>> chain.steps[1]
    Step(place=1, token=2, probability=0.5, likeliest=[(2, 0.5), (4, 0.5), (0, 0.0)])

    The tokens (n,) may be what `generate` wrote; `start` is where its steps begin, the length of the prompt. Without
    `bos` nothing predicts the first token, so it is given. The probabilities are the model's own: temperature, top-k
    and other filters draw by different ones. `top` is how many alternatives each step keeps, `name_of(token)` the text
    of a token. Book, sections 8.4.1 and 8.4.2.
    """
    name = "trace"
    x = np.asarray(tokens)
    if x.ndim != 1 or not len(x) or x.dtype.kind not in "iu":
        raise ShapeError(f"{name}: tokens {x.dtype}{list(x.shape)}.", "one sequence of integers, (n,)")
    if x.min() < 0:
        raise InputError(f"{name}: the token {x.min()}.", "tokens from 0")
    first = 1 if bos is None else 0
    begin = first if start is None else as_int(name, "start", start, first)
    top = as_int(name, "top", top, 0)
    read = x[:-1] if bos is None else np.append(as_int(name, "bos", bos, 0), x[:-1])
    steps: list[Step] = []
    total = 0.0
    if begin < len(x):
        with evaluating(model):
            logits = checked(name, model(arrays.asarray(read[None].astype(np.int64))), (1, len(read)))[0]
        check_tokens(name, x, logits.shape[-1])
        check_sound(name, np.isfinite(logits.numpy()[begin - first :].max(axis=-1)), len(x) - 1)
        log_probs = arrays.log_softmax(logits, axis=-1).numpy()
        for place in range(begin, len(x)):
            row, token = log_probs[place - first], int(x[place])
            best = np.argsort(-row, kind="stable")[:top].tolist()
            likeliest = [(other, math.exp(row[other])) for other in best]
            steps.append(Step(place, token, math.exp(row[token]), likeliest))
            total += float(row[token])
    return Trace(x, steps, total, name_of)
