"""Exports whose batch may have any size: one program, the results of the function at each, and honest refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from benchmarks.workloads import GPT, classify
from wonderland import nn
from wonderland.scale.exporting import Exported

jax = pytest.importorskip("jax")

F = nn.functional
DYNAMIC = {"x": {0: "batch"}, "y": {0: "batch"}}
Array = np.ndarray[Any, Any]


def features(n: int, *shape: int) -> Array:
    return np.random.default_rng(n).normal(size=(n, *shape)).astype(np.float32)


def labels(n: int, *shape: int) -> Array:
    return np.random.default_rng(n).integers(0, 5, (n, *shape))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 5))


def cnn() -> nn.Module:
    first = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(first, nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 5))


def gpt() -> nn.Module:
    return GPT(vocabulary=5, width=8, blocks=1, heads=2, context=4)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], Array], Callable[[int], Array]]] = {
    "mlp": (mlp, lambda n: features(n, 6), labels),
    "cnn": (cnn, lambda n: features(n, 8, 8, 2), labels),
    "gpt": (gpt, lambda n: labels(n, 4), lambda n: labels(n, 4)),
}


def step(model: nn.Module, optimizer: wl.optim.Optimizer, x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
    def loss_of(model: nn.Module) -> wl.Tensor:
        logits = model(x)
        return F.cross_entropy(logits.reshape(-1, 5), y.reshape(-1))

    loss, grads = wl.value_and_grad(loss_of)(model)
    optimizer.step(grads)
    return loss


def new(name: str) -> tuple[nn.Module, wl.optim.Optimizer]:
    wl.random.seed(0)
    model = MODELS[name][0]()
    return model, wl.optim.SGD(model, lr=0.1, momentum=0.9)


@pytest.mark.parametrize("name", MODELS)
def test_training_steps_are_those_of_numpy_at_every_size(name: str, tmp_path: Path) -> None:
    """Means over the batch, dropout and running statistics among them; written and read, and for accelerators."""
    inputs, targets = MODELS[name][1:]
    made = wl.export_stablehlo(wl.jit(step), *new(name), inputs(4), targets(4), dynamic=DYNAMIC)
    made.save(tmp_path / "step.bin")
    read = jax.export.deserialize(bytearray((tmp_path / "step.bin").read_bytes()))
    assert read.platforms == made.platforms == ("cpu", "cuda", "tpu")
    assert read.in_avals[-1].shape[0] == jax.export.symbolic_shape("batch", scope=read.in_avals[-1].shape[0].scope)[0]
    assert made.least == 1
    for n in (1, 7):
        model, optimizer = new(name)
        found = made.call(inputs(n), targets(n))
        with wl.using_backend("numpy"):
            loss = wl.jit(step)(model, optimizer, wl.asarray(inputs(n)), wl.asarray(targets(n)))
        assert found[0] == 0
        np.testing.assert_allclose(found[1], loss.numpy(), rtol=1e-5)
        written = [np.asarray(x) for x in found[2:]]
        for state in [*model.parameters(), *model.buffers()]:
            assert any(w.shape == state.shape and np.allclose(w, state.numpy(), atol=1e-6) for w in written)


@pytest.mark.parametrize("name", MODELS)
def test_forward_passes(name: str) -> None:
    inputs = MODELS[name][1]
    model = new(name)[0].eval()
    made = wl.export_stablehlo(lambda model, x: model(x), model, inputs(1), dynamic={"x": {0: "rows"}})
    assert made.outputs[0].shape[1:] == model(wl.asarray(inputs(2))).shape[1:]
    for n in (1, 5):
        wanted = wl.jit(lambda model, x: model(x))(model, wl.asarray(inputs(n)))
        np.testing.assert_allclose(made.call(inputs(n))[1], wanted.numpy(), rtol=1e-5, atol=1e-6)


def test_derivatives_of_every_example() -> None:
    def gradients(model: nn.Module, x: wl.Tensor, y: wl.Tensor) -> Any:
        return wl.vmap(lambda a, b: wl.grad(classify)(model, a, b))(x, y)

    model = nn.Linear(6, 5)
    made = wl.export_stablehlo(gradients, model, features(4, 6), labels(4), platforms=["cpu"], dynamic=DYNAMIC)
    assert [str(a) for a in made.outputs] == ["float32[n,5]", "float32[n,6,5]"]
    wanted = wl.tree.leaves(gradients(model, wl.asarray(features(3, 6)), wl.asarray(labels(3))))
    for x, y in zip(made.call(features(3, 6), labels(3))[1:], wanted, strict=True):
        np.testing.assert_allclose(x, np.asarray(y), rtol=1e-5, atol=1e-6)


def export(f: Callable[..., object], n: int = 8) -> Exported:
    return wl.export_stablehlo(f, features(n, 6), platforms=["cpu"], dynamic={"x": {0: "batch"}})


SERVED: dict[str, Callable[..., Any]] = {
    "numbers": lambda x: (x * x.shape[0] + 1 / x.size).sum() / (2 * x.shape[0] + 1),
    "variance": lambda x: wl.var(x, correction=1),
    "counted": lambda x: x * wl.arange(x.shape[0])[:, None] + np.arange(x.size).reshape(-1, 6) * np.ones(x.shape),
    "pairs": lambda x: ((x[:, None] - x[None]) ** 2).sum(-1),
    "order": lambda x: wl.cumsum(wl.sort(x, axis=0), axis=0),
    "columns": lambda x: wl.concatenate([x[:, 4:], wl.flip(x, 1)], axis=1).at[:, 0].add(1.0),
    "formulas": lambda x: wl.special.gammaln(wl.abs(x.reshape(-1, 2)) + 1),
    "random": lambda x: x + wl.random.normal(x.shape, key=wl.random.key(3)),
}


@pytest.mark.parametrize("name", SERVED)
def test_what_else_is_served(name: str) -> None:
    made = export(SERVED[name])
    for n in (1, 5):
        wanted = SERVED[name](wl.asarray(features(n, 6))).numpy()
        np.testing.assert_allclose(made.call(features(n, 6))[1], wanted, rtol=1e-5, atol=1e-5)


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "square root": (lambda x: x / math.sqrt(x.shape[0]), r"divide \(test_all_sizes.py:\d+\) takes a number whose"),
    "half": (lambda x: x * (x.shape[0] // 2), "a number depends on whether the batch"),
    "branch": (lambda x: x.sum() if x.shape[0] < 100 else x.max(), "sum for a batch of 8 and max for another"),
    "rows": (lambda x: x[1:], "slice has a size of 7 for a batch of 8"),
    "table": (lambda x: x * np.sqrt(np.arange(x.shape[0]))[:, None], "a constant of it, .* has the size of the batch"),
    "constant": (lambda x: x + np.full(6, x.shape[0] ** 0.5), "a constant of it is tensor.* for a batch of 8"),
    "rows in turn": (lambda x: wl.map(wl.tanh, x), r"scan \(.*\): "),
    "branch in it": (lambda x: wl.cond(x.sum() > 0, lambda: x.sum(), lambda: -x.sum()), "a loop, a branch"),
    "one matrix": (lambda x: wl.linalg.inv(x[:, :4].reshape(-1, 2, 2)), r"inv \(.*\): "),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_general_is_refused(name: str) -> None:
    f, said = REFUSED[name]
    with pytest.raises(wl.errors.InputError, match=rf"no program serves all sizes of <lambda>: .*{said}") as caught:
        export(f)
    assert "without dynamic=" in str(caught.value)


def test_a_single_row_that_is_a_case_of_its_own_is_left_out() -> None:
    made = export(lambda x: wl.squeeze(x[:, :1]))
    assert made.least == 2
    np.testing.assert_array_equal(made.call(features(3, 6))[1], features(3, 6)[:, 0])
    with pytest.raises(wl.errors.InputError, match="a batch of 1 rows"):
        made.call(features(1, 6))


def test_state_that_only_a_single_row_touches_is_not_mistaken() -> None:
    cell, other = nn.Parameter(wl.ones(6)), nn.Parameter(wl.zeros(6))
    assert export(lambda x: x * (cell if x.shape[0] > 1 else other)).least == 2
    assert export(lambda x: x * cell).least == 1


def test_arguments_that_are_wrong() -> None:
    made = export(wl.tanh)
    with pytest.raises(wl.errors.InputError, match=r"arrays of float32\[3,5\][\s\S]*float32\[n,6\]"):
        made.call(features(3, 5))
    with pytest.raises(wl.errors.InputError, match="a batch of 0 rows"):
        made.call(np.zeros((0, 6), np.float32))
    wrong: list[tuple[Any, str]] = [
        ({"z": {0: "batch"}}, "dynamic names 'z', but the arguments are"),
        ({"x": {1: "batch"}}, "export_stablehlo: dynamic="),
        ({"x": {0: "a batch"}}, "'a batch' cannot be the name of a size"),
        ({}, "export_stablehlo: dynamic={}"),
        ({"x": {0: "a"}, "y": {0: "b"}}, "has several sizes"),
    ]
    for dynamic, said in wrong:
        with pytest.raises(wl.errors.InputError, match=said):
            wl.export_stablehlo(lambda x, y: x + y, features(3, 6), features(3, 6), dynamic=dynamic)
    with pytest.raises(wl.errors.InputError, match=r"batches of \(3, 4\) rows"):
        wl.export_stablehlo(lambda x, y: x.sum() + y.sum(), features(3, 6), features(4, 6), dynamic=DYNAMIC)
