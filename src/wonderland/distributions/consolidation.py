"""Learning one thing after another without forgetting the first. Book, section 3.3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .. import arrays
from ..arrays import stop_gradient
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..transforms.reverse import grad

if TYPE_CHECKING:
    from ..nn.module.module import Module


class ElasticPenalty:
    r"""\(\frac\lambda2\sum_i F_i\,(w_i - w_i^*)^2\): parameters that mattered for old data stay where they were.

    >>> import wonderland as wl
    >>> model = wl.nn.Linear(1, 1)
    >>> loss = lambda model, x, y: wl.nn.functional.mse_loss(model(x), y)
    >>> penalty = wl.distributions.ElasticPenalty(model, loss, [(wl.ones((4, 1)), wl.zeros((4, 1)))])
    >>> print(penalty(model))  # nothing has moved yet
    tensor(0.)

    Made after a task, from its data: \(w^*\) are the parameters now and \(F_i\) the mean of the squared derivatives of
    `loss(model, *example)`, the diagonal of Fisher's information if the loss is a negative log-likelihood. Added to
    the loss of the next task it is the logarithm of a normal prior, the old posterior (elastic weight consolidation).
    `examples` are trees that `loss` takes, single ones for the exact diagonal, or batches for a rough one.
    """

    def __init__(
        self, model: Module, loss: Callable[..., Tensor], examples: Iterable[Iterable[object]], strength: float = 1.0
    ) -> None:
        if not strength >= 0:
            raise InputError(f"ElasticPenalty: strength={strength}.", "strength >= 0")
        self.strength = strength
        self.anchor = {name: stop_gradient(arrays.asarray(p)) for name, p in model.named_parameters()}
        self.importance: dict[str, Tensor] = {}
        count = 0
        for example in examples:
            slopes = grad(loss)(model, *example)
            count += 1
            for name in self.anchor:
                square = arrays.square(slopes[name])
                self.importance[name] = square if count == 1 else self.importance[name] + square
        if not count:
            raise InputError("ElasticPenalty: no examples.", "some of the data of the task that was learned")
        self.importance = {name: total / count for name, total in self.importance.items()}

    def __call__(self, model: Module) -> Tensor:
        """The penalty at the parameters of a model."""
        total: Any = 0.0
        for name, p in model.named_parameters():
            total = total + arrays.sum(self.importance[name] * arrays.square(p - self.anchor[name]))
        return 0.5 * self.strength * total


def forgetting(history: Sequence[Sequence[float]]) -> float:
    """The mean rise of the losses of old tasks: after the last task, above that after their own.

    >>> import wonderland as wl
    >>> wl.distributions.forgetting([[0.1], [0.7, 0.2]])  # the first task got worse by 0.6
    0.6

    `history[t][s]` is the loss on task s after training on task t. Positive if old things were lost.
    """
    if len(history) < 2 or any(len(row) < t + 1 for t, row in enumerate(history)):
        raise InputError(
            f"forgetting: {[len(row) for row in history]} losses.", "two tasks or more, row t with t + 1 losses"
        )
    last = history[-1]
    rises = [last[s] - history[s][s] for s in range(len(history) - 1)]
    return round(sum(rises) / len(rises), 12)
