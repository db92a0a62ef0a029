"""Our tokenizers beside the `tokenizers` library: its stored vocabularies, merges, ids, spans and texts.

tools/tokenizers_reference.py writes the stored values.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wonderland as wl
from wonderland.text import pre_tokenizers

STORED = json.loads((Path(__file__).parent / "tokenizers.json").read_text(encoding="utf-8"))
TEXT = STORED["text"]
SAMPLES = [*STORED["samples"], TEXT[:500]]
SPECIAL = ["[PAD]", "[UNK]", "[BOS]", "[EOS]"]
GPT4 = STORED["cases"]["bpe_gpt4"]["file"]["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]


@pytest.mark.parametrize("name", STORED["cases"])
def test_files_of_the_library_give_its_ids_spans_and_texts(name):
    case = STORED["cases"][name]
    tokenizer = wl.text.Tokenizer.from_str(json.dumps(case["file"]))
    for sample, ids, offsets, decoded in zip(SAMPLES, case["ids"], case["offsets"], case["decoded"], strict=True):
        assert tokenizer.encode(sample).tolist() == ids
        assert tokenizer.decode(ids) == decoded
        encoding = tokenizer.encode_with_offsets(sample)
        assert encoding.ids.tolist() == tokenizer.encode(sample, add_bos=False, add_eos=False).tolist()
        assert [list(span) for span in encoding.offsets] == offsets


@pytest.mark.parametrize("name", STORED["cases"])
def test_files_written_here_are_read_here(name):
    case = STORED["cases"][name]
    tokenizer = wl.text.Tokenizer.from_str(json.dumps(case["file"]))
    written = json.loads(tokenizer.to_str())
    for part in ("added_tokens", "normalizer", "model"):
        assert written[part] == case["file"][part]
    again = wl.text.Tokenizer.from_str(tokenizer.to_str())
    assert all((again.encode(sample) == tokenizer.encode(sample)).all() for sample in SAMPLES)
    assert again.special_tokens == tokenizer.special_tokens


@pytest.mark.book("8-28", "8-89", name="wl.text.BPETokenizer")
@pytest.mark.parametrize(
    ("name", "size", "settings"),
    [
        ("bpe", 600, {}),
        ("bpe_digits", 300, {"split_digits": True}),
        ("bpe_gpt4", 400, {"pattern": GPT4}),
        ("bpe_lowercase", 300, {"lowercase": True}),
    ],
)
def test_merges_learned_here_are_those_of_the_library(name, size, settings):
    model = STORED["cases"][name]["file"]["model"]
    tokenizer = wl.text.BPETokenizer.train(TEXT, size, special_tokens=SPECIAL, **settings)
    assert [list(pair) for pair in tokenizer.model.merges] == model["merges"]
    assert tokenizer.vocab == model["vocab"]
    assert [tokenizer.encode(sample).tolist() for sample in SAMPLES] == STORED["cases"][name]["ids"]
    assert len(tokenizer.model.merges) == size - 256 - len(SPECIAL)


def test_words_learned_here_are_those_of_the_library():
    tokenizer = wl.text.WordTokenizer.train(TEXT, 200, special_tokens=SPECIAL)
    assert tokenizer.vocab == STORED["cases"]["words"]["file"]["model"]["vocab"]
    assert [tokenizer.encode(sample).tolist() for sample in SAMPLES] == STORED["cases"]["words"]["ids"]


def test_with_the_library_itself():
    pytest.importorskip("tokenizers")
    kinds = [
        wl.text.CharTokenizer.train(TEXT, special_tokens=SPECIAL),
        wl.text.WordTokenizer.train(TEXT, 100, special_tokens=SPECIAL, keep_spaces=True, strip_punctuation=True),
        wl.text.ByteTokenizer(special_tokens=SPECIAL),
        wl.text.BPETokenizer.train(TEXT, 300, special_tokens=SPECIAL, pattern=pre_tokenizers.GPT4_PATTERN),
    ]
    for tokenizer in kinds:
        library = tokenizer.to_tokenizers()
        for sample in SAMPLES:
            theirs = library.encode(sample)
            assert theirs.ids == tokenizer.encode(sample).tolist()
            assert library.decode(theirs.ids) == tokenizer.decode(theirs.ids)
