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
LARGE = [1030, 5003]
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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program_for_all_sizes(name: str) -> None:
    f, data = FUNCTIONS[name]
    g = wl.jit(lambda x: f(x), dynamic=BATCH)
    g(data(40))
    many = [] if name == "half precision" else LARGE  # of many roundings to so few bits one comes out otherwise
    for n in [*SIZES, *many]:
        with wl.using_backend("numpy"):
            wanted = wl.jit(f)(data(n))
        with wl.debug.filled_memory():
            agree(g(data(n)), wanted)
        assert is_general(g) or n == 1  # which may be traced to another graph


class Decoder(nn.Module):
    """A causal transformer of one block, whose queries, keys and values are parts of one product."""

    def __init__(self) -> None:
        self.tokens, self.places = nn.Embedding(9, 24), nn.Parameter(rows(18, 24))
        self.qkv, self.out, self.head = nn.Linear(24, 72), nn.Linear(24, 24), nn.Linear(24, 9)

    def forward(self, ids: Any) -> Any:
        x = self.tokens(ids) + self.places
        q, k, v = wl.transpose(self.qkv(x).reshape(-1, 18, 3, 3, 8), (2, 0, 3, 1, 4))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(x + self.out(wl.swapaxes(a, 1, 2).reshape(-1, 18, 24)))


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(24, 50), nn.LayerNorm(50), nn.ReLU(), nn.Dropout(0.2), nn.Linear(50, 9))


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 24, 3, padding="valid"),  # in fewer products, by Winograd's method
        nn.ReLU(),
        nn.Conv2d(24, 20, 3, padding=2),
        nn.Conv2d(20, 6, 1),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 9, 3, stride=2, padding=1, groups=3),
        nn.MaxPool2d(3, 2, padding=1),
        nn.Flatten(),
        nn.LazyLinear(9),
    )


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], wl.Tensor], Callable[[int], wl.Tensor]]] = {
    "perceptron": (perceptron, lambda n: rows(n, 24), numbers),
    "convolutions": (convolutional, lambda n: rows(n, 15, 14, 3), numbers),
    "decoder": (Decoder, lambda n: numbers(n, 18), lambda n: numbers(n, 18)),
}


@pytest.mark.parametrize("name", MODELS)
def test_training_steps(name: str) -> None:
    """Losses, parameters and running statistics are those of training without `jit`, and so are random bits."""
    make, inputs, labels = MODELS[name]

    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        loss, grads = wl.value_and_grad(lambda model, x, y: F.cross_entropy(model(x), y))(model, x, y)
        optimizer.step(grads)
        return loss

    def trained(run: Any, check: bool = False) -> list[np.ndarray[Any, Any]]:
        wl.random.seed(0)
        model = make()
        model(inputs(2))
        optimizer = wl.optim.SGD(model, lr=0.1, momentum=0.9)
        losses = []
        for n in (33, 40, 70, 3, 128):
            losses.append(run(model, optimizer, inputs(n), labels(n)))
            assert not check or is_general(run)
        return leaves((losses, model.state_dict()))

    general = trained(wl.jit(step, dynamic={"x": {0: "batch"}, "y": {0: "batch"}}), check=True)
    agree(general, trained(step))


@pytest.mark.parametrize("columns", [3, 8])
def test_sums_over_large_batches_are_made_in_parts(columns: int) -> None:
    """The error does not grow with the batch; one program serves up to 1,024 rows, and another one those above."""
    f = wl.jit(lambda x: (x.sum(axis=0), x.sum(), wl.transpose(x) @ x), dynamic=BATCH)
    programs = set()
    for n in (1024, 1025, 5000, 50_000, 7):
        x = np.abs(np.random.default_rng(0).normal(size=(n, columns))).astype(np.float32)
        found = leaves(f(wl.asarray(x)))
        assert is_general(f)
        programs.add(f.last_trace.graph.programs["native"].program)
        wide = x.astype(np.float64)
        for one, wanted in zip(found, (wide.sum(axis=0), wide.sum(), wide.T @ wide), strict=True):
            np.testing.assert_allclose(one, wanted, rtol=2e-6)
    assert len(programs) == 2


DIMS = (1, 2, 7, 8, 17, 33, 64, 130)
LAYERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "perceptron": lambda x, w, v: F.gelu(x @ w) @ v,
    "softmax": lambda x, w, v: wl.softmax(wl.tanh(x @ w) @ v),
    "residual": lambda x, w, v: x + (x @ w) @ wl.transpose(w) * wl.sigmoid(x),
    "scatter matrix": lambda x, w, v: wl.transpose(x) @ (x - x.mean(axis=0)) / x.shape[0],
    "several": lambda x, w, v: (x @ w[:, 0], x.sum(), wl.transpose(x) @ wl.tanh(x @ w), x.max(axis=0)),
    "weights": lambda x, w, v: wl.grad(lambda p: (F.relu(x @ p[0]) @ p[1]).var(axis=0).mean())((w, v)),
    "inputs": lambda x, w, v: wl.grad(lambda x: (wl.tanh(x @ w) @ v).mean())(x),
    "loss": lambda x, w, v: wl.value_and_grad(
        lambda p: F.cross_entropy(wl.tanh(x @ p[0]) @ p[1], wl.arange(x.shape[0]) % v.shape[1])
    )((w, v)),
    "batch normalisation": lambda x, w, v: wl.grad(lambda w: wl.tanh(standardised(x @ w) @ v).mean())(w),
    "many rows each": lambda x, w, v: wl.softmax(wl.stack([x, 2 * x], axis=1) @ w).sum(axis=1),
}


