"""Probability distributions: `sample`, `log_prob`, moments, entropy and divergences; Bayes' rule. Book, appendix A."""

from .bayesian_regression import BayesianLinearRegression
from .compound import Independent, Mixture, MixtureSameFamily
from .consolidation import ElasticPenalty, forgetting
from .continuous import Cauchy, Delta, Laplace, StudentT, Uniform
from .counts import Binomial, NegativeBinomial, Poisson
from .discrete import Bernoulli, Categorical
from .distribution import Distribution
from .divergence import kl, kl_divergence, kl_monte_carlo
from .expectation import Estimate, expectation, integrate, monte_carlo
from .gamma_family import Beta, Dirichlet, Exponential, Gamma
from .gamma_functions import beta_probability, digamma, gamma_probability, log_beta, log_gamma
from .maximum_likelihood import fit_mle
from .multivariate_normal import MultivariateNormal
from .normal import LogNormal, Normal
from .posterior import (
    GridPosterior,
    gaussian_log_prior,
    laplace_log_prior,
    map_objective,
    norm_log_prior,
    predict_bma,
)
from .samplers import Chain, langevin, metropolis
from .tables import JointTable, bayes

# fmt: off
__all__ = [
    "BayesianLinearRegression", "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chain", "Delta", "Dirichlet",
    "Distribution", "ElasticPenalty", "Estimate", "Exponential", "Gamma", "GridPosterior", "Independent", "JointTable",
    "Laplace", "LogNormal", "Mixture", "MixtureSameFamily", "MultivariateNormal", "NegativeBinomial", "Normal",
    "Poisson", "StudentT", "Uniform", "bayes", "beta_probability", "digamma", "expectation", "fit_mle", "forgetting",
    "gamma_probability", "gaussian_log_prior", "integrate", "kl", "kl_divergence", "kl_monte_carlo", "langevin",
    "laplace_log_prior", "log_beta", "log_gamma", "map_objective", "metropolis", "monte_carlo", "norm_log_prior",
    "predict_bma",
]
