"""The base of classifiers: labels of any kind as numbers 0, ..., m - 1 and back. Book, section 4.1."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import DTypeError, InputError, ModuleError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike
from ...nn.module.module import Module
from ...transforms.imperative import no_grad
from .linear_model import as_examples

Labels: TypeAlias = Tensor | Array  # classes: integers, or names


def encode_labels(
    name: str, y: ArrayLike, n: int, num_classes: int | None = None, least: int = 2
) -> tuple[Tensor, tuple[int | str, ...]]:
    """Labels (n,) as numbers of classes, and the classes: integers or names, in rising order.

    >>> encode_labels("fit", ["cat", "dog", "cat"], 3)
    (tensor([0, 1, 0]), ('cat', 'dog'))
    >>> encode_labels("fit", [7, 3, 7], 3)
    (tensor([1, 0, 1]), (3, 7))

    With `num_classes` the classes are 0, ..., num_classes - 1, whether they occur or not. `least` is the smallest
    number of classes that makes sense.
    """
    found = np.asarray(y)
    if found.dtype == object and all(isinstance(label, str) for label in found.flat):
        found = found.astype(str)  # a column of a table
    if found.dtype.kind not in "iubU":
        raise DTypeError(
            f"{name}: labels of dtype {found.dtype}.", "integers or names; real targets are for regression models"
        )
    if found.shape != (n,):
        raise ShapeError(f"{name}: labels of shape {found.shape} for {n} examples.", f"labels of shape ({n},)")
    if num_classes is not None:
        m = as_int(name, "num_classes", num_classes, least=1)
        if found.dtype.kind == "U" or ((found < 0) | (found >= m)).any():
            raise InputError(f"{name}: the labels are not all among the {m} classes.", f"integers from 0 to {m - 1}")
        return arrays.asarray(found.astype(np.int64)), tuple(range(m))
    values, indices = np.unique(found, return_inverse=True)
    if len(values) < least:
        raise InputError(
            f"{name}: the labels are all of one class, {values.tolist()}.", f"examples of {least} or more classes"
        )
    return arrays.asarray(indices.astype(np.int64)), tuple(values.tolist())


def decode_labels(indices: Tensor, classes: tuple[int | str, ...]) -> Labels:
    """The classes with these numbers: a tensor of integers, or a NumPy array of names.

    >>> import wonderland as wl
    >>> decode_labels(wl.tensor([1, 0]), (3, 7)), decode_labels(wl.tensor([1]), ("cat", "dog")).tolist()
    (tensor([7, 3]), ['dog'])
    """
    if classes == tuple(range(len(classes))):
        return indices
    if isinstance(classes[0], str):
        return np.array(classes)[indices.numpy()]
    return arrays.take(arrays.asarray(np.array(classes)), indices)


class Classifier(Module):
    """A model that gives every class a probability: (..., c) to (..., m).

    A subclass defines `predict_proba` and sets `classes_`, the labels in the order of the probabilities.
    """

    classes_: tuple[int | str, ...] = ()

    def predict_proba(self, X: ArrayLike) -> Tensor:
        """The probabilities (..., m) of the classes."""
        raise ModuleError(f"{type(self).__name__}: has no probabilities.", "def predict_proba(self, X): ...")

    @no_grad()
    def predict(self, X: ArrayLike) -> Any:
        """The most probable class, the vertex of the simplex nearest to the probabilities; of equals the first."""
        return decode_labels(arrays.argmax(self.predict_proba(X), axis=-1), self.classes_)

    @no_grad()
    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """The accuracy: the share of the examples whose predicted class is the true one."""
        X = as_examples(type(self).__name__, X)
        predicted, truth = np.asarray(self.predict(X)), np.asarray(y)
        if predicted.shape != truth.shape:
            raise ShapeError(
                f"{type(self).__name__}.score: labels of shape {truth.shape} for {len(predicted)} examples.",
                f"labels of shape {predicted.shape}",
            )
        return float(np.mean(predicted == truth))
