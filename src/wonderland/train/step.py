"""One training step as one compiled call: forward pass, backward pass, clipping, update, averages."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from ..core import trees
from ..core.cell import Cell
from ..core.dtypes import DType, is_floating
from ..core.errors import InputError
from ..core.settings import setting
from ..core.tensor import Tensor
from ..distributed.group import Group
from ..distributed.sums import summed
from ..nn.module.module import Module
from ..nn.module.parameter import Buffer
from ..nn.sequences.cache import Cache
from ..optim.accumulation import accumulate as in_pieces
from ..optim.averaging import Averaged
from ..optim.clipping import clip_grad_norm, clip_grad_value
from ..optim.loss_scaling import GradScaler
from ..optim.optimizer import Optimizer
from ..transforms.autocast import autocast
from ..transforms.jit.jit import Jitted
from ..transforms.reverse import value_and_grad
from .by_name import loss_named
from .truncation import Reading

OWN = 2  # sizes of a batch with programs of their own: a run that is resumed ends with the same bits, see jit/sizes.py

Output = TypeVar("Output")
Model: TypeAlias = Callable[..., object]  # a module, or a function of the inputs
Loss: TypeAlias = Module | Callable[..., Tensor] | str  # (outputs, targets) -> loss, or its name, see by_name.py
Objective: TypeAlias = Callable[[Any, Any, Any], tuple[Tensor, object]]  # (model, loss, batch) -> (loss, outputs)


class LossFunction(Module):
    """A function as a module, so that a compiled step takes every kind of loss."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self.function = function

    def forward(self, *args: object) -> Tensor:
        return self.function(*args)


def as_loss(loss: Loss) -> Module:
    """A loss as a module: one that is a module already or the class of one, a function, or the name of a loss.

    >>> import wonderland as wl
    >>> wl.train.as_loss("mse")(wl.ones(2), wl.zeros(2))
    tensor(1.)
    """
    if isinstance(loss, Module):
        return loss
    if isinstance(loss, type) and issubclass(loss, Module):
        return loss()
    if isinstance(loss, str):
        return LossFunction(loss_named(loss))
    if not callable(loss):
        data = isinstance(loss, tuple) or hasattr(loss, "shape")
        raise InputError(
            f"loss: a {type(loss).__name__} cannot be called.",
            'the loss first, then the data as one: fit(model, "cross_entropy", (x, y))'
            if data
            else "a function (outputs, targets) -> loss",
        )
    return LossFunction(loss)  # type: ignore[arg-type]  # a class may make losses


def supervised(model: Callable[..., Output], loss: Callable[..., Tensor], batch: object) -> tuple[Tensor, Output]:
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
    regularizer: Callable[[Any], Tensor] | None = None,
    accumulate: int = 1,
    precision: DType | None = None,
    scaler: GradScaler | None = None,
    outputs: bool = False,
    compiled: bool = True,
    group: Group | None = None,
) -> Callable[..., tuple[Tensor, Any]]:
    """A function `step(model, loss, optimizer, average, batch, cache=None)`: it moves the model, gives (loss, outputs).

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
    Without `outputs` those of the model are not returned, and need no memory; in pieces there are none. With a `cache`
    the model reads on from it; what is in it is constant for the gradient, see `wl.train.pieces`. `precision` is a type
    for `wl.autocast` around the objective, and `scaler` scales the loss and leaves out steps that are not finite.

    With a `group` of processes the step also takes `weight`, the share that the batch of this process has in the batch
    of all: the loss, the gradients and statistics that the model keeps are sums over the processes, the same in all.
    """
    if accumulate > 1 and outputs:
        raise InputError("training_step: a batch in pieces has no outputs as a whole.", "accumulate=1, or no outputs")

    def step(
        model: Module,
        loss: Module,
        optimizer: Optimizer,
        average: Averaged | None,
        batch: object,
        cache: Cache | None = None,
        weight: Tensor | None = None,
    ) -> tuple[Tensor, object]:
        if cache is not None and accumulate > 1:
            raise InputError("training_step: a cache for a batch in pieces of rows.", "accumulate=1, or no cache")

        def cost(model: Module, batch: object) -> tuple[Tensor, tuple[Tensor, object]]:
            with in_precision(precision):
                value, predicted = objective(model if cache is None else Reading(model, cache), loss, batch)
            total = value if regularizer is None else value + regularizer(model)
            total = total if weight is None else total * weight
            return total if scaler is None else scaler.scale(total), (value, predicted if outputs else None)

        kept = [] if group is None else [(cell, cell.value) for cell in _statistics(model)]
        with contextlib.nullcontext() if group is None else setting("group", group):
            both = value_and_grad(cost, has_aux=True)
            (_, (value, predicted)), grads = (both if accumulate == 1 else in_pieces(both, accumulate))(model, batch)
        if group is not None and weight is not None:
            moved = [cell for cell, before in kept if cell.value is not before]
            leaves, structure = trees.flatten(grads)
            shares = [value * weight, *(cell.value * weight for cell in moved)]
            value, *sums = summed(group, [*shares, *leaves])
            for cell, total in zip(moved, sums, strict=False):
                cell.assign(total)
            grads = trees.unflatten(structure, sums[len(moved) :])
        if scaler is not None:
            grads = scaler.unscale(grads)
        if clip_value is not None:
            grads = clip_grad_value(grads, clip_value)
        if clip_norm is not None:
            grads, _ = clip_grad_norm(grads, clip_norm)
        if scaler is None:
            optimizer.step(grads)
        else:
            scaler.step(optimizer, grads, unscaled=True)
            scaler.update()
        if average is not None:
            average.update(model)
        return value, predicted

    return Jitted(step, own=OWN) if compiled else step


def _statistics(model: Module) -> list[Cell]:
    """The buffers of real numbers, such as running means: each process would have its own."""
    return [cell for cell in trees.leaves(model) if isinstance(cell, Buffer) and is_floating(cell.dtype)]


def in_precision(precision: DType | None) -> contextlib.AbstractContextManager[None]:
    """`wl.autocast`, or nothing."""
    return contextlib.nullcontext() if precision is None else autocast(precision)


def evaluation_step(
    objective: Objective = supervised, compiled: bool = True, precision: DType | None = None
) -> Callable[..., tuple[Tensor, Any]]:
    """A function `step(model, loss, batch, cache=None)` that returns (loss, outputs) and moves only the cache."""

    def step(model: Model, loss: Module, batch: object, cache: Cache | None = None) -> tuple[Tensor, object]:
        with in_precision(precision):
            return objective(model if cache is None else Reading(model, cache), loss, batch)

    return Jitted(step, own=OWN) if compiled else step
