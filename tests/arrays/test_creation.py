"""Making tensors: from Python, from NumPy, through DLPack, and by the functions of the standard."""

from __future__ import annotations

import array
import enum
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl

ALL = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


@pytest.mark.book("2.01", "B2-01", name="wl.tensor")
def test_elements_have_one_type() -> None:
    assert wl.tensor(3.0).dtype == wl.float32
    assert wl.tensor(3).dtype == wl.int64
    assert wl.tensor(True).dtype == wl.bool
    assert wl.tensor(1j).dtype == wl.complex64
    assert wl.tensor([1, 2.5]).dtype == wl.float32
    assert wl.tensor([True, 2]).dtype == wl.int64
    assert wl.tensor([1, 2j]).dtype == wl.complex64
    assert wl.tensor([]).dtype == wl.float32
    assert wl.tensor(np.float64(1)).dtype == wl.float64
    assert wl.tensor(np.zeros(2, np.int8)).dtype == wl.int8
    assert wl.tensor([np.zeros(2), np.ones(2)]).dtype == wl.float64
    assert wl.tensor(range(3)).tolist() == [0, 1, 2]


@pytest.mark.book("2.01", "B2-01", name="wl.tensor")
@pytest.mark.parametrize(
    ("data", "error"),
    (
        ([[1, 2], [3]], wl.errors.ShapeError),
        ([[1], [[2]]], wl.errors.ShapeError),
        (["a", 1], wl.errors.DTypeError),
        ("text", wl.errors.DTypeError),
        ([None], wl.errors.DTypeError),
        (None, wl.errors.DTypeError),
        ({"a": 1}, wl.errors.DTypeError),
        ({1, 2}, wl.errors.DTypeError),
        ([2**70], wl.errors.DTypeError),
        (2**70, wl.errors.DTypeError),
        (np.array(["a"]), wl.errors.DTypeError),
        (np.array([object()]), wl.errors.DTypeError),
    ),
)
def test_what_is_not_a_tensor(data: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        wl.tensor(data)


@pytest.mark.parametrize(
    ("data", "dtype"),
    (
        ([1.5], "int64"),
        (1.5, "int64"),
        ([300], "uint8"),
        (300, "uint8"),
        (-1, "uint8"),
        ([-1], "uint64"),
        (1j, "float32"),
        ([1j], "float64"),
        (math.nan, "int64"),
    ),
)
def test_numbers_that_do_not_fit_are_refused(data: Any, dtype: str) -> None:
    with pytest.raises(wl.errors.DTypeError):
        wl.tensor(data, dtype=dtype)
    if not isinstance(data, list):
        with pytest.raises(wl.errors.DTypeError):
            wl.full((2,), data, dtype=dtype)


def test_whole_floats_fit_into_integers() -> None:
    assert wl.tensor([1.0, 2.0], dtype="int8").tolist() == [1, 2]
    assert wl.full((2,), 3.0, dtype="int64").tolist() == [3, 3]
    assert wl.tensor([1e300], dtype="float32").tolist() == [math.inf]


def test_subclasses_of_numbers() -> None:
    class Level(enum.IntEnum):
        LOW = 1

    assert wl.tensor(Level.LOW).item() == 1
    assert (wl.ones(1) + Level.LOW).item() == 2


def test_tensors_inside_lists_are_stacked_and_differentiated() -> None:
    x = wl.tensor(2.0)
    made = wl.tensor([[x, 1.0], [3, x]])
    assert made.shape == (2, 2)
    assert made.tolist() == [[2, 1], [3, 2]]
    assert wl.grad(lambda x: wl.tensor([x, 3 * x, 1.0]).sum())(2.0).item() == 4
    assert wl.tensor([wl.ones((), dtype="float64"), 0.1])[1].item() == 0.1
    with pytest.raises(wl.errors.ShapeError):
        wl.tensor([wl.ones(2), wl.ones(3)])


@pytest.mark.parametrize("dtype", ALL)
def test_numpy_both_ways_without_copies(dtype: str) -> None:
    data = np.arange(6).reshape(2, 3).astype(wl.asarray(0, dtype=dtype).dtype)
    x = wl.asarray(data)
    assert x.dtype == dtype
    assert np.shares_memory(x.numpy(), data)
    back = np.asarray(x)
    assert back.dtype == data.dtype
    assert np.shares_memory(back, data)
    with pytest.raises(ValueError, match="read-only"):
        back[0] = 0
    assert not np.shares_memory(np.array(x), data)
    assert not np.shares_memory(wl.tensor(data).numpy(), data)
    assert not np.shares_memory(wl.asarray(x, copy=True).numpy(), data)
    assert wl.asarray(x) is x
    assert np.shares_memory(x.astype(dtype), x)  # another tensor, which can be assigned to by itself


def test_asarray_copy_false() -> None:
    data = np.zeros(3)
    assert np.shares_memory(wl.asarray(data, copy=False).numpy(), data)
    with pytest.raises(wl.errors.InputError, match="without a copy"):
        wl.asarray(data, dtype="float32", copy=False)
    with pytest.raises(wl.errors.InputError, match="without a copy"):
        wl.asarray(wl.zeros(3), dtype="float64", copy=False)
    with pytest.raises(ValueError, match="copy"):
        np.array(wl.zeros(3), dtype=np.int64, copy=False)


def test_requires_grad_makes_a_leaf_of_its_own() -> None:
    x = wl.tensor([1.0, 2.0])
    y = wl.tensor(x, requires_grad=True)
    assert y.requires_grad
    assert not x.requires_grad
    z = wl.tensor(y * 2, requires_grad=True)
    assert z.is_leaf


@pytest.mark.parametrize("dtype", [d for d in ALL if d != "bfloat16"])
def test_dlpack_both_ways(dtype: str) -> None:
    data = np.arange(4).astype(dtype)
    x = wl.from_dlpack(data)
    assert np.shares_memory(x.numpy(), data)
    back = np.from_dlpack(x)
    assert np.shares_memory(back, data)
    assert not back.flags.writeable
    assert x.__dlpack_device__() == (1, 0)
    assert not np.shares_memory(wl.from_dlpack(data, copy=True).numpy(), data)
    view = np.from_dlpack(wl.broadcast_to(x, (2, 4)))
    np.testing.assert_array_equal(view, np.broadcast_to(data, (2, 4)))
    with pytest.raises(wl.errors.InputError):
        wl.from_dlpack(object())  # type: ignore[arg-type]


def test_dlpack_with_the_strict_library() -> None:
    strict = pytest.importorskip("array_api_strict")
    theirs = strict.from_dlpack(wl.arange(3))
    assert wl.from_dlpack(theirs).tolist() == [0, 1, 2]
    assert wl.asarray(theirs).tolist() == [0, 1, 2]


def test_buffers_and_bytes() -> None:
    assert wl.asarray(array.array("d", [1.0, 2.0])).dtype == wl.float64
    assert wl.asarray(bytearray(b"\x01\x02")).tolist() == [1, 2]
    assert wl.asarray(np.zeros(2, ">f4")).dtype == wl.float32


def test_operators_between_numpy_and_tensors_give_tensors() -> None:
    a, t = np.array([1.0, 2.0]), wl.tensor([3.0, 4.0], wl.float64)
    for result in (
        a + t,
        a - t,
        a * t,
        a / t,
        a @ t,
        a**t,
        a < t,
        a == t,
        np.float64(2) * t,
        np.int64(2) - t,
        a // t,
        a % t,
    ):
        assert isinstance(result, wl.Tensor)
    assert (a - t).tolist() == [-2, -2]
    assert (np.float64(2) * wl.ones(2)).dtype == wl.float32
    assert isinstance(np.sin(t), wl.Tensor)


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5).filter(bool))
def test_arange_of_integers(start: int, stop: int, step: int) -> None:
    np.testing.assert_array_equal(wl.arange(start, stop, step).numpy(), np.arange(start, stop, step))
    assert wl.arange(start, stop, step).dtype == wl.int64


