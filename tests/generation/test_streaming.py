"""Tokens and text as they come, and texts that end before a stop string."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError
from wonderland.generation import generate, generate_text, stream_text, stream_tokens


def reciting(tokenizer, text):
    """A model that says a text, whatever the tokens before."""
    target = tokenizer.encode(text)

    def model(tokens):
        following = wl.asarray(np.append(target[1:], 0))
        return wl.one_hot(wl.broadcast_to(following[: tokens.shape[1]], tokens.shape), tokenizer.vocab_size) * 99.0

    return model, len(target) - 1


def test_tokens_come_one_by_one_and_nothing_is_computed_ahead():
    model = wl.models.ConvLanguageModel(5, channels=4, dilations=(1, 2), dropout=0.5, key=wl.random.key(0))
    seen = []

    def counted(tokens):
        seen.append(tokens.shape[1])
        return model(tokens)

    key = wl.random.key(1)
    stream = stream_tokens(counted, [1, 2], 6, key=key)
    assert not seen
    first = next(stream)
    assert seen == [2]
    assert wl.ones(2).requires_grad_().sum().requires_grad  # what is done in between is recorded as ever
    rest = list(stream)
    model.eval()
    assert [1, 2, first, *rest] == generate(counted, [1, 2], 6, key=key).tolist()
    model.train()
    stream = stream_tokens(model, [1], 6, temperature=0, jit=False)
    next(stream)
    assert not model.training
    stream.close()
    assert model.training
    with pytest.raises(InputError, match="2 prompts"):
        stream_tokens(model, [[1], [2]], 3)


@pytest.mark.parametrize("text", ["né 🐱!", "the cat, the hat"])
def test_pieces_are_whole_characters_and_together_the_text(text):
    for tokenizer in (wl.text.ByteTokenizer(), wl.text.BPETokenizer.train("the cat and the hat " * 3, 270)):
        model, count = reciting(tokenizer, text)
        prompt = tokenizer.decode(tokenizer.encode(text)[:1])
        pieces = list(stream_text(model, tokenizer, prompt, count))
        assert prompt + "".join(pieces) == text
        assert all("\ufffd" not in piece for piece in pieces)
        assert len(pieces) > 2


def test_words_are_told_with_the_space_before_them():
    text = "the cat is on the table"
    tokenizer = wl.text.WordTokenizer.train(text)
    target = tokenizer.encode(text)
    model = lambda tokens: wl.one_hot(wl.asarray(np.append(target[1:], 0))[None, : tokens.shape[1]], len(target)) * 99.0
    pieces = list(stream_text(model, tokenizer, "the cat", 4))
    assert pieces == [" is", " on", " the", " table"]
    assert generate_text(model, tokenizer, "the", 5) == text


@pytest.mark.parametrize(
    "stop, expected",
    [
        ("on the", "the cat is "),  # over three tokens and more
        ("cat", "the "),
        (["table", "is"], "the cat "),  # whichever comes first
        ("sat on", "the cat is on the table"),  # begins like one, and is none
        ("tables", "the cat is on the table"),  # at the very end
    ],
)
@pytest.mark.parametrize("make", [wl.text.ByteTokenizer, lambda: wl.text.BPETokenizer.train("on the cat is " * 9, 270)])
def test_a_text_ends_before_a_stop_string(make, stop, expected):
    tokenizer, text = make(), "the cat is on the table"
    model, count = reciting(tokenizer, text)
    prompt = tokenizer.decode(tokenizer.encode(text)[:1])
    told = []
    found = generate_text(model, tokenizer, prompt, count, stop_strings=stop, callback=told.append)
    assert found == expected
    assert prompt + "".join(told) == expected
    assert prompt + "".join(stream_text(model, tokenizer, prompt, count, stop_strings=stop)) == expected


def test_rows_end_at_their_own_stop_strings():
    tokenizer = wl.text.CharTokenizer.train("abc")
    model = lambda tokens: wl.one_hot((tokens + 1) % 3, 3) * 100.0
    assert generate_text(model, tokenizer, ["a", "b", "c"], 6, stop_strings=["bc", "zz"]) == ["a", "bca", "ca"]


def test_bad_input():
    tokenizer = wl.text.CharTokenizer.train("abc")
    model = lambda tokens: wl.one_hot((tokens + 1) % 3, 3) * 100.0
    with pytest.raises(InputError, match="the stop string ''"):
        generate_text(model, tokenizer, "a", 3, stop_strings="")
    with pytest.raises(InputError, match="the stop string 3"):
        stream_text(model, tokenizer, "a", 3, stop_strings=[3])
    with pytest.raises(InputError, match="stop_strings"):
        generate_text(model, tokenizer, "a", 3, stop_strings="b", beams=2)
    with pytest.raises(InputError, match="one text"):
        stream_text(model, tokenizer, ["a"], 3)
    with pytest.raises(InputError, match="has no tokens"):
        stream_text(model, tokenizer, "", 3)
