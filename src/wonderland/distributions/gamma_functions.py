"""The gamma function and its relatives under the names of probability; they live in `wl.special`."""

from ..special import betainc as beta_probability
from ..special import betaln as log_beta
from ..special import digamma
from ..special import gammainc as gamma_probability
from ..special import gammaln as log_gamma

__all__ = ["beta_probability", "digamma", "gamma_probability", "log_beta", "log_gamma"]
