"""The loop: what it computes, what it measures, and what it says when something is wrong."""

import math
import warnings

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, train

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 3)).astype(np.float32)
Y = (X @ np.array([1.0, -2.0, 0.5], np.float32) + 0.3)[:, None]
CLASSES = (X[:, 0] > 0).astype(np.int64)


def linear() -> nn.Linear:
    wl.random.seed(1)
    return nn.Linear(3, 1)


def classifier() -> nn.Sequential:
    wl.random.seed(1)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))


def quiet(*args, **settings) -> train.History:
    return train.fit(*args, progress=False, **settings)


def weights(model) -> np.ndarray:
    return np.concatenate([np.asarray(p).reshape(-1) for p in model.parameters()])


@pytest.mark.book("3.15", "A3-01", name=("wl.train.fit", "wl.train.evaluate"))
@pytest.mark.parametrize(
    ("batch", "tolerance"),
    [
        (25, 0.0),
        (32, 1e-6),  # in `fit` the last batch has a program of its own, in the loop the one for all sizes
    ],
)
def test_the_loop_is_the_loop_that_one_would_write(batch, tolerance):
    a, b = linear(), linear()
    quiet(a, nn.MSELoss(), (X, Y), epochs=3, batch_size=batch, optimizer=wl.optim.SGD, lr=0.1, seed=5)
    optimizer = wl.optim.SGD(b, lr=0.1)
    step = wl.jit(lambda model, optimizer, x, y: _step(model, optimizer, x, y))
    loader = wl.data.DataLoader(wl.data.TensorDataset(X, Y), batch_size=batch, shuffle=True, seed=5)
    for _ in range(3):
        for x, y in loader:
            step(b, optimizer, x, y)
    np.testing.assert_allclose(weights(a), weights(b), rtol=tolerance)


def _step(model, optimizer, x, y):
    loss, grads = wl.value_and_grad(lambda model: nn.functional.mse_loss(model(x), y))(model)
    optimizer.step(grads)
    return loss


@pytest.mark.book("5.23", name=("wl.train.fit", "wl.models.MLP"))
@pytest.mark.parametrize("compiled", [True, False])
def test_a_regression_moves_all_parameters_together(compiled):
    """A sine by an MLP: the mean squared error by all weights and biases at once."""
    x = np.linspace(-3, 3, 64, dtype=np.float32)[:, None]
    model = wl.models.MLP([1, 16, 16, 1], activation="tanh", key=wl.random.key(0))
    grads = wl.grad(lambda m: nn.functional.mse_loss(m(wl.asarray(x)), wl.sin(wl.asarray(x))))(model)
    assert set(grads) == {path for path, _ in model.named_parameters()}
    assert all(np.abs(np.asarray(g)).max() > 0 for g in grads.values())
    before = {path: np.array(p) for path, p in model.named_parameters()}
    epochs = 60 if compiled else 2
    history = quiet(model, nn.MSELoss(), (x, np.sin(x)), epochs=epochs, batch_size=16, lr=0.02, jit=compiled)
    assert all((np.asarray(p) != before[path]).any() for path, p in model.named_parameters())
    assert history["loss"][-1] < (0.02 if compiled else 1) * history["loss"][0]


def test_compiled_and_eager_runs_agree():
    a, b = classifier(), classifier()
    for model, compiled in ((a, True), (b, False)):
        quiet(model, "cross_entropy", (X, CLASSES), epochs=2, lr=0.01, jit=compiled)
    np.testing.assert_allclose(weights(a), weights(b), rtol=1e-5, atol=1e-6)


