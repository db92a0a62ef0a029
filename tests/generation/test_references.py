"""Greedy and beam search of stored checkpoints against the tokens that `transformers` finds.

`python -m tools.transformers_reference` made tests/checkpoints, with peers that are no dependency.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from wonderland.generation import beam_search, greedy

FOLDER = Path(__file__).parent.parent / "checkpoints"


def gpt2():
    found = wl.load(FOLDER / "gpt2" / "model.safetensors")
    model = wl.models.GPT(284, 40, 24, 3, 2, key=wl.random.key(0))
    model.tokens.weight.assign(found["wte.weight"])
    model.positions.weight.assign(found["wpe.weight"])
    _norm(model.stack.norm, found, "ln_f")
    for i, block in enumerate(model.stack.blocks):
        name = f"h.{i}."
        _norm(block.norm1, found, name + "ln_1")
        _norm(block.norm2, found, name + "ln_2")
        for j, layer in enumerate((block.attention.query, block.attention.key, block.attention.value)):
            part = slice(24 * j, 24 * j + 24)
            layer.weight.assign(found[name + "attn.c_attn.weight"][:, part])
            layer.bias.assign(found[name + "attn.c_attn.bias"][part])
        linear = {"attn.c_proj": block.attention.output, "mlp.c_fc": block.feed_forward.up}
        for path, layer in {**linear, "mlp.c_proj": block.feed_forward.down}.items():
            layer.weight.assign(found[f"{name}{path}.weight"])
            layer.bias.assign(found[f"{name}{path}.bias"])
    return model.eval()


def mistral():
    """Rotary positions, two heads of keys and values for four of queries, a window of 5 tokens."""
    found = wl.load(FOLDER / "mistral" / "model.safetensors")
    model = wl.models.Llama(319, 16, 4, 3, kv_heads=2, hidden=48, window=5, context=256, key=wl.random.key(0))
    model.tokens.weight.assign(found["model.embed_tokens.weight"])
    model.head.weight.assign(found["lm_head.weight"].T)
    model.stack.norm.weight.assign(found["model.norm.weight"])
    for i, block in enumerate(model.stack.blocks):
        name = f"model.layers.{i}."
        block.norm1.weight.assign(found[name + "input_layernorm.weight"])
        block.norm2.weight.assign(found[name + "post_attention_layernorm.weight"])
        attention, mlp = block.attention, block.feed_forward
        for path, layer in {
            "self_attn.q_proj": attention.query,
            "self_attn.k_proj": attention.key,
            "self_attn.v_proj": attention.value,
            "self_attn.o_proj": attention.output,
            "mlp.gate_proj": mlp.gated.gate,
            "mlp.up_proj": mlp.gated.value,
            "mlp.down_proj": mlp.down,
        }.items():
            layer.weight.assign(found[f"{name}{path}.weight"].T)
    return model.eval()


def _norm(layer, found, path):
    layer.weight.assign(found[path + ".weight"])
    layer.bias.assign(found[path + ".bias"])


def without_padding(row, end):
    """What was written, up to the token that ends it."""
    return row[: row.index(end) + 1] if end in row else row


@pytest.mark.parametrize("name, make", [("gpt2", gpt2), ("mistral", mistral)])
def test_greedy_and_beam_search_find_what_transformers_finds(name, make):
    model = make()
    expected = json.loads((FOLDER / name / "expected.json").read_text())
    prompts = expected["ids"]  # of different lengths: there padded on the left
    assert len({len(row) for row in prompts}) > 1
    tokens = np.load(FOLDER / name / "expected.npz")
    logits = model(tokens["right_tokens"], tokens["right_mask"].astype(bool)).numpy()
    real = tokens["right_mask"].astype(bool)
    np.testing.assert_allclose(logits[real], tokens["right_logits"][real], atol=1e-4)
    for search in expected["generate"]:
        settings, found = search["settings"], search["tokens"]
        end, count = settings.get("eos_token_id"), settings["max_new_tokens"]
        if "num_beams" not in settings:
            rows = greedy(model, prompts, count, stop_tokens=end)
            scores = None
        else:
            groups = beam_search(
                model,
                prompts,
                count,
                beams=settings["num_beams"],
                length_penalty=settings["length_penalty"],
                early_stopping=settings.get("early_stopping", False),
                stop_tokens=end,
            )
            rows = [hypothesis.tokens for group in groups for hypothesis in group]
            scores = [hypothesis.score for group in groups for hypothesis in group]
            assert [len(group) for group in groups] == [settings["num_return_sequences"]] * len(prompts)
        each = len(rows) // len(prompts)
        new = [row[len(prompts[i // each]) :].tolist() for i, row in enumerate(rows)]
        assert new == [without_padding(row, end) for row in found]
        if scores is not None:
            np.testing.assert_allclose(scores, search["scores"], atol=2e-5)
