"""Integers, coins, categories, counts, orders: chi-square tests and exact properties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import wonderland as wl
from wonderland.random.words import draw_words

N = 20_000


def fits(sample, law) -> float:
    """The p-value of a chi-square test against SciPy's law, with bins of at least 10 expected counts."""
    sample = np.asarray(sample).astype(np.int64)
    low, high = int(law.ppf(1e-4)), int(law.ppf(1 - 1e-4))
    edges = np.unique(np.linspace(low, high, min(high - low + 1, 60)).astype(np.int64))
    cdf = np.concatenate([[0], law.cdf(edges), [1]])
    observed = np.histogram(sample, np.concatenate([[-np.inf], edges + 0.5, [np.inf]]))[0]
    expected = np.diff(cdf) * sample.size
    # merge bins from the left until each is large enough
    groups, total = [], 0.0
    start = 0
    for i, e in enumerate(expected):
        total += e
        if total >= 10:
            groups.append((start, i + 1))
            start, total = i + 1, 0.0
    groups[-1] = (groups[-1][0], len(expected))
    o = [observed[a:b].sum() for a, b in groups]
    e = [expected[a:b].sum() for a, b in groups]
    return float(stats.chisquare(o, np.array(e) / np.sum(e) * np.sum(o)).pvalue)


# --- integers


@pytest.mark.parametrize("low, high", [(0, 6), (-5, 5), (0, 1), (10**12, 10**12 + 7)])
def test_randint_is_uniform(low, high):
    x = wl.random.randint((N,), low, high, key=wl.random.key(0)).numpy()
    assert x.dtype == np.int64
    counts = np.bincount(x - low, minlength=high - low)
    assert len(counts) == high - low
    assert high - low == 1 or stats.chisquare(counts).pvalue > 1e-3


def reference_randint(words: list[int], low: int, high: int) -> int:
    """floor(n * 0.w w w ...) with Python's integers; the first word is the last digit."""
    w = sum(word << 32 * i for i, word in enumerate(words))
    return low + (w * (high - low) >> 32 * len(words))


@given(st.data(), st.integers(0, 2**32))
def test_randint_is_the_exact_product(data, seed):
    dtype = data.draw(st.sampled_from([wl.int8, wl.uint8, wl.int16, wl.int32, wl.uint32, wl.int64, wl.uint64]))
    info = np.iinfo(dtype)
    low = data.draw(st.integers(info.min, info.max - 1))
    high = data.draw(st.integers(low + 1, info.max + (1 if info.max - low < 2**64 - 1 else 0)))
    key = wl.random.key(seed)
    words = [w.item() for w in draw_words(key, (), 3)]
    x = wl.random.randint((), low, high, key=key, dtype=dtype)
    assert x.dtype == dtype
    assert int(x.numpy()) == reference_randint(words, low, high)


def test_randint_of_wide_ranges_and_of_tensors():
    x = wl.random.randint((N,), -(2**62), 2**62, key=wl.random.key(1)).numpy() / 2.0**63
    assert stats.kstest(x, stats.uniform(-0.5, 1).cdf).pvalue > 1e-3
    low, high = wl.tensor([0, 100]), wl.tensor([[200], [1000]])
    x = wl.random.randint((N, 2, 2), low, high, key=wl.random.key(2)).numpy()[:, 1]
    assert x[:, 0].min() == 0
    assert x[:, 1].min() == 100
    assert x.max() == 999
    assert wl.random.randint((5,), 1).tolist() == [0] * 5


# --- coins and signs


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.99, 1.0])
def test_bernoulli(p):
    x = wl.random.bernoulli((N,), p, key=wl.random.key(0))
    assert x.dtype == wl.bool
    assert abs(x.numpy().mean() - p) <= 5 * (p * (1 - p) / N) ** 0.5
    numbers = wl.random.bernoulli((N,), p, key=wl.random.key(0), dtype=wl.float32)
    assert (numbers.numpy() == x.numpy()).all()


@pytest.mark.book("A2-11", name="wl.random.bernoulli")
def test_a_stochastic_binary_neuron():
    s = wl.linspace(-3.0, 3.0, 7)
    p = wl.sigmoid(s)
    fired = wl.vmap(lambda k: wl.random.bernoulli(p=p, key=k))(wl.random.split(wl.random.key(0), N))
    assert fired.shape == (N, 7)
    error = fired.numpy().mean(axis=0) - p.numpy()
    assert (abs(error) < 5 * (p * (1 - p)).numpy() ** 0.5 / N**0.5).all()
    again = wl.vmap(lambda k: wl.random.bernoulli(p=p, key=k))(wl.random.split(wl.random.key(0), N))
    assert (again == fired).all()


def test_rademacher():
    x = wl.random.rademacher((N,), key=wl.random.key(0)).numpy()
    assert set(x.tolist()) == {-1.0, 1.0}
    assert abs(x.mean()) < 5 / N**0.5
    assert wl.random.rademacher((3,), dtype=wl.int8).dtype == wl.int8


