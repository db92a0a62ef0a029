"""The exercise of chapter 10: several views of an object, whose order must not matter."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from tests.models.promises import learns, same_when_compiled, survives_saving
from wonderland import nn
from wonderland.errors import InputError, ShapeError

VARIANTS = [
    ("attention", "mean"),
    ("attention", "cls"),
    ("average", "mean"),
    ("deep_sets", "mean"),
    ("deep_sets", "cls"),
]
F64 = {"dtype": wl.float64}


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


def model_of(mixing="attention", pooling="mean", seed=0):
    keys = wl.random.split(wl.random.key(seed), 3)
    conv, last = nn.Conv2d(1, 4, 3, **F64, key=keys[0]), nn.Linear(4, 8, **F64, key=keys[1])
    backbone = nn.Sequential(conv, wl.relu, nn.GlobalAvgPool(), last)
    return wl.models.MultiViewClassifier(backbone, 8, 3, mixing, pooling, 2, **F64, key=keys[2])


@pytest.mark.book("10.62", name="wl.models.MultiViewClassifier")
@pytest.mark.parametrize("mixing, pooling", VARIANTS)
def test_any_number_of_views(mixing, pooling):
    """The same weights for two views and for seven, in batches of a loader."""
    model = model_of(mixing, pooling)
    images, labels = wl.data.make_shapes(12, size=8)
    flips = wl.data.transforms.RandomHorizontalFlip()
    for views in (2, 7):
        dataset = wl.data.MultiView(wl.data.TensorDataset(images, labels), flips, views=views)
        x, _ = next(iter(wl.data.DataLoader(dataset, batch_size=4)))
        assert model(wl.astype(x, wl.float64)).shape == (4, 3)


@pytest.mark.book("10.63", name="wl.models.MultiViewClassifier.features")
def test_one_backbone_for_all_views():
    model, x = model_of(), numbers(2, 5, 6, 6, 1)
    h = model.features(x)
    assert h.shape == (2, 5, 8)
    for i in range(5):
        close_array(h[:, i], model.backbone(x[:, i]), 1000)
    close_array(h, wl.vmap(model.backbone, in_axes=1, out_axes=1)(x), 1000)
    # with batch normalization the views share their statistics
    normed = wl.models.MultiViewClassifier(nn.Sequential(nn.Flatten(), nn.BatchNorm(4, **F64)), 4, 3, "average", **F64)
    z = numbers(2, 5, 2, 2, 1)
    flat = np.asarray(z).reshape(10, 4)
    expected = (flat - flat.mean(0)) / np.sqrt(flat.var(0) + 1e-5)
    np.testing.assert_allclose(normed.features(z), expected.reshape(2, 5, 4), atol=1e-10)


@pytest.mark.book("10.64", name=("wl.nn.MultiHeadAttention", "wl.nn.TransformerBlock"))
def test_three_implementations_of_attention_agree():
    """A loop over heads and tokens, einsum, and the layer, on the vectors of views."""
    model, x = model_of(), numbers(2, 5, 6, 6, 1)
    block = model.mixing
    layer, H = block.attention, np.asarray(block.norm1(model.features(x)).detach())
    q, k, v, o = (
        (np.asarray(part.weight.detach()), np.asarray(part.bias.detach()))
        for part in (layer.query, layer.key, layer.value, layer.output)
    )
    naive = np.zeros_like(H)
    for b, i in itertools.product(range(2), range(5)):
        heads = []
        for h in range(2):
            cut = slice(4 * h, 4 * h + 4)
            query = (H[b, i] @ q[0] + q[1])[cut]
            scores = np.array([query @ (H[b, j] @ k[0] + k[1])[cut] for j in range(5)]) / 2.0
            weights = np.exp(scores) / np.exp(scores).sum()
            heads.append(sum(weights[j] * (H[b, j] @ v[0] + v[1])[cut] for j in range(5)))
        naive[b, i] = np.concatenate(heads) @ o[0] + o[1]
    by_heads = lambda w: wl.rearrange(wl.asarray(H @ w[0] + w[1]), "b n (h d) -> b h n d", h=2)
    weights = wl.softmax(wl.einsum("bhid,bhjd->bhij", by_heads(q), by_heads(k)) / 2.0, axis=-1)
    mixed = wl.rearrange(wl.einsum("bhij,bhjd->bhid", weights, by_heads(v)), "b h n d -> b n (h d)")
    einsum = mixed @ wl.asarray(o[0]) + wl.asarray(o[1])
    library = np.asarray(layer(wl.asarray(H)).detach())
    assert np.abs(library - naive).max() < 1e-10
    assert np.abs(library - np.asarray(einsum)).max() < 1e-10


@pytest.mark.book("10.65", name="wl.models.MultiViewClassifier")
@pytest.mark.parametrize("mixing, pooling", VARIANTS)
def test_the_order_of_views_does_not_matter(mixing, pooling):
    model, x = model_of(mixing, pooling), numbers(2, 4, 6, 6, 1)
    expected = np.asarray(model(x).detach())
    for order in itertools.permutations(range(4)):
        np.testing.assert_allclose(model(x[:, list(order)]).detach(), expected, atol=1e-12)


@pytest.mark.book("10.67", name=("wl.models.MultiViewClassifier", "wl.nn.check_equivariance", "wl.nn.check_invariance"))
def test_what_is_between_must_commute_with_permutations():
    """Each mixing does; with positions of the views it does not, and the model then knows their order."""
    order = np.array([2, 0, 3, 1])
    permuted = lambda a: wl.asarray(a)[order]
    x, h = numbers(4, 6, 6, 1), numbers(4, 8)
    for mixing in ("attention", "average", "deep_sets"):
        model = model_of(mixing)
        assert nn.check_equivariance(lambda h, m=model: m.mixing(h[None])[0], h, permuted).interior < 1e-12
        assert nn.check_invariance(lambda x, m=model: m(x[None])[0], x, permuted) < 1e-12
    positions = nn.Sequential(nn.SinusoidalPositions(8), nn.TransformerBlock(8, 2, **F64))
    model = model_of(positions)
    assert nn.check_equivariance(lambda h: positions(h[None])[0], h, permuted).interior > 1e-3
    assert nn.check_invariance(lambda x: model(x[None])[0], x, permuted) > 1e-6


@pytest.mark.book("10.66", name=("wl.models.MultiViewClassifier", "wl.nn.DeepSets"))
def test_baselines_in_a_table():
    """Without attention, with deep sets, with attention: equivariant, and all above chance on shapes."""
    layer, h = nn.DeepSets(8, 8, **F64), numbers(2, 5, 8)
    by_hand = h @ layer.own.weight + layer.own.bias + h.mean(axis=1, keepdims=True) @ layer.mean.weight
    close_array(layer(h), by_hand, 1000)
    # with multiples of the identity for A and B it is (lambda I + gamma 11') X
    layer.own.weight, layer.mean.weight, layer.own.bias = (
        0.7 * wl.eye(8, **F64),
        1.5 * wl.eye(8, **F64),
        wl.zeros(8, **F64),
    )
    mixing = 0.7 * np.eye(5) + 1.5 / 5 * np.ones((5, 5))
    np.testing.assert_allclose(layer(h), np.einsum("ij,bje->bie", mixing, h), atol=1e-12)
    images, labels = wl.data.make_shapes(48, size=8)
    noise = np.random.default_rng(0).normal(size=(48, 3, 8, 8, 1)) * 0.1
    views, y = wl.asarray(np.asarray(images, np.float64)[:, None] + noise), wl.asarray(labels)
    classes = int(np.max(labels)) + 1
    table = {}
    for mixing in ("average", "deep_sets", "attention"):
        keys = wl.random.split(wl.random.key(0), 2)
        backbone = nn.Sequential(nn.Flatten(), nn.Linear(64, 16, **F64, key=keys[0]), wl.relu)
        model = wl.models.MultiViewClassifier(backbone, 16, classes, mixing, num_heads=2, **F64, key=keys[1])
        learns(model, lambda m, x, y: nn.functional.cross_entropy(m(x), y), views, y, steps=40, lr=1e-2)
        table[mixing] = float((np.asarray(model(views).detach()).argmax(-1) == np.asarray(labels)).mean())
    assert set(table) == {"average", "deep_sets", "attention"}
    assert min(table.values()) > 1.5 / classes


@pytest.mark.parametrize("mixing, pooling", VARIANTS[:3])
def test_promises(mixing, pooling, tmp_path):
    model, x = model_of(mixing, pooling), numbers(2, 4, 6, 6, 1)
    same_when_compiled(model, x)
    survives_saving(lambda seed: model_of(mixing, pooling, seed), tmp_path, x)
    block = 12 * 64 + 13 * 8 if mixing == "attention" else 0
    assert model.num_parameters() == model.backbone.num_parameters() + block + 8 * (pooling == "cls") + 9 * 3
    padded = np.array(x)
    padded[1, 2:] = np.nan
    mask = np.array([[True] * 4, [True] * 2 + [False] * 2])
    close_array(model(padded, mask)[1:], model(x[1:, :2]), 1000)
    grads = wl.grad(lambda m: m(padded, mask).sum())(model)
    assert all(np.isfinite(np.asarray(g)).all() for g in grads.values())


def test_errors():
    with pytest.raises(InputError, match="mixing='sum'"):
        model_of("sum")
    with pytest.raises(InputError, match="a class token that nothing is mixed with"):
        model_of("average", "cls")
    with pytest.raises(ShapeError, match=r"\(batch, views, \.\.\.\)"):
        model_of()(numbers(2, 4))
