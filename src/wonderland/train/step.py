"""One training step as one compiled call: forward pass, backward pass, clipping, update, averages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import InputError
from ..nn import functional
from ..nn.module import Module
from ..optim.accumulation import accumulate as in_pieces
from ..optim.clipping import clip_grad_norm, clip_grad_value
from ..transforms.jit import jit
from ..transforms.reverse import value_and_grad

Objective = Callable[[Any, Any, Any], tuple[Any, Any]]


class LossFunction(Module):
    """A function as a module, so that a compiled step takes every kind of loss."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def as_loss(loss: Any) -> Module:
    """A loss as a module: one that is a module already, a function, or the name of a function in `wl.nn.functional`.

    >>> import wonderland as wl
    >>> wl.train.as_loss("mse_loss")(wl.ones(2), wl.zeros(2))
    tensor(1.)
    """
    if isinstance(loss, Module):
        return loss
    if isinstance(loss, str):
        found = getattr(functional, loss, None)
        if found is None:
            raise InputError(f"loss: there is no loss {loss!r}.", 'one such as "cross_entropy" or "mse_loss"')
        return LossFunction(found)
    if not callable(loss):
        raise InputError(f"loss: a {type(loss).__name__} cannot be called.", "a function (outputs, targets) -> loss")
    return LossFunction(loss)


def supervised(model: Any, loss: Any, batch: Any) -> tuple[Any, Any]:
    r"""The objective of supervised learning, \(\ell(f(x), y)\) for a batch (x, y): the loss, and the outputs.

    >>> import wonderland as wl
    >>> value, outputs = wl.train.supervised(wl.exp, wl.nn.MSELoss(), (wl.zeros(2), wl.zeros(2)))
    >>> value, outputs
    (tensor(1.), tensor([1., 1.]))

    Objectives of your own have the same form; for an autoencoder, whose target is its input:
    `lambda model, loss, x: (loss(y := model(x), x), y)`. Book, section 3.2.
    """
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        kind = f"{len(batch)} parts" if isinstance(batch, (tuple, list)) else f"a {type(batch).__name__}"
        raise InputError(
            f"supervised: a batch is a pair (inputs, targets), received {kind}.",
            "objective=lambda model, loss, batch: (loss_value, outputs) for batches of another form",
        )
    inputs, targets = batch
    outputs = model(inputs)
    return loss(outputs, targets), outputs


def training_step(
    objective: Objective = supervised,
    *,
    clip_norm: float | None = None,
    clip_value: float | None = None,
    regularizer: Callable[[Any], Any] | None = None,
    accumulate: int = 1,
    outputs: bool = False,
    compiled: bool = True,
) -> Callable[..., Any]:
    """A function `step(model, loss, optimizer, average, batch)` that moves the model and returns (loss, outputs).

    >>> import wonderland as wl
    >>> model = wl.nn.Linear(1, 1)
    >>> optimizer = wl.optim.SGD(model, lr=0.2)
    >>> x = wl.ones((1, 1))
    >>> step = wl.train.training_step()
    >>> for _ in range(20):
    ...     loss, _ = step(model, wl.nn.MSELoss(), optimizer, None, (x, 3 * x))
    >>> print(f"{loss:.3f}")
    0.000

    Gradients are clipped to the norm `clip_norm`, or their elements to `clip_value`. `regularizer` of the model is
    added to the loss that is minimized, not to the one that is returned. `accumulate` pieces of the batch go through
    the model one after the other, which saves memory. `average` is None or a `wl.optim.EMA`, which follows the model.
    Without `outputs` those of the model are not returned, and need no memory; in pieces there are none.
    """
    if accumulate > 1 and outputs:
        raise InputError("training_step: a batch in pieces has no outputs as a whole.", "accumulate=1, or no outputs")

    def step(model: Any, loss: Any, optimizer: Any, average: Any, batch: Any) -> tuple[Any, Any]:
        def cost(model: Any, batch: Any) -> tuple[Any, Any]:
            value, predicted = objective(model, loss, batch)
            total = value if regularizer is None else value + regularizer(model)
            return total, (value, predicted if outputs else None)

        if accumulate == 1:
            (_, (value, predicted)), grads = value_and_grad(cost, has_aux=True)(model, batch)
        else:
            ((_, (value, predicted)), grads) = in_pieces(value_and_grad(cost, has_aux=True), accumulate)(model, batch)
        if clip_value is not None:
            grads = clip_grad_value(grads, clip_value)
        if clip_norm is not None:
            grads, _ = clip_grad_norm(grads, clip_norm)
        optimizer.step(grads)
        if average is not None:
            average.update(model)
        return value, predicted

    return jit(step) if compiled else step


def evaluation_step(objective: Objective = supervised, compiled: bool = True) -> Callable[..., Any]:
    """A function `step(model, loss, batch)` that returns (loss, outputs) and moves nothing."""

    def step(model: Any, loss: Any, batch: Any) -> tuple[Any, Any]:
        return objective(model, loss, batch)

    return jit(step) if compiled else step
