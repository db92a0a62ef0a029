"""`wonderland predict` on public tables made messy: the answer about a row does not depend on what stands around it."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from sklearn import datasets

import wonderland as wl
from wonderland import recipes
from wonderland.cli import main
from wonderland.recipes import Settings

TABLES = ("iris", "wine", "breast_cancer", "diabetes")
ROWS = 120  # of each table
ASKED = (0, 7, 31, 64)  # rows that are asked one at a time


def messy(name: str) -> tuple[list[str], list[list[str]]]:
    """The header and rows of a public table with gaps, a category, a date, a comment and an identifier."""
    rng = np.random.default_rng(0)
    found = getattr(datasets, f"load_{name}")()
    which = rng.permutation(len(found.target))[:ROWS]
    classes = getattr(found, "target_names", None)
    rows = []
    for i in which:
        x = [f"{v:.5g}" if rng.random() > 0.1 else "" for v in found.data[i]]
        y = f"{found.target[i]:.1f}" if classes is None else str(classes[found.target[i]])
        day = np.datetime64("2021-03-01") + int(rng.integers(700))
        shop = str(rng.choice(["north", "south", "east", ""]))
        rows.append([f"r{i}", *x, shop, str(day), f"seen by {rng.choice(['Ann', 'Bob'])}, twice", y])
    return ["row_id", *(str(n).replace(",", "") for n in found.feature_names), "shop", "day", "comment", "y"], rows


def written(path, names, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return path


@pytest.fixture(scope="module", params=TABLES)
def table(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    names, rows = messy(request.param)
    data = written(folder / "table.csv", names, rows)
    settings = Settings.of(model="linear", data=str(data), changes=["epochs=3", "lr=0.05", "data.target=y"])
    with wl.using_backend("numpy"):
        recipes.run(settings, folder / "run", progress=False, png=False)
    return folder, names, rows


def asked(folder, path, capsys):
    """The rows that the command prints."""
    with wl.using_backend("numpy"):
        assert main(["predict", str(folder / "run"), "--data", str(path), "--probabilities"]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def same(found, expected):
    assert [row["prediction"] for row in found if "confidence" in row] == [
        row["prediction"] for row in expected if "confidence" in row
    ]
    for name in expected[0].keys() - {"row_id", *(["prediction"] if "confidence" in expected[0] else [])}:
        values = ([float(row[name]) for row in rows] for rows in (found, expected))
        np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-6)
    assert [row.get("row_id") for row in found] == [row.get("row_id") for row in expected]


def test_shuffled_columns_without_the_target(table, tmp_path, capsys):
    folder, names, rows = table
    expected = asked(folder, folder / "table.csv", capsys)
    assert len(expected) == ROWS
    order = np.random.default_rng(1).permutation(len(names) - 1)
    path = written(tmp_path / "a.csv", [names[i] for i in order], [[row[i] for i in order] for row in rows])
    same(asked(folder, path, capsys), expected)


def test_one_row_at_a_time_and_rows_in_another_order(table, tmp_path, capsys):
    folder, names, rows = table
    expected = asked(folder, folder / "table.csv", capsys)
    for i in ASKED:
        same(asked(folder, written(tmp_path / "one.csv", names, [rows[i]]), capsys), [expected[i]])
        row = dict(zip(names, (value or None for value in rows[i]), strict=True))
        with wl.using_backend("numpy"):
            found = wl.runs.open(folder / "run").predict(row)
        assert found[0]["row_id"] == expected[i]["row_id"]
        assert str(found[0]["prediction"])[:4] == expected[i]["prediction"][:4]
    order = np.random.default_rng(2).permutation(ROWS)
    path = written(tmp_path / "b.csv", names, [rows[i] for i in order])
    same(asked(folder, path, capsys), [expected[i] for i in order])


def test_gaps_and_new_categories_stay_in_their_rows(table, tmp_path, capsys):
    folder, names, rows = table
    expected = asked(folder, folder / "table.csv", capsys)
    changed = [list(row) for row in rows]
    changed[3][names.index("shop")] = "west"
    for place in range(1, len(names) - 1):
        changed[5][place] = ""
    found = asked(folder, written(tmp_path / "a.csv", names, changed), capsys)
    rest = [i for i in range(ROWS) if i not in (3, 5)]
    same([found[i] for i in rest], [expected[i] for i in rest])
    for i in (3, 5):
        same(asked(folder, written(tmp_path / "one.csv", names, [changed[i]]), capsys), [found[i]])