@pytest.mark.book("5.35", name="wl.train.fit")
def test_the_loss_of_an_epoch_counts_examples_not_batches():
    model = linear()
    history = quiet(model, nn.MSELoss(), (X, Y), epochs=1, batch_size=32, optimizer=wl.optim.SGD, lr=0.0)
    expected = np.mean((np.asarray(model(wl.asarray(X))) - Y) ** 2)
    assert history["loss"] == [pytest.approx(expected, rel=1e-5)]
    assert history.records[0]["step"] == 4  # 32 + 32 + 32 + 4
    assert train.evaluate(model, "mse_loss", (X, Y), batch_size=7)["loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.book("9-18", "3.23", "B3-12", name=("wl.train.fit", "wl.train.History.gaps"))
def test_validation_is_apart_and_in_evaluation_mode():
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.BatchNorm1d(8), nn.Linear(8, 1))
    history = quiet(model, "mse_loss", (X, Y), epochs=2, validation=0.25, batch_size=25)
    assert history.records[-1]["step"] == 6  # 75 examples for training
    assert history.gaps() == [v - t for v, t in zip(history["validation_loss"], history["loss"], strict=True)]
    before = {name: np.asarray(value) for name, value in model.state_dict().items()}
    found = [train.evaluate(model, "mse_loss", (X, Y))["loss"] for _ in range(2)]
    assert found[0] == found[1]  # no dropout
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(np.asarray(value), before[name])  # and no new statistics
    assert all(module.training for module in model.modules())


@pytest.mark.book("1.03", "A1-06", name="wl.train.fit")
def test_a_memorizer_has_a_gap():
    noise = RNG.integers(0, 2, 100)
    model = nn.Sequential(nn.Linear(3, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2))
    history = quiet(
        model,
        nn.CrossEntropyLoss(),
        (X[:40], noise[:40]),
        epochs=150,
        lr=3e-3,
        validation=(X[40:], noise[40:]),
        metrics=wl.metrics.Accuracy(),
    )
    assert history["accuracy"][-1] == 1.0
    assert history["validation_accuracy"][-1] < 0.75
    assert history.gaps()[-1] > 0.5


def test_metrics_are_measured_on_both_sets():
    history = quiet(
        classifier(),
        "cross_entropy",
        (X, CLASSES),
        epochs=30,
        lr=0.02,
        validation=(X[:10], CLASSES[:10]),
        metrics={"accuracy": wl.metrics.Accuracy(), "f1": wl.metrics.F1()},
    )
    last = history.records[-1]
    assert {"accuracy", "f1", "validation_accuracy", "validation_f1"} <= last.keys()
    assert last["accuracy"] > 0.95


@pytest.mark.book("A3-42", name=("wl.train.fit", "wl.optim.schedules"))
def test_schedules_set_the_rate_of_every_step():
    rates = []
    watch = train.LambdaCallback(on_step_end=lambda trainer: rates.append(float(trainer.optimizer.lr)))
    quiet(linear(), "mse_loss", (X, Y), epochs=2, schedule=lambda step: 0.1 / (1 + step), callbacks=[watch])
    assert rates == [0.1 / (1 + step) for step in range(8)]


@pytest.mark.book("A3-43b", name=("wl.train.History.events", "wl.optim.Plateau"))
def test_a_plateau_lowers_the_rate_and_leaves_a_mark():
    plateau = wl.optim.Plateau(0.25, factor=0.5, patience=0)
    history = quiet(linear(), "mse_loss", (X[:4], Y[:4]), epochs=4, schedule=plateau, monitor="lr")
    # a rate that stays the same is no improvement of itself; a lower one is
    assert history["lr"] == [0.25, 0.25, 0.125, 0.125]
    assert [(event["epoch"], event["text"]) for event in history.events] == [
        (2, "learning rate 0.125"),
        (4, "learning rate 0.0625"),
    ]


@pytest.mark.book("5.38", name="wl.train.fit")
def test_a_batch_in_pieces_is_the_same_batch():
    a, b = linear(), linear()
    for model, pieces in ((a, 1), (b, 3)):
        quiet(model, "mse_loss", (X, Y), epochs=2, batch_size=50, accumulate=pieces, lr=0.05)
    np.testing.assert_allclose(weights(a), weights(b), rtol=1e-5)


