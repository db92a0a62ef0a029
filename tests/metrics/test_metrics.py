"""Metrics against scikit-learn, whole and cut into uneven batches."""

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland import metrics

RNG = np.random.default_rng(7)
N, C = 203, 4
SCORES = RNG.normal(size=(N, C))
PROBS = np.exp(SCORES) / np.exp(SCORES).sum(1, keepdims=True)
CLASSES = RNG.integers(0, C, N)
FOUND = SCORES.argmax(1)
BINARY = RNG.integers(0, 2, N)
CONFIDENCE = np.round(RNG.random(N), 2)  # rounded, so that there are ties
REAL, TARGETS = RNG.normal(size=N) + 100.0, RNG.normal(size=N) + 100.0


def by_hand_ece(probs, classes, bins=10):
    total, confidence, right = 0.0, probs.max(1), probs.argmax(1) == classes
    for i in range(bins):
        inside = (confidence >= i / bins) & ((confidence < (i + 1) / bins) | (i == bins - 1))
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    return total


sk = sklearn.metrics
CASES = {
    "accuracy": (metrics.Accuracy(), SCORES, CLASSES, sk.accuracy_score(CLASSES, FOUND)),
    "top 2": (metrics.Accuracy(top_k=2), SCORES, CLASSES, sk.top_k_accuracy_score(CLASSES, SCORES, k=2)),
    "binary accuracy": (metrics.Accuracy(), CONFIDENCE, BINARY, sk.accuracy_score(BINARY, CONFIDENCE > 0.5)),
    "confusion": (metrics.ConfusionMatrix(C), SCORES, CLASSES, sk.confusion_matrix(CLASSES, FOUND)),
    "normalized": (
        metrics.ConfusionMatrix(C, normalize="true"),
        SCORES,
        CLASSES,
        sk.confusion_matrix(CLASSES, FOUND, normalize="true"),
    ),
    "auc": (metrics.AUC(), CONFIDENCE, BINARY, sk.roc_auc_score(BINARY, CONFIDENCE)),
    "average precision": (
        metrics.AveragePrecision(),
        CONFIDENCE,
        BINARY,
        sk.average_precision_score(BINARY, CONFIDENCE),
    ),
    "ece": (metrics.CalibrationError(), PROBS, CLASSES, by_hand_ece(PROBS, CLASSES)),
    "brier": (metrics.BrierScore(), PROBS, CLASSES, np.mean(np.sum((PROBS - np.eye(C)[CLASSES]) ** 2, axis=1))),
    "mse": (metrics.MeanSquaredError(), REAL, TARGETS, sk.mean_squared_error(TARGETS, REAL)),
    "rmse": (metrics.MeanSquaredError(squared=False), REAL, TARGETS, sk.root_mean_squared_error(TARGETS, REAL)),
    "mae": (metrics.MeanAbsoluteError(), REAL, TARGETS, sk.mean_absolute_error(TARGETS, REAL)),
    "r2": (metrics.R2(), REAL, TARGETS, sk.r2_score(TARGETS, REAL)),
}
for kind, function in ((metrics.Precision, "precision"), (metrics.Recall, "recall"), (metrics.F1, "f1")):
    score = getattr(sk, f"{function}_score")
    for average in ("macro", "micro", "weighted", "none"):
        expected = score(CLASSES, FOUND, average=None if average == "none" else average)
        CASES[f"{function} {average}"] = (kind(C, average), SCORES, CLASSES, expected)
    CASES[f"{function} binary"] = (kind(), CONFIDENCE, BINARY, score(BINARY, CONFIDENCE > 0.5))


@pytest.mark.book("9-02", name=("wl.metrics.Accuracy", "wl.metrics.topk_error"))
@pytest.mark.book("9-22", name=("wl.metrics.Precision", "wl.metrics.Recall", "wl.metrics.F1"))
@pytest.mark.book("4.77", "4.78", name=("wl.metrics.accuracy", "wl.metrics.confusion_matrix"))
@pytest.mark.parametrize("name", CASES)
def test_the_values_of_scikit_learn(name):
    metric, predictions, targets, expected = CASES[name]
    np.testing.assert_allclose(metric(predictions, targets), expected, rtol=1e-12)


