"""What a bad call says: the operation, what it received, what to do, in which module, and on which line.

Each row of the tables is a call, the exception, and words that the message must contain.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from wonderland import errors, nn
from wonderland.errors import (
    AxisError,
    ConversionError,
    DTypeError,
    GradientError,
    IndexOutOfRange,
    InputError,
    LinearAlgebraError,
    ModuleError,
    ShapeError,
    SizeError,
    TraceError,
    TreeError,
    WonderlandError,
)


class Row(NamedTuple):
    call: Callable[[], Any]
    kind: type[WonderlandError]
    words: tuple[str, ...]


def row(call: Callable[[], Any], kind: type[WonderlandError], *words: str) -> Row:
    return Row(call, kind, words)


x23, x34, x45, v3, v4 = wl.ones((2, 3)), wl.ones((3, 4)), wl.ones((4, 5)), wl.ones(3), wl.ones(4)
integers, truth = wl.arange(3), wl.tensor([True, False])
singular = wl.tensor([[1.0, 2.0], [2.0, 4.0]])

SHAPES = [
    row(lambda: x23 + v4, ShapeError, "add: shapes (2, 3) and (4,)", "sizes 3 and 4"),
    row(lambda: 2 * x23 - x45, ShapeError, "subtract", "(2, 3)", "(4, 5)"),
    row(lambda: x23 > v4, ShapeError, "greater", "(2, 3)", "(4,)"),
    row(lambda: wl.where(x23 > 0, x23, v4), ShapeError, "where", "(2, 3)", "(4,)"),
    row(lambda: x23 @ x45, ShapeError, "matmul: shapes (2, 3) and (4, 5)", "inner sizes 3 and 4"),
    row(lambda: v3 @ v4, ShapeError, "matmul", "(3,)", "(4,)"),
    row(lambda: wl.matmul(2.0, x23), ShapeError, "matmul", "()", "(2, 3)"),
    row(lambda: wl.dot(v3, v4), ShapeError, "dot", "(3,)", "(4,)"),
    row(lambda: wl.outer(x23, v3), ShapeError, "outer", "(2, 3)", "(3,)"),
    row(lambda: wl.cross(v4, v4), ShapeError, "cross", "(4,)"),
    row(lambda: wl.tensordot(x23, x34, axes=2), ShapeError, "tensordot", "(2, 3)", "(3, 4)"),
    row(lambda: wl.einsum("ij,jk->ik", x23, x45), ShapeError, "einsum", "ij,jk->ik", "3", "4"),
    row(lambda: wl.einsum("ijk->i", x23), ShapeError, "einsum", "ijk", "(2, 3)"),
    row(lambda: wl.einsum("ij->k", x23), InputError, "einsum", "'ij->k'", "invents"),
    row(lambda: wl.einsum("ij,jk->ik", x23), ShapeError, "einsum", "ij,jk->ik", "2 operands", "1"),
    row(lambda: wl.reshape(x23, (4, 2)), ShapeError, "reshape", "(2, 3)", "(4, 2)", "6", "8"),
    row(lambda: x23.reshape(-1, -1), ShapeError, "reshape", "-1"),
    row(lambda: x23.reshape(4, -1), ShapeError, "reshape", "(2, 3)", "(4, -1)"),
    row(lambda: wl.broadcast_to(x23, (3, 2)), ShapeError, "broadcast_to", "(2, 3)", "(3, 2)"),
    row(lambda: wl.squeeze(x23, axis=0), ShapeError, "squeeze", "(2, 3)", "0"),
    row(lambda: wl.concat([x23, x45]), ShapeError, "concat", "(2, 3)", "(4, 5)"),
    row(lambda: wl.concat([]), InputError, "concat", "nothing"),
    row(lambda: wl.stack([v3, v4]), ShapeError, "stack", "(3,)", "(4,)"),
    row(lambda: wl.split(v4, 3), ShapeError, "split", "4", "3"),
    row(lambda: wl.pad(x23, ((1, 1), (1, 1), (1, 1))), ShapeError, "pad", "(2, 3)"),
    row(lambda: wl.rearrange(x23, "a b c -> c b a"), ShapeError, "rearrange", "a b c -> c b a", "(2, 3)"),
    row(lambda: wl.rearrange(x23, "(a b) c -> a b c", a=4), ShapeError, "rearrange", "(2, 3)", "4"),
    row(lambda: wl.reduce(x23, "a b -> a", "middle"), InputError, "reduce", "'middle'"),
    row(lambda: wl.tensor([[1.0], [1.0, 2.0]]), ShapeError, "tensor", "ragged"),
    row(lambda: wl.zeros((2, -3)), ShapeError, "zeros", "(2, -3)", "negative"),
    row(lambda: wl.zeros("ab"), ShapeError, "zeros", "'ab'"),
    row(lambda: wl.one_hot(integers, 2), IndexOutOfRange, "one_hot", "2"),
    row(lambda: wl.top_k(v3, 5), InputError, "top_k", "k=5", "(3,)"),
    row(lambda: wl.segment_sum(x23, integers), ShapeError, "segment_sum", "(2, 3)", "(3,)"),
    row(lambda: wl.linalg.inv(x23), ShapeError, "inv", "(2, 3)"),
    row(lambda: wl.linalg.solve(wl.eye(3), v4), ShapeError, "solve", "(3, 3)", "(4, 1)"),
    row(lambda: wl.linalg.det(v3), ShapeError, "det", "(3,)"),
    row(lambda: wl.matrix_transpose(v3), ShapeError, "matrix_transpose", "(3,)"),
    row(lambda: wl.diagonal(v3), ShapeError, "diagonal", "(3,)"),
    row(lambda: bool(x23), InputError, "bool", "(2, 3)", "any()"),
    row(lambda: float(x23), InputError, "float", "(2, 3)"),
    row(lambda: x23.item(), InputError, "item", "(2, 3)"),
]

DTYPES = [
    row(lambda: wl.sin("a"), DTypeError, "sin", "str"),
    row(lambda: x23 + "a", DTypeError, "add", "str"),
    row(lambda: x23 + None, DTypeError, "add", "NoneType"),
    row(lambda: x23 * [1, 2, 3], DTypeError, "multiply", "list", "asarray"),
    row(lambda: wl.tensor(["a", "b"]), DTypeError, "tensor"),
    row(lambda: wl.tensor({"a": 1}), DTypeError, "tensor", "dict"),
    row(lambda: wl.zeros(3, dtype="float31"), DTypeError, "float31", "float32"),
    row(lambda: wl.tensor(300, dtype=wl.uint8), DTypeError, "300", "uint8"),
    row(lambda: wl.tensor([0.5], dtype=wl.int32), DTypeError, "int32"),
    row(
        lambda: wl.ones(2, dtype=wl.complex64).astype(wl.float32),
        DTypeError,
        "astype",
        "complex64",
        "wl.real(x)",
    ),
    row(lambda: wl.softmax(wl.ones(2, dtype=wl.complex64)), DTypeError, "softmax", "complex64"),
    row(lambda: wl.floor(wl.ones(2, dtype=wl.complex64)), DTypeError, "floor", "complex64"),
    row(lambda: wl.bitwise_and(v3, v3), DTypeError, "bitwise_and", "float32"),
    row(lambda: wl.logical_not("a"), DTypeError, "logical_not", "str"),
    row(lambda: truth @ truth, DTypeError, "matmul", "bool"),
    row(lambda: truth - truth, DTypeError, "subtract", "bool"),
    row(lambda: wl.maximum(wl.ones(1, dtype=wl.complex64), 0), DTypeError, "maximum", "complex64"),
    row(lambda: integers**-1, InputError, "power", "int64", "negative"),
    row(lambda: int(wl.tensor(math.nan)), ConversionError, "int", "nan"),
    row(lambda: float(wl.tensor(1j)), ConversionError, "float", "1j"),
    row(lambda: integers.at[0].set(0.5), DTypeError, "0.5", "int64"),
    row(lambda: [1, 2, 3][v3[0]], DTypeError, "index", "float32"),
    row(lambda: wl.fft.rfft(wl.ones(4, dtype=wl.complex64)), DTypeError, "rfft", "complex64"),
    row(lambda: nn.Linear(2, 3).astype(wl.int32), DTypeError, "astype", "int32"),
]

AXES_AND_INDICES = [
    row(lambda: x23.sum(axis=2), AxisError, "sum", "axis 2", "2 axes", "-2 to 1"),
    row(lambda: x23.mean(axis=(0, 0)), AxisError, "mean", "twice", "(0, 0)"),
    row(lambda: wl.softmax(x23, axis=-3), AxisError, "softmax", "axis -3", "2 axes"),
    row(lambda: wl.max(wl.tensor(1.0), axis=0), AxisError, "max", "axis 0", "0 axes"),
    row(lambda: wl.transpose(x23, (0, 0)), AxisError, "transpose", "(0, 0)"),
    row(lambda: wl.permute_dims(x23, (0, 1, 2)), AxisError, "transpose", "(0, 1, 2)", "(2, 3)"),
    row(lambda: wl.moveaxis(x23, 0, 5), AxisError, "moveaxis", "axis 5"),
    row(lambda: wl.concat([x23, x23], axis=2), AxisError, "concat", "axis 2"),
    row(lambda: wl.expand_dims(x23, axis=7), AxisError, "expand_dims", "axis 7"),
    row(lambda: wl.sort(x23, axis="a"), AxisError, "sort", "'a'", "an integer"),
    row(lambda: wl.sum(x23, axis=0.5), AxisError, "sum", "0.5"),
    row(lambda: wl.max(wl.zeros((0, 3)), axis=0), InputError, "max", "(0, 3)", "no elements"),
    row(lambda: wl.argmin(wl.zeros(0)), InputError, "argmin", "(0,)"),
    row(lambda: wl.max(wl.zeros((2, 0)), axis=1), InputError, "max", "(2, 0)", "no elements"),
    row(lambda: x23[2], IndexOutOfRange, "index: 2 is out of range", "axis 0 of size 2", "(2, 3)"),
    row(lambda: x23[0, -4], IndexOutOfRange, "index: -4", "axis 1 of size 3", "(2, 3)"),
    row(lambda: x23[[0, 5]], IndexOutOfRange, "5", "(2, 3)"),
    row(lambda: x23[0, 0, 0], IndexOutOfRange, "(2, 3)", "3"),
    row(lambda: x23["a"], DTypeError, "str"),
    row(lambda: x23[0.5], DTypeError, "float"),
    row(lambda: x23[truth[:, None]], ShapeError, "(2, 1)", "(2, 3)"),
    row(lambda: x23[[0, 1], [0, 1, 2]], ShapeError, "(2,)", "(3,)"),
    row(lambda: x23[..., ...], AxisError, "more than one ellipsis"),
    row(lambda: wl.take(v3, wl.tensor([3])), IndexOutOfRange, "take", "3", "(3,)"),
    row(lambda: wl.take_along_axis(x23, wl.tensor([[7]])), IndexOutOfRange, "take_along_axis", "7"),
    row(lambda: x23.at[0, 9].set(1.0), IndexOutOfRange, "9", "(2, 3)"),
    row(lambda: x23.at[0].set(v4), ShapeError, "(4,)", "(3,)"),
    row(lambda: wl.jit(lambda x: x.__setitem__(0, 1.0))(x23), TraceError, "setitem", "immutable", "x.at[i].set(v)"),
    row(lambda: len(wl.tensor(1.0)), ConversionError, "len", "0-d"),  # a TypeError, as Python's protocols expect
    row(lambda: list(wl.tensor(1.0)), ConversionError, "iter", "0-d"),
]

NUMBERS = [
    row(lambda: wl.linalg.inv(singular), LinearAlgebraError, "inv", "singular", "(2, 2)"),
    row(lambda: wl.linalg.solve(singular, wl.ones(2)), LinearAlgebraError, "solve", "singular", "(2, 2)"),
    row(lambda: wl.linalg.cholesky(-wl.eye(2)), LinearAlgebraError, "cholesky", "positive definite", "(2, 2)"),
    row(lambda: wl.linalg.svd(wl.full((2, 2), math.nan)), LinearAlgebraError, "svd", "(2, 2)", "NaN"),
    row(lambda: wl.zeros((10**6, 10**6)), SizeError, "zeros", "(1000000, 1000000)", "GiB"),
    row(lambda: wl.ones(10**6)[:, None] * wl.ones(10**6), SizeError, "multiply", "[1000000, 1]", "[1000000]"),
    row(lambda: wl.random.normal((10**6, 10**6)), SizeError, "normal", "(1000000, 1000000)", "GiB"),
    row(lambda: wl.arange(0, 1, 0), InputError, "arange", "step"),
    row(lambda: wl.linspace(0, 1, -5), InputError, "linspace", "num", "-5"),
    row(lambda: wl.random.bernoulli(3, math.nan), InputError, "bernoulli", "nan"),
    row(lambda: wl.random.bernoulli(3, 1.5), InputError, "bernoulli", "1.5"),
    row(lambda: wl.random.normal(3, std=-1.0), InputError, "normal", "-1.0"),
    row(lambda: wl.random.uniform(3, 2.0, 1.0), InputError, "uniform", "2.0", "1.0"),
    row(lambda: wl.random.normal(3, key=wl.ones(3)), DTypeError, "normal", "key", "float32[3]"),
    row(lambda: wl.random.normal(wl.random.key(3)), ShapeError, "normal", "uint32[2]", "normal(shape, key=key)"),
    row(lambda: wl.random.uniform(wl.random.key(3), (2,)), ShapeError, "uniform", "uint32[2]", "key=key"),
    row(lambda: wl.random.normal(0, 1, (3,)), ShapeError, "normal", "0", "(3,)", "the shape first"),
    row(lambda: wl.random.randint(1, 7, (10,)), ShapeError, "randint", "1", "(10,)", "the shape first"),
]


def carried(c: Any, x: Any) -> Any:
    return wl.concat([c, c]), None


kept: list[Any] = []


def leak(x: Any) -> Any:
    kept[:] = [2 * x]
    return x


def leaked(transformation: Callable[..., Any]) -> Any:
    transformation(leak)(wl.tensor(1.0))
    return kept[0] + 1


cyclic: list[Any] = [1.0]
cyclic.append(cyclic)

TRANSFORMATIONS = [
    row(lambda: wl.grad(lambda x: 2 * x)(v3), GradientError, "grad", "(3,)", "scalar", "wl.vjp", "wl.jacobian"),
    row(lambda: wl.grad(lambda x: x.sum())(integers), GradientError, "grad", "argument 0", "int64", "astype"),
    row(lambda: wl.grad(lambda x: x)(3), GradientError, "grad", "int64"),
    row(lambda: wl.grad(lambda x: "loss")(1.0), GradientError, "grad", "str", "not a tensor"),
    row(lambda: wl.grad(lambda x: None)(1.0), GradientError, "grad", "none", "scalar"),
    row(lambda: wl.grad(lambda x: (x, x))(1.0), GradientError, "grad", "tuple", "has_aux"),
    row(lambda: wl.grad(lambda x: x > 0)(1.0), GradientError, "grad", "bool"),
    row(lambda: wl.grad(lambda x: x * 1j)(1.0), GradientError, "grad", "complex64"),
    row(lambda: wl.grad(lambda x: x, has_aux=True)(1.0), GradientError, "grad", "pair (value, aux)"),
    row(lambda: wl.grad(lambda x: x, argnums=2)(1.0), GradientError, "grad", "argnums=2", "1 positional"),
    row(lambda: wl.grad(lambda x: x)("a"), GradientError, "grad", "argument 0", "str"),
    row(lambda: wl.grad(3)(1.0), GradientError, "grad", "int", "function"),
    row(lambda: wl.grad(lambda x: math.sin(x))(1.0), TraceError, "float", "wonderland"),
    row(lambda: wl.grad(lambda x: wl.tensor(float(x)))(1.0), TraceError, "float", "stop_gradient"),
    row(lambda: wl.grad(lambda x: np.sin(np.asarray(x)).sum())(v3), TraceError, "NumPy array", "wonderland"),
    row(lambda: wl.grad(lambda x: wl.nextafter(x, x))(1.0), GradientError, "nextafter", "no derivative"),
    row(lambda: wl.jvp(wl.sin, (v3,), (v4,)), GradientError, "jvp", "[4]", "[3]"),
    row(lambda: wl.jvp(wl.sin, v3, v3), GradientError, "jvp", "tuples"),
    row(lambda: wl.jvp(wl.sin, (v3,), (v3, v3)), TreeError, "jvp", "structure"),
    row(lambda: wl.vjp(wl.sin, v3)[1](v4), GradientError, "vjp", "[4]", "[3]"),
    row(lambda: wl.hvp(lambda x: x.sum(), (v3,), (v4,)), GradientError, "[4]", "[3]"),
    row(lambda: wl.jacobian(lambda x: x, mode="sideways")(v3), InputError, "jacobian", "sideways"),
    row(lambda: wl.ones(3).backward(), GradientError, "backward", "requires_grad_()"),
    row(lambda: (2 * v3.clone().requires_grad_()).backward(), GradientError, "backward", "(3,)", "sum()"),
    row(lambda: integers.requires_grad_(), GradientError, "requires_grad_", "int64"),
    row(lambda: wl.vmap(lambda x, y: x)(v3, v4), ShapeError, "vmap", "3", "4", "(3,)", "(4,)"),
    row(lambda: wl.vmap(lambda x: x)(2.0), AxisError, "vmap", "axis 0", "()"),
    row(lambda: wl.vmap(lambda x: x, in_axes=(0, 0))(v3), InputError, "vmap", "in_axes", "2", "1"),
    row(lambda: wl.vmap(lambda x: x, in_axes=None)(v3), InputError, "vmap", "no argument"),
    row(lambda: wl.vmap(lambda x: x if x > 0 else -x)(v3), TraceError, "bool", "vmap", "wl.where"),
    row(lambda: wl.vmap(lambda x: "a")(v3), InputError, "vmap", "str"),
    row(lambda: wl.jit(lambda x: x if x > 0 else -x)(1.0), TraceError, "bool", "jit", "wl.cond"),
    row(lambda: wl.jit(lambda x: float(x))(1.0), TraceError, "float", "jit"),
    row(lambda: wl.jit(lambda x: np.asarray(x))(v3), TraceError, "NumPy array", "jit"),
    row(lambda: wl.jit(lambda x: np.linalg.norm(x))(v3), TraceError, "become an argument of np.norm", "jit"),
    row(lambda: wl.jit(lambda x: x[x > 0])(v3), TraceError, "become a mask.", "jit", "wl.where(mask, x, 0)"),
    row(lambda: wl.jit(lambda x: wl.nonzero(x))(v3), TraceError, "become a list of positions.", "jit", "wl.where"),
    row(lambda: wl.vmap(lambda x: x[x > 0])(x23), TraceError, "vmap", "not for a mask."),
    row(lambda: wl.jit(lambda n: wl.zeros(n))(3), TraceError, "int", "jit", "static_argnums"),
    row(lambda: wl.jit(lambda x: wl.nonzero(x))(v3), TraceError, "nonzero", "jit"),
    row(lambda: wl.jit(3), InputError, "jit", "int", "function"),
    row(lambda: leaked(wl.jit), TraceError, "add", "outside", "return the value"),
    row(lambda: leaked(wl.grad), TraceError, "add", "outside", "return the value"),
    row(
        lambda: leaked(lambda f: lambda x: wl.vmap(f)(x[None])),
        TraceError,
        "add",
        "outside",
        "return the value",
    ),
    row(lambda: wl.scan(carried, v3, v3), TreeError, "scan", "carry", "float32[3]", "float32[6]"),
    row(lambda: wl.jit(lambda x: wl.scan(carried, x, x)[0])(v3), TreeError, "scan", "float32[3]", "float32[6]"),
    row(lambda: wl.scan(lambda c, x: c, 0.0, v3), TreeError, "scan", "pair (carry, y)"),
    row(lambda: wl.scan(lambda c, x: (c, x), 0.0, (v3, v4)), ShapeError, "scan", "3", "4"),
    row(lambda: wl.scan(lambda c, x: (c, x), 0.0), ShapeError, "scan", "length"),
    row(
        lambda: wl.while_loop(lambda x: x < 9, lambda x: x[None], v3[0]),
        TreeError,
        "while_loop",
        "float32[]",
        "float32[1]",
    ),
    row(
        lambda: wl.jit(wl.grad(lambda x: wl.while_loop(lambda x: x < 9, lambda x: 2 * x, x)))(1.0),
        GradientError,
        "while_loop",
        "wl.scan",
    ),
    row(
        lambda: wl.jit(lambda x: wl.cond(x > 0, lambda x: x, lambda x: (x, x), x))(1.0),
        TreeError,
        "cond",
        "tuple",
    ),
    row(
        lambda: wl.jit(lambda x: wl.cond(x > 0, lambda x: x, lambda x: x[None], x))(1.0),
        TreeError,
        "cond",
        "float32[]",
        "float32[1]",
    ),
    row(lambda: wl.cond(v3 > 0, wl.sin, wl.cos, v3), DTypeError, "cond", "bool[3]", "wl.where"),
    row(lambda: wl.switch(0, []), InputError, "switch", "no branch"),
    row(lambda: wl.switch(0.5, [wl.sin], 1.0), DTypeError, "switch", "float32"),
    row(lambda: wl.associative_scan(wl.add, (v3, v4)), ShapeError, "associative_scan", "3", "4"),
    row(lambda: wl.custom_vjp(lambda x: x)(1.0), GradientError, "custom_vjp", "defvjp"),
    row(lambda: wl.custom_jvp(lambda x: x)(1.0), GradientError, "custom_jvp", "defjvp"),
    row(lambda: wl.checkpoint_sequential([wl.sin], 5)(1.0), InputError, "checkpoint_sequential", "5", "1"),
    row(lambda: wl.tree.leaves(cyclic), TreeError, "tree", "list", "contains itself"),
    row(lambda: wl.grad(lambda x: x[0])(cyclic), TreeError, "list", "contains itself"),
    row(lambda: wl.jit(lambda x: x[0])(cyclic), TreeError, "list", "contains itself"),
    row(
        lambda: wl.tree.map(lambda a, b: a, [1, 2], [1, (2,)]),
        TreeError,
        "tree.map",
        "list(*, *)",
        "list(*, tuple(*))",
    ),
    row(lambda: wl.tree.unflatten(wl.tree.structure([1, 2]), [1]), TreeError, "unflatten", "2", "1"),
]


class Inner(nn.Module):
    def __init__(self) -> None:
        self.qkv = nn.Linear(3, 4)

    def forward(self, x: wl.Tensor) -> wl.Tensor:
        return self.qkv(x) + wl.ones(5)  # the inner line


class Model(nn.Module):
    def __init__(self) -> None:
        self.blocks = [Inner(), Inner()]
        self.count = nn.Buffer(wl.zeros(2))

    def forward(self, x: wl.Tensor) -> wl.Tensor:
        return self.blocks[1](x)


def assigned(model: Model, value: Any) -> None:
    model.count = value


model = Model()
INSIDE = [  # the same fault inside of a module, under every way to run it: the path is named
    row(lambda: model(x23), ShapeError, "add", "(2, 4)", "(5,)", "in module: blocks.1 (Inner)"),
    row(lambda: wl.jit(model)(x23), ShapeError, "add", "(2, 4)", "(5,)", "in module: blocks.1 (Inner)"),
    row(lambda: wl.grad(lambda m, x: m(x).sum())(model, x23), ShapeError, "add", "in module: blocks.1 (Inner)"),
    row(lambda: wl.vmap(model)(x23), ShapeError, "add", "(4,)", "(5,)", "in module: blocks.1 (Inner)"),
    row(lambda: wl.eval_shape(model, x23), ShapeError, "add", "in module: blocks.1 (Inner)"),
]
MODULES = [
    row(lambda: model(v4), ShapeError, "(4,)", "(..., 3)", "in module: blocks.1.qkv (Linear)"),
    row(lambda: nn.Linear(3, 4)(x45), ShapeError, "(4, 5)", "(..., 3)", "in module: Linear"),
    row(
        lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 2))(x23),
        ShapeError,
        "(2, 4)",
        "(..., 5)",
        "in module: 1 (Linear)",
    ),
    row(lambda: nn.Module()(1.0), ModuleError, "Module", "forward"),
    row(lambda: model.get_submodule("block.1"), ModuleError, "get_submodule", "'block.1'", "'blocks.1'"),
    row(lambda: model.freeze("head.*"), ModuleError, "freeze", "'head.*'"),
    row(
        lambda: nn.Linear(3, 4).load_state_dict({"weight": wl.ones((4, 3))}),
        ModuleError,
        "load_state_dict",
        "float32[3, 4]",
        "float32[4, 3]",
        "bias: is missing",
    ),
    row(
        lambda: nn.Linear(3, 4).load_state_dict({**nn.Linear(3, 4).state_dict(), "wait": 1}),
        ModuleError,
        "load_state_dict",
        "wait",
        "no such parameter",
    ),
    row(lambda: assigned(model, wl.zeros(3)), ShapeError, "Buffer", "float32[2]", "float32[3]"),
    row(
        lambda: nn.Parameter([1.0]).assign(wl.ones(2)),
        ShapeError,
        "assign",
        "Parameter",
        "float32[1]",
        "float32[2]",
    ),
    row(lambda: nn.Parameter([1, 2]), GradientError, "Parameter", "int64", "Buffer"),
    row(lambda: nn.Sequential(3), ModuleError, "Sequential", "int"),
    row(lambda: nn.Sequential(wl.sin)[3], IndexOutOfRange, "Sequential", "3"),
    row(lambda: nn.LazyLinear(4).state_dict(), ModuleError, "state_dict", "weight", "first input"),
    row(lambda: nn.functional_call(model, {"weight": v3}, x23), ModuleError, "functional_call", "weight"),
    row(
        lambda: nn.functional_call(nn.Linear(3, 4), {"weight": v3}, x23),
        ShapeError,
        "functional_call",
        "weight",
        "(3,)",
        "(3, 4)",
    ),
]

TABLE = [*SHAPES, *DTYPES, *AXES_AND_INDICES, *NUMBERS, *TRANSFORMATIONS, *INSIDE, *MODULES]


def source(call: Callable[[], Any]) -> str:
    """The text of a row's lambda: what pytest shows as the name of a case."""
    line = inspect.getsource(call).strip()
    return line.removeprefix("row(lambda: ").rpartition(", ")[0][:60]


