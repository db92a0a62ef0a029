"""Models that read on with a cache: the same tokens as without one, alone or in a batch, in few programs."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ShapeError
from wonderland.generation import beam_search, generate, greedy, read_prefix
from wonderland.generation import cached as cached_module
from wonderland.models import CausalLanguageModel

V = 11
PROMPTS = [[1, 2, 3, 4, 5, 6, 7], [8], [9, 10, 3]]


class Decoder(CausalLanguageModel):
    """A small decoder with any kind of positions."""

    def __init__(self, absolute=None, relative=None, window=None, context=None, depth=2):
        keys = wl.random.split(wl.random.key(7), depth + 2)
        self.vocabulary, self.context = V, context
        self.tokens = nn.Embedding(V, 8, key=keys[0], dtype=wl.float64)
        self.absolute = absolute
        blocks = [
            nn.TransformerBlock(
                8, 2, causal=True, positions=relative, window=window, dtype=wl.float64, key=key, norm="rms"
            )
            for key in keys[2:]
        ]
        self.stack = nn.TransformerStack(blocks)
        self.head = nn.Linear(8, V, dtype=wl.float64, key=keys[1])
        self.head.weight = self.head.weight * 4.0

    def embed(self, tokens, places):
        x = self.tokens(tokens)
        return x if self.absolute is None else self.absolute(x, places)

    def logits(self, h):
        return self.head(h)


def drawn(bias):
    """Numbers for each distance."""
    bias.weight = wl.random.normal(bias.weight.shape, key=wl.random.key(2), dtype=wl.float64)
    return bias


def gpt(**settings):
    settings = {
        "context": 64,
        "embed_dim": 8,
        "num_heads": 2,
        "depth": 1,
        "tied": False,
        "dtype": wl.float64,
    } | settings
    model = wl.models.GPT(V, key=wl.random.key(3), **settings)
    model.head.weight = model.head.weight * 50.0
    return model.eval()


def llama(**settings):
    settings = {"embed_dim": 16, "num_heads": 4, "kv_heads": 2, "depth": 1, "dtype": wl.float64, "std": 0.4} | settings
    return wl.models.Llama(V, key=wl.random.key(3), **settings).eval()


KINDS = {
    "gpt": gpt,
    "llama": llama,
    "llama with a window": lambda: llama(window=4),
    "learned": lambda: Decoder(absolute=nn.LearnedPositions(64, 8, dtype=wl.float64, key=wl.random.key(0))),
    "sinusoidal": lambda: Decoder(absolute=nn.SinusoidalPositions(8)),
    "rotary": lambda: Decoder(relative=nn.Rotary(4)),
    "ALiBi": lambda: Decoder(relative=nn.ALiBi(2)),
    "relative": lambda: Decoder(relative=drawn(nn.RelativeBias(2, 8, dtype=wl.float64))),
    "T5": lambda: Decoder(relative=drawn(nn.BucketedBias(2, 8, 10, bidirectional=False, dtype=wl.float64))),
}


def whole(model):
    """The same model as a function of whole sequences."""
    return lambda tokens: model(tokens)


def by_hand(model, prompt, count):
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(model(wl.tensor([tokens]))[0, -1].argmax()))
    return tokens


# --- the same logits, whichever way tokens are read


@pytest.mark.book("11.34", "11.36", "A5-61", name=("wl.nn.Cache", "wl.models.CausalLanguageModel.step"))
@pytest.mark.parametrize("kind", KINDS)
def test_whole_pieces_and_steps_give_the_same_logits(kind):
    model = KINDS[kind]()
    tokens = wl.asarray(np.random.default_rng(0).integers(0, V, (2, 12)))
    expected = model(tokens).numpy()
    first, cache = model.extend(tokens[:, :5])
    second, cache = model.extend(tokens[:, 5:9], cache)
    rows = [first, second]
    for t in range(9, 12):
        logits, cache = model.step(tokens[:, t], cache)
        rows.append(logits[:, None])
    np.testing.assert_allclose(wl.concat(rows, axis=1).numpy(), expected, rtol=1e-10, atol=1e-10)
    assert cache.lengths.tolist() == [12, 12]
    changed = wl.asarray(np.concatenate([tokens.numpy()[:, :7], 1 + tokens.numpy()[:, 7:] % (V - 1)], axis=1))
    np.testing.assert_array_equal(model(changed).numpy()[:, :7], expected[:, :7])  # the future changes nothing


@pytest.mark.parametrize(("dtype", "error"), [("float32", 1e-5), ("float16", 0.02), ("bfloat16", 0.15)])
@pytest.mark.parametrize("kind", ["gpt", "llama", "llama with a window", "rotary", "ALiBi"])
def test_keys_and_values_may_be_kept_in_another_type(kind, dtype, error):
    model = KINDS[kind]()
    tokens = wl.asarray(np.random.default_rng(0).integers(0, V, (2, 9)))
    expected = model(tokens).numpy()
    extend, step = wl.jit(lambda *args: model.extend(*args)), wl.jit(lambda *args: model.step(*args))
    cache = model.new_cache(2, 9).store_as(dtype)
    assert 2 * cache.nbytes <= model.new_cache(2, 9).nbytes
    with wl.no_grad():
        first, cache = extend(tokens[:, :5], cache, wl.asarray([5, 3]))  # the second row goes on behind its third token
        cache.rewind([4, 3])
        logits, cache = step(wl.stack([tokens[0, 4], tokens[1, 3]]), cache)
    assert {part.keys.dtype for part in cache.modules() if isinstance(part, nn.KeyValueCache)} == {np.dtype(dtype)}
    for found, wanted in ((first[0], expected[0, :5]), (logits, expected[[0, 1], [4, 3]])):
        np.testing.assert_allclose(found.numpy(), wanted, atol=error * np.abs(expected).max())


def test_generation_with_a_cache_of_another_type():
    model = llama()
    expected = [row.tolist() for row in greedy(model, PROMPTS, 6)]
    prefix = read_prefix(model, PROMPTS[0][:4], cache_dtype="float32")
    assert [row.tolist() for row in greedy(model, PROMPTS, 6, cache_dtype="float32")] == expected
    assert greedy(model, PROMPTS[0][4:], 6, prefix=prefix, cache_dtype="float16").tolist()[:7] == PROMPTS[0]
    beams = beam_search(model, PROMPTS[0], 4, beams=2, cache_dtype="float32")
    np.testing.assert_array_equal(beams[0].tokens, beam_search(model, PROMPTS[0], 4, beams=2)[0].tokens)
    with pytest.raises(DTypeError, match="int8"):
        greedy(model, [1], 2, cache_dtype="int8")
    with pytest.raises(InputError, match="cache_dtype"):
        greedy(whole(model), [1], 2, cache_dtype="float16")


# --- the same tokens


@pytest.mark.book("11.34", "11.36", name=("wl.generation.greedy", "wl.nn.Cache"))
@pytest.mark.parametrize("kind", KINDS)
def test_prompts_of_different_lengths_give_what_each_gives_alone(kind):
    model = KINDS[kind]()
    rows = greedy(model, PROMPTS, 9, jit=False)
    for prompt, row in zip(PROMPTS, rows, strict=True):
        assert row.tolist() == by_hand(model, prompt, 9)
        assert greedy(model, prompt, 9, jit=False).tolist() == row.tolist()
    assert len({tuple(row[-9:].tolist()) for row in rows}) > 1


@pytest.mark.parametrize("kind", ["gpt", "llama with a window", "conv"])
def test_compiled_and_not_cached_and_not(kind):
    make = {"conv": lambda: wl.models.ConvLanguageModel(V, channels=6, dilations=(1, 2), key=wl.random.key(0))}
    model = (KINDS | make)[kind]().eval()
    keys = wl.random.split(wl.random.key(5), 3)
    settings = {"temperature": 0.9, "top_p": 0.95, "repetition_penalty": 1.2}
    rows = generate(model, PROMPTS, 8, key=wl.random.key(5), **settings)
    again = generate(model, PROMPTS, 8, key=keys, jit=False, **settings)
    uncached = generate(whole(model), PROMPTS, 8, key=keys, **settings)
    for a, b, c in zip(rows, again, uncached, strict=True):
        assert a.tolist() == b.tolist() == c.tolist()
    for i in range(3):  # a row alone, with its own key
        alone = generate(model, [PROMPTS[i]], 8, key=keys[i : i + 1], jit=False, **settings)[0]
        assert alone.tolist() == rows[i].tolist()
    first = generate(model, PROMPTS[0], 8, key=wl.random.key(5), jit=False, **settings)  # the first of any batch
    assert first.tolist() == rows[0].tolist()


@pytest.mark.book("A5-24", name="wl.generation.generate")
def test_rows_end_by_themselves_at_a_stop_token_or_the_length():
    model = gpt()
    rows = greedy(model, PROMPTS, 9, jit=False)
    stop = int(rows[0][len(PROMPTS[0]) + 2])
    ended = greedy(model, PROMPTS, 9, stop_tokens=stop, jit=False)
    for prompt, row, full in zip(PROMPTS, ended, rows, strict=True):
        new = full[len(prompt) :].tolist()
        expected = new[: new.index(stop) + 1] if stop in new else new
        assert row[len(prompt) :].tolist() == expected
    assert len(ended[0]) < len(rows[0])
    # as the temperature goes to 0, drawing becomes taking the likeliest
    cold = generate(model, PROMPTS, 9, temperature=1e-4, key=wl.random.key(1), jit=False)
    assert [row.tolist() for row in cold] == [row.tolist() for row in rows]


@pytest.mark.book("11.19", name=("wl.models.GPT", "wl.generation.greedy"))
def test_a_model_that_knows_its_texts_by_heart_writes_them():
    bos, eos = 0, 1
    texts = [[5, 3, 8, 2], [7, 7, 9], [4, 10, 6, 3, 2, 5]]
    x, y = np.zeros((3, 7), int), np.full((3, 7), -100)
    for row, text in enumerate(texts):
        x[row, : len(text) + 1] = [bos, *text]  # shifted to the right: what is read at a place is the token before it
        y[row, : len(text) + 1] = [*text, eos]
    model = wl.models.GPT(V, 16, 16, 2, 1, tied=False, key=wl.random.key(0))
    # the loss at a place depends on what is read up to there alone
    targets = wl.asarray(y[:1, :5])
    losses = lambda e: nn.functional.cross_entropy(model.logits(model.stack(e)), targets, reduction="none")
    jacobian = wl.abs(wl.jacobian(losses)(model.embed(wl.asarray(x[:1, :5]), wl.arange(5))).detach())
    reach = jacobian.numpy().sum(axis=-1).reshape(5, 5)  # of losses by inputs
    assert (np.triu(reach, 1) == 0).all()
    assert (np.diag(reach) > 0).all()
    optimizer = wl.optim.Adam(model, lr=0.02)

    @wl.jit
    def step(model, optimizer, x, y):
        loss, grads = wl.value_and_grad(lambda m: nn.functional.cross_entropy(m(x), y, ignore_index=-100))(model)
        optimizer.step(grads)
        return loss

    for _ in range(120):
        loss = step(model, optimizer, wl.asarray(x), wl.asarray(y))
    assert loss.item() < np.log(3) * 3 / 16 + 0.02  # which text it will be is all that is uncertain
    rows = greedy(model, [[bos, text[0]] for text in texts], 12, stop_tokens=eos)
    assert [row.tolist() for row in rows] == [[bos, *text, eos] for text in texts]
    cut = generate(model, [bos, texts[2][0]], 3, temperature=0.01, key=wl.random.key(0), stop_tokens=eos)
    assert cut.tolist() == [bos, *texts[2][:4]]


# --- beyond the context


@pytest.mark.book("11.36", name=("wl.generation.generate", "wl.nn.KeyValueCache"))
def test_a_window_rolls_and_nothing_is_read_twice(monkeypatch):
    model = llama(window=4, context=16)
    counts = []
    extend = type(model).extend
    monkeypatch.setattr(
        type(model),
        "extend",
        lambda self, tokens, *a, **k: counts.append(tokens.shape[1]) or extend(self, tokens, *a, **k),
    )
    monkeypatch.setattr("wonderland.nn.sequences.cache.SLACK", 8)
    row = greedy(model, [1, 2, 3], 60, jit=False)
    assert counts == [3, *[1] * 59]
    free = llama(window=4)
    assert row.tolist() == by_hand(free, [1, 2, 3], 60)
    cache = model.new_cache(1, 1000)
    assert cache.nbytes == model.new_cache(1, 10).nbytes  # the memory of a window, however long the text


@pytest.mark.book("11.36", name="wl.generation.generate")
@pytest.mark.parametrize("jit", [False, True])
def test_learned_positions_see_a_window_that_slides(jit):
    model = gpt(context=6)
    prompts = [[1, 2, 3, 4, 5], [8], [1, 2, 3, 4, 5, 6, 7, 8]]
    for prompt, row in zip(prompts, greedy(model, prompts, 8, jit=jit), strict=True):
        tokens = list(prompt)
        for _ in range(8):
            tokens.append(int(model(wl.tensor([tokens[-6:]]))[0, -1].argmax()))
        assert row.tolist() == tokens


def test_a_row_that_has_ended_does_not_pass_the_context():
    model = gpt(context=8)
    text = by_hand(model, [8], 7)
    for first in range(V):  # a prompt whose next token is not in the text
        prompt = [1, 2, 3, 4, first]
        stop = by_hand(model, prompt, 1)[-1]
        if stop not in text[1:]:
            break
    assert stop not in text[1:]
    ended = greedy(model, [prompt, [8]], 7, stop_tokens=stop, jit=False)
    assert ended[0].tolist() == [*prompt, stop]
    assert ended[1].tolist() == text


# --- few programs, in place


def test_a_long_generation_makes_a_handful_of_programs():
    model = llama(embed_dim=8, num_heads=2, kv_heads=1)
    cached_module._step.cache_clear()
    cached_module._extend_compiled.clear()
    steps = []

    def note(then, name, compiled, made=cached_module._step):
        found = made(then, name, compiled)
        if all(found is not other for other in steps):
            steps.append(found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached_module, "_step", note)
        patch.setattr(cached_module, "FIRST", 64)
        rows = greedy(model, [[1, 2, 3], [4]], 200)
        greedy(model, [[1, 2], [3, 4, 5, 6]], 30)  # other lengths, no other program
    assert [len(row) for row in rows] == [203, 201]
    assert len(steps) == 1
    assert steps[0].traces == 3  # 64, 128 and 256 places
    assert cached_module._extend_compiled.traces == 1


# --- shared beginnings


@pytest.mark.parametrize("kind", ["gpt", "conv"])
def test_a_prefix_is_read_once(kind, monkeypatch):
    model = gpt() if kind == "gpt" else wl.models.ConvLanguageModel(V, channels=6, dilations=(1, 2))
    common = [5, 4, 3, 2, 1]
    prefix = read_prefix(model, common, jit=False)
    assert prefix.cache.lengths.tolist() == [4]
    prompts = [[6], [], [7, 8, 9]]
    expected = greedy(model, [common + row for row in prompts], 6, jit=False)
    counts = []
    extend = type(model).extend
    monkeypatch.setattr(
        type(model),
        "extend",
        lambda self, tokens, *a, **k: counts.append(tokens.shape) or extend(self, tokens, *a, **k),
    )
    for _ in range(2):  # the prefix can be used again
        rows = greedy(model, prompts, 6, prefix=prefix, jit=False)
        assert [row.tolist() for row in rows] == [row.tolist() for row in expected]
    assert counts[0] == (3, 4)  # the last token of the prefix, and what follows
    beams = beam_search(model, [6], 4, beams=3, prefix=prefix, jit=False)
    full = beam_search(model, [*common, 6], 4, beams=3, jit=False)
    assert [h.tokens.tolist() for h in beams] == [h.tokens.tolist() for h in full]
    compiled = greedy(model, prompts, 6, prefix=prefix)
    assert [row.tolist() for row in compiled] == [row.tolist() for row in expected]


# --- beams


@pytest.mark.parametrize("early_stopping", [None, False])
@pytest.mark.parametrize("kind", ["gpt", "llama with a window", "conv"])
def test_beams_with_a_cache_find_what_whole_sequences_find(kind, early_stopping):
    make = {"conv": lambda: wl.models.ConvLanguageModel(V, channels=6, dilations=(1, 2), key=wl.random.key(0))}
    model = (KINDS | make)[kind]().eval()
    settings = {"beams": 3, "length_penalty": 0.7, "stop_tokens": 4, "early_stopping": early_stopping}
    found = beam_search(model, PROMPTS, 6, jit=False, **settings)
    expected = beam_search(whole(model), PROMPTS, 6, **settings)
    for group, others in zip(found, expected, strict=True):
        assert [h.tokens.tolist() for h in group] == [h.tokens.tolist() for h in others]
        np.testing.assert_allclose([h.score for h in group], [h.score for h in others], rtol=1e-6)


def test_a_beam_as_wide_as_everything_is_exhaustive():
    model = gpt(depth=2)
    groups = beam_search(model, [[1, 2], [3]], 2, beams=V * V, jit=False)
    every = np.array([[a, b] for a in range(V) for b in range(V)])
    for prompt, group in zip([[1, 2], [3]], groups, strict=True):
        log_p = wl.generation.conditional_log_prob(model, np.tile(prompt, (len(every), 1)), every).numpy()
        assert [h.tokens[len(prompt) :].tolist() for h in group[:9]] == every[np.argsort(-log_p)][:9].tolist()
        np.testing.assert_allclose([h.log_prob for h in group], np.sort(log_p)[::-1], rtol=1e-8)


# --- bad input


@pytest.mark.book("11.40", name="wl.generation.generate")
def test_an_encoder_alone_does_not_write():
    class Encoder(nn.Module):
        generates = False

        def forward(self, tokens):
            return wl.zeros((*tokens.shape, V))

    for search in (generate, greedy, beam_search):
        with pytest.raises(InputError, match=r"Encoder does not write text[\s\S]*decoder"):
            search(Encoder(), [1], 3)


def test_bad_input():
    model = gpt()
    with pytest.raises(InputError, match="the prompt has the token 11, and the model 11 tokens"):
        greedy(model, [3, 11], 2)
    with pytest.raises(InputError, match="a prompt is empty"):
        greedy(model, [[1], []], 2)
    with pytest.raises(ShapeError, match=r"keys of shape \(2, 2\) for 3 rows"):
        generate(model, PROMPTS, 2, key=wl.random.split(wl.random.key(0), 2))
    with pytest.raises(InputError, match="has no encoder"):
        generate(model, None, 2, bos=0, source=[[1, 2]])
    with pytest.raises(InputError, match="source_mask without a source"):
        generate(model, [1], 2, source_mask=[[True]])
    with pytest.raises(InputError, match="prefix for a function, which has no cache"):
        generate(whole(model), [1], 2, prefix=read_prefix(model, [1, 2], jit=False))
    with pytest.raises(InputError, match="a prefix beside bos"):
        generate(model, [1], 2, bos=0, prefix=read_prefix(model, [1, 2], jit=False))
    with pytest.raises(InputError, match="has no cache"):
        read_prefix(whole(model), [1, 2])


# --- going back


def test_a_cache_goes_back():
    model = llama()
    tokens = wl.asarray(np.random.default_rng(0).integers(0, V, (2, 9)))
    _, cache = model.extend(tokens)
    cache.rewind([4, 7])
    assert cache.lengths.tolist() == [4, 7]
    assert all(part.lengths.tolist() == [4, 7] for part in cache.layers)
    other = np.array([3, 5])
    logits, _ = model.step(other, cache)
    for row, n in enumerate((4, 7)):
        text = wl.concat([tokens[row, :n], wl.asarray(other[row : row + 1])])
        np.testing.assert_allclose(logits[row], model(text[None])[0, -1], rtol=1e-10)
    with pytest.raises(InputError, match=r"rewind: to \[9, 9\] of \[5, 8\]"):
        cache.rewind(9)
    with pytest.raises(ShapeError, match="rewind: lengths"):
        cache.rewind([1, 2, 3])
    with pytest.raises(InputError, match="does not remember"):
        nn.StateCache(2, h=wl.zeros((2, 3))).rewind(0)
    layer = nn.MultiHeadAttention(8, 2, causal=True, window=3, key=wl.random.key(0))
    x = wl.random.normal((1, 150, 8), key=wl.random.key(1))
    whole_y = layer(x)
    _, rolled = layer.extend(x)
    rolled.rewind(100)
    np.testing.assert_allclose(layer.extend(x[:, 100:], rolled)[0], whole_y[:, 100:], atol=1e-5)
    with pytest.raises(InputError, match="go back by 90 tokens"):
        rolled.rewind(60)
    np.testing.assert_allclose(layer.extend(x, rolled.rewind(0))[0], whole_y, atol=1e-5)
