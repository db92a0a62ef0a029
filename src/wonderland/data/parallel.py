"""Data parallelism: the gradient of a batch from the gradients of its shards. Book, section 5.3."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeVar

from ..core import trees
from ..core.arguments import as_function, as_int
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..transforms.reverse import value_and_grad

Batch = TypeVar("Batch")


def shards(batch: Batch, count: int) -> list[Batch]:
    """The batch cut into `count` parts along the first axis, as equal as possible.

    >>> import wonderland as wl
    >>> [part.tolist() for part in shards(wl.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    n, count = _rows(batch), as_int("shards", "count", count, least=1)
    if count > n:
        raise InputError(f"shards: a batch of {n} has no {count} parts.", f"up to {n}")
    ends = [n // count * k + min(k, n % count) for k in range(count + 1)]

    def part(start: int, end: int) -> Batch:
        return trees.map(lambda leaf: leaf[start:end], batch)

    return [part(start, end) for start, end in itertools.pairwise(ends)]


def _rows(batch: object) -> int:
    sizes = {leaf.shape[0] if leaf.ndim else -1 for leaf in trees.leaves(batch)}
    if len(sizes) != 1 or -1 in sizes:
        raise ShapeError(f"shards: the parts of the batch have first axes {sorted(sizes)}.", "one row per example")
    return sizes.pop()


def sharded_value_and_grad(loss: Callable[..., Tensor], count: int) -> Callable[..., tuple[Tensor, object]]:
    r"""`value_and_grad` of a mean over a batch, shard by shard: \(\sum_k \frac{n_k}{n} \nabla L_k = \nabla L\).

    `loss(model, *batch)` is a mean over the examples of the batch. Shards of unequal size get unequal weights; the
    plain mean of their gradients would be wrong. Each shard could be another machine's, or come after the last one when
    memory is short.

    >>> import wonderland as wl
    >>> model = wl.nn.Linear(3, 1)
    >>> loss = lambda model, x, y: ((model(x) - y) ** 2).mean()
    >>> x, y = wl.random.normal((10, 3)), wl.ones((10, 1))
    >>> value, grads = sharded_value_and_grad(loss, 3)(model, x, y)
    >>> bool(wl.allclose(grads["weight"], wl.grad(loss)(model, x, y)["weight"], atol=1e-6))
    True
    """
    as_function("sharded_value_and_grad", loss)

    def evaluate(model: object, *batch: object) -> tuple[Tensor, object]:
        total = None
        n = _rows(batch)
        for shard in shards(batch, count):
            weight = _rows(shard) / n
            part = trees.map(lambda leaf, w=weight: leaf * w, value_and_grad(loss)(model, *shard))
            total = part if total is None else trees.map(lambda a, b: a + b, total, part)
        assert total is not None
        return total

    return evaluate
