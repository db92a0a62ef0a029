"""The perceptron, and whether two classes can be separated by a hyperplane at all. Notes, sections 2.1.1 and 2.4.2."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int, as_number
from ...core.context import user_level
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike
from ...nn.module.parameter import Buffer, Held
from ...transforms.imperative import no_grad
from .classifier import Classifier, decode_labels, encode_labels
from .convex import ConvergenceWarning
from .linear_model import LinearModel, add_bias_column, as_examples


class Perceptron(Classifier, LinearModel):
    r"""A threshold unit \(\mathbb 1(w^\top x + b \ge 0)\) that learns from its mistakes alone.

    >>> X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> Perceptron().fit(X, [0, 0, 0, 1]).predict(X)
    tensor([0, 0, 0, 1])

    Examples come one after the other; a wrong one moves the parameters by \(\pm\eta(x, 1)\), towards it if its class is
    the second and away otherwise. If a hyperplane separates the classes, one is found after finitely many mistakes;
    otherwise the mistakes never end: `fit` stops after `max_epochs`, keeps the parameters that did best, and warns.
    `mistakes` counts them by epoch. `shuffle` takes another order in every epoch, from `seed`.
    """

    mistakes: Held[Buffer | None]

    def __init__(self, bias: bool = True, lr: float = 1.0) -> None:
        if not as_number("Perceptron", "lr", lr) > 0:
            raise InputError(f"Perceptron: lr={lr}.", "a learning rate above 0")
        LinearModel.__init__(self, bias)
        self.lr = lr
        self.classes_ = (0, 1)
        self.mistakes = None

    def fit(self, X: ArrayLike, y: ArrayLike, max_epochs: int = 1000, shuffle: bool = False, seed: int = 0) -> Self:
        """Learn from inputs (n, c) and labels (n,) of two kinds; the larger is class 1."""
        X = as_examples("Perceptron", X)
        indices, classes = encode_labels("Perceptron", y, X.shape[0])
        if len(classes) != 2:
            raise InputError(f"Perceptron.fit: {len(classes)} classes.", "two classes")
        data = (X if self.bias is None else add_bias_column(X)).numpy().astype(np.float64)
        target = indices.numpy()
        w = np.zeros(data.shape[1])
        best, fewest = w, len(data) + 1
        order = np.arange(len(data))
        rng = np.random.default_rng(seed)
        mistakes: list[int] = []
        for _ in range(as_int("Perceptron", "max_epochs", max_epochs, least=1)):
            if shuffle:
                rng.shuffle(order)
            count = 0
            for i in order:
                error = target[i] - (data[i] @ w >= 0)
                if error:
                    w = w + self.lr * error * data[i]
                    count += 1
            mistakes.append(count)
            wrong = int(((data @ w >= 0) != target).sum())
            if wrong < fewest:
                best, fewest = w, wrong
            if not count:
                break
        else:
            warnings.warn(
                f"Perceptron: still {fewest} mistakes in {len(data)} examples after {max_epochs} epochs. Try more "
                "features; is_linearly_separable tells whether a hyperplane exists.",
                ConvergenceWarning,
                stacklevel=user_level(),
            )
        self.classes_ = classes
        found = arrays.asarray(best, dtype=X.dtype)
        self._take({"weight": found} if self.bias is None else {"weight": found[:-1], "bias": found[-1]})
        self.mistakes = Buffer(np.array(mistakes), persistent=False)
        return self

    @no_grad()
    def predict(self, X: ArrayLike) -> Any:
        """The class of inputs (..., c); on the hyperplane it is the second."""
        return decode_labels(arrays.astype(self(X) >= 0, dtypes.int64), self.classes_)

    @no_grad()
    def predict_proba(self, X: ArrayLike) -> Tensor:
        """1 for the class that is predicted, 0 for the other: a threshold knows no doubt."""
        return arrays.one_hot(arrays.astype(self(X) >= 0, dtypes.int64), 2)


def is_linearly_separable(X: ArrayLike, y: ArrayLike, tol: float = 1e-9) -> bool:
    r"""Whether some \(w, b\) have \(w^\top x + b > 0\) for all inputs of one class and < 0 for all of the other.

    >>> corners = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> is_linearly_separable(corners, [0, 0, 0, 1]), is_linearly_separable(corners, [0, 1, 1, 0])
    (True, False)

    It is so unless the two convex hulls meet: unless \(\lambda \ge 0\), not all 0, has \(\sum_i \lambda_i a_i = 0\) for
    the \(a_i = \pm(x_i, 1)\). The best such \(\lambda\) is found by non-negative least squares, in finitely many steps.
    """
    X = as_examples("is_linearly_separable", X)
    indices, classes = encode_labels("is_linearly_separable", y, X.shape[0])
    if len(classes) != 2:
        raise InputError(f"is_linearly_separable: {len(classes)} classes.", "two classes")
    data = X.numpy().astype(np.float64)
    data = data - data.mean(axis=0)
    data = data / max(float(np.abs(data).max()), 1e-300)
    signed = np.where(indices.numpy()[:, None] == 1, 1.0, -1.0) * np.c_[data, np.ones(len(data))]
    E = np.r_[signed.T, np.ones((1, len(data)))]
    f = np.r_[np.zeros(E.shape[0] - 1), 1.0]
    return bool(np.linalg.norm(f - E @ _nnls(E, f)) > tol)


def _nnls(A: Array, b: Array) -> Array:
    """The x >= 0 with the least |A x - b|, by active sets (Lawson and Hanson)."""
    x, active = np.zeros(A.shape[1]), np.zeros(A.shape[1], bool)
    for _ in range(10 * A.shape[1]):
        slope = A.T @ (b - A @ x)
        slope[active] = -np.inf
        entering = int(np.argmax(slope))
        if slope[entering] <= 1e-12:
            break
        active[entering] = True
        while True:
            z = np.zeros_like(x)
            z[active] = np.linalg.lstsq(A[:, active], b, rcond=None)[0]
            low = active & (z <= 0)
            if not low.any():
                break
            t = np.min(x[low] / np.maximum(x[low] - z[low], 1e-300))
            x = x + t * (z - x)
            active &= x > 1e-15
            x[~active] = 0.0
        x = z
    return x
