"""Gradients of a large batch from small ones, one after the other. Book, section 5.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .. import arrays
from ..core import dtypes, trees
from ..core.arguments import as_function, as_int, named_after
from ..core.errors import InputError, ModuleError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..nn.module.module import Module
from ..nn.module.parameter import Buffer

Result = TypeVar("Result")


def accumulate(f: Callable[..., Result], micro_batches: int) -> Callable[..., Result]:
    r"""A function like `wl.value_and_grad(loss)` or `wl.grad(loss)` that takes its batch in pieces.

    >>> import wonderland as wl
    >>> def loss_of(model, x, y):
    ...     return ((model(x) - y) ** 2).mean()
    >>> model, x, y = wl.nn.Linear(3, 1), wl.ones((8, 3)), wl.zeros((8, 1))
    >>> value, grads = wl.optim.accumulate(wl.value_and_grad(loss_of), 4)(model, x, y)
    >>> whole, _ = wl.value_and_grad(loss_of)(model, x, y)
    >>> print(bool(wl.allclose(value, whole)))
    True

    The first argument is the model; all tensors in the others are cut along their first axis into `micro_batches`
    pieces, as even as can be, and the results are averaged with the sizes of the pieces as weights: for a loss that is
    a mean over examples, \(\sum_k \frac{n_k}{n} \nabla L_k = \nabla L\). Only one piece is in memory at a time. State
    of the model, such as running statistics, sees the pieces one after the other.
    """
    as_function("optim.accumulate", f)
    pieces = as_int("accumulate", "micro_batches", micro_batches, 1)

    def in_pieces(model: object, *batch: object) -> Any:
        leaves, shape = trees.flatten(batch)
        leaves = [arrays.asarray(leaf) for leaf in leaves]
        sizes = [leaf.shape[0] if leaf.ndim else -1 for leaf in leaves]
        if len(set(sizes)) != 1 or sizes[0] < 0:
            raise ShapeError(
                f"accumulate: the batch has the shapes {[leaf.shape for leaf in leaves]}.",
                "tensors with the same first axis, the examples; close over everything else",
            )
        n = sizes[0]
        if n < pieces:
            raise InputError(f"accumulate: {n} examples for {pieces} micro-batches.", "fewer micro-batches")
        total: Any = None
        for k in range(pieces):
            low, high = k * n // pieces, (k + 1) * n // pieces
            part = f(model, *trees.unflatten(shape, [leaf[low:high] for leaf in leaves]))
            share = (high - low) / n
            scaled = trees.map(lambda v, share=share: share * v, part)
            total = scaled if total is None else trees.map(lambda a, b: a + b, total, scaled)
        return total

    return named_after(f, "accumulate", in_pieces)


class Accumulator(Module):
    r"""A running weighted mean of gradients, \(\bar g = \sum_k n_k g_k / \sum_k n_k\), to step every few batches.

    >>> import wonderland as wl
    >>> model = wl.nn.Linear(2, 1)
    >>> sums = wl.optim.Accumulator(model)
    >>> for size in (3, 1):
    ...     sums.add({"weight": wl.full((2, 1), float(size)), "bias": wl.zeros(1)}, weight=size)
    >>> sums.take()["weight"]  # (3 * 3 + 1 * 1) / 4
    tensor([[2.5],
            [2.5]])

    `take` starts again from zero. Both may be inside a compiled step. (In the imperative style `backward()` adds up by
    itself, unweighted.)
    """

    sums: dict[str, Buffer]
    weight: Buffer

    def __init__(self, model: Module) -> None:
        self.sums = {path: Buffer(arrays.zeros_like(p)) for path, p in model.named_parameters() if p.trainable}
        if not self.sums:
            raise InputError("Accumulator: the model has no trainable parameters.", "a model that learns")
        self.weight = Buffer(0.0, dtypes.float64)

    def add(self, grads: object, weight: ArrayLike = 1.0) -> None:
        """Add gradients with respect to the model; `weight` is the number of examples they are the mean of."""
        if not isinstance(grads, dict) or grads.keys() != self.sums.keys():
            raise ModuleError(
                "Accumulator.add: these are not the gradients of the model's trainable parameters.",
                "the dict that wl.grad gives for the model",
            )
        factor = arrays.asarray(weight, dtype=dtypes.float64)
        for path, cell in self.sums.items():
            cell.assign(cell + arrays.astype(factor, cell.dtype) * grads[path])
        self.weight.assign(self.weight + factor)

    def take(self) -> dict[str, Tensor]:
        """The mean of what was added, as a dict for `optimizer.step`; and zero again."""
        mean = {path: cell / arrays.astype(self.weight, cell.dtype) for path, cell in self.sums.items()}
        for cell in self.sums.values():
            cell.assign(arrays.zeros_like(cell))
        self.weight.assign(arrays.zeros_like(self.weight))
        return mean
