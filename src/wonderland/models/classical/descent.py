"""The small training loop of models that fit themselves: shuffled batches, one compiled step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...arrays.conversion import asarray
from ...arrays.gathering import take
from ...core.arguments import as_int
from ...core.errors import NonFiniteError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, KeyLike
from ...nn.module.module import Module
from ...optim.adam import Adam
from ...optim.optimizer import Optimizer
from ...random.keys import fold_in
from ...random.order import permutation
from ...random.streams import take_key
from ...transforms.jit.jit import jit
from ...transforms.reverse import value_and_grad

Callback = Callable[[int, float], object]


def descend(
    model: Module,
    loss: Callable[..., Tensor],
    *arrays: ArrayLike,
    epochs: int,
    batch_size: int | None = None,
    lr: float = 1e-3,
    optimizer: Optimizer | None = None,
    callback: Callback | None = None,
    key: KeyLike = None,
    name: str = "fit",
) -> list[float]:
    r"""Move the trainable parameters down the mean of `loss(model, *batch)`; returns the mean of every epoch.

    >>> import wonderland as wl
    >>> model = wl.nn.Linear(1, 1)
    >>> x = wl.linspace(0.0, 1.0, 32)[:, None]
    >>> losses = descend(model, lambda m, x: ((m(x) - 2 * x) ** 2).mean(), x, epochs=100, lr=0.1)
    >>> losses[-1] < 0.01 < losses[0]
    True

    All arrays have the same first axis, the examples. Every epoch has an order of its own, and only whole batches
    are taken, so the rest of an epoch is left out; without `batch_size` a batch is everything. `optimizer` is Adam
    unless one that was made for `model` is given; `callback(epoch, loss)` watches, and stops it by returning True.
    """
    tensors = [asarray(a) for a in arrays]
    sizes = [t.shape[0] if t.ndim else 0 for t in tensors]
    n = sizes[0]
    if not n or len(set(sizes)) > 1:
        raise ShapeError(f"{name}: arrays of {sizes} examples.", "at least one example, and as many in every array")
    size = n if batch_size is None else min(n, as_int(name, "batch_size", batch_size, 1))
    optimizer = Adam(model, lr=lr) if optimizer is None else optimizer
    key = take_key(name, key)

    @jit
    def step(model: Module, optimizer: Optimizer, *batch: Tensor) -> Tensor:
        value, grads = value_and_grad(loss)(model, *batch)
        optimizer.step(grads)
        return value

    history: list[float] = []
    for epoch in range(as_int(name, "epochs", epochs, 0)):
        if size < n:
            order = permutation(n, key=fold_in(key, epoch)).numpy()
            values = []
            for start in range(0, n - size + 1, size):
                index = asarray(order[start : start + size])
                values.append(step(model, optimizer, *(take(t, index, axis=0) for t in tensors)))
        else:
            values = [step(model, optimizer, *tensors)]
        history.append(float(np.mean([float(v) for v in values])))
        if not np.isfinite(history[-1]):
            raise NonFiniteError(f"{name}: the loss of epoch {epoch} is {history[-1]}.", "a smaller lr, or scaled data")
        if callback is not None and callback(epoch, history[-1]):
            break
    return history
