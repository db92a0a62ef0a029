"""The chain rule: probabilities of sequences from those of tokens, and the metrics made of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import DTypeError, InputError, ShapeError
from wonderland.generation import conditional_log_prob, sequence_log_prob, token_log_probs

V = 3
MODEL = wl.models.ConvLanguageModel(V, channels=4, dilations=(1, 2), dtype=wl.float64, key=wl.random.key(0)).eval()


def all_sequences(length):
    return np.array(list(itertools.product(range(V), repeat=length)))


@pytest.mark.book("8-70", "A5-22", name="wl.generation.sequence_log_prob")
def test_probabilities_of_all_sequences_sum_to_one():
    for length in (1, 2, 4):
        log_p = sequence_log_prob(MODEL, all_sequences(length), bos=0)
        assert log_p.shape == (V**length,)
        assert float(wl.exp(log_p).sum()) == pytest.approx(1)


@pytest.mark.book("8-83", "8-84", "A5-30", name="wl.generation.conditional_log_prob")
def test_given_a_prompt():
    prompt = np.array([[1, 2, 0]])
    continuations = all_sequences(3)
    prompts = np.repeat(prompt, len(continuations), axis=0)
    log_p = conditional_log_prob(MODEL, prompts, continuations)
    assert float(wl.exp(log_p).sum()) == pytest.approx(1)
    both = np.concatenate([prompts, continuations], axis=1)
    joint = sequence_log_prob(MODEL, both, bos=1)
    np.testing.assert_allclose(
        conditional_log_prob(MODEL, prompts, continuations, bos=1).numpy(),
        (joint - sequence_log_prob(MODEL, prompts, bos=1)).numpy(),
        rtol=1e-9,
    )
    mask = np.zeros(both.shape, bool)
    mask[:, 3:] = True
    np.testing.assert_allclose(sequence_log_prob(MODEL, both, mask).numpy(), log_p.numpy(), rtol=1e-12)


@pytest.mark.book("8-72", name=("wl.generation.token_log_probs", "wl.generation.sequence_log_prob"))
def test_the_product_of_conditionals():
    tokens = np.array([[2, 0, 1, 1]])
    product = 1.0
    for i in range(4):
        logits = MODEL(wl.asarray(np.concatenate([[[0]], tokens[:, :i]], axis=1)))[0, -1].numpy()
        product *= np.exp(logits[tokens[0, i]]) / np.exp(logits).sum()
    assert float(wl.exp(sequence_log_prob(MODEL, tokens, bos=0))[0]) == pytest.approx(product)
    np.testing.assert_allclose(float(token_log_probs(MODEL, tokens, bos=0).sum()), math.log(product), rtol=1e-9)
    # the probability of a thousand tokens is 0 in floating point, its logarithm is not
    long = sequence_log_prob(lambda x: wl.zeros((*x.shape, 50)), np.zeros((1, 1000), int), bos=0)
    assert float(long[0]) == pytest.approx(-1000 * math.log(50), rel=1e-5)


@pytest.mark.book("8-71", name="wl.generation.sequence_log_prob")
def test_no_sequence_is_impossible():
    log_p = sequence_log_prob(MODEL, all_sequences(5), bos=0).numpy()
    assert np.isfinite(log_p).all()
    tt = np.full((1, 200), 2)  # "Scotttttt!"
    assert np.isfinite(sequence_log_prob(lambda x: MODEL(x) * 50, tt, bos=0).numpy()).all()


@pytest.mark.book("8-73", name="wl.generation.token_log_probs")
def test_a_token_cannot_help_to_predict_itself():
    copying = lambda tokens: wl.one_hot(tokens, V) * 100.0  # knows the token that it sees
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, V, size=(4, 300))
    assert -float(token_log_probs(copying, tokens, bos=0).mean()) > 30  # it bets on repetition and loses
    base = token_log_probs(MODEL, tokens, bos=0).numpy()
    changed = tokens.copy()
    changed[:, 200] = (changed[:, 200] + 1) % V
    other = token_log_probs(MODEL, changed, bos=0).numpy()
    np.testing.assert_array_equal(base[:, :200], other[:, :200])
    assert (base[:, 200] != other[:, 200]).all()
    # random tokens: nothing can be learned, and the loss of a model that does not cheat stays about log V
    table = wl.nn.Embedding(V, V, key=wl.random.key(0))
    optimizer = wl.optim.SGD(table, lr=1.0)
    for _ in range(40):
        grads = wl.grad(lambda m: -token_log_probs(m, tokens).mean())(table)
        optimizer.step(grads)
    assert -float(token_log_probs(table, rng.integers(0, V, size=(4, 300)), bos=0).mean()) > math.log(V) - 0.02


@pytest.mark.book("8-74", "A5-34", name=("wl.metrics.Perplexity", "wl.nn.functional.cross_entropy"))
def test_the_loss_of_language_models():
    uniform = wl.zeros((2, 4, V))
    targets = np.array([[0, 1, 2, 0], [1, -100, -100, -100]])
    loss = wl.nn.functional.cross_entropy(uniform, targets)
    assert float(loss) == pytest.approx(math.log(V), rel=1e-6)
    assert wl.metrics.Perplexity()(uniform, targets) == pytest.approx(V)
    assert wl.metrics.BitsPerCharacter()(uniform, targets) == pytest.approx(math.log2(V))
    assert wl.metrics.BitsPerCharacter(characters_per_token=2.5)(uniform, targets) == pytest.approx(math.log2(V) / 2.5)
    tokens = np.array([[2, 0, 1, 1, 2]])
    logits = MODEL(wl.asarray(tokens[:, :-1]))
    mean = wl.nn.functional.cross_entropy(logits, tokens[:, 1:])
    assert float(mean) == pytest.approx(-float(sequence_log_prob(MODEL, tokens)[0]) / 4)
    assert wl.metrics.NegativeLogLikelihood()(logits, tokens[:, 1:]) == pytest.approx(float(mean))


def test_metrics_over_batches_count_every_token_once():
    rng = np.random.default_rng(0)
    metric = wl.metrics.Perplexity()
    all_logits, all_targets = [], []
    for rows, time in ((2, 5), (1, 3), (4, 1)):
        logits, targets = rng.normal(size=(rows, time, 6)) * 30, rng.integers(0, 6, size=(rows, time))
        targets[0, -1] = -100
        metric.update(logits, targets)
        all_logits.append(logits.reshape(-1, 6))
        all_targets.append(targets.reshape(-1))
    z, y = np.concatenate(all_logits), np.concatenate(all_targets)
    z, y = z[y >= 0], y[y >= 0]
    log_p = z[np.arange(len(y)), y] - np.log(np.exp(z - z.max(1, keepdims=True)).sum(1)) - z.max(1)
    assert metric.compute() == pytest.approx(math.exp(-log_p.mean()))
    assert metric.name == "perplexity"
    assert not metric.higher_is_better
    with pytest.raises(InputError, match="the token 6 with logits for 6"):
        metric.update(np.zeros((1, 6)), np.array([6]))
    with pytest.raises(InputError, match="the token -1"):
        metric.update(np.zeros((1, 6)), np.array([-1]))
    with pytest.raises(ShapeError, match="logits of shape"):
        metric.update(np.zeros((2, 3, 6)), np.zeros((2, 4), int))
    with pytest.raises(InputError, match="type float"):
        metric.update(np.zeros((2, 6)), np.zeros(2))
    with pytest.raises(InputError, match="all targets are ignored"):
        wl.metrics.Perplexity()(np.zeros((1, 6)), np.array([-100]))
    with pytest.raises(InputError, match="characters_per_token=0"):
        wl.metrics.BitsPerCharacter(0)


def test_compiled_differentiated_and_masked():
    tokens = wl.asarray(all_sequences(3)[:4])
    eager = sequence_log_prob(MODEL, tokens, bos=0)
    compiled = wl.jit(lambda m, x: sequence_log_prob(m, x, bos=0))(MODEL, tokens)
    np.testing.assert_allclose(compiled.numpy(), eager.numpy(), rtol=1e-9)
    table = wl.asarray(np.random.default_rng(0).normal(size=(V, V)))
    wl.check_grads(lambda w: sequence_log_prob(lambda x: w[x], tokens, bos=0).sum(), table)
    padded = np.array([[1, 2, 0, 0], [2, 2, 1, 1]])
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1]])
    first = sequence_log_prob(MODEL, padded, mask, bos=0)[0]
    assert float(first) == pytest.approx(float(sequence_log_prob(MODEL, [[1, 2]], bos=0)[0]))
    assert token_log_probs(MODEL, [[1]]).tolist() == [[0.0]]


def test_bad_input():
    with pytest.raises(ShapeError, match=r"\(batch, time\)"):
        token_log_probs(MODEL, [1, 2])
    with pytest.raises(ShapeError, match=r"\(batch, time\)"):
        token_log_probs(MODEL, np.zeros((2, 0), int))
    with pytest.raises(DTypeError, match="tokens of float"):
        token_log_probs(MODEL, [[0.5]])
    with pytest.raises(ShapeError, match="a mask of shape"):
        sequence_log_prob(MODEL, [[1, 2]], [[True]])
    with pytest.raises(ShapeError, match="a prompt of shape"):
        conditional_log_prob(MODEL, [[1]], [[1], [2]])
    with pytest.raises(InputError, match="the prompt is empty"):
        conditional_log_prob(MODEL, np.zeros((1, 0), int), [[1]])
