"""The original transformer against its formulas, its two halves, and what it learns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from tests.test_examples import example
from wonderland import models, nn
from wonderland.errors import InputError, ShapeError

F = nn.functional
SIZE: dict[str, Any] = {"embed_dim": 16, "num_heads": 2, "dropout": 0.0, "dtype": wl.float64}


def small(**more):
    return models.Seq2SeqTransformer(11, encoder_layers=2, decoder_layers=2, key=wl.random.key(0), **SIZE | more)


# --- the formulas, in NumPy


def numpy_linear(layer, x):
    return x @ np.asarray(layer.weight) + np.asarray(layer.bias)


def numpy_norm(layer, x):
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + layer.eps)
    return scaled * np.asarray(layer.weight) + np.asarray(layer.bias)


def numpy_attention(layer, x, z, causal=False):
    """Queries from x, keys and values from z, head by head."""
    q, k, v = numpy_linear(layer.query, x), numpy_linear(layer.key, z), numpy_linear(layer.value, z)
    found = []
    for i in range(layer.num_heads):
        part = slice(i * layer.key_size, (i + 1) * layer.key_size)
        scores = q[..., part] @ np.swapaxes(k[..., part], -1, -2) / math.sqrt(layer.key_size)
        if causal:
            scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        found.append(weights / weights.sum(-1, keepdims=True) @ v[..., part])
    return numpy_linear(layer.output, np.concatenate(found, -1))


def numpy_mlp(layer, x):
    return numpy_linear(layer.down, np.maximum(numpy_linear(layer.up, x), 0))


def numpy_embedded(model, tokens):
    e, places = model.embed_dim, np.arange(tokens.shape[1])[:, None]
    angles = places * 10_000.0 ** (-np.arange(0, e, 2) / e)
    sinusoids = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(-1, e)
    return np.asarray(model.tokens.weight)[tokens] * math.sqrt(e) + sinusoids


@pytest.mark.book("11.17", "A5-59", "A5-63", name="wl.models.Seq2SeqTransformer")
def test_the_formulas_of_the_original():
    """Three sublayers in a block of the decoder, each with a residual and a norm; keys and values from the encoder."""
    model = small()
    rng = np.random.default_rng(0)
    source, tokens = rng.integers(0, 11, (3, 7)), rng.integers(0, 11, (3, 5))
    memory = numpy_embedded(model, source)
    for block in model.encoder.blocks:
        memory = numpy_norm(block.norm1, memory + numpy_attention(block.attention, memory, memory))
        memory = numpy_norm(block.norm2, memory + numpy_mlp(block.feed_forward, memory))
    close_array(model.encode(source), memory, 1000)
    h = numpy_embedded(model, tokens)
    for block in model.decoder.blocks:
        h = numpy_norm(block.norm1, h + numpy_attention(block.attention, h, h, causal=True))
        h = numpy_norm(block.norm_cross, h + numpy_attention(block.cross, h, memory))
        h = numpy_norm(block.norm2, h + numpy_mlp(block.feed_forward, h))
    close_array(model(source, tokens), h @ np.asarray(model.tokens.weight).T, 1000)


@pytest.mark.book("11.17", name="wl.models.Seq2SeqTransformer")
def test_norms_may_come_first():
    model = small(norm_first=True)
    rng = np.random.default_rng(0)
    source, tokens = rng.integers(0, 11, (3, 7)), rng.integers(0, 11, (3, 5))
    memory = numpy_embedded(model, source)
    for block in model.encoder.blocks:
        x = numpy_norm(block.norm1, memory)
        memory = memory + numpy_attention(block.attention, x, x)
        memory = memory + numpy_mlp(block.feed_forward, numpy_norm(block.norm2, memory))
    memory, h = numpy_norm(model.encoder.norm, memory), numpy_embedded(model, tokens)
    for block in model.decoder.blocks:
        x = numpy_norm(block.norm1, h)
        h = h + numpy_attention(block.attention, x, x, causal=True)
        h = h + numpy_attention(block.cross, numpy_norm(block.norm_cross, h), memory)
        h = h + numpy_mlp(block.feed_forward, numpy_norm(block.norm2, h))
    close_array(model(source, tokens), numpy_norm(model.decoder.norm, h) @ np.asarray(model.tokens.weight).T, 1000)


@pytest.mark.book("A5-63", name=["wl.nn.TransformerBlock", "wl.models.EncoderDecoder.decode"])
def test_the_order_of_the_memory_does_not_matter():
    """Nothing but their own contents tells the tokens of the memory apart."""
    model = small()
    rng = np.random.default_rng(0)
    memory, tokens = rng.normal(size=(3, 7, 16)), rng.integers(0, 11, (3, 5))
    real = rng.random((3, 7)) < 0.7
    order = rng.permutation(7)
    expected = model.decode(tokens, memory, real)
    close_array(model.decode(tokens, memory[:, order], real[:, order]), expected, 1000)
    for s in (1, 2, 12):  # any length of either
        assert model.decode(tokens, rng.normal(size=(3, s, 16))).shape == (3, 5, 11)


def test_numbers_of_parameters():
    def count(V, e, p, L, D):
        return V * e + L * (4 * e * e + 2 * e * p + p + 9 * e) + D * (8 * e * e + 2 * e * p + p + 15 * e)

    assert small().num_parameters() == count(11, 16, 64, 2, 2)
    assert small(hidden=50, norm_first=True).num_parameters() == count(11, 16, 50, 2, 2) + 4 * 16
    assert small(tied=False).num_parameters() == count(11, 16, 64, 2, 2) + 11 * 16
    own = models.Seq2SeqTransformer(11, 20, encoder_layers=3, decoder_layers=1, **SIZE)
    assert own.num_parameters() == count(11, 16, 64, 3, 1) + 20 * 16
    base = wl.eval_shape(lambda: models.Seq2SeqTransformer(37_000))
    assert base.num_parameters() == count(37_000, 512, 2048, 6, 6)
    assert base.num_parameters() == pytest.approx(63e6, rel=0.01)  # "65 million", the authors say


def test_the_first_loss_is_near_that_of_chance():
    wl.random.seed(0)
    model = models.Seq2SeqTransformer(1000, embed_dim=64, num_heads=4, encoder_layers=2, decoder_layers=2, dropout=0.0)
    tokens = np.random.default_rng(0).integers(0, 1000, (8, 30))
    logits = model(tokens, wl.series.shift_right(tokens, start=1))
    assert 0 < F.cross_entropy(logits, tokens).item() - math.log(1000) < 1  # logits of size 1


def test_dropout_acts_while_training_only():
    model = small(dropout=0.3)
    source = np.arange(10).reshape(2, 5)
    assert not np.array_equal(model(source, source), model(source, source))
    model.eval()
    np.testing.assert_array_equal(model(source, source), model(source, source))


def test_settings_that_are_refused():
    with pytest.raises(InputError, match="no context"):
        small(positions="learned")
    with pytest.raises(InputError, match='"sinusoidal" or "learned"'):
        small(positions="rotary")
    with pytest.raises(InputError, match="start_token=11 of 11"):
        small(start_token=11)
    with pytest.raises(InputError, match="'encoder-only' or 'decoder-only' or 'encoder-decoder'"):
        models.transformer("encoder", 11)


# --- the three kinds


@pytest.mark.book("11.03", "A5-03", name=["wl.models.transformer", "wl.models.EncoderOnly", "wl.models.DecoderOnly"])
def test_three_kinds_of_the_same_blocks():
    """One word chooses; what two of them have has one name, and the same weights do the same."""
    size = SIZE | {"norm_first": True}
    whole = models.transformer("encoder-decoder", 11, encoder_layers=2, decoder_layers=2, **size)
    encoder = models.transformer("encoder-only", 11, encoder_layers=2, **size)
    decoder = models.transformer("decoder-only", 11, decoder_layers=2, **size)
    kinds = (models.Seq2SeqTransformer, models.EncoderOnly, models.DecoderOnly)
    assert tuple(map(type, (whole, encoder, decoder))) == kinds
    names = whole.state_dict()
    halves = encoder.state_dict() | decoder.state_dict()
    assert set(halves) <= set(names)
    assert all("cross" in name for name in set(names) - set(halves))
    assert all(value.shape == names[path].shape for path, value in halves.items())
    tokens = np.random.default_rng(0).integers(0, 11, (3, 7))
    encoder.load_state_dict({path: names[path] for path in encoder.state_dict()})
    close_array(encoder(tokens), whole.encode(tokens))
    decoder.load_state_dict({path: names[path] for path in decoder.state_dict()})
    for block in whole.decoder.blocks:  # an attention that adds nothing
        block.cross.output.weight, block.cross.output.bias = block.cross.output.weight * 0, block.cross.output.bias * 0
    close_array(decoder(tokens), whole(tokens, tokens))


@pytest.mark.book("11.20", name=["wl.models.DecoderOnly", "wl.nn.TransformerBlock"])
def test_a_decoder_without_attention_to_a_memory_is_a_stack_of_causal_blocks():
    model = models.DecoderOnly(11, decoder_layers=2, **SIZE)
    tokens = np.random.default_rng(0).integers(0, 11, (3, 7))
    h = wl.asarray(numpy_embedded(model, tokens))
    for block in model.decoder.blocks:
        plain = nn.TransformerBlock(16, 2, activation="relu", causal=True, norm_first=False, dtype=wl.float64)
        plain.load_state_dict(block.state_dict())
        h = plain(h)
    close_array(model(tokens), h @ model.tokens.weight.T)
    cache = model.new_cache(3, 7)
    for i in range(7):
        logits, cache = model.step(tokens[:, i], cache)
        close_array(logits, model(tokens)[:, i], 1000)
    assert model.num_parameters() == 11 * 16 + 2 * (4 * 256 + 2 * 16 * 64 + 64 + 9 * 16)


@pytest.mark.book("11.03", "11.18", name="wl.models.EncoderOnly")
def test_classes_are_those_of_the_real_tokens():
    model = models.EncoderOnly(11, classes=3, encoder_layers=2, **SIZE)
    tokens = np.random.default_rng(0).integers(0, 11, (3, 7))
    counts = [7, 3, 1]
    for padding in (0, 99, -1):
        found = model(np.where(np.arange(7) < np.array(counts)[:, None], tokens, padding), lengths=counts)
        assert found.shape == (3, 3)
        for i, n in enumerate(counts):
            close_array(found[i], model(tokens[i : i + 1, :n])[0], 1000)
    assert models.EncoderOnly(11, encoder_layers=2, **SIZE).num_parameters() == 11 * 16 + 2 * (
        4 * 256 + 2 * 16 * 64 + 64 + 9 * 16
    )


@pytest.mark.book("A5-33", name=["wl.nn.functional.prefix_mask", "wl.nn.TransformerStack"])
def test_a_prefix_is_read_both_ways():
    """The third of the table: one stack, whose tokens see all of the input and what was written before them."""
    mask = F.prefix_mask(6, 3)
    assert mask[:, :3].all()
    np.testing.assert_array_equal(mask[3:, 3:], np.tri(3, dtype=bool))
    assert not mask[:3, 3:].any()
    causal = [nn.TransformerBlock(8, 2, causal=True, dtype=wl.float64) for _ in range(2)]
    blocks = [nn.TransformerBlock(8, 2, dtype=wl.float64) for _ in range(2)]
    for ours, theirs in zip(blocks, causal, strict=True):
        ours.load_state_dict(theirs.state_dict())  # the same parameters as a decoder has
    stack, decoder = nn.TransformerStack(blocks), nn.TransformerStack(causal)
    x = np.random.default_rng(0).normal(size=(2, 6, 8))
    close_array(stack(x, attn_mask=F.prefix_mask(6, 0)), decoder(x))
    flow = np.abs(wl.jacobian(lambda x: stack(x, attn_mask=mask))(wl.asarray(x[:1]))).max(axis=(0, 2, 3, 5)) > 1e-12
    np.testing.assert_array_equal(flow, mask)


# --- learning


@pytest.mark.book("11.21", name=["wl.series.next_tokens", "wl.models.DecoderOnly"])
def test_a_prompt_is_not_learned():
    """Source, separator and target in a row: only the target's tokens are terms of the loss."""
    model = models.DecoderOnly(11, decoder_layers=1, **SIZE)
    rng = np.random.default_rng(0)
    tokens, prompts, lengths = rng.integers(0, 11, (3, 8)), np.array([4, 2, 6]), np.array([8, 5, 7])
    targets = np.asarray(wl.series.next_tokens(tokens, prompts, lengths))
    logits = wl.asarray(np.asarray(model(tokens)))
    gradient = wl.grad(lambda z: F.cross_entropy(z, targets, reduction="sum"))(logits)
    probabilities = np.asarray(F.softmax(logits))
    for row, (prompt, length) in enumerate(zip(prompts, lengths, strict=True)):
        for i in range(8):
            if prompt <= i + 1 < length:  # the next token is one of the target's
                assert targets[row, i] == tokens[row, i + 1]
                expected = probabilities[row, i] - np.eye(11)[tokens[row, i + 1]]
            else:
                assert targets[row, i] == -100
                expected = np.zeros(11)
            np.testing.assert_allclose(gradient[row, i], expected, atol=1e-12)
    mask = targets != -100
    following = np.roll(tokens, -1, axis=1)
    loss = wl.series.sequence_loss(logits, following, mask, loss=F.cross_entropy)
    assert loss.item() == pytest.approx(F.cross_entropy(logits, targets).item())