@pytest.mark.parametrize("case", TABLE, ids=[f"{i} {source(r.call)}" for i, r in enumerate(TABLE)])
def test_message(case: Row) -> None:
    with pytest.raises(WonderlandError) as info:
        case.call()
    error, text = info.value, str(info.value)
    assert type(error) is case.kind, text
    message, _, at = text.rpartition("\n  at: ")  # the line of the user's repeats the call
    for word in case.words:
        assert word in message, text
    assert error.hint, f"no remedy: {text}"
    assert f"\n  try: {error.hint}" in text
    assert "test_errors.py:" in at, text
    if case in INSIDE:
        assert "# the inner line" in at
    # the first line says which operation, what was received, and is a sentence
    first = text.splitlines()[0]
    assert ": " in first
    assert first.endswith((".", ":")) or "\n  - " in text, first


def test_there_are_many() -> None:
    assert len(TABLE) >= 40


def test_every_error_has_a_remedy() -> None:
    """Wherever the package raises an error, it says what to do (but for a GraphError: that is our defect)."""
    names = {name for name in errors.__all__ if name not in DEFECTS}
    without = []
    for path in Path(wl.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
            if made and len(node.args) + len(node.keywords) < 2:
                without.append(f"{path}:{node.lineno} {ast.unparse(node)}")
    assert not without, "\n".join(without)


# --- the family


def test_one_family() -> None:
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, Warning if name.endswith("Warning") else WonderlandError)
        assert kind.__doc__


