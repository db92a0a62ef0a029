"""Losses over data: empirical risk, its generalisation gap, and expected risk. Book, section 3.2."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from .... import arrays
from ....arrays.conversion import as_tensor
from ....core import trees
from ....core.errors import InputError, ShapeError
from ....core.tensor import Tensor
from ....core.typing import ArrayLike, KeyLike

if TYPE_CHECKING:
    from ....distributions import Estimate

__all__ = ["expected_risk_mc", "generalization_gap", "risk"]

Inputs = TypeVar("Inputs")
Outputs = TypeVar("Outputs")
Targets = TypeVar("Targets")


def risk(
    model: Callable[[Inputs], Outputs],
    loss: Callable[[Outputs, Targets], ArrayLike],
    data: Iterable[tuple[Inputs, Targets]],
    regularizer: Callable[..., Tensor | float] | None = None,
) -> float:
    r"""The empirical risk \(\frac1n\sum_i L(f(x_i), y_i)\) over batches (inputs, targets). Book, section 3.2.

    >>> import wonderland as wl
    >>> batches = [(wl.ones(3), wl.zeros(3)), (wl.ones(1), wl.full(1, 3.0))]
    >>> wl.nn.functional.risk(lambda x: x, wl.nn.functional.mse_loss, batches)
    1.75

    Batches count by their size, so the last one may be smaller: the result is the mean over all examples. `loss` gives
    a mean, or one loss per example. `regularizer(model)` is added once: the cost \(J = R + \lambda\Omega\).
    """
    total, examples = 0.0, 0
    for inputs, targets in data:
        first = as_tensor("risk", trees.leaves(targets)[0])
        if not first.ndim:
            raise ShapeError("risk: a batch of targets has no axes.", "batches (inputs, targets) with a first axis")
        size = first.shape[0]
        found = as_tensor("risk", loss(model(inputs), targets))
        total += float(arrays.mean(found)) * size
        examples += size
    if not examples:
        raise InputError("risk: the data have no examples.", "at least one batch; a generator can be read only once")
    return total / examples + (0.0 if regularizer is None else float(regularizer(model)))


def generalization_gap(
    model: Callable[[Inputs], Outputs],
    loss: Callable[[Outputs, Targets], ArrayLike],
    train: Iterable[tuple[Inputs, Targets]],
    test: Iterable[tuple[Inputs, Targets]],
) -> float:
    """The risk on test data minus that on training data: large for a model that has learned by heart.

    >>> import wonderland as wl
    >>> seen, new = [(wl.zeros(2), wl.ones(2))], [(wl.zeros(2), wl.full(2, 3.0))]
    >>> wl.nn.functional.generalization_gap(lambda x: x + 1.0, wl.nn.functional.mse_loss, seen, new)
    4.0

    The first estimates the expected risk, so the difference estimates the gap of the book, section 3.2.1.
    """
    return risk(model, loss, test) - risk(model, loss, train)


def expected_risk_mc(
    sampler: Callable[[int, KeyLike], tuple[Inputs, Targets]],
    model: Callable[[Inputs], Outputs],
    loss: Callable[[Outputs, Targets], ArrayLike],
    n: int,
    key: KeyLike = None,
) -> Estimate:
    r"""The expected risk \(E_{p(x,y)}\,L(f(x), y)\), estimated from n fresh examples. Book, section 3.2.1.

    >>> import wonderland as wl
    >>> def sampler(n, key):
    ...     x, noise = wl.random.normal((2, n), key=key)
    ...     return x, 3 * x + 0.5 * noise
    >>> loss = wl.nn.MSELoss(reduction="none")
    >>> found = wl.nn.functional.expected_risk_mc(sampler, lambda x: 3 * x, loss, 10000, wl.random.key(0))
    >>> bool(abs(found.value - 0.25) < 4 * found.standard_error)  # the noise is all that is left
    True

    `sampler(n, key)` gives n inputs and targets, `loss` one loss per example (`reduction="none"`). The result has a
    value and its standard error, which falls as \(1/\sqrt n\).
    """
    from ....distributions import monte_carlo  # loaded when first used

    def losses(drawn: tuple[Inputs, Targets]) -> Tensor:
        x, y = drawn
        found = as_tensor("expected_risk_mc", loss(model(x), y))
        if not found.ndim or found.shape[0] != n:
            raise ShapeError(
                f"expected_risk_mc: losses of shape {found.shape} for {n} examples.", 'a loss with reduction="none"'
            )
        return found

    return monte_carlo(losses, sampler, n, key=key)
