"""Which columns matter: against scikit-learn's permutation importance and partial dependence, and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.inspection import partial_dependence as sk_dependence
from sklearn.inspection import permutation_importance as sk_importance
from sklearn.linear_model import LinearRegression

import wonderland as wl
from tests.report.reading import Reader
from tests.viz.places import faults
from wonderland.data.tables import Column, Table
from wonderland.report.baselines import number_measures
from wonderland.report.columns import baselines_section, columns_section, nearest_section
from wonderland.report.evidence import Source, sources_of
from wonderland.report.found_in_data import nearest
from wonderland.report.importance import partial_dependence, permutation_importance


def linear(n=600):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 4))
    y = 3 * x[:, 0] - x[:, 1] + 0.5 * x[:, 2] + 0.1 * rng.normal(size=n)
    return x, y[:, None], LinearRegression().fit(x, y[:, None])


def test_importance_agrees_with_scikit_learn():
    x, y, model = linear()
    found, note = permutation_importance(
        model.predict, x, number_measures, y, sources_of(x, list("abcd"), None), seed=1
    )
    theirs = sk_importance(model, x, y, n_repeats=20, random_state=0)
    assert [one.column for one in found] == ["a", "b", "c", "d"]
    for one, expected, spread in zip(found, theirs.importances_mean, theirs.importances_std, strict=True):
        assert one.loss == pytest.approx(expected, abs=4 * spread / np.sqrt(5) + 1e-6)
        assert 0 <= one.error < 0.1 * (one.loss + 0.01)
    assert note == "600 test rows, 5 shuffles of each column"


def test_the_features_of_a_column_move_together():
    rng = np.random.default_rng(0)
    city = rng.integers(0, 3, 500)
    x = np.column_stack([np.eye(3)[city], rng.normal(size=500)])
    seen = []

    def predict(rows):
        seen.append((rows[:, :3].sum(axis=1) == 1).all())
        return rows[:, :3] @ [[1.0], [5.0], [9.0]]

    sources = sources_of(x, None, [("city", 0, 3), ("noise", 3, 4)])
    found, _ = permutation_importance(predict, x, number_measures, predict(x), sources)
    assert all(seen), "no row has two cities"
    assert (found[0].column, found[1].loss) == ("city", 0.0)
    assert found[0].loss == pytest.approx(2.0, abs=0.3), "two independent draws differ by twice the variance"


def test_of_classes_the_loss_of_accuracy_is_told():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    y = (x[:, 0] > 0).astype(int)
    model = lambda rows: np.stack([0.99 - 0.98 * (rows[:, 0] > 0), 0.01 + 0.98 * (rows[:, 0] > 0)], axis=1)
    found = wl.report.examine(model, (x, y), feature_names=["this", "that"]).importance
    assert found[0].column == "this"
    assert found[0].accuracy == pytest.approx(0.5, abs=0.06)
    assert (found[1].loss, found[1].accuracy) == (0.0, 0.0)


def test_dependence_on_numbers_agrees_with_scikit_learn():
    x, _, model = linear(200)
    source = Source("a", 0, 1, x[:, 0])
    found = partial_dependence(model.predict, x, source)
    theirs = sk_dependence(model, x, [0], custom_values={0: found.values}, method="brute", kind="average")
    np.testing.assert_allclose(found.answers[:, 0], theirs["average"][0], rtol=1e-9)
    assert 5 < len(found.values) <= 15
    assert (np.diff(found.values) > 0).all()


def test_dependence_has_the_values_of_the_table_and_the_features_of_their_rows():
    rng = np.random.default_rng(0)
    euro = rng.uniform(100, 900, 300)
    codes = rng.integers(0, 2, 300).astype(np.int32)
    when = np.datetime64("2020-01-01") + rng.integers(0, 700, 300)
    days = ((when - np.datetime64("2020-01-01")).astype(float) - 350) / 200
    x = np.column_stack([(euro - 500) / 200, np.eye(2)[codes], days])
    texts = tuple(str(day) for day in np.unique(when))
    columns = {
        "euro": Column("euro", euro),
        "city": Column("city", codes, ("Rome", "Pisa")),
        "day": Column("day", np.searchsorted(np.unique(when), when).astype(np.int32), texts),
    }
    groups = [("euro", 0, 1, "number"), ("city", 1, 3, "category"), ("day", 3, 4, "date")]
    sources = sources_of(x, None, groups, Table("t", columns))
    predict = lambda rows: rows @ [[2.0], [10.0], [20.0], [1.0]]
    first = partial_dependence(predict, x, sources[0])
    slope = np.polyfit(first.values, first.answers[:, 0], 1)[0]
    assert slope == pytest.approx(2.0 / 200), "in euro"
    second = partial_dependence(predict, x, sources[1])
    answers = dict(zip(second.values.tolist(), second.answers[:, 0], strict=True))
    assert answers["Pisa"] - answers["Rome"] == pytest.approx(10.0)
    third = partial_dependence(predict, x, sources[2])
    assert 2020 <= third.values.min() < third.values.max() < 2022
    assert np.polyfit(third.values, third.answers[:, 0], 1)[0] == pytest.approx(365.2425 / 200, rel=1e-3)


@pytest.mark.parametrize(
    "values, kind",
    [(np.full(20, 3.0), ""), (np.full(20, np.nan), ""), (np.array(["a"] * 20), ""), (np.arange(20.0), "text")],
)
def test_columns_without_anything_to_show(values, kind):
    x = np.zeros((20, 1))
    assert partial_dependence(lambda rows: rows, x, Source("c", 0, 1, values, kind)) is None


def test_nearest_examples_agree_with_scikit_learn():
    from sklearn.neighbors import NearestNeighbors
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(200, 5)) * [1, 10, 100, 1, 1], rng.normal(size=(7, 5)) * [1, 10, 100, 1, 1]
    scale = StandardScaler().fit(x)
    distances, rows = NearestNeighbors(n_neighbors=3).fit(scale.transform(x)).kneighbors(scale.transform(new))
    far, found = nearest(x, new, 3)
    np.testing.assert_array_equal(found, rows)
    np.testing.assert_allclose(far, distances, rtol=1e-6)


def whole(classes=3, long=True):
    """A diagnosis with something of everything."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 5))
    y = (2 * x[:, 0] + x[:, 1] + 0.4 * rng.normal(size=240) > 0).astype(int) + (x[:, 2] > 1) * (classes > 2)
    weights = rng.normal(size=(5, classes)) * 0.1
    weights[0] += np.arange(classes) * 2.0
    name = "a column with a name that goes on and on until nobody has room for it"
    names = [f"{name} {i}" if long else f"c{i}" for i in range(5)]
    called = [f"class number {k} whose name is long, too" for k in range(classes)]
    model = lambda rows: np.asarray(rows @ weights)
    found = wl.report.examine(
        model, (x[120:], y[120:]), training=(x[:120], y[:120]), feature_names=names, class_names=called
    )
    return found, called


