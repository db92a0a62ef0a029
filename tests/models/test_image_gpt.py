"""Images written patch by patch: the order, what each patch sees, the losses, and writing with a cache."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from tests.models.promises import learns, same_when_compiled, survives_saving
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ShapeError

F = nn.functional


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


def codes(*shape, seed=0, levels=5):
    return wl.asarray(np.random.default_rng(seed).integers(0, levels, shape))


def model_of(kind, seed=0, order="rows"):
    given = {
        "embed_dim": 8,
        "num_heads": 2,
        "depth": 2,
        "order": order,
        "dtype": wl.float64,
        "key": wl.random.key(seed),
    }
    if kind == "codes":
        return wl.models.ImageGPT((4, 6), levels=5, **given), codes(3, 4, 6)
    return wl.models.ImageGPT((4, 6, 2), patch=2, **given), numbers(3, 4, 6, 2)


@pytest.mark.book("11.49", name=("wl.models.patch_order", "wl.models.ImageGPT"))
@pytest.mark.parametrize("kind", ["vectors", "codes"])
@pytest.mark.parametrize("order", ["rows", "columns"])
def test_the_order_is_a_permutation_with_an_inverse(kind, order):
    model, x = model_of(kind, order=order)
    rows, columns = (4, 6) if kind == "codes" else (2, 3)
    steps = wl.models.patch_order(rows, columns, order)
    assert sorted(steps) == list(range(rows * columns))
    np.testing.assert_array_equal(steps[np.argsort(steps)], np.arange(rows * columns))
    np.testing.assert_array_equal(model.image(model.sequence(x)), x)
    second = np.asarray(model.sequence(x))[:, 1]
    if kind == "codes":
        np.testing.assert_array_equal(second, x[:, 1, 0] if order == "columns" else x[:, 0, 1])
    else:
        patch = x[:, 2:, :2] if order == "columns" else x[:, :2, 2:4]
        np.testing.assert_array_equal(second, np.asarray(patch).reshape(3, 8))


@pytest.mark.book("11.49", name=("wl.models.ImageGPT", "wl.nn.is_causal"))
@pytest.mark.parametrize("order", ["rows", "columns"])
def test_a_patch_is_guessed_from_those_before_it(order):
    model, x = model_of("vectors", order=order)
    steps = np.argsort(model.steps)
    base = np.asarray(model(x).detach())
    for place in range(6):
        changed = np.array(x)
        row, column = divmod(place, 3)
        changed[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2] += 1.0
        moved = np.abs(np.asarray(model(changed).detach()) - base).max(axis=(0, 2)) > 1e-12
        np.testing.assert_array_equal(moved, np.arange(6) > steps[place])  # those after it, and not itself


@pytest.mark.book("11.49", name="wl.models.ImageGPT.loss")
def test_losses():
    model, x = model_of("vectors")
    error = np.asarray(model(x).detach()) - np.asarray(model.sequence(x))
    assert model.loss(x).item() == pytest.approx((error**2).mean())
    model, x = model_of("codes")
    close_array(model.loss(x), F.cross_entropy(model(x).reshape(-1, 5), model.sequence(x).reshape(-1)), 1000)


@pytest.mark.book("11.49", name="wl.models.ImageGPT.generate")
@pytest.mark.parametrize("kind", ["vectors", "codes"])
def test_writing_agrees_with_reading(kind):
    """Greedily written images are those that the model, reading them at once, would have written."""
    model, x = model_of(kind)
    given = model.sequence(x)[:, :2]
    for prefix, count in ((None, 2), (given, 3)):
        images = model.generate(count, prefix, temperature=0.0)
        assert images.shape == (count, *x.shape[1:])
        found, written = np.asarray(model(images).detach()), np.asarray(model.sequence(images))
        start = 0 if prefix is None else 2
        guesses = found.argmax(-1) if kind == "codes" else found
        np.testing.assert_allclose(guesses[:, start:], written[:, start:], atol=1e-10)
        if prefix is not None:
            np.testing.assert_array_equal(written[:, :2], prefix)
    key = wl.random.key(3)
    draws = [model.generate(2, temperature=1.0, key=key) for _ in range(2)]
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("kind", ["vectors", "codes"])
def test_promises(kind, tmp_path):
    model, x = model_of(kind)
    e, layers = 8, 2
    n, f = (24, 5) if kind == "codes" else (6, 8)
    inside = n * e + layers * (12 * e**2 + 13 * e) + 2 * e + (e + 1) * f
    assert model.num_parameters() == f * e + e + inside + (0 if kind == "codes" else e)
    same_when_compiled(model, x)
    survives_saving(lambda seed: model_of(kind, seed)[0], tmp_path, x)
    first, last = learns(model, lambda m, x: m.loss(x), x, steps=60, lr=1e-2)
    assert last < 0.5 * first


def test_errors():
    with pytest.raises(InputError, match="order='spiral'"):
        wl.models.patch_order(2, 2, "spiral")
    with pytest.raises(InputError, match="one code for each token"):
        wl.models.ImageGPT((4, 4), patch=2, levels=5)
    with pytest.raises(ShapeError, match="do not divide"):
        wl.models.ImageGPT((5, 4), patch=2)
    with pytest.raises(DTypeError, match="integers below 5"):
        model_of("codes")[0](numbers(1, 4, 6))
    with pytest.raises(ShapeError, match=r"\(batch, 4, 6, 2\)"):
        model_of("vectors")[0](numbers(1, 4, 4, 2))
    with pytest.raises(ShapeError, match="given tokens"):
        model_of("codes")[0].generate(2, wl.zeros((2, 24), dtype=wl.int64))
