"""Every finding comes where it should, and stays away where it should not."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland.data.tables import Column, Table
from wonderland.report.findings import SEVERITIES


def kinds(*arguments, **options):
    return {finding.kind: finding for finding in wl.report.diagnose(*arguments, **options)}


def sure_of(y, classes, confidence=0.9):
    """Probabilities that name the given classes."""
    p = np.full((len(y), classes), (1 - confidence) / (classes - 1))
    p[np.arange(len(y)), y] = confidence
    return p


class Answers:
    """A model that knows what to say about inputs: the first feature is the number of an answer."""

    def __init__(self, answers):
        self.answers = np.asarray(answers)

    def __call__(self, x):
        return self.answers[np.rint(x[:, 0]).astype(int)]


def made(n=400, d=3, seed=0):
    """Inputs, the first of which number them; their order is shuffled, so that parts do not differ."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.permutation(n), rng.normal(size=(n, d))]), rng


def parts(x, y):
    half = len(x) // 2
    return {"data": (x[half:], y[half:]), "training": (x[:half], y[:half])}


def of_classes(y, answers, x=None, **options):
    """The findings about a model whose answers are probabilities by the number of an example."""
    x = made(len(y))[0] if x is None else x
    y, place = np.asarray(y), np.rint(x[:, 0]).astype(int)
    split = parts(x, y[place])
    return kinds(Answers(answers), split["data"], training=split["training"], **options)


def test_the_share_of_the_majority_and_less():
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.09).astype(int)
    found = of_classes(y, sure_of(np.zeros(2000, int), 2, 0.91), class_names=["no", "yes"])["majority"]
    assert found.severity == "serious"
    assert "is the share of the majority class: always saying 'no' has 90.6 %" in found.text
    worse = np.where(rng.random(2000) < 0.15, 1 - y, y)
    assert of_classes(y, sure_of(worse, 2))["majority"].text.startswith("Worse than the majority class")
    little = np.where(rng.random(2000) < 0.08, 1 - y, y)
    assert of_classes(y, sure_of(little, 2))["majority"].severity == "warning"
    assert "majority" not in of_classes(y, sure_of(np.where(rng.random(2000) < 0.02, 1 - y, y), 2))


def test_worse_than_the_mean():
    x, rng = made()
    y = rng.normal(size=(400, 1))
    split = parts(x, y[x[:, 0].astype(int)])
    bad = kinds(Answers(y + 2), split["data"], training=split["training"])["mean"]
    assert bad.severity == "serious"
    assert "Worse than the mean of the training targets" in bad.text
    hardly = Answers(0.01 * y)
    assert kinds(hardly, split["data"], training=split["training"])["mean"].severity == "warning"
    assert "mean" not in kinds(Answers(y + 0.3), split["data"], training=split["training"])


def test_a_linear_model_is_better():
    x, _ = made(800)
    y = (x[:, 1] > 0).astype(int)
    order = np.argsort(x[:, 0])
    noisy = np.where(np.random.default_rng(0).random(800) < 0.15, 1 - y[order], y[order])
    split = parts(x, y)
    assert "linear is better" in kinds(Answers(sure_of(noisy, 2)), split["data"], training=split["training"])
    good = Answers(sure_of(y[order], 2))
    assert "linear is better" not in kinds(good, split["data"], training=split["training"])
    z = 3 * x[:, 1:2]
    split = parts(x, z)
    assert "linear is better" in kinds(Answers(z[order] + 2), split["data"], training=split["training"])
    assert "linear is better" not in kinds(Answers(z[order] + 0.01), split["data"], training=split["training"])


def test_test_rows_that_are_in_the_training_data():
    x, rng = made(400)
    y = rng.integers(0, 2, 400)
    copied = x.copy()
    copied[200:230] = copied[:30]
    p = sure_of(y, 2)
    model = lambda rows: p[: len(rows)]
    assert kinds(model, (x[200:], y[200:]), training=(x[:200], y[:200])).get("copies") is None
    found = kinds(model, (copied[200:], y[200:]), training=(copied[:200], y[:200]))["copies"]
    assert (found.severity, "30 of 200 test rows (15 %)" in found.text) == ("serious", True)
    coarse = rng.integers(0, 2, (400, 3)).astype(float)  # eight different rows are equal by chance
    assert "copies" not in kinds(model, (coarse[200:], y[200:]), training=(coarse[:200], y[:200]))
    whole = np.round(x)  # numbers with few bits are told apart, too
    whole[:, 1:] = rng.integers(0, 1000, (400, 3))
    assert "copies" not in kinds(model, (whole[200:], y[200:]), training=(whole[:200], y[:200]))


