"""The benchmark workloads train, and the two without an optimizer compute what their names say."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from benchmarks import workloads
from wonderland import nn


@pytest.mark.parametrize("name", ["mlp", "mlp_tiny", "gcn"])
def test_steps_reduce_the_loss(name):
    step = workloads.WORKLOADS[name]()
    losses = [step().item() for _ in range(4)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


def test_the_large_models_train_on_a_small_batch():
    images, ids = wl.random.normal((4, 32, 32, 3)), workloads.labels(96, 2, 129)
    for model, x, y, classes in (
        (workloads.convolutional(), images, workloads.labels(10, 4), 10),
        (workloads.GPT(), ids[:, :-1], ids[:, 1:], 96),
        (workloads.SequenceClassifier(), wl.random.normal((4, 8, 32)), workloads.labels(10, 4), 10),
    ):
        step = workloads.training(model, workloads.classify, x, y)
        first = step().item()
        assert first == pytest.approx(np.log(classes), rel=0.2)
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