@pytest.mark.parametrize("classes", [2, 3])
def test_the_sections_show_the_numbers_and_nothing_is_cut_off(classes):
    found, names = whole(classes)
    rows = Reader(baselines_section(found).html).table("", "accuracy", "balanced accuracy", "log loss")
    assert [row[0] for row in rows] == ["model", "majority class", "class shares", "linear model"]
    assert float(rows[0][1]) == pytest.approx(found.measures["accuracy"], abs=1e-3)
    section = columns_section(found, names)
    listing = Reader(section.html).table("column", "more log loss", "standard error", "less accuracy")
    assert [row[0] for row in listing] == [one.column for one in found.importance]
    pictures = [picture for some in section.pictures.values() for picture in some]
    assert len(pictures) > 1
    for picture in pictures:
        assert faults(picture.drawing().svg()) == []
        assert faults(picture.drawing("A heading of the picture that is rather long, too").svg()) == []
    near = Reader(nearest_section(found, None, None).html).table("example", "true", "predicted")
    assert len(near) == len(found.near) == 6


def test_nothing_to_show_gives_no_section():
    p = np.tile([0.5, 0.5], (20, 1))
    found = wl.report.examine(lambda rows: p, (np.zeros((20, 3, 3, 1)), np.arange(20) % 2))
    assert baselines_section(found) is columns_section(found, []) is nearest_section(found, None, None) is None


def test_thousands_of_rows_are_sampled_and_that_is_said():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(25_000, 2)).astype(np.float32)
    y = (x[:, 0] > 0).astype(int)
    model = lambda rows: np.stack([1 - (rows[:, 0] > 0), rows[:, 0] > 0], axis=1).astype(float)
    found = wl.report.examine(model, (x, y), training=(x[:100], y[:100]))
    assert found.rows == (20_000, 25_000)
    assert "On 20,000 of 25,000 rows" in "".join(Reader(baselines_section(found).html).texts)
    assert found.importance_note.startswith("1,000 test rows")
