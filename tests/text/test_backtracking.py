"""Patterns that would take exponential time are refused before they meet a text; those of tokenizers are not."""

import json
import random
import re
import signal

import pytest

import wonderland as wl
from wonderland.errors import FileError, InputError
from wonderland.text.backtracking import check_time
from wonderland.text.patterns import compiled
from wonderland.text.pre_tokenizers import GPT2_PATTERN, GPT4_PATTERN

ENDINGS = "'s|'t|'re|'ve|'m|'ll|'d"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
# the shapes of patterns in published files
PUBLISHED = [
    GPT2_PATTERN,
    GPT4_PATTERN,
    rf"(?i:{ENDINGS})|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}",
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+(?i:{ENDINGS})?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*(?i:{ENDINGS})?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}",
    rf"{ENDINGS}|[\p{{L}}]+|[\p{{N}}]|[^\s\p{{L}}\p{{N}}]+",
    r"\s+$",
    r"[0-9][0-9][0-9]",
    r"(?=(\d{3})+(?!\d))",
    r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))",
    r"\s?[A-Za-zÀ-ÖØ-ö]+",
    r"[一-龥가-퟿]+",
    r" {2,}",
    r"\w+|[^\w\s]+",
]
HARMLESS = [r"(?:\d+,)*\d+", r"\d+\.\d+%", r"(?:[a-z]+ )*[a-z]+", r"https?://\S+|\w+(?:-\w+)*|\S", r"<\|[^|]*\|>"]
HARMFUL = [
    "(a+)+b",
    "(a|aa)*b",
    "(a*)*b",
    "(a?b?)*c",
    r"(\w+\s?)*$",
    "(?:a|b|ab)*c",
    "(x+x+)+y",
    "(?=(a+)+b)",
    r"(?i:(?:ab|AB)*)c",
    "a*a*b",
    r"\s*\s*x",
    r"a(?=.*.*b)",
    "(?:a(?=.*b))*c",
    "(?>a*)a*b",
    "(a?){30}a{30}",
    "(?:ab|ab){0,40}c",
    "(?:(?:a?)?b){30}",
    "(?:a{1,9}){1,9}b",
    "a{0,60000}b",
    r"(a)\1*",
]


@pytest.mark.parametrize("pattern", PUBLISHED + HARMLESS)
def test_patterns_of_tokenizers_are_taken(pattern):
    compiled(pattern, True)
    compiled(pattern, False)


@pytest.mark.parametrize("pattern", HARMFUL)
def test_patterns_that_explode_are_refused_by_name(pattern):
    for only_ascii in (True, False):
        with pytest.raises(InputError, match="is refused") as error:
            compiled(pattern, only_ascii)
        assert repr(pattern) in str(error.value)


def test_ambiguity_beyond_ascii_is_seen():
    pattern = r"(?:\p{Lo}|一龥)*!"
    compiled(pattern, True)  # has nothing to read in ASCII
    with pytest.raises(InputError, match="exponential"):
        compiled(pattern, False)


def tokenizer_with(pattern):
    content = json.loads(wl.text.BPETokenizer.train("the cat", 260, pattern="a").to_str())
    content["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": pattern}
    return json.dumps(content)


def test_a_file_with_such_a_pattern_is_refused_when_it_is_read():
    with pytest.raises(FileError, match="exponential"):
        wl.text.Tokenizer.from_str(tokenizer_with("(a+)+b"))
    tokenizer = wl.text.Tokenizer.from_str(tokenizer_with(PUBLISHED[2]))
    text = "a" * 20_000 + " " * 20_000 + "!" * 20_000
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an alarm")
def test_what_is_taken_ends():
    """Random patterns over two letters, on texts that are made to fail at their end."""

    def late(*_):
        raise TimeoutError

    rng = random.Random(0)
    texts = ["a" * 40 + "c", "ab" * 20 + "c", "aab" * 13 + "!", "b" * 40 + "c"]
    before = signal.signal(signal.SIGALRM, late)
    taken = refused = 0
    try:
        for _ in range(400):
            pattern = random_pattern(rng, 5) + rng.choice(["", "c", "!", "$"])
            try:
                check_time(pattern)
            except ValueError:
                refused += 1
                continue
            taken += 1
            signal.setitimer(signal.ITIMER_REAL, 30)
            for text in texts:
                re.findall(pattern, text)
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert taken > 100
    assert refused > 50


def random_pattern(rng, depth):
    kind = rng.random()
    if depth == 0 or kind < 0.2:
        return rng.choice(["a", "b", "[ab]", ".", "[^b]", "c?", "(?!b)"])
    if kind < 0.45:
        return random_pattern(rng, depth - 1) + random_pattern(rng, depth - 1)
    if kind < 0.6:
        return f"(?:{random_pattern(rng, depth - 1)}|{random_pattern(rng, depth - 1)})"
    if kind < 0.95:
        return f"(?:{random_pattern(rng, depth - 1)}){rng.choice(['*', '+', '?', '{1,3}', '{2,}', '*?', '*+'])}"
    return f"(?={random_pattern(rng, depth - 1)})"


def test_replacements_cannot_blow_a_text_up():
    double = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    content = json.loads(wl.text.CharTokenizer.train("abc").to_str())
    content["normalizer"] = {"type": "Sequence", "normalizers": [double] * 40}
    tokenizer = wl.text.Tokenizer.from_str(json.dumps(content))
    with pytest.raises(InputError, match="becomes one of"):
        tokenizer.encode("a")
    content["normalizer"] = {"type": "Replace", "pattern": {"Regex": "a"}, "content": "b" * 1_000_000}
    with pytest.raises(InputError, match="becomes one of"):
        wl.text.Tokenizer.from_str(json.dumps(content)).encode("a" * 1000)


def test_many_added_tokens_take_linear_time():
    names = [f"[{i}]" for i in range(20_000)]
    wl.text.SpecialTokens.named(names)
