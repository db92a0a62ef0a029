"""The residual stream as a sum of parts, heads left out, and attention maps as tensors and pictures."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError, ShapeError

TOKENS = np.array([[3, 1, 4, 1, 5], [2, 7, 1, 8, 2]])
MODELS: dict[str, Any] = {
    "GPT": lambda: wl.models.GPT(11, 16, 8, 2, 2, dtype=wl.float64),
    "Llama": lambda: wl.models.Llama(11, 8, 4, 2, kv_heads=2, dtype=wl.float64),
}


@pytest.mark.book("10.25", "10.24", name="wl.nn.residual_stream")
@pytest.mark.parametrize("made", MODELS.values(), ids=MODELS.keys())
def test_parts_add_up_to_the_stream(made: Any) -> None:
    model = made()
    stream = nn.residual_stream(model, TOKENS)
    np.testing.assert_allclose(model.logits(model.stack.norm(stream.final)), model(TOKENS), atol=1e-13)
    np.testing.assert_array_equal(stream["embedding"], model.embed(wl.asarray(TOKENS), wl.arange(5)))
    padded = nn.residual_stream(model, np.where([[1] * 5, [1, 1, 1, 0, 0]], TOKENS, -1), lengths=[5, 3])
    np.testing.assert_allclose(padded.final[1, :3], stream.final[1, :3], atol=1e-13)


@pytest.mark.book("10.25", name="wl.nn.residual_stream")
@pytest.mark.parametrize("parallel", [False, True])
def test_stacks_and_blocks(parallel: bool) -> None:
    x = wl.random.normal((2, 5, 8), dtype=wl.float64)
    blocks = [nn.TransformerBlock(8, 2, parallel=parallel, dtype=wl.float64) for _ in range(2)]
    stack = nn.TransformerStack(blocks)
    np.testing.assert_allclose(nn.residual_stream(stack, x).final, stack(x), atol=1e-13)
    np.testing.assert_allclose(nn.residual_stream(blocks[0], x).final, blocks[0](x), atol=1e-13)
    with pytest.raises(InputError, match="no part '7"):
        nn.residual_stream(stack, x)["7.mlp"]
    with pytest.raises(ModuleError, match="normalizes after its sums"):
        nn.residual_stream(nn.TransformerBlock(8, 2, norm_first=False), x)
    with pytest.raises(ModuleError, match="Linear has no stack of blocks"):
        nn.residual_stream(nn.Linear(8, 8), x)


@pytest.mark.book("10.24", "10.25", name=("wl.nn.head_ablation", "wl.nn.without_heads"))
def test_leaving_out_heads() -> None:
    model = MODELS["GPT"]()
    score = lambda: (model(TOKENS) ** 2).sum()
    found = nn.head_ablation(model, score)
    before = {k: np.asarray(v) for k, v in model.state_dict().items()}
    with nn.without_heads(model.stack.blocks[1].attention, [0]):
        changed = float(score())
    assert changed - float(score()) == pytest.approx(found[1, 0], abs=1e-12)
    for path, value in model.state_dict().items():
        np.testing.assert_array_equal(value, before[path])
    with pytest.raises(InputError, match=r"heads \[2\] of 2"), nn.without_heads(model.stack.blocks[0].attention, [2]):
        pass


@pytest.mark.book("10.20", "11.10", "10.14", name=("wl.nn.attention_maps", "wl.nn.attention_picture"))
@pytest.mark.parametrize("made", MODELS.values(), ids=MODELS.keys())
def test_maps(made: Any) -> None:
    model = made()
    maps = nn.attention_maps(model, TOKENS)
    assert len(maps) == 2
    for weights in map(np.asarray, maps):
        assert weights.shape == (2, model.stack.blocks[0].attention.num_heads, 5, 5)
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-12)
        assert (np.triu(weights, 1) == 0).all()
    picture = nn.attention_picture(maps[0][0, 0], list("abcde"), title="head 0")
    ET.fromstring(picture)
    assert picture.count('class="cell"') == 25
    ET.fromstring(nn.attention_picture(maps[0][0]))
    with pytest.raises(ShapeError, match="heads, t, s"):
        nn.attention_picture(maps[0])
    seen = nn.attention_picture(np.asarray(nn.functional.causal_mask(3)).astype(float))
    assert seen.count('fill-opacity="0"') == 3
    post = nn.TransformerBlock(8, 2, norm_first=False)
    assert nn.attention_maps(post, wl.ones((1, 4, 8)))[0].shape == (1, 2, 4, 4)
