"""From a text to ids and the spans that they come from: special tokens, normalizer, pre-tokenizer, model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.errors import InputError
from .models import Model
from .normalizers import Normalizer, Span, aligned
from .pre_tokenizers import Piece, PreTokenizer
from .special_tokens import AddedToken, TokenFinder


class Segmenter:
    """The four steps from a text to ids.

    >>> from wonderland.text import WordLevel, pre_tokenizers
    >>> steps = Segmenter(WordLevel({"the": 0, "cat": 1}), None, pre_tokenizers.Whitespace(), [], {})
    >>> steps.ids("the  cat"), steps.with_spans("the  cat")
    ([0, 1], ([0, 1], [(0, 3), (5, 8)]))
    """

    def __init__(
        self,
        model: Model,
        normalizer: Normalizer | None,
        pre_tokenizer: PreTokenizer | None,
        added: Sequence[AddedToken],
        ids: Mapping[str, int],
    ) -> None:
        self.model, self.normalizer, self.pre_tokenizer = model, normalizer, pre_tokenizer
        self._ids = ids
        self._raw = TokenFinder([token for token in added if not token.normalized])
        self._normalized = TokenFinder([token for token in added if token.normalized], normalizer)

    def ids(self, text: str, split_special: bool = False) -> list[int]:
        """The ids of a text."""
        ids: list[int] = []
        for part, start, _, added in self._sections(text, split_special):
            if added is not None:
                ids.append(self._ids[added])
                continue
            normalized = part if self.normalizer is None else self.normalizer(part)
            for piece, number, _ in self._pieces(normalized, start, split_special):
                if number is None:
                    ids += self.model.encode(piece.text)[0]
                else:
                    ids.append(number)
        return ids

    def with_spans(self, text: str, split_special: bool = False) -> tuple[list[int], list[Span]]:
        """The ids of a text, and where each comes from."""
        ids: list[int] = []
        out: list[Span] = []
        for part, start, end, added in self._sections(text, split_special):
            if added is not None:
                ids.append(self._ids[added])
                out.append((start, end))
                continue
            normalized, spans = part, None
            if self.normalizer is not None:
                normalized, spans = aligned(self.normalizer, part)
            for piece, number, places in self._pieces(normalized, start, split_special):
                if number is None:
                    numbers, parts = self.model.encode(piece.text)
                    ids += numbers
                    found = [(piece.places[a], piece.places[b - 1]) for a, b in parts]
                else:
                    ids.append(number)
                    found = [places]
                for first, last in found:
                    if spans is None:
                        out.append((first, last + 1))
                    else:
                        out.append((start + spans[first - start][0], start + spans[last - start][1]))
        return ids, out

    def _sections(self, text: str, split_special: bool) -> Iterator[tuple[str, int, int, str | None]]:
        if not isinstance(text, str):
            raise InputError(f"Tokenizer: a {type(text).__name__} is not text.", "a str; `encode_batch` takes several")
        return self._raw.sections(text, not split_special)

    def _pieces(
        self, normalized: str, start: int, split_special: bool
    ) -> Iterator[tuple[Piece, int | None, tuple[int, int]]]:
        """The pieces for the model, or a special token's id; with it, its first and last character.

        Places in the normalized part are counted from where the part begins in the text, so that 0 is the text's first.
        """
        for part, first, last, added in self._normalized.sections(normalized, not split_special):
            whole = Piece.of(part, start + first)
            if added is not None:
                yield whole, self._ids[added], (start + first, start + last - 1)
                continue
            for piece in [whole] if self.pre_tokenizer is None else self.pre_tokenizer([whole]):
                yield piece, None, (0, 0)
