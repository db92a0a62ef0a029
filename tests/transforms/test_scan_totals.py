"""Adjoints of what every step of a scan reads: one product after the loop, and the same as a loop written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.ir.graph import Equation


def unrolled(f: Callable[..., Any], init: Any, xs: Any, reverse: bool = False) -> tuple[Any, Any]:
    """A scan as a Python loop over indexed values: nothing of scan's rules takes part."""
    n, carry, ys = wl.tree.leaves(xs)[0].shape[0], init, {}
    for i in range(n)[:: -1 if reverse else 1]:
        carry, ys[i] = f(carry, wl.tree.map(lambda x, i=i: x[i], xs))
    return carry, wl.stack([ys[i] for i in range(n)])


def normal(*shape: int, seed: int = 0, dtype: Any = np.float64) -> wl.Tensor:
    x = np.random.default_rng(seed).normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * np.random.default_rng(seed + 100).normal(size=shape)
    return wl.asarray(x.astype(dtype))


def plain(p: Any, h: Any, x: Any) -> Any:
    return wl.tanh(h @ p["w"] + x @ p["u"] + p["b"])


def twice(p: Any, h: Any, x: Any) -> Any:
    """A weight that two products and a sum share."""
    return wl.tanh(wl.tanh(h @ p["w"]) @ p["w"] + x @ p["u"] + p["b"]) + 0.1 * p["w"].sum()


def turned(p: Any, h: Any, x: Any) -> Any:
    """A weight that is reshaped and transposed in the loop."""
    return wl.tanh(h @ p["w"].mT + x @ p["u"].reshape(-1).reshape(3, 4) + p["b"][None] * h)


def gated(p: Any, h: Any, x: Any) -> Any:
    return h + wl.sigmoid(x @ p["u"]) * (wl.tanh(h @ p["w"] + p["b"]) - h)


STEPS = [plain, twice, turned, gated]


def loss(step: Any, loop: Any, p: Any, h: Any, xs: Any, *, reverse: bool = False) -> Any:
    def body(h: Any, x: Any) -> Any:
        h = step(p, h, x)
        return h, h * h

    last, ys = loop(body, h, xs, reverse=reverse)
    return (ys * wl.arange(ys.shape[0]).reshape(-1, *[1] * (ys.ndim - 1))).sum() + last.sum()


def operands(batch: tuple[int, ...] = (2,), steps: int = 5, dtype: Any = np.float64) -> tuple[Any, Any, Any]:
    p = {"w": normal(4, 4, seed=1, dtype=dtype) / 2, "u": normal(3, 4, seed=2, dtype=dtype)}
    p["b"] = normal(4, seed=3, dtype=dtype)
    return p, normal(*batch, 4, seed=4, dtype=dtype), normal(steps, *batch, 3, seed=5, dtype=dtype)


