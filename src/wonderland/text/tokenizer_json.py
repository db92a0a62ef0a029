"""The file format of the `tokenizers` library, `tokenizer.json`: what is written, and what is understood."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..arguments import shown
from ..errors import FileError, WonderlandError
from ..storage.parsing import parse_json
from .bpe import BPE
from .normalizers import Lowercase, Normalizers, Replace, StripAccents, UnicodeForm
from .pre_tokenizers import (
    ByteLevel,
    Digits,
    PreTokenizers,
    Punctuation,
    Split,
    Whitespace,
    WhitespaceSplit,
)
from .special_tokens import ROLES, AddedToken, SpecialTokens, usual_roles
from .word_level import WordLevel

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

Made = TypeVar("Made")

Json = dict[str, Any]
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
MOST_IDS = 2**31
_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_REFUSED = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback")  # of BPE


# writing


def to_json(tokenizer: Tokenizer) -> str:
    """The text of the file."""
    special = tokenizer.special_tokens
    padding = None
    if special.pad is not None:
        padding = {
            "strategy": "BatchLongest",
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": tokenizer.token_to_id(special.pad),
            "pad_type_id": 0,
            "pad_token": special.pad,
        }
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": padding,
        "added_tokens": [
            {"id": tokenizer.token_to_id(token.content), "content": token.content}
            | {flag: getattr(token, flag) for flag in _FLAGS}
            for token in special.added
        ],
        "normalizer": _normalizer_json(tokenizer.normalizer),
        "pre_tokenizer": _pre_tokenizer_json(tokenizer.pre_tokenizer),
        "post_processor": _template_json(tokenizer),
        "decoder": _decoder_json(tokenizer.decoder),
        "model": _model_json(tokenizer.model),
    }
    return json.dumps(content, ensure_ascii=False, indent=2)


def _model_json(model: BPE | WordLevel) -> Json:
    if isinstance(model, WordLevel):
        # the library wants a name for the unknown, whether or not there is such a token
        return {"type": "WordLevel", "vocab": model.vocab, "unk_token": model.unk or "[UNK]"}
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": model.unk,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": model.fuse_unk,
        "byte_fallback": False,
        "ignore_merges": model.ignore_merges,
        "vocab": model.vocab,
        "merges": [list(pair) for pair in model.merges],
    }


def _pattern_json(record: Split | Replace) -> Json:
    return {"String" if record.literal else "Regex": record.pattern}


def _normalizer_json(normalizer: Any) -> Json | None:
    match normalizer:
        case None:
            return None
        case UnicodeForm():
            return {"type": normalizer.form}
        case Lowercase() | StripAccents():
            return {"type": type(normalizer).__name__}
        case Replace():
            return {"type": "Replace", "pattern": _pattern_json(normalizer), "content": normalizer.content}
        case Normalizers():
            return {"type": "Sequence", "normalizers": [_normalizer_json(part) for part in normalizer.parts]}
    raise FileError(f"Tokenizer: {shown(normalizer)} cannot be written.", "a normalizer of wl.text.normalizers")


def _pre_tokenizer_json(cut: Any) -> Json | None:
    match cut:
        case None:
            return None
        case Split():
            return {"type": "Split", "pattern": _pattern_json(cut), "behavior": cut.behavior, "invert": cut.invert}
        case Whitespace() | WhitespaceSplit():
            return {"type": type(cut).__name__}
        case Digits():
            return {"type": "Digits", "individual_digits": cut.individual_digits}
        case Punctuation():
            return {"type": "Punctuation", "behavior": cut.behavior}
        case ByteLevel():
            return _byte_level_json(cut.add_prefix_space, cut.use_regex)
        case PreTokenizers():
            return {"type": "Sequence", "pretokenizers": [_pre_tokenizer_json(part) for part in cut.parts]}
    raise FileError(f"Tokenizer: {shown(cut)} cannot be written.", "a pre-tokenizer of wl.text.pre_tokenizers")


def _byte_level_json(add_prefix_space: bool = False, use_regex: bool = True) -> Json:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": False,
        "use_regex": use_regex,
    }


def _decoder_json(decoder: str | None) -> Json | None:
    return _byte_level_json() if decoder == "ByteLevel" else None if decoder is None else {"type": decoder}


def _template_json(tokenizer: Tokenizer) -> Json | None:
    around = (*tokenizer.before, *tokenizer.after)
    if not around:
        return None

    def part(token: str, kind: int) -> Json:
        return {"SpecialToken": {"id": token, "type_id": kind}}

    def text(name: str, kind: int) -> list[Json]:
        sequence = {"Sequence": {"id": name, "type_id": kind}}
        return [*(part(t, kind) for t in tokenizer.before), sequence, *(part(t, kind) for t in tokenizer.after)]

    return {
        "type": "TemplateProcessing",
        "single": text("A", 0),
        "pair": text("A", 0) + text("B", 1),
        "special_tokens": {
            token: {"id": token, "ids": [tokenizer.token_to_id(token)], "tokens": [token]} for token in around
        },
    }


# reading


def from_json(make: Callable[..., Made], source: str, text: str, roles: Mapping[str, str | None]) -> Made:
    """What `make`, the class of tokenizers, makes of a file's text; `source` is its name in errors."""
    if strange := [role for role in roles if role not in ROLES]:
        raise FileError(f"Tokenizer: there is no part {strange[0]!r} for a token to play.", f"parts from {ROLES}")
    try:
        content = parse_json(text)
    except ValueError as error:
        raise FileError(f"Tokenizer: {source} is not JSON: {error}.", "a whole tokenizer.json") from None
    if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
        raise FileError(
            f"Tokenizer: {source} has no model.", "a tokenizer.json, not tokenizer_config.json or vocab.json"
        )
    try:
        return make(**_parts(content, roles))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else error
        raise FileError(f"Tokenizer: {source} is not as it should be: {what}.", "a whole tokenizer.json") from None
    except WonderlandError as error:
        message = str(error).splitlines()[0]
        raise FileError(f"Tokenizer: {source} cannot be used. {message}", error.hint) from None


