"""`fit` by names and on tables: optimizers, losses, metrics, frames, dicts of columns, lists."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland.data.tables.table import Column, Table
from wonderland.optim.by_name import OPTIMIZERS, optimizer_named
from wonderland.train.by_name import LOSSES, METRICS, metric_named
from wonderland.train.feeding import as_arrays

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = (X[:, 0] > X[:, 1]).astype(np.int64)
COLUMNS = {"a": X[:, 0], "b": X[:, 1]}


class Series:
    """What a frame's column offers, for those who have neither pandas nor polars."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def to_numpy(self) -> np.ndarray:
        return self.values

    def __len__(self) -> int:
        return len(self.values)


class Frame:
    def __init__(self, columns: dict[str, np.ndarray]) -> None:
        self._columns = {name: np.asarray(values) for name, values in columns.items()}
        self.columns = list(columns)
        self.shape = (len(next(iter(self._columns.values()))), len(columns))

    def __getitem__(self, name: str) -> Series:
        return Series(self._columns[name])

    def __len__(self) -> int:
        return self.shape[0]

    def to_numpy(self) -> np.ndarray:
        return np.stack(list(self._columns.values()), 1)


def frames(columns: dict[str, np.ndarray]) -> list[object]:
    found: list[object] = [Frame(columns), dict(columns)]
    numbers = {n: Column(n, np.asarray(v, float)) for n, v in columns.items() if np.asarray(v).dtype.kind in "fi"}
    if len(numbers) == len(columns):
        found.append(Table("t", numbers))
    for name in ("pandas", "polars"):
        try:
            found.append(__import__(name).DataFrame(columns))
        except ImportError:
            continue
    return found


def test_everything_by_name() -> None:
    model = wl.nn.Linear(2, 2)
    history = wl.train.fit(
        model,
        loss="cross_entropy",
        data=(X, Y),
        optimizer="adamw",
        lr=0.1,
        metrics=["accuracy"],
        epochs=8,
        progress=False,
    )
    assert history["accuracy"][-1] > 0.9
    trainer = wl.train.Trainer(model, "mse", (X, Y), optimizer="sgd", lr=0.25, progress=False)
    assert type(trainer.optimizer) is wl.optim.SGD
    assert float(trainer.optimizer.lr) == 0.25


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_have_a_rate_of_their_own(name: str) -> None:
    model = wl.nn.Linear(2, 2)
    assert float(optimizer_named(name, model).lr) > 0
    assert float(optimizer_named(name.upper(), model, lr=0.5).lr) == 0.5


def test_losses_are_those_of_the_functions() -> None:
    p, y = wl.tensor([0.2, 0.9]), wl.tensor([0.0, 1.0])
    assert float(wl.train.as_loss("mae")(p, y)) == pytest.approx(np.mean([0.2, 0.1]))
    assert float(wl.train.as_loss("mse")(p, y)) == pytest.approx(np.mean([0.04, 0.01]))
    assert float(wl.train.as_loss("bce")(p, y)) == pytest.approx(-np.mean(np.log([0.8, 0.9])), rel=1e-6)
    assert float(wl.train.as_loss(wl.nn.MSELoss)(p, y)) == pytest.approx(0.025)
    for name in LOSSES:
        assert wl.train.as_loss(name) is not None


def test_metrics_are_made_anew() -> None:
    for name in METRICS:
        assert metric_named(name) is not metric_named(name)
    found = wl.train.evaluate(wl.nn.Linear(2, 2), "cross_entropy", (X, Y), metrics=["acc", wl.metrics.Accuracy])
    assert found["acc"] == found["accuracy"]


def test_the_threshold_of_a_named_metric_follows_the_loss() -> None:
    logits = wl.nn.Linear.from_matrix([[1.0], [-1.0]])
    y = Y[:, None].astype(np.float32)
    for loss in ("bce_with_logits", wl.nn.BCEWithLogitsLoss()):
        assert wl.train.evaluate(logits, loss, (X, y), metrics=["accuracy"])["accuracy"] == 1.0


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"optimizer": "adamx"}, "'adam'"),
        ({"optimizer": "lbfgs"}, "wl.optim.minimize"),
        ({"loss": "sparse_categorical_crossentropy"}, "cross_entropy_with_probs"),
        ({"loss": "crossentropi"}, "'cross_entropy'"),
        ({"loss": "relu"}, "there is no loss"),
        ({"loss": X}, "(x, y)"),
        ({"metrics": ["accuracys"]}, "'accuracy'"),
        ({"metrics": ["f1_score"]}, "'f1'"),
        ({"metrics": [3]}, "wl.metrics.Accuracy()"),
    ],
)
def test_names_that_are_wrong(settings: dict[str, object], said: str) -> None:
    with pytest.raises(wl.errors.InputError) as error:
        wl.train.fit(wl.nn.Linear(2, 2), **{"loss": "mse", "data": (X, Y), "progress": False, **settings})
    assert said in str(error.value)


