"""Speculative decoding: the tokens, or the distribution, of the target alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError, NonFiniteError
from wonderland.generation import greedy, speculative_generate


def gpt(seed, vocabulary=7, sharp=50.0, **settings):
    settings = {"context": 64, "embed_dim": 8, "num_heads": 2, "depth": 1, "tied": False} | settings
    model = wl.models.GPT(vocabulary, key=wl.random.key(seed), **settings)
    model.head.weight = model.head.weight * sharp
    return model.eval()


@pytest.mark.book("11.24", name="wl.generation.speculative_generate")
@pytest.mark.parametrize("jit", [False, True])
def test_greedy_tokens_are_those_of_the_target(jit):
    draft, target = gpt(0, embed_dim=4), gpt(1)
    prompts = [[1, 2, 3, 4], [5], [6, 0]]
    expected = greedy(target, prompts, 11, jit=False)
    for k in (1, 4):
        rows = speculative_generate(draft, target, prompts, 11, draft_tokens=k, temperature=0, jit=jit)
        assert [row.tolist() for row in rows] == [row.tolist() for row in expected]
    stop = int(expected[0][7])
    ended = speculative_generate(draft, target, prompts, 11, temperature=0, stop_tokens=stop, jit=jit)
    assert [row.tolist() for row in ended] == [
        row.tolist() for row in greedy(target, prompts, 11, stop_tokens=stop, jit=False)
    ]


@pytest.mark.book("11.24", name="wl.generation.speculative_generate")
def test_a_draft_that_is_right_is_never_refused(monkeypatch):
    target = gpt(1)
    calls = []
    extend = type(target).extend

    def counted(self, tokens, *args, **kwargs):
        calls.append(tokens.shape[1])
        return extend(self, tokens, *args, **kwargs)

    monkeypatch.setattr(type(target), "extend", counted)
    speculative_generate(target, target, [1], 15, draft_tokens=4, key=wl.random.key(0), jit=False)
    assert calls.count(5) == 3  # rounds of five tokens each


@pytest.mark.book("11.24", name="wl.generation.speculative_generate")
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.7, "top_k": 2}])
def test_the_distribution_is_that_of_the_target(settings):
    n, count, vocabulary = 3000, 3, 3
    draft, target = gpt(0, vocabulary, 20.0), gpt(4, vocabulary, 20.0)
    sampling = wl.generation.Sampling(**settings)
    p = lambda model, text: wl.softmax(sampling(model(wl.tensor([text]))[0, -1])).numpy()
    assert np.abs(p(draft, [1]) - p(target, [1])).max() > 0.1  # they differ, so that much is refused
    rows = speculative_generate(draft, target, np.ones((n, 1), int), count, key=wl.random.key(0), **settings)
    tokens = np.stack(rows)[:, 1:]
    chi_square, kinds = 0.0, 0
    for path in itertools.product(range(vocabulary), repeat=count):
        text = [1, *path]
        probability = float(np.prod([p(target, text[:i])[text[i]] for i in range(1, count + 1)]))
        seen = int((tokens == path).all(axis=1).sum())
        if probability < 1e-9:
            assert seen == 0
            continue
        kinds += 1
        assert abs(seen - n * probability) < 4.5 * np.sqrt(n * probability * (1 - probability)) + 1
        chi_square += (seen - n * probability) ** 2 / (n * probability)
    assert chi_square < kinds + 4 * np.sqrt(2 * kinds)


def test_rows_are_independent_and_windows_roll():
    draft, target = gpt(0), wl.models.Llama(7, 8, 2, 1, window=5, std=0.5, key=wl.random.key(2)).eval()
    prompts, keys = [[1, 2, 3], [4]], wl.random.split(wl.random.key(3), 2)
    rows = speculative_generate(draft, target, prompts, 12, key=keys, jit=False)
    for i, prompt in enumerate(prompts):
        alone = speculative_generate(draft, target, [prompt], 12, key=keys[i : i + 1], jit=False)[0]
        assert alone.tolist() == rows[i].tolist()
    long = speculative_generate(target, target, [1, 2], 100, temperature=0, draft_tokens=3, jit=False)
    assert long.tolist() == greedy(target, [1, 2], 100, jit=False).tolist()


def test_up_to_the_end_of_the_context():
    draft, target = gpt(0, context=12), gpt(1, context=10)
    row = speculative_generate(draft, target, [1, 2, 3], 7, temperature=0, jit=False)
    assert row.tolist() == greedy(target, [1, 2, 3], 7, jit=False).tolist()
    with pytest.raises(InputError, match=r"up to 11 tokens, and a context of 10[\s\S]*max_new_tokens=7"):
        speculative_generate(draft, target, [1, 2, 3], 8)


def test_bad_input():
    target = gpt(1)
    with pytest.raises(InputError, match="models of 5 and 7 tokens"):
        speculative_generate(gpt(0, 5), target, [1], 3, jit=False)
    with pytest.raises(InputError, match="has no cache"):
        speculative_generate(lambda tokens: tokens, target, [1], 3)
    with pytest.raises(InputError, match="draft_tokens=0"):
        speculative_generate(target, target, [1], 3, draft_tokens=0)
    conv = wl.models.ConvLanguageModel(7, channels=4, dilations=(1,))
    with pytest.raises(InputError, match="a state does not remember"):
        speculative_generate(conv, target, [1], 3, jit=False)
    broken = gpt(1)
    broken.stack.norm.bias = broken.stack.norm.bias + np.nan
    with pytest.raises(NonFiniteError, match="NaN"):
        speculative_generate(target, broken, [1], 3, jit=False)
    assert speculative_generate(target, target, [1], 0).tolist() == [1]
