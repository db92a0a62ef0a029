"""What an autoregressive model is fed while it trains: the truth, or some of its own predictions. Book, section 8.3.2.

Teacher forcing feeds the true value of every step, so that all steps can be learned at once, but the model never meets
its own mistakes (exposure bias). Scheduled sampling replaces inputs by predictions, each with a probability p that
grows while training: p = 0 is teacher forcing, p = 1 lets the model run freely from the first input.

Sequences are (..., time, channels) of numbers or (..., time) of integers, the tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import arrays
from ..arrays import stop_gradient
from ..arrays.conversion import as_tensor
from ..core import trees
from ..core.arguments import as_function, as_int
from ..core.dtypes import is_integer
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, KeyLike
from ..random.arguments import check
from ..random.discrete import bernoulli
from ..random.streams import take_key
from ..transforms.control.loops import scan


def shift_right(targets: ArrayLike, start: ArrayLike = 0) -> Tensor:
    r"""The inputs of teacher forcing, \((s, y_1, \dots, y_{t-1})\): at each step the target of the one before.

    >>> import wonderland as wl
    >>> wl.series.shift_right(wl.tensor([5, 6, 7]), start=1)  # 1 is the token that begins
    tensor([1, 5, 6])

    `start` is one number for all, or an array of what comes first: (channels,), or one for each sequence.
    """
    y, axis = _sequence("shift_right", targets)
    y = arrays.moveaxis(y, axis, 0)
    first = arrays.broadcast_to(arrays.astype(arrays.asarray(start), y.dtype), y.shape[1:])
    return arrays.moveaxis(arrays.concat([first[None], y[:-1]]), 0, axis)


def next_tokens(
    tokens: ArrayLike, prompts: ArrayLike | None = None, lengths: ArrayLike | None = None, ignore_index: int = -100
) -> Tensor:
    r"""What a language model has to predict at each place, \((x_2, \dots, x_t, -)\), where it counts. Book, 11.1.3.

    >>> import wonderland as wl
    >>> tokens = wl.tensor([[5, 6, 1, 6, 5, 2]])  # 5 6 and a separator, then what the model shall write
    >>> wl.series.next_tokens(tokens, prompts=[3])
    tensor([[-100, -100,    6,    5,    2, -100]])

    Of tokens (batch, time) the first `prompts` of each row, one number or (batch,), are given and not learned: with
    source and target in a row a model without an encoder learns to make one from the other. `lengths` (batch,) are
    those of the rows without padding. Places that do not count have `ignore_index`, as `cross_entropy` has it.
    """
    x = as_tensor("next_tokens", tokens)
    if x.ndim != 2 or not is_integer(x.dtype):
        raise ShapeError(f"next_tokens: tokens {x.dtype}{list(x.shape)}.", "integers (batch, time)")
    ends, starts = x.shape[1] if lengths is None else lengths, 0 if prompts is None else prompts
    bounds = []
    for what, given in (("prompts", starts), ("lengths", ends)):
        bound = as_tensor("next_tokens", arrays.asarray(given))
        if bound.shape not in ((), x.shape[:1]) or not is_integer(bound.dtype):
            raise ShapeError(
                f"next_tokens: {what} {bound.dtype}{list(bound.shape)} for tokens of shape {x.shape}.",
                f"one integer, or {x.shape[0]} of them",
            )
        bounds.append(arrays.reshape(bound, (-1, 1)))
    following = arrays.concat([x[:, 1:], x[:, :1]], axis=1)
    places = arrays.arange(1, x.shape[1] + 1)  # of what follows
    return arrays.where((places >= bounds[0]) & (places < bounds[1]), following, ignore_index)


def unroll(
    step: Callable[[Any, Any], tuple[Tensor, Any]],
    inputs: ArrayLike,
    state: Any = None,
    *,
    p: ArrayLike = 0.0,
    feed: Callable[[Any], ArrayLike] | None = None,
    detach: bool = True,
    key: KeyLike = None,
) -> tuple[Tensor, Any]:
    r"""Run \(y_i, s_{i+1} = f(\tilde x_i, s_i)\), where \(\tilde x_i\) is \(x_i\), or with probability p \(y_{i-1}\).

    >>> import wonderland as wl
    >>> def step(x, total):  # a model that predicts twice its input, and counts
    ...     return 2.0 * x, (0.0 if total is None else total) + 1.0
    >>> inputs = wl.tensor([[1.0], [10.0], [100.0]])
    >>> wl.series.unroll(step, inputs)[0][:, 0], wl.series.unroll(step, inputs, p=1.0)[0][:, 0]
    (tensor([  2.,  20., 200.]), tensor([2., 4., 8.]))

    `step(x, state)` gives an output and the next state, as `step` of the models here does; it is given `state` (None)
    first. The outputs (..., time, ...) and the last state are returned. Whether a step is fed a prediction is drawn for
    every step of every sequence but the first step. `feed` turns an output into an input (identity; the argmax or a
    sample of logits for tokens). With `detach` no derivative flows through what was fed. Book, section 8.3.2.
    """
    as_function("unroll", step)
    x, axis = _sequence("unroll", inputs)
    xs = arrays.moveaxis(x, axis, 0)  # (time, ...)
    chosen = _chosen("unroll", p, (xs.shape[0], *x.shape[:axis]), key, xs.ndim)
    first, state = step(xs[0], state)
    fed = _fed("unroll", first, xs[0], feed, detach)
    if xs.shape[0] == 1:
        return arrays.expand_dims(first, axis), state

    cache = state if trees.is_stateful(state) else None  # it is changed in place, and no value of the loop

    def one(carry: Any, now: tuple[Tensor, Tensor]) -> tuple[tuple[object, Tensor], Tensor]:
        state, fed = carry
        truth, own = now
        y, state = step(arrays.where(own, fed, truth), state if cache is None else cache)
        return (state if cache is None else None, _fed("unroll", y, truth, feed, detach)), y

    (last, _), rest = scan(one, (state if cache is None else None, fed), (xs[1:], chosen[1:]))
    state = last if cache is None else cache
    return arrays.moveaxis(arrays.concat([arrays.expand_dims(first, 0), rest]), 0, axis), state


def scheduled_sampling(
    model: Callable[[Any], ArrayLike],
    inputs: ArrayLike,
    p: ArrayLike,
    *,
    passes: int = 1,
    feed: Callable[[Any], ArrayLike] | None = None,
    detach: bool = True,
    key: KeyLike = None,
) -> Tensor:
    r"""Inputs for a causal model of whole sequences, each replaced by the model's prediction of it with probability p.

    >>> import wonderland as wl
    >>> inputs = wl.tensor([[1.0], [10.0], [100.0]])
    >>> double = lambda x: 2.0 * x
    >>> wl.series.scheduled_sampling(double, inputs, 1.0)[:, 0]
    tensor([ 1.,  2., 20.])
    >>> wl.series.scheduled_sampling(double, inputs, 1.0, passes=2)[:, 0]
    tensor([1., 2., 4.])

    Train with `model(scheduled_sampling(model, x, p(step)))` and the targets of x. The model predicts all steps from
    the true inputs in one pass; after each further pass one more step is exactly what running step by step gives
    (`unroll` with the same key), so `passes = time - 1` is that, and one pass is what is usually done. `feed` and
    `detach` are those of `unroll`. p = 0 gives the inputs themselves. Book, section 8.3.2.
    """
    as_function("scheduled_sampling", model)
    x, axis = _sequence("scheduled_sampling", inputs)
    passes = as_int("scheduled_sampling", "passes", passes, least=1)
    truth = arrays.moveaxis(x, axis, 0)
    own = _chosen("scheduled_sampling", p, (truth.shape[0], *x.shape[:axis]), key, truth.ndim)
    if truth.shape[0] == 1:
        return x
    mixed = x
    for _ in range(passes):
        predicted = arrays.moveaxis(as_tensor("scheduled_sampling", model(mixed)), axis, 0)
        fed = _fed("scheduled_sampling", predicted, truth, feed, detach)
        later = arrays.where(own[1:], fed[:-1], truth[1:])
        mixed = arrays.moveaxis(arrays.concat([truth[:1], later]), 0, axis)
    return mixed


def _sequence(name: str, x: ArrayLike) -> tuple[Tensor, int]:
    """The sequence and its axis of time: the last one of tokens, the one before the channels of numbers."""
    x = as_tensor(name, x)
    axis = x.ndim - (1 if is_integer(x.dtype) else 2)
    if axis < 0 or not x.shape[axis]:
        raise ShapeError(
            f"{name}: a sequence {x.dtype}{list(x.shape)}.", "(..., time, channels), or integers (..., time)"
        )
    return x, axis


def _chosen(name: str, p: ArrayLike, steps: tuple[int, ...], key: KeyLike, ndim: int) -> Tensor:
    """Which steps are fed a prediction: (time, ..., 1), drawn for each step of each sequence."""
    check(name, "p", p, lambda v: (v >= 0) & (v <= 1), "a probability from 0 to 1")
    if isinstance(p, (int, float)) and p in (0, 1):
        drawn = arrays.full(steps, bool(p))  # nothing is random, and no key is used up
    else:
        drawn = bernoulli(steps, p, key=take_key(name, key), dtype=bool)
    return arrays.reshape(drawn, (*steps, *[1] * (ndim - len(steps))))


def _fed(name: str, y: Tensor, x: Tensor, feed: Callable[[Any], ArrayLike] | None, detach: bool) -> Tensor:
    """An output as an input."""
    fed = as_tensor(name, y if feed is None else feed(y))
    if fed.shape != x.shape:
        raise ShapeError(
            f"{name}: an output of shape {fed.shape} is fed to a model of inputs of shape {x.shape}.",
            "feed=, a function from outputs to inputs",
        )
    if is_integer(fed.dtype) != is_integer(x.dtype):
        raise InputError(
            f"{name}: {fed.dtype} is fed to a model of {x.dtype}.", "feed=lambda logits: logits.argmax(-1)"
        )
    fed = arrays.astype(fed, x.dtype)
    return stop_gradient(fed) if detach else fed
