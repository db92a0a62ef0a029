"""Files of ranks: the example of the book, the rule of merging, broken files."""

from __future__ import annotations

import base64
from itertools import pairwise

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import FileError
from wonderland.text.byte_characters import CHARACTERS

# bytes in the order of cl100k: first those that are printable characters of Latin-1, "!" in front
BYTES = sorted(range(256), key=lambda byte: CHARACTERS[byte])


def write(path, ranks):
    lines = [f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()]
    path.write_text("".join(lines))
    return path


@pytest.mark.book("8-31", name="wl.text.from_ranks")
def test_this_is_perplexing(tmp_path):
    ranks = {bytes([byte]): rank for rank, byte in enumerate(BYTES)}
    # the tokens of the example have the ids of the book, those on the way to them ids before them
    ranks |= {b"in": 258, b"er": 261, b" p": 281, b"is": 285, b"ing": 287, b"ex": 327, b" is": 374, b"Th": 1016}
    ranks |= {b"pl": 501, b" per": 824, b"plex": 9467, b"This": 2028, b" perplex": 74252}
    text = "This is perplexing!"
    tokenizer = wl.text.from_ranks(write(tmp_path / "ranks", ranks), {"<|endoftext|>": 100257})
    ids = tokenizer.encode(text)
    assert ids.tolist() == [2028, 374, 74252, 287, 0]
    assert (len(text), len(ids)) == (19, 5)
    assert ids.max() < tokenizer.vocab_size == 100258
    assert tokenizer.pieces(text) == ["This", " is", " perplex", "ing", "!"]
    assert tokenizer.decode(ids) == text
    assert tokenizer.encode("!<|endoftext|>").tolist() == [0, 100257]
    again = wl.text.Tokenizer.from_str(tokenizer.to_str())
    assert again.encode(text).tolist() == ids.tolist()


def test_the_smallest_rank_merges_first(tmp_path):
    rng = np.random.default_rng(0)
    ranks = {bytes([byte]): byte for byte in range(256)}
    for _ in range(40):  # tokens made of tokens
        known = [token for token in ranks if set(token) <= set(b"abc")]
        first, second = rng.choice(len(known), 2)
        ranks.setdefault(known[first] + known[second], len(ranks))
    tokenizer = wl.text.from_ranks(write(tmp_path / "ranks", ranks))
    for _ in range(100):
        text = "".join(rng.choice(list("abc"), rng.integers(1, 15)))
        parts = [bytes([byte]) for byte in text.encode()]
        while text.encode() not in ranks:
            found = [(ranks[a + b], i) for i, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]
            if not found:
                break
            _, i = min(found)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        expected = [ranks[text.encode()]] if text.encode() in ranks else [ranks[part] for part in parts]
        assert tokenizer.encode(text).tolist() == expected


def test_broken_files(tmp_path):
    path = tmp_path / "ranks"
    with pytest.raises(FileError, match="cannot read"):
        wl.text.from_ranks(path)
    for content in ("abc\n", "!!! 3\n", "YQ== x\n", "YQ== 1 2\n"):
        path.write_text(content)
        with pytest.raises(FileError, match="line 1 of"):
            wl.text.from_ranks(path)
    with pytest.raises(FileError, match="lacks 255 of the 256 bytes"):
        wl.text.from_ranks(write(path, {b"a": 0}))
    with pytest.raises(FileError, match="have one id"):
        wl.text.from_ranks(write(path, {bytes([byte]): 0 for byte in range(256)}))


@pytest.mark.parametrize(
    "line", [b"YQ== -1", b"YQ== 99999999999999", b"YWE= 1_000", b"YQ== 5", b" 7", b"\xff 3", b"=== 3"]
)
def test_odd_lines_of_ranks(tmp_path, line):
    good = b"".join(base64.b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256))
    (tmp_path / "a.tiktoken").write_bytes(good + line + b"\n")
    with pytest.raises(wl.errors.FileError, match="line 257"):
        wl.text.from_ranks(tmp_path / "a.tiktoken")


def test_a_token_that_is_too_long_is_refused(tmp_path):
    good = b"".join(base64.b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256))
    (tmp_path / "a.tiktoken").write_bytes(good + base64.b64encode(b"a" * 1_000_000) + b" 256\n")
    with pytest.raises(wl.errors.FileError, match="at most 1024 bytes"):
        wl.text.from_ranks(tmp_path / "a.tiktoken")
