"""Losses: how far predictions are from targets. A file per family. Book, chapters 3 and 4.

Predictions come first and targets second, as in PyTorch. Predictions and targets must have the same shape: nothing is
broadcast. Classes are along the last axis. `reduction` is "mean", "sum", or "none" for one loss per example.
Names say what a loss takes: `cross_entropy` and `..._with_logits` take logits, `cross_entropy_with_probs` and
`binary_cross_entropy` probabilities, `nll_loss` and `kl_div` log-probabilities.
"""

# ruff: noqa: F403 - every file has an exact `__all__`

from ....core.naming import offer as _offer
from .alignment import *
from .binary import *
from .cautions import *
from .classification import *
from .counting import *
from .divergence import *
from .expected_risk import *
from .likelihood import *
from .margins import *
from .metric import *
from .overlap import *
from .regression import *

_offer(globals())
