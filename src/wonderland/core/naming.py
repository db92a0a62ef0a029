"""Things that go by a name: what a table has under it, or an error with the names that are near."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from .arguments import shown
from .errors import InputError

Thing = TypeVar("Thing")


def near(name: str, names: Iterable[str], most: int = 3) -> list[str]:
    """The names that look most like one, whatever their case.

    >>> near("Crossentropy", ["cross_entropy", "mse", "MAE"])
    ['cross_entropy']
    """
    import difflib  # a name that is wrong is rare

    small = {other.lower(): other for other in reversed(list(names))}
    return [small[other] for other in difflib.get_close_matches(name.lower(), small, most, 0.65)]


def look_up(what: str, name: object, table: Mapping[str, Thing], others: Mapping[str, str] | None = None) -> Thing:
    """What a table has under a name; `others` are remedies for names that are known elsewhere.

    >>> look_up("loss", "mse", {"mse": 1, "l1": 2})
    1

    Capitals, spaces and hyphens make no difference: "Cross-Entropy" is "cross_entropy".
    """
    if isinstance(name, str):
        plain = name.strip().lower().replace("-", "_").replace(" ", "_")
        for form in (name, plain):
            if form in table:
                return table[form]
        if others and plain in others:
            raise InputError(f"{what}: there is no {what} {name!r}.", others[plain])
        found = near(plain, table) or list(table)
        raise InputError(f"{what}: there is no {what} {name!r}.", "one of " + ", ".join(map(repr, found)))
    raise InputError(f"{what}: {shown(name)} is not a name.", "one of " + ", ".join(map(repr, table)))
