"""Beliefs about models: priors, posteriors over a grid, averages over models, and the most probable one.

Book, section 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from .. import arrays
from ..arrays.conversion import as_tensor
from ..core import trees
from ..core.dtypes import float64
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, KeyLike
from ..random.discrete import categorical
from .discrete import check_simplex, log_probability

Model = TypeVar("Model")


class GridPosterior:
    r"""What is believed of a list of models: \(p(f \mid S) = p(S \mid f)\,p(f)/p(S)\). Book, section 3.3.

    >>> import wonderland as wl
    >>> heads = lambda p, k, n: k * wl.log(p) + (n - k) * wl.log(1 - p)
    >>> belief = wl.distributions.GridPosterior(wl.tensor([0.1, 0.5, 0.9], wl.float64))
    >>> belief = belief.update(heads, 7, 10)
    >>> belief.probs
    tensor([5.01054241e-05, 6.71208207e-01, 3.28741688e-01], dtype=float64)
    >>> print(belief.predict(lambda p: p))  # the model average
    tensor(0.63147663, dtype=float64)

    `models` is a list or a tensor of them, `prior` their probabilities (uniform without it), or `log_prior` any
    logarithms of weights. `log_evidence` is \(\ln p(S)\) of all that was seen.
    """

    def __init__(self, models: Any, prior: ArrayLike | None = None, log_prior: ArrayLike | None = None) -> None:
        self.models: Any = arrays.asarray(models) if isinstance(models, np.ndarray) else models
        if not len(models):
            raise InputError("GridPosterior: no models.", "at least one")
        if prior is not None:
            prior = arrays.astype(arrays.asarray(prior), float64)
            check_simplex("GridPosterior", prior)
            log_prior = log_probability(prior)
        weights = arrays.zeros(len(models), dtype=float64) if log_prior is None else arrays.asarray(log_prior)
        if weights.shape != (len(models),):
            raise ShapeError(f"GridPosterior: {weights.shape} probabilities for {len(models)} models.", "one each")
        self.log_probs: Tensor = arrays.log_softmax(arrays.astype(weights, float64))
        self.log_evidence: Tensor = arrays.zeros((), dtype=float64)

    @property
    def probs(self) -> Tensor:
        """The probability of each model."""
        return arrays.exp(self.log_probs)

    def update(self, log_likelihood: Callable[..., ArrayLike], *data: object) -> GridPosterior:
        """The belief after seeing data: this one is the prior. `log_likelihood(model, *data)` is a number.

        Two updates with parts of the data give the same belief as one with all of them.
        """
        seen = arrays.stack(
            [arrays.astype(as_tensor("update", log_likelihood(m, *data)), float64) for m in self.models]
        )
        if seen.ndim != 1:
            raise ShapeError(f"update: log-likelihoods of shape {seen.shape[1:]}.", "one number: the sum over the data")
        joint = self.log_probs + seen
        evidence = arrays.logsumexp(joint)
        if float(evidence) == -arrays.inf:
            raise InputError("update: the data are impossible under every model.", "a model that allows them")
        made = GridPosterior(self.models, log_prior=joint - evidence)
        made.log_evidence = self.log_evidence + evidence
        return made

    def predict(self, f: Callable[[Any], ArrayLike]) -> Tensor:
        r"""The Bayesian model average \(\sum_f p(f \mid S)\,f(x)\), exactly."""
        values = arrays.stack([as_tensor("predict", f(model)) for model in self.models])
        return arrays.tensordot(arrays.astype(self.probs, arrays.result_type(values.dtype, float64)), values, axes=1)

    def sample(self, n: int, key: KeyLike = None) -> list[Any]:
        """n models, drawn by their probabilities."""
        return [self.models[int(i)] for i in categorical(self.log_probs, shape=(n,), key=key)]

    def most_probable(self) -> Any:
        """The model with the highest probability: the MAP solution on the grid."""
        return self.models[int(arrays.argmax(self.log_probs))]


def predict_bma(samples: Sequence[Model], f: Callable[[Model], ArrayLike], weights: ArrayLike | None = None) -> Tensor:
    r"""The Bayesian model average \(\frac1k\sum_i f(m_i)\) over models drawn from a posterior. Book, section 3.3.

    >>> import wonderland as wl
    >>> wl.distributions.predict_bma([0.0, 1.0], lambda m: wl.tensor([m, 1 - m]))
    tensor([0.5, 0.5])

    A plain mean: drawing has weighted the models already, so the formula of the book that multiplies by
    \(p(f_i \mid S)\) once more does not sum to 1. For models that were not drawn but listed, give their probabilities
    as `weights`.
    """
    if not len(samples):
        raise InputError("predict_bma: no models.", "at least one")
    values = arrays.stack([as_tensor("predict_bma", f(model)) for model in samples])
    if weights is None:
        return arrays.mean(values, axis=0)
    weights = arrays.astype(arrays.asarray(weights), values.dtype)
    if weights.shape != (len(samples),):
        raise ShapeError(f"predict_bma: weights of shape {weights.shape} for {len(samples)} models.", "one each")
    check_simplex("predict_bma", weights)
    return arrays.tensordot(weights, values, axes=1)


# --- priors of parameters, as logarithms up to a constant


def gaussian_log_prior(params: object, std: float = 1.0) -> Tensor:
    r"""\(-\frac{1}{2\tau^2}\sum w^2\): the negative of an L2 penalty with \(\lambda = 1/(2\tau^2)\).

    >>> import wonderland as wl
    >>> print(wl.distributions.gaussian_log_prior({"w": wl.tensor([1.0, 2.0])}, std=0.5))
    tensor(-10.)
    """
    return _sum_over("gaussian_log_prior", params, std, arrays.square) * (-0.5 / (std * std))


def laplace_log_prior(params: object, scale: float = 1.0) -> Tensor:
    r"""\(-\frac1s\sum |w|\): the negative of an L1 penalty.

    >>> import wonderland as wl
    >>> print(wl.distributions.laplace_log_prior({"w": wl.tensor([1.0, -2.0])}))
    tensor(-3.)
    """
    return _sum_over("laplace_log_prior", params, scale, arrays.abs) * (-1.0 / scale)


def norm_log_prior(params: object) -> Tensor:
    r"""\(-\ln\lVert w\rVert\), for \(p(f) \propto 1/\lVert f\rVert\): small norms are preferred. Book, section 3.3.

    >>> import wonderland as wl
    >>> print(wl.distributions.norm_log_prior(wl.tensor([3.0, 4.0])))
    tensor(-1.609438)

    Improper (its integral is infinite) and infinite at 0.
    """
    return -0.5 * arrays.log(_sum_over("norm_log_prior", params, 1.0, arrays.square))


def _sum_over(name: str, params: object, scale: float, f: Callable[[Tensor], Tensor]) -> Any:
    if not scale > 0:
        raise InputError(f"{name}: a scale of {scale}.", "a scale above 0")
    leaves = trees.leaves(params)
    if not leaves:
        raise InputError(f"{name}: no parameters.", "a tensor, or a tree or module with some")
    return sum(arrays.sum(f(leaf)) for leaf in leaves)


def map_objective(
    log_likelihood: Callable[..., ArrayLike], log_prior: Callable[[Any], ArrayLike] | None = None
) -> Callable[..., Tensor]:
    r"""The function \(-\ln p(S \mid w) - \ln p(w)\) of parameters and data, to be minimised. Book, section 3.3.

    >>> import wonderland as wl
    >>> from wonderland.distributions import Normal, gaussian_log_prior, map_objective
    >>> objective = map_objective(lambda w, x: Normal(w, 1.0).log_prob(x).sum(), gaussian_log_prior)
    >>> wl.grad(objective)(wl.tensor(1.0), wl.tensor([2.0, 2.0]))  # (w - 2) + (w - 2) + w
    tensor(-1.)

    Its minimum is the most probable model (MAP). The prior acts as a regulariser; without one (uniform) the minimum is
    that of maximum likelihood.
    """

    def objective(params: object, *data: object) -> Tensor:
        loss = -as_tensor("map_objective", log_likelihood(params, *data))
        return loss if log_prior is None else loss - log_prior(params)

    return objective
