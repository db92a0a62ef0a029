"""Numbers with a unit behind them: one unit for a column, kept with the run."""

from __future__ import annotations

import numpy as np
import pytest

from wonderland.data.tables import read_table
from wonderland.data.tables.numbers import NumberEncoding, parse_numbers, unit_of
from wonderland.data.tables.schema import Schema, infer_schema


@pytest.mark.parametrize(
    ("texts", "unit"),
    [
        (["12 mm", "-3.5 mm", "1e-3 mm"], "mm"),
        (["5km/h", "120 km/h"], "km/h"),
        (["20 °C", "-3 °C"], "°C"),
        (["3 cm", "3 mm"], ""),  # which is the larger one, no number would say
        (["12 EUR", "7 EUR"], ""),  # currencies are read without it
        (["1st", "2nd", "3rd"], ""),
        (["ward 3", "ward 4"], ""),
        (["12", "13"], ""),
    ],
)
def test_the_unit_of_texts(texts, unit):
    assert unit_of(texts) == unit


def test_a_column_with_a_unit_is_the_column_without_it():
    rng = np.random.default_rng(0)
    x = rng.normal(50, 9, 80).round(1)
    y = (x > 50).astype(int).tolist()
    plain = read_table({"x": x, "y": y})
    written = read_table({"x": [f"{v} mm" for v in x], "y": y})
    schema = infer_schema(written, target="y")
    assert (schema["x"].kind, schema["x"].encoding.unit) == ("number", "mm")
    expected = infer_schema(plain, target="y").encode(plain).features
    np.testing.assert_allclose(schema.encode(written).features, expected)
    again = Schema.of_dict(schema.to_dict())
    np.testing.assert_allclose(again.encode(plain).features, expected)  # without the unit it is the same number


def test_another_unit_is_no_number():
    column = read_table({"x": ["1.5 kg", "2 kg", "3 kg"]})["x"]
    encoding = NumberEncoding.fit(column)
    out = np.empty((3, len(encoding.names("x"))), np.float32)
    notes = encoding.encode(read_table({"x": ["2 kg", "2 kg", "2 lb"]})["x"], out, lambda row: f"row {row}")
    assert "'2 lb'" in notes[0]
    assert np.isnan(parse_numbers(["2 lb"], unit="kg")).all()
