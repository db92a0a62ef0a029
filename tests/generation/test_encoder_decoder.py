"""Writing about a source: the encoder runs once, the decoder reads on with a cache."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError
from wonderland.generation import beam_search, generate, greedy, stream_tokens
from wonderland.models.transformers.language_model import last_of

V = 9


class Translator(nn.Module):
    """The smallest model with an encoder and a decoder that attends to it."""

    start_token = 0

    def __init__(self):
        keys = wl.random.split(wl.random.key(1), 4)
        self.vocabulary = V
        self.tokens = nn.Embedding(V, 8, dtype=wl.float64, key=keys[0])
        self.encoder = nn.TransformerBlock(8, 2, positions=nn.Rotary(4), dtype=wl.float64, key=keys[1])
        block = nn.TransformerBlock(
            8, 2, causal=True, cross=True, positions=nn.Rotary(4), dtype=wl.float64, key=keys[2]
        )
        self.stack = nn.TransformerStack([block])
        self.head = nn.Linear(8, V, dtype=wl.float64, key=keys[3])
        self.head.weight = self.head.weight * 3.0
        block.cross.output.weight = block.cross.output.weight * 9.0  # much depends on the source

    def encode(self, source, token_mask=None, lengths=None):
        return self.encoder(self.tokens(source), token_mask=token_mask, lengths=lengths)

    def new_cache(self, rows, capacity=0, memory=None, memory_mask=None):
        return self.stack.new_cache(rows, capacity, memory, memory_mask)

    def extend(self, tokens, cache, lengths=None, last=False):
        h, cache = self.stack.extend(self.tokens(tokens), cache, lengths)
        return self.head(last_of(h, lengths) if last else h), cache

    def step(self, token, cache):
        logits, cache = self.extend(wl.expand_dims(token, -1), cache)
        return logits[:, 0], cache

    def forward(self, source, tokens):
        return self.head(self.stack(self.tokens(tokens), self.encode(source)))


SOURCES = [[1, 2, 3, 4, 5], [6, 7], [8, 1, 2]]


def by_hand(model, source, tokens, count):
    for _ in range(count):
        tokens = [*tokens, int(model(wl.tensor([source]), wl.tensor([tokens]))[0, -1].argmax())]
    return tokens


@pytest.mark.book("A5-59", "A5-61", name="wl.generation.generate")
def test_a_decoder_that_reads_on_gives_what_the_whole_gives():
    model = Translator()
    source, tokens = wl.asarray([SOURCES[0]]), wl.asarray([[0, 4, 2, 7, 7, 1]])
    whole = model(source, tokens).numpy()
    cache = model.new_cache(1, 6, model.encode(source))
    for t in range(6):
        logits, cache = model.step(tokens[:, t], cache)
        np.testing.assert_allclose(logits.numpy(), whole[:, t], rtol=1e-10)
    changed = wl.asarray([[0, 4, 2, 7, 5, 5]])
    np.testing.assert_array_equal(model(source, changed).numpy()[:, :4], whole[:, :4])


@pytest.mark.book("A5-59", "A5-28", name=("wl.generation.greedy", "wl.generation.generate"))
@pytest.mark.parametrize("jit", [False, True])
def test_each_source_has_its_own_text(jit):
    model = Translator()
    expected = [by_hand(model, source, [0], 7) for source in SOURCES]
    rows = greedy(model, None, 7, source=SOURCES, jit=jit)
    assert [row.tolist() for row in rows] == expected
    assert len(set(map(tuple, expected))) == 3  # another condition, another text
    padded = np.zeros((3, 5), int)
    for row, source in zip(padded, SOURCES, strict=True):
        row[: len(source)] = source
    mask = np.arange(5) < np.array([[5], [2], [3]])
    same = greedy(model, None, 7, source=padded, source_mask=mask, jit=jit)
    assert [row.tolist() for row in same] == expected
    assert greedy(model, None, 7, source=SOURCES[1], jit=False).tolist() == expected[1]
    assert list(stream_tokens(model, None, 7, source=SOURCES[1], temperature=0, jit=False)) == expected[1][1:]


@pytest.mark.book("A5-28", name="wl.generation.generate")
def test_another_condition_is_another_distribution():
    model, n = Translator(), 2000
    firsts = []
    for source in SOURCES[:2]:
        sources = np.tile(source, (n, 1))
        drawn = np.stack(generate(model, None, 1, source=sources, key=wl.random.key(0), jit=False))[:, 1]
        p = wl.softmax(model(wl.tensor([source]), wl.tensor([[0]]))[0, -1]).numpy()
        counts = np.bincount(drawn, minlength=V)
        assert (np.abs(counts - n * p) < 4.5 * np.sqrt(n * p * (1 - p)) + 1).all()
        firsts.append(p)
    assert np.abs(firsts[0] - firsts[1]).max() > 0.05


def test_the_source_is_encoded_once_and_prompts_may_follow(monkeypatch):
    model = Translator()
    calls = []
    encode = Translator.encode
    monkeypatch.setattr(Translator, "encode", lambda self, *a, **k: calls.append(1) or encode(self, *a, **k))
    rows = greedy(model, [0, 5], 4, source=SOURCES, jit=False)  # one prompt for all
    assert len(calls) == 1
    assert [row.tolist() for row in rows] == [by_hand(model, source, [0, 5], 4) for source in SOURCES]
    prompts = [[0, 5], [0], [0, 3, 3]]
    rows = greedy(model, prompts, 4, source=SOURCES, jit=False)
    assert [row.tolist() for row in rows] == [
        by_hand(model, source, prompt, 4) for source, prompt in zip(SOURCES, prompts, strict=True)
    ]


@pytest.mark.parametrize("early_stopping", [None, False])
def test_beams_about_a_source(early_stopping):
    model = Translator()
    groups = beam_search(model, None, 5, beams=3, source=SOURCES, early_stopping=early_stopping, jit=False)
    for source, group in zip(SOURCES, groups, strict=True):
        about = wl.asarray([source])
        function = lambda tokens, about=about: model(wl.repeat(about, tokens.shape[0], axis=0), tokens)
        expected = beam_search(function, [0], 5, beams=3, early_stopping=early_stopping)
        assert [h.tokens.tolist() for h in group] == [h.tokens.tolist() for h in expected]


def test_bad_input():
    model = Translator()
    with pytest.raises(InputError, match="writes about a source"):
        generate(model, None, 3)
    with pytest.raises(ShapeError, match="2 prompts, 3 sources"):
        generate(model, [[0], [0]], 3, source=SOURCES)
    with pytest.raises(InputError, match="which has no cache"):
        generate(lambda tokens: wl.zeros((*tokens.shape, V)), [1], 3, source=SOURCES)
