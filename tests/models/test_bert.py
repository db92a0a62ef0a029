"""BERT: the logits of stored models of another library, masked language modelling, and tuning for tasks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from tests.models.promises import learns, same_when_compiled, survives_saving
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ShapeError

F = nn.functional
CHECKPOINTS = Path(__file__).resolve().parent.parent / "checkpoints"


def small(seed=0, **settings):
    return wl.models.BERT(20, 12, 8, 2, 2, dtype=wl.float64, key=wl.random.key(seed), **settings)


def ids(*shape, seed=0, low=5, high=20):
    return wl.asarray(np.random.default_rng(seed).integers(low, high, shape))


# --- stored models; tools/transformers_reference made them


def stored(name):
    folder = CHECKPOINTS / name
    expected = dict(np.load(folder / "expected.npz"))
    tensors = {path: np.asarray(value) for path, value in wl.load(str(folder / "model.safetensors")).items()}
    config = json.loads((folder / "config.json").read_text())
    bert = wl.models.BERT(
        config["vocab_size"], config["max_position_embeddings"], config["hidden_size"], config["num_attention_heads"],
        config["num_hidden_layers"], segments=config["type_vocab_size"], hidden=config["intermediate_size"],
        eps=config["layer_norm_eps"],
    )  # fmt: skip
    return bert, tensors, expected


def fill_linear(layer, tensors, path):
    layer.weight, layer.bias = wl.asarray(tensors[f"{path}.weight"].T.copy()), wl.asarray(tensors[f"{path}.bias"])


def fill_norm(layer, tensors, path):
    old = f"{path}.gamma" in tensors  # names of the first release
    layer.weight = wl.asarray(tensors[f"{path}.{'gamma' if old else 'weight'}"])
    layer.bias = wl.asarray(tensors[f"{path}.{'beta' if old else 'bias'}"])


def fill(bert, tensors):
    for layer, name in ((bert.tokens, "word"), (bert.positions, "position"), (bert.segments, "token_type")):
        layer.weight = wl.asarray(tensors[f"bert.embeddings.{name}_embeddings.weight"])
    fill_norm(bert.norm, tensors, "bert.embeddings.LayerNorm")
    fill_linear(bert.pooler, tensors, "bert.pooler.dense")
    for i, block in enumerate(bert.stack.blocks):
        at = f"bert.encoder.layer.{i}"
        for part in ("query", "key", "value"):
            fill_linear(getattr(block.attention, part), tensors, f"{at}.attention.self.{part}")
        fill_linear(block.attention.output, tensors, f"{at}.attention.output.dense")
        fill_norm(block.norm1, tensors, f"{at}.attention.output.LayerNorm")
        fill_linear(block.feed_forward.up, tensors, f"{at}.intermediate.dense")
        fill_linear(block.feed_forward.down, tensors, f"{at}.output.dense")
        fill_norm(block.norm2, tensors, f"{at}.output.LayerNorm")


@pytest.mark.book("A5-58", "11.39", name=("wl.models.BERT", "wl.models.MaskedLanguageModel"))
def test_logits_of_a_stored_model():
    bert, tensors, expected = stored("bert")
    fill(bert, tensors)
    model = wl.models.MaskedLanguageModel(bert)
    fill_linear(model.transform, tensors, "cls.predictions.transform.dense")
    fill_norm(model.norm, tensors, "cls.predictions.transform.LayerNorm")
    model.bias = wl.asarray(tensors["cls.predictions.bias"])
    tokens, segments, mask = (expected[f"right_{name}"] for name in ("tokens", "types", "mask"))
    real = mask == 1
    hidden = bert(tokens, segments, token_mask=mask)
    np.testing.assert_allclose(hidden[real], expected["right_hidden"][-1][real], atol=1e-5)
    np.testing.assert_allclose(
        model(tokens, segments, token_mask=mask)[real], expected["right_logits"][real], atol=1e-5
    )
    np.testing.assert_allclose(bert.embed(tokens, segments, token_mask=mask), expected["pooled"], atol=1e-5)
    lengths = real.sum(axis=1)
    np.testing.assert_allclose(bert.embed(tokens, segments, lengths=lengths), expected["pooled"], atol=1e-5)
    # the same texts with their padding in front
    shifts = tokens.shape[1] - lengths
    left = [
        np.stack([np.roll(row, shift) for row, shift in zip(a, shifts, strict=True)]) for a in (tokens, segments, mask)
    ]
    found = np.asarray(model(left[0], left[1], token_mask=left[2]).detach())
    np.testing.assert_allclose(found[left[2] == 1], expected["right_logits"][real], atol=1e-5)
    np.testing.assert_allclose(bert.embed(left[0], left[1], token_mask=left[2]), expected["pooled"], atol=1e-5)
    sentence = nn.Linear.from_matrix(
        tensors["cls.seq_relationship.weight"], tensors["cls.seq_relationship.bias"], layout="out in"
    )
    logits = sentence(bert.embed(tokens, segments, token_mask=mask))
    np.testing.assert_allclose(logits, expected["next_sentence_logits"], atol=1e-5)


@pytest.mark.book("A5-58", name="wl.models.SequenceClassifier")
def test_scores_of_a_stored_classifier():
    bert, tensors, expected = stored("bert_classifier")
    fill(bert, tensors)
    model = wl.models.SequenceClassifier(bert, 3)
    fill_linear(model.head, tensors, "classifier")
    tokens, segments, mask = (expected[f"right_{name}"] for name in ("tokens", "types", "mask"))
    np.testing.assert_allclose(model(tokens, segments, token_mask=mask), expected["logits"], atol=1e-5)
    assert model.num_parameters() == sum(tensor.size for tensor in tensors.values())


# --- the model


@pytest.mark.book("A5-58", name="wl.models.BERT")
def test_the_first_vectors_are_a_sum_of_three():
    bert = small()
    tokens, segments = ids(2, 6), wl.tensor([[0, 0, 0, 1, 1, 1]] * 2)
    summed = bert.tokens(tokens) + bert.positions.weight[:6] + bert.segments(segments)
    h = bert.norm(summed)
    for block in bert.stack.blocks:
        h = block(h)
    close_array(bert(tokens, segments), h)
    close_array(bert(tokens), bert(tokens, wl.zeros((2, 6), dtype=wl.int64)))
    e, layers = 8, 2
    parameters = (20 + 12 + 2) * e + 2 * e + layers * (12 * e**2 + 13 * e) + e**2 + e
    assert bert.num_parameters() == parameters
    assert wl.models.MaskedLanguageModel(bert).num_parameters() == parameters + e**2 + 3 * e + 20


@pytest.mark.book("A5-46", name="wl.models.BERT")
def test_a_word_has_another_vector_in_another_context():
    words = {word: i for i, word in enumerate(["the", "bank", "river", "money", "a"])}
    river, money = (wl.tensor([[words[w] for w in text.split()]]) for text in ("the river bank a", "the money bank a"))
    bert = small()
    first, second = bert(river)[0, 2].detach(), bert(money)[0, 2].detach()
    np.testing.assert_array_equal(bert.tokens(river)[0, 2], bert.tokens(money)[0, 2])
    assert np.abs(np.asarray(first - second)).max() > 1e-3


@pytest.mark.book("11.39", name=("wl.models.MaskedLanguageModel", "wl.nn.functional.mask_tokens"))
def test_masked_language_modelling():
    """The loss counts hidden places alone, and every token sees those on both sides."""
    model, text = wl.models.MaskedLanguageModel(small()), ids(4, 10)
    inputs, targets = F.mask_tokens(text, 0.3, mask_id=4, vocabulary_size=20, key=wl.random.key(0))
    chosen = np.asarray(targets) != -100
    assert 0 < chosen.sum() < chosen.size
    logits = model(inputs).detach()
    slopes = np.asarray(wl.grad(lambda z: F.cross_entropy(z, targets))(logits))
    assert np.abs(slopes[chosen]).max(axis=-1).min() > 0
    assert not slopes[~chosen].any()
    # both ways: the vector of a token in the middle depends on all
    for place in (0, 9):
        other = np.array(text)
        other[:, place] = 5 + (other[:, place] - 4) % 15
        assert np.abs(np.asarray((model(other) - model(text)).detach())[:, 5]).max() > 1e-9
    close_array(
        model(text),
        model.norm(wl.nn.functional.gelu(model.transform(model.bert(text)))) @ model.bert.tokens.weight.mT + model.bias,
    )


def test_it_learns_to_fill_in_and_then_to_classify():
    """Texts repeat their first token; what was learned without labels is kept for classes."""
    rng = np.random.default_rng(0)
    texts = np.repeat(rng.integers(5, 20, (16, 1)), 8, axis=1)
    model = wl.models.MaskedLanguageModel(wl.models.BERT(20, 12, 16, 2, 2, key=wl.random.key(0)), key=wl.random.key(1))
    inputs, targets = F.mask_tokens(texts, 0.3, mask_id=4, vocabulary_size=20, key=wl.random.key(0))
    first, last = learns(model, lambda m, x, y: F.cross_entropy(m(x), y), inputs, targets, steps=60, lr=1e-2)
    assert first == pytest.approx(np.log(20), rel=0.05)
    assert last < 0.2
    classifier = wl.models.SequenceClassifier(model.bert, 2, key=wl.random.key(2))
    classifier.bert.freeze_below(1)
    lower = model.bert.stack.blocks[0].attention.query.weight.detach()
    upper = model.bert.stack.blocks[1].attention.query.weight.detach()
    labels = wl.asarray(texts[:, 0] % 2)
    _, last = learns(classifier, lambda m, x, y: F.cross_entropy(m(x), y), wl.asarray(texts), labels, steps=60, lr=5e-3)
    assert last < 0.1
    np.testing.assert_array_equal(model.bert.stack.blocks[0].attention.query.weight, lower)
    assert not np.array_equal(model.bert.stack.blocks[1].attention.query.weight.detach(), upper)
    assert all(p.trainable for p in classifier.unfreeze().parameters())


def test_rates_fall_from_the_head_down():
    model = wl.models.TokenClassifier(small(), 3)
    groups = wl.models.fine_tuning_groups(model, 1e-2, decay=0.5)
    assert [group["lr"] for group in groups] == [1e-2 * 0.5**k for k in (3, 2, 1, 0)]
    assert sum(len(group["params"]) for group in groups) == len(model.named_parameters())
    names = [{path.split(".")[1] for path, _ in group["params"]} for group in groups]
    assert names == [{"tokens", "positions", "segments", "norm"}, {"stack"}, {"stack"}, {"pooler", "weight", "bias"}]
    before = model.bert.tokens.weight.detach()
    optimizer = wl.optim.SGD(groups, lr=1e-2)
    grads = wl.grad(lambda m: (m(ids(2, 5)) ** 2).sum())(model)
    optimizer.step(grads)
    close_array(model.bert.tokens.weight.detach(), before - 1e-2 / 8 * grads["bert.tokens.weight"], 1000)


@pytest.mark.parametrize("head", [None, wl.models.MaskedLanguageModel, wl.models.SequenceClassifier])
def test_compiled_and_saved(head, tmp_path):
    def make(seed):
        if head is None:
            return small(seed)
        key = wl.random.key(seed + 5)
        return (
            head(small(seed), dtype=wl.float64, key=key)
            if head is wl.models.MaskedLanguageModel
            else head(small(seed), 3, dtype=wl.float64, key=key)
        )

    same_when_compiled(make(0), ids(2, 6), None, wl.tensor([[True] * 6, [True] * 4 + [False] * 2]))
    survives_saving(make, tmp_path, ids(2, 6))


def test_padding_may_be_any_number():
    model = wl.models.TokenClassifier(small(), 3, dtype=wl.float64)
    tokens = np.array(ids(2, 6))
    tokens[1, 4:] = -1000
    y = model(tokens, lengths=[6, 4])
    close_array(y[1, :4], model(tokens[1:, :4])[0], 1000)


@pytest.mark.book("11.40", name="wl.models.BERT")
def test_it_does_not_write_text():
    models = wl.models
    kinds = (models.BERT, models.MaskedLanguageModel, models.SequenceClassifier, models.TransformerEncoder)
    assert not any(kind.generates for kind in kinds)
    with pytest.raises(InputError, match="generate"):
        wl.generation.generate(models.MaskedLanguageModel(small()), [1, 2, 3], 5)


def test_errors():
    bert = small()
    with pytest.raises(DTypeError, match="tokens of float64"):
        bert(np.ones((2, 3)))
    with pytest.raises(InputError, match="at most 12"):
        bert(ids(1, 13))
    with pytest.raises(ShapeError, match="an integer for each token"):
        bert(ids(2, 3), wl.zeros((2, 4), dtype=wl.int64))
    with pytest.raises(InputError, match="no pooler"):
        small(pooler=False).embed(ids(1, 3))
    with pytest.raises(InputError, match="3 blocks to freeze of 2"):
        bert.freeze_below(3)