@pytest.mark.parametrize(
    "kind, builtin",
    [
        (ShapeError, ValueError),
        (InputError, ValueError),
        (AxisError, IndexError),
        (AxisError, ValueError),
        (IndexOutOfRange, IndexError),
        (DTypeError, TypeError),
        (GradientError, TypeError),
        (TraceError, TypeError),
        (TreeError, TypeError),
        (SizeError, MemoryError),
        (ConversionError, OverflowError),
        (ConversionError, ValueError),
        (LinearAlgebraError, ArithmeticError),
        (errors.NonFiniteError, ArithmeticError),
        (ModuleError, RuntimeError),
    ],
)
def test_the_builtin_that_numpys_users_would_catch(kind: type, builtin: type) -> None:
    assert issubclass(kind, builtin)


def test_errors_travel_between_processes() -> None:
    with pytest.raises(ShapeError) as info:
        wl.zeros(2) + wl.zeros(3)
    copy = pickle.loads(pickle.dumps(info.value))
    assert type(copy) is ShapeError
    assert str(copy) == str(info.value)
    assert copy.hint == info.value.hint


def test_an_exception_leaves_everything_as_it_was() -> None:
    """Parameters hold their values again, and the next call works."""
    linear = nn.Linear(3, 4)
    before = np.asarray(linear.weight)
    for f in (wl.grad(lambda m: m(v4).sum()), wl.jit(lambda m: m(v4)), wl.vmap(lambda m: m(v4), in_axes=0)):
        with pytest.raises(WonderlandError):
            f(linear)
        np.testing.assert_array_equal(np.asarray(linear.weight), before)
    assert wl.grad(lambda m: m(v3).sum())(linear)["bias"].shape == (4,)


