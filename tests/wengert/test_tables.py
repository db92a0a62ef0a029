"""Tables, data for machines, and the picture of a trace."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import wonderland as wl
from wonderland import wengert
from wonderland.wengert.tables import lined_up


def slides_example():
    return wengert.trace("log(x1) + x1*x2 - sin(x2)", x1=2, x2=5)


@pytest.mark.book("S-06", name="wl.wengert.Trace.table")
def test_the_whole_table_of_the_slides_example():
    expected = """\
y = log(x1) + x1*x2 - sin(x2)

Primal trace
  x1              2
  x2              5
  v1 = log(x1)    0.6931
  v2 = x1 * x2   10
  v3 = sin(x2)   -0.9589
  v4 = v1 + v2   10.69
  v5 = v4 - v3   11.65
  y  = v5        11.65

Tangent trace (forward mode)
                        d/dx1   d/dx2
  dx1                   1       0
  dx2                   0       1
  dv1 = 0.5 dx1         0.5     0
  dv2 = 5 dx1 + 2 dx2   5       2
  dv3 = 0.2837 dx2      0       0.2837
  dv4 = dv1 + dv2       5.5     2
  dv5 = dv4 - dv3       5.5     1.716

Adjoint trace (reverse mode)
  step           contribution                          adjoint so far
  start          adj v5 = 1                            adj v5 =  1
  v5 = v4 - v3   adj v4 += adj v5 * 1 = 1              adj v4 =  1
                 adj v3 += adj v5 * (-1) = -1          adj v3 = -1
  v4 = v1 + v2   adj v1 += adj v4 * 1 = 1              adj v1 =  1
                 adj v2 += adj v4 * 1 = 1              adj v2 =  1
  v3 = sin(x2)   adj x2 += adj v3 * 0.2837 = -0.2837   adj x2 = -0.2837
  v2 = x1 * x2   adj x1 += adj v2 * 5 = 5              adj x1 =  5
                 adj x2 += adj v2 * 2 = 2              adj x2 =  1.716
  v1 = log(x1)   adj x1 += adj v1 * 0.5 = 0.5          adj x1 =  5.5

Gradient
  dy/dx1   5.5
  dy/dx2   1.716"""
    assert slides_example().table(precision=4) == expected


def test_parts_can_be_left_out():
    trace = slides_example()
    assert "Tangent" not in trace.table(forward=False)
    assert "Adjoint" not in trace.table(reverse=False)
    assert str(trace) == trace.table(forward=False, reverse=False)


def test_precision_is_in_significant_digits():
    assert "0.693147180559945" in slides_example().table(precision=15)
    assert "  0.7\n" in slides_example().table(precision=1)


def test_large_tensors_are_shown_by_shape_and_small_ones_by_value():
    x, w = np.ones((5, 3)), np.ones((3, 2))
    table = wengert.trace(lambda x, w: (x @ w).sum(axis=0).sum(), x, w).table()
    lines = [" ".join(line.split()) for line in table.splitlines()]
    assert "v1 = x @ w float64[5, 2]" in lines
    assert "v2 = sum(v1, axes=(0,)) [15, 15]" in lines
    assert "no scalar input" in table


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda x: -x, "-x"),
        (lambda x: x**2, "x ** 2"),
        (lambda x: x**3, "x ** 3"),
        (lambda x: 1 / x, "1 / x"),
        (lambda x: wl.where(x > 0, x, 0.0), "where(v1, x, 0)"),
        (lambda x: x.reshape(1, 1), "reshape(x, shape=(1, 1))"),
    ],
)
def test_expressions(f, text):
    assert wengert.trace(f, 2.0).steps[-1].expression == text


def test_results_that_are_no_scalar_and_no_inputs():
    assert "trace.adjoints(seed)" in wengert.trace(lambda x: (x, x), 1.0).table()
    assert "no inputs" in wengert.trace("3").table()


def test_decimal_points_line_up():
    assert lined_up(["1", "-12.5", "3.25", "1e-05", "[1, 2]", "inf"]) == [
        "  1",
        "-12.5",
        "  3.25",
        "  1e-05",
        "[1, 2]",
        "inf",
    ]


def test_negative_zero_and_negative_factors():
    table = wengert.trace("-x*0 + cos(y)*(-2)", x=1.0, y=0.0).table()
    assert "-0 " not in table
    assert "dv4 = -2 dv2" in table


def test_data_is_json_and_says_the_same():
    trace = slides_example()
    data = json.loads(json.dumps(trace.data(), allow_nan=False))
    assert data["formula"] == "log(x1) + x1*x2 - sin(x2)"
    assert data["inputs"] == {"x1": 2.0, "x2": 5.0}
    assert [step["expression"] for step in data["steps"]] == [
        "log(x1)",
        "x1 * x2",
        "sin(x2)",
        "v1 + v2",
        "v4 - v3",
    ]
    assert data["outputs"] == ["v5"]
    assert data["values"] == [trace.value.item()]
    assert data["tangents"]["x1"]["v4"] == 5.5
    assert data["gradient"] == {"x1": 5.5, "x2": trace.adjoints()["x2"].item()}
    assert data["contributions"][0] == {
        "step": "v5",
        "target": "v4",
        "partial": 1.0,
        "value": 1.0,
        "total": 1.0,
    }
    assert "tangents" not in trace.data(forward=False)
    assert "adjoints" not in trace.data(reverse=False)


def test_infinities_become_text_in_data():
    data = wengert.trace("sqrt(x)", x=0.0).data()
    assert data["gradient"] == {"x": "inf"}
    json.dumps(data, allow_nan=False)


@pytest.mark.book("6-53", name="wl.wengert.Trace.svg")
def test_the_picture_has_a_card_with_value_and_adjoint_for_every_value_and_an_arrow_for_every_use():
    trace = slides_example()
    root = ET.fromstring(trace.svg())
    texts = ["".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "v2  x1 * x2" in texts
    assert texts.count("adjoint") == len(trace.values) == 7
    assert {"0.6931", "10", "-0.9589", "10.69", "11.65", "5.5", "1.716"} <= set(texts)
    arrows = [p for p in root.iter("{http://www.w3.org/2000/svg}path") if p.get("class") == "edge"]
    assert len(arrows) == sum(len(step.uses) for step in trace.steps) == 8


def test_pictures_of_results_that_are_no_scalar_show_values_only():
    svg = wengert.trace(lambda x: (x, 2 * x), 1.0).svg()
    assert "value" in svg
    assert "adjoint" not in svg
    assert "adjoint" not in slides_example().svg(adjoints=False)