@pytest.mark.book("5.35", name="wl.metrics.Metric")
@pytest.mark.parametrize("name", CASES)
@given(cuts=st.lists(st.integers(1, N - 1), max_size=4, unique=True))
def test_batches_may_be_cut_anywhere(name, cuts):
    metric, predictions, targets, expected = CASES[name]
    metric.reset()
    for rows in np.split(np.arange(N), sorted(cuts)):
        metric.update(predictions[rows], targets[rows])
    np.testing.assert_allclose(metric.compute(), expected, rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_the_state_goes_on_elsewhere(name):
    metric, predictions, targets, expected = CASES[name]
    metric.reset()
    metric.update(predictions[:50], targets[:50])
    state = metric.state_dict()
    metric.reset()
    metric.load_state_dict(state)
    metric.update(predictions[50:], targets[50:])
    np.testing.assert_allclose(metric.compute(), expected, rtol=1e-9)


@pytest.mark.book("9-02", name="wl.metrics.accuracy")
def test_top_k_grows_with_k_and_ends_at_one():
    found = [metrics.accuracy(SCORES, CLASSES, top_k=k) for k in range(1, C + 1)]
    assert found == sorted(found)
    assert found[-1] == 1.0
    assert found[0] == metrics.accuracy(FOUND, CLASSES)
    assert metrics.topk_error(SCORES, CLASSES, k=2) == 1.0 - found[1]


@pytest.mark.book("9-22", name="wl.metrics.F1")
def test_the_books_f1_and_a_prediction_without_positives():
    assert metrics.F1()(np.array([1, 1, 0]), np.array([1, 0, 1])) == 0.5
    assert metrics.F1()(np.zeros(4, int), np.array([0, 1, 0, 1])) == 0.0
    assert metrics.F1(zero_division=1.0)(np.zeros(4, int), np.zeros(4, int)) == 1.0


@pytest.mark.book("4.77", name="wl.metrics.accuracy")
def test_a_constant_prediction_is_right_as_often_as_its_class_comes():
    assert metrics.accuracy(np.full(N, 2), CLASSES) == np.mean(CLASSES == 2)
    assert metrics.accuracy(CLASSES, CLASSES) == 1.0


@pytest.mark.book("4.78", name="wl.metrics.confusion_matrix")
def test_costs_follow_from_the_confusion_matrix():
    cost = np.array([[0.0, 1.0], [10.0, 0.0]])  # rows true: a false negative costs ten times a false positive
    found = (CONFIDENCE > 0.5).astype(int)
    table = metrics.confusion_matrix(found, BINARY, classes=2)
    assert table.sum() == N
    np.testing.assert_allclose((cost * table).sum() / N, np.mean(cost[BINARY, found]))


@pytest.mark.book("C-02", "B4-27", name="wl.metrics.Accuracy")
def test_a_probability_of_one_half_is_class_zero():
    assert metrics.accuracy(np.array([0.5]), np.array([0])) == 1.0
    assert metrics.Accuracy(threshold=0.0)(np.array([0.1, -0.1]), np.array([1, 0])) == 1.0


@pytest.mark.book("4.40", name="wl.metrics.BrierScore")
def test_the_books_brier_score():
    assert metrics.BrierScore()(np.array([[0.2, 0.05, 0.75]]), np.array([2])) == pytest.approx(0.105)


@pytest.mark.book("4.64", "B4-35", name="wl.metrics.CalibrationError")
def test_the_books_two_scenarios_of_calibration():
    timid = np.tile([[0.8, 0.2]], (10, 1))
    assert metrics.CalibrationError()(timid, np.zeros(10, int)) == pytest.approx(0.2)
    useless, classes = np.full((8, 4), 0.25), np.arange(8) % 4
    assert metrics.CalibrationError()(useless, classes) == pytest.approx(0.0)
    assert metrics.accuracy(useless, classes) == 0.25
    sure = np.eye(2)[[0, 1, 1]]
    assert metrics.CalibrationError()(sure, np.array([0, 1, 1])) == 0.0
    bold = np.tile([[0.9, 0.1]], (10, 1))
    assert metrics.CalibrationError()(bold, np.array([0] * 6 + [1] * 4)) == pytest.approx(0.3)
    assert metrics.CalibrationError(maximum=True)(PROBS, CLASSES) >= metrics.CalibrationError()(PROBS, CLASSES)


@pytest.mark.book("3.13", name="wl.metrics.metric_by_group")
def test_groups_average_to_the_whole():
    groups = RNG.integers(0, 3, N)
    found = metrics.metric_by_group(metrics.Accuracy(), SCORES, CLASSES, groups)
    sizes = {group: np.mean(groups == group) for group in found}
    assert sum(found[g] * sizes[g] for g in found) == pytest.approx(metrics.accuracy(SCORES, CLASSES))


def test_targets_may_be_one_hot_or_columns():
    assert metrics.accuracy(SCORES, np.eye(C)[CLASSES]) == metrics.accuracy(SCORES, CLASSES)
    assert metrics.MeanSquaredError()(REAL[:, None], TARGETS) == metrics.MeanSquaredError()(REAL, TARGETS)
    assert metrics.AUC()(PROBS[:, :2], BINARY) == pytest.approx(sk.roc_auc_score(BINARY, PROBS[:, 1]))


def test_tensors_of_any_dtype_are_taken():
    scores = wl.asarray(SCORES).astype(wl.bfloat16)
    assert metrics.accuracy(scores, wl.asarray(CLASSES)) == np.mean(np.asarray(scores).argmax(1) == CLASSES)


@pytest.mark.parametrize(
    "metric, predictions, targets, message",
    [
        (metrics.Accuracy(), np.zeros((3, 2)), np.zeros(4, int), "3 predictions and 4 targets"),
        (metrics.Accuracy(), np.zeros((3, 2)), np.array([0, 1, 2]), "the target 2"),
        (metrics.Accuracy(), np.zeros((3, 2)), np.array([0, 1, -1]), "the class -1"),
        (metrics.Accuracy(), np.zeros((3, 2)), np.array([0, 0.5, 1]), "0.5 are no classes"),
        (metrics.Accuracy(), np.array([[np.nan, 0.0]]), np.array([0]), "NaN"),
        (metrics.Accuracy(), np.zeros((3, 2, 5)), np.zeros(3, int), "do not belong"),
        (metrics.ConfusionMatrix(2), np.array([2]), np.array([0]), "the class 2 of 2"),
        (metrics.AUC(), np.array([0.1, 0.2]), np.array([1, 1]), "examples of both classes"),
        (metrics.CalibrationError(), SCORES, CLASSES, "no probabilities"),
        (metrics.MeanSquaredError(), np.zeros(3), np.zeros((3, 2)), "the same shape"),
    ],
)
def test_what_does_not_fit_is_explained(metric, predictions, targets, message):
    with pytest.raises(wl.errors.WonderlandError, match=message):
        metric(predictions, targets)


def test_nothing_seen_and_settings_that_make_no_sense():
    with pytest.raises(wl.errors.InputError, match="no examples"):
        metrics.Accuracy().compute()
    with pytest.raises(wl.errors.InputError, match="top_k=0"):
        metrics.Accuracy(top_k=0)
    with pytest.raises(wl.errors.InputError, match="average='binary' for 3"):
        metrics.F1(3, "binary")
