"""What the `tokenizers` library makes of some texts, in tests/text/tokenizers.json and others: tests do not need it.

pip install tokenizers sentencepiece
python tools/tokenizers_reference.py alice.txt

With `--compare alice.txt other.txt` nothing is stored: every kind is trained on the first text and compared with ours
on all of these, ids, tokens, spans and what is decoded (needs this project beside the library).
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tokenizers  # type: ignore[import-not-found]  # not in the project's environment
from tokenizers import (
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

HOME = Path(__file__).parent.parent / "tests" / "text"
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
NASTY = [
    *SAMPLES,
    " ",
    "   ",
    "  two  blanks   three ",
    "\n",
    "a\r\nb\rc\n\nd",
    "\x00zero\x01 \x7f control \ufffd",
    "zero\u200bwidth\u200cjoin\u200der \ufeffmark \u00adsoft",
    "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL} \N{WAVING BLACK FLAG}\U000e0067\U000e007f \U0001f1ee\U0001f1f9 ❤️",
    "ﬁne ﬂour ① ㎏ ＡＢＣ ｶﾞ ℌ Å Å",
    "İstanbul ΣΑΣ straße ǅ ŉ",
    "漢字かな交じり文、東京。 㐀𠀀",
    "العربية עִבְרִית ไทยน้ำ தமிழ் ഓ",
    "q\u0307\u0323 e\u0301\u0302 \u0301alone",
    "▁already ▁▁ marked▁",
    "<0x41> <0xC3>",
    "the [MASK] of  [MASK]x[MASK] cat, cats bobcat",
    "don't do not we 've it 's . , !",
    "\U0001f600\U0001f601" * 3,
    "a" * 130,
    "ab" * 60 + " " + "-" * 40,
    "[CLS] he said [SEP] <s>no</s> <unk> <pad>",
    "Über über ÜBER Straße",
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


# the tokenizers of published models, small


def bert(text: str, size: int, **settings: Any) -> Tokenizer:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    tokenizer = trained(
        models.WordPiece(unk_token="[UNK]"),
        trainer,
        text,
        normalizer=normalizers.BertNormalizer(**settings),
        pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
        decoder=decoders.WordPiece(),
    )
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens([AddedToken("[MASK]", lstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("uber", normalized=True), AddedToken("cat", single_word=True, normalized=False)])
    return tokenizer


def roberta(text: str, size: int) -> Tokenizer:
    special = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, rstrip=True)]
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return trained(
        models.BPE(),
        trainer,
        text,
        pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoder=decoders.ByteLevel(),
        post_processor=processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False),
    )


def falcon(text: str, size: int) -> Tokenizer:
    """Bytes first, then other cuts."""
    cut = [
        pre_tokenizers.Punctuation("contiguous"),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(individual_digits=False),
        pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
    ]
    tokenizer = bpe(text, size, pre_tokenizers.Sequence(cut))
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=True),
            processors.TemplateProcessing(
                single="[BOS]:0 $A:0", pair="[BOS]:0 $A:0 [BOS]:1 $B:1", special_tokens=[("[BOS]", 2)]
            ),
        ]
    )
    return tokenizer


def clip(text: str, size: int) -> Tokenizer:
    """Words end with a sign."""
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<|startoftext|>", "<|endoftext|>"],
        end_of_word_suffix="</w>",
        show_progress=False,
    )
    model = models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>", fuse_unk=False)
    form = [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    cut = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", True)]
    )
    return trained(
        model, trainer, text, normalizer=normalizers.Sequence(form), pre_tokenizer=cut, decoder=decoders.BPEDecoder()
    )


def byte_tokens() -> list[str]:
    return [f"<0x{byte:02X}>" for byte in range(256)]


def llama(text: str, size: int, fallback: bool = True, modern: bool = False) -> Tokenizer:
    """Characters and, for those that are not known, their bytes; a text is not cut at all."""
    special = ["<unk>", "<s>", "</s>"]
    base = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    base.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    base.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[*special, *(byte_tokens() if fallback else [])], show_progress=False
    )
    base.train_from_iterator([text], trainer)
    content = json.loads(base.to_str())
    content["added_tokens"] = content["added_tokens"][: len(special)]
    content["model"]["byte_fallback"] = fallback
    content["pre_tokenizer"] = None
    tokenizer = Tokenizer.from_str(json.dumps(content))
    if modern:
        tokenizer.normalizer = None
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    return tokenizer


def charsmap(text: str, rules: str) -> bytes:
    """SentencePiece's own normalizer, compiled."""
    import sentencepiece  # type: ignore[import-not-found]

    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rules.tsv"
        table.write_text(rules, encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text.splitlines()),
            model_writer=model,
            vocab_size=100,
            minloglevel=2,
            **({"normalization_rule_tsv": str(table)} if rules else {"normalization_rule_name": "nmt_nfkc"}),
        )
    spec = field(model.getvalue(), 3)  # normalizer_spec
    return field(spec, 2)  # precompiled_charsmap


