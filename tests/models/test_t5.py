"""T5 against published code, by tiny checkpoints with the numbers that `transformers` computes from them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from wonderland import models
from wonderland.errors import InputError
from wonderland.storage import safetensors

HOME = Path(__file__).resolve().parent.parent / "checkpoints"  # made by tools/transformers_reference


def read(folder):
    """A model with the numbers of a file, and what is expected of it."""
    config = json.loads((HOME / folder / "config.json").read_text())
    file = {name: np.asarray(value) for name, value in safetensors.load(HOME / folder / "model.safetensors").items()}
    gated, tied = config["is_gated_act"], "lm_head.weight" not in file
    model = models.T5(
        config["vocab_size"], config["d_model"], config["num_heads"], config["num_layers"],
        config["num_decoder_layers"], head_size=config["d_kv"], hidden=config["d_ff"], gated=gated, tied=tied,
        activation="gelu_tanh" if gated else "relu", eps=config["layer_norm_epsilon"],
        buckets=config["relative_attention_num_buckets"], max_distance=config["relative_attention_max_distance"],
        start_token=config["decoder_start_token_id"],
    )  # fmt: skip
    names = {"tokens.weight": "shared.weight"} | ({} if tied else {"head.weight": "lm_head.weight"})
    for side, depth in (("encoder", config["num_layers"]), ("decoder", config["num_decoder_layers"])):
        names[f"{side}.norm.weight"] = f"{side}.final_layer_norm.weight"
        first = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        names[f"{side}.blocks.0.attention.positions.weight"] = first
        last = 1 if side == "encoder" else 2
        for i in range(depth):
            ours, theirs = f"{side}.blocks.{i}.", f"{side}.block.{i}.layer."
            parts = {"attention": "0.SelfAttention"} | ({"cross": "1.EncDecAttention"} if last == 2 else {})
            for part, layer in parts.items():
                for a, b in zip(("query", "key", "value", "output"), "qkvo", strict=True):
                    names[f"{ours}{part}.{a}.weight"] = f"{theirs}{layer}.{b}.weight"
            norms = {"norm1": 0, "norm2": last} | ({"norm_cross": 1} if last == 2 else {})
            names |= {f"{ours}{norm}.weight": f"{theirs}{n}.layer_norm.weight" for norm, n in norms.items()}
            layers = {"gated.gate": "wi_0", "gated.value": "wi_1"} if gated else {"up": "wi"}
            for a, b in (layers | {"down": "wo"}).items():
                names[f"{ours}feed_forward.{a}.weight"] = f"{theirs}{last}.DenseReluDense.{b}.weight"
    turned = ("query", "key", "value", "output", "up", "down", "gate", "head")
    state = {path: file[name].T if path.split(".")[-2] in turned else file[name] for path, name in names.items()}
    model.load_state_dict(state)
    return model, np.load(HOME / folder / "expected.npz"), json.loads((HOME / folder / "expected.json").read_text())


@pytest.mark.parametrize("folder", ["t5", "t5_gated"])
@pytest.mark.book("11.41", name="wl.models.T5")
def test_logits_are_those_of_published_code(folder):
    model, expected, facts = read(folder)
    assert model.num_parameters() == facts["parameters"]
    real = expected["decoder_mask"].astype(bool)
    for side in ("right", "left"):
        source, mask = expected[f"{side}_tokens"], expected[f"{side}_mask"]
        logits = np.asarray(model(source, expected["decoder_tokens"], source_mask=mask, token_mask=real))
        if side == "right":
            np.testing.assert_allclose(logits[real], expected["right_logits"][real], rtol=1e-5, atol=2e-5)
            memory = np.asarray(model.encode(source, mask))[mask.astype(bool)]
            np.testing.assert_allclose(memory, expected["right_encoder_hidden"][-1][mask.astype(bool)], atol=1e-5)
        else:
            np.testing.assert_allclose(logits[:, 0], expected["left_logits_of_first"], rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("folder", ["t5", "t5_gated"])
@pytest.mark.book("11.02", "11.41", name="wl.models.T5")
def test_greedy_search_finds_the_same_tokens(folder):
    model, expected, facts = read(folder)
    source, mask = expected["right_tokens"], expected["right_mask"]
    cache = model.new_cache(2, 20, model.encode(source, mask), mask)
    step = wl.jit(lambda model, token, cache: model.step(token, cache)[0].argmax(-1))
    token, found = wl.full((2,), model.start_token), []
    for _ in range(20):
        token = step(model, token, cache)
        found.append(np.asarray(token))
    assert np.stack(found, axis=1).tolist() == facts["generate"][0]["tokens"]


def test_numbers_of_parameters():
    def count(V, e, h, d, p, u, L, D, gated):
        mlp = (3 if gated else 2) * e * p
        return V * e + 2 * u * h + L * (4 * e * h * d + mlp + 2 * e) + D * (8 * e * h * d + mlp + 3 * e) + 2 * e

    small = wl.eval_shape(lambda: models.T5(32128, hidden=2048))
    assert small.num_parameters() == count(32128, 512, 8, 64, 2048, 32, 6, 6, False) == 60_506_624  # as published
    other = models.T5(50, 24, 3, 2, 1, head_size=5, hidden=40, gated=True, tied=False, buckets=8, max_distance=20)
    assert other.num_parameters() == count(50, 24, 3, 5, 40, 8, 2, 1, True) + 50 * 24


@pytest.mark.book("11.41", name="wl.models.T5")
def test_distances_are_all_that_positions_mean():
    """Blocks share one table of biases; a sequence may begin anywhere."""
    model = models.T5(11, 16, 2, 2, 2, buckets=8, max_distance=10, dtype=wl.float64)
    for stack, both in ((model.encoder, True), (model.decoder, False)):
        assert stack.blocks[0].attention.positions is stack.blocks[1].attention.positions
        assert stack.blocks[0].attention.positions.bidirectional is both
        assert stack.blocks[0].attention.scale == 1.0
    assert model.decoder.blocks[0].cross.positions is None
    assert sum("positions" in path for path in model.state_dict()) == 2
    grads = wl.grad(lambda m: (m(tokens, tokens) ** 2).sum())
    tokens = np.random.default_rng(0).integers(0, 11, (2, 9))
    found = grads(model)["encoder.blocks.0.attention.positions.weight"]
    assert found.shape == (8, 2)
    assert (np.abs(found) > 0).any(axis=1).sum() > 4


def test_scores_start_with_size_one():
    """Queries start small, as nothing divides the scores by the root of the heads' size."""
    model = models.T5(50, 64, 4, 1, head_size=32, key=wl.random.key(0))
    layer = model.encoder.blocks[0].attention
    x = model.encoder.blocks[0].norm1(model.tokens(np.arange(50)))
    scores = layer.query(x)[:, :32] @ layer.key(x)[:, :32].T
    assert 0.7 < float(np.std(np.asarray(scores))) < 1.4


def test_tied_logits_are_divided():
    model = models.T5(11, 16, 2, 1, dtype=wl.float64)
    h = wl.random.normal((2, 16), dtype=wl.float64)
    close_array(model.logits(h), h @ model.tokens.weight.T / 4.0)
    close_array(models.T5(11, 16, 2, 1, scaled=False, dtype=wl.float64, key=wl.random.key(0)).logits(h).std() > 0, True)
    with pytest.raises(InputError, match="start_token=11"):
        models.T5(11, 16, 2, 1, start_token=11)
