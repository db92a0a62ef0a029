"""Losses: how far predictions are from targets. A file per family. Book, chapters 3 and 4.

Predictions come first and targets second, as in PyTorch. Predictions and targets must have the same shape: nothing is
broadcast. Classes are along the last axis. `reduction` is "mean", "sum", or "none" for one loss per example.
Names say what a loss takes: `cross_entropy` and `..._with_logits` take logits, `cross_entropy_with_probs` and
`binary_cross_entropy` probabilities, `nll_loss` and `kl_div` log-probabilities.
"""

from .binary import binary_cross_entropy, binary_cross_entropy_with_logits, sigmoid_focal_loss
from .cautions import ClassTargetWarning, DoubleSoftmaxWarning, FlatLossWarning, looks_like_probabilities
from .classification import cross_entropy, cross_entropy_with_probs, focal_loss, nll_loss
from .counting import zero_one_loss
from .divergence import kl_div
from .expected_risk import expected_risk_mc, generalization_gap, risk
from .likelihood import gaussian_nll_loss, heteroscedastic_nll_loss, laplace_nll_loss, nll, poisson_nll_loss
from .margins import (
    hinge_embedding_loss,
    hinge_loss,
    margin,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    squared_hinge_loss,
)
from .metric import (
    contrastive_loss,
    cosine_embedding_loss,
    info_nce_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from .overlap import dice_loss
from .regression import huber_loss, l1_loss, log_cosh_loss, mse_loss, quantile_loss, smooth_l1_loss

__all__ = [
    "ClassTargetWarning",
    "DoubleSoftmaxWarning",
    "FlatLossWarning",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "contrastive_loss",
    "cosine_embedding_loss",
    "cross_entropy",
    "cross_entropy_with_probs",
    "dice_loss",
    "expected_risk_mc",
    "focal_loss",
    "gaussian_nll_loss",
    "generalization_gap",
    "heteroscedastic_nll_loss",
    "hinge_embedding_loss",
    "hinge_loss",
    "huber_loss",
    "info_nce_loss",
    "kl_div",
    "l1_loss",
    "laplace_nll_loss",
    "log_cosh_loss",
    "looks_like_probabilities",
    "margin",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll",
    "nll_loss",
    "poisson_nll_loss",
    "quantile_loss",
    "risk",
    "sigmoid_focal_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "squared_hinge_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "zero_one_loss",
]