def test_arange_edges() -> None:
    assert wl.arange(3).tolist() == [0, 1, 2]
    assert wl.arange(0.5, 2.0, 0.5).tolist() == [0.5, 1.0, 1.5]
    assert wl.arange(2, dtype="float16").dtype == wl.float16
    assert wl.arange(2**62, 2**62 + 2).tolist() == [2**62, 2**62 + 1]
    assert wl.arange(2**63, 2**63 + 2, dtype="uint64").tolist() == [2**63, 2**63 + 1]
    assert wl.arange(wl.tensor(3)).tolist() == [0, 1, 2]
    assert wl.arange(np.int64(2), np.int64(4)).tolist() == [2, 3]
    with pytest.raises(wl.errors.InputError, match="step"):
        wl.arange(0, 1, 0)
    with pytest.raises(wl.errors.DTypeError):
        wl.arange(200, 300, dtype="uint8")


def test_linspace_and_logspace() -> None:
    for num in (0, 1, 2, 7):
        for endpoint in (True, False):
            np.testing.assert_allclose(
                wl.linspace(-1, 2, num, endpoint=endpoint, dtype="float64").numpy(),
                np.linspace(-1, 2, num, endpoint),
            )
    assert wl.linspace(0, 1j, 3).dtype == wl.complex64
    np.testing.assert_allclose(wl.logspace(0, 3, 4, base=2, dtype="float64").numpy(), [1, 2, 4, 8])
    # derivatives flow through the ends
    assert wl.grad(lambda stop: wl.linspace(0.0, stop, 5).sum())(wl.tensor(2.0)).item() == pytest.approx(2.5)
    with pytest.raises(wl.errors.InputError):
        wl.linspace(0, 1, -1)


@pytest.mark.parametrize("dtype", ALL)
def test_constants(dtype: str) -> None:
    for made, value in ((wl.zeros, 0), (wl.ones, 1), (wl.empty, 0)):
        for shape in ((), (0,), (2, 3), 4):
            x = made(shape, dtype=dtype)
            assert x.dtype == dtype
            assert x.shape == (shape if isinstance(shape, tuple) else (shape,))
            assert bool((x == value).all())
    x = wl.zeros((2, 3), dtype=dtype)
    assert wl.ones_like(x).dtype == dtype
    assert wl.zeros_like(x, dtype="int8").dtype == wl.int8
    assert wl.full_like(x, 1).tolist() == np.ones((2, 3)).tolist()
    assert wl.full((2,), 1, dtype=dtype).dtype == dtype


