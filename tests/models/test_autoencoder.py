"""Autoencoders: linear ones against PCA, denoising, bits, and what the codes are good for."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError, NonFiniteError
from wonderland.models import (
    PCA,
    Autoencoder,
    BinaryAutoencoder,
    DenoisingAutoencoder,
    KMeans,
    LinearAutoencoder,
    masking,
    mirror,
)


def curved(n=128, seed=0):
    """Points of a curve in 6 dimensions, and how far along it they are."""
    t = np.random.default_rng(seed).uniform(-1, 1, n)
    X = np.stack([t, t**2, np.sin(3 * t), np.cos(2 * t), 1 - t, t**3], axis=1)
    return X.astype(np.float32), t


@pytest.mark.book("A2-19", "A2-04", "A1-02", name="wl.models.Autoencoder")
def test_the_loss_falls_and_codes_have_their_size():
    X, _ = curved()
    k = wl.random.split(wl.random.key(0), 3)
    model = Autoencoder(nn.Sequential(nn.Linear(6, 16, key=k[0]), wl.tanh, nn.Linear(16, 2, key=k[1])), key=k[2])
    before = float(model.loss(wl.asarray(X)))
    model.fit(X, epochs=40, batch_size=32, lr=0.01, key=wl.random.key(1))
    assert len(model.history) == 40
    assert float(model.loss(wl.asarray(X))) < 0.1 * before
    codes = model.encode(X)
    assert codes.shape == (128, 2)
    assert codes.dtype == wl.float32
    np.testing.assert_array_equal(model.reconstruct(X), model.decode(codes))
    np.testing.assert_allclose(wl.jit(model)(wl.asarray(X)), model.reconstruct(X), atol=1e-6)


@pytest.mark.book("A2-06", name="wl.models.mirror")
def test_the_mirror_has_the_widths_in_reverse():
    encoder = nn.Sequential(nn.Linear(9, 7), nn.ReLU(), nn.Linear(7, 4, bias=False), wl.tanh, nn.Linear(4, 2), wl.tanh)
    decoder = mirror(encoder, key=wl.random.key(0))
    widths = [(m.in_features, m.out_features) for m in decoder if isinstance(m, nn.Linear)]
    assert widths == [(2, 4), (4, 7), (7, 9)]
    assert [type(m).__name__ for m in decoder] == ["Linear", "function", "Linear", "ReLU", "Linear"]
    assert decoder[2].bias is None
    assert mirror(nn.Linear(3, 1))(wl.ones((2, 1))).shape == (2, 3)
    for bad in (nn.Conv2d(1, 2, 3), nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)), nn.Sequential(wl.tanh)):
        with pytest.raises(ModuleError, match="decoder of your own"):
            mirror(bad)


@pytest.mark.book("A2-24", name=("wl.models.LinearAutoencoder", "wl.models.PCA"))
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("method", ["gradient", "closed"])
def test_the_best_linear_autoencoder_is_pca(method, bias):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)) @ np.diag([3.0, 2.0, 0.8, 0.5, 0.3]) @ np.linalg.qr(rng.normal(size=(5, 5)))[0] + 0.5
    model = LinearAutoencoder(5, 2, bias=bias, dtype=wl.float64, key=wl.random.key(0))
    settings = {"epochs": 1500, "batch_size": None, "lr": 0.02} if method == "gradient" else {}
    model.fit(X, method=method, **settings)
    centred = X - X.mean(0) if bias else X
    _, s, vh = np.linalg.svd(centred)
    error = float(((model(wl.asarray(X)) - X) ** 2).sum())
    np.testing.assert_allclose(error, (s[2:] ** 2).sum(), rtol=1e-4)
    # the cosines of the principal angles between what the decoder spans and the first two directions
    q = np.linalg.qr(model.decoder.weight.numpy().T)[0]
    np.testing.assert_allclose(np.linalg.svd(q.T @ vh[:2].T)[1], 1.0, atol=1e-4)
    if bias:
        pca = PCA(2).fit(X)
        best = pca.inverse_transform(pca.transform(X))
        np.testing.assert_allclose(model(wl.asarray(X)), best, atol=0.05)


@pytest.mark.book("A2-22", name="wl.models.DenoisingAutoencoder")
@pytest.mark.parametrize("noise", [0.4, masking(0.2)])
def test_what_comes_out_is_nearer_to_the_clean_input(noise):
    X, _ = curved(200)
    k = wl.random.split(wl.random.key(0), 3)
    encoder = nn.Sequential(nn.Linear(6, 24, key=k[0]), wl.relu)
    model = DenoisingAutoencoder(encoder, nn.Linear(24, 6, key=k[1]), noise=noise, key=k[2])
    model.fit(X, epochs=60, batch_size=50, lr=0.01, key=wl.random.key(1))
    clean, _ = curved(100, seed=9)
    noisy = model.corrupt(clean, key=wl.random.key(5))
    restored = model.reconstruct(noisy)
    assert float(((restored - clean) ** 2).mean()) < 0.7 * float(((noisy - clean) ** 2).mean())
    assert float(wl.abs(model.corrupt(clean) - model.corrupt(clean)).max()) > 0  # new noise every time


def four_groups(seed=0):
    rng = np.random.default_rng(seed)
    centers = np.array([[0.0, 0.0], [4.0, 0.5], [0.3, 4.0], [5.0, 5.0]])
    return centers.repeat(20, axis=0) + 0.2 * rng.normal(size=(80, 2))


@pytest.mark.book("A2-31", name="wl.models.BinaryAutoencoder")
def test_one_bit_is_two_means():
    X = np.concatenate([four_groups()[:20], four_groups()[60:]])
    model = BinaryAutoencoder(2, 1, dtype=wl.float64, key=wl.random.key(0)).fit(X, epochs=100, lr=0.02)
    codes, out = model.encode(X).numpy()[:, 0], model(wl.asarray(X)).numpy()
    assert set(codes) == {0.0, 1.0}
    values = np.unique(out.round(12), axis=0)
    assert len(values) == 2
    for bit in (0.0, 1.0):
        np.testing.assert_allclose(out[codes == bit], np.tile(X[codes == bit].mean(0), (20, 1)), rtol=1e-10)
    inertia = KMeans(2, key=wl.random.key(0)).fit(X).inertia_
    error = ((out - X) ** 2).sum()
    assert error >= inertia * (1 - 1e-10)
    np.testing.assert_allclose(error, inertia, rtol=1e-9)  # here a line can do it


@pytest.mark.book("A2-32", name="wl.models.BinaryAutoencoder")
def test_two_bits_give_four_sums_not_four_free_centres():
    X = four_groups()
    model = BinaryAutoencoder(2, 2, dtype=wl.float64, key=wl.random.key(2))
    model.encoder[0].weight = np.eye(2)  # borders across the axes, through the middle
    model.fit(X, epochs=20, lr=1e-3)
    assert len(np.unique(model.encode(X).numpy(), axis=0)) == 4
    r = {bits: model.decode(np.array(bits, float)).numpy() for bits in [(0, 0), (0, 1), (1, 0), (1, 1)]}
    np.testing.assert_allclose(r[0, 0] + r[1, 1], r[0, 1] + r[1, 0], rtol=1e-12)
    error = float(((model(wl.asarray(X)) - X) ** 2).sum())
    assert error > 1.05 * KMeans(4, key=wl.random.key(0)).fit(X).inertia_  # free centres do better


@pytest.mark.book("A2-21", name="wl.models.KMeans")
def test_clusters_of_codes():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 30)
    X = (10 * rng.normal(size=(3, 12)))[labels] + rng.normal(size=(90, 12))
    codes = LinearAutoencoder(12, 2).fit(X, method="closed").encode(X.astype(np.float32))
    found = KMeans(3, key=wl.random.key(0)).fit_predict(codes).numpy()
    purity = sum(np.bincount(labels[found == k]).max() for k in range(3)) / 90
    assert purity == 1.0


def test_bad_input():
    model = LinearAutoencoder(3, 2)
    with pytest.raises(InputError, match="method='magic'"):
        model.fit(np.zeros((4, 3)), method="magic")
    with pytest.raises(NonFiniteError, match="epoch 0"):
        model.fit(np.full((4, 3), np.nan, np.float32), epochs=1)
    with pytest.raises(InputError, match="noise=-1"):
        DenoisingAutoencoder(nn.Linear(2, 1), noise=-1)
    with pytest.raises(InputError, match="not a probability"):
        masking(2.0)
    with pytest.raises(InputError, match="arrays of"):
        model.fit(np.zeros((0, 3), np.float32))
