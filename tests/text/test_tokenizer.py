"""Tokenizers of characters, words, bytes and pairs: there and back, special tokens, batches, spans, bad input."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from wonderland.errors import InputError
from wonderland.text import BPETokenizer, ByteTokenizer, CharTokenizer, SpecialTokens, WordTokenizer, pre_tokenizers

SENTENCE = "the cat is on the table"
SPECIAL = ["[PAD]", "[UNK]", "[BOS]", "[EOS]", "[MASK]"]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def kinds() -> list[wl.text.Tokenizer]:
    return [
        CharTokenizer.train(SENTENCE, special_tokens=SPECIAL),
        WordTokenizer.train(SENTENCE, special_tokens=SPECIAL),
        WordTokenizer.train(SENTENCE, special_tokens=SPECIAL, keep_spaces=True),
        ByteTokenizer(special_tokens=SPECIAL),
        BPETokenizer.train(SENTENCE, 270, special_tokens=SPECIAL),
    ]


@pytest.mark.book("8-10", "8-11", name=("wl.text.WordTokenizer", "wl.text.CharTokenizer", "wl.text.BPETokenizer"))
def test_the_cat_on_the_table():
    words = WordTokenizer.train(SENTENCE)
    assert words.tokenize(SENTENCE) == ["the", "cat", "is", "on", "the", "table"]
    assert (len(words.encode(SENTENCE)), words.vocab_size) == (6, 5)
    assert CharTokenizer.train(SENTENCE).tokenize(SENTENCE) == list(SENTENCE)
    subwords = BPETokenizer.train(SENTENCE, 256 + 3)
    assert "".join(subwords.pieces(SENTENCE)) == SENTENCE
    assert 6 < len(subwords.encode(SENTENCE)) < len(SENTENCE)
    for tokenizer in kinds():  # what is split is joined again
        assert tokenizer.decode(tokenizer.encode(SENTENCE)) == SENTENCE


@pytest.mark.book("8-26", name="wl.text.CharTokenizer")
def test_characters_of_ascii():
    ascii_ = "".join(map(chr, range(128)))
    tokenizer = CharTokenizer.train(ascii_)
    assert tokenizer.vocab_size == 128
    assert tokenizer.encode("Cat").tolist() == [67, 97, 116]
    assert tokenizer.decode(tokenizer.encode(ascii_)) == ascii_
    with pytest.raises(InputError, match=r"'é' is not among its 128 tokens"):
        tokenizer.encode("née")


@pytest.mark.book("8-27", "8-29", name=("wl.text.WordTokenizer", "wl.data.Vocabulary"))
def test_frequent_words_are_kept_and_others_unknown():
    text = "a b b c c c d d d e"
    tokenizer = WordTokenizer.train(text, 4, special_tokens=["[UNK]"])
    assert tokenizer.vocabulary.tokens == ["[UNK]", "c", "d", "b"]  # equally frequent ones by name
    assert tokenizer.encode("c e b zebra").tolist() == [1, 0, 3, 0]
    assert WordTokenizer.train(text, min_frequency=3).vocabulary.tokens == ["c", "d"]
    with pytest.raises(InputError, match="no room"):
        WordTokenizer.train(text, 1, special_tokens=["[UNK]"])
    with pytest.raises(InputError, match="none for the unknown"):
        WordTokenizer.train(text).encode("zebra")


@pytest.mark.book("8-28", name=("wl.text.BPETokenizer", "wl.text.ByteTokenizer"))
@settings(max_examples=60, deadline=None)
@given(texts)
def test_every_text_comes_back_from_bytes(text):
    for tokenizer in (BYTES, PAIRS):
        assert tokenizer.decode(tokenizer.encode(text)) == text
        encoding = tokenizer.encode_with_offsets(text)
        assert (encoding.ids == tokenizer.encode(text)).all()
        assert "".join(tokenizer.pieces(text)) == text
        starts = [start for start, _ in encoding.offsets]
        assert starts == sorted(starts)
    assert BYTES.encode(text).tolist() == list(text.encode())


BYTES = ByteTokenizer()
PAIRS = BPETokenizer.train("the cat ate the ratatouille at the theatre " * 3, 290)


@pytest.mark.book("8-89", name=("wl.text.BPETokenizer", "wl.text.train_bpe"))
def test_aaabdaaabac():
    tokenizer = BPETokenizer.train("aaabdaaabac", 256 + 3)
    assert tokenizer.tokenize("aaabdaaabac") == ["aaab", "d", "aaab", "a", "c"]
    assert tokenizer.decode(tokenizer.encode("aaabdaaabac")) == "aaabdaaabac"
    assert len(tokenizer.model.merges) == 3


def naive_merges(words: dict[str, int], steps: int) -> list[tuple[str, str]]:
    """Count all pairs anew in every step."""
    split = {word: list(word) for word in words}
    order = {c: (0, c) for word in words for c in word}  # the order of ids: characters by code, then merges by age
    merges = []
    for step in range(steps):
        counts: dict[tuple[str, str], int] = {}
        for word, count in words.items():
            for pair in pairwise(split[word]):
                counts[pair] = counts.get(pair, 0) + count
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], order[pair[0]], order[pair[1]]))
        merges.append(best)
        order.setdefault(best[0] + best[1], (1, f"{step:04}"))
        for word, parts in split.items():
            out, i = [], 0
            while i < len(parts):
                if tuple(parts[i : i + 2]) == best:
                    out.append(best[0] + best[1])
                    i += 2
                else:
                    out.append(parts[i])
                    i += 1
            split[word] = out
    return merges


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text("abc", min_size=1, max_size=9), st.integers(1, 5), min_size=1, max_size=6))
def test_counts_kept_up_to_date_are_counts_made_anew(words):
    alphabet = {c for word in words for c in word}
    _, merges = wl.text.train_bpe(words, len(alphabet) + 8)
    expected = naive_merges(words, 8)
    assert merges[: len(expected)] == expected[: len(merges)]
    assert len(merges) >= min(len(expected), 1)


def test_merges_by_hand_on_any_piece():
    merges = [("b", "c"), ("a", "b"), ("a", "bc"), ("abc", "ab")]
    vocab = {token: i for i, token in enumerate(["a", "b", "c", *(x + y for x, y in merges)])}
    model = wl.text.BPE(vocab, merges)
    rng = np.random.default_rng(0)
    for _ in range(200):
        piece = "".join(rng.choice(list("abc"), rng.integers(1, 12)))
        parts = list(piece)
        while True:  # the pair that was learned first, the leftmost of these
            ranked = [(merges.index(pair), i) for i, pair in enumerate(pairwise(parts)) if pair in merges]
            if not ranked:
                break
            _, i = min(ranked)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        ids, spans = model.encode(piece)
        assert ids == [vocab[part] for part in parts]
        assert [piece[start:end] for start, end in spans] == parts


@pytest.mark.book("8-30", name=("wl.text.WordTokenizer", "wl.text.normalizers.Replace"))
def test_small_letters_and_no_punctuation_if_wanted():
    tokenizer = WordTokenizer.train("The cat. The DOG!", lowercase=True, strip_punctuation=True)
    assert tokenizer.vocabulary.tokens == ["the", "cat", "dog"]
    assert tokenizer.tokenize("the, Dog?") == ["the", "dog"]
    assert tokenizer.encode_with_offsets("the, Dog?").offsets == [(0, 3), (5, 8)]
    plain = WordTokenizer.train("The cat. The DOG!")
    assert plain.tokenize("The cat!") == ["The", "cat", "!"]


@pytest.mark.book("8-32", name=("wl.text.Tokenizer", "wl.text.SpecialTokens"))
def test_special_tokens_are_never_split():
    for tokenizer in kinds():
        bos, eos = tokenizer.bos_id, tokenizer.eos_id
        ids = tokenizer.encode("the cat", add_bos=True, add_eos=True)
        assert (ids[0], ids[-1]) == (bos, eos)
        assert tokenizer.decode(ids) == "the cat"
        marked = tokenizer.encode("[BOS]the[EOS]")
        assert (marked[0], marked[-1]) == (bos, eos)
        assert "[BOS]" in tokenizer.decode(ids, skip_special_tokens=False)
        if isinstance(tokenizer.decoder, wl.text.decoders.ByteLevel):
            from_strangers = tokenizer.encode("[BOS]the", split_special_tokens=True)
            assert bos not in from_strangers
            assert tokenizer.decode(from_strangers) == "[BOS]the"
        assert {tokenizer.pad_id, tokenizer.unk_id, bos, eos, tokenizer.mask_id} == {
            tokenizer.token_to_id(token) for token in SPECIAL
        }
    assert SpecialTokens.named({"bos": "<go>", "eos": "<go>"}).contents == ["<go>"]


@pytest.mark.book("8-33", name=("wl.text.BPETokenizer", "wl.text.pre_tokenizers.Digits"))
def test_numbers_may_be_cut_into_digits():
    text = "52 52 251 251 251 2512 " * 4
    quirk = BPETokenizer.train(text, 270)
    assert len(quirk.encode("52")) == 1
    assert len(quirk.encode(" 2512")) < 5
    digits = BPETokenizer.train(text, 270, split_digits=True)
    assert digits.tokenize("2512") == ["2", "5", "1", "2"]


@pytest.mark.book("8-34", name="wl.text.Tokenizer.visualize")
def test_what_one_looks_at():
    for tokenizer in kinds()[2:]:
        assert "".join(tokenizer.pieces("the cat")) == "the cat"
    lines = kinds()[4].visualize("the né").splitlines()
    assert lines[0].split() == ["id", "token", "span", "text"]
    assert len(lines) == 1 + len(kinds()[4].encode("the né"))
    assert [line.split()[1] for line in lines[1:]] == kinds()[4].tokenize("the né")


@pytest.mark.book("8-35", "8-36", "8-39", name=("wl.text.Tokenizer", "wl.nn.Embedding"))
def test_any_tokenizer_before_the_same_model():
    for tokenizer in kinds():
        batch = tokenizer.encode_batch(["the cat", "on the table"])
        layer = wl.nn.Embedding(tokenizer.vocab_size, 3, key=wl.random.key(0))
        vectors = layer(wl.asarray(batch.values))
        assert vectors.shape == (*batch.values.shape, 3)
        product = wl.one_hot(batch.values, tokenizer.vocab_size) @ layer.weight
        np.testing.assert_allclose(vectors.numpy(), product.numpy(), rtol=1e-6)
    sixteen = wl.nn.Embedding(16, 5)
    assert sixteen(wl.tensor([3, 15, 0])).shape == (3, 5)


@pytest.mark.book("8-37", name="wl.nn.Embedding.from_pretrained")
def test_embeddings_of_others_stay():
    table = np.random.default_rng(0).normal(size=(6, 4))
    layer = wl.nn.Embedding.from_pretrained(table, freeze=True)
    head = wl.nn.Linear(4, 1, dtype=wl.float64)
    model = wl.nn.Sequential(layer, head)
    grads = wl.grad(lambda m: m(wl.tensor([1, 2])).sum())(model)
    assert not any(path.startswith("0.") for path in grads)
    optimizer = wl.optim.SGD(model, lr=0.1)
    optimizer.step(grads)
    np.testing.assert_array_equal(np.asarray(layer.weight), table)


@pytest.mark.book("A5-31", name=("wl.text.WordTokenizer", "wl.text.SpecialTokens"))
def test_the_prompt_and_its_answer_are_eight_tokens():
    tokenizer = WordTokenizer.train(
        "Are you free tomorrow? Yes, what's up?", special_tokens=["END_OF_INPUT"], pattern=r"[\w'?]+"
    )
    ids = tokenizer.encode("Are you free tomorrow? END_OF_INPUT Yes what's up?")
    assert len(ids) == 8
    assert ids[4] == tokenizer.token_to_id("END_OF_INPUT")
    assert "END_OF_INPUT" in tokenizer.vocab
    prompt, answer = (tokenizer.encode(text) for text in ("Are you free tomorrow? END_OF_INPUT", "Yes what's up?"))
    assert (len(prompt), len(answer)) == (5, 3)
    assert [*prompt, *answer] == ids.tolist()
    assert tokenizer.encode("Are you free tomorrow? END_OF_INPUT", "Yes what's up?").tolist() == ids.tolist()


@pytest.mark.book("10.03", name="wl.text.pre_tokenizers.Whitespace")
def test_the_cat_and_the_table_far_apart():
    """The same dependency at two offsets; a convolution must reach as far as the larger one."""

    def offset(sentence):
        pieces = pre_tokenizers.WhitespaceSplit()([pre_tokenizers.Piece.of(sentence)])
        words = [piece.text.strip(",") for piece in pieces]
        return words.index("table") - words.index("cat")

    near, far = "The cat is on the table", "The cat, who belongs to my mother, is on the table"
    assert (offset(near), offset(far)) == (4, 9)
    tokenizer = WordTokenizer.train([near, far], pattern=r"\w+")
    for sentence, expected in ((near, 4), (far, 9)):
        ids = tokenizer.encode(sentence).tolist()
        assert ids.index(tokenizer.token_to_id("table")) - ids.index(tokenizer.token_to_id("cat")) == expected
    places = tokenizer.tokenize(far)
    x = wl.ones((len(places), 1), dtype=wl.float64)
    for k in (8, 9):  # what the output at "cat" sees of "table" with a window of 2k + 1 words
        layer = wl.nn.Conv1d(1, 1, 2 * k + 1, padding="same", dtype=wl.float64, key=wl.random.key(0))
        seen = np.asarray(wl.grad(lambda x, layer=layer: layer(x)[places.index("cat"), 0])(x))
        assert bool(seen[places.index("table"), 0]) == (2 * k + 1 >= 19)


def test_batches_are_padded_and_cut():
    tokenizer = ByteTokenizer(special_tokens=SPECIAL)
    batch = tokenizer.encode_batch(["abcdef", "", "xy"], add_bos=True, add_eos=True, max_length=5)
    assert batch.lengths.tolist() == [5, 2, 4]
    assert batch.values.tolist() == [
        [258, 97, 98, 99, 259],
        [258, 259, 256, 256, 256],
        [258, 120, 121, 259, 256],
    ]
    assert batch.mask.sum(axis=1).tolist() == batch.lengths.tolist()
    assert tokenizer.decode_batch(batch) == ["abc", "", "xy"]
    assert tokenizer.decode_batch(batch.values) == ["abc", "", "xy"]
    assert tokenizer.encode_batch(["a"], length=4).values.shape == (1, 4)
    assert tokenizer.encode_batch(["a"], to_multiple=8).values.shape == (1, 8)
    assert tokenizer.encode("").shape == (0,)
    assert tokenizer.decode([]) == ""


def test_template_of_a_tokenizer():
    base = ByteTokenizer(special_tokens=SPECIAL)
    tokenizer = wl.text.Tokenizer(
        base.model,
        pre_tokenizer=base.pre_tokenizer,
        decoder=base.decoder,
        special_tokens=base.special_tokens,
        before=["[BOS]"],
        after=["[EOS]", "[EOS]"],
    )
    assert tokenizer.encode("a").tolist() == [258, 97, 259, 259]
    assert tokenizer.encode("a", add_bos=False, add_eos=False).tolist() == [97]
    again = wl.text.Tokenizer.from_str(tokenizer.to_str())
    assert again.encode("a").tolist() == [258, 97, 259, 259]


def test_added_tokens_with_white_space_and_words():
    tokens = [
        wl.text.AddedToken("<mask>", lstrip=True),
        wl.text.AddedToken("cat", special=False, single_word=True),
        wl.text.AddedToken("Über", special=False, normalized=True),
    ]
    special = SpecialTokens.named(tokens)
    tokenizer = wl.text.Tokenizer(
        BYTES.model,
        normalizer=wl.text.normalizers.Lowercase(),
        pre_tokenizer=pre_tokenizers.ByteLevel(use_regex=False),
        decoder="ByteLevel",
        special_tokens=special,
    )
    encoding = tokenizer.encode_with_offsets("a  <mask> cat cats ÜBER")
    names = [token for token in encoding.tokens if len(token) > 1]
    assert names == ["<mask>", "cat", "Über"]
    assert encoding.offsets[1] == (1, 9)
    assert encoding.offsets[-1] == (19, 23)
    assert tokenizer.decode(encoding.ids, skip_special_tokens=True) == "a cat cats Über"


def test_bad_input():
    tokenizer = ByteTokenizer()
    with pytest.raises(InputError, match="a bytes is not text"):
        tokenizer.encode(b"abc")
    with pytest.raises(InputError, match="is one text"):
        tokenizer.encode_batch("abc")
    with pytest.raises(InputError, match="no texts"):
        tokenizer.encode_batch([])
    with pytest.raises(InputError, match="texts of 1 to 2 tokens, and no padding token"):
        tokenizer.encode_batch(["a", "bc"])
    with pytest.raises(InputError, match="there is no token 256"):
        tokenizer.decode([1, 256])
    with pytest.raises(InputError, match="there is no token -1"):
        tokenizer.decode([-1])
    with pytest.raises(InputError, match="ids of shape"):
        tokenizer.decode([[1, 2]])
    with pytest.raises(InputError, match="ids of shape"):
        tokenizer.decode([1.5])
    with pytest.raises(InputError, match="there is no bos token"):
        tokenizer.encode("a", add_bos=True)
    with pytest.raises(InputError, match="max_length=1 for 2 special"):
        ByteTokenizer(special_tokens=SPECIAL).encode("a", add_bos=True, add_eos=True, max_length=1)
    with pytest.raises(InputError, match="is not among its tokens"):
        tokenizer.token_to_id("cat")
    with pytest.raises(InputError, match="surrogate"):
        tokenizer.encode("a\ud800")


def test_bad_training():
    with pytest.raises(InputError, match="vocab_size=255 for 256 bytes"):
        BPETokenizer.train("abc", 255)
    with pytest.raises(InputError, match="text 1 is a int"):
        CharTokenizer.train(["abc", 3])
    with pytest.raises(InputError, match="a int is no text"):
        CharTokenizer.train(3)
    with pytest.raises(InputError, match="is also a token of the text"):
        CharTokenizer.train("abc", special_tokens=["a"])
    with pytest.raises(InputError, match="is there twice"):
        CharTokenizer.train("abc", special_tokens=["[PAD]", "[PAD]"])
    with pytest.raises(InputError, match="is both pad and eos"):
        CharTokenizer.train("abc", special_tokens={"pad": "<x>", "eos": "<x>"})
    with pytest.raises(InputError, match="no part 'end'"):
        CharTokenizer.train("abc", special_tokens={"end": "<x>"})
    with pytest.raises(InputError, match="not a token"):
        CharTokenizer.train("abc", special_tokens=[""])
    with pytest.raises(InputError, match="is one text"):
        CharTokenizer.train("abc", special_tokens="[PAD]")
    with pytest.raises(InputError, match="needs the token 'ab'"):
        wl.text.BPE({"a": 0, "b": 1}, [("a", "b")])
    with pytest.raises(InputError, match="is not understood"):
        WordTokenizer.train("abc", pattern="(")
    assert CharTokenizer.train("").vocab_size == 0
    assert BPETokenizer.train("", 300).vocab_size == 256