def test_full_takes_the_type_of_the_value() -> None:
    assert wl.full((2,), 7).dtype == wl.int64
    assert wl.full((2,), 7.0).dtype == wl.float32
    assert wl.full((2,), True).dtype == wl.bool
    assert wl.full((2,), 0.1, dtype="float64")[0].item() == 0.1
    assert wl.grad(lambda v: wl.full((2, 3), v).sum())(1.5).item() == 6
    with pytest.raises(wl.errors.ShapeError):
        wl.full((2,), wl.ones(2))


@pytest.mark.book("2.49", name="wl.eye")
def test_matrices() -> None:
    for n, m, k in ((3, 3, 0), (2, 4, 1), (4, 2, -2), (0, 3, 0), (2, 2, 5)):
        np.testing.assert_array_equal(wl.eye(n, m, k=k).numpy(), np.eye(n, m, k))
        np.testing.assert_array_equal(wl.tri(n, m, k).numpy(), np.tri(n, m, k))
        x = np.arange(2.0 * n * m).reshape(2, n, m)
        np.testing.assert_array_equal(wl.tril(x, k=k).numpy(), np.tril(x, k))
        np.testing.assert_array_equal(wl.triu(x, k=k).numpy(), np.triu(x, k))
        np.testing.assert_array_equal(wl.diag(x[0], k).numpy(), np.diag(x[0], k))
        np.testing.assert_array_equal(wl.diagonal(x, offset=k).numpy(), np.diagonal(x, k, -2, -1))
        np.testing.assert_array_equal(wl.diag(np.arange(n), k).numpy(), np.diag(np.arange(n), k))
    # e_i is row i of the identity
    for i in range(4):
        np.testing.assert_array_equal(wl.one_hot(wl.tensor(i), 4).numpy(), wl.eye(4)[i].numpy())
    gradient = wl.grad(lambda v: (wl.diag(v) * wl.tensor([[2.0, 5.0], [5.0, 3.0]])).sum())(wl.ones(2))
    assert gradient.tolist() == [2, 3]


def test_one_hot() -> None:
    ids = wl.tensor([[0, 2], [1, 1]])
    hot = wl.one_hot(ids, 3)
    assert hot.shape == (2, 2, 3)
    assert wl.argmax(hot, axis=-1).tolist() == ids.tolist()
    assert wl.one_hot(wl.zeros(0, dtype="int64"), 3).shape == (0, 3)
    for bad in ([3], [-4]):
        with pytest.raises(wl.errors.IndexOutOfRange):
            wl.one_hot(wl.tensor(bad), 3)
    with pytest.raises(wl.errors.DTypeError):
        wl.one_hot(wl.tensor([0.5]), 3)


def test_meshgrid() -> None:
    vectors = [np.arange(n) for n in (2, 3, 4)]
    for count in (1, 2, 3):
        for indexing in ("xy", "ij"):
            ours = wl.meshgrid(*vectors[:count], indexing=indexing)
            for o, t in zip(ours, np.meshgrid(*vectors[:count], indexing=indexing), strict=True):
                np.testing.assert_array_equal(o.numpy(), t)
    with pytest.raises(wl.errors.ShapeError):
        wl.meshgrid(wl.zeros((2, 2)))
    with pytest.raises(wl.errors.InputError):
        wl.meshgrid(wl.zeros(2), indexing="ab")


@pytest.mark.parametrize(
    "f",
    (
        lambda: wl.zeros((1 << 40, 1 << 10)),
        lambda: wl.ones(1 << 60),
        lambda: wl.full((1 << 50,), 1.0),
        lambda: wl.arange(1 << 60),
        lambda: wl.linspace(0, 1, 1 << 60),
        lambda: wl.eye(1 << 30),
        lambda: wl.tri(1 << 30),
        lambda: wl.repeat(wl.zeros(1 << 10), 1 << 50),
    ),
)
def test_what_cannot_fit_is_refused_before_it_is_allocated(f: Any) -> None:
    with pytest.raises(wl.errors.SizeError, match="GiB"):
        f()


def test_bad_shapes_and_devices() -> None:
    for shape in ((-1,), (2, -3)):
        with pytest.raises(wl.errors.ShapeError, match="negative"):
            wl.zeros(shape)
    for shape in ((1.5,), "ab", None):  # type: ignore[assignment]
        with pytest.raises(wl.errors.ShapeError):
            wl.zeros(shape)
    for f in (wl.zeros, wl.ones, wl.empty):
        assert f(2, device="cpu").device == "cpu"
        with pytest.raises(wl.errors.InputError, match="gpu"):
            f(2, device="gpu")
    with pytest.raises(wl.errors.InputError):
        wl.asarray([1], device="tpu")
