"""Features before a linear model: designed by hand, or taken from inside another model. Notes, section 2.1.1."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement
from typing import Any, Self

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import InputError, ModuleError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...nn.module.module import Module


class PolynomialFeatures(Module):
    """All products of up to `degree` features: (..., c) to (..., more).

    >>> import wonderland as wl
    >>> PolynomialFeatures(2)(wl.tensor([2.0, 3.0]))
    tensor([2., 3., 4., 6., 9.])
    >>> PolynomialFeatures(2, interaction_only=True)(wl.tensor([2.0, 3.0]))
    tensor([2., 3., 6.])

    `interaction_only` leaves out powers of one feature; `include_bias` puts the empty product, 1, first (models here
    have a bias of their own). With the product of both inputs, exclusive or becomes linearly separable.
    """

    def __init__(self, degree: int = 2, interaction_only: bool = False, include_bias: bool = False) -> None:
        self.degree = as_int("PolynomialFeatures", "degree", degree, least=1)
        self.interaction_only = interaction_only
        self.include_bias = include_bias

    def forward(self, X: ArrayLike) -> Tensor:
        X = arrays.asarray(X)
        if not X.ndim:
            raise ShapeError("PolynomialFeatures: a number has no axis of features.", "an input of shape (..., c)")
        choose = combinations if self.interaction_only else combinations_with_replacement
        columns = [arrays.ones(X.shape[:-1], dtype=X.dtype)] if self.include_bias else []
        for degree in range(1, self.degree + 1):
            for factors in choose(range(X.shape[-1]), degree):
                product = X[..., factors[0]]
                for i in factors[1:]:
                    product = product * X[..., i]
                columns.append(product)
        return arrays.stack(columns, axis=-1)

    def transform(self, X: ArrayLike) -> Tensor:
        """The same as calling it."""
        return self(X)

    def extra_repr(self) -> str:
        return f"degree={self.degree}, interaction_only={self.interaction_only}, include_bias={self.include_bias}"


class Pipeline(Module):
    """Stages in a row: all but the last transform the inputs, the last is the model.

    >>> corners = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> from wonderland.models import Perceptron
    >>> model = Pipeline(PolynomialFeatures(2, interaction_only=True), Perceptron()).fit(corners, [0, 1, 1, 0])
    >>> model.predict(corners)
    tensor([0, 1, 1, 0])

    A stage has `transform`, and may have `fit`, which then sees what the stages before it give for the training data
    alone; any function of inputs will do as well.
    """

    def __init__(self, *stages: Any) -> None:
        if not stages:
            raise InputError("Pipeline: there is no stage.", "Pipeline(features, model)")
        for stage in stages:
            if not callable(stage) and not hasattr(stage, "transform") and not hasattr(stage, "predict"):
                raise InputError(f"Pipeline: a {type(stage).__name__} is no stage.", "a function, or with `transform`")
        self.stages = list(stages)

    def fit(self, X: ArrayLike, *targets: ArrayLike, **settings: Any) -> Self:
        """Fit every stage that can be fitted to what the ones before it give."""
        for stage in self.stages[:-1]:
            if hasattr(stage, "fit"):
                stage.fit(X)
            X = _transformed(stage, X)
        self.stages[-1].fit(X, *targets, **settings)
        return self

    def transform(self, X: ArrayLike) -> Any:
        """What the last stage gets."""
        for stage in self.stages[:-1]:
            X = _transformed(stage, X)
        return X

    def forward(self, X: ArrayLike) -> Any:
        return self.stages[-1](self.transform(X))

    def predict(self, X: ArrayLike) -> Any:
        return self.stages[-1].predict(self.transform(X))

    def predict_proba(self, X: ArrayLike) -> Any:
        return self.stages[-1].predict_proba(self.transform(X))

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        return self.stages[-1].score(self.transform(X), y)


def _transformed(stage: Any, X: ArrayLike) -> Any:
    return stage.transform(X) if hasattr(stage, "transform") else stage(X)


def extract_features(model: Module, layer: str, *inputs: object) -> Any:
    """What a layer inside a model gives for inputs: features for retrieval, clusters or another model.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(4, 8), wl.nn.ReLU(), wl.nn.Linear(8, 2))
    >>> extract_features(model, "1", wl.ones((3, 4))).shape
    (3, 8)

    `layer` is the path of the module, as `named_modules` lists it. Pixels are poor features: distances between them
    say little of what pictures show; layers of a trained model do better. Notes, B, section 3.1.1.
    """
    found: list[Any] = []
    hook = model.get_submodule(layer).register_forward_hook(lambda module, args, output: found.append(output))
    try:
        model(*inputs)
    finally:
        hook.remove()
    if not found:
        raise ModuleError(f"extract_features: the model did not call {layer!r}.", "a layer that takes part")
    return found[-1]
