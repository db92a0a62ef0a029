"""Fourier transforms in native code, against NumPy's in float64: every size, layout and norm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import wonderland as wl
import wonderland.fft
from tests.engines.engines import native, on_threads
from wonderland.engines.native.fourier.roots import is_smooth, radices, roots, split
from wonderland.engines.native.steps import Fallback

Array = np.ndarray[Any, Any]
WIDTHS = {np.float32: np.complex64, np.float64: np.complex128}
NORMS: list[Any] = ["backward", "ortho", "forward"]


def near(found: Array, wanted: Array, n: int) -> None:
    """The error of a good transform grows with the logarithm of its size, in units of the rounding of the largest."""
    assert found.shape == wanted.shape
    unit = float(np.finfo(found.dtype).eps)
    bound = unit * (4 + 2 * math.log2(n)) * np.abs(wanted).max(initial=0.0)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=bound)


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> tuple[Array, Array]:
    """Real and complex ones."""
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, *shape))
    return x.astype(dtype), (x + 1j * y).astype(WIDTHS[dtype])


def check(shape: tuple[int, ...], axis: int, dtype: Any = np.float64, norm: Any = "backward") -> None:
    """All four transforms along an axis, without NumPy."""
    x, z = numbers(shape, dtype)
    n = shape[axis]
    half = np.take(z, range(n // 2 + 1), axis)

    def f(x: Any, z: Any, half: Any) -> list[Any]:
        options = {"axis": axis, "norm": norm}
        forth = [wl.fft.rfft(x, **options), wl.fft.fft(z, **options)]
        return [*forth, wl.fft.ifft(z, **options), wl.fft.irfft(half, n=n, **options)]

    program, arrays = native(f, x, z, half)
    assert not any(isinstance(step, Fallback) for step in program.schedule.steps)
    with wl.debug.filled_memory():
        found = on_threads(program, arrays)
    wide = [np.asarray(a, np.complex128 if a.dtype.kind == "c" else np.float64) for a in (x, z, half)]
    wanted = [
        np.fft.rfft(wide[0], axis=axis, norm=norm),
        np.fft.fft(wide[1], axis=axis, norm=norm),
        np.fft.ifft(wide[1], axis=axis, norm=norm),
        np.fft.irfft(wide[2], n=n, axis=axis, norm=norm),
    ]
    for one, other in zip(found, wanted, strict=True):
        near(one, other, n)


@pytest.mark.parametrize("first", [1, 33, 65, 97])
def test_every_size(first: int) -> None:
    for n in range(first, first + 32):
        check((5, n), 1, norm=NORMS[n % 3])


@pytest.mark.parametrize("n", [144, 169, 210, 263, 400, 512, 1018, 1331, 2048])
def test_larger_sizes(n: int) -> None:
    check((11, n), 1)
    check((11, n), 1, np.float32)


@pytest.mark.parametrize("n", [1, 2, 3, 9, 15, 62, 128])
def test_more_signals_than_a_vector_has_lanes(n: int) -> None:
    """They are turned some at a time."""
    check((37, n), 1, np.float32)
    check((20, n), 1)


@pytest.mark.parametrize("n", [4096, 6561, 8192, 10007, 30030])
def test_sizes_that_are_cut_in_two(n: int) -> None:
    check((2, n), 1)
    check((n,), 0, np.float32)


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("n", [24, 27, 31, 4098])
def test_layouts(n: int, dtype: Any) -> None:
    """Axes in front, in the middle, beside few and many others; one signal."""
    for shape, axis in (((n, 19), 0), ((3, n, 2), 1), ((2, n, 3, 5), 1), ((1, n), 1)):
        check(shape, axis, dtype, NORMS[n % 3])


def test_views_and_expressions_are_read_where_they_are() -> None:
    x, z = numbers((9, 130, 6), np.float64)

    def f(x: Any, z: Any) -> list[Any]:
        cut = wl.swapaxes(x, 0, 2)[::2, 1:-1:2, ::-1]  # (3, 64, 9)
        return [
            wl.fft.rfft(cut * 2 + 1, axis=1),
            wl.fft.rfft(wl.exp(x), axis=1),
            wl.fft.rfft(wl.broadcast_to(x[0, :, 0], (12, 130))),
            wl.fft.fft(wl.conj(z)[:, ::2], axis=1) + 1,
            wl.fft.fftn(z, axes=(0, 2)),
            wl.fft.irfft(z * (1 + 2j), axis=1, n=250),
        ]

    program, arrays = native(f, x, z)
    assert not any(isinstance(step, Fallback) for step in program.schedule.steps)
    cut = np.swapaxes(x, 0, 2)[::2, 1:-1:2, ::-1]
    wanted = [
        np.fft.rfft(cut * 2 + 1, axis=1),
        np.fft.rfft(np.exp(x), axis=1),
        np.fft.rfft(np.broadcast_to(x[0, :, 0], (12, 130))),
        np.fft.fft(np.conj(z)[:, ::2], axis=1) + 1,
        np.fft.fftn(z, axes=(0, 2)),
        np.fft.irfft(z * (1 + 2j), axis=1, n=250),
    ]
    for one, other in zip(on_threads(program, arrays), wanted, strict=True):
        near(one, other, 1024)


@pytest.mark.parametrize("shape", [(9, 60), (1, 270), (1, 4116), (2, 45, 7), (3, 4116, 2), (1, 5103, 9)])
def test_products_of_spectra_are_computed_as_they_are_read(shape: tuple[int, ...]) -> None:
    (x, z), (y, _) = numbers(shape, np.float64), numbers(shape, np.float64, seed=1)
    n = shape[1]

    def f(x: Any, y: Any, z: Any) -> list[Any]:
        spectra = [wl.fft.rfft(v, axis=1) for v in (x, y)]
        return [wl.fft.irfft(spectra[0] * spectra[1], n=n, axis=1), wl.fft.fft(wl.conj(z) * 2 + x, axis=1)]

    program, arrays = native(f, x, y, z)
    assert not any(isinstance(step, Fallback) for step in program.schedule.steps)
    with wl.debug.filled_memory():
        found = on_threads(program, arrays)
    product = np.fft.rfft(x, axis=1) * np.fft.rfft(y, axis=1)
    near(found[0], np.fft.irfft(product, n=n, axis=1), 4 * n)
    near(found[1], np.fft.fft(np.conj(z) * 2 + x, axis=1), n)


@pytest.mark.parametrize("dtype", [wl.float16, wl.bfloat16])
def test_half_precision_is_transformed_in_float32(dtype: Any) -> None:
    for n in (34, 48):
        x = np.asarray(wl.astype(wl.asarray(numbers((7, n), np.float32)[0]), dtype))
        program, arrays = native(wl.fft.rfft, x)
        (found,) = program(arrays)
        assert found.dtype == np.complex64
        near(found, np.fft.rfft(x.astype(np.float64)), n)


def test_a_signal_has_the_same_spectrum_wherever_it_stands() -> None:
    x = numbers((21, 600), np.float32)[0]
    program, _ = native(wl.fft.rfft, x)
    first, moved = program([x])[0], program([np.roll(x, 5, 0)])[0]
    assert np.roll(first, 5, 0).tobytes() == moved.tobytes()


def test_transforms_in_loops_and_derivatives() -> None:
    x = numbers((40, 12), np.float64)[0]

    def loss(x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            y = wl.fft.irfft(wl.fft.rfft(row + carry) * wl.fft.rfft(row), n=12)
            return y / 4, y.sum()

        return wl.scan(step, wl.zeros(12, dtype=wl.float64), x)[1].sum() + wl.abs(wl.fft.fft(x, axis=0)).sum()

    value, slope = wl.jit(wl.value_and_grad(loss))(wl.asarray(x))
    with wl.using_backend("numpy"):
        wanted, steepest = wl.jit(wl.value_and_grad(loss))(wl.asarray(x))
    np.testing.assert_allclose(value, wanted, rtol=1e-12)
    np.testing.assert_allclose(slope, steepest, rtol=1e-10, atol=1e-11)


def test_very_long_transforms_are_left_to_numpy() -> None:
    from wonderland.core.primitive import Aval
    from wonderland.engines.native.machine import machine
    from wonderland.engines.native.schedule import Schedule
    from wonderland.ir.stage import stage

    staged = stage(lambda x: [wl.fft.fft(x)], [Aval((1 << 23,), np.dtype(np.complex64))])
    steps = Schedule(staged.graph, machine().cpu).steps
    assert [isinstance(step, Fallback) for step in steps] == [True]


def test_sizes_are_products_of_radices() -> None:
    for n in range(1, 500):
        if is_smooth(n):
            assert math.prod(radices(n)) == n
        first, second = split(n)
        assert first * second == n
        assert first <= second


def test_roots_are_right_to_the_last_digit() -> None:
    for n in (1, 2, 3, 8, 12, 1000, 99991):
        k = np.arange(-n, 2 * n)
        found = roots(n, k)
        assert np.abs(found - np.conj(roots(n, -k))).max() < 3e-16
        assert np.array_equal(found, roots(n, k + n))
        assert np.abs(np.abs(found) - 1).max() < 3e-16
        assert np.abs(found * found - roots(n, 2 * k)).max() < 6e-16
        assert np.abs(found[n + 1 if n > 1 else 0] - np.exp(2j * np.pi / n)) < 3e-16
    assert set(roots(4, np.arange(4))) == {1, 1j, -1, -1j}
