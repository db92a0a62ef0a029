"""What the columns of a table mean, found in one file and asked of the next: names, categories, classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ...core.errors import InputError


@dataclass(frozen=True)
class TableSchema:
    """The columns that a table was read from: enough to read another table to the same numbers.

    >>> schema = TableSchema({"age": None, "city": ["Pisa", "Rome"]}, target="repaid", classes=["no", "yes"])
    >>> schema.feature_names()
    ('age', 'city=Pisa', 'city=Rome')
    >>> TableSchema.of_dict(schema.to_dict()) == schema
    True

    - `features`: by name and in their order, the categories of a column of texts, None for numbers.
    - `target`: its name; `classes` are its texts in order, or None for numbers, which are whole if `whole_target`.
    - `others`: the names of columns that were left out.
    - `header`: whether the names are the file's; without one columns are known by their place alone.
    """

    features: dict[str, list[str] | None]
    target: str | None = None
    classes: list[str] | None = None
    whole_target: bool = False
    encode: str = "one_hot"
    others: list[str] = field(default_factory=list)
    header: bool = True

    def to_dict(self) -> dict[str, object]:
        """The schema as plain data."""
        return asdict(self)

    @classmethod
    def of_dict(cls, values: Mapping[str, Any]) -> TableSchema:
        """The schema of such plain data."""
        return cls(**values)

    def feature_names(self) -> tuple[str, ...]:
        """The names of the numbers of an example: a column, or `column=category`."""
        names: list[str] = []
        for name, categories in self.features.items():
            spread = categories is not None and self.encode == "one_hot"
            names += [f"{name}={category}" for category in categories or ()] if spread else [name]
        return tuple(names)

    def check_names(self, source: str, names: Iterable[str], header: bool) -> None:
        """Refuse a table with other columns; their order is free, and the target may be missing."""
        found = list(names)
        wanted = ", ".join(map(repr, self.features))
        if header != self.header:
            known = "known by their names" if self.header else "known by their places"
            raise InputError(
                f"{source} has {'a' if header else 'no'} header, and the columns are {known}.",
                f"a table with{'' if self.header else 'out'} a header, with the columns {wanted}",
            )
        if missing := [name for name in self.features if name not in found]:
            raise InputError(f"{source}: the column {missing[0]!r} is missing.", f"a table with the columns {wanted}")
        known_names = {*self.features, *self.others, self.target}
        if strange := [name for name in found if name not in known_names]:
            raise InputError(
                f"{source}: the column {strange[0]!r} is new.", f"a table with the columns {wanted} and no others"
            )
