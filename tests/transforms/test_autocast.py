"""Mixed precision: which types come out, how far numbers are from float32, and that types of gradients stay."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.ir.simplify import simplify

F = nn.functional
LOW = ["bfloat16", "float16"]
EPS = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def numbers(*shape: int, seed: int = 0) -> wl.Tensor:
    return wl.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def perceptron() -> nn.Module:
    wl.random.seed(0)
    return nn.Sequential(nn.Linear(12, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 5))


def loss_of(model: Any, x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
    return F.cross_entropy(model(x), y)


@pytest.mark.parametrize("low", LOW)
def test_products_are_low_and_sums_are_not(low: str) -> None:
    x, w, image = numbers(4, 6), numbers(6, 6, seed=1), numbers(2, 5, 5, 3)
    with wl.autocast(low):
        for product in (
            x @ w,
            wl.einsum("ij,jk->ik", x, w),
            wl.tensordot(x, w, axes=1),
            F.linear(x, w, numbers(6)),
            F.conv2d(image, numbers(3, 3, 3, 4), numbers(4)),
            F.conv_transpose2d(image, numbers(3, 3, 4, 3)),
            F.scaled_dot_product_attention(x, x, x),
            F.embedding(wl.tensor([1, 0]), x),
            nn.Linear(6, 2)(x),
        ):
            assert product.dtype == low
        short = x @ w
        for wide in (
            wl.sum(short),
            wl.mean(short, axis=0),
            wl.var(short),
            wl.softmax(short),
            wl.log_softmax(short),
            wl.logsumexp(short),
            F.cross_entropy(short, wl.tensor([0, 1, 2, 3])),
            F.mse_loss(short, short),
            F.binary_cross_entropy_with_logits(short, wl.zeros((4, 6))),
        ):
            assert wide.dtype == wl.float32
        for normalized in (nn.LayerNorm(6)(short), nn.RMSNorm(6)(short), nn.BatchNorm1d(6)(short)):
            assert normalized.dtype == low
        assert (short + short).dtype == low
        assert (short + x).dtype == wl.float32


def test_other_types_stay() -> None:
    double, whole = numbers(3, 3).astype(wl.float64), wl.ones((3, 3), dtype=wl.int64)
    with wl.autocast("bfloat16"):
        assert (double @ double).dtype == wl.float64
        assert (whole @ whole).dtype == wl.int64
        assert (numbers(3, 3) @ double).dtype == wl.float64
        assert (double.astype(wl.complex64) @ double).dtype == wl.complex128


def test_blocks_nest_and_end() -> None:
    x = numbers(3, 3)
    with wl.autocast("float16"):
        with wl.autocast(enabled=False):
            assert (x @ x).dtype == wl.float32
            with wl.autocast():
                assert (x @ x).dtype == wl.bfloat16
        assert (x @ x).dtype == wl.float16
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append((x @ x).dtype))  # has a context of its own
        thread.start()
        thread.join()
        assert found == [wl.float32]
    assert (x @ x).dtype == wl.float32
    assert wl.autocast("float16")(lambda: x @ x)().dtype == wl.float16


def test_a_compiled_function_is_traced_for_each() -> None:
    f = wl.jit(lambda x: x @ x)
    x = numbers(3, 3)
    for _ in range(2):
        assert f(x).dtype == wl.float32
        with wl.autocast("bfloat16"):
            assert f(x).dtype == wl.bfloat16
        with wl.autocast("float16"):
            assert f(x).dtype == wl.float16


def test_what_is_no_low_precision_is_refused() -> None:
    with pytest.raises(wl.errors.DTypeError, match="bfloat16 or float16"):
        wl.autocast("float32")
    with pytest.raises(wl.errors.InputError, match="autocast"):
        wl.autocast("cuda")


@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_have_the_types_of_parameters_and_are_near(low: str, compiled: bool) -> None:
    model, x, y = perceptron(), numbers(16, 12), wl.asarray(np.arange(16) % 5)
    wanted = wl.grad(loss_of)(model, x, y)
    grad = wl.grad(wl.autocast(low)(loss_of))
    found = (wl.jit(grad) if compiled else grad)(model, x, y)
    for name, g in found.items():
        assert g.dtype == wl.float32
        error = np.abs(np.asarray(g) - np.asarray(wanted[name])).max() / np.abs(np.asarray(wanted[name])).max()
        assert error < 8 * EPS[low], (name, error)


def test_compiled_and_eager_agree() -> None:
    model, x, y = perceptron(), numbers(16, 12), wl.asarray(np.arange(16) % 5)
    with wl.autocast("bfloat16"):
        eager = wl.value_and_grad(loss_of)(model, x, y)
        compiled = wl.jit(wl.value_and_grad(loss_of))(model, x, y)
    assert abs(float(eager[0]) - float(compiled[0])) < 1e-3
    for name, g in eager[1].items():
        scale = np.abs(np.asarray(g)).max()
        assert np.abs(np.asarray(g) - np.asarray(compiled[1][name])).max() < 2.0**-6 * scale


def test_the_backward_pass_computes_as_the_forward_pass_did() -> None:
    """A part that was exact stays exact, though the walk backwards is inside the block."""
    x, w = numbers(4, 4), numbers(4, 4, seed=1)

    def exact(w: wl.Tensor) -> wl.Tensor:
        with wl.autocast(enabled=False):
            return wl.sum(wl.sin(x @ w))

    wanted = wl.grad(exact)(w)
    with wl.autocast("bfloat16"):
        found = wl.grad(exact)(w)
        leaf = w.copy().requires_grad_()
        exact(leaf).backward()
    assert found.dtype == wl.float32
    np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
    np.testing.assert_array_equal(np.asarray(leaf.grad), np.asarray(wanted))


def test_imperative_gradients() -> None:
    model, x, y = perceptron(), numbers(16, 12), wl.asarray(np.arange(16) % 5)
    with wl.autocast("bfloat16"):
        loss = loss_of(model, x, y)
    loss.backward()
    wanted = wl.grad(loss_of)(model, x, y)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        assert parameter.grad.dtype == wl.float32
        scale = np.abs(np.asarray(wanted[name])).max()
        assert np.abs(np.asarray(parameter.grad) - np.asarray(wanted[name])).max() < 2.0**-5 * scale


def test_a_compiled_step_converts_a_weight_once() -> None:
    weight = nn.Parameter(numbers(8, 8))

    def f(weight: Any, x: wl.Tensor) -> wl.Tensor:
        with wl.autocast("bfloat16"):
            return wl.sum(x @ weight @ weight @ weight)

    graph = simplify(wl.make_graph(f)(weight, numbers(4, 8)))
    (read,) = [v for v in graph.inputs if v.aval.shape == (8, 8)]
    assert sum(e.primitive.name == "astype" and e.inputs[0] is read for e in graph.equations) == 1


LAYERS: dict[str, Any] = {
    "rnn": lambda: nn.RNN(6, 8),
    "lstm": lambda: nn.LSTM(6, 8),
    "gru": lambda: nn.GRU(6, 8),
    "attention": lambda: nn.MultiHeadAttention(6, 2),
    "block": lambda: nn.TransformerBlock(6, 2),
    "conv": lambda: nn.Conv1d(6, 4, 3, padding=1),
    "bilinear": lambda: nn.FeedForward(6, 12),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("compiled", [False, True])
def test_layers(name: str, compiled: bool) -> None:
    layer, x = LAYERS[name](), numbers(2, 5, 6)

    def first(layer: Any, x: wl.Tensor) -> wl.Tensor:
        out = layer(x)
        return out[0] if isinstance(out, tuple) else out

    def total(layer: Any, x: wl.Tensor) -> wl.Tensor:
        return wl.sum(wl.square(first(layer, x)))

    wanted = np.asarray(first(layer, x))
    grad = wl.grad(total)
    with wl.autocast("bfloat16"):
        found = (wl.jit(first) if compiled else first)(layer, x)
        grads = (wl.jit(grad) if compiled else grad)(layer, x)
    assert np.abs(np.asarray(found.astype(wl.float32)) - wanted).max() < 2.0**-4 * np.abs(wanted).max()
    wide = wl.grad(total)(layer, x)
    scale = max(np.abs(np.asarray(g)).max() for g in wide.values())  # some are 0 but for rounding
    for key, g in wide.items():
        assert grads[key].dtype == g.dtype
        assert np.abs(np.asarray(grads[key]) - np.asarray(g)).max() < 2.0**-5 * scale
