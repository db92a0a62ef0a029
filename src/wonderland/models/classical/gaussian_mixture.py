"""A mixture of Gaussians, fitted by expectation-maximisation or by gradient descent. Book, section 3.1.1."""

from __future__ import annotations

import math

import numpy as np

from ... import arrays, linalg
from ...arrays.conversion import convert
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, LinearAlgebraError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, KeyLike
from ...nn.module.lazy import Lazy
from ...nn.module.module import Module
from ...nn.module.parameter import Buffer, Held, Parameter
from ...random.continuous import normal
from ...random.discrete import categorical
from ...random.keys import split
from ...random.streams import take_key
from .descent import descend
from .kmeans import KMeans
from .points import as_points, as_training_points, fitted

KINDS = ("full", "diag", "spherical")


class GaussianMixture(Module):
    r"""\(p(x) = \sum_k \pi_k\, \mathcal N(x; \mu_k, \Sigma_k)\). Book, section 3.1.1.

    >>> import wonderland as wl
    >>> low, high = wl.random.normal((2, 200, 1), key=wl.random.key(0))
    >>> X = wl.concat([low - 5.0, high + 5.0])
    >>> model = wl.models.GaussianMixture(2, key=wl.random.key(1)).fit(X)
    >>> wl.round(wl.sort(model.means_[:, 0]))
    tensor([-5.,  5.])
    >>> model.predict_proba(wl.tensor([[-5.0], [5.0]])).shape
    (2, 2)

    `covariance_type` is "full" (a matrix per component), "diag" or "spherical" (one variance per component); to every
    variance `reg_covar` is added. `fit(X)` starts from k-means, then alternates

    - E: \(r_{ik} \propto \pi_k\, \mathcal N(x_i; \mu_k, \Sigma_k)\),
    - M: \(\pi_k, \mu_k, \Sigma_k\) = weight, mean and covariance of the points with weights \(r_{ik}\)

    until the mean log-likelihood, which never falls, gains less than `tol`. `fit(X, method="gradient")` runs Adam on
    the negative log-likelihood instead, with \(\pi\) a softmax and \(\Sigma_k = L_k L_k^\top\).

    After `fit`: `weights_` (k,), `means_` (k, d), `covariances_` (k, d, d), (k, d) or (k,), `history_` (the mean
    log-likelihood of each iteration), `converged_`.
    """

    weights_: Held[Buffer]
    means_: Held[Buffer]
    covariances_: Held[Buffer]
    history_: Held[Buffer]

    def __init__(
        self,
        n_components: int = 1,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        key: KeyLike = None,
    ) -> None:
        self.n_components = as_int("GaussianMixture", "n_components", n_components, 1)
        if covariance_type not in KINDS:
            kinds = ", ".join(map(repr, KINDS))
            raise InputError(f"GaussianMixture: covariance_type={covariance_type!r}.", f"one of {kinds}")
        self.covariance_type = covariance_type
        self.tol = as_number("GaussianMixture", "tol", tol)
        self.reg_covar = as_number("GaussianMixture", "reg_covar", reg_covar)
        if self.reg_covar < 0:
            raise InputError(f"GaussianMixture: reg_covar={reg_covar}.", "0 or more")
        self.max_iter = as_int("GaussianMixture", "max_iter", max_iter, 1)
        self.n_init = as_int("GaussianMixture", "n_init", n_init, 1)
        self.key = None if key is None else take_key("GaussianMixture", key)
        self.converged_ = False
        self.weights_, self.means_, self.covariances_, self.history_ = Lazy(), Lazy(), Lazy(), Lazy()

    # --- fitting

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, method: str = "em", lr: float = 0.02) -> GaussianMixture:
        """Fit to points (n, d), by "em" or by "gradient" with learning rate `lr`."""
        if method not in ("em", "gradient"):
            raise InputError(f"GaussianMixture: method={method!r}.", '"em" or "gradient"')
        X = as_training_points("GaussianMixture", X, max(2, self.n_components))
        keys = split(take_key("GaussianMixture", self.key), self.n_init)
        found = []
        for i in range(self.n_init):
            labels = KMeans(self.n_components, n_init=1, key=keys[i]).fit(X).labels_
            start = self._maximize(X, arrays.one_hot(labels, self.n_components, dtype=X.dtype))
            found.append(self._em(X, start) if method == "em" else self._descend(X, start, lr))
        (weights, means, covariances), history, self.converged_ = max(found, key=lambda run: run[1][-1])
        self.weights_, self.means_, self.covariances_ = Buffer(weights), Buffer(means), Buffer(covariances)
        self.history_ = Buffer(np.array(history), persistent=False)
        return self

    def _em(self, X: Tensor, state: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], list[float], bool]:
        history: list[float] = []
        for _ in range(self.max_iter):
            joint = joint_log_prob(X, *state)
            each = arrays.logsumexp(joint, axis=1)
            history.append(float(each.mean()))
            if len(history) > 1 and history[-1] - history[-2] < self.tol:
                return state, history, True
            state = self._maximize(X, arrays.exp(joint - each[:, None]))
        return state, [*history, float(arrays.mean(arrays.logsumexp(joint_log_prob(X, *state), axis=1)))], False

    def _maximize(self, X: Tensor, r: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The M step: weights, means and covariances of points with responsibilities r (n, k)."""
        total = arrays.sum(r, axis=0) + 10 * arrays.finfo(X.dtype).eps  # of a component that has lost its points, too
        means = (r.mT @ X) / total[:, None]
        apart = X - means[:, None]  # (k, n, d)
        if self.covariance_type == "full":
            covariances = (apart.mT * r.mT[:, None]) @ apart / total[:, None, None]
            covariances = covariances + self.reg_covar * arrays.eye(X.shape[1], dtype=X.dtype)
        else:
            covariances = arrays.sum(arrays.square(apart) * r.mT[..., None], axis=1) / total[:, None] + self.reg_covar
            if self.covariance_type == "spherical":
                covariances = arrays.mean(covariances, axis=1)
        return total / arrays.sum(total), means, covariances

    def _descend(self, X: Tensor, state: tuple[Tensor, ...], lr: float) -> tuple[tuple[Tensor, ...], list[float], bool]:
        free = _Free(state, self.reg_covar)
        seen: list[float] = []

        def enough(epoch: int, loss: float) -> bool:
            seen.append(loss)
            return epoch > 20 and max(seen[-20:-10]) - min(seen[-10:]) < self.tol * 0.1

        steps = 20 * self.max_iter
        losses = descend(free, _Free.loss, X, epochs=steps, lr=lr, callback=enough, name="GaussianMixture")
        final = tuple(arrays.asarray(part) for part in free())
        return final, [*(-v for v in losses), -float(free.loss(X))], len(losses) < steps

    # --- use

    def _state(self) -> tuple[Tensor, Tensor, Tensor]:
        return fitted("GaussianMixture", self.weights_), self.means_, self.covariances_

    def _joint(self, X: ArrayLike) -> Tensor:
        state = self._state()
        return joint_log_prob(as_points("GaussianMixture", X, state[1].shape[1]), *state)

    def score_samples(self, X: ArrayLike) -> Tensor:
        """The log-density (n,) of each point."""
        return arrays.logsumexp(self._joint(X), axis=1)

    def forward(self, X: ArrayLike) -> Tensor:
        return self.score_samples(X)

    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """The mean log-density."""
        return float(arrays.mean(self.score_samples(X)))

    def predict_proba(self, X: ArrayLike) -> Tensor:
        """The probabilities (n, k) of the components, given the points."""
        return arrays.softmax(self._joint(X), axis=1)

    def predict(self, X: ArrayLike) -> Tensor:
        """The most probable component (n,) of each point."""
        return arrays.argmax(self._joint(X), axis=1)

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None) -> Tensor:
        """`fit`, then `predict` for the same points."""
        return self.fit(X).predict(X)

    def sample(self, n_samples: int = 1, *, key: KeyLike = None) -> tuple[Tensor, Tensor]:
        """New points (n, d) and the components (n,) that they come from."""
        weights, means, covariances = self._state()
        n = as_int("GaussianMixture.sample", "n_samples", n_samples, 1)
        first, second = split(take_key("GaussianMixture", key), 2)
        z = categorical(arrays.log(weights), shape=(n,), key=first)
        noise = normal((n, means.shape[1]), key=second, dtype=means.dtype)
        factor = scale_factors(covariances)
        if factor.ndim == 3:
            moved = arrays.squeeze(arrays.take(factor, z, axis=0) @ noise[..., None], -1)
        else:
            moved = arrays.take(factor, z, axis=0) * noise
        return arrays.take(means, z, axis=0) + moved, z

    def num_free_parameters(self) -> int:
        """The free numbers: weights (one less than components), means and covariances."""
        k, d = self._state()[1].shape
        return k - 1 + k * d + k * {"full": d * (d + 1) // 2, "diag": d, "spherical": 1}[self.covariance_type]

    def bic(self, X: ArrayLike) -> float:
        r"""\(p \ln n - 2 \ln L\) for p free numbers: lower is better."""
        n = arrays.asarray(X).shape[0]
        return self.num_free_parameters() * math.log(n) - 2 * n * self.score(X)

    def aic(self, X: ArrayLike) -> float:
        r"""\(2 p - 2 \ln L\): lower is better."""
        return 2 * self.num_free_parameters() - 2 * arrays.asarray(X).shape[0] * self.score(X)

    def extra_repr(self) -> str:
        return f"n_components={self.n_components}, covariance_type={self.covariance_type!r}"


class _Free(Module):
    """The numbers of a mixture without constraints, for gradient descent."""

    below: Parameter | None

    def __init__(self, state: tuple[Tensor, ...], least: float) -> None:
        weights, means, covariances = state
        self.logits = Parameter(arrays.log(weights))
        self.means = Parameter(means)
        self.least = least
        factor = scale_factors(covariances)
        if covariances.ndim == 3:
            self.below = Parameter(arrays.tril(factor, k=-1))
            self.log_scale = Parameter(arrays.log(arrays.diagonal(factor)))
        else:
            self.below = None
            self.log_scale = Parameter(0.5 * arrays.log(covariances))

    def forward(self) -> tuple[Tensor, Tensor, Tensor]:
        scale = arrays.exp(self.log_scale)
        if self.below is None:
            return arrays.softmax(self.logits), self.means, arrays.square(scale) + self.least
        eye = arrays.eye(scale.shape[1], dtype=scale.dtype)
        factor = arrays.tril(self.below, k=-1) + scale[..., None] * eye
        return arrays.softmax(self.logits), self.means, factor @ factor.mT + self.least * eye

    def loss(self, X: Tensor) -> Tensor:
        return -arrays.mean(arrays.logsumexp(joint_log_prob(X, *self()), axis=1))


def scale_factors(covariances: Tensor) -> Tensor:
    """L with L Lᵀ the covariances: Cholesky factors (k, d, d), or standard deviations (k, d) or (k, 1)."""
    if covariances.ndim < 3:
        scale = arrays.sqrt(covariances)
        return scale if scale.ndim == 2 else scale[:, None]
    try:
        return linalg.cholesky(covariances)
    except LinearAlgebraError as error:
        raise LinearAlgebraError(
            "GaussianMixture: the covariance of a component is not positive definite.",
            "a larger reg_covar, fewer components, or scaled data",
        ) from error


def joint_log_prob(X: Tensor, weights: Tensor, means: Tensor, covariances: Tensor) -> Tensor:
    r"""\(\ln \pi_k + \ln \mathcal N(x_i; \mu_k, \Sigma_k)\) as (n, k), for covariances of any of the three forms.

    >>> import wonderland as wl
    >>> one = wl.ones(1)
    >>> print(joint_log_prob(wl.zeros((1, 2)), one, wl.zeros((1, 2)), one)[0, 0])
    tensor(-1.837877)
    """
    weights, means, covariances = (convert(part, X.dtype) for part in (weights, means, covariances))
    d = X.shape[1]
    apart = X - means[:, None]  # (k, n, d)
    factor = scale_factors(covariances)
    if factor.ndim == 3:
        white = linalg.solve_triangular(factor, apart.mT, lower=True)  # (k, d, n)
        squares = arrays.sum(arrays.square(white), axis=1)
        log_det = arrays.sum(arrays.log(arrays.diagonal(factor)), axis=1)
    else:
        squares = arrays.sum(arrays.square(apart / factor[:, None]), axis=2)
        log_det = arrays.sum(arrays.broadcast_to(arrays.log(factor), (factor.shape[0], d)), axis=1)
    return (arrays.log(weights)[:, None] - log_det[:, None] - 0.5 * (squares + d * math.log(2 * math.pi))).mT
