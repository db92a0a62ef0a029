"""From text to text: a tokenizer around the decoding of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..core.errors import InputError
from ..text.tokenizer import Tokenizer
from ..train.evaluation import evaluating
from ..train.step import Model
from ..transforms.imperative import no_grad
from .beam import beam_search
from .prompts import Prompt
from .sampling import writer_for
from .streaming import StopStrings, TextStream, as_stop_strings, prompt_ids


def generate_text(
    model: Model,
    tokenizer: Tokenizer,
    prompt: str | Iterable[str] = "",
    max_new_tokens: int = 200,
    *,
    beams: int | None = None,
    stop_strings: StopStrings = None,
    callback: Callable[[str], object] | None = None,
    **settings: Any,
) -> Any:
    """A text, or several, continued by a model. Book, section 8.4.3.

    >>> import wonderland as wl
    >>> tokenizer = wl.text.CharTokenizer.train("abc")
    >>> model = lambda tokens: wl.one_hot((tokens + 1) % 3, 3) * 100.0
    >>> wl.generation.generate_text(model, tokenizer, "ca", 4)
    'cabcab'
    >>> wl.generation.generate_text(model, tokenizer, "ca", 9, stop_strings="ab")
    'cabc'

    The text is what `tokenizer.decode` makes of prompt and continuation, special tokens left out. An empty prompt
    begins with the tokenizer's bos token, or the model's own. A text ends at `model.stop_tokens` if the model has some,
    else at the eos token if there is one, unless `stop_tokens` says otherwise, and before the first of the
    `stop_strings` in what is new, even if it begins in one token and ends in another. With `beams` it is the best that
    `beam_search` finds, else one that `generate` draws; both get the other `settings`.

    `callback(piece)` is given the new text as it comes, whole characters at a time; it is for one prompt. `stream_text`
    gives the same pieces to a loop.
    """
    name = "generate_text"
    single = isinstance(prompt, str)
    texts = [prompt] if isinstance(prompt, str) else list(prompt)
    stops = as_stop_strings(name, stop_strings)
    if callback is not None and not (single and beams is None):
        raise InputError(f"{name}: the callback is for one prompt that is sampled.", "one prompt, no beams")
    if stops and beams is not None:
        raise InputError(f"{name}: beams look at tokens, not at stop_strings.", "stop_tokens, or no beams")
    ids = [prompt_ids(name, model, tokenizer, text, settings) for text in texts]
    begins = all(row is None for row in ids)  # with a token of the model's own
    rows: Prompt = None if begins else [[] if row is None else row for row in ids]
    if not getattr(model, "stop_tokens", ()):
        settings.setdefault("stop_tokens", tokenizer.eos_id)
    if beams is not None:
        groups = beam_search(model, rows, max_new_tokens, beams=beams, **settings)
        found = [group[0].tokens for group in (groups if isinstance(groups[0], list) else [groups])]
        out = [tokenizer.decode(tokens) for tokens in found]
        return out[0] if single and len(out) == 1 else out
    with evaluating(model), no_grad():
        writer = writer_for(name, model, rows, max_new_tokens, **settings)
        prompts = writer.results()
        followed = bool(stops) or callback is not None
        streams = [TextStream(tokenizer, row, stops) for row in prompts] if followed else []
        for written, tokens in writer:
            for row in written.tolist() if followed else ():
                piece = streams[row].push(int(tokens[row]))
                if piece and callback is not None:
                    callback(piece)
                if streams[row].ended:
                    writer.end(row)
    if callback is not None and (rest := streams[0].finish()):
        callback(rest)
    out = []
    for row, tokens in enumerate(writer.results()):
        ended = followed and streams[row].ended
        out.append(tokenizer.decode(prompts[row]) + streams[row].told if ended else tokenizer.decode(tokens))
    return out[0] if single and len(out) == 1 else out
