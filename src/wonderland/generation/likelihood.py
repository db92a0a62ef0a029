"""How likely a model finds sequences: the chain rule, in logarithms. Book, sections 8.4.1 and 8.4.3."""

from __future__ import annotations

from .. import arrays
from ..arrays.conversion import as_tensor
from ..core import dtypes
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..train.step import Model
from .next_token import checked


def token_log_probs(model: Model, tokens: ArrayLike, *, bos: int | None = None) -> Tensor:
    r"""\(\log p(x_i \mid x_1, \dots, x_{i-1})\) for every token of sequences (batch, time). Book, E.8.7.

    >>> import wonderland as wl
    >>> uniform = lambda tokens: wl.zeros((*tokens.shape, 4))
    >>> wl.exp(wl.generation.token_log_probs(uniform, [[2, 0, 1]]))
    tensor([[1.  , 0.25, 0.25]])

    With `bos` the first token is predicted from it; without, nothing predicts it and its entry is 0: all is then given
    the first token. The model sees the sequences without their last token, so no token can help to predict itself.
    """
    name = "token_log_probs"
    x = as_tensor(name, arrays.asarray(tokens))
    if not dtypes.is_integer(x.dtype):
        raise DTypeError(f"{name}: tokens of {x.dtype}.", "integers")
    if x.ndim != 2 or not x.shape[1]:
        raise ShapeError(f"{name}: tokens of shape {x.shape}.", "(batch, time), one token or more")
    start = arrays.full((x.shape[0], 1), 0 if bos is None else bos, dtype=x.dtype)
    if bos is None and x.shape[1] == 1:
        return arrays.zeros(x.shape)
    inputs, targets = (x[:, :-1], x[:, 1:]) if bos is None else (arrays.concat([start, x[:, :-1]], axis=1), x)
    logits = checked(name, model(inputs), inputs.shape)  # (b, t, V)
    log_probs = arrays.log_softmax(logits, axis=-1)
    picked = arrays.squeeze(arrays.take_along_axis(log_probs, targets[..., None], axis=-1), -1)
    return picked if bos is not None else arrays.concat([arrays.zeros_like(picked[:, :1]), picked], axis=1)


def sequence_log_prob(
    model: Model, tokens: ArrayLike, mask: ArrayLike | None = None, *, bos: int | None = None
) -> Tensor:
    r"""\(\log p(x) = \sum_i \log p(x_i \mid x_1, \dots, x_{i-1})\) of sequences (batch, time): (batch,). Book, E.8.7.

    >>> import wonderland as wl
    >>> uniform = lambda tokens: wl.zeros((*tokens.shape, 4))
    >>> wl.exp(wl.generation.sequence_log_prob(uniform, [[2, 0, 1], [3, 3, 3]], bos=0))
    tensor([0.015625, 0.015625])

    `mask` (batch, time) is True at tokens that count: not at padding, and not at a prompt that is given. Without `bos`
    the first token is given. Sums of logarithms do not underflow, however long the sequence is.
    """
    terms = token_log_probs(model, tokens, bos=bos)
    if mask is not None:
        counted = as_tensor("sequence_log_prob", arrays.asarray(mask))
        if counted.shape != terms.shape:
            raise ShapeError(
                f"sequence_log_prob: a mask of shape {counted.shape} for tokens of shape {terms.shape}.", "the same"
            )
        terms = arrays.where(
            counted != 0 if counted.dtype != dtypes.bool_ else counted, terms, arrays.zeros_like(terms)
        )
    return arrays.sum(terms, axis=-1)


def conditional_log_prob(model: Model, prompt: ArrayLike, tokens: ArrayLike, *, bos: int | None = None) -> Tensor:
    r"""\(\log p(x \mid c)\) of tokens x (batch, time) after a prompt c (batch, n): (batch,). Book, section 8.4.3.

    >>> import wonderland as wl
    >>> uniform = lambda tokens: wl.zeros((*tokens.shape, 4))
    >>> wl.exp(wl.generation.conditional_log_prob(uniform, [[1, 2, 3]], [[0, 0]]))
    tensor([0.0625])

    The model reads the concatenation, and only the terms of x are added: \(\log p(c, x) - \log p(c)\).
    """
    c, x = arrays.asarray(prompt), arrays.asarray(tokens)
    if c.ndim != 2 or x.ndim != 2 or c.shape[0] != x.shape[0]:
        raise ShapeError(
            f"conditional_log_prob: a prompt of shape {c.shape} and tokens of shape {x.shape}.",
            "(batch, n) and (batch, time)",
        )
    if not c.shape[1] and bos is None:
        raise InputError("conditional_log_prob: the prompt is empty.", "bos=..., the token that begins sequences")
    terms = token_log_probs(model, arrays.concat([c, x], axis=1), bos=bos)
    return arrays.sum(terms[:, c.shape[1] :], axis=-1)
