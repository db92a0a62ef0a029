"""Backward passes outside of `jit` that come again run as compiled programs, with the numbers of NumPy."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.core import sightings
from wonderland.errors import GradientError
from wonderland.transforms import outlines

X = wl.random.normal((4, 6), key=wl.random.key(0))
W = wl.random.normal((6, 6), key=wl.random.key(1))
LABELS = wl.tensor([0, 3, 5, 1])

FUNCTIONS = {
    "powers": lambda x, w: ((x @ w) ** 3).mean() + (w**0.5).sum(),
    "shared": lambda x, w: (wl.tanh(x @ w) * (x @ w)).sum() + (w * w).sum(),
    "parts": lambda x, w: wl.concatenate([x[:2] @ w, wl.exp(x[2:])], axis=0).max(axis=1).sum(),
    "attention": lambda x, w: nn.functional.softmax(x @ w @ x.T, axis=-1).log().mean() * (x * 0.3).sum(),
    "loss": lambda x, w: nn.functional.cross_entropy(nn.functional.gelu(x @ w), LABELS),
    "linear": lambda x, w: (wl.concatenate([x.T, w[:, :2] - x[:2].T], axis=1)[1:] * 3).reshape(-1).cumsum().mean(),
    "steps": lambda x, w: (wl.sign(x) * x).sum() + (wl.floor(w) + wl.where(w > 0.5, w, 2.0)).sum() + wl.sign(w).max(),
    "svd": lambda x, w: wl.linalg.svdvals(x @ w).sum(),
    "scan": lambda x, w: wl.scan(lambda c, r: (wl.tanh(c @ w + r), c.sum()), x[0], x)[1].sum(),
    "jitted": lambda x, w: wl.jit(lambda a: wl.sin(a) * a)(x @ w).sum(),
    "unused": lambda x, w: (x * wl.stop_gradient(w)[:4]).sum(),
}


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Compile at the second backward pass, however small it is."""
    monkeypatch.setattr(sightings, "CALLS_OF_FEW", 2)
    monkeypatch.setattr(outlines, "_programs", {})
    with wl.using_backend("native"):
        yield


def by_grad(f, x, w):
    value, gradients = wl.value_and_grad(f, argnums=(0, 1))(x, w)
    return [value, *gradients]


def by_backward(f, x, w):
    leaves = [x.copy().requires_grad_(), w.copy().requires_grad_()]
    value = f(*leaves)
    value.backward()
    return [value, *[wl.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]]


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("way", [by_grad, by_backward])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_the_reference(name, way):
    f = FUNCTIONS[name]
    x, w = X, wl.abs(W) + 0.1
    with wl.using_backend("numpy"):
        expected = way(f, x, w)
    for _ in range(3):
        found = way(f, x, w)
    assert len(outlines._programs) <= 1
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("way", [by_grad, by_backward])
def test_numbers_that_change_are_no_reason_to_compile_again(way):
    for i in range(6):
        scale = 0.1 + 0.01 * i
        _, dx, _ = way(lambda x, w: (scale * wl.tanh(x)).sum() + w.sum(), X, W)  # noqa: B023 - called at once
        np.testing.assert_allclose(dx, scale * (1 - np.tanh(X.numpy()) ** 2), rtol=1e-5)
    assert len(outlines._programs) == 1


def test_gradients_add_up_and_recordings_are_released():
    w = wl.ones(3).requires_grad_()
    for turn in range(4):
        loss = (w * w).sum()
        loss.backward(retain_graph=turn == 3)
        np.testing.assert_array_equal(w.grad, 2.0 * (turn + 1))
    loss.backward()
    np.testing.assert_array_equal(w.grad, 10.0)
    with pytest.raises(GradientError, match="released"):
        loss.backward()


def test_hooks_and_retained_gradients_see_every_pass():
    seen = []
    for _ in range(4):
        x = wl.ones(2).requires_grad_()
        y = x * 3.0
        y.register_hook(lambda g: seen.append(g.numpy().copy()))
        z = wl.exp(y * 0.0)
        z.retain_grad()
        z.sum().backward()
        np.testing.assert_array_equal(z.grad, 1.0)
    assert len(seen) == 4


