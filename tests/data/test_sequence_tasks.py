"""Sequences to sequences: the tasks, their splits, and batches of pairs."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import data
from wonderland.errors import InputError

DIGITS = {
    data.make_copy_task: lambda text: text,
    data.make_reverse_task: lambda text: text[::-1],
    data.make_sort_task: lambda text: "".join(sorted(text)),
}


def texts(pairs):
    return [tuple(map(pairs.decode, example)) for example in pairs]


@pytest.mark.parametrize("make", DIGITS, ids=lambda f: f.__name__)
def test_answers(make):
    pairs = make(200, (1, 20), seed=3)
    assert len(pairs) == 200
    for (source, target), (x, y) in zip(texts(pairs), pairs, strict=True):
        assert target == DIGITS[make](source)
        assert len(x) == len(source) == len(y) - 1
        assert y[-1] == pairs.eos
        assert x.dtype == y.dtype == np.int64
        assert x.min() >= 3
    assert {len(source) for source, _ in texts(pairs)} == set(range(1, 21))
    assert texts(make(50, 4, seed=1)) == texts(make(50, 4, seed=1)) != texts(make(50, 4, seed=2))
    assert {len(source) for source, _ in texts(make(50, 4))} == {4}
    assert set("".join(source for source, _ in texts(make(50, 9, digits=2)))) == {"0", "1"}
    assert pairs.vocab_size == 13


def test_sums():
    pairs = data.make_addition_task(300, seed=1)
    assert pairs.vocab_size == 14
    for source, target in texts(pairs):
        assert (len(source), len(target)) == (7, 4)
        assert eval("+".join(term.lstrip("0") or "0" for term in source.split("+"))) == int(target)
    plain = data.make_addition_task(300, 2, zero_fill=False, reverse=True, seed=1)
    for source, target in texts(plain):
        a, b = source.split("+")
        assert str(int(a)) == a
        assert target[::-1] == str(int(a) + int(b))
    assert len({len(source) for source, _ in texts(plain)}) > 1


@pytest.mark.parametrize("make", [*DIGITS, data.make_addition_task], ids=lambda f: f.__name__)
def test_splits_have_nothing_in_common(make):
    size = 1 if make is data.make_addition_task else 2  # so few that the same ones come again
    parts = {part: {source for source, _ in texts(make(1000, size, split=part))} for part in ("train", "test", None)}
    train, test, everything = parts["train"], parts["test"], parts[None]
    assert len(everything) == 100
    if make is data.make_addition_task:
        train = {frozenset(source.split("+")) for source in train}
        test = {frozenset(source.split("+")) for source in test}
    else:
        assert train | test == everything
        assert 3 <= len(test) <= 20
    assert train
    assert test
    assert not train & test


@pytest.mark.book("A5-01", name=("wl.data.PadCollate", "wl.data.BucketBatchSampler", "wl.data.DataLoader"))
def test_padding_changes_nothing_that_is_real():
    """Pairs of different lengths, padded together: losses, slopes and outputs are those of each pair alone."""
    pairs = data.make_sort_task(32, (1, 12), seed=5)
    lengths = [len(target) for _, target in pairs]
    table = wl.random.normal((pairs.vocab_size, pairs.vocab_size), key=wl.random.key(0), dtype=wl.float64)
    causal = lambda x: wl.cumulative_sum(table[x], axis=1)  # step t sees all steps up to t
    loss = wl.nn.functional.cross_entropy

    def scores(target):
        return causal(wl.series.shift_right(target, pairs.bos))

    alone = [loss(scores(y[None]), y[None], reduction="sum").item() for _, y in pairs]
    sampler = data.BucketBatchSampler(lengths, 8, pool=2)
    padded = 0
    for value in (pairs.pad, 7):  # whatever the padding is
        total = 0.0
        for source, target in data.DataLoader(pairs, batch_sampler=sampler, pad_value=(value, value)):
            assert source.values.shape[0] == target.values.shape[0] == 8
            np.testing.assert_array_equal(source.lengths + 1, target.lengths)  # an end token
            padded += int((~target.mask).sum())
            out = scores(target.values)
            for row in range(8):
                n = int(target.lengths[row])
                np.testing.assert_allclose(out[row, :n], scores(target.values[row : row + 1, :n])[0], rtol=1e-12)
            wanted = wl.where(target.mask, target.values, -100)
            total += loss(out, wanted, reduction="sum").item()
            slope = wl.grad(lambda z, y=wanted: loss(z, y))(out)
            assert not slope.numpy()[~target.mask.numpy()].any()
        assert total == pytest.approx(sum(alone), rel=1e-9)
    assert padded  # there was some
    # lengths that are alike come together, so less is padded than in any order
    plain = sum(int((~t.mask).sum()) for _, t in data.DataLoader(pairs, batch_size=8, pad_value=0))
    bucketed = sum(
        int((~t.mask).sum())
        for _, t in data.DataLoader(pairs, batch_sampler=data.BucketBatchSampler(lengths, 8), pad_value=0)
    )
    assert bucketed < plain


@pytest.mark.book("A5-01", name=("wl.nn.functional.unfold", "wl.data.PadCollate"))
def test_other_data_as_sequences():
    images = wl.random.normal((2, 8, 8, 3), key=wl.random.key(0))
    tokens = wl.nn.functional.unfold(images, 4, stride=4).reshape((2, 4, 48))  # patches in reading order
    np.testing.assert_array_equal(tokens[0, 1].reshape((4, 4, 3)), images[0, :4, 4:])
    sizes = [(8, 8), (4, 8), (4, 4)]  # images of several sizes: sequences of several lengths
    patches = [wl.nn.functional.unfold(wl.ones((*s, 1)), 4, stride=4).reshape((-1, 16)).numpy() for s in sizes]
    batch = data.PadCollate(0.0)(patches)
    assert batch.values.shape == (3, 4, 16)
    assert batch.lengths.tolist() == [4, 2, 1]
    assert batch.mask.sum() == 7


def test_a_pair_for_a_decoder():
    pairs = data.make_reverse_task(10, (2, 6))
    for source, target in data.DataLoader(pairs, batch_size=5, pad_value=(pairs.pad, pairs.pad)):
        fed = wl.series.shift_right(target.values, start=pairs.bos).numpy()
        assert (fed[:, 0] == pairs.bos).all()
        np.testing.assert_array_equal(fed[:, 1:], target.values.numpy()[:, :-1])
        for row, n in enumerate(source.lengths.tolist()):
            answer = source.values.numpy()[row, :n][::-1]
            np.testing.assert_array_equal(target.values.numpy()[row, : n + 1], [*answer, pairs.eos])


def test_texts_and_tokens():
    pairs = data.make_addition_task(5)
    assert pairs.decode(pairs.encode("12+7")) == "12+7"
    assert pairs.decode([1, 4, 5, 2, 0, 0]) == "12"
    with pytest.raises(InputError, match="no symbol 'x'"):
        pairs.encode("1x")


def test_bad_input():
    with pytest.raises(InputError, match="split='validation'"):
        data.make_copy_task(3, split="validation")
    with pytest.raises(InputError, match="n_samples=0"):
        data.make_copy_task(0)
    with pytest.raises(InputError, match="digits=11"):
        data.make_sort_task(3, digits=11)
    with pytest.raises(InputError, match="a rising pair"):
        data.make_sort_task(3, (5, 2))
    with pytest.raises(InputError, match="the least and the largest"):
        data.make_sort_task(3, (5, 2, 1))
    with pytest.raises(InputError, match="no problem of this size"):
        data.make_copy_task(3, 1, digits=1, split="test")
    with pytest.raises(InputError, match="digits=19"):
        data.make_addition_task(3, 19)