# --- categories


@pytest.mark.book("1.12", name="wl.random.categorical")
def test_categorical_draws_from_the_softmax():
    logits = wl.tensor([1.0, -1.0, 0.5, -float("inf"), 3.0])
    p = wl.softmax(logits).numpy()
    x = wl.random.categorical(logits, shape=(N,), key=wl.random.key(0)).numpy()
    counts = np.bincount(x, minlength=5)
    assert counts[3] == 0
    keep = p > 0
    assert stats.chisquare(counts[keep], p[keep] / p[keep].sum() * N).pvalue > 1e-3


def test_categorical_axes_and_shapes():
    logits = wl.log(wl.eye(3)[:, [0, 1, 2, 0]])  # column j has its only possible category at (0, 1, 2, 0)[j]
    assert wl.random.categorical(logits, axis=0).tolist() == [0, 1, 2, 0]
    assert wl.random.categorical(logits, axis=0, shape=(5, 2)).shape == (5, 2, 4)
    assert wl.random.categorical(wl.zeros((2, 3, 4)), axis=1).shape == (2, 4)
    assert wl.random.categorical(wl.zeros(3)).shape == ()
    shifted = wl.random.categorical(wl.tensor([1e4, 1e4 + 1]), shape=(N,), key=wl.random.key(0)).numpy()
    assert abs(shifted.mean() - 1 / (1 + np.exp(-1))) < 5 * 0.5 / N**0.5


# --- counts


@pytest.mark.parametrize("rate", [0.0, 0.01, 1.0, 9.99, 10.0, 12.5, 40.0, 1e3, 1e6])
def test_poisson(rate):
    x = wl.random.poisson((N,), rate, key=wl.random.key(0)).numpy()
    assert x.dtype == np.int64
    assert x.min() >= 0
    assert abs(x.mean() - rate) <= 5 * (rate / N) ** 0.5
    if rate:
        assert abs(x.var() / rate - 1) < 5 * ((2 + 1 / rate) / N) ** 0.5
        assert rate < 0.1 or fits(x, stats.poisson(rate)) > 1e-3


def test_poisson_of_a_huge_rate_keeps_its_spread():
    x = wl.random.poisson((N,), 1e12, key=wl.random.key(0)).numpy()
    assert stats.kstest((x - 1e12) / 1e6, stats.norm.cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    "n, p",
    [
        *[(0, 0.5), (1, 0.3), (10, 0.5), (10, 0.97), (20, 0.5), (25, 0.4)],
        *[(1000, 0.001), (1000, 0.5), (1000, 0.985), (10**7, 0.3)],
    ],
)
def test_binomial(n, p):
    x = wl.random.binomial((N,), n, p, key=wl.random.key(0)).numpy()
    assert x.min() >= 0
    assert x.max() <= n
    variance = n * p * (1 - p)
    assert abs(x.mean() - n * p) <= 5 * (variance / N) ** 0.5
    assert n < 2 or fits(x, stats.binom(n, p)) > 1e-3


def test_counts_of_mixed_parameters_equal_those_of_each():
    """Elements by inversion and by rejection in one draw: each column has its own law."""
    rates = wl.tensor([0.5, 5.0, 15.0, 500.0])
    x = wl.random.poisson((N, 4), rates, key=wl.random.key(7)).numpy()
    for column, rate in zip(x.T, rates.tolist(), strict=True):
        assert fits(column, stats.poisson(rate)) > 1e-3
    n, p = wl.tensor([5, 100, 100]), wl.tensor([0.5, 0.02, 0.7])
    x = wl.random.binomial((N, 3), n, p, key=wl.random.key(7)).numpy()
    for column, m, q in zip(x.T, n.tolist(), p.tolist(), strict=True):
        assert fits(column, stats.binom(m, q)) > 1e-3


def test_inversion_ends_for_the_largest_fraction(monkeypatch):
    from wonderland.random import counts

    monkeypatch.setattr(counts, "draw_fraction", lambda key, shape, dtype: wl.full(shape, 1 - 2.0**-53, dtype=dtype))
    rates = np.array([0.0, 1e-9, 0.1, 1.0, 5.0, 9.999])
    k = wl.random.poisson((6,), rates, key=wl.random.key(0)).numpy()
    assert (k == stats.poisson(rates).ppf(1 - 2.0**-46)).all()
    n, p = np.array([1, 3, 50, 10**9, 10**15]), np.array([0.5, 1e-9, 0.1, 1e-9, 1e-15])
    k = wl.random.binomial((5,), n, p, key=wl.random.key(0)).numpy()
    assert (k == stats.binom(n, p).ppf(1 - 2.0**-46)).all()