def test_clipping_limits_the_step():
    a = linear()
    before = weights(a)
    quiet(a, "mse_loss", (X, 1000 * Y), epochs=1, batch_size=100, optimizer=wl.optim.SGD, lr=1.0, clip_norm=0.01)
    assert np.linalg.norm(weights(a) - before) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.book("9-05", name="wl.train.fit")
def test_a_regularizer_is_minimized_too_and_zero_of_it_changes_nothing():
    runs = []
    for strength in (None, 0.0, 10.0):
        model = linear()
        penalty = None if strength is None else (lambda m, s=strength: s * (m.weight**2).sum())
        history = quiet(model, "mse_loss", (X, Y), epochs=20, lr=0.05, regularizer=penalty)
        runs.append((weights(model), history["loss"][-1]))
    np.testing.assert_array_equal(runs[0][0], runs[1][0])
    assert np.linalg.norm(runs[2][0][:3]) < 0.5 * np.linalg.norm(runs[0][0][:3])
    assert runs[2][1] > runs[0][1]  # the reported loss is the one of the data


def test_an_average_follows_and_stands_in_for_validation():
    model = linear()
    average = wl.optim.EMA(model, decay=0.99)
    start = weights(model)
    history = quiet(model, "mse_loss", (X, Y), epochs=3, lr=0.1, average=average, validation=(X, Y))
    with average.swapped(model):
        assert train.evaluate(model, "mse_loss", (X, Y))["loss"] == pytest.approx(history["validation_loss"][-1])
        assert np.linalg.norm(weights(model) - start) > 0
    assert train.evaluate(model, "mse_loss", (X, Y))["loss"] < history["validation_loss"][-1]


@pytest.mark.book("9-100", name=("wl.train.Callback", "wl.train.Trainer.stop"))
def test_callbacks_see_everything_and_may_stop():
    seen = []

    class Watch(train.Callback):
        def on_fit_start(self, trainer):
            seen.append("start")

        def on_epoch_start(self, trainer):
            seen.append(("epoch", trainer.epoch))

        def on_epoch_end(self, trainer, record):
            record["extra"] = 7
            if trainer.epoch == 2:
                trainer.stop("two are enough")

        def on_fit_end(self, trainer):
            seen.append("end")

    history = quiet(linear(), "mse_loss", (X, Y), epochs=5, callbacks=[Watch()])
    assert seen == ["start", ("epoch", 0), ("epoch", 1), "end"]
    assert history["extra"] == [7, 7]
    assert history.stopped == "two are enough"


def test_other_objectives_datasets_and_lists_of_batches():
    model = nn.Linear(3, 3)
    batches = [wl.asarray(X[i : i + 20]) for i in range(0, 100, 20)]
    history = quiet(
        model, "mse_loss", batches, epochs=200, lr=0.02, objective=lambda m, loss, x: (loss(y := m(x), x), y)
    )
    assert history["loss"][-1] < 1e-3
    assert quiet(linear(), "mse_loss", wl.data.TensorDataset(X, Y), epochs=1, batch_size=50).records[0]["step"] == 2


def test_predictions_come_in_order_and_batch_by_batch():
    model = linear()
    np.testing.assert_allclose(
        np.asarray(train.predict(model, X, batch_size=33)), np.asarray(model(wl.asarray(X))), rtol=1e-6
    )
    np.testing.assert_array_equal(
        np.asarray(train.predict(model, (X, Y))), np.asarray(train.predict(model, wl.asarray(X)))
    )


# --- bad input


@pytest.mark.parametrize("place, name", [(0, "inputs"), (1, "targets")])
def test_data_that_are_not_finite_are_named_and_the_model_is_kept(place, name):
    data = [X.copy(), Y.copy()]
    data[place][50, 0] = np.nan
    model = linear()
    before = weights(model)
    with pytest.raises(wl.errors.NonFiniteError, match=f"the {name} of the batch have nan at"):
        quiet(model, "mse_loss", tuple(data), epochs=1, batch_size=10, check=False)
    np.testing.assert_array_equal(weights(model), before)


