"""The tensor itself: what it is, that it cannot change, and how it turns into Python, NumPy and back."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import wonderland as wl

DTYPES = list(wl.__array_namespace_info__().dtypes())


@pytest.mark.book("1.08", "S-01", name="wl.Tensor.ndim")
def test_rank_and_shape() -> None:
    assert wl.Tensor(3.0).shape == ()
    assert wl.Tensor(3.0).ndim == 0
    for n in range(6):
        x = wl.zeros((2,) * n)
        assert (x.ndim, x.shape, x.size) == (n, (2,) * n, 2**n)
        assert wl.tensor(x.tolist()).shape == x.shape
    x = wl.zeros((2, 3), dtype="float64")
    assert (x.itemsize, x.nbytes, x.device) == (8, 48, "cpu")
    assert len(x) == 2


@pytest.mark.book("1.08", name="wl.Tensor")
def test_scalars_are_tensors_like_all_others() -> None:
    x = wl.tensor(3.0)
    assert isinstance(x + 1, wl.Tensor)
    assert (x + 1).shape == ()
    assert (x * wl.ones(2)).shape == (2,)
    assert isinstance(x.sum(), wl.Tensor)
    assert isinstance(wl.ones(3)[0], wl.Tensor)
    assert isinstance(wl.ones(3).sum(), wl.Tensor)


def test_nobody_else_can_change_it() -> None:
    x = wl.ones(3)
    y = x
    y += 1  # a new tensor under the old name
    assert x.tolist() == [1, 1, 1]
    assert y.tolist() == [2, 2, 2]
    for f in (
        lambda: x.numpy().__setitem__(0, 5.0),
        lambda: np.asarray(x).fill(5.0),
        lambda: np.copyto(x, 5.0),  # type: ignore[arg-type, call-overload]
        lambda: np.put(x, 0, 5.0),  # type: ignore[arg-type]
        lambda: np.from_dlpack(x).fill(5.0),
    ):
        with pytest.raises(ValueError, match="read-only"):
            f()
    assert x.tolist() == [1, 1, 1]
    for y in (copy.copy(x), copy.deepcopy(x), x.copy(), x.clone()):
        y[0] = 2.0
        assert y.tolist() == [2, 1, 1]
    assert x.tolist() == [1, 1, 1]


OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "divmod": lambda a, b: divmod(a, b)[0] + divmod(a, b)[1],
}


@pytest.mark.parametrize("symbol", OPERATORS)
def test_operators_in_both_directions(symbol: str) -> None:
    f = OPERATORS[symbol]
    data = np.array([1.5, 2.0, 4.0])
    x = wl.asarray(data)
    for other in (2.0, 3, np.array([3.0, 1.0, 2.0]), np.float64(2.0)):
        np.testing.assert_allclose(f(x, other).numpy(), f(data, other))
        np.testing.assert_allclose(f(other, x).numpy(), f(other, data))
        assert isinstance(f(other, x), wl.Tensor)
    np.testing.assert_allclose(f(x, x).numpy(), f(data, data))


def test_more_operators() -> None:
    x, i = wl.tensor([[1.0, -2.0], [3.0, 4.0]]), wl.tensor([5, 6])
    np.testing.assert_array_equal((-x).numpy(), -x.numpy())
    np.testing.assert_array_equal((+x).numpy(), x.numpy())
    np.testing.assert_array_equal(abs(x).numpy(), np.abs(x.numpy()))
    np.testing.assert_array_equal((x @ x).numpy(), x.numpy() @ x.numpy())
    np.testing.assert_array_equal((np.ones((2, 2), np.float32) @ x).numpy(), np.ones((2, 2)) @ x.numpy())  # type: ignore[attr-defined]
    np.testing.assert_array_equal((~i).numpy(), ~i.numpy())
    for f in (
        lambda a, b: a & b,
        lambda a, b: a | b,
        lambda a, b: a ^ b,
        lambda a, b: a << b,
        lambda a, b: a >> b,
    ):
        np.testing.assert_array_equal(f(i, 2).numpy(), f(i.numpy(), 2))
        np.testing.assert_array_equal(f(2, i).numpy(), f(2, i.numpy()))
    i <<= 1
    assert i.tolist() == [10, 12]


def test_comparison_with_other_things() -> None:
    x = wl.ones(2)
    assert (x == "text") is False  # type: ignore[comparison-overlap]
    assert (x != None) is True  # noqa: E711 - the operator is what is tested
    assert x in [x]
    assert len({x, x, wl.ones(2)}) == 2  # identity, as for every mutable-looking object
    for bad in ("text", [1, 2], object(), None):
        with pytest.raises(TypeError):
            _ = x + bad


def test_python_numbers() -> None:
    assert float(wl.tensor(2.5)) == 2.5
    assert int(wl.tensor([[3.9]])) == 3
    assert complex(wl.tensor(1j)) == 1j
    assert bool(wl.tensor([1])) is True
    assert [10, 20, 30][wl.tensor(1)] == 20
    assert math.sqrt(wl.tensor(4.0)) == 2
    assert wl.tensor(2.5).item() == 2.5
    assert wl.arange(6).reshape(2, 3).item(1, 2) == 5
    assert f"{wl.tensor(2.5):.3f}" == "2.500"
    assert wl.tensor([[1, 2]]).tolist() == [[1, 2]]
    for f in (
        lambda: bool(wl.ones(2)),
        lambda: float(wl.ones(2)),
        lambda: wl.ones(2).item(),
        lambda: bool(wl.ones(0)),
    ):
        with pytest.raises(wl.errors.InputError):
            f()
    with pytest.raises(wl.errors.DTypeError):
        _ = [1, 2][wl.tensor(1.0)]
    if_true = "yes" if wl.tensor(1.0) > 0 else "no"
    assert if_true == "yes"


def test_copies_of_a_tensor_that_gathers_gradients_have_their_own() -> None:
    w = wl.tensor([1.0, 2.0]).requires_grad_()
    copied = copy.deepcopy({"a": w, "b": w})
    assert copied["a"] is copied["b"]
    for other in (copied["a"], pickle.loads(pickle.dumps(w))):
        assert other is not w
        assert other.requires_grad
        (other**2).sum().backward()
        assert other.grad.tolist() == [2.0, 4.0]
    assert w.grad is None
    assert not pickle.loads(pickle.dumps(2 * w)).requires_grad


@pytest.mark.parametrize("dtype", DTYPES)
def test_pickles_keep_everything(dtype: str) -> None:
    x = wl.asarray(np.arange(6).reshape(2, 3), dtype=dtype)
    back = pickle.loads(pickle.dumps(x))
    assert back.dtype is x.dtype
    np.testing.assert_array_equal(back.numpy(), x.numpy())
    assert bool((back + x == x + x).all())


def test_text() -> None:
    assert repr(wl.tensor([1.0, 2.0])) == "tensor([1., 2.])"
    assert repr(wl.tensor(3)) == "tensor(3)"
    assert repr(wl.ones(2, dtype="float64")) == "tensor([1., 1.], dtype=float64)"
    assert "shape=(0, 3)" in repr(wl.zeros((0, 3)))
    assert len(repr(wl.zeros((1000, 1000)))) < 1000
    assert repr(wl.tensor([True, False])) == "tensor([ True, False])"


def test_methods_are_the_functions_of_the_same_name() -> None:
    x = wl.asarray(np.random.default_rng(0).uniform(0.1, 1, size=(3, 4)))
    names = "abs argmax argsort conj cos cumprod cumsum exp flatten log mean ravel round sin sort sqrt"
    for name in (*names.split(), "square", "squeeze", "std", "tanh", "transpose", "var"):
        np.testing.assert_array_equal(getattr(x, name)().numpy(), getattr(wl, name)(x).numpy(), err_msg=name)
    np.testing.assert_array_equal(x.clip(0.2, 0.5).numpy(), wl.clip(x, 0.2, 0.5).numpy())
    np.testing.assert_array_equal(x.take(wl.tensor([0, 2]), axis=1).numpy(), x.numpy()[:, [0, 2]])
    np.testing.assert_array_equal(x.repeat(2, axis=0).numpy(), np.repeat(x.numpy(), 2, axis=0))
    np.testing.assert_array_equal(x.dot(x.T).numpy(), x.numpy() @ x.numpy().T)
    np.testing.assert_array_equal(x.swapaxes(0, 1).numpy(), x.numpy().T)
    np.testing.assert_array_equal(x.permute(1, 0).numpy(), x.numpy().T)
    np.testing.assert_array_equal(x.view(4, 3).numpy(), x.numpy().reshape(4, 3))
    assert x.unsqueeze(-1).shape == (3, 4, 1)
    assert x.broadcast_to((2, 3, 4)).shape == (2, 3, 4)
    assert x.to("float32").dtype == wl.float32
    assert x.to("cpu") is x
    assert x.to_device("cpu") is x
    z = wl.asarray(np.array([[1 + 2j, 3j]]))
    np.testing.assert_array_equal(z.H.numpy(), z.numpy().conj().T)
    np.testing.assert_array_equal(z.real.numpy(), z.numpy().real)
    np.testing.assert_array_equal(z.imag.numpy(), z.numpy().imag)
    with pytest.raises(wl.errors.InputError):
        x.to_device("gpu")


def test_numpys_functions_take_tensors() -> None:
    x = wl.tensor([3.0, 1.0, 2.0])
    assert isinstance(np.sort(x), np.ndarray)
    assert np.concatenate([x, x]).shape == (6,)
    with pytest.raises(wl.errors.TraceError, match="NumPy"):
        wl.grad(lambda x: wl.asarray(np.sort(x)).sum())(x)


def test_numpys_elementwise_functions_are_ours() -> None:
    x = wl.tensor([3.0, 1.0, 2.0])
    assert isinstance(np.sin(x), wl.Tensor)
    np.testing.assert_allclose(wl.grad(lambda x: np.sin(x).sum())(x), np.cos(x.numpy()), rtol=1e-6)
    np.testing.assert_allclose(wl.jit(lambda x: np.arctan2(x, 2.0))(x), np.arctan2(x.numpy(), 2.0), rtol=1e-6)
    assert np.heaviside(x, 0.0).tolist() == [1.0, 1.0, 1.0]  # one that we do not have
    array = np.ones(3, np.float32)
    array += x
    assert array.tolist() == [4.0, 2.0, 3.0]


def test_numpy_does_not_cut_gradients_off_unnoticed() -> None:
    w = wl.tensor([1.0, 2.0]).requires_grad_()
    (wl.tensor(np.exp(w)) * w).sum().backward()
    np.testing.assert_allclose(w.grad, np.exp([1.0, 2.0]) * [2.0, 3.0], rtol=1e-6)  # type: ignore[arg-type]
    with pytest.raises(wl.errors.GradientError, match=r"np.sum: .* shape \(2,\)"):
        np.sum(w)
    assert np.array_equal(w, [1.0, 2.0])  # nothing to differentiate
    assert np.sum(w.detach()) == 3.0
    with wl.no_grad():
        assert np.sum(w) == 3.0


@pytest.mark.book("2.01", name="wl.Tensor.requires_grad_")
@pytest.mark.parametrize("dtype", ("bool", "int64", "uint8"))
def test_integers_have_no_gradients(dtype: str) -> None:
    x = wl.ones(2, dtype=dtype)
    with pytest.raises(wl.errors.GradientError):
        x.requires_grad_()
    with pytest.raises(wl.errors.GradientError):
        wl.grad(lambda x: x.astype("float32").sum())(x)


@pytest.mark.book("2.02", name="wl.Tensor.device")
def test_the_one_device() -> None:
    """There is one backend so far; programs name it, and every other name is refused."""
    x = wl.ones((2, 2), device="cpu")
    assert x.device == "cpu"
    assert (x @ x).device == "cpu"
    results: list[Any] = [f(x) for f in (lambda x: x @ x + 1, wl.jit(lambda x: x @ x + 1))]
    np.testing.assert_array_equal(results[0].numpy(), results[1].numpy())
