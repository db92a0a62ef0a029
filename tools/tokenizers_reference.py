"""What the `tokenizers` library makes of some texts, in tests/text/tokenizers.json: tests do not need the library.

pip install tokenizers
python tools/tokenizers_reference.py a_text.txt
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import tokenizers  # type: ignore[import-not-found]  # not in the project's environment
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HOME = Path(__file__).parent.parent / "tests" / "text" / "tokenizers.json"
SPECIAL = ["[PAD]", "[UNK]", "[BOS]", "[EOS]"]
SAMPLES = [
    "",
    "Down the Rabbit-Hole",
    "I'll say it's   2512 rabbits,\n\n\tisn't it? ",
    "¡Olé! naïve café: e\u0301 \u00bd \u2167 你好 हिन्दी 한국어 \N{CAT FACE}\N{THUMBS UP SIGN}\U0001f3fd",
    "tab\there\u00a0and\u2003there\x1c\x85 end",
    "[BOS]the [EOS]cat[PAD]",
    "x_1 = 3.14e-10; // 100%",
]
GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def trained(model: Any, trainer: Any, text: str, **parts: Any) -> Tokenizer:
    tokenizer = Tokenizer(model)
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def bpe(text: str, size: int, cut: Any, **parts: Any) -> Tokenizer:
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    return trained(models.BPE(), trainer, text, pre_tokenizer=cut, decoder=decoders.ByteLevel(), **parts)


def words(text: str, size: int, cut: Any, **parts: Any) -> Tokenizer:
    trainer = trainers.WordLevelTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False)
    return trained(models.WordLevel(unk_token="[UNK]"), trainer, text, pre_tokenizer=cut, **parts)


def cases(text: str) -> dict[str, Tokenizer]:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    without = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    template = processors.TemplateProcessing(
        single="[BOS] $A [EOS]", special_tokens=[("[BOS]", SPECIAL.index("[BOS]")), ("[EOS]", SPECIAL.index("[EOS]"))]
    )
    plain = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    punctuation = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    return {
        "bpe": bpe(text, 600, byte_level),
        "bpe_digits": bpe(text, 300, digits),
        "bpe_prefix_space": bpe(text, 300, pre_tokenizers.ByteLevel(add_prefix_space=True)),
        "bpe_template": bpe(text, 300, byte_level, post_processor=template),
        "bpe_gpt4": bpe(text, 400, pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(GPT4), "isolated"), without])),
        "bpe_lowercase": bpe(text, 300, byte_level, normalizer=normalizers.Lowercase()),
        "words": words(text, 200, pre_tokenizers.Whitespace()),
        "words_plain": words(text, 200, punctuation, normalizer=plain),
        "words_merged": words(text, 200, pre_tokenizers.Split(" ", "merged_with_next"), decoder=decoders.Fuse()),
    }


def main(path: str) -> None:
    text = Path(path).read_text(encoding="utf-8")
    start = text.index("CHAPTER I")
    excerpt = text[start : start + 4000]
    stored: dict[str, Any] = {"version": tokenizers.__version__, "text": excerpt, "samples": SAMPLES, "cases": {}}
    for name, tokenizer in cases(excerpt).items():
        encodings = [tokenizer.encode(sample) for sample in [*SAMPLES, excerpt[:500]]]
        bare = [tokenizer.encode(sample, add_special_tokens=False) for sample in [*SAMPLES, excerpt[:500]]]
        stored["cases"][name] = {
            "file": json.loads(tokenizer.to_str()),
            "ids": [encoding.ids for encoding in encodings],
            "offsets": [encoding.offsets for encoding in bare],
            "decoded": [tokenizer.decode(encoding.ids) for encoding in encodings],
        }
    HOME.write_text(json.dumps(stored, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{HOME}: {HOME.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main(sys.argv[1])