def test_rules_of_the_users_own_run_every_time():
    calls = []

    @wl.custom_vjp
    def f(x):
        return x * 2.0

    f.defvjp(lambda x: (x * 2.0, ()), lambda residuals, ct: (calls.append(1), (ct * 2.0,))[1])
    for _ in range(4):
        wl.grad(lambda x: f(x).sum())(wl.ones(2))
        x = wl.ones(2).requires_grad_()
        f(x).sum().backward()
    assert len(calls) == 8


def test_a_value_can_be_looked_at_while_it_is_differentiated():
    seen = []

    def f(x):
        y = wl.exp(x)
        seen.append(y.sum().item())
        return y.sum() if y.sum() > 0 else -y.sum()

    for i in range(4):
        np.testing.assert_allclose(wl.grad(f)(wl.full(2, float(i))), np.exp(float(i)), rtol=1e-6)
    np.testing.assert_allclose(seen, 2 * np.exp(np.arange(4.0)), rtol=1e-6)


def test_programs_are_bounded(monkeypatch):
    monkeypatch.setattr(outlines, "KEPT", 3)
    for n in range(1, 7):
        for _ in range(2):
            wl.grad(lambda x: wl.exp(x).sum())(wl.ones(n))
    assert len(outlines._programs) == 3


def test_nested_derivatives():
    for _ in range(3):
        found = wl.grad(lambda x: wl.grad(lambda y: (wl.sin(y) ** 3).sum())(x).sum())(X)
    x = X.numpy().astype(np.float64)
    expected = 6 * np.sin(x) * np.cos(x) ** 2 - 3 * np.sin(x) ** 3
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_backward_goes_through_gradients_that_came_before():
    for _ in range(4):
        x = X.copy().requires_grad_()
        factor = wl.ones(6).requires_grad_()
        wl.grad(lambda y: ((y * factor) ** 3).sum())(x).sum().backward()  # noqa: B023 - called at once
        np.testing.assert_allclose(x.grad, 6 * X.numpy(), rtol=1e-5)
        np.testing.assert_allclose(factor.grad, (9 * X.numpy() ** 2).sum(axis=0), rtol=1e-5)


def test_outlines_of_one_hash_have_programs_of_their_own():
    made = []

    def outline(scale):
        return ((wl.core.primitive.TABLE["multiply"], (("scale", scale),), (), True, ()),)

    def pull(steps, values, adjoints):
        made.append(steps)
        return adjoints

    for scale in (1, 2, 1):
        outlines.program(7, (outline(scale), (((), np.dtype("float32")),), (0,), (0,)), pull)
    assert [dict(steps[0][1])["scale"] for steps in made] == [1, 2, 1]
    outlines.program(7, (outline(1), (((), np.dtype("float32")),), (0,), (0,)), pull)
    assert len(made) == 3


def test_recordings_take_turns_and_settings_change():
    functions = [FUNCTIONS[name] for name in ("powers", "shared", "loss")]
    w = wl.abs(W) + 0.1
    with wl.using_backend("numpy"):
        expected = [by_grad(f, X, w) for f in functions]
    for turn in range(12):
        for i in (0, 1, 1, 2, 2, 2) if turn % 2 else (2, 0):
            with wl.using_backend("numpy" if turn == 7 else "native"), wl.no_grad() if turn > 8 else wl.enable_grad():
                found = by_grad(functions[i], X, w)
            for a, b in zip(found, expected[i], strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def test_arrays_of_other_shapes_and_orders_in_memory():
    f = FUNCTIONS["shared"]
    for x, w in [
        (X, W),
        (X, W),
        (X, W),
        (X[:3], W),
        (X, W.T.copy().T),
        (X[::-1], W),
        (X, W),
        (X[1:], W[::2].T @ X[:3]),
    ]:
        with wl.using_backend("numpy"):
            expected = by_grad(f, x, w)
        for _ in range(2):
            for a, b in zip(by_grad(f, x, w), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def test_threads_pull_back_at_the_same_time():
    functions = [FUNCTIONS[name] for name in ("powers", "shared")]
    alone = [[by_grad(f, X, W) for _ in range(3)][-1] for f in functions]
    wrong = []

    def work(i):
        with wl.using_backend("native"):
            for _ in range(150):
                found = by_grad(functions[i], X, W)
                wrong.extend(
                    1 for a, b in zip(found, alone[i], strict=True) if not np.array_equal(a, b, equal_nan=True)
                )

    threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
