"""Programs for all sizes of a batch give what the NumPy evaluator gives, at sizes that they were not compiled for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import on_threads
from wonderland import nn
from wonderland.engines.native.general import Sized

F = nn.functional
SIZES = [1, 2, 17, 31, 64, 101, 130, 700]
BATCH = {"x": {0: "batch"}}


def rows(n: int, *shape: int) -> wl.Tensor:
    return wl.asarray(np.random.default_rng(n).normal(size=(n, *shape)).astype(np.float32))


def numbers(n: int, *shape: int) -> wl.Tensor:
    return wl.asarray(np.random.default_rng(n).integers(0, 9, size=(n, *shape)))


W = rows(24, 50)
V = rows(50, 3)
TABLE = rows(9, 5)

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[int], wl.Tensor]]] = {
    "elementwise": (lambda x: wl.exp(x) * 2 - x[:, :1], lambda n: rows(n, 7)),
    "one axis": (lambda x: (wl.exp(x), wl.tanh(x).sum(), x.max()), rows),
    "rows": (lambda x: (wl.softmax(x), x.mean(axis=1), x.argmax(axis=-1)), lambda n: rows(n, 33)),
    "columns": (lambda x: (x.mean(axis=0), x.var(axis=0), x.min(axis=0), (x > 1).any(axis=0)), lambda n: rows(n, 9)),
    "softmax of the batch": (lambda x: wl.softmax(x, axis=0), lambda n: rows(n, 9)),
    "all": (lambda x: ((x - x.mean()) / x.std(), x.sum()), lambda n: rows(n, 4)),
    "products": (lambda x: wl.tanh(x @ W) @ V + 1, lambda n: rows(n, 24)),
    "many rows each": (lambda x: F.gelu(x @ W).sum(axis=1), lambda n: rows(n, 6, 24)),
    "matrices": (lambda x: x @ wl.swapaxes(x, 1, 2), lambda n: rows(n, 5, 4)),
    "sum of products": (lambda x: wl.transpose(x) @ (x - x.mean(axis=0)) / x.shape[0], lambda n: rows(n, 24)),
    "half precision": (
        lambda x: (x.astype("bfloat16") @ W.astype("bfloat16")).astype("float32"),
        lambda n: rows(n, 24),
    ),
    "float64": (lambda x: wl.transpose(x.astype("float64")) @ x.astype("float64"), lambda n: rows(n, 24)),
    "gather": (lambda x: TABLE[x].sum(axis=1), lambda n: numbers(n, 4)),
    "scatter": (lambda x: wl.grad(lambda table: (table[x] ** 2).sum())(TABLE), lambda n: numbers(n, 4)),
    "parts of rows": (lambda x: wl.concatenate([x[:, 3:], 2 * x], axis=1), lambda n: rows(n, 9)),
    "places": (lambda x: x * wl.arange(x.shape[0])[:, None], lambda n: rows(n, 3)),
    "random": (lambda x: x * wl.random.uniform(x.shape, key=wl.random.key(1)), lambda n: rows(n, 300)),
    "gradient": (wl.grad(lambda x: (wl.tanh(x @ W) @ V).mean()), lambda n: rows(n, 24)),
}


def leaves(tree: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(leaf) for leaf in wl.tree.leaves(tree)]


def agree(found: Any, wanted: Any) -> None:
    for x, y in zip(leaves(found), leaves(wanted), strict=True):
        assert x.shape == y.shape
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5 * max(1.0, float(np.abs(y).max())))


def is_general(jitted: Any) -> bool:
    return isinstance(jitted.last_trace.graph.programs["native"], Sized)


# Matrix products of batches are refused until their blocks are right for every size; then these pass.
refused = pytest.mark.xfail(raises=wl.errors.InputError, strict=True, reason="products of batches are refused")
WITH_PRODUCTS = ("many rows each", "matrices", "sum of products", "half precision", "float64", "products", "gradient")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=refused) if name in WITH_PRODUCTS else name for name in FUNCTIONS]
)
def test_one_program_for_all_sizes(name: str) -> None:
    f, data = FUNCTIONS[name]
    g = wl.jit(lambda x: f(x), dynamic=BATCH)
    g(data(40))
    for n in SIZES:
        with wl.using_backend("numpy"):
            wanted = wl.jit(f)(data(n))
        with wl.debug.filled_memory():
            agree(g(data(n)), wanted)
        assert is_general(g) or n == 1  # which may be traced to another graph


@refused
def test_a_training_step() -> None:
    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        loss, grads = wl.value_and_grad(lambda model, x, y: F.cross_entropy(model(x), y))(model, x, y)
        optimizer.step(grads)
        return loss

    def trained(jitted: Any, check: bool = False) -> list[np.ndarray[Any, Any]]:
        wl.random.seed(0)
        model = nn.Sequential(nn.Linear(24, 50), nn.LayerNorm(50), nn.ReLU(), nn.Dropout(0.2), nn.Linear(50, 9))
        optimizer = wl.optim.SGD(model, lr=0.1, momentum=0.9)
        losses = []
        for n in (33, 40, 70, 3, 128, 300):
            losses.append(jitted(model, optimizer, rows(n, 24), numbers(n)))
            assert not check or is_general(jitted)
        return leaves((losses, model.state_dict()))

    general = trained(wl.jit(step, dynamic={"x": {0: "batch"}, "y": {0: "batch"}}), check=True)
    agree(general, trained(step))


@pytest.mark.parametrize("columns", [3, 8])
def test_large_batches_are_compiled_for_their_own_size(columns: int) -> None:
    """Their sums are made in parts: the error does not grow with the batch."""
    f = wl.jit(lambda x: (x.sum(axis=0), x.sum()), dynamic=BATCH)
    for n in (1024, 1025, 5000, 50_000, 7):
        x = np.abs(np.random.default_rng(0).normal(size=(n, columns))).astype(np.float32)
        found = leaves(f(wl.asarray(x)))
        assert is_general(f) == (n <= 1024)
        wide = x.astype(np.float64)
        for one, wanted in zip(found, (wide.sum(axis=0), wide.sum()), strict=True):
            np.testing.assert_allclose(one, wanted, rtol=2e-6)


@refused
def test_results_do_not_depend_on_threads() -> None:
    f = wl.jit(lambda x: (wl.transpose(x) @ wl.tanh(x), wl.exp(x).sum(axis=0), x.sum()), dynamic=BATCH)
    f(rows(700, 200))
    x = rows(911, 200)
    on_threads(lambda arrays: leaves(f(*arrays)), [x])  # type: ignore[arg-type]


def test_an_index_out_of_range_is_told_with_the_shape_of_the_call() -> None:
    f = wl.jit(lambda x: x[x[:, 0].astype("int64")], dynamic=BATCH)
    f(wl.zeros((40, 2)))
    with pytest.raises(wl.errors.IndexOutOfRange, match="7"):
        f(wl.full((7, 2), 7.0))


@pytest.mark.parametrize(
    ("f", "why"),
    [
        (lambda x: x @ wl.transpose(x), "no code"),
        (lambda x: wl.cumsum(x, axis=0), "cumsum"),
        (lambda x: wl.concatenate([x, x]), "behind each other"),
        (lambda x: wl.flip(x, axis=0), "slice"),
        (lambda x: x[-1], "slice"),
        (lambda x: wl.transpose(x), "first axis"),
        (lambda x: wl.argmax(x, axis=0), "argmax"),
        (lambda x: sum(x[i] for i in range(x.shape[0])), "something else"),
    ],
)
def test_what_is_no_batch_is_refused_with_the_reason(f: Callable[[Any], Any], why: str) -> None:
    with pytest.raises(wl.errors.InputError, match=why):
        wl.jit(lambda x: f(x), dynamic=BATCH)(rows(40, 9))
    exact = wl.jit(lambda x: f(x))
    for n in (40, 41, 42, 43):
        with wl.using_backend("numpy"):
            wanted = wl.jit(f)(rows(n, 9))
        agree(exact(rows(n, 9)), wanted)
        assert not is_general(exact)
