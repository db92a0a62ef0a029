"""The top-level namespace is the Array API standard 2024.12, name by name and signature by signature."""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
import re
from typing import Any

import numpy as np
import pytest

import wonderland as wl

NAMES_TEXT = """
abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh
bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bool
broadcast_arrays broadcast_to can_cast ceil clip complex128 complex64 concat conj copysign cos cosh
count_nonzero cumulative_prod cumulative_sum diff divide e empty empty_like equal exp expand_dims expm1 eye
fft finfo flip float32 float64 floor floor_divide from_dlpack full full_like greater greater_equal hypot
iinfo imag inf int16 int32 int64 int8 isdtype isfinite isinf isnan less less_equal linalg linspace log log10
log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul matrix_transpose max maximum mean
meshgrid min minimum moveaxis multiply nan negative newaxis nextafter nonzero not_equal ones ones_like
permute_dims pi positive pow prod real reciprocal remainder repeat reshape result_type roll round
searchsorted sign signbit sin sinh sort sqrt square squeeze stack std subtract sum take take_along_axis tan
tanh tensordot tile tril triu trunc uint16 uint32 uint64 uint8 unique_all unique_counts unique_inverse
unique_values unstack var vecdot where zeros zeros_like __array_api_version__ __array_namespace_info__
"""
OPERATORS_TEXT = """
abs add and eq floordiv ge gt invert le lshift lt matmul mod mul ne neg or pos pow rshift sub truediv xor
radd rand rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift rsub rtruediv rxor
"""
ATTRIBUTES_TEXT = """
dtype device mT ndim shape size T __array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__
__float__ __getitem__ __index__ __int__ __setitem__ to_device
"""
NAMES, OPERATORS, ATTRIBUTES = NAMES_TEXT.split(), OPERATORS_TEXT.split(), ATTRIBUTES_TEXT.split()
# where ours takes more than the standard asks for
WIDER = {"expand_dims", "squeeze", "repeat", "round", "astype", "from_dlpack"}


def test_every_name_is_there() -> None:
    assert [name for name in NAMES if not hasattr(wl, name)] == []
    assert [name for name in ATTRIBUTES if not hasattr(wl.Tensor, name)] == []
    assert [name for name in OPERATORS if not hasattr(wl.Tensor, f"__{name}__")] == []


def parameters(f: Any) -> list[tuple[str, str, Any]]:
    """Names, kinds and defaults; ours take `axis` by position, too, as in NumPy and PyTorch."""
    found = inspect.signature(f).parameters.values()
    return [(p.name, "any" if p.name == "axis" else p.kind.name, p.default) for p in found]


def test_signatures_are_those_of_the_standard() -> None:
    strict = pytest.importorskip("array_api_strict")
    with strict.ArrayAPIStrictFlags(api_version="2024.12"):
        different = []
        for name in NAMES:
            theirs = getattr(strict, name)
            compared = inspect.isfunction(theirs) and name not in WIDER
            if compared and parameters(theirs) != parameters(getattr(wl, name)):
                different.append(name)
    assert different == []


def test_wider_signatures_take_every_standard_call() -> None:
    x = wl.ones((2, 1, 3))
    assert wl.expand_dims(x, axis=0).shape == (1, 2, 1, 3)
    assert wl.squeeze(x, 1).shape == (2, 3)
    assert wl.squeeze(x, axis=1).shape == (2, 3)
    assert wl.repeat(x, 2, axis=1).shape == (2, 2, 3)
    assert wl.round(x).shape == x.shape
    assert wl.sum(x, 0).shape == wl.sum(x, axis=0).shape == (1, 3)
    assert wl.concat([x, x], 2).shape == wl.stack([x, x], 3).shape[:2] + (6,)
    assert wl.softmax(x, 1).shape == wl.roll(x, 1, 2).shape == x.shape
    assert wl.argmax(x, 2).shape == wl.max(x, 2).shape == (2, 1)
    assert wl.astype(x, wl.int8, copy=False, device="cpu").dtype == wl.int8
    assert wl.from_dlpack(x, device="cpu", copy=True).shape == (2, 1, 3)


def test_no_module_or_helper_leaks_into_the_namespace() -> None:
    import wonderland.arrays as arrays

    assert len(set(arrays.__all__)) == len(arrays.__all__)  # type: ignore[attr-defined]
    files = [importlib.import_module(f"wonderland.arrays.{m.name}") for m in pkgutil.iter_modules(arrays.__path__)]
    declared = {name for file in files for name in getattr(file, "__all__", ())}
    assert declared | {"stop_gradient"} == set(arrays.__all__)  # type: ignore[attr-defined]
    for name in arrays.__all__:  # type: ignore[attr-defined]
        assert not inspect.ismodule(getattr(wl, name)), name
    for module in (
        "conversion",
        "indexing",
        "creation",
        "manipulation",
        "joining",
        "reductions",
        "sorting",
        "types",
    ):
        assert not hasattr(wl, module), module
    for helper in ("promote", "as_tensor", "wrap", "np", "Any", "getitem", "At"):
        assert not hasattr(wl, helper), helper


def test_every_public_function_has_a_docstring_with_an_example() -> None:
    import wonderland.arrays as arrays

    for name in arrays.__all__:  # type: ignore[attr-defined]
        value = getattr(wl, name)
        if inspect.isfunction(value):
            assert value.__doc__, name
            assert ">>>" in value.__doc__, name