def test_a_column_that_predicts_alone():
    x, rng = made(400)
    y = (x[:, 2] > 0).astype(int)
    p = sure_of(np.where(rng.random(200) < 0.1, 1 - y[200:], y[200:]), 2)
    found = kinds(lambda _: p, (x[200:], y[200:]), feature_names=["row", "a", "b", "c"])["leakage"]
    assert "the column 'b' alone predicts the target" in found.text
    mixed = (x[:, 2] + 0.5 * rng.normal(size=400) > 0).astype(int)
    assert "leakage" not in kinds(lambda _: p, (x[200:], mixed[200:]))
    target = np.exp(x[200:, 3:4])  # by ranks
    model = lambda rows: target[: len(rows)] * 1.1
    assert "'c'" in kinds(model, (x[200:], target), feature_names=["row", "a", "b", "c"])["leakage"].text
    assert "leakage" not in kinds(model, (x[200:], target + rng.normal(size=(200, 1))))


def test_overfitting_by_the_gap():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 800)
    x = made(800)[0]
    place = np.rint(x[:, 0]).astype(int)
    seen = np.zeros(800, bool)
    seen[place[:400]] = True
    guess = np.where(seen, y, np.where(rng.random(800) < 0.3, 1 - y, y))
    found = of_classes(y, sure_of(guess, 2), x)["overfitting"]
    assert "100 % on training data and 6" in found.text
    assert "overfitting" not in of_classes(y, sure_of(np.where(rng.random(800) < 0.2, 1 - y, y), 2), x)
    z = rng.normal(size=(800, 1))
    noise = np.where(seen, 0.05, 0.7)[:, None] * rng.normal(size=(800, 1))
    split = parts(x, z[place])
    assert "overfitting" in kinds(Answers(z + noise), split["data"], training=split["training"])
    assert "overfitting" not in kinds(Answers(z + 0.5 * noise[::-1]), split["data"], training=split["training"])


def history(losses, held=None):
    records = [{"epoch": i + 1, "loss": float(v)} for i, v in enumerate(losses)]
    for record, value in zip(records, held if held is not None else [], strict=False):
        record["validation_loss"] = float(value)
    return wl.train.History(records)


def by_history(losses, held=None, accuracy=0.5):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    guess = np.where(rng.random(200) < accuracy, y, 1 - y)
    p = sure_of(guess, 2, 0.5 + 0.49 * accuracy)
    x = np.column_stack([np.arange(200), rng.normal(size=200)])
    return kinds(Answers(p), (x, y), training=(x[:100], y[:100]), history=history(losses, held))


def test_the_course_of_the_training():
    steps = np.arange(20)
    settled = 0.2 + np.exp(-steps)
    assert "too long" in by_history(settled, 0.5 + 0.02 * np.abs(steps - 3))["overfitting"].text
    assert "overfitting" not in by_history(settled, 0.5 + np.exp(-steps / 3.0))
    assert "does not fall" in by_history(0.69 + 0 * steps)["underfitting"].text
    assert "underfitting" not in by_history(0.1 + 0 * steps, accuracy=0.97), "it was good from the first epoch on"
    found = by_history(np.exp(-steps / 10.0))["underfitting"]
    assert ("still learning" in found.text, found.remedy) == (True, "more epochs (--set epochs=40).")
    assert "underfitting" not in by_history(settled)
    assert by_history([1.0, np.nan])["not finite"].severity == "serious"
    stopped = history(settled, 0.5 + 0.02 * np.abs(steps - 3))
    stopped.stopped = "validation_loss was best at epoch 4"
    p = np.tile([0.5, 0.5], (40, 1))
    assert "overfitting" not in kinds(lambda _: p, (np.zeros((40, 1)), np.arange(40) % 2), history=stopped)


