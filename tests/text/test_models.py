"""The models of tokenizers beside definitions that take their time, and the parts around them."""

from __future__ import annotations

import copy
import pickle
import struct
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from wonderland.errors import InputError
from wonderland.text import (
    BPE,
    Precompiled,
    Tokenizer,
    Unigram,
    WordPiece,
    WordPieceTokenizer,
    decoders,
    normalizers,
    post_processors,
    pre_tokenizers,
)

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def numbered(tokens):
    return {token: place for place, token in enumerate(tokens)}


# WordPiece


@given(st.text("abc", min_size=1, max_size=12))
def test_word_piece_takes_the_longest_beginning(word):
    vocab = numbered(["[UNK]", "a", "ab", "abc", "##a", "##b", "##ab", "##bab"])
    model = WordPiece(vocab, "[UNK]")
    parts, rest = [], word
    while rest:
        prefix = "##" * bool(parts)
        fits = [n for n in range(len(rest), 0, -1) if prefix + rest[:n] in vocab]
        if not fits:
            parts = ["[UNK]"]
            break
        parts.append(prefix + rest[: fits[0]])
        rest = rest[fits[0] :]
    ids, spans = model.encode(word)
    assert [model_token(vocab, number) for number in ids] == parts
    assert "".join(word[a:b] for a, b in spans) == word


def model_token(vocab, number):
    return next(token for token, place in vocab.items() if place == number)


def test_long_words_are_unknown():
    model = WordPiece({"[UNK]": 0, "a": 1, "##a": 2}, "[UNK]", max_input_chars_per_word=5)
    assert model.encode("aaaaa") == ([1, 2, 2, 2, 2], [(n, n + 1) for n in range(5)])
    assert model.encode("aaaaaa") == ([0], [(0, 6)])
    with pytest.raises(InputError, match="none for the unknown"):
        WordPiece({"a": 0}).encode("b")
    with pytest.raises(InputError, match="not in the vocabulary"):
        WordPiece({"a": 0}, "[UNK]")


def test_word_piece_training_by_counting_anew():
    counts = {"abab": 3, "abc": 2, "bab": 2}
    vocab, merges = wl.text.train_bpe(counts, 11, continuing_prefix="##")
    assert list(vocab)[:6] == ["a", "b", "c", "##a", "##b", "##c"]
    # a ##b 5, ##b ##a 3, ##a ##b 5, b ##a 2: smaller ids first; then ab ##ab 3, ab ##c 2, b ##ab 2
    assert merges == [("a", "##b"), ("##a", "##b"), ("ab", "##ab"), ("b", "##ab"), ("ab", "##c")]
    assert list(vocab)[6:] == ["ab", "##ab", "abab", "bab", "abc"]


# Unigram


@settings(max_examples=80, deadline=None)
@given(st.text("abc!", min_size=1, max_size=8), st.lists(st.floats(-9, -0.1), min_size=7, max_size=7))
def test_the_most_probable_of_all_ways_to_cut(piece, scores):
    tokens = ["a", "b", "ab", "bc", "abc", "cab", "bab"]  # c is no token
    model = Unigram([("<unk>", 0.0), *zip(tokens, scores, strict=True)], "<unk>")
    known, unknown = dict(zip(tokens, scores, strict=True)), min([0.0, *scores]) - 10

    def score(parts):
        return sum(known.get(part, unknown if len(part) == 1 else -np.inf) for part in parts)

    ways = []
    for count in range(len(piece)):
        for cuts in combinations(range(1, len(piece)), count):
            edges = [0, *cuts, len(piece)]
            ways.append([piece[a:b] for a, b in pairwise(edges)])
    best = max(map(score, ways))
    ids, spans = model.encode(piece)
    assert [span[0] for span in spans[1:]] == [span[1] for span in spans[:-1]]
    found = [piece[a:b] for a, b in spans]
    again = [part for text, n in zip(found, ids, strict=True) for part in (text if n == 0 else [text])]
    assert score(again) == pytest.approx(best)
    assert all(a or b for a, b in pairwise(ids))  # neighbouring unknowns are one


def test_unigram_with_bytes():
    model = Unigram([("<unk>", 0.0), ("a", -1.0), *((byte, -2.0) for byte in BYTES)], "<unk>", byte_fallback=True)
    ids, spans = model.encode("aé")
    assert [model.pieces[n][0] for n in ids] == ["a", "<0xC3>", "<0xA9>"]
    assert spans == [(0, 1), (1, 2), (1, 2)]
    with pytest.raises(InputError, match="surrogate"):
        model.encode("\ud800")
    with pytest.raises(InputError, match="finite"):
        Unigram([("a", float("nan"))])
    with pytest.raises(InputError, match="not among the pieces"):
        Unigram([("a", 0.0)], "b")


