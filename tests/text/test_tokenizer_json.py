"""Files of tokenizers: written whole, and refused when they are broken or not understood."""

from __future__ import annotations

import json

import pytest

import wonderland as wl
from wonderland.errors import FileError

SPECIAL = ["[PAD]", "[UNK]", "[BOS]", "[EOS]"]


def changed(**parts):
    content = json.loads(wl.text.BPETokenizer.train("the cat the", 262, special_tokens=SPECIAL).to_str())
    for path, value in parts.items():
        *folders, last = path.split("__")
        target = content
        for folder in folders:
            target = target[folder]
        target[last] = value
    return json.dumps(content)


def test_there_and_back_on_the_disk(tmp_path):
    kinds = [
        wl.text.CharTokenizer.train("abc é", special_tokens=SPECIAL, lowercase=True),
        wl.text.WordTokenizer.train("the cat", special_tokens=SPECIAL, keep_spaces=True, strip_punctuation=True),
        wl.text.WordTokenizer.train("the cat"),
        wl.text.ByteTokenizer(special_tokens=SPECIAL),
        wl.text.BPETokenizer.train("the cat the", 262, special_tokens=SPECIAL, split_digits=True),
    ]
    for number, tokenizer in enumerate(kinds):
        path = tmp_path / f"{number}.json"
        tokenizer.save(path)
        again = wl.text.Tokenizer.from_file(path)
        assert again.vocab == tokenizer.vocab
        assert again.special_tokens == tokenizer.special_tokens
        assert again.to_str() == tokenizer.to_str()
        assert (
            again.encode("the cat" if number else "cab").tolist()
            == tokenizer.encode("the cat" if number else "cab").tolist()
        )


def test_parts_that_tokens_play():
    text = wl.text.ByteTokenizer(special_tokens={"bos": "^^", "pad": "__"}).to_str()
    tokenizer = wl.text.Tokenizer.from_str(text)
    assert (tokenizer.pad_id, tokenizer.bos_id) == (257, None)
    assert wl.text.Tokenizer.from_str(text, bos="^^").bos_id == 256
    with pytest.raises(FileError, match="'##' is not among the tokens"):
        wl.text.Tokenizer.from_str(text, bos="##")
    with pytest.raises(FileError, match="no part 'start'"):
        wl.text.Tokenizer.from_str(text, start="^^")


