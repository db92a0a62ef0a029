"""Metrics of models of sequences: how surprised they are by the token that comes. Book, section 8.4.1."""

from __future__ import annotations

import math

import numpy as np

from ..core.errors import InputError, ShapeError
from .metric import Array, MeanMetric, Value


class NegativeLogLikelihood(MeanMetric):
    r"""\(-\frac1n\sum_i \log p(x_i \mid x_1, \dots, x_{i-1})\), the mean over all tokens, in nats. Book, section 8.4.1.

    >>> import wonderland as wl
    >>> logits, targets = wl.zeros((2, 3, 8)), wl.tensor([[1, 2, 3], [4, -100, -100]])
    >>> print(f"{wl.metrics.NegativeLogLikelihood()(logits, targets):.4f}")  # log 8
    2.0794

    Predictions are logits (..., vocabulary) of the next token, targets the tokens (...). Every token counts once, in
    whatever batch it comes; targets `ignore_index` are padding and do not count.
    """

    def __init__(self, ignore_index: int = -100) -> None:
        self.ignore_index = ignore_index
        super().__init__()

    def add(self, predictions: Array, targets: Array) -> None:
        if predictions.shape[:-1] != targets.shape or not predictions.shape[-1]:
            raise ShapeError(
                f"{self.name}: logits of shape {predictions.shape} and tokens of shape {targets.shape}.",
                "logits (..., vocabulary) for tokens (...)",
            )
        if targets.dtype.kind not in "iu":
            raise InputError(f"{self.name}: tokens of type {targets.dtype}.", "integers")
        counted = targets != self.ignore_index
        logits, tokens = predictions[counted].astype(np.float64), targets[counted]
        if tokens.size and not 0 <= tokens.min() <= tokens.max() < logits.shape[-1]:
            strange = tokens.min() if tokens.min() < 0 else tokens.max()
            raise InputError(
                f"{self.name}: the token {strange} with logits for {logits.shape[-1]}.",
                f"tokens from 0 to {logits.shape[-1] - 1}, or ignore_index={self.ignore_index}",
            )
        top = logits.max(axis=-1, keepdims=True, initial=-np.inf)
        log_sum = np.log(np.exp(logits - top).sum(axis=-1)) + top[:, 0]
        self.total += (log_sum - logits[np.arange(len(tokens)), tokens]).sum()
        self.count += len(tokens)

    def result(self) -> Value:
        if not self.count:
            raise InputError(f"{self.name}: all targets are ignored.", "one token or more that counts")
        return super().result()


class Perplexity(NegativeLogLikelihood):
    r"""\(\exp(-\frac1n\sum_i \log p(x_i \mid x_1, \dots, x_{i-1}))\): among how many tokens a model seems to guess.

    >>> import wonderland as wl
    >>> round(wl.metrics.Perplexity()(wl.zeros((2, 3, 8)), wl.tensor([[1, 2, 3], [4, 5, -100]])), 4)
    8.0

    The arguments are those of `NegativeLogLikelihood`. Book, section 8.4.1.
    """

    def result(self) -> Value:
        return np.exp(super().result())


class BitsPerCharacter(NegativeLogLikelihood):
    r"""\(-\frac1m\sum_i \log_2 p(x_i \mid x_1, \dots, x_{i-1})\) over the m characters of the text.

    >>> import wonderland as wl
    >>> wl.metrics.BitsPerCharacter()(wl.zeros((2, 3, 8)), wl.tensor([[1, 2, 3], [4, 5, 6]]))
    3.0

    If a token is not one character, say how many there are per token, on average over the text: so models with other
    tokenizers can be compared. With bytes in the place of characters it is bits per byte. Book, section 8.4.1.
    """

    def __init__(self, characters_per_token: float = 1.0, ignore_index: int = -100) -> None:
        if not characters_per_token > 0:
            raise InputError(f"bits_per_character: characters_per_token={characters_per_token}.", "a number above 0")
        self.characters_per_token = float(characters_per_token)
        super().__init__(ignore_index)

    def result(self) -> Value:
        return super().result() / (math.log(2) * self.characters_per_token)


class TokenAccuracy(MeanMetric):
    r"""The share of tokens that are the likeliest ones, \(\frac1n\sum_i [\arg\max_k z_{ik} = x_i]\).

    >>> import wonderland as wl
    >>> wl.metrics.TokenAccuracy()(wl.one_hot(wl.tensor([[1, 2, 0]]), 3), wl.tensor([[1, 1, -100]]))
    0.5

    The arguments are those of `NegativeLogLikelihood`: for masked language models, which are asked for some tokens
    only, and for sequences with padding. Book, section 11.2.4.
    """

    def __init__(self, ignore_index: int = -100) -> None:
        self.ignore_index = ignore_index
        super().__init__()

    def add(self, predictions: Array, targets: Array) -> None:
        if predictions.shape[:-1] != targets.shape or not predictions.shape[-1]:
            raise ShapeError(
                f"{self.name}: logits of shape {predictions.shape} and tokens of shape {targets.shape}.",
                "logits (..., vocabulary) for tokens (...)",
            )
        counted = targets != self.ignore_index
        self.total += np.count_nonzero((predictions.argmax(-1) == targets) & counted)
        self.count += np.count_nonzero(counted)

    def result(self) -> Value:
        if not self.count:
            raise InputError(f"{self.name}: all targets are ignored.", "one token or more that counts")
        return super().result()
