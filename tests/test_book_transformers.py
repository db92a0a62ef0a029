"""Rows of chapters 10 and 11, and of the slides, that concern models as a whole."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wonderland as wl
from benchmarks.sequences import WAYS, attention_work, layer_timings, picture, timings
from wonderland import nn

F = nn.functional


def fitted(model: nn.Module, x: np.ndarray, y: np.ndarray, steps: int, lr: float = 1e-2) -> list[float]:
    """The losses of a language model on one batch."""
    optimizer = wl.optim.Adam(model, lr=lr)

    @wl.jit
    def step(model, optimizer, x, y):
        def loss_of(model, x, y):
            logits = model(x)
            return F.cross_entropy(wl.reshape(logits, (-1, logits.shape[-1])), wl.reshape(y, (-1,)))

        loss, grads = wl.value_and_grad(loss_of)(model, x, y)
        optimizer.step(grads)
        return loss

    return [float(step(model, optimizer, x, y)) for _ in range(steps)]


def text(rows: int = 8, time: int = 16, vocabulary: int = 20) -> tuple[np.ndarray, np.ndarray]:
    ids = np.random.default_rng(0).integers(vocabulary, size=(rows, time + 1))
    return ids[:, :-1], ids[:, 1:]


@pytest.mark.book("10.02", name="wl.models.GPT")
def test_wider_models_have_a_lower_loss() -> None:
    x, y = text()
    losses = []
    for width in (2, 8, 32):
        model = wl.models.GPT(20, 16, width, 1, 1, key=wl.random.key(0))
        losses.append(fitted(model, x, y, 60)[-1])
    assert losses[0] > losses[1] > losses[2]


@pytest.mark.book("11.37", name="wl.models.GPT")
def test_a_gpt_starts_from_ignorance_and_learns_a_short_text() -> None:
    model = wl.models.GPT(vocabulary=20, context=16, embed_dim=32, num_heads=4, depth=2, key=wl.random.key(0))
    e, layers = 32, 2
    assert model.num_parameters() == (20 + 16) * e + layers * (12 * e * e + 13 * e) + 2 * e
    x, y = text(4)
    losses = fitted(model, x, y, 150)
    assert losses[0] == pytest.approx(math.log(20), abs=0.1)
    assert losses[-1] < 0.35  # the first token of a row has several continuations
    assert (np.asarray(wl.argmax(model.eval()(x), axis=-1))[:, 4:] == y[:, 4:]).mean() > 0.98


@pytest.mark.book("11.38", name="wl.models.Llama")
@pytest.mark.parametrize("tied", [False, True])
def test_a_llama_has_so_many_parameters(tied: bool) -> None:
    v, e, heads, kv, p, layers = 50, 32, 4, 2, 48, 3
    model = wl.models.Llama(v, e, heads, layers, kv_heads=kv, hidden=p, tied=tied)
    d = e // heads
    expected = (1 if tied else 2) * v * e + layers * (2 * e * d * (heads + kv) + 3 * e * p + 2 * e) + e
    assert model.num_parameters() == expected
    assert model(wl.zeros((2, 9), dtype=wl.int64)).shape == (2, 9, v)
    assert isinstance(model.stack.blocks[0].feed_forward, nn.GatedFeedForward)


@pytest.mark.book("11.26", "11.33", name=["benchmarks/sequences.py", "wl.count"])
def test_work_bytes_and_seconds_of_attention() -> None:
    rows = timings((32, 64), rounds=1)
    assert {(row.way, row.n) for row in rows} == {(way, n) for way in WAYS for n in (32, 64)}
    for row in rows:
        assert row.seconds > 0
        assert row.gflops == pytest.approx(2e-9 * row.multiply_adds / row.seconds)
    naive, tiles, linear = ([attention_work(way, n) for n in (64, 128)] for way in WAYS)
    for way in (naive, tiles):  # the work is quadratic
        assert way[1].multiply_adds / way[0].multiply_adds == pytest.approx(4, rel=0.1)
    assert linear[1].multiply_adds / linear[0].multiply_adds == pytest.approx(2, rel=0.1)
    assert naive[1].bytes / naive[0].bytes > 3  # but what is kept is so only if the scores are
    assert tiles[1].bytes / tiles[0].bytes == pytest.approx(2, rel=0.1)
    svg = picture(rows)
    assert svg.startswith("<svg")
    assert all(way in svg for way in WAYS)


@pytest.mark.book("A5-43b", name=["benchmarks/sequences.py", "wl.nn.complexity"])
def test_recurrence_waits_for_every_step_and_attention_does_not() -> None:
    found = layer_timings((8, 16), rounds=1)
    assert set(found) == {(name, n) for name in ("LSTM", "self-attention") for n in (8, 16)}
    assert min(found.values()) > 0
    for n in (8, 16):
        assert nn.complexity("recurrent", n, 32).sequential == n
        assert nn.complexity("self-attention", n, 32).sequential == 1


@pytest.mark.book("S-09", name=["wl.nn.Module", "wl.data.TensorDataset", "wl.data.DataLoader"])
def test_modules_and_datasets_have_the_shape_that_people_know() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.first = nn.Linear(3, 4)
            self.second = nn.Linear(4, 2)

        def forward(self, x):
            return self.second(wl.relu(self.first(x)))

    class Squares(wl.data.Dataset):
        def __len__(self) -> int:
            return 5

        def __getitem__(self, i):
            return np.full(3, i, np.float32), np.int64(i % 2)

    net = Net()
    assert sorted(net.state_dict()) == ["first.bias", "first.weight", "second.bias", "second.weight"]
    batches = list(wl.data.DataLoader(Squares(), batch_size=2))
    assert [len(y) for _, y in batches] == [2, 2, 1]
    assert net(batches[0][0]).shape == (2, 2)


@pytest.mark.book("S-11", name=["wl.nn.functional.mse_loss", "wl.nn.functional.cross_entropy"])
def test_the_default_losses() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 6, 3))
    assert float(F.mse_loss(x, y)) == pytest.approx(((x - y) ** 2).mean())
    a = rng.dirichlet(np.ones(3), 6)
    b = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    assert float(F.cross_entropy(x, a)) == pytest.approx(-(a * np.log(b)).sum(axis=1).mean())  # of distributions
    classes = rng.integers(3, size=6)
    assert float(F.cross_entropy(x, classes)) == pytest.approx(-np.log(b[np.arange(6), classes]).mean())
