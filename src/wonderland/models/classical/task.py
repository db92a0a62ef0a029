"""What a supervised problem is: kinds of inputs and outputs, their sizes, and the loss. Book, section 4.1."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...core.arguments import as_int
from ...core.context import user_level
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...nn import functional

REGRESSION_LOSSES = ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss")


class TaskWarning(UserWarning):
    """A loss that does not suit the targets."""


@dataclass(frozen=True)
class Task:
    """A supervised problem: its `kind` ("regression", "binary" or "classification") and its sizes.

    >>> Task.of([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 2, 1])
    Task(kind='classification', n=3, c=2, m=3)
    >>> Task.of([[0.0], [1.0]], [0.5, 2.5]).loss.__name__
    'mse_loss'

    n is the number of examples, c that of features and m that of classes, or of outputs for a regression. Book, T.4.1.
    """

    kind: str
    n: int
    c: int
    m: int

    @classmethod
    def of(cls, X: ArrayLike, y: ArrayLike, num_classes: int | None = None) -> Task:
        """The problem that inputs (n, c) and targets pose: real targets are regressed, integers are classes.

        Classes are 0, ..., m - 1, where m is `num_classes` or one more than the largest label; two make it "binary".
        """
        x, targets = np.asarray(X), np.asarray(y)
        if x.ndim < 2 or not x.size or len(targets.shape) < 1 or len(targets) != len(x):
            raise ShapeError(
                f"Task: inputs of shape {x.shape} and targets of shape {targets.shape}.", "(n, c) and n targets, n > 0"
            )
        n, c = len(x), x.shape[-1]
        if targets.dtype.kind == "f":
            task = cls("regression", n, c, 1 if targets.ndim == 1 else targets.shape[1])
        elif targets.dtype.kind in "iub":
            m = int(targets.max()) + 1 if num_classes is None else as_int("Task", "num_classes", num_classes, least=1)
            task = cls("binary" if m <= 2 else "classification", n, c, max(m, 2))
        else:
            raise DTypeError(f"Task: targets of dtype {targets.dtype}.", "numbers; names are encoded by classifiers")
        task.check(x, targets)
        return task

    def check(self, X: ArrayLike, y: ArrayLike) -> None:
        """Refuse data that does not belong to the problem; n may differ, as in another part of the data."""
        x, targets = np.asarray(X), np.asarray(y)
        if x.shape[-1] != self.c or len(x) != len(targets):
            raise ShapeError(
                f"Task: inputs of shape {x.shape} and targets of shape {targets.shape} for c={self.c} features.",
                "as many targets as inputs, with the same features",
            )
        if self.kind == "regression":
            if not np.isfinite(targets.astype(np.float64)).all():
                raise InputError("Task: some targets are not finite.", "targets without NaN and infinity")
        elif targets.dtype.kind not in "iub":
            raise DTypeError(f"Task: classes of dtype {targets.dtype}.", "integers")
        elif targets.ndim != 1 or targets.min(initial=0) < 0 or targets.max(initial=0) >= self.m:
            raise InputError(
                f"Task: labels of shape {targets.shape} from {targets.min()} to {targets.max()} for {self.m} classes.",
                f"labels of shape (n,) from 0 to {self.m - 1}",
            )

    @property
    def outputs(self) -> int:
        """How many numbers a model has to give for an input: one logit for two classes."""
        return 1 if self.kind == "binary" else self.m

    @property
    def loss(self) -> Callable[..., Tensor]:
        """The usual loss of the outputs: squared error, or the cross-entropy of logits."""
        if self.kind == "regression":
            return functional.mse_loss
        return (
            functional.cross_entropy if self.kind == "classification" else functional.binary_cross_entropy_with_logits
        )

    def check_loss(self, loss: object) -> None:
        """Warn of a regression loss for classes: it would give them an order that they do not have.

        >>> Task("regression", 10, 2, 1).check_loss("mse_loss")
        """
        name = loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
        if self.kind != "regression" and name.lower() in (*REGRESSION_LOSSES, "mseloss", "l1loss", "huberloss"):
            warnings.warn(
                f"Task: {name} of integer classes treats class 2 as twice class 1. Try {self.loss.__name__}, or "
                "floating targets if they are amounts.",
                TaskWarning,
                stacklevel=user_level(),
            )
