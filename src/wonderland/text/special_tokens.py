"""Special tokens: entries of a vocabulary that stand for no text, and the parts they play. Book, section 8.2.2."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.arguments import shown
from ..core.errors import InputError
from .patterns import WHITE, compiled

ROLES = ("pad", "unk", "bos", "eos", "mask")
# the names under which the parts are played in the files of others; the first is ours
USUAL = {
    "pad": ("[PAD]", "<pad>", "<|pad|>", "<PAD>"),
    "unk": ("[UNK]", "<unk>", "<|unk|>", "<UNK>", "[OOV]", "<oov>"),
    "bos": ("[BOS]", "<s>", "<bos>", "<|startoftext|>", "<|begin_of_text|>", "<|bos|>", "<BOS>", "[CLS]"),
    "eos": ("[EOS]", "</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>", "<|eos|>", "<EOS>", "[SEP]"),
    "mask": ("[MASK]", "<mask>", "<|mask|>", "<MASK>"),
}


@dataclass(frozen=True)
class AddedToken:
    """A token that is found in a text before the text is cut; a special one is left out by `decode`.

    The other fields: whether it must be a word of its own, whether it takes the white space before or after it along,
    and whether it is searched for in the normalized text.
    """

    content: str
    special: bool = True
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False


@dataclass(frozen=True)
class SpecialTokens:
    """Which token plays which part: padding, unknown, begin and end of a sequence, hidden; and all that are added.

    >>> special = SpecialTokens.named(["[PAD]", "[BOS]", "[SEP_A]"])
    >>> special.pad, special.bos, special.eos, [token.content for token in special.added]
    ('[PAD]', '[BOS]', None, ['[PAD]', '[BOS]', '[SEP_A]'])
    >>> SpecialTokens.named({"bos": "^", "eos": "$"}).eos
    '$'
    """

    added: tuple[AddedToken, ...] = ()
    pad: str | None = None
    unk: str | None = None
    bos: str | None = None
    eos: str | None = None
    mask: str | None = None

    def __post_init__(self) -> None:
        contents: set[str] = set()
        for token in self.added:
            content = token.content
            if not isinstance(content, str) or not content:
                raise InputError(f"special tokens: {shown(content)} is not a token.", "text that is not empty")
            if content in contents:
                raise InputError(f"special tokens: {content!r} is there twice.", "distinct tokens")
            contents.add(content)
        # one token may begin and end sequences; other parts would be confused when a batch is read
        players = [role for role in ROLES if getattr(self, role) is not None]
        for place, role in enumerate(players):
            for other in players[:place]:
                if getattr(self, role) == getattr(self, other) and {role, other} != {"bos", "eos"}:
                    raise InputError(
                        f"special tokens: {getattr(self, role)!r} is both {other} and {role}.", "a token for each part"
                    )

    @classmethod
    def named(cls, tokens: Mapping[str, str] | Iterable[str | AddedToken] = ()) -> SpecialTokens:
        """From a list of tokens, whose parts follow from their usual names, or from a dict of parts."""
        if isinstance(tokens, str):
            raise InputError(f"special tokens: {tokens!r} is one text.", f"a list, [{tokens!r}]")
        if isinstance(tokens, Mapping):
            if strange := [role for role in tokens if role not in ROLES]:
                raise InputError(f"special tokens: there is no part {strange[0]!r}.", f"parts from {ROLES}")
            contents = list(dict.fromkeys(tokens.values()))
            return cls(tuple(AddedToken(content) for content in contents), **tokens)
        added = tuple(token if isinstance(token, AddedToken) else AddedToken(token) for token in tokens)
        return cls(added, **usual_roles([token.content for token in added]))

    @property
    def contents(self) -> list[str]:
        """All of them, in the order of their ids."""
        return [token.content for token in self.added]

    def __repr__(self) -> str:
        parts = ", ".join(f"{role}={getattr(self, role)!r}" for role in ROLES if getattr(self, role) is not None)
        return f"SpecialTokens({parts})"


def usual_roles(contents: Sequence[str]) -> dict[str, str]:
    """The parts of tokens by their usual names.

    >>> usual_roles(["<s>", "<mask>", "cat"])
    {'bos': '<s>', 'mask': '<mask>'}
    """
    found: dict[str, str] = {}
    for role, names in USUAL.items():
        player = next((name for name in names if name in contents), None)
        if player is not None:
            found[role] = player
    return found


class TokenFinder:
    """Finds added tokens in a text, the longest at each place.

    >>> finder = TokenFinder([AddedToken("[EOS]")])
    >>> list(finder.sections("one[EOS]two"))
    [('one', 0, 3, None), ('[EOS]', 3, 8, '[EOS]'), ('two', 8, 11, None)]

    With a normalizer the texts are normalized ones, and so is what is searched for.
    """

    def __init__(self, added: Sequence[AddedToken], normalizer: Callable[[str], str] | None = None) -> None:
        self._tokens: dict[str, AddedToken] = {}  # by what is searched for
        for token in added:
            if content := normalizer(token.content) if normalizer else token.content:
                self._tokens.setdefault(content, token)
        longest_first = sorted(self._tokens, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def sections(self, text: str, search: bool = True) -> Iterator[tuple[str, int, int, str | None]]:
        """The parts of a text: ordinary ones, and added tokens with their names."""
        place = 0
        if self._pattern is not None and search:
            for match in self._pattern.finditer(text):
                start, end = match.span()
                token = self._tokens[match.group()]
                if start < place or (
                    token.single_word and (_is_word(text[start - 1 : start]) or _is_word(text[end : end + 1]))
                ):
                    continue
                while token.lstrip and start > place and ord(text[start - 1]) in WHITE:
                    start -= 1
                while token.rstrip and end < len(text) and ord(text[end]) in WHITE:
                    end += 1
                if place < start:
                    yield text[place:start], place, start, None
                yield text[start:end], start, end, token.content
                place = end
        if place < len(text):
            yield text[place:], place, len(text), None


def _is_word(character: str) -> bool:
    return bool(character) and compiled(r"\w", character.isascii()).match(character) is not None
