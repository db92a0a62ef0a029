"""Logistic regression, for two classes and for many. Book, sections 4.2.2 and 4.3.1."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ... import arrays
from ...core.arguments import as_number
from ...core.context import user_level
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...decisions.thresholds import predict_binary
from ...nn.functional import binary_cross_entropy_with_logits, cross_entropy
from ...transforms.imperative import no_grad
from .classifier import Classifier, decode_labels, encode_labels
from .convex import ConvergenceWarning
from .least_squares import largest_curvature
from .linear_model import LinearModel, as_examples, fit_linear, warn_if_unsettled


class _Logistic(Classifier, LinearModel):
    """What the two models share: settings, and a convex loss without a closed form."""

    curvature = 0.5  # of the loss by the logits, at most

    def __init__(self, l2: float = 0.0, bias: bool = True, temperature: float = 1.0) -> None:
        name = type(self).__name__
        if not as_number(name, "l2", l2) >= 0:
            raise InputError(f"{name}: l2={l2}.", "a penalty of 0 or more")
        if not as_number(name, "temperature", temperature) > 0:
            raise InputError(f"{name}: temperature={temperature}.", "a temperature above 0")
        LinearModel.__init__(self, bias)
        self.l2 = l2
        self.temperature = temperature
        self.classes_ = ()

    @no_grad()
    def decision_function(self, X: ArrayLike) -> Tensor:
        """The logits, before the temperature."""
        return self(X)

    def _fit(
        self,
        loss: Callable[..., Tensor],
        X: Tensor,
        y: Tensor,
        outputs: tuple[int, ...],
        method: str | None,
        settings: dict[str, Any],
    ) -> Self:
        name = type(self).__name__
        if settings["lr"] is None:  # one over the largest curvature cannot overshoot
            steepest = self.curvature * largest_curvature(X, self.bias is not None) / self.temperature**2
            settings["lr"] = 1 / (steepest + self.l2)
        has_bias, temperature = self.bias is not None, self.temperature
        found = fit_linear(
            name, lambda s, y: loss(s / temperature, y), X, y, outputs, has_bias, self.l2, method, **settings
        )
        self._take(found.params, found)
        if not self.l2 and self._separates(X, y):
            warnings.warn(
                f"{name}: the classes can be separated without error, so larger weights are always better and there is "
                "no best model. Try l2=1e-3.",
                ConvergenceWarning,
                stacklevel=user_level(),
            )
        else:
            warn_if_unsettled(name, found, "scaled features, a larger max_iter or tol, or l2 > 0")
        return self

    @no_grad()
    def _separates(self, X: Tensor, y: Tensor) -> bool:
        raise NotImplementedError


class LogisticRegression(_Logistic):
    r"""\(p(x) = \mathrm{softmax}((W^\top x + b)/\tau)\) with the least mean cross-entropy. Book, section 4.2.2.

    >>> model = LogisticRegression(l2=0.01).fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> model.classes_, model.predict([[0.5], [2.5]]).tolist()
    (('high', 'low'), ['low', 'high'])

    The objective is \(\frac1n\sum_i -\ln p(x_i)_{y_i} + \frac{l_2}{2}\|W\|^2\), without the bias; scikit-learn's C is
    \(1/(n\,l_2)\). `weight` is (c, m): its columns, the class vectors, are compared with x (`class_vectors`). It is
    convex; `fit` takes Newton's steps for small models and L-BFGS's for large ones, or descends (`method="gradient"`).
    Classes that can be separated without error need l2 > 0, else the weights grow for ever.

    Calling the model gives logits (..., m), as losses want them; `predict_proba` probabilities, `predict` classes.
    """

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        method: str | None = None,
        *,
        num_classes: int | None = None,
        lr: float | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
    ) -> Self:
        """Find the parameters for inputs (n, c) and labels (n,), integers or names.

        `tol` is the norm of the gradient to reach; for "gradient" the squared length of a step (book, E.4.8).
        """
        X = as_examples(type(self).__name__, X)
        indices, self.classes_ = encode_labels(type(self).__name__, y, X.shape[0], num_classes)
        settings = {"lr": lr, "max_iter": max_iter, "tol": tol}
        return self._fit(cross_entropy, X, indices, (len(self.classes_),), method, settings)

    @no_grad()
    def predict_proba(self, X: ArrayLike) -> Tensor:
        return arrays.softmax(self(X), temperature=self.temperature)

    @property
    def class_vectors(self) -> Tensor:
        r"""The vectors \(w_c\) (m, c) with which inputs are compared: \(p_c\) grows with \(\langle w_c, x\rangle\)."""
        return arrays.stop_gradient(self.weight).mT

    @no_grad()
    def _separates(self, X: Tensor, y: Tensor) -> bool:
        scores = self(X).numpy()
        right = np.take_along_axis(scores, y.numpy()[:, None], axis=1)
        return bool(((scores < right).sum(axis=1) == scores.shape[1] - 1).all())


SoftmaxRegression = LogisticRegression


class BinaryLogisticRegression(_Logistic):
    r"""\(p(y{=}1 \mid x) = \sigma((w^\top x + b)/\tau)\) with the least mean cross-entropy. Book, section 4.3.1.

    >>> model = BinaryLogisticRegression(l2=0.01).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.predict([[0.5], [2.5]]), model.weight.shape
    (tensor([0, 1]), (1,))

    It is the softmax of the logits \([0, s]\). Calling the model gives the logit (...,) of the second class, the
    log-odds; `predict_proba` has both probabilities, (..., 2). `predict` says 1 where p > `threshold`; at equality the
    answer is `tie`, 0 as in the book (a threshold unit \(\mathbb 1(s \ge 0)\) has `tie=1`).
    """

    curvature = 0.25

    def __init__(
        self,
        l2: float = 0.0,
        bias: bool = True,
        temperature: float = 1.0,
        threshold: float = 0.5,
        tie: int = 0,
    ) -> None:
        super().__init__(l2, bias, temperature)
        self.threshold = threshold
        self.tie = tie
        self.classes_ = (0, 1)
        predict_binary(0.5, threshold, tie)  # refuses what makes no sense

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        method: str | None = None,
        *,
        lr: float | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
    ) -> Self:
        """Find the parameters for inputs (n, c) and labels (n,) of two kinds; the larger is class 1."""
        X = as_examples(type(self).__name__, X)
        indices, classes = encode_labels(type(self).__name__, y, X.shape[0])
        if len(classes) != 2:
            raise InputError(
                f"BinaryLogisticRegression.fit: {len(classes)} classes.", "LogisticRegression for more than two"
            )
        self.classes_ = classes
        settings = {"lr": lr, "max_iter": max_iter, "tol": tol}
        return self._fit(binary_cross_entropy_with_logits, X, arrays.astype(indices, X.dtype), (), method, settings)

    @no_grad()
    def predict_proba(self, X: ArrayLike) -> Tensor:
        s = self(X) / self.temperature
        return arrays.stack([arrays.sigmoid(-s), arrays.sigmoid(s)], axis=-1)

    @no_grad()
    def predict(self, X: ArrayLike) -> Any:
        p = arrays.sigmoid(self(X) / self.temperature)
        return decode_labels(predict_binary(p, self.threshold, self.tie), self.classes_)

    @no_grad()
    def _separates(self, X: Tensor, y: Tensor) -> bool:
        return bool(((self(X).numpy() * (2 * y.numpy() - 1)) > 0).all())


def as_softmax(model: BinaryLogisticRegression) -> LogisticRegression:
    r"""The same model with two logits, \(W = [0, w]\) and \(b = [0, b]\). Book, section 4.3.1.

    >>> import wonderland as wl
    >>> binary = BinaryLogisticRegression.from_weights([2.0], 1.0)
    >>> bool(wl.allclose(as_softmax(binary).predict_proba([[0.3]]), binary.predict_proba([[0.3]])))
    True
    """
    if not isinstance(model, BinaryLogisticRegression):
        raise ShapeError(f"as_softmax: a {type(model).__name__} has no single logit.", "a BinaryLogisticRegression")
    w = arrays.asarray(model.weight)
    bias = None if model.bias is None else arrays.stack([arrays.zeros_like(model.bias), arrays.asarray(model.bias)])
    weight = arrays.stack([arrays.zeros_like(w), w], axis=-1)
    wide = LogisticRegression.from_weights(weight, bias, l2=model.l2, temperature=model.temperature)
    wide.classes_ = model.classes_
    return wide
