"""From text to text: a tokenizer around the decoding of tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arguments import shown
from ..errors import InputError
from ..text.tokenizer import Tokenizer
from .beam import beam_search
from .sampling import generate

__all__ = ["generate_text"]


def generate_text(
    model: Any,
    tokenizer: Tokenizer,
    prompt: Any = "",
    max_new_tokens: int = 200,
    *,
    beams: int | None = None,
    callback: Callable[[str], Any] | None = None,
    **settings: Any,
) -> Any:
    """A text, or several, continued by a model. Book, section 8.4.3.

    >>> import wonderland as wl
    >>> tokenizer = wl.text.CharTokenizer.train("abc")
    >>> model = lambda tokens: wl.one_hot((tokens + 1) % 3, 3) * 100.0
    >>> wl.generation.generate_text(model, tokenizer, "ca", 4)
    'cabcab'

    The text is what `tokenizer.decode` makes of prompt and continuation, special tokens left out. An empty prompt
    begins with the tokenizer's bos token. A text ends at the eos token, if there is one, unless `stop_tokens` says
    otherwise. With `beams` it is the best that `beam_search` finds, else one that `generate` draws; both get the other
    `settings`.

    `callback(piece)` is given the new text as it comes, whole characters at a time; it is for one prompt.
    """
    single = isinstance(prompt, str)
    texts = [prompt] if single else list(prompt)
    if callback is not None and not (single and beams is None):
        raise InputError("generate_text: the callback is for one prompt that is sampled.", "one prompt, no beams")
    prompts = []
    for text in texts:
        ids = tokenizer.encode(text, add_eos=False)
        if not len(ids):
            if tokenizer.bos_id is None:
                raise InputError(
                    f"generate_text: the prompt {shown(text)} has no tokens, and the tokenizer no bos token.",
                    'a prompt, or special_tokens=["[BOS]"] when the tokenizer is trained',
                )
            ids = np.array([tokenizer.bos_id])
        prompts.append(ids)
    settings.setdefault("stop_tokens", tokenizer.eos_id)
    if beams is not None:
        found = [group[0].tokens for group in beam_search(model, prompts, max_new_tokens, beams=beams, **settings)]
    else:
        told = None if callback is None else _Speaker(tokenizer, callback)
        found = generate(model, prompts, max_new_tokens, callback=told, **settings)
        if told is not None:
            told.finish()
    out = [tokenizer.decode(tokens) for tokens in found]
    return out[0] if single else out


class _Speaker:
    """Tells new text: a character of several bytes when its last one has come."""

    def __init__(self, tokenizer: Tokenizer, callback: Callable[[str], Any]) -> None:
        self.tokenizer, self.callback = tokenizer, callback
        self.tokens: list[int] = []
        self.told = 0  # characters

    def __call__(self, row: int, token: int) -> None:
        self.tokens.append(token)
        text = self.tokenizer.decode(self.tokens)
        if not text.endswith("\ufffd"):
            self._tell(text)

    def finish(self) -> None:
        """Tell what is left."""
        self._tell(self.tokenizer.decode(self.tokens))

    def _tell(self, text: str) -> None:
        if len(text) > self.told:
            self.callback(text[self.told :])
            self.told = len(text)