def test_next_tokens_without_prompts_are_all():
    tokens = np.array([[5, 6, 7], [8, 9, 3]])
    assert wl.series.next_tokens(tokens).tolist() == [[6, 7, -100], [9, 3, -100]]
    assert wl.series.next_tokens(tokens, 2, ignore_index=-1).tolist() == [[-1, 7, -1], [-1, 3, -1]]
    with pytest.raises(ShapeError, match=r"integers \(batch, time\)"):
        wl.series.next_tokens(tokens[0])
    with pytest.raises(ShapeError, match="one integer, or 2 of them"):
        wl.series.next_tokens(tokens, [1, 2, 3])


@pytest.mark.book("11.01", "11.19", name=["examples/sequence_tasks.py", "wl.models.Seq2SeqTransformer"])
def test_it_learns_to_copy():
    """A small version of the example, whose tasks of 20 digits take minutes: examples that it learned, and others."""
    module = example("sequence_tasks")
    wl.random.seed(0)
    pairs = wl.data.make_copy_task(9600, 4, split="train")
    train, test = module.padded(pairs), module.padded(wl.data.make_copy_task(200, 4, split="test", seed=1))
    model = models.Seq2SeqTransformer(
        pairs.vocab_size, embed_dim=32, num_heads=2, encoder_layers=1, decoder_layers=1, norm_first=True, dropout=0.0
    )
    module.fit(model, train, 300, batch=32, lr=2e-3, progress=False)
    for source, targets in ((train[0][:200], train[1][:200]), test):
        assert module.share_right(module.written(model, source, 5), targets) > 0.9
