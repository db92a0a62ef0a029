"""Sampling and greedy decoding on models whose probabilities are known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError, NonFiniteError, ShapeError
from wonderland.generation import generate, greedy

RNG = np.random.default_rng(1)
V = 5
TABLE = RNG.normal(size=(V, V)).astype(np.float32) * 1.5


def bigram(table=TABLE):
    """A model of the next token given the last one, as a module."""
    model = wl.nn.Embedding(*table.shape)
    model.weight.assign(wl.asarray(table))
    return model


class Stepwise:
    """A recurrent model: the state is a running mix of the tokens; whole sequences and steps give the same logits."""

    def __init__(self, features=4):
        rng = np.random.default_rng(3)
        self.embed = wl.asarray(rng.normal(size=(V, features)))
        self.head = wl.asarray(rng.normal(size=(features, V)) * 2)
        self.steps = 0

    def step(self, token, state=None):
        self.steps += 1
        x = self.embed[token]
        state = x if state is None else wl.tanh(0.5 * state + x)
        return state @ self.head, state


class Whole:
    """The same model without steps."""

    def __init__(self, inner):
        self.inner = inner

    def __call__(self, tokens):
        state, out = None, []
        for t in range(tokens.shape[1]):
            logits, state = self.inner.step(tokens[:, t], state)
            out.append(logits)
        return wl.stack(out, axis=1)


class Callable(Stepwise):
    def __call__(self, tokens):
        raise AssertionError("a model with steps is not asked for whole sequences")


@pytest.mark.book("8-75", name="wl.generation.generate")
def test_frequencies_of_sequences_are_their_probabilities():
    n = 4000
    table = TABLE[:3, :3]
    tokens = np.stack(generate(bigram(table), np.zeros((n, 1), int), 3, key=wl.random.key(0)))
    p = np.exp(table) / np.exp(table).sum(-1, keepdims=True)
    chi_square = 0.0
    for path in itertools.product(range(3), repeat=3):
        probability = np.prod([p[a, b] for a, b in itertools.pairwise((0, *path))])
        count = (tokens[:, 1:] == path).all(axis=1).sum()
        error = np.sqrt(n * probability * (1 - probability))
        assert abs(count - n * probability) < 4.5 * error
        chi_square += (count - n * probability) ** 2 / (n * probability)
    assert chi_square < 55  # 26 degrees of freedom: 99.9 %


@pytest.mark.book("8-76", "8-78", name=("wl.generation.greedy", "wl.generation.generate", "wl.generation.beam_search"))
def test_greedy_is_the_limit_of_temperature_and_one_beam():
    model = bigram()
    by_hand = [2]
    for _ in range(8):
        by_hand.append(int(TABLE[by_hand[-1]].argmax()))
    assert greedy(model, [2], 8).tolist() == by_hand
    assert generate(model, [2], 8, temperature=0).tolist() == by_hand
    assert generate(model, [2], 8, temperature=1e-6, key=wl.random.key(5)).tolist() == by_hand
    assert generate(model, [2], 8, top_k=1, key=wl.random.key(5)).tolist() == by_hand
    assert generate(model, [2], 8, top_p=0.0, key=wl.random.key(5)).tolist() == by_hand
    assert wl.generation.beam_search(model, [2], 8, beams=1)[0].tokens.tolist() == by_hand


@pytest.mark.book("8-54", name=("wl.generation.generate", "wl.generation.greedy"))
def test_a_rollout_takes_the_likeliest_or_draws_by_probability():
    """f gives a vector of probabilities; its logarithms are what the decoding takes."""
    p = np.array([0.5, 0.3, 0.15, 0.05, 0.0])
    f = lambda tokens: wl.broadcast_to(wl.asarray(p, dtype=wl.float32), (*tokens.shape, 5))
    model = lambda tokens: wl.log(f(tokens))
    assert greedy(model, [3], 4).tolist() == [3, 0, 0, 0, 0]
    assert generate(model, [3], 4, temperature=0).tolist() == [3, 0, 0, 0, 0]  # the same, whatever the key
    n = 4000
    drawn = np.stack(generate(model, np.full((n, 1), 3), 2, key=wl.random.key(1)))[:, 1:].ravel()
    counts = np.bincount(drawn, minlength=5)
    assert counts[4] == 0
    expected = 2 * n * p[:4]
    assert (np.abs(counts[:4] - expected) < 4.5 * np.sqrt(expected * (1 - p[:4]))).all()


@pytest.mark.book("8-77", name=("wl.generation.generate", "wl.generation.greedy"))
def test_drawing_is_not_taking_the_likeliest():
    model = bigram()
    drawn = [generate(model, [2], 8, key=wl.random.key(seed)).tolist() for seed in range(5)]
    assert len(set(map(tuple, drawn))) > 1
    assert any(row != greedy(model, [2], 8).tolist() for row in drawn)
    assert greedy(model, [2], 8).tolist() == greedy(model, [2], 8).tolist()


def test_settings_that_filter_nothing_change_nothing():
    model, key = bigram(), wl.random.key(7)
    plain = generate(model, [[0], [3]], 12, key=key)
    for nothing in ({"top_k": V}, {"top_p": 1.0}, {"min_p": 0.0}, {"temperature": 1.0}, {"repetition_penalty": 1.0}):
        for row, other in zip(plain, generate(model, [[0], [3]], 12, key=key, **nothing), strict=True):
            assert row.tolist() == other.tolist()


def test_filters_keep_out_what_they_should():
    model = bigram()
    best = np.argsort(-TABLE, axis=-1)[:, :2]
    tokens = generate(model, [0], 60, top_k=2, key=wl.random.key(1))
    assert all(b in best[a] for a, b in itertools.pairwise(tokens.tolist()))
    flat = np.zeros((V, V), np.float32)  # every token alike, until it was there
    assert sorted(generate(bigram(flat + 1), [3], 4, repetition_penalty=1e4, top_k=1, key=wl.random.key(1))) == [
        *range(V)
    ]
    assert sorted(greedy(bigram(flat + 1), [3], 4, repetition_penalty=2.0).tolist()) == [*range(V)]


def test_keys_and_rows():
    model = bigram()
    alone = generate(model, [1, 2], 10, key=wl.random.key(3))
    assert alone.tolist() == generate(model, [1, 2], 10, key=wl.random.key(3)).tolist()
    assert alone.tolist() != generate(model, [1, 2], 10, key=wl.random.key(4)).tolist()
    # what a row draws does not depend on the others, however long they are
    together = generate(model, [[1, 2], [0, 0, 0, 4], [3]], 10, key=wl.random.key(3))
    assert together[0].tolist() == alone.tolist()
    assert [len(row) for row in together] == [12, 14, 11]
    assert together[1][:4].tolist() == [0, 0, 0, 4]
    wl.random.seed(0)
    first = generate(model, [1], 10)
    assert first.tolist() != generate(model, [1], 10).tolist()
    wl.random.seed(0)
    assert first.tolist() == generate(model, [1], 10).tolist()
    eager = generate(model, [[1, 2], [0, 0, 0, 4], [3]], 10, key=wl.random.key(3), jit=False)
    assert all((a == b).all() for a, b in zip(eager, together, strict=True))


@pytest.mark.book("8-68", name="wl.generation.generate")
def test_prompts_of_all_kinds():
    model = bigram()
    chain = greedy(model, [0], 3).tolist()
    assert greedy(model, None, 3, bos=0).tolist() == chain
    assert greedy(model, [], 3, bos=0).tolist() == chain
    assert greedy(model, [2], 2, bos=0)[:2].tolist() == [0, 2]
    assert greedy(model, wl.tensor([0]), 3).tolist() == chain
    batch = wl.text.ByteTokenizer(special_tokens=["[PAD]"]).encode_batch(["\x00", "\x01\x02"])
    rows = greedy(model, batch, 3)
    assert rows[0].tolist() == chain
    assert rows[1][:2].tolist() == [1, 2]
    assert greedy(model, np.array([[0], [0]]), 3)[1].tolist() == chain
    assert greedy(model, [0], 0).tolist() == [0]


def test_stop_tokens_and_the_callback():
    cycle = np.full((4, 4), -50, np.float32)
    cycle[[0, 1, 2, 3], [1, 2, 3, 0]] = 50
    heard = []
    rows = generate(
        bigram(cycle),
        [[0], [2], [1, 2, 3, 0]],
        6,
        stop_tokens=[3],
        callback=lambda row, token: heard.append((row, token)),
    )
    assert [row.tolist() for row in rows] == [[0, 1, 2, 3], [2, 3], [1, 2, 3, 0, 1, 2, 3]]
    for number, (row, start) in enumerate(zip(rows, (1, 1, 4), strict=True)):
        assert [token for who, token in heard if who == number] == row[start:].tolist()


@pytest.mark.book("8-64", "8-65", name="wl.generation.generate")
def test_the_last_token_is_read_and_nothing_after_it():
    # logits at place i say token i + 1, so that reading at another place would show
    seen = []

    class Echo(wl.nn.Module):
        def __init__(self):
            self.scale = wl.nn.Parameter(wl.tensor(9.0))

        def forward(self, tokens):
            seen.append(tokens.shape)
            return self.scale * wl.one_hot((tokens + 1) % 6, 6)

    for context in (None, 4):
        seen.clear()
        out = greedy(Echo(), [[0], [3, 4, 5]], 7, context=context)
        assert out[0].tolist() == [0, 1, 2, 3, 4, 5, 0, 1]
        assert out[1].tolist() == [3, 4, 5, 0, 1, 2, 3, 4, 5, 0]
        assert len(set(seen)) == 1  # one shape for all steps
        assert seen[0][1] == (32 if context is None else 4)


@pytest.mark.book("8-64", name="wl.generation.generate")
def test_a_window_slides_when_the_context_is_full():
    lengths = []

    def model(tokens):  # the next token is the number of tokens in sight
        lengths.append(tokens.shape[1])
        return wl.one_hot(wl.cumulative_sum(wl.ones_like(tokens), axis=1), 9) * 9.0

    assert greedy(model, [0, 0], 6, context=4).tolist() == [0, 0, 2, 3, 4, 4, 4, 4]
    assert lengths == [2, 3, 4, 4, 4, 4]

    class Limited(wl.nn.Module):
        context = 3

        def forward(self, tokens):
            assert tokens.shape[1] <= 3
            return wl.one_hot(wl.cumulative_sum(wl.ones_like(tokens), axis=1), 9) * 9.0

    assert greedy(Limited(), [0, 0], 4).tolist() == [0, 0, 2, 3, 3, 3]


def test_a_model_that_is_not_causal_sees_no_padding():
    class Last(wl.nn.Module):
        def forward(self, tokens):
            total = wl.sum(tokens, axis=1, keepdims=True) + tokens.shape[1]
            return wl.one_hot(wl.broadcast_to(total % 7, tokens.shape), 7) * 9.0

    assert greedy(Last(), [1, 2], 3, causal=False).tolist() == [1, 2, 5, 4, 2]


def test_steps_and_whole_sequences_write_the_same():
    steps = Callable()
    whole = Whole(Stepwise())
    prompts = [[1], [2, 3, 0, 4], [0, 1]]
    for settings in ({"temperature": 0}, {"top_p": 0.9, "temperature": 0.8}, {"context": 3}):
        a = generate(steps, prompts, 6, key=wl.random.key(0), **settings)
        b = generate(whole, prompts, 6, key=wl.random.key(0), **settings)
        assert all((x == y).all() for x, y in zip(a, b, strict=True))
    steps.steps = 0
    generate(steps, [1, 2, 3], 5, key=wl.random.key(0))
    assert steps.steps == 7  # every token but the last is read once
    for beams in (1, 3):
        a = wl.generation.beam_search(steps, prompts, 4, beams=beams)
        b = wl.generation.beam_search(whole, prompts, 4, beams=beams)
        for x, y in zip(itertools.chain(*a), itertools.chain(*b), strict=True):
            assert x.tokens.tolist() == y.tokens.tolist()
            assert x.log_prob == pytest.approx(y.log_prob, rel=1e-9)


def test_a_convolutional_language_model():
    model = wl.models.ConvLanguageModel(V, channels=6, dilations=(1, 2), dropout=0.5, key=wl.random.key(0))
    prompts = [[1], [2, 3, 0, 4]]
    rows = greedy(model, prompts, 6)
    assert model.training

    model.eval()
    for prompt, row in zip(prompts, rows, strict=True):
        tokens = list(prompt)
        for _ in range(6):
            tokens.append(int(model(wl.tensor([tokens]))[0, -1].argmax()))
        assert row.tolist() == tokens


@pytest.mark.book("8-83", "8-85", name=("wl.generation.generate_text", "wl.generation.greedy"))
def test_the_capital_of_france():
    sentence = "The capital of France is Paris"
    tokenizer = wl.text.WordTokenizer.train(sentence, special_tokens=["[BOS]", "[EOS]"])
    tokens = wl.asarray(tokenizer.encode(sentence, add_bos=True, add_eos=True))
    model = wl.nn.Embedding(tokenizer.vocab_size, tokenizer.vocab_size, key=wl.random.key(0))
    optimizer = wl.optim.SGD(model, lr=20.0)

    @wl.jit
    def step(model, optimizer, x, y):
        loss, grads = wl.value_and_grad(lambda m: wl.nn.functional.cross_entropy(m(x), y))(model)
        optimizer.step(grads)
        return loss

    for _ in range(60):
        step(model, optimizer, tokens[:-1], tokens[1:])
    assert tokenizer.tokenize(wl.generation.generate_text(model, tokenizer, "The capital of France", temperature=0))[
        -2:
    ] == ["is", "Paris"]
    pieces = []
    text = wl.generation.generate_text(model, tokenizer, "", 20, temperature=0, callback=pieces.append)
    assert text == sentence  # from [BOS] alone to [EOS]
    assert "".join(pieces) == sentence
    assert wl.generation.generate_text(model, tokenizer, ["The", "of"], 20, beams=2) == [sentence, "of France is Paris"]
    with pytest.raises(InputError, match="callback"):
        wl.generation.generate_text(model, tokenizer, ["The"], callback=print)


def test_streams_of_bytes_tell_whole_characters():
    tokenizer = wl.text.ByteTokenizer()
    target = tokenizer.encode("né 🐱!")

    def model(tokens):
        following = wl.asarray(np.append(target[1:], 0))
        return wl.one_hot(wl.broadcast_to(following[: tokens.shape[1]], tokens.shape), 256) * 99.0

    pieces = []
    assert wl.generation.generate_text(model, tokenizer, "n", len(target) - 1, callback=pieces.append) == "né 🐱!"
    assert pieces == ["é", " ", "🐱", "!"]
    with pytest.raises(InputError, match="has no tokens"):
        wl.generation.generate_text(model, tokenizer, "")


@pytest.mark.book("8-86", name="wl.generation.generate")
def test_a_picture_before_the_text():
    rng = np.random.default_rng(0)
    net = wl.models.CausalConvNet(4, V, channels=6, dilations=(1, 2), key=wl.random.key(1))
    embed = wl.nn.Embedding(V, 4, key=wl.random.key(2))
    picture = wl.asarray(rng.normal(size=(1, 3, 4)).astype(np.float32))  # three tokens of an image

    def model(tokens):
        both = wl.concat([picture, embed(tokens)], axis=1)
        assert both.shape == (1, 3 + tokens.shape[1], 4)
        return net(both)[:, 3:]

    tokens = greedy(model, [0], 4)
    by_hand = [0]
    for _ in range(4):
        by_hand.append(int(net(wl.concat([picture, embed(wl.tensor([by_hand]))], axis=1))[0, -1].argmax()))
    assert tokens.tolist() == by_hand


def test_bad_input():
    model = bigram()
    with pytest.raises(InputError, match="a prompt is empty"):
        generate(model, None, 3)
    with pytest.raises(InputError, match="the prompt has the token -1"):
        generate(model, [-1], 3)
    with pytest.raises(InputError, match="the prompt has the token 9, and the model 5 tokens"):
        generate(lambda tokens: wl.zeros((*tokens.shape, 5)), [9], 3)
    with pytest.raises(InputError, match="is text"):
        generate(model, "hello", 3)
    with pytest.raises(InputError, match="a prompt of type float"):
        generate(model, [0.5], 3)
    with pytest.raises(InputError, match="no prompts"):
        generate(model, np.zeros((0, 3), int), 3)
    with pytest.raises(ShapeError, match="a prompt of shape"):
        generate(model, np.zeros((2, 3, 1), int), 3)
    with pytest.raises(InputError, match="max_new_tokens=-1"):
        generate(model, [0], -1)
    with pytest.raises(InputError, match="a stop token"):
        generate(model, [0], 1, stop_tokens=["a"])
    with pytest.raises(InputError, match="context=0"):
        generate(model, [0], 1, context=0)
    with pytest.raises(InputError, match="a int is no model"):
        generate(3, [0], 1)
    with pytest.raises(ShapeError, match=r"for tokens of shape \(1, 1\) the model gave logits of shape \(1, 5\)"):
        generate(lambda tokens: wl.zeros((1, 5)), [0], 1)
    with pytest.raises(InputError, match="the model gave a tuple"):
        generate(lambda tokens: (wl.zeros((1, 5)), None), [0], 1)
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(NonFiniteError, match="NaN"):
            generate(lambda tokens, bad=bad: wl.full((*tokens.shape, 5), bad), [0], 1)
