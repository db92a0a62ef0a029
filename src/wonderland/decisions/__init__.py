"""From probabilities to decisions: calibration, costs of mistakes, prediction sets. Book, sections 4.2 and 4.3."""

from .calibration import (
    CalibrationWarning,
    IsotonicScaler,
    PlattScaler,
    Reliability,
    TemperatureScaler,
    brier_score,
    ece,
    mce,
    reliability_curve,
    reliability_diagram,
)
from .codes import Ambiguity, Codebook, ambiguous, bounded
from .conformal import ConformalClassifier, ConformalRegressor, coverage, prediction_set
from .costs import cost_threshold, decide, expected_cost
from .thresholds import predict_binary, predict_class, predict_labels

# fmt: off
__all__ = [
    # calibration
    "Reliability", "reliability_curve", "reliability_diagram", "ece", "mce", "brier_score", "TemperatureScaler",
    "PlattScaler", "IsotonicScaler", "CalibrationWarning",
    # costs
    "expected_cost", "decide", "cost_threshold",
    # sets and intervals
    "prediction_set", "ConformalClassifier", "ConformalRegressor", "coverage",
    # classes from outputs
    "predict_binary", "predict_class", "predict_labels", "Codebook", "Ambiguity", "ambiguous", "bounded",
]
