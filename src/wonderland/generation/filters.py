"""What is done to the logits of the next token before one is drawn. Book, section 8.4.2.

Every function takes logits (..., vocabulary) and gives logits of the same shape; what may not be drawn is -inf.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .. import arrays
from ..arrays.conversion import as_real, as_tensor
from ..core.arguments import as_int, as_number
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike


def temperature(logits: ArrayLike, tau: float) -> Tensor:
    r"""\(z / \tau\): below 1 the likely become more likely, above 1 all become more alike. Book, section 8.4.2.

    >>> import wonderland as wl
    >>> wl.softmax(wl.generation.temperature(wl.log(wl.tensor([0.2, 0.8])), 0.5)).numpy().round(3)
    array([0.059, 0.941], dtype=float32)

    With \(\tau = 0\), the limit, only the largest logit is left (the first of equals). The largest logit is taken off
    first, so that small \(\tau\) do not overflow.
    """
    z = _logits("temperature", logits)
    tau = _number("temperature", "tau", tau)
    if not 0 <= tau < math.inf:
        raise InputError(f"temperature: tau={tau}.", "a finite number from 0")
    if tau == 0:
        return _without(z, arrays.arange(z.shape[-1]) != arrays.expand_dims(arrays.argmax(z, axis=-1), -1))
    return (z - arrays.max(z, axis=-1, keepdims=True)) / tau


def top_k(logits: ArrayLike, k: int) -> Tensor:
    """The k largest logits; the others are -inf. Those equal to the last of them stay, too.

    >>> import wonderland as wl
    >>> wl.generation.top_k(wl.tensor([1.0, 4.0, 3.0]), 2)
    tensor([-inf,   4.,   3.])
    """
    z = _logits("top_k", logits)
    k = min(as_int("top_k", "k", k, 1), z.shape[-1])
    if k == z.shape[-1]:
        return z
    return _without(z, z < arrays.top_k(z, k).values[..., -1:])


def top_p(logits: ArrayLike, p: float) -> Tensor:
    """Nucleus sampling: the likeliest tokens whose probabilities together reach p; the others are -inf.

    >>> import wonderland as wl
    >>> wl.softmax(wl.generation.top_p(wl.log(wl.tensor([0.5, 0.1, 0.4])), 0.8)).numpy().round(3)
    array([0.556, 0.   , 0.444], dtype=float32)

    The token with which p is reached is kept, so there is always one; 1 keeps all.
    """
    z = _logits("top_p", logits)
    p = _number("top_p", "p", p)
    if not 0 <= p <= 1:
        raise InputError(f"top_p: p={p} is not a probability.", "a number from 0 to 1")
    if p == 1:
        return z
    order = arrays.argsort(z, axis=-1, descending=True)
    likely = arrays.take_along_axis(arrays.softmax(z, axis=-1), order, axis=-1)
    before = arrays.cumulative_sum(likely, axis=-1) - likely  # of all that are likelier
    beyond = (before >= p) & (arrays.arange(z.shape[-1]) > 0)
    return _without(z, arrays.take_along_axis(beyond, arrays.argsort(order, axis=-1), axis=-1))


def min_p(logits: ArrayLike, p: float) -> Tensor:
    """Tokens whose probability is at least p times that of the likeliest; the others are -inf.

    >>> import wonderland as wl
    >>> wl.softmax(wl.generation.min_p(wl.log(wl.tensor([0.5, 0.1, 0.4])), 0.5)).numpy().round(3)
    array([0.556, 0.   , 0.444], dtype=float32)
    """
    z = _logits("min_p", logits)
    p = _number("min_p", "p", p)
    if not 0 <= p <= 1:
        raise InputError(f"min_p: p={p} is not a probability.", "a number from 0 to 1")
    if p == 0:
        return z
    return _without(z, z < arrays.max(z, axis=-1, keepdims=True) + math.log(p))


def repetition_penalty(logits: ArrayLike, seen: ArrayLike, penalty: float) -> Tensor:
    """Logits of tokens that were seen before, divided by the penalty where they are positive, else multiplied by it.

    >>> import wonderland as wl
    >>> wl.generation.repetition_penalty(wl.tensor([2.0, -1.0, 3.0]), wl.tensor([True, True, False]), 2.0)
    tensor([ 1., -2.,  3.])

    `seen` (..., vocabulary) says which tokens. 1 changes nothing, more makes repetition less likely.
    """
    z, seen = _logits("repetition_penalty", logits), as_tensor("repetition_penalty", seen)
    penalty = _number("repetition_penalty", "penalty", penalty)
    if not 0 < penalty < math.inf:
        raise InputError(f"repetition_penalty: penalty={penalty}.", "a finite number above 0, usually 1 to 1.5")
    if seen.shape != z.shape:
        raise ShapeError(f"repetition_penalty: seen {seen.shape} beside logits {z.shape}.", "the same shape")
    return arrays.where(seen, arrays.where(z > 0, z / penalty, z * penalty), z)


@dataclass(frozen=True)
class Sampling:
    """How a token is drawn: the settings of the filters, which are applied in the order of their names here.

    >>> import wonderland as wl
    >>> sampling = wl.generation.Sampling(temperature=0.5, top_k=2)
    >>> wl.softmax(sampling(wl.log(wl.tensor([0.2, 0.3, 0.5])))).numpy().round(3)
    array([0.   , 0.265, 0.735], dtype=float32)

    The defaults change nothing: ancestral sampling. `temperature=0` is greedy decoding.
    """

    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        # settings are tried on one logit, so that they are refused before anything is computed
        self(arrays.zeros((1, 1)), arrays.zeros((1, 1), dtype=bool))

    def __call__(self, logits: ArrayLike, seen: ArrayLike | None = None) -> Tensor:
        """The logits (..., vocabulary) to draw from; `seen` is for the repetition penalty."""
        z = _logits("Sampling", logits)
        if self.repetition_penalty != 1.0 and seen is not None:
            z = repetition_penalty(z, seen, self.repetition_penalty)
        if self.temperature != 1.0:
            z = temperature(z, self.temperature)
        if self.top_k is not None:
            z = top_k(z, self.top_k)
        if self.top_p is not None:
            z = top_p(z, self.top_p)
        return z if self.min_p is None else min_p(z, self.min_p)


def _logits(name: str, logits: ArrayLike) -> Tensor:
    z = as_real(name, logits)
    if not z.ndim or not z.shape[-1]:
        raise ShapeError(f"{name}: logits of shape {z.shape}.", "(..., vocabulary), one token or more")
    return z


def _number(name: str, what: str, value: float) -> float:
    return float(as_number(name, what, value))


def _without(z: Tensor, mask: Tensor) -> Tensor:
    return arrays.masked_fill(z, mask, -math.inf)