def test_labels_that_look_wrong():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    x = np.column_stack([np.arange(600), 5.0 * y + rng.normal(size=600), 5.0 * y + rng.normal(size=600)])
    x[:, 0] *= 1e-3  # the number of an example is no neighbourhood
    answers = sure_of(y, 2, 0.999)
    model = lambda rows: answers[np.rint(rows[:, 0] * 1e3).astype(int)]
    wrong = y.copy()
    wrong[[310, 420]] = 1 - wrong[[310, 420]]
    found = kinds(model, (x[300:], wrong[300:]), training=(x[:300], y[:300]), class_names=["cat", "dog"])["labels"]
    assert found.text.startswith("2 labels look wrong")
    assert "10 (" in found.text
    assert "120 (" in found.text
    assert "labels" not in kinds(model, (x[300:], y[300:]), training=(x[:300], y[:300]))
    alone = rng.normal(size=(600, 2))  # the model is sure, but nothing is near
    apart = np.column_stack([x[:, 0], alone])
    assert "labels" not in kinds(model, (apart[300:], wrong[300:]), training=(apart[:300], y[:300]))


@pytest.mark.parametrize("shape", [(4,), (4, 5, 1)])
def test_drift(shape):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, *shape))
    y = rng.integers(0, 2, 600)
    p = sure_of(y[300:], 2)
    model = lambda rows: p[np.arange(len(rows)) % len(p)]
    assert "drift" not in kinds(model, (x[300:], y[300:]), training=(x[:300], y[:300]))
    moved = x[300:].copy()
    moved[..., 0] += 2.0
    names = ["age", "b", "c", "d"] if len(shape) == 1 else None
    if names:
        moved = x[300:].copy()
        moved[:, 0] += 2.0
    found = kinds(model, (moved, y[300:]), training=(x[:300], y[:300]), feature_names=names)["drift"]
    assert ("'age' (mean +2" if names else "mean of an example") in found.text


def test_drift_that_no_column_shows_alone():
    rng = np.random.default_rng(0)
    base = np.abs(rng.normal(size=(1000, 1)))
    train_x = np.concatenate([base, base + 0.1 * rng.normal(size=(1000, 1))], axis=1)
    test_x = train_x[rng.permutation(1000)].copy()
    test_x[:, 0] -= 0.12
    test_x[:, 1] += 0.12  # small beside the spread, large beside what ties them
    y = np.zeros(1000, int)
    p = sure_of(y, 2)
    found = kinds(lambda _: p, (test_x, y), training=(train_x, y), class_names=["a", "b"])["drift"]
    assert "a simple rule tells them apart" in found.text


def test_calibration():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    x = made(1000)[0]
    guess = np.where(rng.random(1000) < 0.3, 1 - y, y)
    assert "over-confident" in of_classes(y, sure_of(guess, 2, 0.95), x)["calibration"].text
    assert "under-confident" in of_classes(y, sure_of(guess, 2, 0.55), x)["calibration"].text
    assert "calibration" not in of_classes(y, sure_of(guess, 2, 0.7), x)
    few = np.where(np.arange(20) % 4 == 0, 1, 0)  # 3 of 4 right, where 0.85 is said: chance
    assert "calibration" not in kinds(lambda _: sure_of(np.zeros(20, int), 2, 0.85), (np.zeros((20, 1)), few))


def grouped(worse, numbers=False):
    rng = np.random.default_rng(0)
    city = rng.integers(0, 3, 900)
    x = np.column_stack([rng.normal(size=900), np.eye(3)[city]])
    names = ["age", "city=Rome", "city=Pisa", "city=Bari"]
    groups = [("age", 0, 1), ("city", 1, 4)]
    off = np.where(city == 2, worse, 0.1)
    if numbers:
        y = rng.normal(size=(900, 1))
        return (lambda _: y + off[:, None] * rng.normal(size=(900, 1))), (x, y), names, groups
    y = rng.integers(0, 2, 900)
    p = sure_of(np.where(rng.random(900) < off, 1 - y, y), 2)
    return (lambda _: p), (x, y), names, groups


@pytest.mark.parametrize("numbers", [False, True])
def test_groups_that_do_worse(numbers):
    model, data, names, groups = grouped(0.35, numbers)
    assert "city = Bari" in kinds(model, data, feature_names=names, groups=groups)["group"].text
    model, data, names, groups = grouped(0.1, numbers)
    assert "group" not in kinds(model, data, feature_names=names, groups=groups)