def _parts(content: Json, roles: Mapping[str, str | None]) -> dict[str, Any]:
    """The arguments of a tokenizer."""
    model = _model(content["model"])
    entries = content.get("added_tokens") or []
    ids: dict[str, int] = {}
    for entry in entries:
        name, number = entry["content"], _whole(entry["id"])
        if model.vocab.get(name, number) != number:
            raise FileError(f"The added token {name!r} has the ids {model.vocab[name]} and {number}.", "one id each")
        ids[name] = number
    added = tuple(
        AddedToken(entry["content"], **{flag: bool(entry.get(flag, False)) for flag in _FLAGS}) for entry in entries
    )
    before, after = _template(content.get("post_processor"))
    return {
        "model": model,
        "normalizer": _normalizer(content.get("normalizer")),
        "pre_tokenizer": _pre_tokenizer(content.get("pre_tokenizer")),
        "decoder": _decoder(content.get("decoder")),
        "special_tokens": SpecialTokens(added, **_roles(content, model, ids, before, after, roles)),
        "added_ids": ids,
        "before": before,
        "after": after,
    }


def _roles(
    content: Json,
    model: BPE | WordLevel,
    ids: dict[str, int],
    before: list[str],
    after: list[str],
    given: Mapping[str, str | None],
) -> dict[str, Any]:
    """Who plays which part: as given, as the file says, or by the usual names."""
    known = {**model.vocab, **ids}
    found = usual_roles(list(ids))
    if model.unk is not None:
        found["unk"] = model.unk
    if content.get("padding"):
        found["pad"] = content["padding"]["pad_token"]
    # a template names the tokens of its ends, whatever they are called
    found |= {role: tokens[0] for role, tokens in (("bos", before), ("eos", after)) if len(tokens) == 1}
    wanted = {role: name for role, name in given.items() if name is not None}
    for role, name in (found | wanted).items():
        if name not in known:
            raise FileError(f"The {role} token {name!r} is not among the tokens.", "a token of the vocabulary")
    # what was only guessed gives way to what is known
    taken = set(wanted.values())
    return {role: name for role, name in found.items() if role in ("bos", "eos") or name not in taken} | wanted


def _whole(number: Any) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < MOST_IDS:
        raise FileError(f"The id {shown(number)} is not an integer from 0 to {MOST_IDS - 1}.", "ids 0, 1, ...")
    return number


