"""`wl.vmap`: one example at a time in the code, all of them at once in the machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.transforms.counting import operations
from wonderland.errors import AxisError, InputError, ShapeError, TraceError

rng = np.random.default_rng(0)


def f64(*shape: int) -> wl.Tensor:
    return wl.asarray(rng.normal(size=shape))


def test_mapped_and_shared_arguments() -> None:
    W, X, b = f64(3, 2), f64(5, 3), f64(5, 2)
    got = wl.vmap(lambda W, x, b: x @ W + b, in_axes=(None, 0, 0))(W, X, b)
    np.testing.assert_allclose(got, X.numpy() @ W.numpy() + b.numpy(), rtol=1e-14)


@pytest.mark.parametrize("in_axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("out_axis", [0, 1, -1])
def test_axes(in_axis: int, out_axis: int) -> None:
    x = f64(2, 3, 4)
    got = wl.vmap(lambda row: row * 2, in_axes=in_axis, out_axes=out_axis)(x)
    np.testing.assert_allclose(got, 2 * np.moveaxis(x.numpy(), in_axis, out_axis), rtol=1e-15)


def test_trees_of_arguments_axes_and_results() -> None:
    p = {"W": f64(4, 3), "b": f64(2, 4)}
    f = lambda p, x: {"y": p["W"] @ x, "b": (p["b"], x.sum())}
    got = wl.vmap(f, in_axes=({"W": None, "b": 1}, 0), out_axes={"y": 1, "b": 0})(p, f64(4, 3))
    assert got["y"].shape == (4, 4)
    assert got["b"][0].shape == (4, 2)
    assert got["b"][1].shape == (4,)
    np.testing.assert_array_equal(got["b"][0], p["b"].mT)


def test_keyword_arguments_are_mapped_over_their_first_axis() -> None:
    got = wl.vmap(lambda x, *, scale: x * scale)(wl.ones((3, 2)), scale=wl.arange(3.0))
    np.testing.assert_array_equal(got, [[0, 0], [1, 1], [2, 2]])


def test_results_that_do_not_depend_on_the_batch() -> None:
    got = wl.vmap(lambda x: (x, wl.ones(2), 3.0), out_axes=(0, 1, None))(wl.zeros(4))
    assert [g.shape for g in got] == [(4,), (2, 4), ()]


def test_axis_size_without_mapped_arguments() -> None:
    assert wl.vmap(lambda: wl.ones(2), axis_size=3)().shape == (3, 2)


def test_empty_batch() -> None:
    got = wl.vmap(lambda x: wl.softmax(x) @ x)(wl.ones((0, 3)))
    assert got.shape == (0,)
    assert wl.vmap(wl.grad(lambda x: (x**2).sum()))(wl.ones((0, 3))).shape == (0, 3)


def test_nested() -> None:
    A, B = f64(3, 4), f64(5, 4)
    pairs = wl.vmap(wl.vmap(lambda a, b: a @ b, in_axes=(None, 0)), in_axes=(0, None))(A, B)
    np.testing.assert_allclose(pairs, A.numpy() @ B.numpy().T, rtol=1e-13)
    swapped = wl.vmap(lambda a: wl.vmap(lambda b: a @ b)(B), out_axes=1)(A)
    np.testing.assert_allclose(swapped, B.numpy() @ A.numpy().T, rtol=1e-13)


@pytest.mark.book("6-84", name="wl.vmap")
def test_per_example_gradients_equal_a_loop() -> None:
    loss = lambda w, x, y: (wl.tanh(x @ w["W"]) @ w["v"] - y) ** 2
    w = {"W": f64(3, 4), "v": f64(4)}
    X, Y = f64(6, 3), f64(6)
    together = wl.vmap(wl.grad(loss), in_axes=(None, 0, 0))(w, X, Y)
    for i in range(6):
        alone = wl.grad(loss)(w, X[i], Y[i])
        for key in w:
            np.testing.assert_allclose(together[key][i], alone[key], rtol=1e-12)
    mean = wl.grad(lambda w: wl.vmap(loss, in_axes=(None, 0, 0))(w, X, Y).mean())(w)
    for key in w:
        np.testing.assert_allclose(mean[key], together[key].mean(axis=0), rtol=1e-12)


def test_the_number_of_operations_does_not_depend_on_the_batch() -> None:
    f = wl.vmap(wl.grad(lambda x: wl.logsumexp(x) * x[0]))

    def cost(n: int) -> int:
        with operations() as counted:
            f(wl.ones((n, 3)))
        return counted.total()

    assert cost(2) == cost(200)


def test_indexing_with_mapped_positions() -> None:
    x, i = f64(4, 5), wl.asarray(rng.integers(-5, 5, size=4))
    np.testing.assert_array_equal(wl.vmap(lambda row, i: row[i])(x, i), x.numpy()[np.arange(4), i.numpy()])
    np.testing.assert_array_equal(wl.vmap(lambda i: x[0, i])(i), x.numpy()[0, i.numpy()])
    placed = wl.vmap(lambda row, i: row.at[i].set(0.0))(x, i)
    want = x.numpy().copy()
    want[np.arange(4), i.numpy()] = 0
    np.testing.assert_array_equal(placed, want)


def test_python_control_flow_on_a_batch_is_refused() -> None:
    with pytest.raises(TraceError, match="stands for many values"):
        wl.vmap(lambda x: x if x > 0 else -x)(wl.ones(3))
    with pytest.raises(TraceError, match="stands for many values"):
        wl.vmap(lambda x: wl.asarray(np.sin(np.asarray(x))))(wl.ones(3))
    np.testing.assert_array_equal(wl.vmap(lambda x: wl.where(x > 0, x, -x))(wl.tensor([1.0, -2.0])), [1.0, 2.0])


def test_control_flow_on_what_is_not_batched_works() -> None:
    f = lambda x, flag: x * 2 if flag > 0 else x
    np.testing.assert_array_equal(wl.vmap(f, in_axes=(0, None))(wl.ones(2), wl.tensor(1.0)), [2.0, 2.0])


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: wl.vmap(lambda x, y: x)(wl.ones(2), wl.ones(3)),
            ShapeError,
            "different sizes: 2 from .*, 3 from",
        ),
        (
            lambda: wl.vmap(lambda x: x)(wl.tensor(1.0)),
            AxisError,
            r"axis 0 of a tensor of shape \(\) cannot be mapped",
        ),
        (lambda: wl.vmap(lambda x: x, in_axes=2)(wl.ones((2, 2))), AxisError, "axis 2"),
        (lambda: wl.vmap(lambda x: x, in_axes=None)(wl.ones(2)), InputError, "no argument is mapped"),
        (lambda: wl.vmap(lambda x: x, in_axes=(0, 0))(wl.ones(2)), InputError, "2 entries for 1 arguments"),
        (
            lambda: wl.vmap(lambda x: x, in_axes=({"a": 0},))({"b": wl.ones(2)}),
            InputError,
            "does not match the structure",
        ),
        (
            lambda: wl.vmap(lambda x: x, out_axes=None)(wl.ones(2)),
            InputError,
            "differs from example to example",
        ),
        (lambda: wl.vmap(lambda x: "text")(wl.ones(2)), InputError, "returned a str"),
        (lambda: wl.vmap(lambda x: x, axis_size=3)(wl.ones(2)), ShapeError, "different sizes"),
    ],
)
def test_bad_calls_explain_themselves(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_value_that_escapes_is_reported() -> None:
    kept: list[Any] = []
    wl.vmap(lambda x: kept.append(x) or x)(wl.ones(2))
    with pytest.raises(TraceError, match="outside the Batch transformation"):
        kept[0] + 1


def test_linear_algebra_in_a_batch() -> None:
    A, b = f64(4, 3, 3) + 3 * wl.eye(3, dtype=wl.float64), f64(4, 3)
    got = wl.vmap(wl.linalg.solve)(A, b)
    np.testing.assert_allclose(got, np.linalg.solve(A.numpy(), b.numpy()[..., None])[..., 0], rtol=1e-12)


def test_axes_of_dicts_with_keys_that_have_no_order() -> None:
    tree = {1: wl.asarray(np.arange(3.0)), "a": wl.asarray(np.arange(6.0).reshape(2, 3))}
    out = wl.vmap(lambda d: d[1] + d["a"].sum(), in_axes=({1: 0, "a": 1},))(tree)
    np.testing.assert_array_equal(np.asarray(out), np.arange(3.0) + np.arange(6.0).reshape(2, 3).sum(axis=0))
