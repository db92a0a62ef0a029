"""The entries of a `tokenizer.json` for normalizers, pre-tokenizers, decoders and post-processors, and our records.

A record has the fields of its entry, so that most need no more than their name in a table.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..core.arguments import shown
from ..core.errors import FileError
from . import decoders, normalizers, post_processors, pre_tokenizers
from .charsmap import Precompiled
from .decoders import Decoder
from .normalizers import Normalizer
from .post_processors import FIRST, SECOND, Part, PostProcessor
from .pre_tokenizers import PreTokenizer

Json = dict[str, Any]
Read = TypeVar("Read")

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_NORMALIZERS: dict[str, type] = {
    name: getattr(normalizers, name) for name in ("Lowercase", "StripAccents", "Strip", "Prepend", "BertNormalizer")
}
_PRE_TOKENIZERS: dict[str, type] = {
    name: getattr(pre_tokenizers, name)
    for name in ("Whitespace", "WhitespaceSplit", "Digits", "Punctuation", "BertPreTokenizer", "Metaspace", "ByteLevel")
}
_DECODERS: dict[str, type] = {
    name: getattr(decoders, name)
    for name in ("ByteLevel", "ByteFallback", "Fuse", "WordPiece", "Metaspace", "Strip", "BPEDecoder")
}
_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "bool | None": (bool, type(None)),
    "str | None": (str, type(None)),
}


# reading


def record(kind: Callable[..., Read], entry: Json) -> Read:
    """A record from an entry that has its fields; what is not there, or null, has the record's default."""
    values = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        value = entry.get(field.name)
        if value is None:
            if field.default is dataclasses.MISSING:
                raise KeyError(field.name)
            continue
        values[field.name] = checked(field.name, value, *_KINDS[str(field.type)])
    return kind(**values)


def checked(name: str, value: object, *kinds: type) -> Any:
    """The value, if it is of one of the kinds."""
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise FileError(f"{name} is {shown(value)}.", " or ".join(kind.__name__ for kind in kinds))
    if isinstance(value, int) and not 0 <= value < 2**31:
        raise FileError(f"{name} is {shown(value)}.", "a number from 0 to 2**31 - 1")
    return value


def unsupported(what: str, entry: Json) -> FileError:
    """The error for a kind that is not known here."""
    return FileError(f"The {what} {shown(entry.get('type'))} is not supported.", "a tokenizer without it")


def pattern(entry: Json) -> tuple[str, bool]:
    """A pattern, and whether it is plain text."""
    if "String" in entry["pattern"]:
        return entry["pattern"]["String"], True
    return entry["pattern"]["Regex"], False


def read_normalizer(entry: Json | None) -> Normalizer | None:
    """The normalizer of an entry."""
    if entry is None:
        return None
    match checked("the normalizer's type", entry.get("type"), str):
        case "Sequence":
            return normalizers.Normalizers(tuple(_there(read_normalizer(e)) for e in entry["normalizers"]))
        case "Replace":
            text, literal = pattern(entry)
            return normalizers.Replace(text, entry["content"], literal)
        case "Precompiled":
            return Precompiled(_from_base64(entry["precompiled_charsmap"]))
        case form if form in FORMS:
            return normalizers.UnicodeForm(form)
        case name if name in _NORMALIZERS:
            found: Normalizer = record(_NORMALIZERS[name], entry)
            return found
    raise unsupported("normalizer", entry)


def _from_base64(text: object) -> bytes:
    try:
        return base64.b64decode(checked("precompiled_charsmap", text, str), validate=True)
    except binascii.Error:
        raise FileError("The precompiled_charsmap is no base64.", "a whole tokenizer.json") from None


def _there(found: Read | None) -> Read:
    if found is None:
        raise FileError("A part of a sequence is null.", "a part with a type")
    return found


def read_pre_tokenizer(entry: Json | None) -> PreTokenizer | None:
    """The pre-tokenizer of an entry."""
    if entry is None:
        return None
    match checked("the pre-tokenizer's type", entry.get("type"), str):
        case "Sequence":
            return pre_tokenizers.PreTokenizers(tuple(_there(read_pre_tokenizer(e)) for e in entry["pretokenizers"]))
        case "Split":
            text, literal = pattern(entry)
            return pre_tokenizers.Split(text, entry["behavior"], bool(entry.get("invert", False)), literal)
        case name if name in _PRE_TOKENIZERS:
            found: PreTokenizer = record(_PRE_TOKENIZERS[name], _usual(entry))
            return found
    raise unsupported("pre-tokenizer", entry)


def _usual(entry: Json) -> Json:
    """An entry with what older files leave out, or call otherwise."""
    if entry["type"] == "Metaspace":
        return {"prepend_scheme": "never" if entry.get("add_prefix_space") is False else "always"} | entry
    return {"add_prefix_space": True} | entry if entry["type"] == "ByteLevel" else entry


def read_decoder(entry: Json | None) -> Decoder | None:
    """The decoder of an entry."""
    if entry is None:
        return None
    match checked("the decoder's type", entry.get("type"), str):
        case "Sequence":
            return decoders.Decoders(tuple(_there(read_decoder(part)) for part in entry["decoders"]))
        case "Replace":
            text, literal = pattern(entry)
            return decoders.ReplaceEach(normalizers.Replace(text, entry["content"], literal))
        case name if name in _DECODERS:
            found: Decoder = record(_DECODERS[name], _usual(entry))
            return found
    raise unsupported("decoder", entry)


