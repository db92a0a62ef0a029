"""The workloads of the benchmarks train, alike on both backends; the others compute what their names say."""

from __future__ import annotations

import ast
import pathlib

import numpy as np
import pytest

import wonderland as wl
from benchmarks import fourier, graphs, recurrences, sparse, variety, workloads
from benchmarks.operations import OPERATIONS
from wonderland import nn

ALL = workloads.WORKLOADS | variety.VARIETY | recurrences.RECURRENCES | graphs.GRAPHS | sparse.SPARSE
FEW = {name: {"batch": 4} for name in ALL} | {
    "gcn": {"nodes": 40, "edges": 200},
    "gpt": {"batch": 2, "blocks": 1, "context": 16},
    "lstm": {"batch": 3, "steps": 5},
    "gru": {"batch": 3, "steps": 5},
    "encoder": {"batch": 2, "context": 24},
    "text": {"batch": 8, "vocabulary": 200},
    "wide": {"batch": 8, "width": 96},
    "vocabulary": {"batch": 4, "words": 500},
    "resnet": {"batch": 2},
    "separable": {"batch": 2},
    "autoencoder": {"batch": 2},
    **{name: {"batch": 2, "steps": 7} for name in recurrences.RECURRENCES},
    **{name: {"nodes": 60, "edges": 240, "features": 12} for name in graphs.GRAPHS},
    **{name: {"nodes": 60, "edges": 240} for name in sparse.SPARSE},
    "gin_graphs": {"graphs": 6, "hidden": 8, "layers": 2},
}


@pytest.mark.parametrize("name", ALL)
def test_both_backends_take_the_same_steps(name):
    found = {}
    for backend in ("numpy", "native"):
        wl.random.seed(1)
        with wl.using_backend(backend):
            step = ALL[name](**FEW[name])
            found[backend] = [wl.tree.leaves(step()) for _ in range(2)]
    for reference, ours in zip(found["numpy"], found["native"], strict=True):
        for a, b in zip(reference, ours, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-5)


def test_both_backends_transform_alike():
    few = {name: {"numbers": 9000} for name in ("rfft", "irfft", "fft")} | {"stft": {"samples": 2000}}
    few |= {"convolution": {"signals": 2}, "long": {"length": 99}}
    for name, make in fourier.FOURIER.items():
        found = []
        for backend in ("numpy", "native"):
            wl.random.seed(1)
            with wl.using_backend(backend):
                found.append(wl.tree.leaves(make(**few[name.split("_")[0]])()))
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5 * np.abs(np.asarray(a)).max())


@pytest.mark.parametrize("peer", ["torch", "jax"])
def test_peers_have_the_same_workloads(peer):
    folder = pathlib.Path(workloads.__file__).parent / "peers"
    files = {"workloads": workloads.WORKLOADS, "variety": variety.VARIETY, "operations": OPERATIONS}
    files |= {"recurrences": recurrences.RECURRENCES, "graphs": graphs.GRAPHS, "sparse": sparse.SPARSE}
    files |= {"fourier": fourier.KINDS}
    for file, names in files.items():
        path = folder / f"{peer}_{file}.py"
        if peer == "jax" and file in ("operations", "sparse", "fourier"):
            assert not path.exists()
            continue
        nodes = list(ast.walk(ast.parse(path.read_text())))
        functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        words = {node.value for node in nodes if isinstance(node, ast.Constant)}
        assert set(names) <= functions | words


@pytest.mark.parametrize("name", ["mlp", "mlp_tiny", "gcn"])
def test_steps_reduce_the_loss(name):
    step = workloads.WORKLOADS[name]()
    losses = [step().item() for _ in range(4)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name, classes", [("cnn", 10), ("gpt", 96), ("lstm", 10), ("encoder", 2), ("resnet", 10)])
def test_classifiers_begin_with_a_guess_and_improve(name, classes):
    step = ALL[name](**FEW[name])
    first = step().item()
    assert first == pytest.approx(np.log(classes), rel=0.4)
    assert step().item() < first


def test_sizes():
    assert workloads.perceptron().num_parameters() == 785 * 256 + 257 * 128 + 129 * 10
    pairs = ((3, 32), (32, 32), (32, 64), (64, 64), (64, 128))
    assert workloads.convolutional().num_parameters() == sum(9 * i * o + 2 * o for i, o in pairs) + 129 * 10
    block = 2 * 256 + 129 * 384 + 129 * 128 + 129 * 512 + 513 * 128
    assert workloads.GPT().num_parameters() == 96 * 128 + 128 * 128 + 4 * block + 256 + 128 * 96


def test_example_gradients_average_to_the_gradient_of_the_batch():
    wl.random.seed(0)
    model, x, y = workloads.perceptron(), wl.random.normal((64, 784)), workloads.labels(10, 64)
    wl.random.seed(0)
    each = workloads.persample()()
    for path, g in wl.grad(workloads.classify)(model, x, y).items():
        assert each[path].shape == (64, *g.shape)
        np.testing.assert_allclose(each[path].numpy().mean(0), g, atol=1e-6)


def test_the_hessian_times_a_vector():
    wl.random.seed(0)
    gradient, product = workloads.hvp()()
    wl.random.seed(0)
    model, x, y = workloads.perceptron().astype(wl.float64), wl.random.normal((64, 784)), workloads.labels(10, 64)
    params = {path: p.value for path, p in model.named_parameters()}
    direction = {path: wl.random.normal(p.shape) for path, p in params.items()}
    slope = wl.grad(lambda p: nn.functional.cross_entropy(nn.functional_call(model, p, x.astype(wl.float64)), y))
    h = 1e-9  # so small that no unit crosses the kink of its relu
    ahead, behind = (slope({k: p + s * h * direction[k] for k, p in params.items()}) for s in (1, -1))
    for path, g in slope(params).items():
        np.testing.assert_allclose(gradient[path], g, atol=1e-5)
        difference = (ahead[path] - behind[path]).numpy() / (2 * h)
        np.testing.assert_allclose(product[path], difference, atol=2e-3 * np.abs(difference).max() + 1e-4)