def test_errors_of_traced_operations_show_the_traced_line() -> None:
    """What fails only when it is computed points to the line that was traced, not only to the call."""

    @wl.jit
    def f(x: wl.Tensor) -> wl.Tensor:
        return wl.linalg.inv(x)  # the traced line

    f(wl.eye(2))
    with pytest.raises(LinearAlgebraError, match="the traced line"):
        f(singular)


# --- nothing but the family, whatever the shapes, dtypes and axes

DTYPE = st.sampled_from([wl.bool, wl.int8, wl.uint8, wl.int64, wl.float16, wl.bfloat16, wl.float32, wl.complex64])
SHAPE = st.lists(st.integers(0, 3), max_size=3).map(tuple)
TENSOR = st.builds(lambda shape, dtype: wl.ones(shape, dtype=dtype), SHAPE, DTYPE)
OPERAND = TENSOR | st.sampled_from([0, -1, 2.5, math.nan, math.inf, True, 1j, 2**70, None, "a"])
AXIS = st.sampled_from([None, 0, 1, -1, 2, -3, 7, (0, 1), (0, 0), (1, -1), (), [0], "a", 0.5, True])
AXIS_OF_ONE = st.sampled_from([0, 1, -1, 2, -3, 7, None, (0,), "a", 0.5])

