"""The last layer by task: what it computes, which loss fits, how its outputs are read. Book, section 5.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...nn import functional as F  # noqa: N812 - as everybody calls it
from ...nn.layers.linear import Linear
from ...nn.module.module import Module


class Head(NamedTuple):
    """A layer of scores, the loss of scores and targets, and what scores mean: probabilities and decisions."""

    layer: Module
    loss: Callable[..., Tensor]
    decode: Callable[[ArrayLike], Tensor]
    probabilities: Callable[[ArrayLike], Tensor]


def _above(logits: ArrayLike) -> Tensor:
    """1 where the probability is above one half; a tie is 0."""
    return arrays.astype(arrays.asarray(logits) > 0, arrays.asarray(0).dtype)


# task: the loss, decisions and predictions of scores
TASKS: dict[str, tuple[Callable[..., Tensor], Callable[[ArrayLike], Tensor], Callable[[ArrayLike], Tensor]]] = {
    "regression": (F.mse_loss, arrays.asarray, arrays.asarray),
    "binary": (F.binary_cross_entropy_with_logits, _above, arrays.sigmoid),
    "multiclass": (F.cross_entropy, lambda scores: arrays.argmax(scores, axis=-1), arrays.softmax),
    "multilabel": (F.binary_cross_entropy_with_logits, _above, arrays.sigmoid),
}


def make_head(task: str, in_features: int | None, out_features: int = 1, **settings: Any) -> Head:
    r"""A prediction head: (layer, loss, decode, probabilities) for a task. Book, section 5.2.

    >>> import wonderland as wl
    >>> head = wl.models.make_head("multiclass", 8, 3)
    >>> scores = head.layer(wl.ones((5, 8)))
    >>> scores.shape, head.decode(scores).shape, wl.is_simplex(head.probabilities(scores))
    ((5, 3), (5,), True)

    | task | outputs | loss | decode |
    |---|---|---|---|
    | regression | scores | squared error | the scores |
    | binary | one logit | binary cross-entropy | 1 if the probability is above one half |
    | multiclass | `out_features` logits | cross-entropy | the class with the largest |
    | multilabel | `out_features` logits | binary cross-entropy each | as for binary |

    In each pairing the gradient of the loss with respect to the scores is \(\hat y - y\) (twice that for the squared
    error), divided by their number. Settings are those of `wl.nn.Linear`.
    """
    if task not in TASKS:
        raise InputError(f"make_head: there is no task {task!r}.", " or ".join(map(repr, TASKS)))
    size = as_int("make_head", "out_features", out_features, 1)
    if task == "binary" and size != 1:
        raise InputError(f"make_head: a binary head has one output, not {size}.", '"multiclass" or "multilabel"')
    if task == "multiclass" and size < 2:
        raise InputError(f"make_head: {size} class leaves nothing to predict.", 'two classes or more, or "binary"')
    return Head(Linear(in_features, size, **settings), *TASKS[task])