def standardised(h: Any) -> Any:
    return (h - h.mean(axis=0)) / wl.sqrt(h.var(axis=0) + 0.1)


@pytest.mark.parametrize("name", LAYERS)
def test_random_sizes(name: str) -> None:
    """Functions x sizes of matrices x sizes of batches x types against the NumPy evaluator in float64."""
    rng = np.random.default_rng(sum(map(ord, name)))
    for dtype, tolerance in (("float32", 3e-5), ("float64", 1e-12), ("bfloat16", 4e-2)):
        k, m, q = (int(d) for d in rng.choice(DIMS, 3))
        w, v = (wl.asarray(rng.normal(size=size) / np.sqrt(size[0])).astype(dtype) for size in ((k, m), (m, q)))
        f = wl.jit(lambda x, w, v: LAYERS[name](x, w, v), dynamic=BATCH)
        for n in (int(n) for n in rng.choice([1, 2, 3, 7, 16, 17, 18, 33, 64, 100, 257, 1000, 1024, 1030, 2100], 4)):
            x = wl.asarray(rng.normal(size=(n, k))).astype(dtype)
            with wl.debug.filled_memory():
                found = f(x, w, v)
            assert is_general(f) or n == 1
            with wl.using_backend("numpy"):
                wanted = LAYERS[name](*(a if dtype == "bfloat16" else a.astype("float64") for a in (x, w, v)))
            for one, other in zip(leaves(found), leaves(wanted), strict=True):
                assert one.dtype == dtype
                one, other = one.astype(np.float64), other.astype(np.float64)
                scale = max(0.05, float(np.abs(other).max()))
                what = f"{dtype} {k, m, q, n}"
                np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def test_results_do_not_depend_on_threads() -> None:
    f = wl.jit(lambda x: (wl.transpose(x) @ wl.tanh(x), wl.exp(x).sum(axis=0), x.sum()), dynamic=BATCH)
    f(rows(700, 200))
    x = rows(911, 200)
    on_threads(lambda arrays: leaves(f(*arrays)), [x])  # type: ignore[arg-type]
    g = wl.jit(lambda x: (wl.tanh(x), x + 1, wl.exp(x).sum(), wl.softmax(x)), dynamic=BATCH)
    g(rows(2000))
    for n in (50_003, 1027, 1040):
        on_threads(lambda arrays: leaves(g(*arrays)), [rows(n)])  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [1025, 1039, 1040, 4099])
def test_vectors_along_the_batch_go_on_lane_by_lane(n: int) -> None:
    """Axes of any length, kinds of reductions and types, where the last vector is not full."""

    def f(x: Any) -> Any:
        whole = (x * 8).astype("int32")
        return wl.tanh(x), whole, x.max(), whole.min(), (x > 2).any(), x[::1] * wl.arange(x.shape[0]), wl.std(x)

    for dtype in ("float32", "float64", "bfloat16"):
        g = wl.jit(lambda x: f(x), dynamic=BATCH)
        g(rows(2000).astype(dtype))
        x = rows(n).astype(dtype)
        with wl.debug.filled_memory():
            found = g(x)
        assert is_general(g)
        with wl.using_backend("numpy"):
            wanted = wl.jit(f)(x)
        for one, other in zip(leaves(found), leaves(wanted), strict=True):
            tolerance = 2e-2 if dtype == "bfloat16" else 2e-5
            one, other = one.astype(np.float64), other.astype(np.float64)
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_there_is_room_for_the_batches_that_come() -> None:
    """A batch of a few rows takes no memory for a hundred."""
    f = wl.jit(lambda x: wl.tanh(wl.tanh(x @ W) @ wl.transpose(W)) @ V[:24], dynamic=BATCH)
    room = []
    for n in (3, 2, 4, 700):
        f(rows(n, 24))
        room.append(f.last_trace.graph.programs["native"].program.bytes)  # type: ignore[union-attr]
    assert room[0] < 131 * 4 * 24
    assert room == sorted(room)
    assert room[3] > 700 * 4 * 24


def test_an_index_out_of_range_is_told_with_the_shape_of_the_call() -> None:
    f = wl.jit(lambda x: x[x[:, 0].astype("int64")], dynamic=BATCH)
    f(wl.zeros((40, 2)))
    with pytest.raises(wl.errors.IndexOutOfRange, match="7"):
        f(wl.full((7, 2), 7.0))


@pytest.mark.parametrize(
    ("f", "why"),
    [
        (lambda x: x @ wl.transpose(x), "two axes"),
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
