"""What a scan keeps of every step for its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn


def kept(f: Any, *args: Any) -> list[tuple[int, ...]]:
    """The shapes, per step, of what the forward scan of a gradient gives beside its carry."""
    scan = next(e for e in wl.make_graph(wl.grad(f, tuple(range(len(args)))))(*args).equations if e.params.get("body"))
    return sorted(v.shape[1:] for v in scan.outputs[scan.params["carry"] :])


@pytest.mark.parametrize(
    "layer, count",
    [
        (nn.RNN, 2),  # h as the result, h before
        (nn.GRU, 6),  # h, h before, the gates r and z, n, and what r multiplies
        (nn.LSTM, 8),  # h, the states before, four gates, tanh(c)
    ],
)
def test_recurrent_layers_keep_gates_and_states(layer: Any, count: int) -> None:
    shapes = kept(lambda model, x: model(x)[0].sum(), layer(3, 5), wl.ones((7, 2, 3)))
    assert shapes == [(2, 5)] * count


def test_a_linear_recurrence_keeps_its_states() -> None:
    def last(a: Any, b: Any) -> Any:
        return nn.functional.linear_recurrence(a, b, axis=0).sum()

    assert kept(last, wl.ones((7, 2)), wl.ones((7, 2))) == [(2,)] * 2  # as results, and before each step
    assert kept(last, wl.ones(2), wl.ones((7, 2))) == [(2,)] * 2


def test_elements_of_sequences_and_results_are_not_kept_again() -> None:
    def total(h: Any, xs: Any, zs: Any) -> Any:
        def body(h: Any, now: Any) -> Any:
            x, z = now
            y = wl.exp(h * x)
            return y * z, y

        return wl.scan(body, h, (xs, zs))[1].sum()

    args = wl.ones(3), wl.ones((7, 3)), wl.ones((7, 3))
    assert kept(total, *args) == [(3,)] * 2  # y, and h before


def test_what_is_small_is_kept_instead_of_what_is_large() -> None:
    """A product of a column and a row, wide as both together, is computed again."""

    def total(h: Any, xs: Any, zs: Any) -> Any:
        def body(h: Any, now: Any) -> Any:
            wide = wl.tanh(now[0])[:, None] * wl.tanh(now[1])
            return wide * h, None

        return wl.scan(body, h, (xs, zs))[0].sum()

    assert kept(total, wl.ones((5, 6)), wl.ones((7, 5)), wl.ones((7, 6))) == [(5,), (5, 6), (6,)]  # and h before


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [wl.float64, wl.complex128, wl.bfloat16])
def test_gradients_are_those_of_the_loop_in_python(dtype: Any, reverse: bool, backend: str) -> None:
    rng = np.random.default_rng(0)
    wide = wl.complex128 if dtype == wl.complex128 else wl.float64

    def normal(*shape: int) -> wl.Tensor:
        x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if wide == wl.complex128 else 0)
        return wl.asarray(x).astype(dtype)

    args = normal(2, 3), normal(6, 2, 3), normal(6, 2, 1), normal(3)

    def total(h: Any, xs: Any, zs: Any, c: Any) -> Any:
        def body(h: Any, now: Any) -> Any:
            x, z = now
            s = wl.tanh(x * h + c)
            h = s * (h - z) * c + s * x
            return 0.5 * h, (s, x * z, h)

        h, ys = wl.scan(body, h, (xs, zs), reverse=reverse)
        found = sum((y * (i + 1)).sum() for i, y in enumerate(ys)) + (h * h).sum()
        return found.real if dtype == wl.complex128 else found

    gradients = wl.grad(total, (0, 1, 2, 3))
    expected = gradients(*args)  # eagerly a scan is a loop in Python
    with wl.using_backend(backend):
        for a, b in zip(wl.jit(gradients)(*args), expected, strict=True):
            x, y = a.astype(wide).numpy(), b.astype(wide).numpy()
            assert np.abs(x - y).max() <= (0.06 if dtype == wl.bfloat16 else 1e-10) * np.abs(y).max()
