"""Mixup and cutmix: whose pixels, which labels, on arrays and on tensors, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import DTypeError, InputError, ShapeError

RNG = np.random.default_rng(0)
X = RNG.random((6, 8, 8, 2)).astype(np.float32)
LABELS = np.array([0, 1, 2, 0, 1, 2])
Y = np.eye(3, dtype=np.float32)[LABELS]
PARTNERS = np.array([3, 4, 5, 1, 2, 0])


@pytest.mark.book("9-31", name=("wl.data.mixup", "wl.data.MixUp"))
class TestMixup:
    def test_equations(self) -> None:
        lam = RNG.random(6).astype(np.float32)
        x, y = wl.data.mixup(X, Y, lam=lam, partners=PARTNERS)
        for i in range(6):
            np.testing.assert_allclose(x[i], lam[i] * X[i] + (1 - lam[i]) * X[PARTNERS[i]], rtol=1e-6)
            np.testing.assert_allclose(y[i], lam[i] * Y[i] + (1 - lam[i]) * Y[PARTNERS[i]], rtol=1e-6)
        np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-6)

    def test_ends(self) -> None:
        for lam, expected in ((1.0, np.arange(6)), (0.0, PARTNERS)):
            x, y = wl.data.mixup(X, LABELS, lam=lam, partners=PARTNERS, num_classes=3)
            np.testing.assert_array_equal(x, X[expected])
            np.testing.assert_array_equal(y, Y[expected])

    def test_draws(self) -> None:
        n = 4000
        x = np.zeros((n, 1))
        x[: n // 2] = 1.0
        # a 1 that meets a 0 shows lambda
        for alpha in (1.0, 0.3):
            mixed, _ = wl.data.mixup(x, x, alpha, partners=np.roll(np.arange(n), n // 2), rng=1)
            lam = mixed[: n // 2, 0]
            assert lam.mean() == pytest.approx(0.5, abs=0.04)
            assert lam.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.1)  # of Beta(alpha, alpha)
        one = wl.data.mixup(x, x, partners=np.roll(np.arange(n), n // 2), per_sample=False, rng=1)[0]
        assert len(np.unique(one[: n // 2])) == 1
        first, again = (wl.data.mixup(X, Y, rng=5) for _ in range(2))
        np.testing.assert_array_equal(first[0], again[0])

    def test_integer_labels_need_classes(self) -> None:
        with pytest.raises(DTypeError, match=r"class numbers \(int64 of shape \(6,\)\) cannot be blended"):
            wl.data.mixup(X, LABELS)
        with pytest.raises(IndexError):
            wl.data.mixup(X, LABELS, num_classes=2)

    def test_soft_labels_train(self) -> None:
        x, y = wl.data.mixup(X.reshape(6, -1), LABELS, num_classes=3, rng=0)
        weights = wl.zeros((128, 3))

        def loss(w: Any) -> Any:
            logits = wl.tensor(x) @ w
            return -(wl.tensor(y) * (logits - wl.logsumexp(logits, axis=1, keepdims=True))).sum(axis=1).mean()

        before = loss(weights)
        assert before.item() == pytest.approx(np.log(3), rel=1e-5)
        assert loss(weights - 0.1 * wl.grad(loss)(weights)).item() < before.item()

    def test_bad_input(self) -> None:
        for call, error, says in (
            (lambda: wl.data.mixup((X * 255).astype(np.uint8), Y), DTypeError, "ToFloat"),
            (lambda: wl.data.mixup(X, Y[:5]), ShapeError, "inputs .* and targets"),
            (lambda: wl.data.mixup(X[:0], Y[:0]), ShapeError, "not empty"),
            (lambda: wl.data.mixup(X, Y, 0.0), InputError, "alpha=0.0"),
            (lambda: wl.data.mixup(X, Y, lam=1.5), InputError, "lam=1.5"),
            (lambda: wl.data.mixup(X, Y, lam=[0.1, 0.2]), ShapeError, "lam of shape"),
            (lambda: wl.data.mixup(X, Y, partners=[0, 1]), ShapeError, "partners of shape"),
            (lambda: wl.data.mixup(X, Y, rng="x"), InputError, "neither a seed"),  # type: ignore[arg-type]
        ):
            with pytest.raises(error, match=says):
                call()


@pytest.mark.book("9-33", name=("wl.data.cutmix", "wl.data.CutMix"))
class TestCutmix:
    @pytest.mark.parametrize("dtype", ["float32", "uint8"])
    @pytest.mark.parametrize("per_sample", [True, False])
    def test_pixels_are_one_s_or_the_other_s(self, dtype: str, per_sample: bool) -> None:
        x = (RNG.random((40, 16, 16, 1)) * 255).astype(dtype)
        y = np.eye(40)
        partners = np.roll(np.arange(40), 1)
        mixed, labels = wl.data.cutmix(x, y, patch=(4, 6), partners=partners, per_sample=per_sample, rng=0)
        assert mixed.dtype == x.dtype
        own = np.zeros((40, 16, 16), bool)
        for i in range(40):
            # a window of 4 x 6 holds the first image, all else the second
            fits = []
            for top in range(13):
                for left in range(11):
                    expected = x[partners[i]].copy()
                    expected[top : top + 4, left : left + 6] = x[i, top : top + 4, left : left + 6]
                    if np.array_equal(expected, mixed[i]):
                        fits.append((top, left))
            assert fits
            own[i, fits[0][0] : fits[0][0] + 4, fits[0][1] : fits[0][1] + 6] = True
            assert labels[i, i] == pytest.approx(24 / 256)
            assert labels[i, partners[i]] == pytest.approx(1 - 24 / 256)
        assert (len(np.unique(own.reshape(40, -1), axis=0)) == 1) == (not per_sample)

    def test_area_of_the_book_s_patch(self) -> None:
        x = np.zeros((2, 256, 256, 1), np.uint8)
        _, y = wl.data.cutmix(x, [0, 1], patch=32, partners=[1, 0], num_classes=2, rng=0)
        assert y[0, 0] == 1 / 64

    def test_drawn_areas(self) -> None:
        n = 500
        x = np.concatenate([np.ones((n, 12, 12, 1)), np.zeros((n, 12, 12, 1))])
        labels = (np.arange(2 * n) < n).astype(np.int64)
        mixed, y = wl.data.cutmix(x, labels, partners=np.roll(np.arange(2 * n), n), num_classes=2, rng=0)
        share = mixed[:n].mean(axis=(1, 2, 3))
        np.testing.assert_allclose(y[:n, 1], share, rtol=1e-6)  # the label is the area
        assert share.mean() == pytest.approx(0.5, abs=0.05)
        assert share.var() == pytest.approx(1 / 12, rel=0.15)  # uniform
        mixed, y = wl.data.cutmix(
            x, labels, partners=np.roll(np.arange(2 * n), n), num_classes=2, label_mode="random", rng=0
        )
        assert abs(np.corrcoef(mixed[:n].mean(axis=(1, 2, 3)), y[:n, 1])[0, 1]) < 0.15
        np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-6)
        _, y = wl.data.cutmix(X, Y, patch=2, lam=0.25, label_mode="random", partners=PARTNERS, rng=0)
        np.testing.assert_allclose(y, 0.25 * Y + 0.75 * Y[PARTNERS])

    def test_bad_input(self) -> None:
        for call, error, says in (
            (lambda: wl.data.cutmix(X, Y, label_mode="x"), InputError, "label_mode='x'"),
            (lambda: wl.data.cutmix(X[..., 0], Y), ShapeError, "a batch of images"),
            (lambda: wl.data.cutmix(X, Y, patch=9), ShapeError, "a patch of 9 pixels in images of 8 x 8"),
            (lambda: wl.data.cutmix(X, LABELS), DTypeError, "cannot be blended"),
        ):
            with pytest.raises(error, match=says):
                call()


class TestTensors:
    @pytest.mark.book("9-31", "9-33", name=("wl.data.mixup", "wl.data.cutmix"))
    @pytest.mark.parametrize("mix", [wl.data.mixup, wl.data.cutmix])
    def test_compiled_as_eagerly(self, mix: Any) -> None:
        key = wl.random.key(3)

        def mixed(x: Any, y: Any, key: Any) -> Any:
            return mix(x, y, num_classes=3, rng=key)

        x, y = wl.tensor(X), wl.tensor(LABELS)
        eager, compiled = mixed(x, y, key), wl.jit(mixed)(x, y, key)
        for a, b in zip(eager, compiled, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
        np.testing.assert_allclose(eager[1].sum(axis=1), 1, rtol=1e-6)
        assert not np.array_equal(eager[0], mixed(x, y, wl.random.key(4))[0])

    def test_as_arrays(self) -> None:
        arrays = wl.data.mixup(X, Y, lam=0.3, partners=PARTNERS)
        on_tensors = wl.data.mixup(wl.tensor(X), wl.tensor(Y), lam=0.3, partners=PARTNERS)
        for a, b in zip(arrays, on_tensors, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.book("9-32", name=("wl.data.mixup", "wl.data.cutmix"))
def test_mixup_blurs_and_cutmix_does_not() -> None:
    images = (RNG.random((20, 8, 8, 1)) < 0.5).astype(np.float64)  # black and white
    y = np.eye(20)
    blended, pasted = wl.data.mixup(images, y, rng=0)[0], wl.data.cutmix(images, y, rng=0)[0]
    assert not set(np.unique(blended)) <= {0.0, 1.0}
    assert set(np.unique(pasted)) == {0.0, 1.0}


@pytest.mark.book("9-34", name=("wl.data.transforms.Compose", "wl.data.CutMix", "wl.data.DataLoader"))
def test_a_pipeline_of_rotation_and_cutmix() -> None:
    digits = wl.data.digits().train.select(np.arange(32))
    loader = wl.data.DataLoader(
        wl.data.TensorDataset(*digits.arrays),
        batch_size=16,
        transform=wl.data.transforms.RandomRotation(20),
        batch_transform=wl.data.CutMix(num_classes=10),
    )
    first, second = ([(np.asarray(x), np.asarray(y)) for x, y in loader] for _ in range(2))
    for x, y in first:
        assert (x.shape, y.shape) == ((16, 8, 8, 1), (16, 10))
        np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-6)
    assert not np.array_equal(first[0][0], second[0][0])