# byte-pair encoding of a text that is not cut


@settings(max_examples=80, deadline=None)
@given(st.text("ab▁é", max_size=30), st.booleans())
def test_words_may_be_merged_apart(text, fuse):
    merges = [("▁", "▁"), ("▁", "a"), ("a", "b"), ("▁▁", "▁▁"), ("▁a", "b"), ("▁▁", "ab")]
    vocab = numbered(["<unk>", "a", "b", "▁", *dict.fromkeys(x + y for x, y in merges)])
    model = BPE(vocab, merges, "<unk>", fuse_unk=fuse)
    whole = BPE(vocab, merges, "<unk>", fuse_unk=fuse)
    whole._apart = False
    assert model._apart
    assert model.encode(text) == whole.encode(text)
    across = BPE({**vocab, "b▁": 99}, [*merges, ("b", "▁")], "<unk>")
    assert not across._apart
    assert across.encode("ab▁") == ([vocab["ab"], vocab["▁"]], [(0, 2), (2, 3)])


def test_bytes_for_unknown_characters_and_signs_of_words():
    model = BPE(numbered(["a", "<unk>", *BYTES]), unk="<unk>", byte_fallback=True)
    assert model.encode("aé")[1] == [(0, 1), (1, 2), (1, 2)]
    some = BPE(numbered(["a", "<unk>", "<0xC3>"]), unk="<unk>", byte_fallback=True)
    assert some.encode("aé") == ([0, 1], [(0, 1), (1, 2)])
    ends = BPE(numbered(["a", "b</w>", "ab</w>"]), [("a", "b</w>")], end_of_word_suffix="</w>")
    assert ends.encode("ab") == ([2], [(0, 2)])
    inside = BPE(numbered(["a", "##b", "ab"]), [("a", "##b")], continuing_subword_prefix="##")
    assert inside.encode("ab") == ([2], [(0, 2)])
    assert ends.encode("") == ([], [])


def test_models_can_be_copied():
    for tokenizer in (WordPieceTokenizer.train("a cat sat", 40), wl.text.BPETokenizer.train("a cat sat", 258)):
        ids = tokenizer.encode("a cat").tolist()
        assert pickle.loads(pickle.dumps(tokenizer)).encode("a cat").tolist() == ids
        assert copy.deepcopy(tokenizer).encode("a cat").tolist() == ids


# what is around a text


def test_two_texts_and_their_types():
    tokenizer = WordPieceTokenizer.train("is it a cat? it is a cat", 40)
    encoding = tokenizer.encode_with_offsets("a cat", "it is", add_special_tokens=True)
    assert encoding.tokens == ["[CLS]", "a", "cat", "[SEP]", "it", "is", "[SEP]"]
    assert encoding.type_ids.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert encoding.offsets == [(0, 0), (0, 1), (2, 5), (0, 0), (0, 2), (3, 5), (0, 0)]
    bare = tokenizer.encode("a cat", "it is", add_bos=False, add_eos=False)
    assert [tokenizer.id_to_token(n) for n in bare] == ["a", "cat", "it", "is"]
    cut = tokenizer.encode_with_offsets("a cat is a cat", "it", add_special_tokens=True, max_length=6)
    assert cut.tokens == ["[CLS]", "a", "cat", "[SEP]", "it", "[SEP]"]
    assert cut.ids.tolist() == tokenizer.encode("a cat is a cat", "it", max_length=6).tolist()
    assert len(tokenizer.encode("a cat is", "it is a cat", max_length=3)) == 3
    with pytest.raises(InputError, match="max_length=2 for 3 special"):
        tokenizer.encode("a", "cat", max_length=2)
    with pytest.raises(InputError, match="no pair of texts"):
        tokenizer.encode_pairs(["cat"])
    with pytest.raises(InputError, match="no texts"):
        tokenizer.encode_pairs([])


def test_templates_in_writing():
    template = post_processors.TemplateProcessing.written("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")
    assert post_processors.template(template) == post_processors.template(post_processors.BertProcessing())
    with pytest.raises(InputError, match="once"):
        post_processors.TemplateProcessing.written("[CLS]")
    with pytest.raises(InputError, match="two of them"):
        post_processors.PostProcessors((template, post_processors.RobertaProcessing()))
    with pytest.raises(InputError, match="both a post_processor"):
        Tokenizer(BPE({"a": 0}), before=["a"], post_processor=template)
    with pytest.raises(InputError, match="not among its tokens"):
        Tokenizer(BPE({"a": 0}), post_processor=template)
    with pytest.raises(InputError, match="decoder='Zip'"):
        Tokenizer(BPE({"a": 0}), decoder="Zip")


