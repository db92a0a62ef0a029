"""Beam search against all sequences there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError, NonFiniteError
from wonderland.generation import beam_search, greedy

RNG = np.random.default_rng(2)
V, T = 3, 4
# the next token depends on the last two
LOG_P = np.log(RNG.dirichlet(np.full(V, 0.6), size=(V, V)))


def model(tokens):
    x = np.asarray(tokens)
    before = np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], axis=1)
    return wl.asarray(LOG_P[before, x])


def log_prob(path):
    full = (0, 0, *path)
    return sum(LOG_P[full[i], full[i + 1], full[i + 2]] for i in range(len(path)))


def exhaustive(stop=None):
    """All sequences of T tokens, or up to a stop token, with their log-probabilities."""
    found = {}
    for path in itertools.product(range(V), repeat=T):
        if stop in path:
            path = path[: path.index(stop) + 1]
        found[path] = log_prob(path)
    return found


@pytest.mark.book("8-80", name="wl.generation.beam_search")
def test_a_wide_beam_finds_the_best_of_all():
    everything = exhaustive()
    ranked = sorted(everything, key=everything.get, reverse=True)
    best = beam_search(model, [0], T, beams=V ** (T - 1))
    assert tuple(best[0].tokens[1:].tolist()) == ranked[0]
    assert best[0].log_prob == pytest.approx(everything[ranked[0]], rel=1e-9)
    everyone = beam_search(model, [0], T, beams=V**T)
    assert [tuple(h.tokens[1:].tolist()) for h in everyone[:5]] == ranked[:5]
    assert sum(np.exp(h.log_prob) for h in everyone) == pytest.approx(1)
    assert beam_search(model, [0], T, beams=1)[0].tokens.tolist() == greedy(model, [0], T).tolist()
    scores = [beam_search(model, [0], T, beams=k)[0].log_prob for k in (1, 2, 27)]
    assert scores[0] <= scores[2] + 1e-12
    assert scores[1] <= scores[2] + 1e-12


@pytest.mark.book("8-79", "8-80", name=("wl.generation.beam_search", "wl.generation.sequence_log_prob"))
def test_the_likeliest_first_token_may_lead_astray():
    p = np.zeros((5, 5))
    p[0, 1], p[0, 2] = 0.6, 0.4
    p[1, 3], p[1, 4] = 0.55, 0.45
    p[2, 3], p[2, 4] = 0.1, 0.9
    p[3, 3] = p[4, 4] = 1
    table = wl.log(wl.asarray(p))

    def tree(tokens):
        return table[tokens]

    short = greedy(tree, [0], 2)
    assert short.tolist() == [0, 1, 3]
    assert float(wl.exp(wl.generation.sequence_log_prob(tree, short[None]))[0]) == pytest.approx(0.33)
    best, second = beam_search(tree, [0], 2, beams=2)
    assert best.tokens.tolist() == [0, 2, 4]
    assert np.exp(best.log_prob) == pytest.approx(0.36)
    assert np.exp(second.log_prob) == pytest.approx(0.33)


@pytest.mark.book("8-81", name="wl.generation.beam_search")
def test_the_first_step_takes_different_tokens():
    for k in (2, 3):
        found = beam_search(model, [0], 1, beams=k)
        assert len({h.tokens[1] for h in found}) == k
    assert len(beam_search(model, [0], 1, beams=10)) == V  # there are no more
    tokens = {tuple(h.tokens.tolist()) for h in beam_search(model, [0], T, beams=6)}
    assert len(tokens) == 6


@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
def test_sequences_that_end_stay_and_compete_by_normalised_scores(alpha):
    everything = exhaustive(stop=2)
    score = {path: value / len(path) ** alpha for path, value in everything.items()}
    ranked = sorted(score, key=score.get, reverse=True)
    found = beam_search(model, [0], T, beams=len(everything), stop_tokens=2, length_penalty=alpha)
    assert [tuple(h.tokens[1:].tolist()) for h in found[:6]] == ranked[:6]
    assert found[0].score == pytest.approx(score[ranked[0]])
    assert {tuple(h.tokens[1:].tolist()) for h in found} == set(everything)


@pytest.mark.book("8-82", name="wl.generation.beam_search")
def test_a_reward_overrides_the_ranking():
    best = beam_search(model, [0], T, beams=V**T)[0].tokens
    wanted = np.array([0, 2, 2, 2, 2])
    assert best.tolist() != wanted.tolist()
    found = beam_search(model, [0], T, beams=V**T, reward=lambda tokens: 100.0 * (tokens[1:] == 2).sum())[0]
    assert found.tokens.tolist() == wanted.tolist()
    assert found.score == pytest.approx(400 + found.log_prob)
    assert found.log_prob == pytest.approx(log_prob((2, 2, 2, 2)))


def test_prompts_of_different_lengths():
    prompts = [[0], [0, 1, 2], [0, 2]]
    together = beam_search(model, prompts, 3, beams=3)
    for prompt, group in zip(prompts, together, strict=True):
        alone = beam_search(model, prompt, 3, beams=3)
        assert [h.tokens.tolist() for h in group] == [h.tokens.tolist() for h in alone]
        assert all(h.tokens[: len(prompt)].tolist() == prompt for h in group)
    assert [h.tokens.tolist() for h in beam_search(model, [0, 1], 0)] == [[0, 1]]


def test_bad_input():
    with pytest.raises(InputError, match="beams=0"):
        beam_search(model, [0], 3, beams=0)
    with pytest.raises(InputError, match="length_penalty"):
        beam_search(model, [0], 3, length_penalty=float("nan"))
    with pytest.raises(InputError, match="not a function"):
        beam_search(model, [0], 3, reward=3)
    with pytest.raises(InputError, match="a prompt is empty"):
        beam_search(model, [], 3)
    with pytest.raises(NonFiniteError, match="NaN"):
        beam_search(lambda tokens: wl.full((*tokens.shape, 3), np.nan), [0], 3)
