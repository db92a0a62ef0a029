"""Python inside programs: what is printed, called and computed, in every transformation and on both engines."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import GradientError, InputError, TreeError

ENGINES = ("numpy", "native")


@pytest.fixture(params=ENGINES, autouse=True)
def engine(request):
    with wl.using_backend(request.param):
        yield request.param


def test_print_shows_values_at_every_call(capsys):
    @wl.jit
    def f(x):
        wl.debug.print("sum {:.1f} of {name}", x.sum(), name="x")
        wl.debug.print("first {}", x[0])
        return x * 2

    f(wl.ones(3)), f(wl.zeros(3))
    assert capsys.readouterr().out == "sum 3.0 of x\nfirst tensor(1.)\nsum 0.0 of x\nfirst tensor(0.)\n"


def test_a_function_may_do_nothing_but_print(capsys):
    wl.jit(lambda x: wl.debug.print("{}", x))(wl.tensor(2.0))
    assert capsys.readouterr().out == "tensor(2.)\n"


def test_equal_prints_are_two(capsys):
    @wl.jit
    def f(x):
        wl.debug.print("here")
        wl.debug.print("here")
        return x

    f(wl.ones(1))
    assert capsys.readouterr().out == "here\nhere\n"


def test_loops_and_branches():
    seen: list[float] = []

    @wl.jit
    def f(x, n):
        def body(c, y):
            wl.debug.callback(lambda v: seen.append(v.item()), c * y)
            wl.debug.callback(lambda: seen.append(-1.0))  # the same in every turn, and in every turn
            return c + 1.0, c

        c, _ = wl.scan(body, 0.0, x)
        wl.cond(c > n, lambda: wl.debug.callback(seen.append, "above"), lambda: wl.debug.callback(seen.append, "below"))
        return c

    f(wl.tensor([1.0, 2.0, 3.0]), 2.0)
    assert seen == [0.0, -1.0, 2.0, -1.0, 6.0, -1.0, "above"]
    seen.clear()
    f(wl.tensor([1.0, 2.0, 3.0]), 5.0)
    assert seen[-1] == "below"


def test_derivatives_see_values_and_are_left_alone():
    seen: list[float] = []

    def f(x):
        y = wl.sin(x)
        wl.debug.callback(lambda v: seen.append(v.item()), y.sum())
        return (y * y).sum()

    x = wl.tensor([0.3, 1.2])
    expected = 2 * np.sin(x) * np.cos(x)
    for grad in (wl.grad(f), wl.jit(wl.grad(f)), wl.grad(wl.jit(f))):
        seen.clear()
        np.testing.assert_allclose(grad(x), expected, rtol=1e-5)
        np.testing.assert_allclose(seen, [np.sin(x).sum()], rtol=1e-5)

    def loop(x):
        def body(c, y):
            wl.debug.callback(lambda v: seen.append(v.item()), c)
            return c * y, None

        return wl.scan(body, wl.tensor(1.0), x)[0]

    seen.clear()
    np.testing.assert_allclose(wl.jit(wl.grad(loop))(wl.tensor([2.0, 3.0, 4.0])), [12.0, 8.0, 6.0])
    assert seen == [1.0, 2.0, 6.0]


def test_vmap_calls_for_every_example():
    seen: list[list[float]] = []

    def f(x, w):
        wl.debug.callback(lambda a, b: seen.append([a.item(), b.item()]), x, w)
        return x * w

    for mapped in (wl.vmap(f, (0, None)), wl.jit(wl.vmap(f, (0, None)))):
        seen.clear()
        np.testing.assert_array_equal(mapped(wl.arange(3.0), wl.tensor(2.0)), [0.0, 2.0, 4.0])
        assert seen == [[0.0, 2.0], [1.0, 2.0], [2.0, 2.0]]


def test_state_is_seen_as_it_was_when_the_callback_stood_there():
    counter, seen = wl.nn.Buffer(wl.zeros(1000)), []

    @wl.jit
    def step():
        wl.debug.callback(lambda v: seen.append(v[0].item()), counter)
        counter.value = counter + 1.0
        wl.debug.callback(lambda v: seen.append(v[-1].item()), counter)

    step(), step()
    assert seen == [0.0, 1.0, 1.0, 2.0]


def test_what_is_kept_does_not_change():
    kept: list[wl.Tensor] = []

    @wl.jit
    def f(x):
        y = wl.exp(x)
        wl.debug.callback(kept.append, y)
        return (y * 2).sum()

    for value in (0.0, 1.0, 2.0):
        f(wl.full(100, value))
    np.testing.assert_allclose([k[0].item() for k in kept], np.exp([0.0, 1.0, 2.0]), rtol=1e-6)


def test_errors_of_a_callback_end_the_program():
    def bad(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        wl.jit(lambda x: wl.debug.callback(bad, x))(wl.ones(2))


def test_pure_callback_computes():
    like = {"low": wl.ShapeDtype((), wl.float32), "order": wl.ShapeDtype((3,), wl.int64)}

    def host(x):
        return {"low": np.float32(np.min(np.asarray(x))), "order": np.argsort(np.asarray(x))}

    def f(x):
        found = wl.pure_callback(host, like, x * 2)
        return found["low"] + 1, found["order"]

    for g in (f, wl.jit(f)):
        low, order = g(wl.tensor([3.0, 1.0, 2.0]))
        assert low.item() == 3.0
        assert order.tolist() == [1, 2, 0]
    many = wl.jit(wl.vmap(lambda x: wl.pure_callback(np.median, wl.ShapeDtype((), wl.float32), x)))
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    np.testing.assert_allclose(many(wl.tensor(x)), np.median(x, axis=1))


def test_bad_calls_are_explained():
    scalar = wl.ShapeDtype((), wl.float32)
    with pytest.raises(InputError, match=r"gave float32\[2\] instead of float32\[\]"):
        wl.jit(lambda x: wl.pure_callback(np.asarray, scalar, x))(wl.ones(2))
    with pytest.raises(TreeError, match="instead of"):
        wl.pure_callback(lambda x: (x, x), scalar, wl.tensor(1.0))
    with pytest.raises(InputError, match="result="):
        wl.pure_callback(np.sum, (3,), wl.ones(2))
    with pytest.raises(GradientError, match="pure_callback"):
        wl.grad(lambda x: wl.pure_callback(np.sum, scalar, x))(wl.ones(2))
    with pytest.raises(InputError, match="missing"):
        wl.debug.print("{} {}", wl.ones(1))
    with pytest.raises(InputError, match="not a function"):
        wl.debug.callback(3, wl.ones(1))