def read_post_processor(entry: Json | None, ids: Mapping[str, int]) -> PostProcessor | None:
    """The post-processor of an entry; `ids` are those of all tokens."""
    if entry is None:
        return None

    def named(name: object, number: object) -> str:
        """A token, whose id must be that of the vocabulary."""
        token: str = checked("a token of the post-processor", name, str)
        if token in ids and ids[token] != number:
            raise FileError(f"The token {token!r} has the ids {ids[token]} and {shown(number)}.", "one id each")
        return token

    def parts(written: list[Json]) -> tuple[Part, ...]:
        out: list[Part] = []
        for part in written:
            if "Sequence" in part:
                text = {"A": FIRST, "B": SECOND}[part["Sequence"]["id"]]
                out.append(Part(text, checked("type_id", part["Sequence"]["type_id"], int)))
                continue
            special = entry["special_tokens"][part["SpecialToken"]["id"]]
            kind = checked("type_id", part["SpecialToken"]["type_id"], int)
            out += [Part(named(*both), kind) for both in zip(special["tokens"], special["ids"], strict=True)]
        return tuple(out)

    kind = checked("the post-processor's type", entry.get("type"), str)
    flags = {name: entry[name] for name in ("trim_offsets", "add_prefix_space") if isinstance(entry.get(name), bool)}
    match kind:
        case "TemplateProcessing":
            single = parts(entry["single"])
            pair = parts(entry["pair"]) if "pair" in entry else post_processors.Template().pair
            return post_processors.TemplateProcessing(single, pair)
        case "BertProcessing":
            return post_processors.BertProcessing(named(*entry["sep"]), named(*entry["cls"]))
        case "RobertaProcessing":
            return post_processors.RobertaProcessing(named(*entry["sep"]), named(*entry["cls"]), **flags)
        case "ByteLevel":
            return post_processors.ByteLevelProcessing(**flags, use_regex=bool(entry.get("use_regex", True)))
        case "Sequence":
            inner = [read_post_processor(part, ids) for part in entry["processors"]]
            return post_processors.PostProcessors(tuple(part for part in inner if part is not None))
    raise unsupported("post-processor", entry)


# writing


def written(part: object, ids: Mapping[str, int]) -> Json | None:
    """The entry of a record; `ids` are those of all tokens."""
    name = type(part).__name__
    match part:
        case None:
            return None
        case normalizers.UnicodeForm():
            return {"type": part.form}
        case normalizers.Replace():
            return {"type": "Replace", "pattern": _pattern_json(part), "content": part.content}
        case decoders.ReplaceEach():
            return written(part.replace, ids)
        case Precompiled():
            return {"type": name, "precompiled_charsmap": base64.b64encode(part.precompiled_charsmap).decode()}
        case pre_tokenizers.Split():
            return {"type": "Split", "pattern": _pattern_json(part), "behavior": part.behavior, "invert": part.invert}
        case post_processors.TemplateProcessing():
            return _template_json(part, ids)
        case post_processors.BertProcessing() | post_processors.RobertaProcessing():
            flags = {} if name == "BertProcessing" else {"trim_offsets": part.trim_offsets}  # type: ignore[union-attr]
            flags |= {} if name == "BertProcessing" else {"add_prefix_space": part.add_prefix_space}  # type: ignore[union-attr]
            return {"type": name, "sep": [part.sep, ids[part.sep]], "cls": [part.cls, ids[part.cls]]} | flags
        case post_processors.ByteLevelProcessing():
            return {"type": "ByteLevel"} | dataclasses.asdict(part)
    for kind, key in _SEQUENCES:
        if isinstance(part, kind):
            return {"type": "Sequence", key: [written(inner, ids) for inner in part.parts]}
    if type(part) in (*_NORMALIZERS.values(), *_PRE_TOKENIZERS.values(), *_DECODERS.values()):
        return {"type": name} | dataclasses.asdict(part)  # type: ignore[call-overload]
    raise FileError(f"Tokenizer: {shown(part)} cannot be written.", "one of the parts that wl.text has")


_SEQUENCES: tuple[tuple[type[Any], str], ...] = (
    (normalizers.Normalizers, "normalizers"),
    (pre_tokenizers.PreTokenizers, "pretokenizers"),
    (decoders.Decoders, "decoders"),
    (post_processors.PostProcessors, "processors"),
)


def _pattern_json(part: pre_tokenizers.Split | normalizers.Replace) -> Json:
    return {"String" if part.literal else "Regex": part.pattern}


def _template_json(template: post_processors.TemplateProcessing, ids: Mapping[str, int]) -> Json:
    def parts(of: tuple[Part, ...]) -> list[Json]:
        return [
            {"Sequence": {"id": "AB"[part.what], "type_id": part.type_id}}
            if isinstance(part.what, int)
            else {"SpecialToken": {"id": part.what, "type_id": part.type_id}}
            for part in of
        ]

    names = dict.fromkeys(part.what for part in (*template.single, *template.pair) if isinstance(part.what, str))
    return {
        "type": "TemplateProcessing",
        "single": parts(template.single),
        "pair": parts(template.pair),
        "special_tokens": {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in names},
    }