UNARY = """
    abs acos angle argmax argmin argsort asin atan ceil conj cos cumprod cumsum diag diagonal diff
    erf erfinv exp expm1 flip floor imag isfinite isnan log log1p log_softmax logical_not logsumexp
    matrix_transpose max mean min negative nonzero norm normalize ones_like prod ravel real
    reciprocal relu round rsqrt sigmoid sign sin softmax softplus sort sqrt square squeeze std sum
    tan tanh trace tril triu trunc unique_values var zeros_like
    argwhere average bincount corrcoef cov cummax cummin deg2rad ediff1d fabs fliplr flipud gradient histogram isneginf
    isreal logcumsumexp median nanargmax nanmax nanmean nanmedian nanprod nanstd nansum ptp rot90 sinc trapezoid vander
"""
BINARY = """
    add atan2 bitwise_and bitwise_left_shift bitwise_or copysign cosine_similarity cross divide dot
    equal floor_divide greater hypot inner isclose isin kron less logaddexp logical_and matmul
    maximum minimum multiply not_equal outer pairwise_sq_distances pow remainder searchsorted
    subtract take take_along_axis tensordot vecdot xlogy
    append argpartition array_split bincount bucketize cov corrcoef delete digitize dsplit float_power fmax fmod
    gradient heaviside histogram hsplit logaddexp2 nanpercentile nanquantile partition percentile polyval quantile
    ravel_multi_index resize rot90 round select trapezoid unravel_index vander vsplit
"""
WITH_AXIS = """
    all any argmax argmin argsort count_nonzero cumulative_prod cumulative_sum diff expand_dims flip
    log_softmax logsumexp max mean min norm prod softmax sort squeeze std sum unstack var
    average cummax cummin gradient logcumsumexp median nanargmin nancumsum nanmean nanmedian nanmin nanprod nanvar ptp
    trapezoid
"""
WITH_SHAPE = ["broadcast_to", "reshape", "tile", "zeros", "ones"]
LINALG = """
    cholesky det eigh eigvalsh inv matrix_norm matrix_rank pinv qr slogdet svd svdvals trace solve
    lstsq matmul
"""


