"""Methods with PyTorch's names: values against NumPy, derivatives, and the same under jit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl

A = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
B = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
INDEX = np.array([[0, 2, 1, 1], [2, 0, 0, 1]])

# A method of a tensor like A, and the same in NumPy.
CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "expand": (lambda x: x[:, :1].expand(-1, 5), np.repeat(A[:, :1], 5, 1)),
    "expand to new axes": (lambda x: x.expand(2, 3, 4), np.stack([A, A])),
    "expand of a list": (lambda x: x.expand([2, -1, -1]), np.stack([A, A])),
    "expand_as": (lambda x: x[:, :1].expand_as(x), np.repeat(A[:, :1], 4, 1)),
    "view_as": (lambda x: x.view_as(wl.zeros((4, 3))), A.reshape(4, 3)),
    "unflatten": (lambda x: x.unflatten(1, (2, -1)), A.reshape(3, 2, 2)),
    "permute": (lambda x: x.permute(1, 0), A.T),
    "permute as it is": (lambda x: x.permute(0, 1), A),
    "movedim": (lambda x: x.movedim(0, 1), A.T),
    "swapdims": (lambda x: x.swapdims(0, 1), A.T),
    "t": (lambda x: x.t(), A.T),
    "tile": (lambda x: x.tile(2, 3), np.tile(A, (2, 3))),
    "repeat": (lambda x: x.repeat(2, axis=0), np.repeat(A, 2, 0)),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 1), np.repeat(A, 2, 1)),
    "chunk": (lambda x: x.chunk(3, 1)[1], A[:, 2:]),
    "split": (lambda x: x.split(3, 1)[1], A[:, 3:]),
    "split by sizes": (lambda x: x.split([1, 3], 1)[1], A[:, 1:]),
    "unbind": (lambda x: x.unbind(1)[2], A[:, 2]),
    "roll": (lambda x: x.roll(1, 0), np.roll(A, 1, 0)),
    "flip": (lambda x: x.flip(1), A[:, ::-1]),
    "flip two": (lambda x: x.flip(0, 1), A[::-1, ::-1]),
    "narrow": (lambda x: x.narrow(1, 1, 2), A[:, 1:3]),
    "select": (lambda x: x.select(1, -1), A[:, -1]),
    "gather": (lambda x: x.gather(0, INDEX), np.take_along_axis(A, INDEX, 0)),
    "index_select": (lambda x: x.index_select(1, np.array([2, 0])), A[:, [2, 0]]),
    "masked_fill": (lambda x: x.masked_fill(A > 0, 7.0), np.where(A > 0, 7.0, A)),
    "where": (lambda x: x.where(A > 0, B), np.where(A > 0, A, B)),
    "topk": (lambda x: x.topk(2, axis=1)[0], -np.sort(-A, 1)[:, :2]),
    "smallest": (lambda x: x.topk(2, axis=1, largest=False).values, np.sort(A, 1)[:, :2]),
    "tril": (lambda x: x.tril(1), np.tril(A, 1)),
    "triu": (lambda x: x.triu(-1), np.triu(A, -1)),
    "add": (lambda x: x.add(B, alpha=2), A + 2 * B),
    "sub": (lambda x: x.sub(B), A - B),
    "mul": (lambda x: x.mul(B), A * B),
    "div": (lambda x: x.div(B), A / B),
    "pow": (lambda x: x.abs().pow(1.5), np.abs(A) ** 1.5),
    "mm": (lambda x: x.mm(B.T), A @ B.T),
    "outer": (lambda x: x[0].outer(B[0]), np.outer(A[0], B[0])),
    "maximum": (lambda x: x.maximum(B), np.maximum(A, B)),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), np.clip(A, -0.5, 0.5)),
    "clamp from below": (lambda x: x.clamp(min=0), np.maximum(A, 0)),
    "sigmoid": (lambda x: x.sigmoid(), 1 / (1 + np.exp(-A))),
    "relu": (lambda x: x.relu(), np.maximum(A, 0)),
    "softmax": (lambda x: x.softmax(0), np.exp(A) / np.exp(A).sum(0)),
    "log_softmax": (lambda x: x.log_softmax(1), A - np.log(np.exp(A).sum(1, keepdims=True))),
    "logsumexp": (lambda x: x.logsumexp(1), np.log(np.exp(A).sum(1))),
    "amax": (lambda x: x.amax(1), A.max(1)),
    "norm": (lambda x: x.norm(), np.linalg.norm(A)),
    "norm 1": (lambda x: x.norm(1, axis=0), np.abs(A).sum(0)),
    "norm 3": (lambda x: x.norm(3, axis=1), (np.abs(A) ** 3).sum(1) ** (1 / 3)),
    "norm inf": (lambda x: x.norm(math.inf), np.abs(A).max()),
    "diff": (lambda x: x.diff(axis=1), np.diff(A, axis=1)),
    "log1p": (lambda x: x.abs().log1p(), np.log1p(np.abs(A))),
    "rsqrt": (lambda x: x.square().add(1.0).rsqrt(), 1 / np.sqrt(A**2 + 1)),
    "double": (lambda x: x.double(), A.astype(np.float64)),
    "contiguous": (lambda x: x.contiguous().cpu(), A),
}


@pytest.mark.parametrize("name", CASES)
def test_values_derivatives_and_jit(name: str) -> None:
    method, wanted = CASES[name]
    x = wl.tensor(A)
    found = method(x)
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(wl.jit(method)(x), wanted, rtol=2e-6, atol=1e-6)
    weights = np.random.default_rng(2).normal(size=found.shape)
    wl.check_grads(lambda y: (method(y) * weights).sum(), (wl.tensor(A.astype(np.float64)),), modes=["reverse"])


TYPES = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32",
    "short": "int16", "byte": "uint8", "bool": "bool",
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_types(name: str) -> None:
    x = wl.tensor([0.0, 1.5, 2.0])
    assert getattr(x, name)().dtype.name == TYPES[name]
    assert x.type_as(wl.zeros(1, dtype=wl.int64)).dtype == wl.int64


def test_what_is_not_differentiated() -> None:
    x = wl.tensor(A)
    assert (x.numel(), x.nelement(), x.dim(), x.element_size()) == (12, 12, 2, 4)
    assert x.is_floating_point()
    assert x.is_contiguous()
    assert not x.long().is_floating_point()
    np.testing.assert_array_equal(x.masked_select(A > 0), A[A > 0])
    np.testing.assert_array_equal(x.masked_select(A[0] > 0), A[:, A[0] > 0].reshape(-1))
    np.testing.assert_array_equal(x.gt(B), A > B)
    np.testing.assert_array_equal(x.nonzero()[1], A.nonzero()[1])
    np.testing.assert_array_equal((x > 0).argwhere(), np.argwhere(A > 0))
    np.testing.assert_array_equal(x.scatter_add(0, INDEX, wl.ones((2, 4))), A + _counts())
    np.testing.assert_array_equal(x.div(B, rounding_mode="trunc"), np.trunc(A / B))
    assert x.allclose(A)
    assert int((x > 0).count_nonzero()) == np.count_nonzero(A > 0)


def _counts() -> np.ndarray:
    counts = np.zeros_like(A)
    for i, j in np.ndindex(INDEX.shape):
        counts[INDEX[i, j], j] += 1
    return counts


def test_pieces_are_those_of_pytorch() -> None:
    """A method that only PyTorch has is PyTorch's, the function of NumPy's name is NumPy's."""
    x = wl.arange(7)
    assert [p.tolist() for p in x.split(3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [p.tolist() for p in x.chunk(3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [len(p) for p in x.chunk(5)] == [2, 2, 2, 1]
    assert [len(p) for p in wl.split(wl.arange(6), 3)] == [2, 2, 2]


def test_a_parameter_has_the_methods_too() -> None:
    parameter = wl.nn.Parameter(wl.tensor(A))
    np.testing.assert_array_equal(parameter.masked_fill(A > 0, 0.0), np.where(A > 0, 0, A))
    assert parameter.numel() == 12


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda x: x.repeat(2, 3), "x.tile(2, 3)"),
        (lambda x: x.transpose(0, 1), "x.swapaxes(0, 1)"),
        (lambda x: x.transpose(-2, -1), "x.swapaxes(-2, -1)"),
        (lambda x: x.expand(3), "a size for each"),
        (lambda x: x.expand(-1, 3, 4), "new axes"),
        (lambda x: x.split([1, 1], 1), "add up"),
        (lambda x: x.split(0), "1 or more"),
        (lambda x: x.chunk(2, 5), "no axis 5"),
        (lambda x: x.narrow(1, 3, 4), "an axis of size 4"),
        (lambda x: x.div(2.0, rounding_mode="up"), '"floor"'),
        (lambda x: x.norm("fro"), "wl.linalg.norm"),
        (lambda x: wl.zeros((2, 2, 2)).t(), "x.mT"),
    ],
)
def test_errors(call: Callable[[wl.Tensor], Any], said: str) -> None:
    with pytest.raises(wl.errors.InputError) as error:
        call(wl.tensor(A))
    assert said in str(error.value)
