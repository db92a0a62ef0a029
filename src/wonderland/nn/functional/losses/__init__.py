"""Losses: how far predictions are from targets. A file per family. Book, chapters 3 and 4.

Predictions come first and targets second, as in PyTorch. Predictions and targets must have the same shape: nothing is
broadcast. Classes are along the last axis. `reduction` is "mean", "sum", or "none" for one loss per example.
Names say what a loss takes: `cross_entropy` and `..._with_logits` take logits, `cross_entropy_with_probs` and
`binary_cross_entropy` probabilities, `nll_loss` and `kl_div` log-probabilities.
"""

# ruff: noqa: F403 - every file has an exact `__all__`

from . import binary, cautions, classification, counting, divergence, likelihood, margin, metric, overlap, regression
from . import expected_risk as _expected_risk
from .binary import *
from .cautions import *
from .classification import *
from .counting import *
from .divergence import *
from .expected_risk import *
from .likelihood import *
from .margin import *
from .metric import *
from .overlap import *
from .regression import *

__all__ = [
    *binary.__all__,
    *cautions.__all__,
    *classification.__all__,
    *counting.__all__,
    *divergence.__all__,
    *_expected_risk.__all__,
    *likelihood.__all__,
    *margin.__all__,
    *metric.__all__,
    *overlap.__all__,
    *regression.__all__,
]
