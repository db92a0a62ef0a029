"""The vision transformer: scores of a stored model of another library, its tokenizers, positions and sizes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from tests.models.promises import learns, same_when_compiled, survives_saving
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional
FOLDER = Path(__file__).resolve().parent.parent / "checkpoints" / "vit"
POSITIONS = ["learned", "sinusoidal", "relative", "rotary", None]


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


def vit(seed=0, **settings):
    given = {"patch": 2, "embed_dim": 8, "num_heads": 2, "depth": 2} | settings
    return wl.models.ViT(3, (6, 4, 1), dtype=wl.float64, key=wl.random.key(seed), **given)


@pytest.mark.book("11.48", "A6-24", name="wl.models.ViT")
def test_scores_of_a_stored_model():
    """tools/transformers_reference made it."""
    config, expected = json.loads((FOLDER / "config.json").read_text()), dict(np.load(FOLDER / "expected.npz"))
    tensors = {path: np.asarray(value) for path, value in wl.load(str(FOLDER / "model.safetensors")).items()}
    size, e, c = config["image_size"], config["hidden_size"], config["num_channels"]
    model = wl.models.ViT(
        5, (size, size, c), config["patch_size"], e, config["num_attention_heads"], config["num_hidden_layers"],
        hidden=config["intermediate_size"], eps=config["layer_norm_eps"],
    )  # fmt: skip

    def linear(layer, path):
        layer.weight, layer.bias = wl.asarray(tensors[f"{path}.weight"].T.copy()), wl.asarray(tensors[f"{path}.bias"])

    def norm(layer, path):
        layer.weight, layer.bias = wl.asarray(tensors[f"{path}.weight"]), wl.asarray(tensors[f"{path}.bias"])

    filters = tensors["vit.embeddings.patch_embeddings.projection.weight"]  # (e, c, p, p)
    model.patches.projection.weight = wl.asarray(filters.transpose(2, 3, 1, 0).reshape(-1, e))
    model.patches.projection.bias = wl.asarray(tensors["vit.embeddings.patch_embeddings.projection.bias"])
    model.class_token.weight = wl.asarray(tensors["vit.embeddings.cls_token"][0])
    model.positions.weight = wl.asarray(tensors["vit.embeddings.position_embeddings"][0])
    for i, block in enumerate(model.stack.blocks):
        at = f"vit.encoder.layer.{i}"
        for part in ("query", "key", "value"):
            linear(getattr(block.attention, part), f"{at}.attention.attention.{part}")
        linear(block.attention.output, f"{at}.attention.output.dense")
        linear(block.feed_forward.up, f"{at}.intermediate.dense")
        linear(block.feed_forward.down, f"{at}.output.dense")
        norm(block.norm1, f"{at}.layernorm_before")
        norm(block.norm2, f"{at}.layernorm_after")
    norm(model.stack.norm, "vit.layernorm")
    linear(model.head, "classifier")
    np.testing.assert_allclose(model(expected["pixels"]), expected["logits"], atol=1e-5)
    np.testing.assert_allclose(model(expected["larger_pixels"][None]), expected["larger_logits"], atol=1e-5)
    assert model.num_parameters() == sum(tensor.size for tensor in tensors.values())


@pytest.mark.book("11.48", name="wl.models.ViT")
def test_tokens_and_parameters():
    model, x = vit(), numbers(5, 6, 4, 1)
    assert model.tokens == 6
    assert model.encode(x).shape == (5, 7, 8)  # n patches and the class token
    n, p, c, e, layers, m = 6, 2, 1, 8, 2, 3
    inside = layers * (12 * e**2 + 13 * e) + 2 * e + (e + 1) * m
    assert model.num_parameters() == (p * p * c + 1) * e + e + (n + 1) * e + inside
    assert vit(pooling="mean", positions=None).num_parameters() == (p * p * c + 1) * e + inside
    assert vit(registers=3).num_parameters() == model.num_parameters() + 3 * e
    relative = vit(positions="relative").num_parameters()
    assert relative == model.num_parameters() - (n + 1) * e + layers * 2 * (5 * 3 + 1)
    sizes = {(192, 3): 5_717_416, (384, 6): 22_050_664, (768, 12): 86_567_656}  # Ti, S and B with patches of 16
    for (e, heads), parameters in sizes.items():
        model = wl.eval_shape(lambda e=e, h=heads: wl.models.ViT(1000, (224, 224, 3), 16, e, h, 12))
        assert model.num_parameters() == parameters


@pytest.mark.book("11.43", name="wl.models.ViT")
def test_how_many_scores_attention_has():
    """A token for each of 64 x 64 pixels, or for each patch of 8 x 8."""
    make = lambda **given: wl.eval_shape(lambda: wl.models.ViT(10, (64, 64), embed_dim=8, depth=1, **given))
    pixels, patches = make(tokenizer="pixels"), make(patch=8)
    assert (pixels.tokens, pixels.tokens**2) == (4096, 16_777_216)
    assert (patches.tokens, patches.tokens**2) == (64, 4096)


@pytest.mark.book("11.71", "11.45", name="wl.models.ViT")
def test_three_tokenizers():
    x = numbers(2, 6, 4, 1)
    patches, conv = vit(), vit(tokenizer="conv")
    close_array(patches(x), conv(x), 1000)  # the same parameters, another way
    pixels, ones = vit(tokenizer="pixels"), vit(patch=1)
    assert pixels.tokens == ones.tokens == 24
    close_array(pixels(x), ones(x))
    tokens = x.reshape(2, 24, 1) @ pixels.patches.projection.weight + pixels.patches.projection.bias
    close_array(pixels.patches(x), tokens)


@pytest.mark.book("11.72", name="wl.models.ViT")
@pytest.mark.parametrize("positions", POSITIONS)
def test_positions(positions, tmp_path):
    """Without positions an image is a bag of patches; with any kind of them it is not."""
    make = lambda seed: vit(seed, positions=positions, pooling="mean")
    model, x = make(0), numbers(2, 6, 4, 1)
    for block in model.stack.blocks:
        if positions == "relative":  # they start from 0
            block.attention.positions.weight = numbers(*block.attention.positions.weight.shape, seed=4)
    swapped = wl.concat([x[:, 2:4], x[:, :2], x[:, 4:]], axis=1)  # two rows of patches
    assert np.allclose(model(x).detach(), model(swapped).detach(), atol=1e-10) == (positions is None)
    same_when_compiled(model, x)
    survives_saving(make, tmp_path, x)


@pytest.mark.book("A6-24", name="wl.models.ViT")
def test_it_is_not_equivariant_to_shifts():
    """Patches of the notes: 16 of 192 numbers for 32 x 32 pixels in color. A shift by less than a patch changes all."""
    model = wl.models.ViT(10, (32, 32, 3), 8, 16, 2, 1, dtype=wl.float64)
    assert (model.tokens, model.patches.projection.in_features) == (16, 192)
    x = numbers(1, 32, 32, 3)
    for shift in (1, 8):
        moved = wl.roll(x, shift, axis=1)
        rolled = wl.roll(model.features(x).reshape(1, 4, 4, 16), shift // 8, axis=1)
        assert np.abs(np.asarray((model.features(moved).reshape(1, 4, 4, 16) - rolled).detach())).max() > 1e-3


def test_pooling_and_registers():
    x = numbers(2, 6, 4, 1)
    token = vit(registers=2)
    tokens = token.registers(token.positions(token.class_token(token.patches(x))))
    assert tokens.shape == (2, 1 + 6 + 2, 8)
    close_array(token(x), token.head(token.stack(tokens)[:, 0]))
    assert token.features(x).shape == (2, 6, 8)
    mean = vit(pooling="mean")
    close_array(mean(x), mean.head(mean.features(x).mean(axis=1)))
    close_array(vit()(x[0]), vit()(x)[0])


@pytest.mark.book("11.48", name="wl.models.ViT")
def test_it_learns_32_images_by_heart():
    images, labels = numbers(32, 6, 4, 1), wl.asarray(np.random.default_rng(1).integers(0, 3, 32))
    model = vit(embed_dim=16)
    first, last = learns(model, lambda m, x, y: F.cross_entropy(m(x), y), images, labels, steps=80, lr=5e-3)
    assert first > 0.8
    assert last < 0.05


@pytest.mark.book("11.68", name=("wl.models.ViT", "wl.recipes.build", "wl.train.fit"))
def test_it_learns_digits():
    """The model of `wonderland train --model vit`, smaller: far above chance, which is one in ten."""
    wl.random.seed(0)
    model = wl.recipes.build({"name": "vit", "embed_dim": 32, "depth": 2}, (8, 8, 1), 10)
    digits = wl.data.digits()
    x, y = np.asarray(digits.features, np.float32), np.asarray(digits.targets, np.int64)
    x = (x.reshape(-1, 8, 8, 1) - x.mean()) / x.std()
    fit = {"epochs": 5, "optimizer": wl.optim.AdamW(model, 4e-3), "batch_size": 50, "progress": False}
    wl.train.fit(model, "cross_entropy", (x[:1200], y[:1200]), **fit)
    accuracy = lambda part: (np.asarray(wl.train.predict(model, x[part])).argmax(-1) == y[part]).mean()
    assert accuracy(slice(1200)) > 0.8
    assert accuracy(slice(1200, None)) > 0.7


def test_errors():
    with pytest.raises(ShapeError, match="ViT: images of 6 x 4 pixels do not divide into patches of 4 x 4"):
        vit(patch=4)
    with pytest.raises(ShapeError, match=r"\(\.\.\., 6, 4, 1\)"):
        vit()(numbers(2, 4, 6, 1))
    for setting in ("tokenizer", "positions", "pooling"):
        with pytest.raises(InputError, match=f"ViT: {setting}='some'"):
            vit(**{setting: "some"})