DEFECTS = ("WonderlandError", "GraphError")


def only_ours(f: Callable[..., Any], *args: Any, **options: Any) -> None:
    """A result, or an error of the family; anything else fails the test."""
    with contextlib.suppress(*[getattr(errors, name) for name in errors.__all__ if name not in DEFECTS]):
        f(*args, **options)


@pytest.mark.filterwarnings("ignore:.*The result is NaN:RuntimeWarning")
@settings(max_examples=400)
@given(st.sampled_from(UNARY.split()), OPERAND)
def test_unary_raises_only_ours(name: str, x: Any) -> None:
    only_ours(getattr(wl, name), x)


@settings(max_examples=400)
@given(st.sampled_from(BINARY.split()), OPERAND, OPERAND)
def test_binary_raises_only_ours(name: str, x: Any, y: Any) -> None:
    only_ours(getattr(wl, name), x, y)


@pytest.mark.filterwarnings("ignore:.*The result is NaN:RuntimeWarning")
@settings(max_examples=300)
@given(st.sampled_from(WITH_AXIS.split()), TENSOR, AXIS)
def test_axes_raise_only_ours(name: str, x: Any, axis: Any) -> None:
    only_ours(getattr(wl, name), x, axis=axis)


@settings(max_examples=200)
@given(
    st.sampled_from(WITH_SHAPE),
    TENSOR,
    st.lists(st.sampled_from([-2, -1, 0, 1, 2, 3, 6, 10**12, 2**62, 2**70, 0.5, None]), max_size=3).map(tuple),
)
def test_shapes_raise_only_ours(name: str, x: Any, shape: Any) -> None:
    only_ours(getattr(wl, name), *((shape,) if name in ("zeros", "ones") else (x, shape)))


