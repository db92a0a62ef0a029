"""Causal convolutional networks: what an output sees, step by step, padding, forecasting, language models."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from wonderland import nn
from wonderland.errors import DTypeError, IndexOutOfRange, InputError, ShapeError
from wonderland.models import CausalConvNet, CausalSequential, ConvLanguageModel

F = nn.functional
F64 = wl.float64


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


def tokens(*shape, vocabulary=5, seed=0):
    return wl.asarray(np.random.default_rng(seed).integers(0, vocabulary, shape))


def forecaster(**settings):
    settings = {"channels": 6, "dilations": (1, 2, 4), "dtype": F64, "key": wl.random.key(0)} | settings
    return CausalConvNet(2, 3, **settings)


def language_model(vocabulary=5, **settings):
    settings = {"channels": 6, "dilations": (1, 2), "dtype": F64, "key": wl.random.key(0)} | settings
    return ConvLanguageModel(vocabulary, **settings)


def train(model, loss, steps, lr=0.01):
    optimizer = wl.optim.Adam(model, lr=lr)

    @wl.jit
    def step(model, optimizer):
        value, grads = wl.value_and_grad(loss)(model)
        optimizer.step(grads)
        return value

    return [step(model, optimizer).item() for _ in range(steps)]


# --- the network


@pytest.mark.book("8-60", "8-46", name="wl.models.CausalConvNet")
@pytest.mark.parametrize("kernel, dilations, expected", [(2, (1, 2, 4), 8), (3, (1, 2, 4), 15), (3, (1, 1, 1), 7)])
def test_the_receptive_field_is_what_the_last_output_depends_on(kernel, dilations, expected):
    model = forecaster(kernel_size=kernel, dilations=dilations)
    assert model.receptive_field == expected
    by_input = wl.grad(lambda x: model(x)[-1].sum())(numbers(expected + 4, 2))
    seen = np.flatnonzero(np.abs(by_input).sum(axis=1))
    np.testing.assert_array_equal(seen, np.arange(4, expected + 4))


@pytest.mark.book("8-61", "8-09", "8-55", name="wl.models.CausalConvNet")
def test_the_jacobian_is_triangular_and_the_length_stays():
    model, x = forecaster(), numbers(7, 2)
    assert model(x).shape == (7, 3)
    jacobian = np.abs(wl.jacobian(model)(x)).sum(axis=(1, 3))  # (7, 7) over channels
    assert (np.triu(jacobian, 1) == 0).all()
    assert (np.diag(jacobian) > 0).all()
    # another future changes no output: of the same length to the last bit, of another up to how NumPy blocks its rows
    longer = wl.concat([x, numbers(4, 2, seed=1)])
    np.testing.assert_array_equal(model(longer)[:7], model(wl.concat([x, numbers(4, 2, seed=2)]))[:7])
    close_array(model(longer)[:7], model(x))
    np.testing.assert_allclose(wl.jit(lambda m, x: m(x))(model, x), model(x), rtol=1e-10)
    wl.check_grads(lambda m, x: m(x), (model, x))


@pytest.mark.book("8-60", name="wl.models.CausalBlock")
def test_a_block_by_its_formula():
    block = wl.models.CausalBlock(2, 3, kernel_size=2, dilation=2, dtype=F64, key=wl.random.key(0))
    x = np.random.default_rng(0).normal(size=(5, 2))
    w, b = block.conv.weight.numpy(), block.conv.bias.numpy()
    before = np.concatenate([np.zeros((2, 2)), x[:-2]])  # x two steps ago
    u = before @ w[0] + x @ w[1] + b
    z = np.tanh(u[:, :2]) / (1 + np.exp(-u[:, 2:]))
    after, skip = block(x)
    np.testing.assert_allclose(after, x + z @ block.residual.weight.numpy() + block.residual.bias.numpy(), rtol=1e-12)
    np.testing.assert_allclose(skip, z @ block.skip.weight.numpy() + block.skip.bias.numpy(), rtol=1e-12)


def test_the_number_of_parameters():
    i, o, c, s, k, n = 2, 3, 6, 5, 3, 4
    model = CausalConvNet(i, o, c, [1] * n, k, skip_channels=s)
    expected = (i + 1) * c + n * (2 * (k * c + 1) * c + (c + 1) * (c + s)) + (s + 1) * (s + o)
    assert model.num_parameters() == expected
    assert ConvLanguageModel(7, c, [1] * n, k, s).num_parameters() == expected - (i + 1) * c - (s + 1) * o + (
        7 * c + (c + 1) * c + (s + 1) * 7
    )


@pytest.mark.book("11.35", name=("wl.models.CausalConvNet.step", "wl.models.CausalConvNet.extend"))
def test_one_step_at_a_time_equals_the_whole_sequence():
    model, x = forecaster(kernel_size=3), numbers(4, 20, 2)
    whole = model(x)
    step = wl.jit(lambda m, x, cache: m.step(x, cache))
    cache = model.new_cache(4)
    sizes = {cache.nbytes}
    for i in range(20):
        y, cache = step(model, x[:, i], cache)
        np.testing.assert_allclose(y, whole[:, i], rtol=1e-9)
        sizes.add(cache.nbytes)
    assert sizes == {4 * (model.receptive_field - 1) * 6 * 8}  # the memory does not grow with the sequence
    assert step.traces == 1
    assert cache.lengths.tolist() == [20] * 4
    # in pieces of any length, from nothing
    y1, state = model.extend(x[:, :3])
    y2, state = model.extend(x[:, 3:18], state)
    y3, _ = model.extend(x[:, 18:], state)
    np.testing.assert_allclose(wl.concat([y1, y2, y3], axis=1), whole, rtol=1e-9)


@pytest.mark.parametrize("compiled", [False, True])
def test_rows_that_end_at_different_times_go_on_where_they_ended(compiled):
    model, x = language_model(kernel_size=3), tokens(3, 12)
    read = lambda m, x, cache, n: m.extend(x, cache, n, last=True)
    read = wl.jit(read) if compiled else read
    lengths = np.array([2, 9, 5])
    last, cache = read(model, x, model.new_cache(3), lengths)
    more, _ = read(model, x[:, ::-1], cache, np.array([7, 1, 12]))
    for row, (n, k) in enumerate(zip(lengths, (7, 1, 12), strict=True)):
        text = wl.concat([x[row, :n], x[row, ::-1][:k]])
        np.testing.assert_allclose(last[row], model(text)[n - 1], rtol=1e-9)
        np.testing.assert_allclose(more[row], model(text)[-1], rtol=1e-9)
    assert cache.lengths.tolist() == [9, 10, 17]


@pytest.mark.book("8-25", "8-55", name="wl.models.CausalConvNet")
def test_padding_on_either_side_changes_nothing():
    model, short, other = forecaster(), numbers(6, 2), numbers(9, 2, seed=1)
    alone = model(short)
    junk = numbers(3, 2, seed=2)
    right, left = wl.concat([short, junk]), wl.concat([junk, short])
    mask = np.arange(9) < 6
    close_array(model(right)[:6], alone)  # even without a mask
    assert np.abs(model(left)[3:] - alone).max() > 1e-3  # but not on the left: it is read as data
    masks = wl.asarray(np.stack([mask, mask[::-1], np.ones(9, bool)]))
    batch = model(wl.stack([right, left, other]), masks)
    np.testing.assert_allclose(batch[0, :6], alone, rtol=1e-10)
    np.testing.assert_allclose(batch[1, 3:], alone, rtol=1e-10)
    np.testing.assert_allclose(batch[2], model(other), rtol=1e-10)
    np.testing.assert_allclose(wl.jit(lambda m, x, k: m(x, k))(model, right, mask)[:6], alone, rtol=1e-10)


@pytest.mark.book("8-52", "8-66", name="wl.models.CausalConvNet")
def test_a_forecaster_of_a_first_order_process_reaches_the_noise():
    rng = np.random.default_rng(0)
    noise = 0.5 * rng.normal(size=(8, 300))
    series = np.zeros((8, 300))
    for t in range(1, 300):
        series[:, t] = 0.9 * series[:, t - 1] + noise[:, t]
    x, y = series[:, :-1, None], series[:, 1:, None]  # true values go in, whatever the model would have predicted
    model = CausalConvNet(1, 1, channels=8, dilations=(1, 2), dtype=F64, key=wl.random.key(0))
    train(model, lambda m: F.mse_loss(m(x[:6]), y[:6]), 150, lr=0.02)
    error = F.mse_loss(model(x[6:]), y[6:]).item()
    assert error == pytest.approx(0.25, rel=0.15)
    assert np.var(y[6:]) > 0.8


@pytest.mark.book("8-62", "8-63", name="wl.models.CausalConvNet")
def test_a_window_trains_all_its_prefixes():
    model, window = forecaster(), numbers(6, 3)
    x, y = window[:-1, :2], window[1:]  # targets one step later: the last one is the true next value
    whole = wl.grad(lambda m: F.mse_loss(m(x), y, reduction="sum"))(model)
    terms = [wl.grad(lambda m, i=i: ((m(x[: i + 1])[i] - y[i]) ** 2).sum())(model) for i in range(5)]
    for path, value in whole.items():
        np.testing.assert_allclose(value, sum(term[path] for term in terms), rtol=1e-8, atol=1e-10)


@pytest.mark.book("8-64", "8-65", name="wl.models.CausalConvNet")
def test_the_prediction_is_at_the_last_valid_place():
    model = CausalConvNet(1, 1, channels=4, dilations=(1, 2), dtype=F64, key=wl.random.key(0))
    observed = numbers(2, 1)
    padded = wl.concat([observed, wl.zeros((2, 1), dtype=F64)])
    assert model(padded)[1].item() == model(observed)[-1].item()  # whatever stands after it
    assert model(padded)[3].item() != model(observed)[-1].item()
    # a buffer of 4 that slides when it is full, against steps with a state
    buffer, n = padded, 2
    rolled = []
    for _ in range(4):
        nxt = model(buffer)[n - 1]
        rolled.append(nxt.item())
        if n < 4:
            buffer, n = buffer.at[n].set(nxt), n + 1
        else:
            buffer = wl.concat([buffer[1:], nxt[None]])
    assert model.receptive_field == 4
    y, state = model.extend(observed)
    stepped, last = [y[-1].item()], y[-1]
    for _ in range(3):
        last, state = model.step(last, state)
        stepped.append(last.item())
    np.testing.assert_allclose(stepped, rolled, rtol=1e-10)


def test_layers_that_look_ahead_are_refused():
    conv = lambda **settings: nn.Conv1d(2, 2, 3, **settings)
    model = CausalSequential(conv(padding="causal"), nn.LayerNorm(2), wl.relu, nn.Residual(conv(padding="causal")))
    x = numbers(8, 2)
    np.testing.assert_array_equal(model(x)[:5], model(x[:5]))
    np.testing.assert_array_equal(CausalSequential(nn.Conv1d(2, 2, 1))(x).shape, (8, 2))
    for layer in (
        conv(padding="same"),
        conv(padding=2),
        conv(),
        nn.Conv1d(2, 2, 2, padding=((1, 0),), stride=2),
        nn.MaxPool1d(2),
        nn.BatchNorm1d(2),
        nn.LSTM(2, 2, bidirectional=True),
        nn.Residual(conv(padding="same")),
        nn.Flatten(),
    ):
        with pytest.raises(InputError, match=r"CausalSequential: layer 1[\s\S]*causal"):
            CausalSequential(nn.Linear(2, 2), layer)


# --- the language model


def log_prob(model, x, given=1):
    """log p(x_{given+1:} | x_{:given}), from one pass."""
    terms = F.cross_entropy(model(x[..., :-1]), x[..., 1:], reduction="none")
    return -terms[..., given - 1 :].sum(axis=-1)


@pytest.mark.book("8-70", "8-71", "8-72", "8-83", "8-84", name="wl.models.ConvLanguageModel")
def test_probabilities_of_all_sequences_sum_to_one():
    model = language_model(3)
    every = np.array(list(itertools.product(range(3), repeat=4)))
    texts = wl.asarray(np.concatenate([np.zeros((81, 1), int), every], axis=1))  # 0 is the token that begins a text
    logs = log_prob(model, texts)
    assert np.isfinite(logs).all()  # nothing is impossible
    assert wl.exp(logs).sum().item() == pytest.approx(1.0)
    # the product of conditional probabilities, each computed from its own prefix
    x = texts[40]
    chained = math.prod(wl.softmax(model(x[: i + 1])[-1])[x[i + 1].item()].item() for i in range(4))
    assert math.exp(logs[40].item()) == pytest.approx(chained)
    # conditioning on a prompt: log p(x | c) = log p(c, x) - log p(c), and the continuations of one prompt sum to 1
    np.testing.assert_allclose(log_prob(model, texts, given=3), logs - log_prob(model, texts[:, :3]), rtol=1e-8)
    same = (texts[:, 1] == 2) & (texts[:, 2] == 1)
    assert wl.exp(log_prob(model, texts, given=3))[same].sum().item() == pytest.approx(1.0)
    # thousands of tokens do not underflow
    assert -1e4 < log_prob(model, tokens(1000, vocabulary=3)).item() < -500


@pytest.mark.book("8-74", name=("wl.models.ConvLanguageModel", "wl.nn.functional.cross_entropy"))
def test_maximum_likelihood_is_cross_entropy():
    model, x = language_model(), tokens(3, 9)
    loss = F.cross_entropy(model(x[:, :-1]), x[:, 1:])
    assert loss.item() == pytest.approx(-log_prob(model, x).mean().item() / 8)
    model.net.head.weight = wl.zeros_like(model.net.head.weight)
    model.net.head.bias = wl.zeros_like(model.net.head.bias)
    assert F.cross_entropy(model(x[:, :-1]), x[:, 1:]).item() == pytest.approx(math.log(5))
    # padding does not count, and does not change what counts
    longer = wl.concat([x, tokens(3, 4, seed=1)], axis=1)
    targets = wl.where(wl.arange(12) < 8, longer[:, 1:], -100)
    model = language_model()
    masked = F.cross_entropy(model(longer[:, :-1]), targets, ignore_index=-100)
    assert masked.item() == pytest.approx(loss.item())


@pytest.mark.book("8-73", name="wl.models.ConvLanguageModel")
def test_it_cannot_cheat_on_random_tokens():
    x, fresh = tokens(32, 33, vocabulary=4), tokens(32, 33, vocabulary=4, seed=1)
    model = language_model(4, dilations=(1,))
    losses = train(model, lambda m: F.cross_entropy(m(x[:, :-1]), x[:, 1:]), 60)
    assert losses[-1] > 0.9 * math.log(4)
    assert F.cross_entropy(model(fresh[:, :-1]), fresh[:, 1:]).item() > math.log(4) - 0.02
    # without the shift it would see the answer
    model = language_model(4, dilations=(1,))
    assert train(model, lambda m: F.cross_entropy(m(x), x), 60, lr=0.03)[-1] < 0.1


@pytest.mark.book("8-85", "8-68", name=("wl.models.ConvLanguageModel.step", "wl.models.ConvLanguageModel"))
def test_the_capital_of_france():
    sentence = ["The", "capital", "of", "France", "is", "Paris"]
    words = sorted(set(sentence))
    ids = wl.asarray([words.index(word) for word in sentence])
    model = language_model(len(words), dtype=None)
    train(model, lambda m: F.cross_entropy(m(ids[:-1]), ids[1:]), 60, lr=0.03)
    logits, state = model.extend(ids[:4])  # the prompt at once
    found, scores = [], logits[-1]
    for _ in range(2):
        token = wl.argmax(scores)
        found.append(words[token.item()])
        scores, state = model.step(token, state)
    assert found == ["is", "Paris"]
    logits, _ = model.step(ids[0])  # from the first token alone
    assert words[wl.argmax(logits).item()] == "capital"


@pytest.mark.book(
    "8-54", "8-64", name=("wl.models.ConvLanguageModel", "wl.generation.greedy", "wl.generation.generate")
)
def test_it_writes_with_the_decoding_of_all_models():
    model, prompt = language_model(), tokens(3).tolist()
    expected = list(prompt)
    for _ in range(8):
        expected.append(wl.argmax(model(wl.asarray(expected))[-1]).item())
    np.testing.assert_array_equal(wl.generation.greedy(model, prompt, 8), expected)  # by steps
    whole = lambda tokens: model(tokens)
    np.testing.assert_array_equal(wl.generation.greedy(whole, prompt, 8), expected)
    drawn = [wl.generation.generate(m, prompt, 8, key=wl.random.key(3)).tolist() for m in (model, whole)]
    assert drawn[0] == drawn[1]
    x = tokens(2, 6)
    np.testing.assert_allclose(wl.generation.sequence_log_prob(model, x), log_prob(model, x), rtol=1e-9)


@pytest.mark.book("8-86", name="wl.models.ConvLanguageModel")
def test_anything_embedded_may_come_first():
    model = language_model()
    text, picture = tokens(2, 7), numbers(2, 4, 6)
    np.testing.assert_array_equal(model.net(model.embed(text)), model(text))
    both = model.net(wl.concat([picture, model.embed(text)], axis=-2))
    assert both.shape == (2, 11, 5)
    assert np.abs(both[:, 4:] - model(text)).max() > 1e-3  # the picture is seen by the text
    caption = wl.grad(lambda p: model.net(wl.concat([p, model.embed(text)], axis=-2))[:, 4].sum())(picture)
    assert np.abs(caption[:, -1]).max() > 0


def test_tokens_one_at_a_time_and_masks():
    model, x = language_model(kernel_size=3), tokens(2, 3, 10)  # two leading axes
    state, rows = None, []
    for i in range(10):
        logits, state = model.step(x[..., i], state)
        rows.append(logits)
    np.testing.assert_allclose(wl.stack(rows, axis=-2), model(x), rtol=1e-9)
    left = wl.concat([tokens(2, 3, 4, seed=3), x], axis=-1)
    mask = wl.broadcast_to(wl.arange(14) >= 4, (2, 3, 14))
    np.testing.assert_allclose(model(left, mask)[..., 4:, :], model(x), rtol=1e-9)


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: forecaster(dilations=()), InputError, "no dilations"),
        (lambda: forecaster(dilations=(1, 0)), InputError, "a dilation=0"),
        (lambda: forecaster(kernel_size=0), InputError, "kernel_size=0"),
        (lambda: forecaster()(wl.ones((5, 3))), ShapeError, r"shape \(5, 3\)[\s\S]*\(..., time, 2\)"),
        (lambda: forecaster()(wl.ones((0, 2))), ShapeError, "is empty"),
        (lambda: forecaster()(wl.ones((5, 2)), wl.ones(4)), ShapeError, r"mask of shape \(4,\) .* shape \(5,\)"),
        (lambda: forecaster().step(wl.ones(2), forecaster().new_cache(3)), ShapeError, "a cache of shapes"),
        (lambda: forecaster().step(wl.ones(2), ()), ShapeError, "a cache of shapes None"),
        (lambda: language_model()(wl.ones((2, 5))), DTypeError, "tokens of float32"),
        (lambda: language_model()(wl.tensor(3)), ShapeError, "one token is no sequence"),
        (lambda: language_model()(wl.tensor([3, 5])), IndexOutOfRange, "5"),
    ],
)
def test_bad_input(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