def field(message: bytes, wanted: int) -> bytes:
    """A field of a message of protocol buffers in which all fields before it are texts, bytes or messages."""

    def number(place: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            value |= (message[place] & 0x7F) << shift
            shift += 7
            place += 1
            if message[place - 1] < 0x80:
                return value, place

    place = 0
    while True:
        tag, place = number(place)
        length, place = number(place)
        if tag == wanted << 3 | 2:
            return message[place : place + length]
        place += length


# small letters, a ligature, a letter with its mark, line ends, something that vanishes, something that grows
RULES = [
    ("A", "a"),
    ("ﬁ", "fi"),
    ("e\u0301", "é"),
    ("\r", " "),
    ("\t", " "),
    ("\u200b", ""),
    ("㎏", "kg"),
    ("Ⅷ", "VIII"),
]
RULES_TSV = "\n".join(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) for a, b in RULES)


def t5(text: str, size: int, rules: str = RULES_TSV, fallback: bool = False, **metaspace: Any) -> Tokenizer:
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=size,
        special_tokens=[*special, *(byte_tokens() if fallback else [])],
        unk_token="<unk>",
        show_progress=False,
    )
    cut = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(**metaspace)])
    tokenizer = trained(models.Unigram(), trainer, text, pre_tokenizer=cut)
    content = json.loads(tokenizer.to_str())
    content["model"]["byte_fallback"] = fallback
    content["added_tokens"] = content["added_tokens"][: len(special)]
    content["normalizer"] = {
        "type": "Precompiled",
        "precompiled_charsmap": base64.b64encode(charsmap(text, rules)).decode(),
    }
    tokenizer = Tokenizer.from_str(json.dumps(content))
    tokenizer.decoder = decoders.Metaspace(**metaspace)
    if fallback:
        tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(**metaspace)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return tokenizer


def albert(text: str, size: int) -> Tokenizer:
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]"]
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=special, unk_token="<unk>", show_progress=False)
    form = [
        *(normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD()),
        *(normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()),
        normalizers.Replace(Regex(" {2,}"), " "),
    ]
    cut = pre_tokenizers.Metaspace(prepend_scheme="always")
    template = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return trained(
        models.Unigram(),
        trainer,
        text,
        normalizer=normalizers.Sequence(form),
        pre_tokenizer=cut,
        decoder=decoders.Metaspace(),
        post_processor=template,
    )


def published(text: str, scale: int = 1) -> dict[str, Tokenizer]:
    return {
        "bert": bert(text, 300 * scale),
        "bert_cased": bert(text, 200 * scale, lowercase=False, strip_accents=True, handle_chinese_chars=False),
        "roberta": roberta(text, 300 * scale),
        "falcon": falcon(text, 300 * scale),
        "clip": clip(text, 200 * scale),
        "llama": llama(text, 500 * scale),
        "llama_first": llama(text, 450 * scale, modern=True),
        "llama_unknown": llama(text, 200 * scale, fallback=False),
        "t5": t5(text, 250 * scale),
        "t5_bytes": t5(text, 450 * scale, fallback=True, prepend_scheme="first"),
        "albert": albert(text, 200 * scale),
    }


# storing


def stored(text: str, samples: list[str], found: dict[str, Tokenizer]) -> dict[str, Any]:
    out: dict[str, Any] = {"version": tokenizers.__version__, "text": text, "samples": samples, "cases": {}}
    for name, tokenizer in found.items():
        encodings = [tokenizer.encode(sample) for sample in [*samples, text[:500]]]
        bare = [tokenizer.encode(sample, add_special_tokens=False) for sample in [*samples, text[:500]]]
        out["cases"][name] = {
            "file": json.loads(tokenizer.to_str()),
            "ids": [encoding.ids for encoding in encodings],
            "offsets": [encoding.offsets for encoding in bare],
            "decoded": [tokenizer.decode(encoding.ids) for encoding in encodings],
        }
    return out


