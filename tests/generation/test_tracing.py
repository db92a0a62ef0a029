"""Generation as a chain of steps: their probabilities, where they end, and how often they happen."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError, NonFiniteError, ShapeError
from wonderland.generation import generate, greedy, sequence_log_prob, trace

EOS, V = 0, 3
RNG = np.random.default_rng(4)
LOG_P = np.log(RNG.dirichlet(np.ones(V), size=(V, V)))  # of the next token given the last two


def model(tokens):
    x = np.asarray(tokens)
    before = np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], axis=1)
    return wl.asarray(LOG_P[before, x])


def finished(length):
    """All sequences of a length that end with the first EOS."""
    return [(*path, EOS) for path in itertools.product(range(1, V), repeat=length - 1)]


@pytest.mark.book("A5-23", name="wl.generation.sequence_log_prob")
@pytest.mark.parametrize("longest", [1, 2, 5])
def test_all_that_ended_and_all_that_goes_on_sum_to_one(longest):
    ended = [path for n in range(1, longest + 1) for path in finished(n)]
    mass = sum(math.exp(float(sequence_log_prob(model, [path], bos=EOS)[0])) for path in ended)
    going_on = np.array(list(itertools.product(range(1, V), repeat=longest)))
    rest = np.exp(sequence_log_prob(model, going_on, bos=EOS).numpy()).sum()
    assert 0 < mass < 1
    assert mass + rest == pytest.approx(1, rel=1e-12)


@pytest.mark.book("A5-24", name=("wl.generation.generate", "wl.generation.greedy"))
def test_ancestral_sampling_until_the_end():
    n, longest = 4000, 4
    drawn = generate(model, [[EOS]] * n, longest, stop_tokens=EOS, key=wl.random.key(0))
    counts: dict[tuple[int, ...], int] = {}
    for row in drawn:
        path = tuple(row[1:].tolist())
        counts[path] = counts.get(path, 0) + 1
        # it ends at the first EOS, or when there is no room
        assert path.index(EOS) == len(path) - 1 if EOS in path else len(path) == longest
    everything = [path for k in range(1, longest + 1) for path in finished(k)]
    everything += list(itertools.product(range(1, V), repeat=longest))
    assert set(counts) <= set(everything)
    for path in everything:
        p = math.exp(float(sequence_log_prob(model, [path], bos=EOS)[0]))
        assert abs(counts.get(path, 0) / n - p) < 5 * math.sqrt(p * (1 - p) / n) + 1e-9
    cold = generate(model, [EOS], longest, temperature=1e-4, stop_tokens=EOS, key=wl.random.key(1))
    np.testing.assert_array_equal(cold, greedy(model, [EOS], longest, stop_tokens=EOS))


@pytest.mark.book("A5-24b", name="wl.generation.trace")
def test_the_dog_ate_the_cake():
    words = ["<s>", "the", "dog", "ate", "cake"]
    follows = np.log(RNG.dirichlet(np.ones(5), size=5))
    bigram = lambda tokens: wl.asarray(follows[np.asarray(tokens)])
    sentence = [1, 2, 3, 1, 4]
    chain = trace(bigram, sentence, bos=0, name_of=words.__getitem__)
    assert [step.token for step in chain.steps] == sentence
    expected = [math.exp(follows[a, b]) for a, b in itertools.pairwise([0, *sentence])]
    np.testing.assert_allclose([step.probability for step in chain.steps], expected, rtol=1e-12)
    log_prob = float(sequence_log_prob(bigram, [sentence], bos=0)[0])
    assert math.prod(step.probability for step in chain.steps) == pytest.approx(math.exp(log_prob), rel=1e-12)
    assert chain.log_prob == pytest.approx(log_prob, rel=1e-12)
    # what is printed is the same to the digits that are printed
    *lines, last = str(chain).splitlines()
    assert [line.split(" = ")[0] for line in lines] == [
        "p(the)",
        "p(dog | the)",
        "p(ate | the dog)",
        "p(the | the dog ate)",
        "p(cake | the dog ate the)",
    ]
    printed = math.prod(float(line.split(" = ")[1]) for line in lines)
    assert printed == pytest.approx(math.exp(log_prob), rel=5e-3)
    assert float(last.split()[1].rstrip(",")) == pytest.approx(printed, rel=5e-3)


def test_a_trace_of_what_was_generated():
    prompt = [1, 2]
    tokens = generate(model, prompt, 6, key=wl.random.key(0))
    chain = trace(model, tokens, start=len(prompt), top=V)
    assert [step.place for step in chain.steps] == list(range(2, 8))
    mask = np.arange(8) >= 2
    assert chain.log_prob == pytest.approx(float(sequence_log_prob(model, tokens[None], mask[None])[0]), rel=1e-12)
    for step in chain.steps:
        assert sum(p for _, p in step.likeliest) == pytest.approx(1)
        assert dict(step.likeliest)[step.token] == step.probability
        assert [p for _, p in step.likeliest] == sorted((p for _, p in step.likeliest), reverse=True)
    best = trace(model, greedy(model, prompt, 6), start=2, top=1)
    assert all(step.likeliest[0][0] == step.token for step in best.steps)
    assert len(trace(model, [1])) == 0  # nothing predicts a first token without bos


def test_bad_input():
    with pytest.raises(ShapeError, match=r"one sequence of integers"):
        trace(model, [[1, 2]])
    with pytest.raises(ShapeError, match=r"tokens float"):
        trace(model, [0.5])
    with pytest.raises(InputError, match="the token -1"):
        trace(model, [1, -1])
    with pytest.raises(InputError, match="start=0 is too small"):
        trace(model, [1, 2], start=0)
    with pytest.raises(InputError, match="has the token 3"):
        trace(lambda x: wl.zeros((*x.shape, V)), [1, 3])
    with pytest.raises(NonFiniteError, match="NaN"):
        trace(lambda x: wl.full((*x.shape, V), float("nan")), [1, 2])