@pytest.mark.parametrize("place", range(len(frames(COLUMNS))))
def test_tables_are_arrays(place: int) -> None:
    frame = frames(COLUMNS)[place]
    x, y = as_arrays((frame, Y.tolist()))
    np.testing.assert_array_equal(x, X.astype(np.float32))
    np.testing.assert_array_equal(y, Y)
    assert y.dtype == np.int64
    model = wl.nn.Linear(2, 2)
    same = wl.train.predict(model, X.astype(np.float32))
    np.testing.assert_array_equal(wl.train.predict(model, frame), same)
    arrays = wl.train.evaluate(model, "cross_entropy", (X.astype(np.float32), Y))
    assert wl.train.evaluate(model, "cross_entropy", (frame, Series(Y))) == arrays


@pytest.mark.parametrize("place", range(len(frames(COLUMNS))))
def test_a_table_and_the_name_of_its_target(place: int) -> None:
    frame = frames({**COLUMNS, "y": Y})[place]
    x, y = as_arrays((frame, "y"))
    np.testing.assert_array_equal(x, X.astype(np.float32))
    np.testing.assert_array_equal(y, Y)
    with pytest.raises(wl.errors.InputError, match="'price'"):
        as_arrays((frame, "price"))


def test_validation_is_held_out_of_frames_and_given_as_frames() -> None:
    for validation in (0.25, (Frame(COLUMNS), Series(Y))):
        history = wl.train.fit(
            wl.nn.Linear(2, 2),
            "cross_entropy",
            (Frame(COLUMNS), Series(Y)),
            validation=validation,
            epochs=1,
            progress=False,
        )
        assert "validation_loss" in history.records[0]


def test_datasets_take_frames() -> None:
    dataset = wl.data.TensorDataset(Frame(COLUMNS), Series(Y))
    np.testing.assert_array_equal(dataset[3][0], X[3].astype(np.float32))
    assert next(iter(wl.data.DataLoader(dataset, batch_size=4)))[1].dtype == wl.int64


@pytest.mark.parametrize(
    "columns, said",
    [
        ({"a": [1.0, np.nan]}, "missing value in the column 'a', in row 1"),
        ({"a": [1, None]}, "missing value in the column 'a', in row 1"),
        ({"city": ["Rome", "Pisa"]}, "texts in the column 'city', such as 'Rome'"),
        ({"day": np.array(["2020-01-01", "2020-01-02"], "M8[D]")}, "'day'"),
        ({"a": [1.0, 2.0], "b": [1.0]}, "'a' 2, 'b' 1"),
    ],
)
def test_tables_that_are_not_numbers_are_refused_with_the_column(columns: dict[str, object], said: str) -> None:
    with pytest.raises(wl.errors.InputError) as error:
        wl.train.predict(wl.nn.Linear(1, 1), columns)
    assert said in str(error.value)
    if "lengths" not in str(error.value):
        assert "wl.data.infer_schema" in str(error.value)


def test_texts_as_targets_are_refused() -> None:
    with pytest.raises(wl.errors.InputError, match="texts"):
        wl.train.fit(wl.nn.Linear(2, 2), "cross_entropy", (Frame(COLUMNS), ["yes", "no"] * 20), progress=False)


def test_lists_of_batches_stay_batches() -> None:
    batches = [(X[:20].astype(np.float32), Y[:20]), (X[20:].astype(np.float32), Y[20:])]
    whole = wl.train.evaluate(model := wl.nn.Linear(2, 2), "cross_entropy", (X.astype(np.float32), Y))
    assert wl.train.evaluate(model, "cross_entropy", batches)["loss"] == pytest.approx(whole["loss"], rel=1e-6)
