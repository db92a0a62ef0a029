"""Whisper against published code, its features, and a toy that writes the tones that it hears."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from wonderland import models, nn
from wonderland.errors import InputError, ShapeError
from wonderland.storage import safetensors

HOME = Path(__file__).resolve().parent.parent / "checkpoints" / "whisper"  # made by tools/transformers_reference
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


def read():
    """A model with the numbers of a file, and what is expected of it."""
    config = json.loads((HOME / "config.json").read_text())
    file = {name: np.asarray(value) for name, value in safetensors.load(HOME / "model.safetensors").items()}
    model = models.Whisper(
        config["vocab_size"], config["num_mel_bins"], config["d_model"], config["encoder_attention_heads"],
        config["encoder_layers"], config["decoder_attention_heads"], config["decoder_layers"],
        encoder_hidden=config["encoder_ffn_dim"], decoder_hidden=config["decoder_ffn_dim"],
        frames=config["max_source_positions"], context=config["max_target_positions"],
        scale_embedding=config["scale_embedding"], start_token=config["decoder_start_token_id"],
    )  # fmt: skip
    layers = {"attention": "self_attn", "cross": "encoder_attn"}
    plain = {
        "norm1": "self_attn_layer_norm", "norm_cross": "encoder_attn_layer_norm", "norm2": "final_layer_norm",
        "feed_forward.up": "fc1", "feed_forward.down": "fc2",
    }  # fmt: skip
    state = {
        "tokens.weight": file["model.decoder.embed_tokens.weight"],
        "positions.weight": file["model.decoder.embed_positions.weight"],
        "source_positions.weight": file["model.encoder.embed_positions.weight"],
    }
    for path in model.state_dict():
        part, kind = path.rsplit(".", 1)
        if part.startswith("conv"):
            value = file[f"model.encoder.{path}"]
            state[path] = value.transpose(2, 1, 0) if kind == "weight" else value
        elif part.endswith("coder.norm"):
            state[path] = file[f"model.{part.split('.')[0]}.layer_norm.{kind}"]
        elif "blocks" in part:
            side, _, i, layer = part.split(".", 3)
            first, _, projection = layer.partition(".")
            theirs = plain.get(layer) or f"{layers[first]}.{PROJECTIONS[projection]}"
            state[path] = file[f"model.{side}.layers.{i}.{theirs}.{kind}"].T
    own = np.asarray(model.source_positions.weight)
    model.load_state_dict(state)
    expected = np.load(HOME / "expected.npz")
    return model, own, expected, json.loads((HOME / "expected.json").read_text())


@pytest.mark.book("11.54", name="wl.models.Whisper")
def test_logits_and_tokens_are_those_of_published_code():
    model, sinusoids, expected, facts = read()
    assert model.num_parameters() == facts["parameters"]
    np.testing.assert_allclose(sinusoids, model.source_positions.weight, atol=2e-6)
    features, real = expected["features"].transpose(0, 2, 1), expected["decoder_mask"].astype(bool)
    np.testing.assert_allclose(model.encode(features), expected["encoder_last"], atol=1e-5)
    logits = np.asarray(model(features, expected["decoder_tokens"], token_mask=real))
    np.testing.assert_allclose(logits[real], expected["right_logits"][real], rtol=1e-5, atol=2e-5)
    start = np.tile(facts["start"], (2, 1))
    cache = model.new_cache(2, 30, model.encode(features))
    logits, cache = model.extend(start, cache, last=True)
    found = []
    for _ in range(20):
        found.append(np.asarray(logits.argmax(-1)))
        logits, cache = model.step(found[-1], cache)
    assert np.stack(found, axis=1).tolist() == facts["generate"][0]["tokens"]


@pytest.mark.book("11.54", name="wl.models.whisper_features")
def test_features_are_those_of_published_code():
    expected = np.load(HOME / "expected.npz")
    for i in range(2):
        wave = expected[f"wave_{i}"].astype(np.float32) / 32768
        found = models.whisper_features(wave, 16, seconds=1.0)
        np.testing.assert_allclose(np.asarray(found).T, expected["features"][i], atol=5e-5)
        found = models.whisper_features(wave, seconds=1.0)
        np.testing.assert_allclose(np.asarray(found).T[:, ::10], expected["every_tenth_of_80_features"][i], atol=5e-5)
    both = np.stack([wave, 0.01 * wave])  # each sound has a loudest moment of its own
    np.testing.assert_allclose(models.whisper_features(both)[1], models.whisper_features(both[1]), atol=1e-6)


def test_features_have_the_range_of_eight_decades():
    noise = np.random.default_rng(0).normal(size=8000).astype(np.float32)
    found = np.asarray(models.whisper_features(noise, seconds=None))
    assert found.shape == (50, 80)
    quiet = np.asarray(models.whisper_features(np.zeros(8000, np.float32), seconds=None))
    np.testing.assert_allclose(quiet, -1.5, rtol=1e-6)  # (log10 of 1e-10 + 4) / 4
    assert found.max() - found.min() <= 2
    assert models.whisper_features(noise, seconds=0.25).shape == (25, 80)
    with pytest.raises(ShapeError, match="400 or more"):
        models.whisper_features(noise[:300], seconds=None)


def test_numbers_of_parameters():
    def count(V, m, f, c, e, p, L, D):
        ends = (V + f + c) * e + 3 * m * e + 3 * e * e + 6 * e
        return ends + L * (4 * e * e + 2 * e * p + p + 8 * e) + D * (8 * e * e + 2 * e * p + p + 13 * e)

    tiny = wl.eval_shape(lambda: models.Whisper(51865))
    assert tiny.num_parameters() == count(51865, 80, 1500, 448, 384, 1536, 4, 4) == 37_760_640
    assert tiny.num_parameters(trainable_only=True) == 37_184_640  # as published
    other = models.Whisper(20, 5, 8, 2, 3, 4, 1, encoder_hidden=7, decoder_hidden=7, frames=9, context=11)
    assert other.num_parameters() == count(20, 5, 9, 11, 8, 7, 3, 1)


def test_odd_numbers_of_spectra():
    """The last token of the memory may be of one spectrum only."""
    model = models.Whisper(9, 3, 8, 2, 1, frames=10, context=5, dtype=wl.float64)
    x = np.random.default_rng(0).normal(size=(1, 12, 3))
    for n in (1, 2, 5, 8):
        alone = model.encode(x[:, :n])
        padded = np.where(np.arange(12)[:, None] < n, x, np.nan)
        kept = model.memory_mask(padded, lengths=[n])
        assert int(np.asarray(kept).sum()) == alone.shape[1] == -(-n // 2)
        np.testing.assert_allclose(model.encode(padded, lengths=[n])[:, : alone.shape[1]], alone, atol=1e-12)


def test_what_is_refused():
    model = models.Whisper(9, 3, 8, 2, 1, frames=10, context=5)
    with pytest.raises(InputError, match="21 spectra, and room for 20"):
        model.encode(np.zeros((1, 21, 3), np.float32))
    with pytest.raises(ShapeError, match=r"time, 3\)"):
        model.encode(np.zeros((1, 20, 4), np.float32))
    with pytest.raises(InputError, match="padding at the end"):
        model.encode(np.zeros((1, 4, 3), np.float32), token_mask=[[False, True, True, True]])
    assert "hallucination" in (models.Whisper.__doc__ or "")


TONES = (400.0, 700.0, 1200.0, 2000.0, 3300.0)  # hertz; tokens 2, 3, ... stand for them, 0 begins and 1 ends


def melodies(count, seed):
    """Three tones of 60 ms each in a row, somewhat out of tune and with noise, and their tokens."""
    rng = np.random.default_rng(seed)
    notes = rng.integers(0, len(TONES), (count, 3))
    pitch = np.repeat(np.array(TONES)[notes] * rng.uniform(0.97, 1.03, (count, 3)), 960, axis=1)
    waves = np.sin(2 * np.pi * np.cumsum(pitch, axis=1) / 16_000) * rng.uniform(0.2, 1.0, (count, 1))
    waves += rng.normal(size=waves.shape) * 0.01
    spectra = models.whisper_features(waves.astype(np.float32), bands=16, seconds=None)
    return np.asarray(spectra), np.concatenate([notes + 2, np.ones((count, 1), np.int64)], axis=1)


@pytest.mark.book("11.54", name=["wl.models.Whisper", "wl.models.whisper_features"])
def test_it_learns_to_write_tones():
    """Which tones there are, and in which order, in some seconds; judged by whole transcriptions of other sounds."""
    wl.random.seed(0)
    spectra, targets = melodies(512, 0)
    model = models.Whisper(7, bands=16, embed_dim=32, encoder_heads=2, encoder_layers=1, frames=9, context=4)
    optimizer = wl.optim.AdamW(model, 4e-3, betas=(0.9, 0.98))

    def loss_of(model, x, y):
        return nn.functional.cross_entropy(model(x, wl.series.shift_right(y, start=model.start_token)), y)

    @wl.jit
    def step(model, optimizer, x, y):
        loss, grads = wl.value_and_grad(loss_of)(model, x, y)
        optimizer.step(grads)
        return loss

    for i in range(160):
        rows = slice(32 * (i % 16), 32 * (i % 16) + 32)
        step(model, optimizer, spectra[rows], targets[rows])
    others, truth = melodies(100, 1)
    cache = model.new_cache(100, 4, model.encode(others))
    token, found = wl.zeros((100,), dtype=wl.int64), []
    for _ in range(4):
        logits, cache = model.step(token, cache)
        token = logits.argmax(-1)
        found.append(np.asarray(token))
    assert np.all(np.stack(found, axis=1) == truth, axis=1).mean() > 0.9
