"""Linear recurrences against a loop in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError, ShapeError
from wonderland.nn import functional as F  # noqa: N812

METHODS = ["auto", "sequential", "associative"]


def loop(a: np.ndarray, b: np.ndarray, start: np.ndarray, reverse: bool) -> np.ndarray:
    """Along the first axis."""
    a, s, out = np.broadcast_to(a, b.shape), start, np.empty(b.shape, np.result_type(a, b))
    for i in range(len(b))[:: -1 if reverse else 1]:
        s = out[i] = a[i] * s + b[i]
    return out


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 16])
@pytest.mark.parametrize("kind", [np.float64, np.complex128])
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # the real parts are numbers as good as any
def test_it_is_the_loop(method: str, reverse: bool, n: int, kind: type) -> None:
    rng = np.random.default_rng(n)
    draw = lambda *shape: (rng.normal(size=(*shape, 2)) / 2).view(np.complex128)[..., 0].astype(kind)
    b, start = draw(n, 3, 2), draw(3, 2)
    for a in (draw(n, 3, 2), draw(1, 3, 2), draw(2), draw(n, 1, 2)):
        for run in (F.linear_recurrence, wl.jit(F.linear_recurrence, static_argnames=("axis", "reverse", "method"))):
            found = run(a, b, start, axis=0, reverse=reverse, method=method)
            np.testing.assert_allclose(found, loop(a, b, start, reverse), rtol=1e-12, atol=1e-12)
            moved = run(a if a.ndim < 3 else np.moveaxis(a, 0, 1), np.moveaxis(b, 0, 1), reverse=reverse, method=method)
            if a.ndim == 3 or a.shape[0] == 1:
                wanted = loop(a, b, np.zeros_like(start), reverse)
                np.testing.assert_allclose(np.moveaxis(np.asarray(moved), 1, 0), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_its_derivatives_are_those_of_finite_differences(method: str) -> None:
    rng = np.random.default_rng(0)
    a, b, start = (wl.tensor(rng.normal(size=s) / 2) for s in ((2, 5, 3), (2, 5, 3), (2, 3)))
    wl.check_grads(lambda *args: F.linear_recurrence(*args, method=method), (a, b, start))


def test_errors() -> None:
    with pytest.raises(InputError, match="method='fast'"):
        F.linear_recurrence(0.5, wl.ones((2, 3)), method="fast")
    with pytest.raises(ShapeError, match=r"a decay \(4,\) for inputs \(2, 3\)"):
        F.linear_recurrence(wl.ones(4), wl.ones((2, 3)))
    with pytest.raises(ShapeError, match="a start of shape"):
        F.linear_recurrence(0.5, wl.ones((2, 3)), wl.ones(3))


def test_auto_has_no_number_larger_than_its_states() -> None:
    """A decay beyond 1 over many steps without input: products of decays overflow, states do not."""
    b = wl.asarray(np.eye(1, 2000, 1999, dtype=np.float32).T)
    for run in (F.linear_recurrence, wl.jit(F.linear_recurrence, static_argnames="axis")):
        np.testing.assert_array_equal(run(1.1, b, axis=0), b)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [wl.float16, wl.bfloat16, wl.float32, wl.float64, wl.complex64, wl.complex128])
def test_compiled_gradients_agree_with_numpy_on_any_number_of_threads(dtype: np.dtype[Any], reverse: bool) -> None:
    rng = np.random.default_rng(0)
    wide = wl.complex128 if np.dtype(dtype).kind == "c" else wl.float64

    def draw(*shape: int) -> wl.Tensor:
        x = rng.uniform(0.2, 0.9, size=shape)
        return wl.asarray(x * np.exp(1j * rng.normal(size=shape)) if wide == wl.complex128 else x).astype(dtype)

    decays, b, start = (draw(3, 41, 37), draw(37)), draw(3, 41, 37), draw(3, 37)

    def loss(a: wl.Tensor, b: wl.Tensor, start: wl.Tensor) -> wl.Tensor:
        s = F.linear_recurrence(a, b, start, reverse=reverse)
        found = (s * s).sum()
        return found.real if wide == wl.complex128 else found

    gradients, before = wl.jit(wl.grad(loss, (0, 1, 2))), wl.get_threads()
    for a in decays:
        expected = wl.grad(loss, (0, 1, 2))(*[x.astype(wide) for x in (a, b, start)])
        found = []
        try:
            for threads in (1, 2):
                wl.set_threads(threads)
                found.append(gradients(a, b, start))
        finally:
            wl.set_threads(before)
        for one, two, exact in zip(*found, expected, strict=True):
            np.testing.assert_array_equal(one.astype(wide), two.astype(wide))
            error = np.abs(one.astype(wide).numpy() - exact.numpy()).max()
            tolerance = {2: 0.06, 4: 2e-5, 8: 1e-11}[wl.zeros((), dtype=dtype).real.dtype.itemsize]
            assert error <= tolerance * np.abs(exact.numpy()).max()