def test_constants() -> None:
    assert (wl.e, wl.pi, wl.inf, wl.newaxis) == (math.e, math.pi, math.inf, None)
    assert math.isnan(wl.nan)
    assert wl.__array_api_version__ == "2024.12"
    assert wl.ones(3)[wl.newaxis].shape == (1, 3)


def test_namespace_info() -> None:
    info = wl.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True
    assert info.capabilities()["data-dependent shapes"] is True
    assert info.default_device() == "cpu"
    assert info.devices() == ["cpu"]
    assert info.default_dtypes() == {
        "real floating": wl.float32,
        "complex floating": wl.complex64,
        "integral": wl.int64,
        "indexing": wl.int64,
    }
    assert set(info.dtypes()) == {name for name in NAMES if re.fullmatch(r"bool|u?int\d+|float\d+|complex\d+", name)}
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert info.dtypes(kind="bool") == {"bool": wl.bool}
    assert set(info.dtypes(kind=("bool", "complex floating"))) == {"bool", "complex64", "complex128"}
    with pytest.raises(wl.errors.InputError):
        info.dtypes(device="gpu")


def test_array_namespace() -> None:
    x = wl.ones(2)
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is wl
    with pytest.raises(wl.errors.InputError):
        x.__array_namespace__(api_version="1999.12")


def test_a_function_written_for_the_standard_runs_unchanged() -> None:
    strict = pytest.importorskip("array_api_strict")

    def standardise(x: Any) -> Any:
        xp = x.__array_namespace__()
        centred = x - xp.mean(x, axis=0, keepdims=True)
        return xp.astype(centred / xp.std(x, axis=0, keepdims=True), xp.float64)

    data = np.random.default_rng(0).normal(size=(5, 3))
    ours, theirs = standardise(wl.asarray(data)), standardise(strict.asarray(data))
    np.testing.assert_allclose(ours.numpy(), np.from_dlpack(theirs))


# --- dtype functions

DTYPES = list(wl.__array_namespace_info__().dtypes().values())


def test_isdtype() -> None:
    for dtype in DTYPES:
        if dtype == wl.bfloat16:
            continue
        for kind in (
            "bool",
            "signed integer",
            "unsigned integer",
            "integral",
            "real floating",
            "complex floating",
            "numeric",
        ):
            assert wl.isdtype(dtype, kind) == np.isdtype(dtype, kind), (dtype, kind)
        assert wl.isdtype(dtype, dtype)
    assert wl.isdtype(wl.bfloat16, ("bool", "real floating"))
    assert not wl.isdtype(wl.int8, wl.int16)
    with pytest.raises(wl.errors.DTypeError):
        wl.isdtype(wl.int8, "integer")


def test_finfo_and_iinfo() -> None:
    for dtype in (wl.float16, wl.float32, wl.float64, wl.complex64, wl.complex128):
        ours, theirs = wl.finfo(dtype), np.finfo(dtype)
        assert (ours.bits, ours.eps, ours.max, ours.min) == (theirs.bits, theirs.eps, theirs.max, theirs.min)
        assert ours.smallest_normal == theirs.smallest_normal
        assert ours.dtype == theirs.dtype
    assert wl.finfo(wl.bfloat16).eps == 2**-7
    assert wl.finfo(wl.ones(2)).bits == 32
    for dtype in (wl.int8, wl.uint8, wl.int64, wl.uint64):
        info = wl.iinfo(dtype)
        assert (info.bits, info.min, info.max) == (
            np.iinfo(dtype).bits,
            np.iinfo(dtype).min,
            np.iinfo(dtype).max,
        )
    assert wl.iinfo(wl.arange(3)).max == 2**63 - 1
    with pytest.raises(wl.errors.DTypeError):
        wl.finfo(wl.int8)
    with pytest.raises(wl.errors.DTypeError):
        wl.iinfo(wl.float32)


def test_result_type_and_can_cast() -> None:
    assert wl.result_type(wl.int8, wl.int16) == wl.int16
    assert wl.result_type(wl.ones(2), 1j) == wl.complex64
    assert wl.result_type(1, 2.5) == wl.float32
    assert wl.result_type(wl.bool, 3) == wl.int64
    assert wl.result_type(np.zeros(2), wl.float32) == wl.float64
    with pytest.raises(wl.errors.DTypeError):
        wl.result_type()
    for a in DTYPES:
        for b in DTYPES:
            try:
                common = wl.result_type(a, b)
            except wl.errors.DTypeError:
                assert not wl.can_cast(a, b)
                assert wl.uint64 in (a, b)
                continue
            assert common == wl.result_type(b, a)
            assert wl.can_cast(a, b) == (common == b)
            # within a kind, and from floating to complex, as in the standard
            if wl.bfloat16 not in (a, b) and (a.kind in "iu") == (b.kind in "iu") and a.kind != "b" != b.kind:
                assert common == np.promote_types(a, b)
            # an operation gives the type that result_type says
            assert (wl.ones(1, dtype=a) + wl.ones(1, dtype=b)).dtype == common
            assert wl.where(True, wl.ones(1, dtype=a), wl.ones(1, dtype=b)).dtype == common
            assert wl.concat([wl.ones(1, dtype=a), wl.ones(1, dtype=b)]).dtype == common
