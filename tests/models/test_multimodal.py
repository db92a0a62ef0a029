"""Tokens of several modalities in one sequence."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from tests.models.promises import learns, same_when_compiled, survives_saving
from wonderland import nn
from wonderland.errors import InputError, ShapeError


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


def ids(*shape, seed=0, high=20):
    return wl.asarray(np.random.default_rng(seed).integers(0, high, shape))


def model_of(seed=0, **settings):
    keys = wl.random.split(wl.random.key(seed), 3)
    f64 = {"dtype": wl.float64}
    tokenizers = {"image": nn.PatchEmbed(2, 1, 8, **f64, key=keys[0]), "text": nn.Embedding(20, 8, **f64, key=keys[1])}
    given = {"num_heads": 2, "depth": 2, "head": 3, "max_length": 16} | settings
    return wl.models.MultimodalTransformer(tokenizers, 8, **given, **f64, key=keys[2])


IMAGE, TEXT = numbers(2, 4, 6, 1), ids(2, 5)


@pytest.mark.book("11.56", name="wl.models.MultimodalTransformer")
def test_tokens_stand_side_by_side():
    model = model_of()
    assert model.encode({"image": IMAGE, "text": TEXT}).shape == (2, 6 + 5, 8)
    place = lambda name, n: model.positions[name].weight[:n] + model.kinds.weight[model.modalities.index(name)]
    image = model.tokenizers["image"](IMAGE) + place("image", 6)
    text = model.tokenizers["text"](TEXT) + place("text", 5)
    h = model.stack(wl.concat([image, text], axis=1))
    close_array(model.encode({"text": TEXT, "image": IMAGE}), h, 1000)
    close_array(model({"image": IMAGE, "text": TEXT}), model.head(h.mean(axis=1)), 1000)


@pytest.mark.book("11.56", name="wl.models.MultimodalTransformer")
@pytest.mark.parametrize("pooling", ["mean", "max", "attention", "cls"])
def test_a_modality_may_be_missing(pooling):
    model = model_of(pooling=pooling)
    assert model({"image": IMAGE}).shape == model({"text": TEXT}).shape == (2, 3)
    assert model.encode({"image": IMAGE}).shape == (2, 6, 8)
    empty = model({"image": IMAGE, "text": TEXT}, lengths={"text": [0, 0]})  # as good as no text at all
    close_array(empty, model({"image": IMAGE}), 1000)


@pytest.mark.book("11.56", name="wl.models.MultimodalTransformer")
def test_modalities_see_each_other():
    """What becomes of the words depends on the pixels, and what becomes of the pixels on the words."""
    model = model_of()
    words = lambda image: (model.encode({"image": image, "text": TEXT})[:, 6:] ** 2)[..., 0].sum()
    assert np.abs(np.asarray(wl.grad(words)(IMAGE))).min() > 0
    patches = lambda m: (m.encode({"image": IMAGE, "text": TEXT})[:, :6] ** 2)[..., 0].sum()
    slopes = np.asarray(wl.grad(patches)(model)["tokenizers.text.weight"])
    used = np.unique(np.asarray(TEXT))
    assert np.abs(slopes[used]).max(axis=-1).min() > 0


def test_padding_counts_for_nothing():
    model = model_of()
    text = np.array(TEXT)
    text[1, 3:] = -1
    y = model({"image": IMAGE, "text": text}, lengths={"text": [5, 3]})
    close_array(y[1:], model({"image": IMAGE[1:], "text": TEXT[1:, :3]}), 1000)
    mask = np.ones((2, 6), bool)
    mask[1, 2] = False
    image = np.array(IMAGE)
    image[1, :2, 4:] = np.nan  # the third patch
    y = model({"image": image, "text": TEXT}, token_mask={"image": mask})
    assert np.isfinite(np.asarray(y.detach())).all()


def test_promises(tmp_path):
    model = model_of()
    e, layers = 8, 2
    own = 2 * e + 2 * 16 * e + layers * (12 * e**2 + 13 * e) + 2 * e + (e + 1) * 3
    assert model.num_parameters() == model.tokenizers.num_parameters() + own
    data = {"image": IMAGE, "text": TEXT}
    same_when_compiled(model, data)
    survives_saving(model_of, tmp_path, data)
    loss = lambda m, x, t, y: nn.functional.cross_entropy(m({"image": x, "text": t}), y)
    labels = wl.tensor([0, 1, 2, 1, 0, 2])
    first, last = learns(model, loss, numbers(6, 4, 6, 1), ids(6, 5), labels, steps=50, lr=1e-2)
    assert last < 0.1 < first


def test_errors():
    model = model_of()
    with pytest.raises(InputError, match="a dict of"):
        model({"sound": IMAGE})
    with pytest.raises(InputError, match="no data"):
        model({})
    with pytest.raises(ShapeError, match="batches of 1 and 2 rows"):
        model({"image": IMAGE, "text": TEXT[:1]})
    with pytest.raises(InputError, match="pooling='median'"):
        model_of(pooling="median")
    with pytest.raises(InputError, match="positions='rotary'"):
        model_of(positions="rotary")
    with pytest.raises(InputError, match="tokenizers="):
        wl.models.MultimodalTransformer({}, 8)
