"""The record of predictions and the tables that are made of it."""

from __future__ import annotations

import csv
import io
import json
import sys
import types

import numpy as np
import pytest

from wonderland.errors import FileError, InputError
from wonderland.recipes import Predictions
from wonderland.recipes.predictions import short

CHANCES = np.array([[0.7, 0.2, 0.1], [0.1, 0.45, 0.45], [0.0, 0.0, 1.0]], np.float32)
NAMES = ("a,b", 'say "c"', "<d>")


@pytest.fixture
def classes():
    return Predictions.of(CHANCES, NAMES, ids=["x.png", "y.png", "z.png"], id_name="file", notes=["one & all"])


def test_classes_come_with_confidence_and_probabilities(classes):
    assert classes.predictions == [NAMES[i] for i in CHANCES.argmax(-1)]
    np.testing.assert_array_equal(classes.confidence, CHANCES.max(-1))
    np.testing.assert_array_equal(np.stack(list(classes.probabilities.values()), 1), CHANCES)
    assert len(classes) == 3
    assert classes[1]["prediction"] == NAMES[1]
    assert [row["file"] for row in classes] == ["x.png", "y.png", "z.png"]
    assert repr(classes) == 'Predictions(3: a,b, say "c", <d>)'


def test_csv_is_what_a_reader_of_csv_reads(classes):
    rows = list(csv.DictReader(io.StringIO(classes.to_csv(probabilities=True))))
    assert list(rows[0]) == ["file", "prediction", "confidence", *(f"probability of {name}" for name in NAMES)]
    assert [row["prediction"] for row in rows] == classes.predictions
    assert [np.float32(row["confidence"]) for row in rows] == CHANCES.max(-1).tolist()  # nothing is lost
    assert next(csv.DictReader(io.StringIO(classes.to_csv()))).keys() == {"file", "prediction", "confidence"}


def test_json_is_valid_also_where_numbers_are_not_finite():
    found = Predictions.of(np.array([1.5, np.nan, np.inf], np.float32))
    assert json.loads(found.to_json(), parse_constant=pytest.fail) == [
        {"prediction": 1.5},
        {"prediction": None},
        {"prediction": None},
    ]
    lines = found.to_json(lines=True).splitlines()
    assert [json.loads(line) for line in lines] == json.loads(found.to_json())
    assert found.to_csv() == 'prediction\n1.5\n""\n""\n'


def test_several_numbers_have_columns_with_names():
    numbers = np.arange(4.0).reshape(2, 2)
    assert list(Predictions.of(numbers, outputs=("u", "v")).to_dict()) == ["prediction of u", "prediction of v"]
    assert Predictions.of(numbers).to_dict() == {"prediction_0": [0.0, 2.0], "prediction_1": [1.0, 3.0]}
    np.testing.assert_array_equal(Predictions.of(numbers).values, numbers)
    assert Predictions.of(numbers[:, :1]).predictions == [0.0, 2.0]


def test_a_threshold_moves_the_border_of_two_classes():
    p = np.linspace(0, 1, 11)
    found = Predictions.of(np.stack([1 - p, p], 1), ("no", "yes"))
    for threshold in (0.05, 0.25, 0.75):
        moved = found.decided(threshold)
        assert moved.predictions == ["yes" if q >= threshold else "no" for q in p]
        np.testing.assert_allclose(moved.confidence, np.where(p >= threshold, p, 1 - p))
    with pytest.raises(InputError, match="between 0 and 1"):
        found.decided(1.5)
    with pytest.raises(InputError, match="3 classes"):
        Predictions.of(CHANCES, NAMES).decided(0.5)
    with pytest.raises(InputError, match="no classes"):
        Predictions.of(p).decided(0.5)


def test_html_is_escaped_and_short(classes):
    page = classes._repr_html_()
    assert "&lt;d&gt;" in page
    assert "<d>" not in page
    assert "one &amp; all" in page
    assert Predictions.of(np.zeros(1000))._repr_html_().count("<tr>") == 21


def test_files_are_written_by_their_ending_or_not_at_all(classes, tmp_path):
    classes.write(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == classes.to_csv()
    classes.write(tmp_path / "a.json")
    assert len(json.loads((tmp_path / "a.json").read_text())) == 3
    classes.write(tmp_path / "a.jsonl", probabilities=True)
    assert json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0])["probability of <d>"] == 0.1
    with pytest.raises(InputError, match=r"one of \.csv"):
        classes.write(tmp_path / "a.xlsx")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileError, match=r"folder\.csv"):
        classes.write(tmp_path / "folder.csv")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "a.json", "a.jsonl", "folder.csv"]


def test_parquet_and_pandas(classes, tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    classes.write(tmp_path / "a.parquet")
    assert parquet.read_table(tmp_path / "a.parquet").to_pydict()["prediction"] == classes.predictions
    stand_in = types.ModuleType("pandas")
    stand_in.DataFrame = dict
    monkeypatch.setitem(sys.modules, "pandas", stand_in)
    assert classes.to_pandas()["file"] == ["x.png", "y.png", "z.png"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pandas is not installed"):
        classes.to_pandas()


def test_numbers_are_short_and_exact():
    rng = np.random.default_rng(1)
    values = (rng.normal(size=2000) * 10.0 ** rng.integers(-30, 30, 2000)).astype(np.float32)
    found = short(values)
    np.testing.assert_array_equal(np.array(found).astype(np.float32), values)
    assert short(np.array([0.1, 0.7, 361291.12, -0.0], np.float32)) == [0.1, 0.7, 361291.12, 0.0]


def test_a_row_of_many():
    many = Predictions.of(np.arange(10.0), ids=list("abcdefghij"), id_name="node")
    assert many[-1] == {"node": "j", "prediction": 9.0}
    assert many.part(slice(2, 4)).predictions == [2.0, 3.0]
    with pytest.raises(IndexError):
        many[10]
