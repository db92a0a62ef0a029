"""What stands around a text, or around two of them, once they are ids: [CLS] first [SEP] second [SEP].

Each is a record with the fields of its entry in a `tokenizer.json`. `template` gives what they come down to. Book,
section 8.2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..core.arguments import shown
from ..core.errors import InputError

FIRST, SECOND = 0, 1


class Part(NamedTuple):
    """A special token by name, or one of the texts by number; and the type of its tokens (0 or 1, for BERT)."""

    what: str | int
    type_id: int = 0


class Template(NamedTuple):
    """What stands around one text, and around two."""

    single: tuple[Part, ...] = (Part(FIRST),)
    pair: tuple[Part, ...] = (Part(FIRST), Part(SECOND, 1))


@dataclass(frozen=True)
class TemplateProcessing:
    """A template, written as in "[CLS]:0 $A:0 [SEP]:0"; $A and $B are the texts.

    >>> TemplateProcessing.written("[CLS] $A [SEP]").single
    (Part(what='[CLS]', type_id=0), Part(what=0, type_id=0), Part(what='[SEP]', type_id=0))
    """

    single: tuple[Part, ...]
    pair: tuple[Part, ...] = Template().pair

    def __post_init__(self) -> None:
        for name, parts, texts in (("single", self.single, [FIRST]), ("pair", self.pair, [FIRST, SECOND])):
            if sorted(part.what for part in parts if isinstance(part.what, int)) != texts:
                raise InputError(
                    f"TemplateProcessing: {name}={shown(parts)}.", "every text once" if name == "pair" else "$A once"
                )

    @classmethod
    def written(cls, single: str, pair: str = "$A:0 $B:1") -> TemplateProcessing:
        """From texts whose parts have spaces between them."""
        return cls(_parts(single), _parts(pair))


def _parts(text: str) -> tuple[Part, ...]:
    parts = []
    for word in text.split():
        name, colon, number = word.rpartition(":")
        name, kind = (name, int(number)) if colon and number.isdecimal() else (word, 0)
        parts.append(Part({"$A": FIRST, "$": FIRST, "$B": SECOND}.get(name, name), kind))
    return tuple(parts)


@dataclass(frozen=True)
class BertProcessing:
    """[CLS] first [SEP] second [SEP]; all that belongs to the second has type 1.

    >>> [part.what for part in template(BertProcessing()).pair]
    ['[CLS]', 0, '[SEP]', 1, '[SEP]']
    """

    sep: str = "[SEP]"
    cls: str = "[CLS]"


@dataclass(frozen=True)
class RobertaProcessing:
    """<s> first </s></s> second </s>, all of type 0. `trim_offsets` leaves white space out of spans.

    >>> [part.what for part in template(RobertaProcessing()).pair]
    ['<s>', 0, '</s>', '</s>', 1, '</s>']
    """

    sep: str = "</s>"
    cls: str = "<s>"
    trim_offsets: bool = True
    add_prefix_space: bool = True


@dataclass(frozen=True)
class ByteLevelProcessing:
    """Nothing around a text; `trim_offsets` leaves white space out of spans."""

    trim_offsets: bool = True
    add_prefix_space: bool = True
    use_regex: bool = True


@dataclass(frozen=True)
class PostProcessors:
    """Several: one template, and others that do not put anything around a text."""

    parts: tuple[PostProcessor, ...]

    def __post_init__(self) -> None:
        if sum(template(part) != Template() for part in self.parts) > 1:
            raise InputError("PostProcessors: two of them put tokens around a text.", "one template")


PostProcessor = TemplateProcessing | BertProcessing | RobertaProcessing | ByteLevelProcessing | PostProcessors


def template(processor: PostProcessor | None) -> Template:
    """What stands around texts.

    >>> template(None)
    Template(single=(Part(what=0, type_id=0),), pair=(Part(what=0, type_id=0), Part(what=1, type_id=1)))
    """
    match processor:
        case TemplateProcessing(single, pair):
            return Template(single, pair)
        case BertProcessing(sep, cls):
            one = (Part(cls), Part(FIRST), Part(sep))
            return Template(one, (*one, Part(SECOND, 1), Part(sep, 1)))
        case RobertaProcessing(sep, cls):
            one = (Part(cls), Part(FIRST), Part(sep))
            return Template(one, (*one, Part(sep), Part(SECOND), Part(sep)))
        case PostProcessors(parts):
            return next((found for found in map(template, parts) if found != Template()), Template())
    return Template()


def around(before: tuple[str, ...], after: tuple[str, ...]) -> TemplateProcessing | None:
    """The template that puts some tokens before and after every text."""
    if not before and not after:
        return None

    def one(text: int, kind: int) -> tuple[Part, ...]:
        return (*(Part(t, kind) for t in before), Part(text, kind), *(Part(t, kind) for t in after))

    return TemplateProcessing(one(FIRST, 0), one(FIRST, 0) + one(SECOND, 1))


def trimming(processor: PostProcessor | None) -> bool | None:
    """Whether spans are trimmed; if so, whether a space was put in front of the text. None: they are not."""
    match processor:
        case RobertaProcessing(trim_offsets=True) | ByteLevelProcessing(trim_offsets=True):
            return processor.add_prefix_space
        case PostProcessors(parts):
            return next((found for found in map(trimming, parts) if found is not None), None)
    return None


def trimmed(token: str, span: tuple[int, int], add_prefix_space: bool, first: bool) -> tuple[int, int]:
    """The span of a token without the white space at its ends.

    >>> trimmed("Ġcat", (3, 7), False, False), trimmed("Ġcat", (0, 3), True, True)
    ((4, 7), (0, 3))
    """
    start, end = span
    leading = len(token) - len(token.lstrip(_BLANK))
    trailing = len(token) - len(token.rstrip(_BLANK))
    if leading == 1 and add_prefix_space and (first or start == 0):
        leading = 0  # the one that was put there is not in the text
    start = min(start + leading, end)
    return start, max(end - trailing, start) if end >= trailing else end


_BLANK = "Ġ" + "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def kept(lengths: list[int], room: int) -> list[int]:
    """How much of one text or two is kept; of two, the longer one is cut first.

    >>> kept([7], 5), kept([2, 9], 8), kept([6, 9], 9)
    ([5], [2, 6], [4, 5])
    """
    if len(lengths) == 1 or sum(lengths) <= room:
        return [min(length, room) for length in lengths]
    short, long = sorted(lengths)
    long = max(short, room - short)
    if short + long > room:
        short, long = room // 2, room - room // 2
    return [short, long] if lengths[0] <= lengths[1] else [long, short]
