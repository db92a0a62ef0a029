"""When runs stop, by both rules of the book and by others."""

import math

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, train
from wonderland.metrics.metric import Metric
from wonderland.train import EarlyStopping, StopOnConvergence
from wonderland.train.history import mode_of


def epochs_until_stop(rule, scores):
    """The number of the score, from 0, at which the rule stops; None if it never does."""
    return next((t for t, score in enumerate(scores) if rule.observe(score)), None)


@pytest.mark.book("9-19", name="wl.train.EarlyStopping")
def test_the_books_rule_on_the_books_scores():
    rule = EarlyStopping("accuracy", patience=3, rule="book")
    assert epochs_until_stop(rule, [0.9, 0.95, 0.94, 0.85]) == 3
    rule = EarlyStopping("accuracy", patience=2, rule="book")
    assert epochs_until_stop(rule, [0.5, 0.5, 0.5]) == 2  # ties are no improvement
    for kind in ("book", "best"):
        assert epochs_until_stop(EarlyStopping("accuracy", patience=9, rule=kind), [0.5, math.nan]) == 1


@pytest.mark.book("9-20", name="wl.train.EarlyStopping")
def test_where_the_two_rules_differ():
    creeping = [0.9, *np.linspace(0.5, 0.8, 40)]
    assert epochs_until_stop(EarlyStopping("accuracy", patience=3, rule="book"), creeping) is None
    best = EarlyStopping("accuracy", patience=3)
    assert epochs_until_stop(best, creeping) == 3
    assert best.best_epoch == 0
    book = EarlyStopping("accuracy", patience=3, rule="book")
    assert epochs_until_stop(book, [0.9, 0.95, 0.94, 0.85]) == 3
    assert book.best_epoch == 1  # going back k epochs would give epoch 0


@pytest.mark.book("9-23", name="wl.train.EarlyStopping")
def test_patience_and_a_least_number_of_epochs_wait_for_a_second_descent():
    losses = [1.0, 0.5, 0.8, 0.9, 0.85, 0.7, 0.3, 0.2, 0.2, 0.2, 0.2]
    assert epochs_until_stop(EarlyStopping("loss", patience=2), losses) == 3
    patient = EarlyStopping("loss", patience=6)
    assert epochs_until_stop(patient, losses) is None
    assert patient.best_epoch == 7
    late = EarlyStopping("loss", patience=2, min_epochs=7)
    assert epochs_until_stop(late, losses) == 9
    assert late.best_epoch == 7


def test_small_improvements_do_not_count():
    rule = EarlyStopping("loss", patience=2, min_delta=0.1)
    assert epochs_until_stop(rule, [1.0, 0.95, 0.92]) == 2
    assert EarlyStopping("score", mode="min", patience=1).observe(1.0) is False


@pytest.mark.book("9-17", name="wl.train.StopOnConvergence")
def test_convergence_stops_near_the_optimum():
    x = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]
    model = nn.Linear(1, 1)
    history = train.fit(
        model,
        "mse_loss",
        (x, 3 * x),
        epochs=500,
        batch_size=32,
        optimizer=wl.optim.SGD,
        lr=0.3,
        callbacks=[StopOnConvergence(1e-12)],
        progress=False,
    )
    assert len(history) < 200
    assert history.stopped == "loss has converged"
    assert float(model.weight[0, 0]) == pytest.approx(3.0, abs=1e-2)


@pytest.mark.book("9-21", "A8-01", "3.20", name=("wl.train.EarlyStopping", "wl.train.History.best"))
def test_the_best_weights_come_back():
    """Validation data that contradict the training data get worse as training goes on."""
    x = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]
    wl.random.seed(0)
    model = nn.Linear.from_matrix([[-1.0]])
    seen = {}

    class Remember(train.Callback):
        def on_epoch_end(self, trainer, record):
            seen[trainer.epoch] = float(trainer.model.weight[0, 0])

    history = train.fit(
        model,
        "mse_loss",
        (x, 3 * x),
        epochs=50,
        batch_size=8,
        lr=0.1,
        validation=(x, 0 * x),
        callbacks=[Remember(), EarlyStopping(patience=4)],
        progress=False,
    )
    best = history.best("validation_loss")
    assert len(history) == best["epoch"] + 4
    assert float(model.weight[0, 0]) == seen[best["epoch"]]
    assert train.evaluate(model, "mse_loss", (x, 0 * x))["loss"] == pytest.approx(best["validation_loss"], rel=1e-6)
    assert "validation_loss was best at epoch" in history.stopped


