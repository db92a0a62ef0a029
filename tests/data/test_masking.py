"""Self-supervision by hiding: what is hidden, how much, and that nothing else counts."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import data, nn
from wonderland.errors import InputError, ShapeError

F = nn.functional
RNG = np.random.default_rng(0)


@pytest.mark.book("B3-06", "A8-16", name="wl.data.MaskedTokens")
def test_the_cloze_hides_tokens_and_asks_for_them():
    tokens = RNG.integers(5, 50, size=(30, 20))
    tokens[:, 0] = 2  # a special token
    dataset = data.MaskedTokens(tokens, mask_id=1, p=0.15, special=[2])
    for row, (visible, targets) in zip(tokens, dataset, strict=True):
        hidden = targets != -100
        assert hidden.sum() == 3
        assert not hidden[0]
        assert (visible[hidden] == 1).all()
        np.testing.assert_array_equal(targets[hidden], row[hidden])
        np.testing.assert_array_equal(visible[~hidden], row[~hidden])
    loader = data.DataLoader(dataset, 30)
    first, second = (next(iter(loader))[1].numpy() for _ in range(2))
    assert not np.array_equal(first, second)  # other places in every epoch
    workers = data.DataLoader(dataset, 30, num_workers=1)
    np.testing.assert_array_equal(next(iter(workers))[1], first)


def test_some_hidden_tokens_are_random_or_stay():
    tokens = np.full((200, 50), 7)
    dataset = data.MaskedTokens(tokens, mask_id=0, p=0.4, vocabulary_size=1000, random_share=0.1, keep_share=0.1)
    visible, targets = next(iter(data.DataLoader(dataset, 200)))
    hidden = targets.numpy() != -100
    assert hidden.mean() == pytest.approx(0.4)
    seen = visible.numpy()[hidden]
    assert (seen == 0).mean() == pytest.approx(0.8, abs=0.02)
    assert (seen == 7).mean() == pytest.approx(0.1, abs=0.02)
    assert (visible.numpy()[~hidden] == 7).all()
    ragged = data.MaskedTokens([np.arange(3), np.arange(9)], mask_id=-1)
    inputs, goals = next(iter(data.DataLoader(ragged, 2, pad_value=(0, -100))))
    assert inputs.values.shape == goals.values.shape == (2, 9)
    assert (goals.values.numpy()[0, 3:] == -100).all()


@pytest.mark.book("A8-16", name=("wl.data.MaskedPatches", "wl.data.MaskedCells", "wl.data.MaskedNodes"))
def test_patches_cells_and_nodes():
    images = RNG.random((5, 8, 12, 3)) + 1
    for image, (visible, (target, mask)) in zip(images, data.MaskedPatches(images, 4, p=0.5), strict=True):
        np.testing.assert_array_equal(target, image)
        np.testing.assert_array_equal(visible, np.where(mask, 0, image))
        blocks = mask.reshape(2, 4, 3, 4, 3).transpose(0, 2, 1, 3, 4).reshape(6, -1)
        assert sorted(blocks.mean(axis=1)) == [0, 0, 0, 1, 1, 1]
    table = RNG.random((6, 10)).astype(np.float32)
    table[0, :4] = np.nan
    for row, (visible, (target, mask)) in zip(table, data.MaskedCells(table, p=0.3, fill=-1), strict=True):
        assert mask.sum() == (2 if np.isnan(row).any() else 3)
        assert not np.isnan(row[mask]).any()
        assert not np.isnan(visible).any()
        assert (visible[mask] == -1).all()
        np.testing.assert_array_equal(target[mask], row[mask])
    graphs = [RNG.random((n, 2)) for n in (4, 8)]
    for graph, (visible, (_, mask)) in zip(graphs, data.MaskedNodes(graphs, p=0.25), strict=True):
        assert mask.all(axis=1).sum() == mask.any(axis=1).sum() == len(graph) // 4
        assert (visible[mask] == 0).all()


@pytest.mark.book("A8-16", "3.11", name=("wl.data.masked_loss", "wl.nn.functional.cross_entropy"))
def test_only_what_was_hidden_counts():
    loss = data.masked_loss(F.mse_loss)
    predictions, target = wl.tensor(RNG.normal(size=(4, 6))), RNG.normal(size=(4, 6))
    mask = RNG.random((4, 6)) < 0.4
    other = np.where(mask, target, np.nan)
    value = loss(predictions, (wl.tensor(target), wl.tensor(mask)))
    expected = np.mean((predictions.numpy() - target)[mask] ** 2)
    for call in (loss, wl.jit(loss)):
        for goal in (target, other):
            np.testing.assert_allclose(call(predictions, (wl.tensor(goal), wl.tensor(mask))), expected, rtol=1e-12)
    gradient = wl.grad(loss)(predictions, (wl.tensor(other), wl.tensor(mask))).numpy()
    assert (gradient[~mask] == 0).all()
    assert (gradient[mask] != 0).all()
    np.testing.assert_allclose(gradient[mask], 2 * (predictions.numpy() - target)[mask] / mask.sum(), rtol=1e-12)
    assert value.dtype == wl.float64
    nothing = loss(predictions, (wl.tensor(target), wl.zeros((4, 6), dtype=bool)))
    assert nothing.item() == 0.0
    # labels that are missing (-100): the examples without one have no gradient
    logits, labels = wl.tensor(RNG.normal(size=(5, 3))), np.array([0, -100, 2, -100, 1])
    gradient = wl.grad(F.cross_entropy)(logits, wl.tensor(labels)).numpy()
    assert (gradient[[1, 3]] == 0).all()
    assert (gradient[[0, 2, 4]] != 0).all()


def test_refusals():
    for p in (0.0, 1.5):
        with pytest.raises(InputError, match="no share of places"):
            data.MaskedCells(np.ones((2, 2)), p)
    with pytest.raises(InputError, match="there is no data"):
        data.MaskedNodes([])
    with pytest.raises(InputError, match="vocabulary_size"):
        data.MaskedTokens([[1]], 0, random_share=0.1)
    with pytest.raises(InputError, match="are no shares"):
        data.MaskedTokens([[1]], 0, keep_share=0.6, random_share=0.6)
    with pytest.raises(InputError, match="tokens of example 0 are float"):
        data.MaskedTokens([[1.0]], 0)[0]
    with pytest.raises(ShapeError, match="no patches of 3 by 3"):
        data.MaskedPatches(np.ones((1, 4, 4, 1)), 3)[0]
    with pytest.raises(ShapeError, match="a mask for every target"):
        data.masked_loss(F.mse_loss)(wl.ones(3), (wl.ones(3), wl.ones(2, dtype=bool)))
