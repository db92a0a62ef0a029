"""A small tokenizer of the kind that each family uses, trained on a few lines of our own."""

from __future__ import annotations

import json
import math
from collections import Counter

from tokenizers import (  # type: ignore[import-not-found]  # not in the project's environment
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

LINES = [
    "The cat sat by the river and read the letters of the queen.",
    "The queen had written three letters, and the cat had read them all.",
    "A river reads nothing; it runs by the garden and takes the leaves.",
    "In the garden the rabbit counts the hours: one, two, three, ten.",
    "The rabbit said that the hours were late, and the queen said that they were not.",
    "When the cat had slept, it went to the garden to see whether the letters were there.",
]
TEXTS = ["The queen reads the letters", "A cat slept"]

_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LETTERS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = _LETTERS + r"\p{N}{1,3}" + _REST
_QWEN2 = _LETTERS + r"\p{N}" + _REST


def _special(*texts: str) -> list[AddedToken]:
    return [AddedToken(text, special=True, normalized=False) for text in texts]


def _byte_level(size: int, last: list[str], pattern: str | None = None) -> Tokenizer:
    """Byte-level BPE of `size` tokens, and the special ones after them."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=pattern == _LLAMA3))
    if pattern is None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        cut = pre_tokenizers.Split(Regex(pattern), "isolated")
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(LINES, trainer)
    tokenizer.add_special_tokens(_special(*last))
    return tokenizer


def gpt2() -> Tokenizer:
    return _byte_level(283, ["<|endoftext|>"])


def llama3() -> Tokenizer:
    tokenizer = _byte_level(281, ["<|begin_of_text|>", "<|end_of_text|>", "<|pad|>"], _LLAMA3)
    begin = ("<|begin_of_text|>", tokenizer.token_to_id("<|begin_of_text|>"))
    template = processors.TemplateProcessing(
        single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", special_tokens=[begin]
    )
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), template])
    return tokenizer


def qwen2() -> Tokenizer:
    tokenizer = _byte_level(282, ["<|endoftext|>", "<|im_end|>"], _QWEN2)
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


def whisper() -> Tokenizer:
    roles = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>"]
    return _byte_level(276, [*roles, "<|nospeech|>", "<|notimestamps|>"])


def llama2() -> Tokenizer:
    """SentencePiece's BPE: a space is "\u2581", and bytes stand for what the vocabulary has not."""
    plain = Tokenizer(models.BPE())
    plain.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    trainer = trainers.BpeTrainer(vocab_size=60, show_progress=False)
    plain.train_from_iterator(LINES, trainer)
    pieces = sorted(plain.get_vocab().items(), key=lambda pair: pair[1])
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *(piece for piece, _ in pieces)]
    merges = [tuple(pair) for pair in json.loads(plain.to_str())["model"]["merges"]]
    vocab = {name: i for i, name in enumerate(names)}
    model = models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = plain.normalizer
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(_special("<unk>", "<s>", "</s>"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    return tokenizer


def _pieces(words: list[str], most: int) -> Counter[str]:
    """All characters of the words, and the parts of them that come most often; the trainers' own choice changes
    from run to run."""
    characters = Counter(character for word in words for character in word)
    parts = Counter(word[i:j] for word in words for i in range(len(word)) for j in range(i + 2, len(word) + 1))
    ranked = sorted(parts.items(), key=lambda pair: (-pair[1] * len(pair[0]), pair[0]))
    return characters + Counter(dict(ranked[:most]))


def bert() -> Tokenizer:
    normalizer, cut = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    words = [word for line in LINES for word, _ in cut.pre_tokenize_str(normalizer.normalize_str(line))]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    begins = sorted({word[0] for word in words} | {word for word, n in Counter(words).items() if n > 1})
    rest = [f"##{piece}" for piece in sorted(_pieces([word[1:] for word in words], 30))]
    vocab = {piece: i for i, piece in enumerate([*special, *begins, *rest])}
    tokenizer = Tokenizer(models.WordPiece(vocab=vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = cut
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(_special(*special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def t5() -> Tokenizer:
    """Unigram: pieces with the logarithms of their shares."""
    found = _pieces([f"\u2581{word}" for line in LINES for word in line.split()], 60)
    total = sum(found.values())
    special = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    scored = [(piece, round(math.log(n / total), 6)) for piece, n in sorted(found.items(), key=lambda p: (-p[1], p[0]))]
    tokenizer = Tokenizer(models.Unigram([*special, *scored], unk_id=2, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")]
    )
    tokenizer.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.add_special_tokens(_special("<pad>", "</s>", "<unk>", "<extra_id_1>", "<extra_id_0>"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return tokenizer