def test_groups_have_the_names_of_the_table():
    model, (x, y), names, groups = grouped(0.35)
    codes = x[:, 1:].argmax(axis=1).astype(np.int32)
    table = Table(
        "t", {"age": Column("age", x[:, 0]), "city": Column("city", codes, ("Roma", "Pisa", "Bari (Puglia)"))}
    )
    found = kinds(model, (x, y), feature_names=names, groups=groups, table=table)["group"]
    assert "city = Bari (Puglia)" in found.text


def test_classes_that_are_seldom_found_and_classes_with_few_examples():
    rng = np.random.default_rng(0)
    y = rng.choice(3, 1000, p=[0.6, 0.3, 0.1])
    guess = np.where((y == 2) & (rng.random(1000) < 0.8), 0, y)
    x = made(1000)[0]
    found = of_classes(y, sure_of(guess, 3), x, class_names=["a", "b", "rare"])
    assert "of 'rare'" in found["class"].text
    assert "class" not in of_classes(y, sure_of(y, 3), x)
    assert "few examples" not in found
    few = np.where(np.arange(1000) < 6, 2, np.minimum(y, 1))
    told = of_classes(few, sure_of(few, 3), x, class_names=["a", "b", "rare"])["few examples"]
    assert "One class has fewer than 10 training examples: 'rare' (" in told.text


def test_the_interval_of_the_accuracy():
    y = np.arange(60) % 2
    p = sure_of(np.where(np.arange(60) < 6, 1 - y, y), 2)
    found = kinds(lambda _: p[:30], (np.zeros((30, 1)), y[:30]))["interval"]
    assert found.severity == "note"
    assert "80 % is of 30 examples: it lies between 62.7 % and 90.5 %" in found.text
    many = np.tile(y, 50)
    assert "interval" not in kinds(lambda _: np.tile(p, (50, 1)), (np.zeros((3000, 1)), many))


def test_the_worst_comes_first():
    rng = np.random.default_rng(0)
    y = (rng.random(100) < 0.1).astype(int)
    x = rng.normal(size=(100, 2))
    found = wl.report.diagnose(lambda rows: sure_of(np.ones(len(rows), int), 2), (x, y), training=(x[:50], y[:50]))
    places = [SEVERITIES.index(finding.severity) for finding in found]
    assert places == sorted(places)
    assert len(set(places)) == 3
    assert all(finding.remedy and finding.text.endswith(".") for finding in found)


def test_a_module_with_logits_is_asked_in_evaluation_mode():
    wl.random.seed(0)
    model = wl.nn.Sequential(wl.nn.Linear(3, 8), wl.nn.Dropout(0.9), wl.nn.Linear(8, 2))
    x = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    y = (np.arange(300) % 2).astype(np.int64)
    first, second = (wl.report.examine(model, (x, y), explained=False) for _ in range(2))
    assert first.measures == second.measures
    p = wl.softmax(wl.train.predict(model, x)).numpy()
    assert first.measures["accuracy"] == pytest.approx((p.argmax(1) == y).mean())
    assert model.training


@pytest.mark.parametrize(
    "arguments, words",
    [
        (((np.zeros((3, 2)),),), "a pair"),
        (((np.zeros((3, 2)), [0, 1]),), r"shapes \(3, 2\) and \(2,\)"),
        (((np.zeros((0, 2)), []),), "n targets"),
    ],
)
def test_what_is_no_data_is_explained(arguments, words):
    with pytest.raises(wl.errors.WonderlandError, match=words):
        wl.report.diagnose(lambda x: np.zeros((len(x), 2)), *arguments)


def test_bad_names_and_groups_are_explained():
    data = np.zeros((4, 2)), np.array([0, 1, 0, 1])
    model = lambda x: np.tile([0.5, 0.5], (len(x), 1))
    with pytest.raises(wl.errors.ShapeError, match="3 feature_names for 2 features"):
        wl.report.diagnose(model, data, feature_names=["a", "b", "c"])
    with pytest.raises(wl.errors.InputError, match="from 1 to 4 of 2 features"):
        wl.report.diagnose(model, data, groups=[("a", 1, 4)])
    with pytest.raises(wl.errors.InputError, match="the group"):
        wl.report.diagnose(model, data, groups=[("a", 1)])
    with pytest.raises(wl.errors.InputError, match="form='pictures'"):
        wl.report.examine(model, data, form="pictures")