def assert_same(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    for a, b in zip(wl.tree.leaves(found), wl.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.astype(wl.float64), b.astype(wl.float64), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("step", STEPS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_the_loop_written_out(step: Any, backend: str, reverse: bool) -> None:
    for batch in ((2,), (1,), (3, 2)):
        args = operands(batch)
        expected = wl.grad(lambda *a: loss(step, unrolled, *a, reverse=reverse), (0, 1, 2))(*args)
        with wl.using_backend(backend):
            assert_same(
                wl.jit(wl.grad(lambda *a: loss(step, wl.scan, *a, reverse=reverse), (0, 1, 2)))(*args), expected
            )


@pytest.mark.parametrize("steps", [1, 2, 300])
def test_any_number_of_steps(steps: int) -> None:
    args = operands(steps=steps)
    expected = wl.grad(lambda *a: loss(gated, unrolled, *a), (0, 1, 2))(*args)
    assert_same(wl.jit(wl.grad(lambda *a: loss(gated, wl.scan, *a), (0, 1, 2)))(*args), expected, 1e-8)


def test_no_steps() -> None:
    args = operands(steps=0)
    p, h, xs = wl.jit(wl.grad(lambda *a: loss(plain, wl.scan, *a), (0, 1, 2)))(*args)
    assert all(not g.numpy().any() for g in wl.tree.leaves(p))
    assert xs.shape == (0, 2, 3)
    np.testing.assert_array_equal(h, np.ones((2, 4)))


@pytest.mark.parametrize("step", STEPS, ids=lambda f: f.__name__)
def test_derivatives_of_derivatives(step: Any) -> None:
    p, h, xs = operands(steps=3)

    def second(loop: Any) -> Any:
        slope = wl.grad(lambda p: loss(step, loop, p, h, xs))
        squares = wl.grad(lambda p: sum((g * g).sum() for g in slope(p).values()))
        return squares(p), wl.jvp(slope, (p,), (wl.tree.map(wl.ones_like, p),))[1]

    assert_same(wl.jit(lambda: second(wl.scan))(), second(unrolled), 1e-8)


def test_batches() -> None:
    p, h, xs = operands()
    weights = wl.tree.map(lambda w: wl.stack([w, -w, 2 * w]), p)

    def gradients(loop: Any) -> Any:
        return lambda p, h, xs: wl.grad(lambda p: loss(twice, loop, p, h, xs))(p)

    per_weight = wl.vmap(gradients(wl.scan), in_axes=(0, None, None))
    assert_same(
        wl.jit(per_weight)(weights, h, xs), wl.vmap(gradients(unrolled), in_axes=(0, None, None))(weights, h, xs)
    )
    starts = wl.stack([h, -h])
    of_batch = wl.jit(wl.grad(lambda p: wl.vmap(lambda h: loss(gated, wl.scan, p, h, xs))(starts).sum()))
    one_by_one = wl.grad(lambda p: sum(loss(gated, unrolled, p, start, xs) for start in starts))
    assert_same(of_batch(p), one_by_one(p))


@pytest.mark.parametrize(
    "dtype, tolerance", [(wl.float32, 1e-4), (wl.bfloat16, 0.1), (wl.float16, 0.02), (wl.complex128, 1e-9)]
)
def test_dtypes(dtype: Any, tolerance: float) -> None:
    given = operands(dtype=np.complex128 if dtype == wl.complex128 else np.float64)
    args = [wl.tree.map(lambda x: x.astype(dtype), a) for a in given]

    def body(p: Any, h: Any, x: Any) -> Any:
        return 0.5 * (h @ p["w"]) * (x @ p["u"]) + p["b"]

    def total(loop: Any) -> Any:
        def f(*a: Any) -> Any:
            found = loss(body, loop, *a)
            return found.real if found.dtype == wl.complex128 else found

        return wl.grad(f, (0, 1, 2))

    expected = total(unrolled)(*args)
    for backend in ("numpy", "native"):
        with wl.using_backend(backend):
            for a, b in zip(wl.tree.leaves(wl.jit(total(wl.scan))(*args)), wl.tree.leaves(expected), strict=True):
                assert a.dtype == b.dtype
                wide = wl.complex128 if dtype == wl.complex128 else wl.float64
                x, y = a.astype(wide).numpy(), b.astype(wide).numpy()
                assert np.abs(x - y).max() <= tolerance * np.abs(y).max()


def scans(f: Any, *args: Any) -> list[Equation]:
    return [e for e in wl.make_graph(f)(*args).equations if e.primitive.name == "scan"]


def test_the_loop_backwards_carries_no_sums_of_weights() -> None:
    args = operands(batch=(8,))
    backwards = scans(wl.grad(lambda *a: loss(gated, wl.scan, *a), (0, 1, 2)), *args)[1]
    assert backwards.params["carry"] == 1  # the state's adjoint
    assert sum(e.primitive.name == "matmul" for e in backwards.params["body"].equations) == 2


def test_what_would_take_more_memory_than_was_kept_is_added_up_in_the_loop() -> None:
    """The adjoint of a wide read-out is much larger than what the steps keep for it."""
    w, fixed, xs = normal(2, 30), normal(20, 30, seed=1), normal(6, 2, seed=2)

    def total(loop: Any) -> Any:
        def f(w: Any, xs: Any) -> Any:
            def body(h: Any, x: Any) -> Any:
                h = wl.tanh(h + x)
                return h, ((wl.broadcast_to(h, (20, 2)) @ w) * fixed).sum()

            return loop(body, wl.zeros(2, dtype=wl.float64), xs)[1].sum()

        return wl.grad(f, (0, 1))

    assert_same(wl.jit(total(wl.scan))(w, xs), total(unrolled)(w, xs))
    carried = scans(total(wl.scan), w, xs)[1]
    n = carried.params["consts"]
    assert (2, 30) in [v.shape for v in carried.params["body"].inputs[n : n + carried.params["carry"]]]
