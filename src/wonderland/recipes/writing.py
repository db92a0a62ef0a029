"""Texts from the model of a run or of a published folder: the continuation of a prompt, or what a source becomes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from .. import generation, models, random
from ..core.errors import FileError, InputError
from ..nn.adaptation.quantization import quantized
from ..nn.module.module import Module
from ..text import Tokenizer
from .evaluating import open_run
from .kept import described
from .tasks.language import tokenizer_of

WRITING = ("language", "pairs")  # the tasks whose models write


@dataclass(frozen=True)
class Author:
    """A model that writes, its tokenizer, and whether it writes about a source."""

    model: Module
    tokenizer: Tokenizer
    about_source: bool

    def begin(self, prompt: str) -> tuple[str, dict[str, Any]]:
        """The text that is continued, and what is written about."""
        if not self.about_source:
            return prompt or ("\n" if self.tokenizer.bos_id is None else ""), {}
        source = self.tokenizer.encode(prompt)
        if not len(source):
            raise InputError("generate: there is no source.", '--prompt "a text"')
        return "", {"source": source[None]}


def open_author(path: str | os.PathLike[str]) -> Author:
    """The model of a run, or that of a folder as Hugging Face publishes it."""
    where = os.fspath(path)
    if os.path.exists(os.path.join(where, "config.json")):
        return _published(where)
    trained = open_run(where)
    if trained.task.name not in WRITING:
        remedy = "a run of `--model gpt`, `lstm`, `wavenet` or others on a text, or of `seq2seq`"
        if trained.task.name == "masked":
            remedy = f"`wonderland predict`, which fills in [MASK]; or {remedy}"
        raise InputError(f"{where} is no model that writes: its task is {trained.task.name!r}.", remedy)
    with described(trained.path):
        about_source = trained.task.name == "pairs"
        return Author(
            trained.model.get_submodule("net") if about_source else trained.model,
            tokenizer_of(trained.about),
            about_source,
        )


def generate(
    path: str | os.PathLike[str],
    prompt: str = "",
    length: int = 300,
    *,
    callback: Callable[[str], object] | None = None,
    **settings: Any,
) -> str:
    """A text that a run's model writes after a prompt, or about it; `path` may also be a folder of Hugging Face.

    The settings are `temperature` (0.8, and 0 for what is written about a source), `top_k`, `top_p`, `min_p`,
    `repetition_penalty`, `seed` and `stop`, texts before which it ends; or `beams`, for the best of a search.
    With `quantize`, "int8", "int4" or "bfloat16", weights have so few bits, as `wl.quantize` makes them, `activations`
    is its setting of that name, and `note` is called with the size and error. Keys and values are kept in
    `cache_dtype`, "float16" or "bfloat16", if it is given. `callback` is given the new text piece by piece.
    """
    author, text, how = _asked(path, prompt, settings)
    beams = how.pop("beams", None)
    if callback is not None:
        pieces = list(_told(_stream(author, text, length, beams, how), callback))
        return text + "".join(pieces)
    if how.get("stop_strings") and beams is None and author.about_source:
        return "".join(_stream(author, text, length, beams, how))
    return str(generation.generate_text(author.model, author.tokenizer, text, length, beams=beams, **how))


def stream(path: str | os.PathLike[str], prompt: str = "", length: int = 300, **settings: Any) -> Iterator[str]:
    """The pieces of what `generate` writes, as they come; the prompt is the first if it is a part of the text."""
    author, text, how = _asked(path, prompt, settings)
    pieces = _stream(author, text, length, how.pop("beams", None), how)
    return chain([text] if text else [], pieces)


def _asked(path: str | os.PathLike[str], prompt: str, settings: dict[str, Any]) -> tuple[Author, str, dict[str, Any]]:
    """The model, the text it goes on from, and the settings of `wl.generation`."""
    given = {name: value for name, value in settings.items() if value is not None}
    kind, note = given.pop("quantize", None), given.pop("note", None)
    activations = given.pop("activations", None)
    if activations is not None and kind is None:
        raise InputError(f"generate: activations={activations!r} without quantize.", "quantize='int8' beside it")
    if "beams" in given and (drawn := [name for name in given if name not in ("beams", "stop", "cache_dtype")]):
        raise InputError(f"generate: {drawn[0]} would do nothing: beams draw no tokens.", f"without {drawn[0]}")
    if "beams" in given and given.get("stop"):
        raise InputError("generate: beams look at tokens, and not at texts that end one.", "without stop")
    author = open_author(path)
    if kind is not None:
        small, told = quantized(author.model, kind, activations=activations or "float")
        author = replace(author, model=small)
        if note is not None:
            note(told.summary)
    text, how = author.begin(prompt)
    if "beams" in given:
        given.pop("stop", None)
        return author, text, {**how, **given}
    stops = given.pop("stop", ())
    how["stop_strings"] = [stops] if isinstance(stops, str) else list(stops) or None
    how["key"] = random.key(given.pop("seed", 0))
    given.setdefault("temperature", 0.0 if author.about_source else 0.8)
    return author, text, {**how, **given}


def _stream(author: Author, text: str, length: int, beams: int | None, how: dict[str, Any]) -> Iterator[str]:
    if beams is not None:
        raise InputError(
            "generate: beams know the best text when all is written.", "without --stream, or without beams"
        )
    return generation.stream_text(author.model, author.tokenizer, text, length, **how)


def _told(pieces: Iterable[str], callback: Callable[[str], object]) -> Iterator[str]:
    for piece in pieces:
        callback(piece)
        yield piece


def _published(folder: str) -> Author:
    """A folder with config.json, the weights and tokenizer.json."""
    path = os.path.join(folder, "tokenizer.json")
    if not os.path.exists(path):
        raise FileError(f"{folder} has no tokenizer.json, so text cannot be read.", "the folder with the tokenizer")
    model = models.from_pretrained(folder)
    if getattr(model, "generates", True) is False or isinstance(model, models.Whisper):
        raise InputError(f"{folder}: {type(model).__name__} does not write texts.", "GPT-2, LLaMA, T5 or a relative")
    return Author(model, Tokenizer.from_file(path), isinstance(model, models.EncoderDecoder))
