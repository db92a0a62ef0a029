"""The card of a dataset: where it comes from, what it is for, and what is known to be wrong with it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from ..core.arguments import shown
from ..core.errors import InputError
from ..storage.parsing import parse_json


@dataclass
class DatasetCard:
    """What users of a dataset have to know before they train on it. Prints as Markdown; `to_json` for files.

    >>> card = DatasetCard("reviews", source="a shop's website, 2019", biases=["only customers who write"])
    >>> print(card)
    # reviews
    <BLANKLINE>
    - source: a shop's website, 2019
    - known biases: only customers who write
    >>> DatasetCard.from_json(card.to_json()) == card
    True

    Data from the web carries biases and abuse that models take over; `groups` are the sub-populations for which metrics
    are to be reported apart. Book, section 3.1.1.
    """

    name: str
    description: str = ""
    source: str = ""
    license: str = ""
    collected: str = ""
    intended_use: str = ""
    biases: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"# {self.name}", ""]
        if self.description:
            lines += [self.description, ""]
        facts = {
            "source": self.source,
            "license": self.license,
            "collected": self.collected,
            "intended use": self.intended_use,
            "known biases": "; ".join(self.biases),
            "groups to report apart": ", ".join(self.groups),
            "examples": ", ".join(f"{part} {count}" for part, count in self.counts.items()),
        }
        lines += [f"- {title}: {text}" for title, text in facts.items() if text]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The card as JSON."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> DatasetCard:
        """The card that `to_json` wrote."""
        try:
            card = cls(**_fields(parse_json(text)))
        except (ValueError, TypeError) as error:
            raise InputError(f"DatasetCard: this is no card ({error}).", "the text of to_json()") from error
        return card


def _fields(found: object) -> dict[str, Any]:
    """The fields of a card in plain data; ValueError for one that is not what it should be."""
    if not isinstance(found, dict):
        raise ValueError("no table of fields")
    for name, value in found.items():
        if name in ("biases", "groups"):
            sound = isinstance(value, list) and all(isinstance(text, str) for text in value)
        elif name == "counts":
            sound = isinstance(value, dict) and all(type(count) is int for count in value.values())
        else:
            sound = isinstance(value, str)
        if not sound:
            raise ValueError(f"{name} is {shown(value)}")
    return found