def test_word_piece_training_refuses():
    with pytest.raises(InputError, match="vocab_size=6 for"):
        WordPieceTokenizer.train("abc", 6)
    with pytest.raises(InputError, match="is also a token"):
        WordPieceTokenizer.train("abc", 60, special_tokens=["a"])


# parts


def test_where_a_sign_is_put_in_front():
    def pieces(scheme, text, **settings):
        cut = pre_tokenizers.Metaspace("_", scheme, **settings)
        return [piece.text for piece in cut([pre_tokenizers.Piece.of(text), pre_tokenizers.Piece.of("x", 9)])]

    assert pieces("always", "a b") == ["_a", "_b", "_x"]
    assert pieces("first", "a b") == ["_a", "_b", "x"]
    assert pieces("never", " a b ") == ["_a", "_b", "_", "x"]
    assert pieces("always", "a b", split=False) == ["_a_b", "_x"]


def test_pieces_may_be_cut_after_they_are_bytes():
    cut = pre_tokenizers.PreTokenizers((pre_tokenizers.ByteLevel(True), pre_tokenizers.Digits(True)))
    pieces = cut([pre_tokenizers.Piece.of("é12")])
    assert [(piece.text, list(piece.places)) for piece in pieces] == [("ĠÃ©", [0, 0, 0]), ("1", [1]), ("2", [2])]
    doubled = pre_tokenizers.PreTokenizers((pre_tokenizers.ByteLevel(),) * 40)
    with pytest.raises(InputError, match="100 characters become"):
        doubled([pre_tokenizers.Piece.of("é" * 100)])


def charsmap(made: bytes) -> bytes:
    """A table with one line: a becomes something."""
    nodes = [0] * 98
    nodes[0], nodes[96], nodes[97] = 1 << 10, 1 << 10 | 1 << 8 | ord("a"), 1 << 31
    return struct.pack("<I98I", 4 * 98, *nodes) + made + b"\0"


def test_tables_of_replacements():
    assert Precompiled(charsmap(b"xyz"))("banana") == "bxyznxyznxyz"
    text, spans = normalizers.aligned(Precompiled(charsmap(b"xy")), "ab\u0301a\u0301")
    assert text == "xyb\u0301xy"  # a letter and its mark are one: its beginning is in the table
    assert spans == [(0, 1), (0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    for broken in (b"", b"abc", charsmap(b"")[:100], struct.pack("<I", 3) + b"abc", charsmap(b"\xff")):
        with pytest.raises(InputError, match="charsmap"):
            Precompiled(broken)
    with pytest.raises(InputError, match="becomes 101"):
        Precompiled(charsmap(b"x" * 101))("a")
    wild = struct.pack("<I2I", 8, 0xFFFFFFFF, 0xFFFFFFFF) + b"\0"  # offsets that lead nowhere
    assert Precompiled(wild)("cat") == "cat"


def test_bytes_that_are_no_text():
    assert decoders.ByteFallback()(["a", "<0xE2>", "<0x82>", "b", "<0xc3>", "<0xA9>"]) == ["a", "�", "�", "b", "é"]
    assert decoders.Strip(" ", 1, 1)(["", " ", "  a  "]) == ["", "", " a "]
    assert decoders.BPEDecoder("")(["a", "b"]) == ["a", "b"]
    growing = decoders.ReplaceEach(normalizers.Replace("a", "aa", literal=True))
    with pytest.raises(InputError, match="becomes one of"):
        decoders.Decoders((growing,) * 40)(["a"] * 50)


def test_added_tokens_do_not_take_what_others_took():
    tokens = [wl.text.AddedToken("<a>", rstrip=True), wl.text.AddedToken("<b>", lstrip=True)]
    tokenizer = Tokenizer(BPE(numbered(" xy")), special_tokens=wl.text.SpecialTokens.named(tokens), decoder="Fuse")
    encoding = tokenizer.encode_with_offsets("x <a>  <b> y")
    assert encoding.tokens == ["x", " ", "<a>", "<b>", " ", "y"]
    assert encoding.offsets == [(0, 1), (1, 2), (2, 7), (7, 10), (10, 11), (11, 12)]
    assert len(tokenizer.encode("x" + " " * 50_000)) == 50_001  # in time that is linear
