"""The file format of the `tokenizers` library, `tokenizer.json`: what is written, and what is understood."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.arguments import shown
from ..core.errors import FileError, WonderlandError
from ..storage.parsing import parse_json
from .bpe import BPE
from .models import Model
from .parts_json import (
    Json,
    checked,
    read_decoder,
    read_normalizer,
    read_post_processor,
    read_pre_tokenizer,
    written,
)
from .post_processors import FIRST, Template, template
from .special_tokens import ROLES, AddedToken, SpecialTokens, usual_roles
from .unigram import Unigram
from .word_level import WordLevel
from .word_piece import WordPiece

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

Made = TypeVar("Made")

MODELS = ("BPE", "WordPiece", "Unigram", "WordLevel")
MOST_IDS = 2**31
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


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
        "normalizer": written(tokenizer.normalizer, tokenizer.vocab),
        "pre_tokenizer": written(tokenizer.pre_tokenizer, tokenizer.vocab),
        "post_processor": written(tokenizer.post_processor, tokenizer.vocab),
        "decoder": written(tokenizer.decoder, tokenizer.vocab),
        "model": _model_json(tokenizer.model),
    }
    return json.dumps(content, ensure_ascii=False, indent=2)


def _model_json(model: Model) -> Json:
    match model:
        case WordLevel():
            # the library wants a name for the unknown, whether or not there is such a token
            return {"type": "WordLevel", "vocab": model.vocab, "unk_token": model.unk or "[UNK]"}
        case WordPiece():
            return {
                "type": "WordPiece",
                "unk_token": model.unk or "[UNK]",
                "continuing_subword_prefix": model.continuing_subword_prefix,
                "max_input_chars_per_word": model.max_input_chars_per_word,
                "vocab": model.vocab,
            }
        case Unigram():
            return {
                "type": "Unigram",
                "unk_id": None if model.unk is None else model.vocab[model.unk],
                "vocab": [list(piece) for piece in model.pieces],
                "byte_fallback": model.byte_fallback,
            }
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": model.unk,
        "continuing_subword_prefix": model.continuing_subword_prefix,
        "end_of_word_suffix": model.end_of_word_suffix,
        "fuse_unk": model.fuse_unk,
        "byte_fallback": model.byte_fallback,
        "ignore_merges": model.ignore_merges,
        "vocab": model.vocab,
        "merges": [list(pair) for pair in model.merges],
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
    except WonderlandError as error:
        message = str(error).splitlines()[0]
        raise FileError(f"Tokenizer: {source} cannot be used. {message}", error.hint) from None
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else error
        raise FileError(f"Tokenizer: {source} is not as it should be: {what}.", "a whole tokenizer.json") from None


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
    post_processor = read_post_processor(content.get("post_processor"), model.vocab | ids)
    around = template(post_processor)
    return {
        "model": model,
        "normalizer": read_normalizer(content.get("normalizer")),
        "pre_tokenizer": read_pre_tokenizer(content.get("pre_tokenizer")),
        "decoder": read_decoder(content.get("decoder")),
        "special_tokens": SpecialTokens(added, **_roles(content, model, ids, around, roles)),
        "added_ids": ids,
        "post_processor": post_processor,
    }


def _roles(
    content: Json, model: Model, ids: dict[str, int], around: Template, given: Mapping[str, str | None]
) -> dict[str, Any]:
    """Who plays which part: as given, as the file says, or by the usual names."""
    known = {**model.vocab, **ids}
    found = usual_roles(list(ids))
    if model.unk is not None:
        found["unk"] = model.unk
    if content.get("padding"):
        found["pad"] = content["padding"]["pad_token"]
    texts = [part.what for part in around.single]
    before, after = texts[: texts.index(FIRST)], texts[texts.index(FIRST) + 1 :]
    # a template names the tokens of its ends, whatever they are called
    found |= {role: tokens[0] for role, tokens in (("bos", before), ("eos", after)) if len(tokens) == 1}  # type: ignore[misc]
    if found.get("unk") in [name for role, name in found.items() if role != "unk"]:
        del found["unk"]  # the model has it; elsewhere it is what its other part says
    wanted = {role: name for role, name in given.items() if name is not None}
    for role, name in (found | wanted).items():
        if name not in known:
            raise FileError(f"The {role} token {name!r} is not among the tokens.", "a token of the vocabulary")
    # what was only guessed gives way to what is known
    taken = set(wanted.values())
    return {role: name for role, name in found.items() if role in ("bos", "eos") or name not in taken} | wanted


def _whole(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < MOST_IDS:
        raise FileError(f"The id {shown(number)} is not an integer from 0 to {MOST_IDS - 1}.", "ids 0, 1, ...")
    return number


def _model(entry: Json) -> Model:
    kind = entry.get("type") or _kind(entry)
    if kind not in MODELS:
        raise FileError(f"The model is {shown(kind)}.", f"one of {MODELS}")
    if kind == "Unigram":
        return _unigram(entry)
    vocab = {token: _whole(number) for token, number in entry["vocab"].items()}
    if len(set(vocab.values())) < len(vocab):
        raise FileError("Two tokens of the vocabulary have one id.", "distinct ids")
    unk = _text(entry, "unk_token")
    if kind == "WordLevel":
        return WordLevel(vocab, unk if unk in vocab else None)
    if kind == "WordPiece":
        prefix = _text(entry, "continuing_subword_prefix")
        longest = checked("max_input_chars_per_word", entry.get("max_input_chars_per_word", 100), int)
        return WordPiece(vocab, unk if unk in vocab else None, "##" if prefix is None else prefix, longest)
    if entry.get("dropout"):
        raise FileError(f"The model has dropout={shown(entry['dropout'])}, which is not supported.", "BPE without it")
    return BPE(
        vocab,
        [_merge(pair) for pair in entry["merges"]],
        unk,
        bool(entry.get("fuse_unk", False)),
        bool(entry.get("ignore_merges", False)),
        byte_fallback=bool(entry.get("byte_fallback", False)),
        continuing_subword_prefix=_text(entry, "continuing_subword_prefix"),
        end_of_word_suffix=_text(entry, "end_of_word_suffix"),
    )


def _kind(entry: Json) -> str:
    """The model of a file that does not name it."""
    if "merges" in entry:
        return "BPE"
    if isinstance(entry["vocab"], list):
        return "Unigram"
    return "WordPiece" if "continuing_subword_prefix" in entry else "WordLevel"


def _unigram(entry: Json) -> Unigram:
    pieces = [(checked("a token", token, str), _number(score)) for token, score in entry["vocab"]]
    unknown = entry.get("unk_id")
    if unknown is not None and _whole(unknown) >= len(pieces):
        raise FileError(f"unk_id={unknown} for {len(pieces)} tokens.", "one of them")
    return Unigram(pieces, None if unknown is None else pieces[unknown][0], bool(entry.get("byte_fallback", False)))


def _number(score: object) -> float:
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not abs(score) < 1e300:
        raise FileError(f"The log-probability {shown(score)} is no number.", "a finite number")
    return float(score)


def _text(entry: Json, name: str) -> str | None:
    found: str | None = checked(name, entry.get(name), str, type(None))
    return found


def _merge(pair: Any) -> tuple[str, str]:
    """A merge is a list of two tokens, in older files a text with a space between them."""
    parts = pair.split(" ") if isinstance(pair, str) else pair
    if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise FileError(f"The merge {shown(pair)} is no pair of tokens.", "two tokens")
    return parts[0], parts[1]