@settings(max_examples=200)
@given(st.sampled_from(LINALG.split()), OPERAND, OPERAND)
def test_linear_algebra_raises_only_ours(name: str, x: Any, y: Any) -> None:
    f = getattr(wl.linalg, name)
    only_ours(f, *((x, y) if name in ("solve", "lstsq", "matmul") else (x,)))


INDEX = TENSOR | st.sampled_from(
    [0, -1, 5, 2**70, None, ..., True, 0.5, "a", [0], [9], [[0, 1], [0]], []]
    + [slice(None), slice(None, None, 0), slice(5, -9, -2), slice("a")]
)


@settings(max_examples=300)
@given(TENSOR, st.lists(INDEX, max_size=3).map(tuple) | INDEX, OPERAND)
def test_indices_raise_only_ours(x: Any, index: Any, value: Any) -> None:
    only_ours(lambda: x[index])
    only_ours(lambda: x.at[index].set(value))


@pytest.mark.filterwarnings("ignore:.*The result is NaN:RuntimeWarning")
@settings(max_examples=200)
@given(
    st.sampled_from((UNARY + WITH_AXIS).split()),
    st.sampled_from(["grad", "jit", "vmap", "jvp", "jacobian"]),
    TENSOR,
)
def test_transformations_raise_only_ours(name: str, how: str, x: Any) -> None:
    f = getattr(wl, name)
    if how == "jvp":
        only_ours(wl.jvp, f, (x,), (x,))
    else:
        only_ours(getattr(wl, how)(f), x)


@settings(max_examples=100)
@given(st.text("ijk,->. ", max_size=9), st.lists(TENSOR, max_size=3))
def test_einsum_raises_only_ours(subscripts: str, operands: list[Any]) -> None:
    only_ours(wl.einsum, subscripts, *operands)


@settings(max_examples=100)
@given(st.text("ab1()-> .", max_size=12), TENSOR, st.sampled_from([{}, {"a": 2}, {"a": 0}, {"b": -1}]))
def test_patterns_raise_only_ours(pattern: str, x: Any, sizes: dict[str, int]) -> None:
    only_ours(wl.rearrange, x, pattern, **sizes)
    only_ours(wl.reduce, x, pattern, "sum", **sizes)
    only_ours(wl.repeat, x, pattern, **sizes)
