"""Formulas as text: what is read, what is refused and where, and the same numbers as Python's own."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland.wengert import Formula, FormulaError
from wonderland.wengert.formula import FUNCTIONS, UNARY


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2*3 - 4/8", 6.5),
        ("-2**2", -4.0),
        ("(-2)**2", 4.0),
        ("2**3**2", 512.0),
        ("2**-1", 0.5),
        ("-(3 - 5)", 2.0),
        ("+1", 1.0),
        ("7", 7.0),
        ("sin(pi/2) + ln(e)", 2.0),
        ("max(1, 3, 2) - min(4, 0.5, 2)", 2.5),
        ("  1 +\n 1 ", 2.0),
        ("hypot(3, 4) + pow(2, 3) + atan2(0, 1)", 13.0),
        ("1e-3 * 1_000", 1.0),
    ],
)
def test_arithmetic(text, expected):
    value = Formula(text)()
    assert value.dtype == wl.float64
    assert value.item() == pytest.approx(expected, rel=1e-15)


ORACLE = {name: getattr(math, name) for name in UNARY if hasattr(math, name)} | {
    "ln": math.log,
    "square": lambda x: x * x,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "relu": lambda x: max(x, 0.0),
    "softplus": lambda x: math.log(1 + math.exp(x)),
    "abs": abs,
    "sign": lambda x: math.copysign(1, x),
    "acosh": lambda x: math.acosh(1 + x),
}


@pytest.mark.parametrize("name", sorted(UNARY))
def test_every_function_of_one_argument(name):
    text = "acosh(1 + x)" if name == "acosh" else f"{name}(x)"
    assert Formula(text)(x=0.7).item() == pytest.approx(ORACLE[name](0.7), rel=1e-14)


def expressions():
    """Random formulas that are smooth and moderate wherever they are evaluated."""
    leaves = st.sampled_from(["x", "y", "2", "0.5", "pi"])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
            st.tuples(st.sampled_from(["sin", "cos", "tanh", "atan"]), inner).map(lambda t: f"{t[0]}({t[1]})"),
            inner.map(lambda t: f"-{t}"),
            inner.map(lambda t: f"({t})**2"),
            inner.map(lambda t: f"1/(1 + ({t})**2)"),
        ),
        max_leaves=8,
    )


@given(expressions(), st.floats(-2, 2), st.floats(-2, 2))
def test_equals_pythons_arithmetic(text, x, y):
    known = {name: getattr(math, name) for name in ("sin", "cos", "tanh", "atan", "pi")}
    oracle = eval(text, {"__builtins__": {}}, known | {"x": x, "y": y})
    formula = Formula(text)
    values = {name: value for name, value in {"x": x, "y": y}.items() if name in formula.names}
    assert formula(**values).item() == pytest.approx(oracle, rel=1e-9, abs=1e-9)


def test_names_in_order_of_appearance():
    assert Formula("b*a + b - sin(c)/pi").names == ("b", "a", "c")


def test_a_constant_can_be_given_another_value():
    assert Formula("2*e")(e=3.0).item() == 6.0


def test_tensors_work_element_by_element():
    x = wl.tensor([1.0, 2.0], dtype=wl.float64)
    assert Formula("x**2 + 1")(x=x).tolist() == [2.0, 5.0]


def test_is_differentiable():
    f = Formula("x**3 - 2*x")
    assert wl.grad(lambda x: f(x=x))(wl.tensor(2.0, dtype=wl.float64)).item() == 10.0


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("", "empty", None),
        ("x +", "syntax error", None),
        ("x + * y", "syntax error", 4),
        ("(x", "syntax error", None),
        ("2 x", "syntax error", None),
        ("x = 2", "syntax error", None),
        ("x ^ 2", "write a power as **", 2),
        ("(x)  % 2", "not supported", 4),
        ("~x", "not supported", 0),
        ("x + sine(x)", "did you mean sin?", 4),
        ("frobnicate(x)", "unknown function", 0),
        ("sin", "sin is a function", 0),
        ("sin(x, y)", "one argument, not 2", 0),
        ("sin()", "one argument, not 0", 0),
        ("max(x)", "two or more arguments, not 1", 0),
        ("pow(x, 2, 3)", "two arguments, not 3", 0),
        ("sin(x=1)", "no arguments by name", 0),
        ("max(*x, 1)", "only numbers, names", 4),
        ("x.real", "only numbers, names", 0),
        ("x[0]", "only numbers, names", 0),
        ("x if y else z", "only numbers, names", 0),
        ("x < 1", "only numbers, names", 0),
        ("(lambda: 1)()", "only numbers, names", None),
        ("[x for x in y]", "only numbers, names", 0),
        ("__import__('os').system('true')", "only numbers, names", None),
        ("__import__('os')", "unknown function", 0),
        ("'text'", "not a real number", 0),
        ("True", "not a real number", 0),
        ("2j", "not a real number", 0),
        ("x + 1e999", "too large", 4),
        ("x + 1" + "0" * 400, "too large", 4),
        ("é + ß ^ 2", "not supported", 6),
    ],
)
def test_what_cannot_be_read_is_refused_and_located(text, message, column):
    with pytest.raises(FormulaError) as caught:
        Formula(text)
    lines = caught.value.summary.split("\n")
    assert message in lines[0]
    if column is not None:
        assert lines[2].index("^") - 2 == column


@pytest.mark.parametrize(
    "text",
    ["(" * 5000 + "x" + ")" * 5000, "-" * 100_000 + "x", "+".join(["x"] * 100_000), "sin(" * 3000 + "x"],
)
def test_what_is_too_deep_is_refused_without_a_crash(text):
    with pytest.raises(FormulaError) as caught:
        Formula(text)
    assert len(caught.value.summary) < 400


@pytest.mark.parametrize(
    ("text", "values", "message", "column"),
    [
        ("log(x)", {"x": -1.0}, "log(x) with -1 is nan: outside the domain of log", 0),
        ("1 + log(0*x)", {"x": 1.0}, "is -inf: outside the domain of log", 4),
        ("2 * sqrt(x - 5)", {"x": 1.0}, "sqrt(x - 5) with -4 is nan", 4),
        ("1/(x - 2)", {"x": 2.0}, "1/(x - 2) with 1 and 0 is inf: a division by zero", 1),
        ("1/0", {}, "a division by zero", 1),
        ("0/0", {}, "a division by zero", 1),
        ("x**-1", {"x": 0.0}, "a division by zero", 1),
        ("x**0.5", {"x": -1.0}, "not a real number", 1),
        ("exp(x)", {"x": 1e3}, "too large for float64", 0),
        ("10**x", {"x": 400.0}, "too large for float64", 2),
        ("9**9**9**9", {}, "too large for float64", 4),
        ("x + y", {"x": 1.0}, "y has no value", 4),
        ("x", {"x": 1.0, "z": 1.0}, "z has a value but is not in the formula; it uses x", None),
        ("3", {"z": 1.0}, "it has no names", None),
        ("sin(x)", {"x": 1.0, "sin": 1.0}, "sin is a function", None),
    ],
)
def test_what_cannot_be_evaluated_is_refused_and_located(text, values, message, column):
    with pytest.raises(FormulaError) as caught:
        Formula(text)(**values)
    lines = caught.value.summary.split("\n")
    assert message in lines[0]
    assert len(lines) == 1 if column is None else lines[2].index("^") - 2 == column


def test_the_error_belongs_to_the_family():
    with pytest.raises(wl.errors.InputError, match="syntax error"):
        Formula("1 +")
    assert set(FUNCTIONS) >= {
        "log",
        "exp",
        "sin",
        "cos",
        "tan",
        "sqrt",
        "tanh",
        "sigmoid",
        "relu",
        "abs",
        "min",
        "max",
    }
