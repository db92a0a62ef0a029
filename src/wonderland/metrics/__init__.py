"""Numbers that say how good predictions are; each can be updated batch by batch."""

from ..core.naming import hints_for as _hints_for
from .calibration import BrierScore, CalibrationError
from .classification import F1, Accuracy, ConfusionMatrix, Precision, Recall, accuracy, confusion_matrix, topk_error
from .forecasting import MeanAbsoluteScaledError, SymmetricMAPE
from .groups import metric_by_group
from .intervals import wilson_interval
from .likelihood import BitsPerCharacter, NegativeLogLikelihood, Perplexity, TokenAccuracy
from .metric import Metric
from .ranking import AUC, AveragePrecision, roc_curve
from .regression import R2, MeanAbsoluteError, MeanSquaredError

# fmt: off
__all__ = [
    "Metric", "Accuracy", "ConfusionMatrix", "Precision", "Recall", "F1", "AUC", "AveragePrecision", "CalibrationError",
    "BrierScore", "NegativeLogLikelihood", "Perplexity", "BitsPerCharacter", "TokenAccuracy", "MeanSquaredError",
    "MeanAbsoluteError", "R2", "MeanAbsoluteScaledError", "SymmetricMAPE", "accuracy", "topk_error", "confusion_matrix",
    "roc_curve", "metric_by_group", "wilson_interval",
]

_hints_for(globals())
