"""Markov chains against counting by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError, SizeError


def drawn(rng, size, count=40, longest=12):
    return [rng.integers(0, size, rng.integers(0, longest)).tolist() for _ in range(count)]


def by_hand(rows, order):
    """How often each token follows each context; contexts at the beginning are shorter."""
    return Counter((tuple(row[max(0, i - order) : i]), row[i]) for row in rows for i in range(len(row)))


@pytest.mark.book("A5-25", name="wl.models.MarkovChain")
@pytest.mark.parametrize("order, size", [(0, 3), (1, 2), (2, 3), (4, 2)])
def test_the_likeliest_chain_has_the_counts_normalised(order, size):
    rows = drawn(np.random.default_rng(order), size)
    chain = wl.models.MarkovChain(order, size).fit(rows)
    counts = by_hand(rows, order)
    for context in {context for context, _ in counts}:
        n = np.array([counts[context, token] for token in range(size)])
        np.testing.assert_allclose(chain.probabilities(context), n / n.sum(), rtol=1e-6)
    # the maximum: no other table of the same contexts makes the sequences more likely
    padded, lengths = np.zeros((len(rows), 12), np.int64), [len(row) for row in rows]
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = row
    best = float(chain.log_prob(padded, lengths).sum())
    other = wl.models.MarkovChain(order, size, smoothing=200.0).fit(rows)
    assert best > 0.01 + float(other.log_prob(padded, lengths).sum())


@pytest.mark.book("A5-25", name="wl.models.MarkovChain")
def test_a_binary_chain_has_a_parameter_for_each_context():
    for order in range(5):
        chain = wl.models.MarkovChain(order, 2)
        assert chain.num_free() == 2**order
        assert chain.counts.shape == (2 ** (order + 1) - 1, 2)  # with the contexts of the beginning
    assert wl.models.MarkovChain(2, 5).num_free() == 25 * 4


@pytest.mark.book("A5-25", name="wl.models.MarkovChain")
def test_the_same_distribution_at_all_times_and_others_at_the_beginning():
    rows = [[0, 1, 1, 0, 1, 1, 0, 1, 1], [1, 1, 0, 1, 1, 0]]
    chain = wl.models.MarkovChain(2, 2).fit(rows)
    long = chain.probabilities([0, 0, 1, 0, 1, 1, 1, 0, 1])
    np.testing.assert_array_equal(long, chain.probabilities([0, 1]))  # the last two count, wherever they are
    np.testing.assert_allclose(chain.probabilities(), [0.5, 0.5])  # one begins with 0, one with 1
    np.testing.assert_allclose(chain.probabilities([1]), [0.0, 1.0])  # a 1 at the very beginning
    total = sum(np.log(float(chain.probabilities(rows[0][:i])[rows[0][i]])) for i in range(9))
    assert float(chain.log_prob(np.array(rows[:1]))[0]) == pytest.approx(total, rel=1e-5)


def test_smoothing_and_contexts_that_were_never_seen():
    rows = [[0, 1, 2]]
    plain, smooth = (wl.models.MarkovChain(1, 4, smoothing=a).fit(rows) for a in (0.0, 0.5))
    np.testing.assert_allclose(plain.probabilities([3]), [0.25] * 4)
    np.testing.assert_allclose(smooth.probabilities([0]), np.array([0.5, 1.5, 0.5, 0.5]) / 3)
    assert float(plain.log_prob(np.array([[1, 1]]))[0]) == -np.inf
    assert np.isfinite(smooth.log_prob(np.array([[1, 1]])).numpy()).all()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("order", [0, 1, 3])
def test_it_reads_on_and_does_not_see_padding(order, compiled):
    rng = np.random.default_rng(0)
    chain = wl.models.MarkovChain(order, 3, smoothing=0.3).fit(drawn(rng, 3))
    tokens = rng.integers(0, 3, (3, 8))
    wl.nn.assert_reads_on(chain, tokens, compiled=compiled)
    wl.nn.assert_padding_ignored(chain, tokens, compiled=compiled)
    wl.nn.assert_cache_reorders(chain, tokens, compiled=compiled)


def test_generation_writes_with_it():
    chain = wl.models.MarkovChain(1, 3).fit([[0, 1, 2, 0, 1, 2, 0, 1]])
    np.testing.assert_array_equal(wl.generation.greedy(chain, [0], 5), [0, 1, 2, 0, 1, 2])
    best = wl.generation.beam_search(chain, [1], 3, beams=2)[0]
    np.testing.assert_array_equal(best.tokens, [1, 2, 0, 1])
    smooth = wl.models.MarkovChain(2, 3, smoothing=1.0).fit([[0, 1, 2, 0, 1, 2, 0, 1]])
    tokens = np.array([[0, 1, 1, 2]])
    whole = float(smooth.log_prob(tokens)[0])
    after_first = float(wl.generation.sequence_log_prob(smooth, tokens)[0])
    first = float(np.log(smooth.probabilities().numpy()[0]))
    assert whole == pytest.approx(first + after_first, rel=1e-5)


def test_draws_have_the_shares_of_the_chain():
    truth = wl.models.MarkovChain(1, 2).fit([[0] * 3 + [1] + [0] * 2, [1, 0, 0, 1, 1, 1]])
    drawn = truth.sample(30, rows=400, key=wl.random.key(3))
    again = wl.models.MarkovChain(1, 2).fit(drawn)
    np.testing.assert_allclose(again.probabilities([0]), truth.probabilities([0]), atol=0.02)
    np.testing.assert_allclose(again.probabilities([1]), truth.probabilities([1]), atol=0.02)
    assert drawn.shape == (400, 30)
    np.testing.assert_array_equal(drawn, truth.sample(30, rows=400, key=wl.random.key(3)))


def test_counting_more_and_saving():
    rows = drawn(np.random.default_rng(5), 3)
    whole = wl.models.MarkovChain(2, 3).fit(rows)
    parts = wl.models.MarkovChain(2, 3).fit(rows[:20]).fit(rows[20:], more=True)
    np.testing.assert_array_equal(whole.counts, parts.counts)
    np.testing.assert_array_equal(whole.fit(rows[:3]).counts, wl.models.MarkovChain(2, 3).fit(rows[:3]).counts)
    copy = wl.models.MarkovChain(2, 3)
    copy.load_state_dict(whole.state_dict())
    np.testing.assert_array_equal(copy.counts, whole.counts)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: wl.models.MarkovChain(1, smoothing=-1.0), "smoothing=-1"),
        (lambda: wl.models.MarkovChain(1).probabilities(), "nothing was counted"),
        (lambda: wl.models.MarkovChain(1).fit([]), "no tokens"),
        (lambda: wl.models.MarkovChain(1, 2).fit([[0, 2]]), "outside of 0 to 1"),
        (lambda: wl.models.MarkovChain(1, 2).fit([[0.5]]), "float"),
        (lambda: wl.models.MarkovChain(1, 2)(np.array([[0, 2]])), "from 0 to 1"),
        (lambda: wl.models.MarkovChain(1, 2).fit(np.zeros((2, 3), int), lengths=[4, 1]), "lengths from 1 to 4"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_table_that_can_never_fit():
    with pytest.raises(SizeError, match="a lower order"):
        wl.models.MarkovChain(12, 1000)
