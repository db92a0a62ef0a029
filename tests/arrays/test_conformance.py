"""Every function of the Array API standard 2024.12, against array-api-strict and the standard's own words."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import wonderland as wl

from .standard_calls import CALLS

# what they give is checked elsewhere, or is not unique, or the same function is compared under another name
NOT_COMPARED = """asarray can_cast empty empty_like finfo from_dlpack iinfo linalg.eigh linalg.qr linalg.svd
linalg.matmul linalg.matrix_transpose linalg.tensordot linalg.vecdot"""
LATER = "broadcast_shapes isin"  # than 2024.12


def find(space: Any, name: str) -> Any:
    for part in name.split("."):
        space = getattr(space, part)
    return space


def test_no_function_is_left_out() -> None:
    strict = pytest.importorskip("array_api_strict")
    with strict.ArrayAPIStrictFlags(api_version="2024.12"):
        theirs = [n for n in strict.__all__ if "strict" not in n and not n.startswith("__")]
        theirs += [f"{space}.{n}" for space in ("linalg", "fft") for n in find(strict, space).__all__]
        functions = {n for n in theirs if inspect.isfunction(find(strict, n))}
    assert functions == set(CALLS) | set(NOT_COMPARED.split()) | set(LATER.split())


def described(out: Any) -> tuple[Any, list[np.ndarray]]:
    """The structure of a result with the types and shapes of its arrays, and the arrays."""
    if hasattr(out, "__array_namespace__"):
        array = np.asarray(out if isinstance(out, wl.Tensor) else out._array)
        return (array.dtype.name, array.shape), [array]
    if isinstance(out, (list, tuple)):
        parts = [described(part) for part in out]
        kind = getattr(out, "_fields", type(out).__name__)
        return (kind, [structure for structure, _ in parts]), [array for _, arrays in parts for array in arrays]
    return str(out).removeprefix("array_api_strict."), []


@pytest.mark.parametrize("name", sorted(CALLS))
def test_like_array_api_strict(name: str) -> None:
    strict = pytest.importorskip("array_api_strict")
    compared = 0
    with strict.ArrayAPIStrictFlags(api_version="2024.12"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in CALLS[name]():
            try:
                expected = call(strict, find(strict, name))
            except (TypeError, ValueError, IndexError, np.linalg.LinAlgError):
                continue  # the standard leaves it open
            structure, arrays = described(expected)
            ours, our_arrays = described(call(wl, find(wl, name)))
            assert ours == structure, (call.args, call.kwargs)
            for a, b in zip(arrays, our_arrays, strict=True):
                tolerance = 1e-4 if a.dtype in (np.float32, np.complex64) else 1e-10
                np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance, err_msg=f"{call.args} {call.kwargs}")
                if a.dtype.kind == "f":
                    np.testing.assert_array_equal(np.signbit(b[a == 0]), np.signbit(a[a == 0]))
            compared += 1
    assert compared


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
@pytest.mark.parametrize("shape", [(0,), (0, 2), (1, 2)])
def test_statistics_of_too_few_elements_are_nan(shape: tuple[int, ...], dtype: str) -> None:
    x = wl.ones(shape, dtype=dtype)
    fs = [lambda x, c=c: wl.var(x, axis=0, correction=c) for c in (0, 1, 2, 5) if shape[0] <= c]
    fs += [lambda x, f=f: wl.sqrt(f(x)) for f in fs] + [lambda x: wl.std(x, axis=0, correction=1)]
    fs += [lambda x: wl.mean(x, axis=0)] if shape[0] == 0 else []
    for f in fs:
        with pytest.warns(RuntimeWarning, match="The result is NaN"):
            out = f(x)
        assert out.shape == shape[1:]
        assert np.isnan(out.numpy()).all()
    with pytest.warns(RuntimeWarning, match="The result is NaN"):
        assert np.isnan(wl.jit(fs[-1])(x).numpy()).all()


def test_where_no_result_is_nan_nothing_is_said() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in (wl.mean, wl.var, wl.std):
            assert f(wl.zeros((0, 0, 3)), axis=0).shape == (0, 3)


def test_the_watch_finds_a_mean_of_nothing() -> None:
    with wl.debug.nans(), pytest.raises(wl.errors.NonFiniteError), pytest.warns(RuntimeWarning):
        wl.mean(wl.zeros(0))


def test_creation_functions_take_a_device() -> None:
    x = wl.ones(2)
    calls = [(f, (x,)) for f in (wl.array, wl.asarray, wl.tensor, wl.zeros_like, wl.ones_like, wl.empty_like)]
    calls += [(f, (2,)) for f in (wl.zeros, wl.ones, wl.empty, wl.eye, wl.tri, wl.arange, wl.fft.fftfreq)]
    calls += [(wl.full_like, (x, 2)), (wl.full, (2, 1)), (wl.linspace, (0, 1, 2)), (wl.logspace, (0, 1, 2))]
    for f, args in calls:
        f(*args, device="cpu")
        f(*args, device=None)
        with pytest.raises(wl.errors.InputError, match="no device"):
            f(*args, device="gpu")
