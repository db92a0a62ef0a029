"""Losses and metrics by name, as in `fit(..., loss="cross_entropy", metrics=["accuracy"])`: one table for each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..core.naming import look_up
from ..core.tensor import Tensor
from ..metrics import (
    AUC,
    F1,
    R2,
    Accuracy,
    AveragePrecision,
    BitsPerCharacter,
    BrierScore,
    CalibrationError,
    MeanAbsoluteError,
    MeanSquaredError,
    Metric,
    NegativeLogLikelihood,
    Perplexity,
    Precision,
    Recall,
    SymmetricMAPE,
    TokenAccuracy,
)
from ..nn import functional as f
from ..nn.module.module import Module

# Functions of predictions and targets. The short names are those of the long ones that follow them.
LOSSES: dict[str, Callable[..., Tensor]] = {
    "cross_entropy": f.cross_entropy,
    "cross_entropy_with_probs": f.cross_entropy_with_probs,
    "nll": f.nll_loss,
    "nll_loss": f.nll_loss,
    "focal": f.focal_loss,
    "focal_loss": f.focal_loss,
    "binary_cross_entropy": f.binary_cross_entropy,
    "bce": f.binary_cross_entropy,
    "binary_cross_entropy_with_logits": f.binary_cross_entropy_with_logits,
    "bce_with_logits": f.binary_cross_entropy_with_logits,
    "sigmoid_focal_loss": f.sigmoid_focal_loss,
    "kl_div": f.kl_div,
    "mse": f.mse_loss,
    "mse_loss": f.mse_loss,
    "mean_squared_error": f.mse_loss,
    "mae": f.l1_loss,
    "l1": f.l1_loss,
    "l1_loss": f.l1_loss,
    "mean_absolute_error": f.l1_loss,
    "huber": f.huber_loss,
    "huber_loss": f.huber_loss,
    "smooth_l1": f.smooth_l1_loss,
    "smooth_l1_loss": f.smooth_l1_loss,
    "log_cosh": f.log_cosh_loss,
    "log_cosh_loss": f.log_cosh_loss,
    "quantile": f.quantile_loss,
    "quantile_loss": f.quantile_loss,
    "poisson": f.poisson_nll_loss,
    "poisson_nll_loss": f.poisson_nll_loss,
    "heteroscedastic_nll_loss": f.heteroscedastic_nll_loss,
    "hinge": f.hinge_loss,
    "hinge_loss": f.hinge_loss,
    "squared_hinge": f.squared_hinge_loss,
    "squared_hinge_loss": f.squared_hinge_loss,
    "hinge_embedding_loss": f.hinge_embedding_loss,
    "soft_margin_loss": f.soft_margin_loss,
    "multi_margin_loss": f.multi_margin_loss,
    "multilabel_margin_loss": f.multilabel_margin_loss,
    "multilabel_soft_margin_loss": f.multilabel_soft_margin_loss,
    "dice": f.dice_loss,
    "dice_loss": f.dice_loss,
    "zero_one_loss": f.zero_one_loss,
}
# Names from elsewhere that are not one of ours: Keras' take probabilities unless they are told otherwise.
_OF_CLASSES = "'cross_entropy' if the model gives logits, 'cross_entropy_with_probs' if it ends in a softmax"
_OF_YES_OR_NO = "'binary_cross_entropy_with_logits', or 'binary_cross_entropy' if the model ends in a sigmoid"
_LOSSES_ELSEWHERE = {
    "categorical_crossentropy": _OF_CLASSES,
    "sparse_categorical_crossentropy": _OF_CLASSES,
    "crossentropy": _OF_CLASSES,
    "binary_crossentropy": _OF_YES_OR_NO,
    "kl_divergence": "'kl_div', which takes log-probabilities",
    "ctc_loss": "objective=lambda model, loss, batch: ..., as it needs the lengths of inputs and targets",
    "triplet_margin_loss": "objective=lambda model, loss, batch: ..., as it compares three inputs",
    "cosine_embedding_loss": "objective=lambda model, loss, batch: ..., as it compares two inputs",
    "gaussian_nll_loss": "'heteroscedastic_nll_loss' for a model that gives mean and variance",
}

METRICS: dict[str, Callable[..., Metric]] = {
    "accuracy": Accuracy,
    "acc": Accuracy,
    "top_5_accuracy": partial(Accuracy, top_k=5),
    "precision": Precision,
    "recall": Recall,
    "f1": F1,
    "auc": AUC,
    "average_precision": AveragePrecision,
    "calibration_error": CalibrationError,
    "brier_score": BrierScore,
    "negative_log_likelihood": NegativeLogLikelihood,
    "perplexity": Perplexity,
    "bits_per_character": BitsPerCharacter,
    "token_accuracy": TokenAccuracy,
    "mean_squared_error": MeanSquaredError,
    "mse": MeanSquaredError,
    "rmse": partial(MeanSquaredError, squared=False),
    "mean_absolute_error": MeanAbsoluteError,
    "mae": MeanAbsoluteError,
    "r2": R2,
    "smape": SymmetricMAPE,
}
_WITH_THRESHOLD = (Accuracy, Precision, Recall, F1)
_OF_LOGITS = (f.binary_cross_entropy_with_logits, f.sigmoid_focal_loss)
_METRICS_ELSEWHERE = {
    "binary_accuracy": "'accuracy', which takes both forms of scores",
    "categorical_accuracy": "'accuracy'",
    "sparse_categorical_accuracy": "'accuracy'",
    "accuracy_score": "'accuracy'",
    "f1_score": "'f1', or wl.metrics.F1(classes=n) for more than two classes",
    "roc_auc": "'auc'",
    "roc_auc_score": "'auc'",
    "r2_score": "'r2'",
    "error_rate": "'accuracy', which is one minus it",
    "confusion_matrix": "wl.metrics.ConfusionMatrix(classes=n)",
    "loss": "nothing: the loss is always measured",
}


def loss_named(name: str) -> Callable[..., Tensor]:
    """The loss of a name.

    >>> import wonderland as wl
    >>> loss_named("mse") is wl.nn.functional.mse_loss
    True
    """
    return look_up("loss", name, LOSSES, _LOSSES_ELSEWHERE)


def metric_named(name: str, loss: Module | None = None) -> Metric:
    """A metric of a name, which has seen nothing yet. With a loss of yes or no from logits, 0 parts the classes.

    >>> metric_named("accuracy")
    Accuracy(no examples yet)
    """
    make = look_up("metric", name, METRICS, _METRICS_ELSEWHERE)
    logits = getattr(loss, "function", getattr(loss, "_function", None)) in _OF_LOGITS
    return make(threshold=0.0) if logits and make in _WITH_THRESHOLD else make()
