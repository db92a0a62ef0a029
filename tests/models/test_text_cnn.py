"""Convolutional text classifiers: the book's box, several widths, padding, short texts, training."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, IndexOutOfRange, InputError, ShapeError
from wonderland.models import KimCNN, TextCNN
from wonderland.nn.sequences.token_masks import pooled

F = nn.functional
F64 = wl.float64
KINDS = [TextCNN, KimCNN]


def tokens(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).integers(0, 16, shape))


def make(kind, **settings):
    return kind(16, 8, 3, dtype=F64, key=wl.random.key(0), **settings).eval()


@pytest.mark.book("8-41", "8-40", name="wl.models.TextCNN")
def test_the_box_of_the_book():
    model, x = TextCNN(16, 8, 10, dtype=F64), tokens(4, 9)
    assert model.num_parameters() == 16 * 8 + 160 * 8 + 32 + 10304 + 650 == 12394
    h = model.embed(x)
    assert h.shape == (4, 9, 8)
    h = wl.relu(model.conv1(h))
    assert h.shape == (4, 9, 32)
    h = F.max_pool1d(h, 2)
    assert h.shape == (4, 4, 32)  # of an odd number of places the last is not pooled
    h = wl.relu(model.conv2(h))
    assert h.shape == (4, 4, 64)
    np.testing.assert_allclose(model.encode(x), wl.mean(h, axis=1), rtol=1e-12)
    np.testing.assert_allclose(model(x), model.head(wl.mean(h, axis=1)), rtol=1e-12)
    np.testing.assert_allclose(wl.jit(lambda m, x: m(x))(model, x), model(x), rtol=1e-10)


def test_several_widths_by_their_formula():
    model, x = make(KimCNN, channels=4, widths=(2, 3)), tokens(7)
    e = model.embed(x).numpy()
    found = []
    for width, conv in zip((2, 3), model.convs, strict=True):
        low = (width - 1) // 2
        padded = np.pad(e, ((low, width - 1 - low), (0, 0)))
        w, b = conv.weight.numpy(), conv.bias.numpy()
        windows = [np.einsum("ke,keo->o", padded[i : i + width], w) + b for i in range(7)]
        found.append(np.maximum(windows, 0).max(axis=0))
    np.testing.assert_allclose(model.encode(x), np.concatenate(found), rtol=1e-10)
    assert model.num_parameters() == 16 * 8 + (2 * 8 + 1) * 4 + (3 * 8 + 1) * 4 + (8 + 1) * 3
    assert model(tokens(1)).shape == (3,)  # shorter than every width


@pytest.mark.book("8-25", "8-19", name=("wl.models.TextCNN", "wl.models.KimCNN"))
@pytest.mark.parametrize("kind", KINDS)
def test_a_padded_text_gives_what_it_gives_alone(kind):
    model = make(kind)
    texts = [tokens(n, seed=n) for n in (7, 12, 2, 5)]
    padded = wl.stack([wl.concat([x, tokens(12 - len(x), seed=9)]) for x in texts])  # any token as padding
    mask = wl.stack([wl.arange(12) < len(x) for x in texts])
    alone = wl.stack([model(x) for x in texts])
    np.testing.assert_allclose(model(padded, mask), alone, rtol=1e-10)
    np.testing.assert_allclose(wl.jit(lambda m, x, k: m(x, k))(model, padded, mask), alone, rtol=1e-9)
    np.testing.assert_allclose(model(padded, wl.astype(mask, wl.int64)), alone, rtol=1e-10)
    assert np.abs(model(padded)[2] - alone[2]).max() > 1e-3  # without the mask the padding leaks
    # gradients agree as well, and those of the padding are 0
    loss = lambda m, x, k=None: (m(x, k) ** 2).sum()
    together = wl.grad(lambda m: loss(m, padded, mask))(model)
    apart = [wl.grad(lambda m, x=x: loss(m, x))(model) for x in texts]
    for path, value in together.items():
        np.testing.assert_allclose(value, sum(g[path] for g in apart), rtol=1e-8, atol=1e-10)


def test_the_mask_of_pooled_places():
    mask = wl.asarray(np.arange(9) < np.array([[9], [4], [5], [1]]))
    np.testing.assert_array_equal(pooled(mask, 2).numpy().sum(axis=1), [4, 2, 2, 0])
    np.testing.assert_array_equal(pooled(mask, 3).numpy().sum(axis=1), [3, 1, 1, 0])


@pytest.mark.book("8-42", name="wl.models.TextCNN")
def test_texts_that_are_too_short():
    model = make(TextCNN)
    assert np.isfinite(model(tokens(2))).all()
    for x in (tokens(1), tokens(5, 0)):
        with pytest.raises(ShapeError, match="2 or more tokens"):
            model(x)
    with pytest.raises(InputError, match="a sequence in the batch has 1 elements"):
        model(tokens(2, 4), [[1, 1, 1, 0], [1, 0, 0, 0]])
    with pytest.raises(ShapeError, match="1 or more tokens"):
        make(KimCNN)(tokens(3, 0))


@pytest.mark.book("8-40", "8-37", name=("wl.models.TextCNN", "wl.nn.Embedding.from_pretrained"))
def test_only_vectors_of_tokens_that_were_seen_are_trained():
    model, x = make(TextCNN), wl.asarray([[1, 2, 3, 1], [2, 2, 3, 7]])
    before = model.embed.weight.numpy()
    optimizer = wl.optim.SGD(model, lr=0.1)
    losses = []
    for _ in range(5):
        value, grads = wl.value_and_grad(lambda m: F.cross_entropy(m(x), wl.asarray([0, 1])))(model)
        losses.append(value.item())
        optimizer.step(grads)
    assert losses == sorted(losses, reverse=True)
    changed = np.flatnonzero(np.abs(model.embed.weight.numpy() - before).max(axis=1))
    np.testing.assert_array_equal(changed, [1, 2, 3, 7])
    # vectors that come from elsewhere stay as they are
    table = nn.Embedding.from_pretrained(before)
    model = TextCNN(table, None, 3, dtype=F64)
    grads = wl.grad(lambda m: F.cross_entropy(m(x), wl.asarray([0, 1])))(model)
    assert not any(path.startswith("embed") for path in grads)
    wl.optim.SGD(model, lr=0.1).step(grads)
    np.testing.assert_array_equal(model.embed.weight, before)


@pytest.mark.book("8-87", "8-36", name=("wl.models.TextCNN", "wl.models.KimCNN", "wl.text.WordTokenizer"))
def test_sentiment_with_two_designs_and_two_tokenizers():
    rng = np.random.default_rng(0)
    good, bad = ["lovely", "great", "moving"], ["dull", "awful", "boring"]
    filler = ["the", "film", "was", "and", "its", "plot", "actors", "scenes", "a", "with", "some", "music"]
    texts, labels = [], rng.integers(0, 2, 160)
    for label in labels:  # one word decides, wherever it stands in a text of any length
        words = list(rng.choice(filler, rng.integers(4, 12)))
        words[rng.integers(len(words))] = rng.choice(good if label else bad)
        texts.append(" ".join(words))
    designs = {
        "words, two convolutions": (wl.text.WordTokenizer, lambda n: TextCNN(n, 8, 2, channels=(8, 16))),
        "words, three widths": (wl.text.WordTokenizer, lambda n: KimCNN(n, 8, 2, channels=8, dropout=0.2)),
        "characters, three widths": (wl.text.CharTokenizer, lambda n: KimCNN(n, 8, 2, channels=16, widths=(4, 5))),
    }
    table = {}
    for name, (kind, build) in designs.items():
        tokenizer = kind.train(texts[:120], special_tokens=["[PAD]", "[UNK]"])
        batch = tokenizer.encode_batch(texts)
        x, mask = np.asarray(batch.values), np.asarray(batch.mask)
        model = build(tokenizer.vocab_size)
        optimizer = wl.optim.Adam(model, lr=0.02)

        @wl.jit
        def step(model, optimizer, x, mask, y):
            grads = wl.grad(lambda m: F.cross_entropy(m(x, mask), y))(model)
            optimizer.step(grads)

        for _ in range(40):
            step(model, optimizer, x[:120], mask[:120], labels[:120])
        predicted = np.argmax(model.eval()(x[120:], mask[120:]).numpy(), axis=1)
        table[name] = float(np.mean(predicted == labels[120:]))
    assert min(table.values()) > 0.85, table


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: make(TextCNN)(wl.ones((2, 4))), DTypeError, "tokens of float32"),
        (lambda: make(TextCNN)(wl.asarray([1, 16])), IndexOutOfRange, "16"),
        (lambda: make(TextCNN)(tokens(2, 4), wl.ones((2, 3))), ShapeError, r"mask of shape \(2, 3\) .* \(2, 4\)"),
        (lambda: make(TextCNN, channels=(3,)), InputError, r"channels=\(3,\)"),
        (lambda: make(KimCNN, widths=()), InputError, "no widths"),
        (lambda: TextCNN(16, None, 3), InputError, "how large the vectors are"),
        (lambda: TextCNN(nn.Embedding(16, 8), 9, 3), InputError, "embedding_size=9"),
        (lambda: TextCNN(0, 8, 3), InputError, "vocabulary=0"),
    ],
)
def test_bad_input(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
