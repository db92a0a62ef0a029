"""What all encoder-decoder models promise: masks, caches, causality, compiled code, files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from wonderland import models, nn
from wonderland.errors import DTypeError, InputError, ShapeError
from wonderland.storage import safetensors

SIZE: dict[str, Any] = {"embed_dim": 16, "encoder_layers": 2, "decoder_layers": 1, "dtype": wl.float64}
MODELS = {
    "post-norm": lambda **more: models.Seq2SeqTransformer(11, num_heads=2, dropout=0.0, **SIZE | more),
    "pre-norm": lambda **more: models.Seq2SeqTransformer(
        11, 11, num_heads=4, norm_first=True, tied=False, positions="learned", context=32, dropout=0.0, **SIZE | more
    ),
    "t5": lambda **more: with_biases(
        models.T5(11, num_heads=2, buckets=8, max_distance=10, start_token=1, **SIZE | more)
    ),
    "t5 gated": lambda **more: with_biases(
        models.T5(11, num_heads=2, head_size=5, gated=True, tied=False, **SIZE | more)
    ),
    "thought vector": lambda **more: models.RNNSeq2Seq(11, hidden_size=8, attention=False, **SIZE | more),
    "bahdanau": lambda **more: models.RNNSeq2Seq(
        11, 11, hidden_size=8, cell="lstm", **SIZE | {"decoder_layers": 2} | more
    ),
    "whisper": lambda **more: models.Whisper(11, bands=3, encoder_heads=2, frames=20, context=30, **SIZE | more),
}
EACH = pytest.mark.parametrize("name", MODELS)


def with_biases(model):
    """Biases of distances that are not 0."""
    for stack in (model.encoder, model.decoder):
        bias = stack.blocks[0].attention.positions
        bias.weight = wl.random.normal(bias.weight.shape, key=wl.random.key(5), dtype=wl.float64)
    return model


def made(name, **more):
    return MODELS[name](key=wl.random.key(0), **more)


def batch(name, rows=3, s=8, t=6, seed=0):
    rng = np.random.default_rng(seed)
    source = rng.normal(size=(rows, s, 3)) if name == "whisper" else rng.integers(0, 11, (rows, s))
    return source, rng.integers(0, 11, (rows, t))


def seen_in(cache):
    """What a cache keeps of the source: keys and values, or the annotations of a recurrent encoder."""
    return {path: np.asarray(value).copy() for path, value in cache.state_dict().items() if "memory" in path}


# --- the whole


@EACH
@pytest.mark.book("11.17", "A5-28", "A5-59", name="wl.models.EncoderDecoder")
def test_shapes_and_what_depends_on_what(name):
    model = made(name)
    source, tokens = batch(name)
    logits = model(source, tokens)
    assert logits.shape == (3, 6, 11)  # as long as what is written
    memory = model.encode(source)
    assert memory.shape == (3, 4 if name == "whisper" else 8, 16)
    close_array(model.decode(tokens, memory), logits)
    # no logit sees later tokens, each sees its own and earlier ones
    for i in range(6):
        other = tokens.copy()
        other[:, i] = (other[:, i] + 1) % 11
        changed = np.abs(model(source, other) - logits).max(axis=(0, 2)) > 1e-9
        assert changed.tolist() == [False] * i + [True] * (6 - i)
    # every logit sees every place of the source, and another source means other probabilities
    for i in range(8):
        other = source.copy()
        other[:, i] = (other[:, i] + 1) % 11
        assert np.all(np.abs(model(other, tokens) - logits).max(axis=(0, 2)) > 1e-9)


@EACH
@pytest.mark.book("11.19", name=["wl.models.EncoderDecoder", "wl.series.shift_right"])
def test_with_teacher_forcing_a_loss_sees_only_the_targets_before(name):
    model = made(name)
    source, labels = batch(name)

    def losses(targets):
        tokens = wl.series.shift_right(targets, start=model.start_token)
        return nn.functional.cross_entropy(model(source, tokens), labels, reduction="none")

    before = losses(labels)
    for i in range(6):
        other = labels.copy()
        other[:, i] = (other[:, i] + 1) % 11
        changed = np.abs(losses(other) - before).max(axis=0) > 1e-9
        assert not changed[: i + 1].any()
        assert changed[i + 1 :].all()


@EACH
@pytest.mark.book("11.18", name="wl.models.EncoderDecoder")
def test_padding_changes_nothing(name):
    """Neither how much there is nor what stands in it, NaN among it; and the loss leaves it out."""
    model = made(name)
    source, tokens = batch(name)
    counts, written = [8, 5, 2], [6, 1, 4]
    padding = np.nan if name == "whisper" else 999
    for more in (0, 3):
        wide = np.concatenate([source, np.zeros((3, more, *source.shape[2:]), source.dtype)], axis=1)
        longer = np.concatenate([tokens, np.zeros((3, more), np.int64)], axis=1)
        for i in range(3):
            wide[i, counts[i] :] = padding
            longer[i, written[i] :] = -7
        logits = model(wide, longer, source_lengths=counts, lengths=written)
        mask = np.arange(8 + more) < np.array(counts)[:, None]
        real = np.arange(6 + more) < np.array(written)[:, None]
        close_array(model(wide, longer, source_mask=mask, token_mask=real), logits)
        targets = np.where(real, longer, -100)
        loss = nn.functional.cross_entropy(logits, targets, reduction="sum")
        alone = 0.0
        for i, (n, m) in enumerate(zip(counts, written, strict=True)):
            expected = model(source[i : i + 1, :n], tokens[i : i + 1, :m])
            close_array(logits[i, :m], expected[0], 1000)
            alone += nn.functional.cross_entropy(expected, tokens[i : i + 1, :m], reduction="sum").item()
        assert loss.item() == pytest.approx(alone)
    gradient = wl.grad(lambda m: nn.functional.cross_entropy(m(wide, longer, None, counts, None, written), targets))
    assert all(np.isfinite(np.asarray(g)).all() for g in gradient(model).values())


@pytest.mark.parametrize("name", [name for name in MODELS if name != "whisper"])
@pytest.mark.book("11.18", name="wl.models.EncoderDecoder")
def test_padding_may_come_first(name):
    model = made(name)
    source, tokens = batch(name)
    ahead = np.concatenate([np.full((3, 2), 77), source], axis=1)
    before = np.concatenate([np.full((3, 3), 77), tokens], axis=1)
    mask, real = np.arange(10) >= 2, np.arange(9) >= 3
    masks = {"source_mask": np.tile(mask, (3, 1)), "token_mask": np.tile(real, (3, 1))}
    close_array(model(ahead, before, **masks)[:, 3:], model(source, tokens), 1000)


@EACH
def test_an_empty_source_is_allowed(name):
    """Its row gets what no memory gives, which is finite; other rows do not notice."""
    model = made(name)
    source, tokens = batch(name)
    logits = model(source, tokens, source_lengths=[8, 0, 8])
    assert np.isfinite(logits).all()
    close_array(logits[::2], model(source, tokens)[::2], 1000)


# --- reading on


@EACH
@pytest.mark.book("A5-59", name="wl.models.EncoderDecoder.extend")
def test_reading_on_gives_the_logits_of_the_whole(name):
    model = made(name)
    source, tokens = batch(name, t=9)
    counts = [8, 3, 5]
    whole = model(source, tokens, source_lengths=counts)
    memory, real = model.encode(source, lengths=counts), model.memory_mask(source, lengths=counts)
    cache = model.new_cache(3, 9, memory, real)
    first, cache = model.extend(tokens[:, :4], cache)
    close_array(first, whole[:, :4], 1000)
    for i in (4, 5):
        one, cache = model.step(tokens[:, i], cache)
        close_array(one, whole[:, i], 1000)
    last, cache = model.extend(tokens[:, 6:], cache, last=True)
    close_array(last, whole[:, 8], 1000)
    assert cache.lengths.tolist() == [9, 9, 9]


@EACH
def test_rows_read_on_by_different_numbers_and_change_places(name):
    model = made(name)
    source, tokens = batch(name, t=9)
    whole = model(source, tokens)
    cache = model.new_cache(3, 9, model.encode(source))
    counts = np.array([4, 0, 2])
    padded = np.where(np.arange(4) < counts[:, None], tokens[:, :4], -3)
    last, cache = model.extend(padded, cache, lengths=counts, last=True)
    close_array(last[::2], whole[[0, 2], [3, 1]], 1000)
    cache.reorder([2, 0, 2])
    one, cache = model.step(tokens[[2, 0, 2], [2, 4, 2]], cache)
    close_array(one, whole[[2, 0, 2], [2, 4, 2]], 1000)


def test_padding_beyond_the_context_is_no_place():
    model = models.Seq2SeqTransformer(11, num_heads=2, positions="learned", context=5, dropout=0.0, **SIZE)
    source, tokens = batch("post-norm", s=5, t=4)
    _, cache = model.extend(tokens[:, :3], model.new_cache(3, 8, model.encode(source)))
    wide = np.concatenate([tokens[:, 3:], np.zeros((3, 3), np.int64)], axis=1)  # places 3, ..., 6
    last, _ = model.extend(wide, cache, lengths=[1, 1, 1], last=True)
    close_array(last, model(source, tokens)[:, 3], 1000)


@pytest.mark.parametrize(
    "name", ["post-norm", "t5", "thought vector", "bahdanau", "whisper"]
)  # compiling takes seconds
def test_compiled_is_eager(name):
    model = made(name)
    source, tokens = batch(name)
    counts = np.array([8, 5, 3])
    logits = model(source, tokens, source_lengths=counts)
    compiled = wl.jit(lambda model, x, y, n: model(x, y, source_lengths=n))
    close_array(compiled(model, source, tokens, counts), logits, 1000)
    step = wl.jit(lambda model, token, cache: model.step(token, cache)[0])
    cache = model.new_cache(3, 6, model.encode(source, lengths=counts), model.memory_mask(source, lengths=counts))
    for i in range(6):
        close_array(step(model, tokens[:, i], cache), logits[:, i], 1000)
    assert cache.lengths.tolist() == [6, 6, 6]


@EACH
@pytest.mark.book("11.02", name=["wl.models.EncoderDecoder.encode", "wl.models.EncoderDecoder.step"])
def test_the_source_is_encoded_once_for_all_that_is_written(name):
    model = made(name)
    source, _ = batch(name)
    calls = []
    with model.encoder.register_forward_hook(lambda *_: calls.append("encoder")):
        cache = model.new_cache(3, 20, model.encode(source))
        before = seen_in(cache)
        token = wl.full((3,), model.start_token)
        for _ in range(20):
            logits, cache = model.step(token, cache)
            token = logits.argmax(-1)
    assert calls == ["encoder"]
    assert bool(before) == (name != "thought vector")
    for path, value in seen_in(cache).items():
        np.testing.assert_array_equal(value, before[path])


# --- learning, files, errors


@EACH
def test_every_parameter_is_learned(name):
    model = made(name)
    source, tokens = batch(name)
    grads = wl.grad(lambda m: (m(source, tokens) ** 2).mean())(model)
    fixed = {"source_positions.weight"} if name == "whisper" else set()
    assert set(grads) == set(model.state_dict()) - fixed
    for path, gradient in grads.items():
        largest = np.abs(np.asarray(gradient)).max()
        # the bias of keys adds the same to all scores of a query
        assert largest < 1e-12 if path.endswith("key.bias") else largest > 1e-12, path


@EACH
def test_saved_and_loaded(name, tmp_path):
    model, other = made(name), MODELS[name](key=wl.random.key(9))
    source, tokens = batch(name)
    safetensors.save(model, tmp_path / "model.safetensors")
    other.load_state_dict(safetensors.load(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(other(source, tokens), model(source, tokens))


@EACH
def test_the_same_key_gives_the_same_model(name):
    first, second = made(name), made(name)
    for path, value in first.state_dict().items():
        np.testing.assert_array_equal(value, second.state_dict()[path])
    assert all(value.dtype == wl.float64 for value in first.state_dict().values())


@EACH
def test_what_is_refused(name):
    model = made(name)
    source, tokens = batch(name)
    with pytest.raises(DTypeError, match="tokens of float64"):
        model(source, tokens * 1.0)
    with pytest.raises(ShapeError, match=r"tokens\[None\]"):
        model(source, tokens[0])
    with pytest.raises(ShapeError):
        model(source[0], tokens)
    with pytest.raises(InputError, match=r"model\.encode"):
        model.extend(tokens, None)
    with pytest.raises(ShapeError, match="2 rows, a memory of 3"):
        model.new_cache(2, 5, model.encode(source))
    with pytest.raises(InputError, match="one of them"):
        model(source, tokens, source_lengths=[1, 1, 1], source_mask=np.ones((3, 8), bool))
    if model.context is not None:
        with pytest.raises(InputError, match="context of"):
            model(source, np.zeros((3, 33), np.int64))