def _model(entry: Json) -> BPE | WordLevel:
    kind = entry.get("type") or ("BPE" if "merges" in entry else "WordLevel")
    if kind not in ("BPE", "WordLevel"):
        raise FileError(f"The model is {shown(kind)}.", "BPE or WordLevel")
    vocab = {token: _whole(number) for token, number in entry["vocab"].items()}
    if len(set(vocab.values())) < len(vocab):
        raise FileError("Two tokens of the vocabulary have one id.", "distinct ids")
    unk = entry.get("unk_token")
    if kind == "WordLevel":
        return WordLevel(vocab, unk if unk in vocab else None)
    for setting in _REFUSED:
        if entry.get(setting):
            raise FileError(f"The model has {setting}={entry[setting]!r}, which is not supported.", "BPE without it")
    return BPE(
        vocab,
        [_merge(pair) for pair in entry["merges"]],
        unk,
        bool(entry.get("fuse_unk", False)),
        bool(entry.get("ignore_merges", False)),
    )


def _merge(pair: Any) -> tuple[str, str]:
    """A merge is a list of two tokens, in older files a text with a space between them."""
    parts = pair.split(" ") if isinstance(pair, str) else pair
    if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise FileError(f"The merge {shown(pair)} is no pair of tokens.", "two tokens")
    return parts[0], parts[1]


def _pattern(entry: Json) -> tuple[str, bool]:
    """A pattern, and whether it is plain text."""
    if "String" in entry["pattern"]:
        return entry["pattern"]["String"], True
    return entry["pattern"]["Regex"], False


def _unsupported(what: str, entry: Json) -> FileError:
    return FileError(f"The {what} {shown(entry.get('type'))} is not supported.", "a tokenizer without it")


def _normalizer(entry: Json | None) -> Any:
    match entry and entry.get("type"):
        case None:
            return None
        case "Lowercase":
            return Lowercase()
        case "StripAccents":
            return StripAccents()
        case "Replace":
            pattern, literal = _pattern(entry)  # type: ignore[arg-type]
            return Replace(pattern, entry["content"], literal)  # type: ignore[index]
        case "Sequence":
            return Normalizers(tuple(_normalizer(part) for part in entry["normalizers"]))  # type: ignore[index]
        case form if form in _FORMS:
            return UnicodeForm(form)
    raise _unsupported("normalizer", entry)  # type: ignore[arg-type]


def _pre_tokenizer(entry: Json | None) -> Any:
    if entry is None:
        return None
    match entry.get("type"):
        case "Split":
            pattern, literal = _pattern(entry)
            return Split(pattern, entry["behavior"], bool(entry.get("invert", False)), literal)
        case "Whitespace":
            return Whitespace()
        case "WhitespaceSplit":
            return WhitespaceSplit()
        case "Digits":
            return Digits(bool(entry.get("individual_digits", False)))
        case "Punctuation":
            return Punctuation(entry.get("behavior", "Isolated"))
        case "ByteLevel":
            return ByteLevel(bool(entry.get("add_prefix_space", True)), bool(entry.get("use_regex", True)))
        case "Sequence":
            return PreTokenizers(tuple(_pre_tokenizer(part) for part in entry["pretokenizers"]))
    raise _unsupported("pre-tokenizer", entry)


def _decoder(entry: Json | None) -> str | None:
    if entry is None:
        return None
    if entry.get("type") in ("ByteLevel", "Fuse"):
        return str(entry["type"])
    raise _unsupported("decoder", entry)


def _template(entry: Json | None) -> tuple[list[str], list[str]]:
    """The special tokens before and after a text."""
    kind = None if entry is None else entry.get("type")
    if entry is None or kind == "ByteLevel":  # which only trims offsets
        return [], []
    if kind in ("RobertaProcessing", "BertProcessing"):
        return [entry["cls"][0]], [entry["sep"][0]]
    if kind == "Sequence":
        parts = [_template(part) for part in entry["processors"]]
        return [t for before, _ in reversed(parts) for t in before], [t for _, after in parts for t in after]
    if kind != "TemplateProcessing":
        raise _unsupported("post-processor", entry)
    before: list[str] = []
    after: list[str] = []
    side = before
    for part in entry["single"]:
        if "Sequence" in part:
            side = after
        else:
            side += entry["special_tokens"][part["SpecialToken"]["id"]]["tokens"]
    return before, after
