"""Every bad call raises an error of the family that names the function, what it received and the remedy."""

from __future__ import annotations

import pytest

import wonderland as wl

E = wl.errors
R = wl.random
NAN = float("nan")

BAD = [
    (lambda: R.uniform((2,), 1.0, 1.0), E.InputError, "uniform: low=1.0 is not below high=1.0", "low < high"),
    (lambda: R.uniform((2,), 0.999, 1.0, dtype=wl.bfloat16), E.InputError, "uniform: low=1", "low < high"),
    (
        lambda: R.uniform((2,), wl.tensor([0.0, 2.0]), 1.0),
        E.InputError,
        "uniform: low=tensor of shape",
        "low < high",
    ),
    (lambda: R.uniform((2,), 0.0, NAN), E.InputError, "uniform", "low < high"),
    (lambda: R.uniform((2,), 0.0, float("inf")), E.InputError, "uniform: high - low is inf", "range"),
    (lambda: R.uniform((2,), -6e4, 6e4, dtype=wl.float16), E.InputError, "uniform: high - low", "float16"),
    (
        lambda: R.uniform((2,), dtype=wl.int32),
        E.DTypeError,
        "uniform: draws floating-point numbers, not int32",
        "float32",
    ),
    (lambda: R.normal((2,), 0.0, -1.0), E.InputError, "normal: std is -1.0", "std >= 0"),
    (lambda: R.normal((2,), 0.0, wl.tensor([1.0, -2.0])), E.InputError, "normal: std is -2.0", "std >= 0"),
    (lambda: R.normal((2,), 0.0, NAN), E.InputError, "normal: std is nan", "std >= 0"),
    (lambda: R.normal((2,), 1j), E.DTypeError, "normal: a parameter is complex", "real"),
    (lambda: R.normal((2,), 0.0, "a"), E.DTypeError, "normal: an operand of type str", "tensor"),
    (lambda: R.normal((2,), "a"), E.DTypeError, "normal: an operand of type str", "tensor"),
    (lambda: R.normal((2,), dtype=wl.complex64), E.DTypeError, "normal", "float32"),
    (lambda: R.normal((-1,)), E.ShapeError, "normal: the shape (-1,) has a negative size", "0 or more"),
    (lambda: R.normal((2.5,)), E.ShapeError, "normal: (2.5,) is not a shape", "integers"),
    (lambda: R.normal((1 << 40, 1 << 10)), E.SizeError, "normal: a float32 tensor", "smaller"),
    (lambda: R.normal((2,), wl.zeros(3)), E.ShapeError, "normal: shapes (2,) and (3,)", "size"),
    (lambda: R.normal((3,), wl.zeros((2, 3))), E.ShapeError, "normal: parameters of shape (2, 3)", "shape"),
    (lambda: R.truncated_normal((2,), 2.0, -2.0), E.InputError, "truncated_normal: low=2.0", "low < high"),
    (lambda: R.truncated_normal((2,), std=0.0), E.InputError, "truncated_normal: std is 0.0", "std > 0"),
    (lambda: R.truncated_normal((2,), 8.0, 9.0), E.InputError, "truncated_normal: the probability", "wider"),
    (lambda: R.exponential((2,), -1.0), E.InputError, "exponential: scale is -1.0", "scale >= 0"),
    (lambda: R.gumbel((2,), 0.0, -1.0), E.InputError, "gumbel: scale is -1.0", "scale >= 0"),
    (lambda: R.laplace((2,), 0.0, -1.0), E.InputError, "laplace: scale is -1.0", "scale >= 0"),
    (lambda: R.logistic((2,), 0.0, -1.0), E.InputError, "logistic: scale is -1.0", "scale >= 0"),
    (lambda: R.cauchy((2,), 0.0, -1.0), E.InputError, "cauchy: scale is -1.0", "scale >= 0"),
    (lambda: R.gamma((2,), 0.0), E.InputError, "gamma: a concentration is 0.0", "above 0"),
    (lambda: R.gamma((2,), 1.0, -1.0), E.InputError, "gamma: scale is -1.0", "scale >= 0"),
    (lambda: R.beta((2,), 1.0, -1.0), E.InputError, "beta: a concentration is -1.0", "above 0"),
    (lambda: R.dirichlet([1.0, 0.0]), E.InputError, "dirichlet: a concentration is 0.0", "above 0"),
    (lambda: R.dirichlet(1.0), E.ShapeError, "dirichlet: a concentration of shape ()", "(..., k)"),
    (lambda: R.randint((2,), 3, 3), E.InputError, "randint: low=3 is not below high=3", "low < high"),
    (lambda: R.randint((2,), 0), E.InputError, "randint: low=0 is not below high=0", "low < high"),
    (lambda: R.randint((2,), 0.0, 3.0), E.DTypeError, "randint: a bound is float", "integer bounds"),
    (lambda: R.randint((2,), 0, 300, dtype=wl.uint8), E.InputError, "randint: high is 300", "at most 256"),
    (lambda: R.randint((2,), -1, 3, dtype=wl.uint8), E.InputError, "randint: low is -1", "at least 0"),
    (lambda: R.randint((2,), -(2**63), 2**63), E.InputError, "randint: the range", "2**64 - 1"),
    (lambda: R.randint((2,), 0, 3, dtype=wl.float32), E.DTypeError, "randint: draws integers", "int64"),
    (lambda: R.bernoulli((2,), 1.5), E.InputError, "bernoulli: p is 1.5", "0 to 1"),
    (lambda: R.bernoulli((2,), wl.tensor([0.5, -0.1])), E.InputError, "bernoulli: p is -0.1", "0 to 1"),
    (lambda: R.rademacher((2,), dtype=wl.uint8), E.DTypeError, "rademacher: uint8 cannot hold -1", "signed"),
    (lambda: R.categorical(wl.zeros((2, 0))), E.InputError, "categorical: axis -1", "at least one"),
    (
        lambda: R.categorical(wl.tensor([NAN, 0.0])),
        E.InputError,
        "categorical: some logits are NaN",
        "finite",
    ),
    (lambda: R.categorical(wl.full((3,), -float("inf"))), E.InputError, "categorical: some logits", "finite"),
    (lambda: R.categorical(wl.zeros(3), axis=1), E.AxisError, "categorical: axis 1", "axis"),
    (lambda: R.poisson((2,), -1.0), E.InputError, "poisson: the rate is -1.0", "0 to 1e15"),
    (lambda: R.poisson((2,), 1e20), E.InputError, "poisson: the rate is 1e+20", "0 to 1e15"),
    (
        lambda: R.poisson((2,), 1.0, dtype=wl.bool),
        E.DTypeError,
        "poisson: counts do not fit into bool",
        "int64",
    ),
    (lambda: R.binomial((2,), -1, 0.5), E.InputError, "binomial: n is -1", "whole numbers"),
    (lambda: R.binomial((2,), 2.5, 0.5), E.InputError, "binomial: n is 2.5", "whole numbers"),
    (lambda: R.binomial((2,), 5, 2.0), E.InputError, "binomial: p is 2.0", "0 to 1"),
    (lambda: R.choice(0, (2,)), E.InputError, "choice: there are 0 elements", "at least one"),
    (lambda: R.choice(wl.zeros((0, 3)), (2,)), E.InputError, "choice: there are 0 elements", "at least one"),
    (lambda: R.choice(3, (4,), replace=False), E.InputError, "choice: 4 of 3 elements", "replace=True"),
    (
        lambda: R.choice(3, (2,), p=[0.5, 0.4, 0.3]),
        E.InputError,
        "choice: the probabilities sum to 1.2",
        "p / p.sum()",
    ),
    (lambda: R.choice(3, (2,), p=[0.5, 0.5]), E.ShapeError, "choice: probabilities of shape (2,)", "(3,)"),
    (
        lambda: R.choice(2, (2,), p=[1.5, -0.5]),
        E.InputError,
        "choice: a probability is negative",
        "0 or more",
    ),
    (lambda: R.choice(2, (2,), p=[1, 0]), E.DTypeError, "choice: probabilities of int64", "floating"),
    (
        lambda: R.choice(3, (2,), replace=False, p=[1.0, 0.0, 0.0]),
        E.InputError,
        "choice: 2 elements without replacement, but only 1",
        "smaller",
    ),
    (lambda: R.choice(wl.zeros(()), (2,)), E.AxisError, "choice: axis 0", "axis"),
    (lambda: R.permutation(-1), E.ShapeError, "permutation: the shape (-1,)", "0 or more"),
    (lambda: R.permutation(wl.zeros(3), axis=1), E.AxisError, "permutation: axis 1", "axis"),
    (lambda: R.permutation(2.5), E.AxisError, "permutation: axis 0", "axis"),
]


@pytest.mark.parametrize("call, error, message, remedy", BAD, ids=[b[2] for b in BAD])
def test_bad_call(call, error, message, remedy):
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert text.startswith(message)
    assert remedy in text.partition("try:")[2]


def test_a_refused_draw_leaves_the_stream_where_it_was():
    before = R.default_stream.value.tolist()
    for call, *_ in BAD:
        with pytest.raises(E.WonderlandError):
            call()
    assert R.default_stream.value.tolist() == before


def test_degenerate_but_legal():
    assert R.normal((3,), 2.0, 0.0).tolist() == [2.0] * 3
    assert R.exponential((2,), 0.0).tolist() == [0.0] * 2
    assert R.choice(0, (0,)).shape == (0,)
    assert R.permutation(0).shape == (0,)
    assert R.choice(3, (0,), replace=False).shape == (0,)
    assert R.categorical(wl.zeros((0, 3))).shape == (0,)
    assert R.poisson((0,), 5.0).shape == (0,)
    assert R.gamma((0,), 5.0).shape == (0,)
    assert R.uniform((2, 0)).shape == (2, 0)
