"""Losses as modules; each calls the function of `wl.nn.functional` that says what it computes."""

from .classification import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    CrossEntropyWithProbsLoss,
    DiceLoss,
    FocalLoss,
    NLLLoss,
    SigmoidFocalLoss,
)
from .likelihood import (
    GaussianNLLLoss,
    HeteroscedasticNLLLoss,
    KLDivLoss,
    LaplaceNLLLoss,
    PoissonNLLLoss,
)
from .loss import (
    Loss,
)
from .margins import (
    HingeEmbeddingLoss,
    HingeLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    SoftMarginLoss,
    SquaredHingeLoss,
)
from .metric import (
    ContrastiveLoss,
    CosineEmbeddingLoss,
    InfoNCELoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from .regression import (
    HuberLoss,
    L1Loss,
    LogCoshLoss,
    MSELoss,
    QuantileLoss,
    SmoothL1Loss,
)

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "ContrastiveLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "CrossEntropyWithProbsLoss",
    "DiceLoss",
    "FocalLoss",
    "GaussianNLLLoss",
    "HeteroscedasticNLLLoss",
    "HingeEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "InfoNCELoss",
    "KLDivLoss",
    "L1Loss",
    "LaplaceNLLLoss",
    "LogCoshLoss",
    "Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "QuantileLoss",
    "SigmoidFocalLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "SquaredHingeLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]
