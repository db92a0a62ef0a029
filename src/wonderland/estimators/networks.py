"""Any module as a classifier or a regressor of scikit-learn's kind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Self

import numpy as np

from .. import arrays
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import Array, Foreign
from ..models.networks.mlp import MLP
from ..nn.layers.standardize import Standardize
from ..nn.module.containers import Sequential
from ..nn.module.module import Module
from ..optim.optimizer import Optimizer
from ..random import seed
from ..random.streams import default_stream
from ..train.by_name import loss_named
from ..train.callbacks import Callback
from ..train.evaluation import predict
from ..train.history import History
from ..train.step import Loss, LossFunction, as_loss, supervised
from ..train.trainer import Trainer
from .bases import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    check_classes,
    check_is_fitted,
    check_weights,
    seed_of,
    validate,
)

HIDDEN = (64, 32)  # of the network if none is given
# Checks of scikit-learn's `check_estimator` that networks cannot pass, and why.
_DIGITS = "products are in float32, whose last digit depends on an example's place in a batch; 1e-7 is that digit"
EXPECTED_FAILED_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data": "batches come in a random order: an example that comes twice is "
    "in other batches, and leads to other steps, than one of weight two",
    "check_methods_sample_order_invariance": _DIGITS,
    "check_methods_subset_invariance": _DIGITS,
}
COMPILED_FROM = 4096  # examples: for fewer ones, a forward pass is not worth compiling


class _Network(BaseEstimator):
    """What classifiers and regressors share: how a module is made and trained."""

    _usual_loss: str
    module_: Module
    history_: History
    n_iter_: int
    optimizer_: Optimizer

    def __init__(
        self,
        module: object = None,
        *,
        loss: Loss | None = None,
        optimizer: type[Optimizer] | str = "adam",
        lr: float | None = 0.01,
        epochs: int = 100,
        batch_size: int = 32,
        standardize: bool = True,
        validation: float | None = None,
        callbacks: Iterable[Callback] = (),
        compiled: bool = True,
        progress: str | bool = False,
        random_state: object = None,
    ) -> None:
        self.module = module
        self.loss = loss
        self.optimizer = optimizer
        self.lr = lr
        self.epochs = epochs
        self.batch_size = batch_size
        self.standardize = standardize
        self.validation = validation
        self.callbacks = callbacks
        self.compiled = compiled
        self.progress = progress
        self.random_state = random_state

    def _build(self, X: Array, outputs: int) -> Module:
        """The module for these inputs: what was given is never trained itself, so that another fit starts anew."""
        made = self.module
        if made is None:
            made = MLP(X.shape[1], list(HIDDEN), outputs)
        elif isinstance(made, Module):
            made = made.copy()
        elif callable(made):
            made = made(X.shape[1] if X.ndim == 2 else X.shape[1:], outputs)
        if not isinstance(made, Module):
            raise InputError(
                f"{type(self).__name__}: module={self.module!r} gave no module.",
                "a wl.nn.Module, or a function (inputs, outputs) that makes one",
            )
        return Sequential(Standardize.of(X), made) if self.standardize else made

    def _train(self, X: Array, targets: Array, weights: Array | None, outputs: int, epochs: int, anew: bool) -> None:
        chosen = seed_of(self.random_state)
        data: tuple[Array, ...] = (X, targets) if weights is None else (X, targets, weights)
        with _own_stream(chosen):
            if anew:
                self.module_ = self._build(X, outputs)
            trainer = Trainer(
                self.module_,
                self._loss(weights is not None),
                data,
                optimizer=self.optimizer if anew else self.optimizer_,
                lr=self.lr if anew else None,
                batch_size=self.batch_size,
                validation=self.validation,
                callbacks=self.callbacks,
                progress=self.progress,
                seed=chosen if anew else chosen + self.n_iter_,
                jit=self.compiled,
                check=False,
                objective=supervised if weights is None else weighted,
            )
            history = trainer.fit(epochs)
        self.optimizer_ = trainer.optimizer
        self.history_ = history if anew else History([*self.history_, *history])
        self.n_iter_ = epochs if anew else self.n_iter_ + epochs
        self.module_.eval()

    def _loss(self, weighted: bool) -> Module:
        loss = self.loss or self._usual_loss
        if not weighted:
            return as_loss(loss)
        if isinstance(loss, str):
            return LossFunction(partial(loss_named(loss), reduction="none"))
        if getattr(loss, "reduction", None) == "none":
            return as_loss(loss)
        raise InputError(
            f"{type(self).__name__}: sample_weight with the loss {loss!r}.", 'a name, or a loss with reduction="none"'
        )

    def _outputs(self, X: object) -> Tensor:
        check_is_fitted(self)
        x = validate(self, X, reset=False, dtype=np.float32, allow_nd=True)
        found = predict(self.module_, x, compiled=self.compiled and len(x) >= COMPILED_FROM)
        if not isinstance(found, Tensor) or found.ndim < 1:
            raise ShapeError(f"{type(self).__name__}: the module gives {type(found).__name__}.", "one tensor")
        return found


class Classifier(ClassifierMixin, _Network):
    """A module that gives a score for each class, trained by `fit`.

    >>> import numpy as np, wonderland as wl
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = wl.estimators.Classifier(lambda inputs, outputs: wl.models.MLP(inputs, [16], outputs), random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.9), model.predict_proba(X).shape, model.classes_.tolist()
    (True, (80, 2), ['other', 'same'])

    - `module`: a module whose last axis has a score (a logit) for each class, or a function (inputs, outputs) that
      makes one when `fit` has seen the sizes (a shape, for inputs with several axes); a perceptron if it is None. A
      module is copied before it is trained: `module_` is what was trained.
    - `loss`: a name or a loss of scores and classes, cross entropy if nothing is said. `optimizer`: a name or a class.
    - `standardize`: bring inputs to mean 0 and standard deviation 1 by the training data, in a first layer.
    - `validation`, `callbacks`, `progress`, `batch_size`: as in `wl.train.fit`; `compiled=False` trains eagerly, which
      is quicker for a few steps.
    - `random_state`: decides about the first weights and the order of examples; the global stream is left alone.

    After `fit`: `module_`, `classes_`, `history_`, `optimizer_`, `n_iter_`, `n_features_in_`.
    """

    _usual_loss = "cross_entropy"

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Train from the beginning on inputs (n, ...) and labels (n,), each with a weight if there are some."""
        return self._fit(X, y, sample_weight, None, self.epochs, anew=True)

    def partial_fit(self, X: object, y: object, classes: object = None, sample_weight: object = None) -> Self:
        """Train one epoch more. The first call needs `classes`, or data with all of them."""
        return self._fit(X, y, sample_weight, classes, 1, anew=not hasattr(self, "module_"))

    def _fit(self, X: object, y: object, sample_weight: object, classes: object, epochs: int, anew: bool) -> Self:
        x, labels = validate(self, X, y, reset=anew, dtype=np.float32, allow_nd=True)
        check_classes(labels)
        weights = None if sample_weight is None else check_weights(sample_weight, x, dtype=np.float32)
        labels = np.asarray(labels).reshape(len(x))
        if anew:
            self.classes_ = np.unique(labels if classes is None else np.asarray(classes))
            if len(self.classes_) < 2:
                raise InputError(
                    f"Classifier: the labels are all of one class, {self.classes_.tolist()}.",
                    "examples of two or more classes",
                )
        places = np.searchsorted(self.classes_, labels)
        unknown = (places >= len(self.classes_)) | (self.classes_[np.minimum(places, len(self.classes_) - 1)] != labels)
        if unknown.any():
            raise InputError(
                f"Classifier: the label {labels[unknown][0]!r} is none of the classes {self.classes_.tolist()}.",
                "partial_fit(X, y, classes=...) with all of them in the first call",
            )
        self._train(x, places.astype(np.int64), weights, len(self.classes_), epochs, anew)
        return self

    def predict_proba(self, X: object) -> Array:
        """The probabilities (n, classes)."""
        scores = self._outputs(X)
        if scores.shape[1:] != (len(self.classes_),):
            raise ShapeError(
                f"Classifier: scores of shape {scores.shape} for {len(self.classes_)} classes.",
                "a module with one output for each class",
            )
        p = np.asarray(arrays.softmax(scores, axis=-1), np.float64)
        return p / p.sum(1, keepdims=True)

    def predict(self, X: object) -> Array:
        """The most probable class of each example."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]


class Regressor(RegressorMixin, _Network):
    """A module that gives numbers, trained by `fit`.

    >>> import numpy as np, wonderland as wl
    >>> X = np.linspace(-1.0, 1.0, 60)[:, None]
    >>> y = 1000.0 + 50.0 * X[:, 0] ** 2
    >>> model = wl.estimators.Regressor(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True

    The arguments are those of `Classifier`; the usual loss is the squared error, in units of the targets' standard
    deviation: with `standardize` they are scaled for training, and predictions are in the units of y. A function that
    makes the module gets 1 as `outputs` for targets (n,), and m for (n, m).
    """

    _usual_loss = "mse"

    def __sklearn_tags__(self) -> Foreign:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Train from the beginning on inputs (n, ...) and numbers (n,) or (n, m), each with a weight if asked for."""
        return self._fit(X, y, sample_weight, self.epochs, anew=True)

    def partial_fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Train one epoch more; the scales are those of the first call."""
        return self._fit(X, y, sample_weight, 1, anew=not hasattr(self, "module_"))

    def _fit(self, X: object, y: object, sample_weight: object, epochs: int, anew: bool) -> Self:
        x, y = validate(self, X, y, reset=anew, dtype=np.float32, allow_nd=True, multi_output=True, y_numeric=True)
        weights = None if sample_weight is None else check_weights(sample_weight, x, dtype=np.float32)
        targets = np.asarray(y, np.float64)
        if anew:
            self.n_outputs_ = 1 if targets.ndim == 1 else targets.shape[1]
            self._single = targets.ndim == 1
            scale = targets.std(0)
            self.target_mean_ = targets.mean(0) if self.standardize else np.zeros_like(scale)
            self.target_scale_ = np.where(scale > 0, scale, 1.0) if self.standardize else np.ones_like(scale)
        scaled = ((targets - self.target_mean_) / self.target_scale_).astype(np.float32)
        self._train(x, scaled.reshape(len(x), -1), weights, self.n_outputs_, epochs, anew)
        return self

    def predict(self, X: object) -> Array:
        """The numbers (n,), or (n, m), in the units of the targets."""
        outputs = np.asarray(self._outputs(X), np.float64)
        if outputs.shape[1:] != (self.n_outputs_,):
            raise ShapeError(
                f"Regressor: outputs of shape {outputs.shape} for {self.n_outputs_} targets.",
                "a module with one output for each target, (n, m)",
            )
        outputs = outputs[:, 0] if self._single else outputs
        return outputs * self.target_scale_ + self.target_mean_


def weighted(model: Callable[..., Tensor], loss: Callable[..., Tensor], batch: Any) -> tuple[Tensor, Tensor]:
    """The objective with a weight for each example: the weighted mean of the losses."""
    inputs, targets, weights = batch
    outputs = model(inputs)
    losses = loss(outputs, targets)
    losses = arrays.mean(losses, axis=tuple(range(1, losses.ndim))) if losses.ndim > 1 else losses
    return arrays.sum(losses * weights) / arrays.sum(weights), outputs


@contextlib.contextmanager
def _own_stream(number: int) -> Iterator[None]:
    """The global stream with a seed for the time of a block; outside, it goes on as if nothing had been drawn."""
    before = default_stream.value
    seed(number)
    try:
        yield
    finally:
        default_stream.assign(before)
