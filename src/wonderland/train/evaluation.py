"""How good a model is on data, and what it says about them: no parameter and no statistic moves."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from .. import arrays
from ..core import trees
from ..core.errors import InputError, NonFiniteError
from ..core.tensor import Tensor
from ..metrics.metric import Metric
from ..nn.module.module import Module
from ..transforms.imperative import no_grad
from ..transforms.jit.jit import jit
from .by_name import metric_named
from .feeding import Data, as_loader, size_of
from .step import Loss, Model, Objective, as_loss, evaluation_step, supervised
from .together import Together

Metrics: TypeAlias = Metric | str | Sequence[Metric | str] | Mapping[str, Metric | str] | None


def evaluate(
    model: Model,
    loss: Loss,
    data: Data,
    *,
    metrics: Metrics = None,
    batch_size: int = 256,
    objective: Objective = supervised,
    step: Callable[..., tuple[Tensor, Any]] | None = None,
    size: Callable[[object], int] = size_of,
    together: Together | None = None,
) -> dict[str, Any]:
    r"""The mean loss over the data, \(\frac1n\sum_i \ell(f(x_i), y_i)\), and the metrics, in evaluation mode.

    >>> import wonderland as wl
    >>> x = wl.tensor([[1.0], [2.0], [3.0]])
    >>> wl.train.evaluate(wl.nn.Linear.from_matrix([[2.0]]), "mse_loss", (x, 2 * x + 1), batch_size=2)
    {'loss': 1.0}

    Batches of different sizes count by their examples, or by `size` of them. Several processes, `together`, measure the
    rows that their loaders hand out, and get the results for all. Book, sections 3.2 and 9.2.2.
    """
    loss = as_loss(loss)
    metrics = named_metrics(metrics, loss)
    step = step or evaluation_step(objective)
    total, count = 0.0, 0
    for metric in metrics.values():
        metric.reset()
    with evaluating(model), no_grad():
        loader = as_loader(data, batch_size, shuffle=False, seed=0)
        for batch in loader:
            if together is not None:
                batch = together.spread(batch, loader)
            value, outputs = step(model, loss, batch)
            if math.isnan(number := float(value)):
                raise NonFiniteError(
                    f"evaluate: the loss of the examples from {count} on is nan.",
                    "data and parameters without NaN; a smaller learning rate if they come from training",
                )
            if together is not None and not together.has_rows(loader):
                continue
            weight = size(batch)
            total, count = total + number * weight, count + weight
            for metric in metrics.values():
                metric.update(outputs, batch[1] if together is None else together.whole(batch[1]))
    if together is not None:
        total, count = together.total(total, count)
        together.add_up(metrics)
    if not count:
        raise InputError("evaluate: there are no examples.", "data that are not empty")
    return {"loss": total / count, **{name: metric.compute() for name, metric in metrics.items()}}


def predict(model: Model, data: Data, *, batch_size: int = 256, compiled: bool = True) -> Any:
    """The outputs of the model for all inputs, computed batch by batch in evaluation mode.

    >>> import wonderland as wl
    >>> wl.train.predict(wl.nn.Linear.from_matrix([[2.0]]), wl.tensor([[1.0], [2.0], [3.0]]), batch_size=2)
    tensor([[2.], [4.], [6.]])
    """
    forward = jit(_forward) if compiled else _forward
    outputs = []
    with evaluating(model), no_grad():
        for batch in as_loader(data, batch_size, shuffle=False, seed=0):
            inputs = batch[0] if isinstance(batch, (tuple, list)) else batch
            outputs.append(forward(model, inputs))
    if not outputs:
        raise InputError("predict: there are no examples.", "data that are not empty")
    return trees.map(lambda *parts: arrays.concat(parts, axis=0), *outputs)


def _forward(model: Model, inputs: object) -> object:
    return model(inputs)


@contextlib.contextmanager
def evaluating(model: Model) -> Iterator[None]:
    """Evaluation mode for the time of a block; every module then has its own mode again."""
    modules = model.modules() if isinstance(model, Module) else []
    modes = [module.training for module in modules]
    for module in modules:
        if module.training:
            module.training = False
    try:
        yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            if module.training != mode:
                module.training = mode


def named_metrics(metrics: Any, loss: Module | None = None) -> dict[str, Metric]:
    """Metrics by name: a dict, one metric or a list of them, each of which may be a name itself, as "accuracy".

    An object is called by its class, in small letters. The loss says what the scores are that are measured.
    """
    if metrics is None:
        return {}
    if isinstance(metrics, Mapping):
        named = dict(metrics)
    else:
        listed = metrics if isinstance(metrics, (list, tuple)) else [metrics]
        named = {_name_of(metric): metric for metric in listed}
        if len(named) < len(listed):
            raise InputError("metrics: two have the same name.", "a dict that names them")
    for name, metric in named.items():
        if isinstance(metric, str):
            named[name] = metric_named(metric, loss)
        elif isinstance(metric, type) and issubclass(metric, Metric):
            named[name] = metric()
        elif not all(callable(getattr(metric, method, None)) for method in ("update", "compute", "reset")):
            raise InputError(
                f"metrics: {name!r} is a {type(metric).__name__}, which is not a metric.",
                'a name such as "accuracy", or an object such as wl.metrics.Accuracy()',
            )
    return named


def _name_of(metric: Any) -> str:
    if isinstance(metric, str):
        return metric
    return (
        metric.__name__.lower() if isinstance(metric, type) else getattr(metric, "name", type(metric).__name__.lower())
    )


def plain(value: object) -> Any:
    """A measured value as plain data for records: a number, or nested lists of numbers."""
    if isinstance(value, (int, float, str, bool)) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    found = np.asarray(value)
    return found.item() if found.ndim == 0 else found.tolist()