def test_older_files_write_merges_with_a_space():
    merges = json.loads(changed())["model"]["merges"]
    old = wl.text.Tokenizer.from_str(changed(model__merges=[" ".join(pair) for pair in merges]))
    assert old.encode("the cat").tolist() == wl.text.Tokenizer.from_str(changed()).encode("the cat").tolist()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"model": None}, "has no model"),
        ({"model__type": "Bigram"}, "The model is 'Bigram'"),
        ({"model": {"type": "Unigram", "vocab": [["a", -1.0], ["a", -2.0]]}}, "a token is there twice"),
        ({"model": {"type": "Unigram", "vocab": [["a", "much"]]}}, "log-probability 'much'"),
        ({"model": {"type": "Unigram", "vocab": [["a", -1.0]], "unk_id": 1}}, "unk_id=1 for 1 tokens"),
        ({"model": {"type": "Unigram", "vocab": {"a": 0}}}, "is not as it should be|cannot be used"),
        ({"model": {"type": "WordPiece", "vocab": {"a": 0}, "max_input_chars_per_word": -1}}, "from 0 to"),
        ({"model": {"type": "WordPiece", "vocab": {"a": 0}, "continuing_subword_prefix": 3}}, "prefix is 3"),
        ({"model__vocab": {"a": 0, "b": 0}}, "have one id"),
        ({"model__vocab": {"a": -1}}, "not an integer from 0"),
        ({"model__vocab": ["a"]}, "not as it should be"),
        ({"model__merges": [["a", "qq"]]}, "needs the token"),
        ({"model__merges": ["abc"]}, "no pair of tokens"),
        ({"model__dropout": 0.5}, "dropout=0.5"),
        ({"model__end_of_word_suffix": 1}, "end_of_word_suffix is 1"),
        ({"pre_tokenizer": {"type": "UnicodeScripts"}}, "pre-tokenizer 'UnicodeScripts' is not supported"),
        ({"pre_tokenizer": {"type": "Metaspace", "replacement": "__"}}, "replacement='__'"),
        ({"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "last"}}, "prepend_scheme='last'"),
        ({"pre_tokenizer": {"type": "Metaspace", "split": "yes"}}, "split is 'yes'"),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [None]}}, "is null"),
        ({"pre_tokenizer": {"type": "Split"}}, "no 'pattern'"),
        ({"pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "Eaten"}}, "behavior='Eaten'"),
        ({"normalizer": {"type": "Nmt"}}, "normalizer 'Nmt' is not supported"),
        ({"normalizer": {"type": "Prepend"}}, "no 'prepend'"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "??"}}, "no base64"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "begins no charsmap"),
        ({"decoder": {"type": "CTC"}}, "decoder 'CTC' is not supported"),
        ({"decoder": {"type": "Strip", "content": " ", "start": 1.5}}, "start is 1.5"),
        ({"post_processor": {"type": "BertProcessing", "sep": ["[EOS]", 3], "cls": ["[BOS]", 9]}}, "the ids 2 and 9"),
        (
            {"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[BOS]", 2]}},
            "not among the tokens",
        ),
        ({"post_processor": {"type": "Magic"}}, "post-processor 'Magic' is not supported"),
        ({"added_tokens": [{"id": 7, "content": "[PAD]"}]}, "has the ids 0 and 7"),
        ({"added_tokens": [{"id": 5, "content": "<new>"}]}, "have one id, 5"),
        ({"added_tokens": [{"id": 900, "content": "<x>"}, {"id": 901, "content": "<x>"}]}, "twice"),
    ],
)
def test_broken_files(parts, message):
    with pytest.raises(FileError, match=message):
        wl.text.Tokenizer.from_str(changed(**parts))


def test_no_file_and_half_a_file(tmp_path):
    with pytest.raises(FileError, match="cannot read"):
        wl.text.Tokenizer.from_file(tmp_path / "none.json")
    path = tmp_path / "half.json"
    path.write_text(changed()[:100])
    with pytest.raises(FileError, match="is not JSON"):
        wl.text.Tokenizer.from_file(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="cannot read"):
        wl.text.Tokenizer.from_file(path)
    for text in ("[]", "{}", "3"):
        with pytest.raises(FileError, match="has no model"):
            wl.text.Tokenizer.from_str(text)


@pytest.mark.parametrize(
    "parts",
    [
        {"model__vocab": {"a": 2**40}},
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": 5}, "behavior": "Isolated"}},
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a" * 5000}, "behavior": "Isolated"}},
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a"}, "behavior": ["Isolated"]}},
        {"pre_tokenizer": {"type": "Punctuation", "behavior": 3}},
        {"normalizer": {"type": "Replace", "pattern": {"String": 3}, "content": ""}},
        {"normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": None}},
        {"normalizer": {"type": "Replace", "pattern": {"Regex": "("}, "content": ""}},
        {"added_tokens": [{"id": 0, "content": ["x"]}]},
        {"padding": 7},
        {"padding": {"pad_token": []}},
        {"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": 3}], "special_tokens": {}}},
    ],
)
def test_values_of_the_wrong_kind(parts):
    with pytest.raises(FileError):
        wl.text.Tokenizer.from_str(changed(**parts))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"model": {"a": 1, "a": 2}}', '{"model": {"vocab": {"\\ud800": 1}}}'])
def test_texts_that_no_parser_takes(text):
    with pytest.raises(FileError, match="is not JSON"):
        wl.text.Tokenizer.from_str(text)


def test_a_deep_sequence_of_normalizers():
    nested = {"type": "Lowercase"}
    for _ in range(200):
        nested = {"type": "Sequence", "normalizers": [nested]}
    with pytest.raises(FileError, match="nested"):
        wl.text.Tokenizer.from_str(changed(normalizer=nested))
