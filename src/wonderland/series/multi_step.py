"""Forecasts over several steps: a model applied to its own predictions, or one prediction for each step.

A recursive forecast uses one model of the next value again and again, so its errors add up; a direct one predicts each
step from the observed values alone. Book, sections 8.3.1 and 8.3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import arrays
from ..arrays.conversion import as_real, as_tensor
from ..core.arguments import as_function, as_int, as_list
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..random.arguments import check
from ..transforms.control.loops import scan

Model = Callable[[Any], Any]


def rollout(
    model: Model, context: ArrayLike, steps: int, *, every_step: bool = False, exogenous: ArrayLike | None = None
) -> Tensor:
    r"""\(X' = (X_2, \dots, X_t, \hat y)\) with \(\hat y = f(X)\), again and again: (..., t, c) to (..., steps, c).

    >>> import wonderland as wl
    >>> halve = lambda x: 0.5 * x[..., -1, :]
    >>> wl.series.rollout(halve, wl.tensor([[4.0], [8.0]]), steps=3)[:, 0]
    tensor([4., 2., 1.])

    The model takes (..., t, c) and gives the next value (..., c), or with `every_step` a prediction at every time
    (..., t, c), of which the last counts. The window keeps its length: the oldest value leaves as a prediction enters.
    With `exogenous` (..., t + steps, e) the model is called with the pair of the window and the exogenous values of its
    times and the next one, (..., t + 1, e), as `ForecastDataset` gives them. Book, E.8.5.
    """
    as_function("rollout", model)
    x, steps = _context("rollout", context, steps)
    t = x.shape[-2]
    known = None
    if exogenous is not None:
        known = as_real("rollout", exogenous)
        if known.ndim != x.ndim or known.shape[:-1] != (*x.shape[:-2], t + steps):
            raise ShapeError(
                f"rollout: exogenous values of shape {known.shape} for a context of shape {x.shape} and {steps} steps.",
                f"(..., {t + steps}, channels)",
            )
        known = arrays.stack([known[..., k : k + t + 1, :] for k in range(steps)])  # (steps, ..., t + 1, e)

    def one(window: Tensor, ahead: Tensor | None) -> tuple[Tensor, Tensor]:
        y = as_tensor("rollout", model(window if ahead is None else (window, ahead)))
        y = _last("rollout", y, window) if every_step else y
        y = _next("rollout", y, window)
        return arrays.concat([window[..., 1:, :], y[..., None, :]], axis=-2), y

    predictions = scan(one, x, known, length=steps)[1]  # (steps, ..., c)
    return arrays.moveaxis(predictions, 0, -2)


def causal_rollout(
    model: Model, context: ArrayLike, steps: int, *, window: int | None = None, lengths: ArrayLike | None = None
) -> Tensor:
    r"""Forecasts of a causal model \(\hat Y = f(X)\) from a context shorter than its window: (..., steps, c).

    >>> import wonderland as wl
    >>> double = lambda x: 2.0 * x  # at each time, a prediction of the next value
    >>> wl.series.causal_rollout(double, wl.tensor([[1.0], [3.0]]), steps=3, window=4)[:, 0]
    tensor([ 6., 12., 24.])

    The context (..., n, c) is filled up with zeros to `window` times (n by default), which a causal model does not see
    at time n: the output there is the prediction, and goes to place n + 1. When the window is full it slides. With
    `lengths` (...) only so many first values of each sequence are observed, and the rest is padding, so a padded batch
    gives what each of its sequences gives alone. Book, figure 8.8.
    """
    as_function("causal_rollout", model)
    x, steps = _context("causal_rollout", context, steps)
    n = x.shape[-2]
    window = n if window is None else as_int("causal_rollout", "window", window, least=1)
    count = arrays.full(x.shape[:-2], n) if lengths is None else arrays.asarray(lengths)
    if count.shape != x.shape[:-2]:
        raise ShapeError(
            f"causal_rollout: lengths of shape {count.shape} for a context of shape {x.shape}.", "one per sequence"
        )
    check("causal_rollout", "a length", count, lambda v: (v >= 1) & (v <= n), f"lengths from 1 to {n}")
    if n > window:
        if lengths is not None:
            raise InputError(
                f"causal_rollout: window={window} is shorter than a padded context of {n}.", "a window that holds it"
            )
        x, count = x[..., n - window :, :], arrays.full(x.shape[:-2], window)
    places = arrays.arange(window)
    x = arrays.pad(x, ((0, 0),) * (x.ndim - 2) + ((0, max(0, window - n)), (0, 0)))
    x = arrays.where((places < count[..., None])[..., None], x, 0.0)

    def one(carry: tuple[Tensor, Tensor], _: None) -> tuple[tuple[Tensor, Tensor], Tensor]:
        x, count = carry
        outputs = as_tensor("causal_rollout", model(x))
        _last("causal_rollout", outputs, x)
        read = arrays.broadcast_to((count - 1)[..., None, None], (*count.shape, 1, outputs.shape[-1]))
        y = arrays.take_along_axis(outputs, read, axis=-2)  # (..., 1, c)
        _next("causal_rollout", y[..., 0, :], x)
        full = (count == window)[..., None, None]
        x = arrays.where(full, arrays.concat([x[..., 1:, :], arrays.zeros_like(y)], axis=-2), x)
        count = arrays.minimum(count, window - 1)
        x = arrays.where((places == count[..., None])[..., None], y, x)
        return (x, count + 1), y[..., 0, :]

    predictions = scan(one, (x, count), None, length=steps)[1]
    return arrays.moveaxis(predictions, 0, -2)


def direct_forecast(models: Model | Sequence[Model], context: ArrayLike, horizon: int | None = None) -> Tensor:
    r"""\(\hat x_{n+h} = f_h(X)\) for each h: one model that gives (..., horizon, c), or a model of (..., c) per step.

    >>> import wonderland as wl
    >>> models = [lambda x, h=h: x[..., -1, :] * 0.5**h for h in (1, 2, 3)]
    >>> wl.series.direct_forecast(models, wl.tensor([[4.0], [8.0]]))[:, 0]
    tensor([4., 2., 1.])

    No prediction is fed back, so errors do not add up; but nothing makes the steps fit each other.
    """
    x, _ = _context("direct_forecast", context, 1)
    if callable(models):
        y = as_tensor("direct_forecast", models(x))
        if y.ndim != x.ndim or y.shape[:-2] != x.shape[:-2] or horizon not in (None, y.shape[-2]):
            raise ShapeError(
                f"direct_forecast: a forecast of shape {y.shape} for a context of shape {x.shape}"
                f"{'' if horizon is None else f', horizon={horizon}'}.",
                "(..., horizon, channels), or a list of models",
            )
        return y
    each = [as_tensor("direct_forecast", model(x)) for model in as_list("direct_forecast", "models", models)]
    if not each or horizon not in (None, len(each)):
        raise InputError(f"direct_forecast: {len(each)} models, horizon={horizon}.", "one model for each step")
    return arrays.stack(each, axis=-2)


def _context(name: str, context: ArrayLike, steps: int) -> tuple[Tensor, int]:
    x = as_real(name, context)
    if x.ndim < 2 or not x.shape[-2]:
        raise ShapeError(f"{name}: a context of shape {x.shape}.", "(..., time, channels), one time or more")
    return x, as_int(name, "steps", steps, least=1)


def _last(name: str, y: Tensor, window: Tensor) -> Tensor:
    """The last of the predictions for every time."""
    if y.ndim != window.ndim or y.shape[:-1] != window.shape[:-1]:
        raise ShapeError(
            f"{name}: outputs of shape {y.shape} for a window of shape {window.shape}.",
            "a causal model, with an output for every time",
        )
    return y[..., -1, :]


def _next(name: str, y: Tensor, window: Tensor) -> Tensor:
    """A prediction that can stand in the window."""
    if y.shape != (*window.shape[:-2], window.shape[-1]):
        raise ShapeError(
            f"{name}: a prediction of shape {y.shape} does not continue a window of shape {window.shape}.",
            "a model of the next value of all channels; every_step=True if it gives one for every time",
        )
    return arrays.astype(y, window.dtype)
