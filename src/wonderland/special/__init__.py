"""Special functions, under the names of SciPy and `torch.special`, with derivatives of every order.

The gamma function and its relatives, Bessel functions, the error function and the normal distribution; and those of the
main namespace that users look for here.
"""

from ..arrays import (
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    log1p,
    log_sigmoid,
    log_softmax,
    logit,
    logsumexp,
    sigmoid,
    sinc,
    softmax,
    xlogy,
)
from .bessel import i0, i0e, i1, i1e
from .entropy import entr, kl_div, rel_entr, xlog1py
from .gamma import (
    beta,
    betainc,
    betaln,
    digamma,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    lgamma,
    multigammaln,
    polygamma,
    psi,
    zeta,
)
from .normal import erfcinv, log_ndtr, ndtr, ndtri

expit, log_expit = sigmoid, log_sigmoid

__all__ = [
    "beta",
    "betainc",
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "lgamma",
    "log1p",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "rel_entr",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
    "zeta",
]