def test_the_best_weights_are_those_that_were_measured():
    x = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]
    model = nn.Linear.from_matrix([[-1.0]])
    average = wl.optim.EMA(model, decay=0.8)
    history = train.fit(
        model,
        "mse_loss",
        (x, 3 * x),
        epochs=40,
        batch_size=8,
        lr=0.1,
        average=average,
        validation=(x, 0 * x),
        callbacks=[EarlyStopping(patience=4)],
        progress=False,
    )
    best = history.best("validation_loss")["validation_loss"]
    assert train.evaluate(model, "mse_loss", (x, 0 * x))["loss"] == pytest.approx(best, rel=1e-5)


def test_without_restoring_the_last_weights_stay():
    x = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]
    model = nn.Linear.from_matrix([[-1.0]])
    rule = EarlyStopping(patience=4, restore_best=False)
    train.fit(model, "mse_loss", (x, 3 * x), epochs=50, lr=0.1, validation=(x, 0 * x), callbacks=[rule], progress=False)
    last = train.evaluate(model, "mse_loss", (x, 0 * x))["loss"]
    assert last == pytest.approx(rule.scores[-1], rel=1e-6)


def test_a_time_limit_ends_a_run():
    x = np.ones((8, 1), np.float32)
    history = train.fit(
        nn.Linear(1, 1), "mse_loss", (x, x), epochs=10**6, callbacks=[train.TimeLimit(0.2)], progress=False
    )
    assert history.stopped == "0.2 seconds are over"


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: EarlyStopping(rule="worst"), "rule='worst'"),
        (lambda: EarlyStopping(patience=0), "patience=0"),
        (lambda: EarlyStopping("loss", mode="up").observe(1.0), "mode='up'"),
        (lambda: StopOnConvergence(-1.0), "tolerance=-1"),
        (lambda: train.TimeLimit(0), "seconds=0"),
    ],
)
def test_settings_that_make_no_sense(make, message):
    with pytest.raises(wl.errors.InputError, match=message):
        make()


def test_a_name_that_is_not_measured():
    x = np.ones((8, 1), np.float32)
    with pytest.raises(wl.errors.InputError, match=r"no 'accuracy' to watch"):
        train.fit(nn.Linear(1, 1), "mse_loss", (x, x), epochs=2, callbacks=[EarlyStopping("accuracy")], progress=False)


def test_every_metric_is_known_to_be_better_larger_or_smaller():
    """Early stopping, the best checkpoint and the report go by the name."""
    smaller = [
        wl.metrics.CalibrationError(), wl.metrics.BrierScore(), wl.metrics.NegativeLogLikelihood(),
        wl.metrics.Perplexity(), wl.metrics.BitsPerCharacter(1.0), wl.metrics.MeanSquaredError(),
        wl.metrics.MeanAbsoluteError(), wl.metrics.SymmetricMAPE(), wl.metrics.MeanAbsoluteScaledError(np.arange(9.0)),
    ]  # fmt: skip
    larger = [
        wl.metrics.Accuracy(), wl.metrics.Precision(), wl.metrics.Recall(), wl.metrics.F1(), wl.metrics.AUC(),
        wl.metrics.AveragePrecision(), wl.metrics.TokenAccuracy(), wl.metrics.R2(),
    ]  # fmt: skip
    for metrics, mode in ((smaller, "min"), (larger, "max")):
        assert {str(metric.name): mode_of(f"validation_{metric.name}") for metric in metrics} == {
            str(metric.name): mode for metric in metrics
        }
    both = {type(metric).__name__ for metric in smaller + larger}
    every = {
        name
        for name in wl.metrics.__all__
        if isinstance(found := getattr(wl.metrics, name), type) and issubclass(found, Metric)
    }
    assert every - both == {"Metric", "ConfusionMatrix"}  # neither is one number
