"""How far one distribution is from another. Book, section A.5."""

from __future__ import annotations

from collections.abc import Callable

from .. import arrays, linalg
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..core.typing import KeyLike
from .compound import Independent
from .continuous import Delta, Laplace, Uniform
from .counts import Binomial, Poisson
from .discrete import Bernoulli, Categorical
from .distribution import Distribution, LocationScale
from .expectation import Estimate, monte_carlo
from .gamma_family import Beta, Dirichlet, Exponential, Gamma
from .gamma_functions import digamma, log_beta, log_gamma
from .multivariate_normal import MultivariateNormal
from .normal import LogNormal, Normal


def kl(p: Distribution, q: Distribution, n: int = 10_000, key: KeyLike = None) -> Tensor:
    r"""\(KL(p, q) = E_p[\ln p(x) - \ln q(x)]\): at least 0, and 0 only for equal distributions. Book, section A.5.

    >>> import wonderland as wl
    >>> from wonderland.distributions import Categorical
    >>> p, q = Categorical([0.6, 0.3, 0.1]), Categorical([1 / 3, 1 / 3, 1 / 3])
    >>> print(wl.distributions.kl(p, q), wl.distributions.kl(q, p))  # not symmetric
    tensor(0.200667) tensor(0.240516)

    Infinite where q excludes what p allows; \(0 \ln 0 = 0\). Pairs of one family have a closed form; for others it is
    the mean of n draws from p with `key`, whose standard error `kl_monte_carlo` tells.
    """
    formula = _FORMULAS.get((type(p), type(q)))
    if formula is not None:
        return formula(p, q)
    if isinstance(p, Delta):
        return -q.log_prob(p.value)
    return kl_monte_carlo(p, q, n, key).value


def kl_monte_carlo(p: Distribution, q: Distribution, n: int = 10_000, key: KeyLike = None) -> Estimate:
    """The divergence as a mean over n draws from p, with its standard error.

    >>> import wonderland as wl
    >>> from wonderland.distributions import Laplace, Normal
    >>> found = wl.distributions.kl_monte_carlo(Normal(0.0, 1.0), Laplace(0.0, 1.0), key=wl.random.key(0))
    >>> bool(found.standard_error < 0.01)
    True
    """
    return monte_carlo(lambda x: p.log_prob(x) - q.log_prob(x), p, n, key)


def _terms(p: Tensor, log_ratio: Tensor) -> Tensor:
    """p times a logarithm, and 0 where p is 0."""
    return arrays.where(p == 0, 0.0, p * arrays.where(p == 0, 0.0, log_ratio))


def _categorical(p: Categorical, q: Categorical) -> Tensor:
    if p.logits.shape[-1] != q.logits.shape[-1]:
        raise ShapeError(f"kl: {p.logits.shape[-1]} and {q.logits.shape[-1]} outcomes.", "the same outcomes")
    possible = p.logits > -arrays.inf
    return arrays.sum(_terms(p.probs, arrays.where(possible, p.logits, 0.0) - q.logits), axis=-1)


def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    (hit, miss), (other_hit, other_miss) = p._logs(), q._logs()
    return _terms(p.probs, hit - other_hit) + _terms(1 - p.probs, miss - other_miss)


def _binomial(p: Binomial, q: Binomial) -> Tensor:
    same = p.total_count == q.total_count
    return arrays.where(same, p.total_count * _bernoulli(p.trial, q.trial), arrays.nan)


def _normal(p: LocationScale, q: LocationScale) -> Tensor:
    ratio, gap = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return 0.5 * (ratio * ratio + gap * gap - 1) - arrays.log(ratio)


def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    k = p.event_shape[0]
    if q.event_shape != p.event_shape:
        raise ShapeError(f"kl: vectors of {k} and of {q.event_shape[0]} numbers.", "the same size")
    gap = q._whitened(p.loc - q.loc)
    if p.diagonal and q.diagonal:
        ratio = arrays.broadcast_to(
            p.factor / q.factor, (*arrays.broadcast_shapes(p.factor.shape, q.factor.shape)[:-1], k)
        )
        spread = arrays.sum(ratio * ratio, axis=-1)
    else:
        first, second = (linalg.cholesky(d.covariance_matrix) if d.diagonal else d.factor for d in (p, q))
        lead = arrays.broadcast_shapes(first.shape[:-2], second.shape[:-2])
        first, second = (arrays.broadcast_to(x, (*lead, k, k)) for x in (first, second))
        whitened = linalg.solve_triangular(second, first, lower=True)
        spread = arrays.sum(whitened * whitened, axis=(-2, -1))
    return 0.5 * (spread + arrays.sum(gap * gap, axis=-1) - k + q.log_det() - p.log_det())


def _laplace(p: Laplace, q: Laplace) -> Tensor:
    gap = arrays.abs(p.loc - q.loc)
    return arrays.log(q.scale / p.scale) + (p.scale * arrays.exp(-gap / p.scale) + gap) / q.scale - 1


def _uniform(p: Uniform, q: Uniform) -> Tensor:
    inside = (q.low <= p.low) & (p.high <= q.high)
    return arrays.where(inside, arrays.log((q.high - q.low) / (p.high - p.low)), arrays.inf)


def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - arrays.log(ratio)


def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    rates = b * arrays.log(p.rate / q.rate) + a * (q.rate - p.rate) / p.rate
    return (a - b) * digamma(a) - log_gamma(a) + log_gamma(b) + rates


def _beta(p: Beta, q: Beta) -> Tensor:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    return (
        log_beta(c, d) - log_beta(a, b) + (a - c) * digamma(a) + (b - d) * digamma(b) + (c - a + d - b) * digamma(a + b)
    )


def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = arrays.sum(a, axis=-1, keepdims=True)
    return q._log_normalizer() - p._log_normalizer() + arrays.sum((a - b) * (digamma(a) - digamma(total)), axis=-1)


def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * arrays.log(p.rate / q.rate) + q.rate - p.rate


def _independent(p: Independent, q: Independent) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ShapeError(f"kl: events of shape {p.event_shape} and {q.event_shape}.", "the same shape")
    return p._summed(arrays.broadcast_to(kl(p.base, q.base), p.base.batch_shape))


_FORMULAS: dict[tuple[type, type], Callable[..., Tensor]] = {
    (Categorical, Categorical): _categorical,
    (Bernoulli, Bernoulli): _bernoulli,
    (Binomial, Binomial): _binomial,
    (Normal, Normal): _normal,
    (LogNormal, LogNormal): _normal,
    (MultivariateNormal, MultivariateNormal): _multivariate_normal,
    (Laplace, Laplace): _laplace,
    (Uniform, Uniform): _uniform,
    (Exponential, Exponential): _exponential,
    (Gamma, Gamma): _gamma,
    (Beta, Beta): _beta,
    (Dirichlet, Dirichlet): _dirichlet,
    (Poisson, Poisson): _poisson,
    (Independent, Independent): _independent,
}

kl_divergence = kl  # PyTorch's name
