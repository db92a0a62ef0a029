"""wl.fft against NumPy, finite differences and the transforms' own theorems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import AxisError, DTypeError, InputError

REAL, COMPLEX = np.float64, np.complex128
ONE_AXIS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL_AXES = ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"]
OF_REAL = ["rfft", "ihfft", "rfftn", "rfft2"]
NORMS = ["backward", "ortho", "forward"]


def random(*shape: int, dtype: Any = REAL, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x


def signal(name: str, *shape: int) -> np.ndarray:
    return random(*shape, dtype=REAL if name in OF_REAL else COMPLEX)


def check_linear(f: Callable[..., Any], x: np.ndarray) -> None:
    """The derivative of a linear function is itself, and reverse mode is its transpose."""
    t = random(*x.shape, dtype=x.dtype, seed=1)
    value, tangent = wl.jvp(f, (wl.asarray(x),), (wl.asarray(t),))
    np.testing.assert_allclose(tangent, f(wl.asarray(t)), atol=1e-12)
    difference = f(wl.asarray(x + t)).numpy() - value.numpy()
    np.testing.assert_allclose(tangent, difference, atol=1e-10)
    ct = random(*value.shape, dtype=value.dtype, seed=2)
    _, pull = wl.vjp(f, wl.asarray(x))
    (adjoint,) = pull(wl.asarray(ct))
    assert (adjoint.shape, adjoint.dtype) == (x.shape, x.dtype)
    # adjoints pair with tangents without conjugation
    assert np.sum(ct * tangent.numpy()).real == pytest.approx(np.sum(adjoint.numpy() * t).real, rel=1e-10)


@pytest.mark.book("7-66", name=["wl.fft.fft", "wl.fft.ifft", "wl.fft.rfft", "wl.fft.irfft"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("size", [1, 4, 5])
@pytest.mark.parametrize("n", [None, 1, 2, 3, 6, 7])
@pytest.mark.parametrize("name", ONE_AXIS)
def test_transforms_along_one_axis(name: str, n: int | None, size: int, norm: str) -> None:
    f, reference = getattr(wl.fft, name), getattr(np.fft, name)
    if n is None and size == 1 and name in ("irfft", "hfft"):
        return  # refused, see below
    for axis, shape in ((-1, (2, size)), (0, (size, 2))):
        x = signal(name, *shape)
        got = f(wl.asarray(x), n=n, axis=axis, norm=norm)
        wanted = reference(x, n=n, axis=axis, norm=norm)
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, atol=1e-12)
        check_linear(lambda a, axis=axis: f(a, n=n, axis=axis, norm=norm), x)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    "s, axes",
    [
        (None, None),
        (None, (0, 2)),
        ((3, 5), (0, 1)),
        ((4, 3), (2, 1)),
        ((5, 2), (-2, -1)),
        ((3,), (1,)),
        ((4, 6, 3), (0, 1, 2)),
    ],
)
@pytest.mark.parametrize("name", SEVERAL_AXES)
def test_transforms_along_several_axes(name: str, s: Any, axes: Any, norm: str) -> None:
    f, reference = getattr(wl.fft, name), getattr(np.fft, name)
    options = {"s": s, "axes": axes, "norm": norm}
    if name.endswith("2") and axes is None:
        del options["axes"]
    x = signal(name, 4, 3, 6)
    got, wanted = f(wl.asarray(x), **options), reference(x, **options)
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(got, wanted, atol=1e-12)
    check_linear(lambda a: f(a, **options), x)


def test_sizes_without_axes_are_those_of_the_last_axes() -> None:
    x = random(2, 4, 6)
    got = wl.fft.fftn(wl.asarray(x), s=(3, 5))
    np.testing.assert_allclose(got, np.fft.fftn(x, s=(3, 5), axes=(1, 2)), atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_the_matrix_of_the_transform(n: int) -> None:
    w = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    np.testing.assert_allclose(wl.fft.fft(wl.eye(n, dtype=wl.float64)), w, atol=1e-12)
    np.testing.assert_allclose(w @ w.conj().T, n * np.eye(n), atol=1e-12)


@pytest.mark.book("7-66", name=["wl.fft.rfft", "wl.fft.irfft"])
@pytest.mark.parametrize("n", [8, 9])
def test_parseval_and_round_trips(n: int) -> None:
    x = random(3, n)
    full = wl.fft.fft(wl.asarray(x)).numpy()
    np.testing.assert_allclose(np.sum(np.abs(full) ** 2, axis=-1) / n, np.sum(x**2, axis=-1))
    for norm in NORMS:
        half = wl.fft.rfft(wl.asarray(x), norm=norm)
        np.testing.assert_allclose(wl.fft.irfft(half, n=n, norm=norm), x, atol=1e-12)
        back = wl.fft.ihfft(wl.asarray(x), norm=norm)
        np.testing.assert_allclose(wl.fft.hfft(back, n=n, norm=norm), x, atol=1e-12)


@pytest.mark.book("7-66", name=["wl.fft.rfft", "wl.fft.irfft"])
@pytest.mark.parametrize("n", [6, 7])
def test_gradient_of_a_circular_convolution(n: int) -> None:
    x, w, ct = random(n), random(n, seed=1), random(n, seed=2)

    def convolve(x: Any, w: Any) -> Any:
        return wl.fft.irfft(wl.fft.rfft(x) * wl.fft.rfft(w), n=n)

    circulant = np.stack([[w[(i - j) % n] for j in range(n)] for i in range(n)])
    value, pull = wl.vjp(convolve, wl.asarray(x), wl.asarray(w))
    np.testing.assert_allclose(value, circulant @ x, atol=1e-12)
    adjoint_x, adjoint_w = pull(wl.asarray(ct))
    np.testing.assert_allclose(adjoint_x, circulant.T @ ct, atol=1e-12)
    shifted = np.stack([[x[(i - j) % n] for j in range(n)] for i in range(n)])
    np.testing.assert_allclose(adjoint_w, shifted.T @ ct, atol=1e-12)
    # mixed second derivative of a bilinear function: convolve itself
    mixed = wl.jvp(
        lambda w: wl.vjp(lambda x: convolve(x, w), wl.asarray(x))[1](wl.asarray(ct))[0],
        (wl.asarray(w),),
        (wl.asarray(w),),
    )
    np.testing.assert_allclose(mixed[1], circulant.T @ ct, atol=1e-12)


def test_gradient_of_the_power_spectrum() -> None:
    z = random(5, dtype=COMPLEX)
    gradient = wl.grad(lambda a: wl.sum(wl.abs(wl.fft.fft(a)) ** 2))(wl.asarray(z))
    np.testing.assert_allclose(gradient, 2 * 5 * z, rtol=1e-10)  # |F z|^2 = n |z|^2
    x = random(5)
    gradient = wl.grad(lambda a: wl.sum(wl.abs(wl.fft.fft(a)) ** 2))(wl.asarray(x))
    np.testing.assert_allclose(gradient, 2 * 5 * x, rtol=1e-10)
    hessian = wl.jvp(
        wl.grad(lambda a: wl.sum(wl.abs(wl.fft.rfft(a)) ** 4)),
        (wl.asarray(x),),
        (wl.asarray(random(5, seed=1)),),
    )[1]
    h = 1e-6
    step = h * random(5, seed=1)
    slope = wl.grad(lambda a: wl.sum(wl.abs(wl.fft.rfft(a)) ** 4))
    difference = (slope(wl.asarray(x + step)).numpy() - slope(wl.asarray(x - step)).numpy()) / (2 * h)
    np.testing.assert_allclose(hessian, difference, rtol=1e-6)


@pytest.mark.parametrize("name", ONE_AXIS + SEVERAL_AXES)
def test_vmap(name: str) -> None:
    f = getattr(wl.fft, name)
    x = signal(name, 3, 4, 5)
    loop = np.stack([f(wl.asarray(one)).numpy() for one in x])
    np.testing.assert_allclose(wl.vmap(f)(wl.asarray(x)), loop, atol=1e-12)
    moved = wl.vmap(f, in_axes=1, out_axes=1)(wl.asarray(x.swapaxes(0, 1)))
    np.testing.assert_allclose(moved, loop.swapaxes(0, 1), atol=1e-12)

    def energy(a: Any) -> Any:
        return wl.sum(wl.abs(f(a)) ** 3)

    loop = np.stack([wl.grad(energy)(wl.asarray(one)).numpy() for one in x])
    np.testing.assert_allclose(wl.vmap(wl.grad(energy))(wl.asarray(x)), loop, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "float64", "complex128", "int64"])
@pytest.mark.parametrize("name", ONE_AXIS)
def test_precision_is_kept(name: str, dtype: str) -> None:
    x = wl.asarray(np.arange(1, 7)).astype(dtype)
    f = getattr(wl.fft, name)
    if name in OF_REAL and "complex" in dtype:
        with pytest.raises(DTypeError, match=f"{name}: takes real tensors, received {dtype}"):
            f(x)
        return
    wide = dtype in ("float64", "complex128")
    real = name in ("irfft", "hfft")
    assert (
        f(x).dtype == {(0, 0): wl.complex64, (1, 0): wl.complex128, (0, 1): wl.float32, (1, 1): wl.float64}[wide, real]
    )
    if dtype != "int64":
        gradient = wl.grad(lambda a: wl.sum(wl.abs(f(a)) ** 2))(x)
        assert gradient.dtype == x.dtype


def test_jit_and_the_imperative_style() -> None:
    x = random(4, 6)

    def f(a: Any) -> Any:
        return wl.sum(wl.abs(wl.fft.rfft2(a)) ** 3)

    wanted = wl.grad(f)(wl.asarray(x)).numpy()
    np.testing.assert_allclose(wl.jit(wl.grad(f))(wl.asarray(x)), wanted, rtol=1e-10)
    leaf = wl.asarray(x.copy()).requires_grad_()
    f(leaf).backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(leaf.grad, wanted, rtol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(n: int) -> None:
    np.testing.assert_allclose(wl.fft.fftfreq(n, d=0.5, dtype=wl.float64), np.fft.fftfreq(n, 0.5))
    np.testing.assert_allclose(wl.fft.rfftfreq(n, d=0.5, dtype=wl.float64), np.fft.rfftfreq(n, 0.5))
    assert wl.fft.fftfreq(n).dtype == wl.float32


@pytest.mark.parametrize("axes", [None, 0, -1, (1,), (0, 1)])
def test_shifts(axes: Any) -> None:
    x = random(4, 5)
    shifted = wl.fft.fftshift(wl.asarray(x), axes=axes)
    np.testing.assert_array_equal(shifted, np.fft.fftshift(x, axes))
    np.testing.assert_array_equal(wl.fft.ifftshift(wl.asarray(x), axes=axes), np.fft.ifftshift(x, axes))
    np.testing.assert_array_equal(wl.fft.ifftshift(shifted, axes=axes), x)
    check_linear(lambda a: wl.fft.fftshift(a, axes=axes), x)
    assert wl.fft.fftshift(wl.arange(4)).tolist() == [2, 3, 0, 1]


def test_batches_without_elements() -> None:
    assert wl.fft.fft(wl.zeros((0, 4))).shape == (0, 4)
    assert wl.fft.rfft(wl.zeros((0, 4))).shape == (0, 3)
    assert wl.fft.irfft(wl.zeros((0, 3))).shape == (0, 4)


@pytest.mark.parametrize("name", ONE_AXIS)
def test_bad_calls(name: str) -> None:
    f = getattr(wl.fft, name)
    with pytest.raises(InputError, match=rf"{name}: norm='both'"):
        f(wl.ones(4), norm="both")
    for n in (0, -2):
        with pytest.raises(InputError, match=rf"{name}: a (transform|signal) of {n} elements"):
            f(wl.ones(4), n=n)
    with pytest.raises(InputError, match=rf"{name}: a (transform|signal) of -?\d elements \(shape \(2, 0\)"):
        f(wl.ones((2, 0)))
    with pytest.raises(AxisError, match=f"{name}: axis 2 is out of range"):
        f(wl.ones((2, 4)), axis=2)
    with pytest.raises(AxisError, match=name):
        f(wl.tensor(1.0))


def test_bad_calls_of_several_axes() -> None:
    x = wl.ones((2, 4))
    with pytest.raises(InputError, match=r"irfft: a signal of 0 elements \(shape \(1,\)"):
        wl.fft.irfft(wl.ones(1))
    with pytest.raises(AxisError, match="fftn: an axis appears twice"):
        wl.fft.fftn(x, axes=(0, -2))
    with pytest.raises(InputError, match="differ in length"):
        wl.fft.rfftn(x, s=(2,), axes=(0, 1))
    with pytest.raises(InputError, match="names more axes than the 2"):
        wl.fft.irfftn(x, s=(2, 2, 2))
    with pytest.raises(InputError, match="no axis to transform"):
        wl.fft.fftn(x, axes=())
    with pytest.raises(InputError, match="fftfreq: n=0"):
        wl.fft.fftfreq(0)
    with pytest.raises(DTypeError, match="rfftfreq: frequencies are not int64"):
        wl.fft.rfftfreq(4, dtype=wl.int64)
