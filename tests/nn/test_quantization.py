"""Models with weights of few bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl

DTYPES = pytest.mark.parametrize("dtype", ["bfloat16", "int8", "int4"])
BOUND = {"bfloat16": 2**-8, "int8": 0.02, "int4": 0.12}  # of the relative error of normal weights


@pytest.fixture(scope="module")
def model() -> Any:
    return wl.models.GPT(50, 64, 64, 4, 2, key=wl.random.key(1)).eval()


TOKENS = np.random.default_rng(0).integers(50, size=(2, 9))


@DTYPES
def test_a_layer_has_the_numbers_that_it_says(dtype: str) -> None:
    layer = wl.nn.Linear(70, 30, key=wl.random.key(0))
    small: Any = wl.quantize(layer, dtype)
    x = wl.asarray(np.random.default_rng(1).normal(size=(3, 70)).astype(np.float32))
    np.testing.assert_allclose(small(x), x @ small.weight + small.bias, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(wl.jit(lambda m, x: m(x))(small, x), small(x), rtol=1e-5, atol=1e-5)
    before = np.asarray(layer.weight)
    error = np.linalg.norm(np.asarray(small.weight) - before) / np.linalg.norm(before)
    assert 0 < error < BOUND[dtype]
    assert small.quantization.error == pytest.approx(error, rel=1e-4)
    assert small.quantization.weights[0].bytes_before == 4 * 70 * 30
    assert not [name for name, _ in small.named_parameters() if name != "bias"]


@pytest.mark.parametrize("group_size", [None, 32, 64, -1])
def test_int8_is_off_by_half_a_step_at_most(group_size: int | None) -> None:
    layer = wl.nn.Linear(100, 7, key=wl.random.key(0))
    small: Any = wl.quantize(layer, "int8", group_size=group_size)
    size = 100 if group_size in (None, -1) else group_size
    before = np.asarray(layer.weight).T
    assert small.scales.shape == (7, -(-100 // size))
    steps = np.repeat(np.asarray(small.scales), size, axis=1)[:, :100]
    assert (np.abs(np.asarray(small.weight).T - before) <= 0.5001 * steps).all()


def test_smaller_groups_have_smaller_errors() -> None:
    layer: Any = wl.nn.Linear(256, 64, key=wl.random.key(0))
    errors = [wl.quantize(layer, "int4", group_size=size).quantization.error for size in (-1, 128, 32)]
    assert errors == sorted(errors, reverse=True)


def test_zeros_stay_zeros() -> None:
    for dtype in ("int8", "int4"):
        small: Any = wl.quantize(wl.nn.Linear.from_matrix(np.zeros((40, 3), np.float32)), dtype)
        assert not np.asarray(small.weight).any()
        assert small.quantization.error == 0


@DTYPES
def test_a_language_model_in_few_bits(model: Any, dtype: str) -> None:
    small = wl.quantize(model, dtype)
    whole = small(TOKENS).numpy()
    np.testing.assert_allclose(wl.jit(lambda m, t: m(t))(small, TOKENS), whole, rtol=1e-4, atol=1e-4)
    want = model(TOKENS).numpy()
    assert np.linalg.norm(whole - want) < 2 * BOUND[dtype] * np.linalg.norm(want)
    # the tied head multiplies by the table that the tokens are looked up in
    np.testing.assert_allclose(
        small.logits(wl.ones((1, 64))), small.tokens.weight.sum(axis=1)[None], rtol=1e-3, atol=1e-3
    )
    # token by token gives the same, and so do all ways to write
    _, cache = small.extend(TOKENS[:, :8])
    np.testing.assert_allclose(small.step(TOKENS[:, 8], cache)[0], whole[:, -1], rtol=1e-4, atol=1e-4)
    written = wl.generation.greedy(small, TOKENS[0], 4)
    assert written[9] == whole[0, -1].argmax()
    report = small.quantization
    assert report.bytes < 0.65 * report.bytes_before
    assert report.bytes == sum(v.nbytes for v in small.state_dict().values())
    assert {w.path for w in report.weights} >= {"tokens", "stack.blocks.1.feed_forward.up"}
    assert str(report).count("\n") == len(report.weights) + 1
    assert isinstance(model.tokens, wl.nn.Embedding)  # as it was


@DTYPES
def test_saved_and_loaded(model: Any, dtype: str, tmp_path: Path) -> None:
    small = wl.quantize(model, dtype)
    path = tmp_path / "small.safetensors"
    wl.save(small, path)
    other = wl.quantize(wl.models.GPT(50, 64, 64, 4, 2, key=wl.random.key(2)).eval(), dtype)
    other.load_state_dict(wl.load(path))
    np.testing.assert_array_equal(small(TOKENS), other(TOKENS))
    assert path.stat().st_size < 0.7 * sum(v.nbytes for v in model.state_dict().values())


def test_rounded_activations(model: Any, tmp_path: Path) -> None:
    plain, small = wl.quantize(model, "int8"), wl.quantize(model, "int8", activations="int8")
    whole, want = small(TOKENS).numpy(), plain(TOKENS).numpy()
    np.testing.assert_allclose(wl.jit(lambda m, t: m(t))(small, TOKENS), whole, rtol=1e-4, atol=1e-4)
    assert 0 < np.linalg.norm(whole - want) < 0.05 * np.linalg.norm(want)
    assert "int8, activations=int8" in repr(small)
    path = tmp_path / "small.safetensors"
    wl.save(small, path)
    other = wl.quantize(wl.models.GPT(50, 64, 64, 4, 2, key=wl.random.key(2)).eval(), "int8", activations="int8")
    other.load_state_dict(wl.load(path))
    np.testing.assert_array_equal(small(TOKENS), other(TOKENS))


def test_a_row_alone_and_in_a_batch_is_rounded_alike(model: Any) -> None:
    small = wl.quantize(model, "int8", activations="int8")
    whole = wl.jit(lambda m, t: m(t))(small, TOKENS).numpy()
    alone = wl.jit(lambda m, t: m(t))(small, TOKENS[1:]).numpy()
    np.testing.assert_allclose(alone[0], whole[1], rtol=1e-4, atol=1e-4)
    _, cache = small.extend(TOKENS[:, :8])
    np.testing.assert_allclose(small.step(TOKENS[:, 8], cache)[0], whole[:, -1], rtol=1e-4, atol=1e-4)


def test_the_error_of_activations_is_told() -> None:
    layer: Any = wl.nn.Linear(300, 40, key=wl.random.key(0), bias=False)
    plain, small = (wl.quantize(layer, "int8", activations=a).quantization for a in ("float", "int8"))
    assert plain.weights[0].error == small.weights[0].error
    assert plain.weights[0].activation_error == 0
    assert "of activations" not in str(plain)
    assert f"{small.weights[0].activation_error:.2%}" in str(small)
    assert "int8 weights and int8 activations: " in small.summary
    # measured with other rows than those that are told of
    x = wl.asarray(np.random.default_rng(5).normal(size=(200, 300)).astype(np.float32))
    want, found = (m(x).numpy() for m in (layer, wl.quantize(layer, "int8", activations="int8")))
    assert small.error == pytest.approx(np.linalg.norm(found - want) / np.linalg.norm(want), rel=0.1)
    assert small.error > 1.2 * plain.error


def test_gradients_go_through_to_what_is_trained(model: Any) -> None:
    small = wl.quantize(model, "int8")
    loss = lambda m: wl.sum(wl.square(m(TOKENS)))
    found, want = wl.grad(loss)(small), wl.grad(loss)(model)
    name = "stack.blocks.0.attention_norm.weight"
    name = name if name in want else next(n for n in want if "norm" in n and n.endswith("weight"))
    assert set(found) < set(want)
    assert np.linalg.norm(found[name] - want[name]) < 0.1 * np.linalg.norm(want[name])


def test_places_and_shared_layers() -> None:
    one = wl.nn.Linear(32, 32, key=wl.random.key(0))
    model = wl.nn.Sequential(one, wl.nn.ReLU(), one, wl.nn.Linear(32, 4, key=wl.random.key(1)))
    small = wl.quantize(model, "int8", places="0")
    assert small[0] is small[2]
    assert type(small[0]) is wl.nn.QuantizedLinear
    assert type(small[3]) is wl.nn.Linear
    assert small[3].weight is not model[3].weight


def test_what_cannot_be_is_told() -> None:
    layer = wl.nn.Linear(64, 4)
    with pytest.raises(wl.errors.InputError, match=r"quantize: dtype='int3'(.|\n)*'int8'"):
        wl.quantize(layer, "int3")
    with pytest.raises(wl.errors.InputError, match=r"group_size=20(.|\n)*multiple of 32"):
        wl.quantize(layer, "int4", group_size=20)
    with pytest.raises(wl.errors.InputError, match="bfloat16, which has no scales"):
        wl.quantize(layer, "bfloat16", group_size=32)
    with pytest.raises(wl.errors.InputError, match=r"activations='int4'(.|\n)*'float', 'int8'"):
        wl.quantize(layer, "int8", activations="int4")
    with pytest.raises(wl.errors.InputError, match=r"activations='int8' with weights of int4(.|\n)*'float'"):
        wl.quantize(layer, "int4", activations="int8")
    with pytest.raises(wl.errors.InputError, match=r"activations='int8' with group_size=32(.|\n)*without group_size"):
        wl.quantize(layer, "int8", activations="int8", group_size=32)
    with pytest.raises(wl.errors.InputError, match="no linear layer or embedding"):
        wl.quantize(wl.nn.ReLU(), "int8")
    with pytest.raises(wl.errors.InputError, match="is no module"):
        wl.quantize(lambda x: x, "int8")  # type: ignore[type-var]
    with pytest.raises(wl.errors.ShapeError, match=r"QuantizedLinear(.|\n)*\(\.\.\., 64\)"):
        wl.quantize(layer, "int8")(wl.ones((2, 63)))


@pytest.mark.parametrize("kind", ["int8", "int4", "bfloat16"])
def test_values_lie_in_memory_as_they_are_read(kind):
    """What does not would be copied by every call."""
    for features in (33, 64):
        layer = wl.nn.Linear(features, 20, key=wl.random.key(0))
        small = wl.nn.QuantizedLinear(layer, kind, None if kind == "bfloat16" else 32)
        assert all(cell.numpy().flags.c_contiguous for cell in small.buffers())
