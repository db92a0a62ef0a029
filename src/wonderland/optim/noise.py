"""How much the gradients of batches scatter. Book, section 5.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import arrays
from ..core import trees
from ..core.arguments import as_int
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..transforms.batching import vmap
from ..transforms.reverse import grad


def per_example_gradients(loss: Callable[..., Tensor], model: object, *batch: object) -> Any:
    """The gradient of every example by itself, stacked along a first axis; `loss(model, *batch)` is a mean.

    >>> import wonderland as wl
    >>> model = wl.nn.Linear(3, 1)
    >>> def loss_of(model, x, y):
    ...     return wl.nn.functional.mse_loss(model(x), y)
    >>> wl.optim.per_example_gradients(loss_of, model, wl.ones((5, 3)), wl.zeros((5, 1)))["weight"].shape
    (5, 3, 1)
    """
    leaves = [arrays.asarray(leaf) for leaf in trees.leaves(batch)]
    sizes = [leaf.shape[0] if leaf.ndim else -1 for leaf in leaves]
    if not sizes or len(set(sizes)) != 1 or sizes[0] < 1:
        raise ShapeError(
            f"per_example_gradients: the batch has the shapes {[leaf.shape for leaf in leaves]}.",
            "tensors with the same first axis, the examples",
        )

    def one(*example: object) -> Any:
        return grad(loss)(model, *trees.map(lambda v: arrays.expand_dims(v, 0), example))

    return vmap(one)(*batch)


def gradient_variance(
    loss: Callable[..., Tensor], model: object, *data: object, batch_size: int = 1, replacement: bool = True
) -> Tensor:
    r"""The expected squared distance of a batch's gradient from that of all data, \(\frac1B
    \mathrm{tr}\,\mathrm{Cov}(g)\).

    >>> import wonderland as wl
    >>> w, x = wl.tensor([0.0]), wl.tensor([[-1.0], [1.0]])
    >>> wl.optim.gradient_variance(lambda w, x: (x @ w).mean(), w, x, batch_size=4)
    tensor(0.25)

    It falls like 1/B; batches drawn without replacement have \(\frac{N-B}{N-1}\) times that, and none at all if B = N.
    """
    size = as_int("gradient_variance", "batch_size", batch_size, 1)
    gradients = trees.leaves(per_example_gradients(loss, model, *data))
    if not gradients:
        raise InputError("gradient_variance: there is nothing to differentiate.", "a model with trainable parameters")
    n = gradients[0].shape[0]
    scatter = sum((_scatter(g) for g in gradients[1:]), _scatter(gradients[0])) / n
    if replacement:
        return scatter / size
    if size > n:
        raise InputError(f"gradient_variance: a batch of {size} from {n} examples.", "replacement=True")
    return scatter / size * ((n - size) / max(n - 1, 1))


def _scatter(g: Tensor) -> Tensor:
    return arrays.sum((g - arrays.mean(g, axis=0)) ** 2)