def test_a_run_that_diverges_says_so():
    model = linear()
    with pytest.raises(wl.errors.NonFiniteError, match="smaller learning rate"):
        quiet(model, "mse_loss", (X, Y), epochs=50, optimizer=wl.optim.SGD, lr=1e6)
    assert np.isfinite(weights(model)).all()


def test_a_last_step_that_was_one_too_many_is_taken_back():
    model = linear()
    before = weights(model)
    with pytest.raises(wl.errors.NonFiniteError, match="evaluate: the loss of the examples from 0 on is nan"):
        quiet(
            model,
            "mse_loss",
            (X, Y),
            epochs=1,
            batch_size=100,
            optimizer=wl.optim.SGD,
            schedule=lambda step: math.inf,
            validation=(X, Y),
            metrics=wl.metrics.MeanAbsoluteError(),
        )
    np.testing.assert_array_equal(weights(model), before)


def test_labels_out_of_range_are_refused():
    bad = CLASSES.copy()
    bad[70] = 2
    with pytest.raises(wl.errors.IndexOutOfRange, match="2"):
        quiet(classifier(), "cross_entropy", (X, bad), epochs=1, check=False)


@pytest.mark.book("3.19", "3.16", name="wl.train.TrainingWarning")
def test_a_flat_loss_is_noticed():
    def hits(outputs, targets):
        return ((outputs[:, 0] > 0) != (targets[:, 0] > 0)).astype(wl.float32).mean() + 0 * outputs.sum()

    model = linear()
    before = weights(model)
    with pytest.warns(train.TrainingWarning, match="exactly zero"):
        quiet(model, hits, (X, Y), epochs=1, optimizer=wl.optim.SGD, lr=0.1)
    np.testing.assert_array_equal(weights(model), before)


@pytest.mark.book("4.59", name="wl.train.fit")
def test_a_second_softmax_is_noticed():
    model = nn.Sequential(nn.Linear(3, 2), nn.Softmax())
    with pytest.warns(UserWarning, match="probabilities"):
        quiet(model, nn.CrossEntropyLoss(), (X, CLASSES), epochs=1)


def test_the_first_look_changes_nothing():
    def run(check):
        wl.random.seed(3)
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
        quiet(model, "mse_loss", (X, Y), epochs=1, check=check)
        return [np.asarray(value) for value in model.state_dict().values()]

    for a, b in zip(run(True), run(False), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "arguments, settings, message",
    [
        ((linear(), "mse_loss", (X, Y[:50])), {}, "100"),
        ((linear(), "mse_loss", (X[:0], Y[:0])), {}, "no batches|empty|no examples"),
        ((linear(), "no_loss", (X, Y)), {}, "no loss 'no_loss'"),
        ((linear(), "mse_loss", 5), {}, "a int has no batches"),
        ((linear(), "mse_loss", iter([])), {}, "only once"),
        ((linear(), "mse_loss", (X, Y)), {"epochs": 0}, "epochs=0"),
        ((linear(), "mse_loss", (X, Y)), {"validation": 1.5}, "between 0 and 1"),
        ((linear(), "mse_loss", (X, Y)), {"callbacks": [print]}, "not a callback"),
        ((linear(), "mse_loss", (X, Y)), {"metrics": [abs]}, "not a metric"),
        ((linear(), "mse_loss", (X, Y)), {"progress": "loud"}, "progress='loud'"),
        ((linear(), "mse_loss", (X, Y, Y)), {}, "received 3 parts"),
        ((linear(), "mse_loss", (X, Y)), {"optimizer": wl.optim.SGD(linear(), lr=0.1), "lr": 0.1}, "lr is for"),
    ],
)
def test_bad_arguments_are_explained(arguments, settings, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(wl.errors.WonderlandError, match=message):
            train.fit(*arguments, **{"progress": False, **settings})


def test_shapes_that_do_not_fit_name_the_loss():
    with pytest.raises(wl.errors.ShapeError, match="mse_loss"):
        quiet(linear(), "mse_loss", (X, Y[:, 0]), epochs=1)
