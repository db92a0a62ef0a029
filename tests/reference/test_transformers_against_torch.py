"""PyTorch's attention and transformers under its names, against its numbers: made by tools/torch_reference.

Values and gradients agree in float64, eagerly and compiled. Masks are in our sense, true = may attend.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tools.torch_reference.transformers import CASES as TABLE
from tools.torch_reference.transformers import HEADS, E
from wonderland import nn

CASES = json.loads((Path(__file__).parent / "transformers.json").read_text(encoding="utf-8"))["cases"]


def agree(found: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    assert np.shape(found) == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.max(np.abs(expected), initial=1.0))


def label(case: Any) -> str:
    return f"{case['name']}({','.join([*case['settings'], *case['masks'], *case['calls']])})"


def made(case: Any) -> Any:
    name, settings = case["name"], case["settings"]
    if name.endswith("coder"):
        layer = getattr(nn, f"{name}Layer")(E, HEADS, **settings["layer"])
        layer = getattr(nn, name)(layer, settings["layers"], nn.LayerNorm(E) if settings["norm"] else None)
    else:
        layer = getattr(nn, name)(*case["args"], **settings)
    layer.astype(wl.float64)
    layer.load_state_dict({path: wl.asarray(np.array(v)) for path, v in ours(case, case["state"]).items()})
    return layer


def ours(case: Any, state: Any) -> Any:
    """PyTorch has one bias for three projections, also where their matrices are apart."""
    if "kdim" not in case["settings"] or "qkv.bias" not in state:
        return state
    parts = np.split(np.array(state["qkv.bias"]), 3)
    rest = {path: value for path, value in state.items() if path != "qkv.bias"}
    return rest | {f"{name}.bias": part for name, part in zip(("query", "key", "value"), parts, strict=True)}


@pytest.mark.book("A5-48", "A5-50", name=("wl.nn.MultiheadAttention", "wl.nn.TransformerEncoderLayer"))
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("case", CASES, ids=label)
def test_values_and_gradients(case: Any, compiled: bool) -> None:
    if compiled and case["name"] in ("TransformerEncoder", "TransformerDecoder"):
        return  # made of what the others compile
    layer = made(case)
    settings = case["settings"]
    first = settings.get("batch_first", settings.get("layer", {}).get("batch_first", False))
    masks = {k: wl.asarray(np.array(m, bool if np.array(m).dtype == bool else float)) for k, m in case["masks"].items()}
    real = None if case["real"] is None else wl.asarray(np.array(case["real"]))[..., None]
    cotangents = [np.array(v) for v in case["cotangents"]]

    def weighted(layer: Any, *inputs: Any) -> Any:
        turned = [x if first or x.ndim == 2 else wl.swapaxes(x, 0, 1) for x in inputs]
        found = layer(*turned, **masks, **case["calls"])
        outputs = [y for y in (found if isinstance(found, tuple) else (found,)) if y is not None]
        if not first and outputs[0].ndim == 3:
            outputs[0] = wl.swapaxes(outputs[0], 0, 1)
        if real is not None:
            outputs[0] = wl.where(real, outputs[0], 0.0)
        return sum((y * v).sum() for y, v in zip(outputs, cotangents, strict=True)), outputs

    inputs = [wl.asarray(np.array(x)) for x in case["inputs"]]
    run = wl.grad(weighted, tuple(range(len(inputs) + 1)), has_aux=True)
    (of_layer, *of_inputs), outputs = (wl.jit(run) if compiled else run)(layer, *inputs)
    for found, expected in zip([*outputs, *of_inputs], [*case["outputs"], *case["input_grads"]], strict=True):
        agree(found, expected)
    expected_grads = ours(case, case["grads"])
    assert set(of_layer) == set(expected_grads)
    for path, expected in expected_grads.items():
        agree(of_layer[path], expected)


def test_the_file_belongs_to_the_table() -> None:
    assert [{k: case[k] for k in ("name", "args", "settings", "calls")} for case in CASES] == [
        case.heading() for case in TABLE
    ]
    assert [set(case["masks"]) for case in CASES] == [set(case.masks) for case in TABLE]


# --- one sense of masks

X = wl.ones((4, 2, 8))  # (time, batch, features)
HIDDEN = np.triu(np.ones((4, 4), bool), 1)  # PyTorch's causal mask
CALLS: dict[str, Any] = {
    "MultiheadAttention": lambda padding, mask: nn.MultiheadAttention(8, 2)(X, X, X, padding, attn_mask=mask),
    "TransformerEncoderLayer": lambda padding, mask: nn.TransformerEncoderLayer(8, 2, 8)(X, mask, padding),
    "TransformerDecoderLayer": lambda padding, mask: nn.TransformerDecoderLayer(8, 2, 8)(
        X, X, memory_mask=mask, memory_key_padding_mask=padding
    ),
    "TransformerEncoder": lambda padding, mask: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8), 1)(
        X, mask, padding
    ),
    "Transformer": lambda padding, mask: nn.Transformer(8, 2, 1, 1, 8)(
        X, X, tgt_mask=mask, tgt_key_padding_mask=padding
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_masks_of_the_other_sense_are_found(call: Any) -> None:
    with pytest.raises(wl.errors.InputError, match=r"padding mask without any true[\s\S]*true = real[\s\S]*~mask"):
        call(np.zeros((2, 4), bool), None)
    with pytest.raises(wl.errors.InputError, match=r"true exactly above the diagonal[\s\S]*may attend[\s\S]*~mask"):
        call(None, HIDDEN)
    with pytest.raises(wl.errors.ShapeError, match=r"padding mask \(4, 2\) for keys \(2, 4, 8\)"):
        call(np.ones((4, 2), bool), None)
    with pytest.raises(wl.errors.ShapeError, match=r"attn_mask \(3, 4\) for 4 queries and 4 keys"):
        call(None, np.ones((3, 4), bool))
    call(np.ones((2, 4), bool), ~HIDDEN)
    call(np.zeros((2, 4)), wl.nn.Transformer.generate_square_subsequent_mask(4))


def test_is_causal_is_the_causal_mask() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0, dtype=wl.float64)
    x = wl.random.normal((4, 2, 8), dtype=wl.float64)
    np.testing.assert_array_equal(layer(x, is_causal=True), layer(x, ~HIDDEN))
    added = nn.Transformer.generate_square_subsequent_mask(4)
    np.testing.assert_allclose(layer(x, added), layer(x, is_causal=True), atol=1e-14)


def test_settings_that_are_refused() -> None:
    with pytest.raises(wl.errors.InputError, match="add_bias_kv"):
        nn.MultiheadAttention(8, 2, add_bias_kv=True)
    with pytest.raises(wl.errors.InputError, match="8 features cannot be cut into 3 heads"):
        nn.TransformerEncoderLayer(8, 3)
    with pytest.raises(wl.errors.InputError, match="a layer of type Linear"):
        nn.TransformerEncoder(nn.Linear(8, 8), 2)  # type: ignore[arg-type]
    with pytest.raises(wl.errors.ShapeError, match="the same batch for both"):
        nn.TransformerDecoderLayer(8, 2, 8)(X, wl.ones((4, 3, 8)))


def test_dropout_and_initial_numbers() -> None:
    layer: Any = nn.TransformerEncoderLayer(64, 4, 64, dropout=0.5)
    x = wl.random.normal((4, 2, 64))
    assert np.any(np.asarray(layer(x)) != np.asarray(layer(x)))
    layer.eval()
    np.testing.assert_array_equal(layer(x), layer(x))
    assert float(wl.max(wl.abs(layer.attention.qkv.weight))) <= np.sqrt(6 / (4 * 64))
    np.testing.assert_array_equal(layer.attention.qkv.bias, np.zeros(192))
    model: Any = nn.Transformer(64, 4, 1, 1, 128)
    up = model.encoder.layers[0].feed_forward.up.weight
    assert 0.9 < float(wl.max(wl.abs(up))) / np.sqrt(6 / (64 + 128)) <= 1