def store(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{path}: {path.stat().st_size // 1024} kB")


def digest(ids: list[int]) -> str:
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:16]


def main(path: str) -> None:
    text = Path(path).read_text(encoding="utf-8")
    start = text.index("CHAPTER I")
    excerpt = text[start : start + 4000]
    store(HOME / "tokenizers.json", stored(excerpt, SAMPLES, cases(excerpt)))
    content: dict[str, Any] = {"version": tokenizers.__version__, "samples": NASTY, "cases": {}}
    for name, tokenizer in published(excerpt).items():
        encodings = [tokenizer.encode(sample) for sample in NASTY]
        pair = tokenizer.encode(NASTY[1], NASTY[2])
        whole = tokenizer.encode(excerpt)
        content["cases"][name] = {
            "file": json.loads(tokenizer.to_str()),
            "ids": [encoding.ids for encoding in encodings],
            "offsets": [encoding.offsets for encoding in encodings],
            "decoded": [tokenizer.decode(encoding.ids) for encoding in encodings],
            "pair": [pair.ids, pair.type_ids, pair.offsets],
            "text": [len(whole.ids), digest(whole.ids), digest([n for span in whole.offsets for n in span])],
        }
    store(HOME / "published.json", content)


# comparing


def differences(ours: Any, theirs: Tokenizer, text: str, name: str, pair: str | None = None) -> Iterator[str]:
    encoding = theirs.encode(text, pair)
    ids = ours.encode(text, pair).tolist()
    if ids != encoding.ids:
        at = next((i for i, (a, b) in enumerate(zip(ids, encoding.ids, strict=False)) if a != b), None)
        context = (
            None
            if at is None
            else (encoding.tokens[at - 3 : at + 4], [ours.id_to_token(n) for n in ids[at - 3 : at + 4]])
        )
        yield f"{name}: ids of {text[:40]!r}: {len(ids)} and {len(encoding.ids)}, first at {at}: {context}"
        return
    found = ours.encode_with_offsets(text, pair, add_special_tokens=True)
    if found.ids.tolist() != ids or found.type_ids.tolist() != encoding.type_ids:
        yield f"{name}: types of {text[:40]!r}"
    added = {token.content for token in theirs.get_added_tokens_decoder().values()}  # which the library spells as found
    named = zip(found.tokens, encoding.tokens, strict=True)
    if "Unigram" not in theirs.to_str() and any(a != b and a not in added for a, b in named):
        yield f"{name}: tokens of {text[:40]!r}"
    wrong = [(a, b, t) for a, b, t in zip(found.offsets, encoding.offsets, encoding.tokens, strict=True) if a != b]
    if wrong:
        yield f"{name}: {len(wrong)} spans of {text[:40]!r}: {wrong[:3]}"
    for skip in (True, False):
        if ours.decode(ids, skip_special_tokens=skip) != theirs.decode(ids, skip_special_tokens=skip):
            yield f"{name}: decoding {text[:40]!r}: {ours.decode(ids)[:60]!r}, {theirs.decode(ids)[:60]!r}"


def compare(paths: list[str]) -> None:
    import wonderland as wl  # not needed when references are stored

    texts = [Path(path).read_text(encoding="utf-8") for path in paths]
    found = published(texts[0][:100_000], 4) | cases(texts[0][:100_000])
    found["t5_nmt_nfkc"] = t5(texts[0][:100_000], 1000, rules="")
    for name, tokenizer in found.items():
        count = 0
        ours = wl.text.Tokenizer.from_str(tokenizer.to_str())
        for sample in [*NASTY, *texts]:
            for line in differences(ours, tokenizer, sample, name):
                print(line)
                count += 1
        for line in differences(ours, tokenizer, NASTY[2], name, NASTY[3]):
            print("pair", line)
        again = Tokenizer.from_str(wl.text.Tokenizer.from_str(tokenizer.to_str()).to_str())
        if again.encode(texts[0]).ids != tokenizer.encode(texts[0]).ids:
            print(f"{name}: the file that is written here reads otherwise")
        ours = wl.text.Tokenizer.from_str(tokenizer.to_str())
        begin = time.perf_counter()
        for text in texts:
            ours.encode(text)
        seconds = time.perf_counter() - begin
        print(f"{name}: {count} differences; {sum(map(len, texts)) / seconds / 1e6:.2f} million characters a second")


if __name__ == "__main__":
    if sys.argv[1] == "--compare":
        compare(sys.argv[2:])
    else:
        main(sys.argv[1])