def test_the_acceptance_of_the_rejection_samplers_is_what_the_comment_says():
    """At least one half, so that 100 rounds leave nothing over."""
    from wonderland.random import counts

    accepted: list[float] = []
    original = counts.first_accepted

    def spy(propose, key, shape, dtype):
        _, ok = propose(*wl.random.split(key))
        accepted.append(float(ok.numpy().mean()))
        return original(propose, key, shape, dtype)

    counts.first_accepted = spy
    try:
        for rate in (10.0, 30.0, 1e3, 1e9):
            wl.random.poisson((2000,), rate, key=wl.random.key(0))
        for n, p in ((20, 0.5), (1000, 0.0101), (10**6, 0.3)):
            wl.random.binomial((2000,), n, p, key=wl.random.key(0))
    finally:
        counts.first_accepted = original
    assert len(accepted) == 7
    assert min(accepted) > 0.5


# --- orders and choices


def test_permutation_holds_every_number_once():
    for n in (0, 1, 2, 1000):
        assert sorted(wl.random.permutation(n, key=wl.random.key(n)).tolist()) == list(range(n))


def test_all_orders_are_equally_likely():
    keys = wl.random.split(wl.random.key(0), 12_000)
    orders = wl.vmap(lambda k: wl.random.permutation(4, key=k))(keys).numpy()
    code = orders @ [1, 10, 100, 1000]
    _, counts = np.unique(code, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-3


def test_permutation_moves_whole_slices():
    x = wl.arange(24).reshape(2, 3, 4)
    for axis in (0, 1, 2, -1):
        y = wl.random.permutation(x, axis=axis, key=wl.random.key(1))
        order = wl.random.permutation(x.shape[axis], key=wl.random.key(1))
        np.testing.assert_array_equal(y.numpy(), np.take(x.numpy(), order.numpy(), axis=axis))
    assert wl.random.shuffle is wl.random.permutation
    epochs = {tuple(wl.random.permutation(20, key=wl.random.fold_in(wl.random.key(0), e)).tolist()) for e in range(5)}
    assert len(epochs) == 5


@pytest.mark.book("1.12", name="wl.random.choice")
def test_choice_with_replacement():
    p = [0.1, 0.0, 0.6, 0.3]
    x = wl.random.choice(4, (N,), p=p, key=wl.random.key(0)).numpy()
    counts = np.bincount(x, minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], N * np.array([0.1, 0.6, 0.3])).pvalue > 1e-3
    uniform = wl.random.choice(4, (N,), key=wl.random.key(0)).numpy()
    assert stats.chisquare(np.bincount(uniform)).pvalue > 1e-3


def test_choice_never_takes_what_has_no_probability_at_the_ends():
    x = wl.random.choice(3, (N,), p=[0.0, 1.0, 0.0], key=wl.random.key(0))
    assert set(x.tolist()) == {1}


def test_choice_without_replacement():
    keys = wl.random.split(wl.random.key(0), N)
    pairs = wl.vmap(lambda k: wl.random.choice(4, (2,), replace=False, key=k))(keys).numpy()
    assert (pairs[:, 0] != pairs[:, 1]).all()
    _, counts = np.unique(pairs @ [1, 10], return_counts=True)
    assert len(counts) == 12
    assert stats.chisquare(counts).pvalue > 1e-3


def test_weighted_choice_without_replacement_is_successive_drawing():
    p = np.array([0.5, 0.3, 0.15, 0.05])
    keys = wl.random.split(wl.random.key(1), N)
    pairs = wl.vmap(lambda k: wl.random.choice(4, (2,), replace=False, p=p, key=k))(keys).numpy()
    observed, expected = [], []
    for i, j in itertools.permutations(range(4), 2):
        observed.append(((pairs[:, 0] == i) & (pairs[:, 1] == j)).sum())
        expected.append(N * p[i] * p[j] / (1 - p[i]))
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_choice_of_slices():
    x = wl.arange(12).reshape(3, 4)
    rows = wl.random.choice(x, (2, 5), key=wl.random.key(0))
    assert rows.shape == (2, 5, 4)
    columns = wl.random.choice(x, (6,), axis=1, key=wl.random.key(0))
    assert columns.shape == (3, 6)
    assert (columns.numpy()[1] == columns.numpy()[0] + 4).all()
    assert wl.random.choice(["a", "b"].__len__(), ()).shape == ()
    one = wl.random.choice(wl.tensor([7.0, 8.0]), key=wl.random.key(0))
    assert one.shape == ()
    assert one.item() in (7.0, 8.0)


@pytest.mark.parametrize("low", [1, 2**64 - 1024, 2**64 - 1])
def test_randint_up_to_the_last_number_of_64_bits(low):
    x = wl.random.randint((100,), low, 2**64, key=wl.random.key(0), dtype=wl.uint64).numpy()
    assert x.dtype == np.uint64
    assert int(x.min()) >= low
