"""Tokens and text as they come. Book, section 8.4.2.

for token in wl.generation.stream_tokens(model, prompt, 100): ...
for piece in wl.generation.stream_text(model, tokenizer, "Once", 100): print(piece, end="", flush=True)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..core.arguments import shown
from ..core.errors import InputError
from ..core.typing import Array
from ..text.tokenizer import Tokenizer
from ..train.evaluation import evaluating
from ..train.step import Model
from ..transforms.imperative import no_grad
from .prompts import Prompt
from .sampling import Writer, writer_for

StopStrings: TypeAlias = str | Iterable[str] | None
NEAR = 8  # tokens that are decoded together with a new one, whose text may depend on those before it


def stream_tokens(model: Model, prompt: Prompt = None, max_new_tokens: int = 100, **settings: Any) -> Iterator[int]:
    """The tokens that `generate` writes for one prompt with the same settings, each as soon as it is there.

    >>> import wonderland as wl
    >>> model = lambda tokens: wl.one_hot((tokens + 1) % 3, 3) * 100.0
    >>> for token in wl.generation.stream_tokens(model, [0], 4):
    ...     print(token, end=".")
    1.2.0.1.

    What is not asked for is not computed. Until the iteration ends, the model is in evaluation mode.
    """
    with evaluating(model), no_grad():
        writer = writer_for("stream_tokens", model, prompt, max_new_tokens, **settings)
    if len(writer.table) > 1:
        raise InputError(f"stream_tokens: {len(writer.table)} prompts.", "one prompt, or generate(..., callback=...)")
    return (int(tokens[0]) for _, tokens in turns(model, writer))


def stream_text(
    model: Model,
    tokenizer: Tokenizer,
    prompt: str = "",
    max_new_tokens: int = 200,
    *,
    stop_strings: StopStrings = None,
    **settings: Any,
) -> Iterator[str]:
    """The text that `generate_text` writes after one prompt, in pieces of whole characters as they come.

    >>> import wonderland as wl
    >>> tokenizer = wl.text.CharTokenizer.train("abc")
    >>> model = lambda tokens: wl.one_hot((tokens + 1) % 3, 3) * 100.0
    >>> list(wl.generation.stream_text(model, tokenizer, "ca", 4))
    ['b', 'c', 'a', 'b']

    Prompt and pieces together are the text. What may be the beginning of one of the `stop_strings` is held back until
    it is known not to be.
    """
    if not isinstance(prompt, str):
        raise InputError(f"stream_text: a prompt of type {type(prompt).__name__}.", "one text")
    stops = as_stop_strings("stream_text", stop_strings)
    ids = prompt_ids("stream_text", model, tokenizer, prompt, settings)
    if not getattr(model, "stop_tokens", ()):
        settings.setdefault("stop_tokens", tokenizer.eos_id)
    with evaluating(model), no_grad():
        writer = writer_for("stream_text", model, ids, max_new_tokens, **settings)
    text = TextStream(tokenizer, writer.results()[0], stops)

    def pieces() -> Iterator[str]:
        for _, tokens in turns(model, writer):
            if piece := text.push(int(tokens[0])):
                yield piece
            if text.ended:
                return
        if piece := text.finish():
            yield piece

    return pieces()


def turns(model: Model, writer: Writer) -> Iterator[tuple[Array, Array]]:
    """The turns of a writer; between them, whoever iterates has the settings of before."""
    steps = iter(writer)
    with evaluating(model):
        while True:
            with no_grad():
                turn = next(steps, None)
            if turn is None:
                return
            yield turn


def prompt_ids(
    name: str, model: Model, tokenizer: Tokenizer, text: str, settings: Mapping[str, object]
) -> Array | None:
    """The tokens of a prompt; the bos token for an empty one, None if the model has a token to begin with."""
    ids = tokenizer.encode(text, add_eos=False)
    if len(ids):
        return ids
    if settings.get("prefix") is not None or settings.get("bos") is not None:
        return np.zeros(0, np.int64)
    if getattr(model, "start_token", None) is not None:
        return None
    if tokenizer.bos_id is None:
        raise InputError(
            f"{name}: the prompt {shown(text)} has no tokens, and the tokenizer no bos token.",
            'a prompt, or special_tokens=["[BOS]"] when the tokenizer is trained',
        )
    return np.array([tokenizer.bos_id])


def as_stop_strings(name: str, stop_strings: StopStrings) -> tuple[str, ...]:
    """Texts that end a text: None, one or several."""
    if stop_strings is None:
        return ()
    listed = [stop_strings] if isinstance(stop_strings, str) else list(stop_strings)
    for text in listed:
        if not isinstance(text, str) or not text:
            raise InputError(f"{name}: the stop string {shown(text)}.", "a text of one character or more")
    return tuple(listed)


class TextStream:
    """New text of a sequence as its tokens come: a character of several bytes when its last one has come.

    A text `ended` is one in which a stop string was found, wherever tokens begin and end; what was told ends before it.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Array, stops: tuple[str, ...] = ()) -> None:
        self.tokenizer, self.stops = tokenizer, stops
        self.tokens: list[int] = prompt[-NEAR:].tolist()
        self.before = tokenizer.decode(self.tokens)  # the text of these tokens that was taken
        self.held = ""  # may be the beginning of a stop string
        self.told = ""
        self.ended = False

    def push(self, token: int) -> str:
        """The text that can be told after one more token."""
        self.tokens.append(token)
        text = self.tokenizer.decode(self.tokens)
        if text.endswith("\ufffd"):
            return ""
        new = text[len(self.before) :]
        self.tokens = self.tokens[-NEAR:]
        self.before = self.tokenizer.decode(self.tokens)
        return self._tell(self.held + new)

    def finish(self) -> str:
        """What is left when no token comes any more."""
        if self.ended:
            return ""
        rest = self.tokenizer.decode(self.tokens)[len(self.before) :]
        piece = self._tell(self.held + rest)
        left, self.held = self.held, ""  # no stop string after all
        self.told += left
        return piece + left

    def _tell(self, text: str) -> str:
        found = [place for stop in self.stops if (place := text.find(stop)) >= 0]
        if found:
            self.ended, keep = True, min(found)
        else:
            keep = len(text) - max((_overlap(text, stop) for stop in self.stops), default=0)
        self.held = "" if self.ended else text[keep:]
        self.told += text[:keep]
        return text[:keep]


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of a text a stop string could begin with."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
