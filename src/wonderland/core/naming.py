"""Names: what a package offers, what a table has under one, and hints for those that nothing has (core/habits.py)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import ModuleType
from typing import Any, TypeVar

from .arguments import shown
from .errors import InputError
from .habits import KEYWORDS, MODULES, NO_DEVICES

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


def remedy(place: str, name: str, known: Iterable[str]) -> str | None:
    """What to write instead of a name that a module does not have; None if nothing comes to mind.

    >>> remedy("", "cat", []), remedy("nn", "Liner", ["Linear", "relu"]), remedy("nn", "qwertz", ["Linear"])
    ('wl.concatenate(tensors, axis=0)', 'wl.nn.Linear', None)
    """
    found = MODULES.get(place, {}).get(name)
    if found is None and place != "nn" and name in MODULES["nn"] and name[:1].isupper():
        found = MODULES["nn"][name]
    if found is None:
        prefix = f"wl.{place}." if place else "wl."
        found = " or ".join(prefix + other for other in near(name, [o for o in known if not o.startswith("_")]))
    return found or None


def no_attribute(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that a module of the package does not have.

    >>> print(no_attribute("wonderland.nn", "Conv2D", []))
    module 'wonderland.nn' has no attribute 'Conv2D'
      try: nn.Conv2d(inputs, outputs, kernel_size)
    """
    message = f"module {module!r} has no attribute {name!r}"
    hint = None if name.startswith("_") else remedy(module.partition(".")[2], name, known)
    return AttributeError(message if hint is None else f"{message}\n  try: {hint}")


def hints_for(names: dict[str, Any]) -> None:
    """Let a package with these global names answer for names that it does not have.

    >>> names = {"__name__": "wonderland.nn"}
    >>> hints_for(names)
    >>> names["__getattr__"]("Dense")
    Traceback (most recent call last):
    AttributeError: module 'wonderland.nn' has no attribute 'Dense'
      try: nn.Linear(inputs, outputs), or nn.LazyLinear(outputs) to find the inputs at the first call
    """

    def missing(name: str) -> object:
        raise no_attribute(names["__name__"], name, names.get("__all__") or names)

    names["__getattr__"] = missing


class Elsewhere:
    """An attribute that a class does not have, whose name people know from elsewhere: asking for it says what to do."""

    def __init__(self, name: str, hint: str) -> None:
        self.name, self.hint = name, hint

    def __get__(self, instance: object, owner: type) -> object:
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}\n  try: {self.hint}")


def refuse(kind: type, names: Mapping[str, str]) -> None:
    """Give a class hints for attributes that it does not have; subclasses and objects may have them.

    >>> class Box:
    ...     pass
    >>> refuse(Box, {"open": "box.lid"})
    >>> Box().open
    Traceback (most recent call last):
    AttributeError: 'Box' object has no attribute 'open'
      try: box.lid
    >>> hasattr(Box(), "open")
    False
    """
    for name, hint in names.items():
        if not hasattr(kind, name):
            setattr(kind, name, Elsewhere(name, hint))


def keyword_hint(name: str, known: Iterable[str]) -> str | None:
    """What an argument may be called here, of those that a function has.

    >>> keyword_hint("dim", ["x", "axis"]), keyword_hint("optimiser", ["optimizer"]), keyword_hint("q", ["axis"])
    ('axis=', 'optimizer=', None)
    """
    names = list(known)
    if name == "device":
        return NO_DEVICES
    found = [other for other in KEYWORDS.get(name, ()) if other in names] or near(name, names, 1)
    return f"{found[0]}=" if found else None


def without_hints(instance: object, names: Iterable[str]) -> list[str]:
    """Names of attributes without those that only have a hint, for `__dir__`."""
    hints = {name for kind in type(instance).__mro__ for name, v in vars(kind).items() if isinstance(v, Elsewhere)}
    return [name for name in names if name not in hints]


def offer(names: dict[str, Any], also: Collection[str] = (), but: Collection[str] = ()) -> None:
    """Give a package with these global names its `__all__`: all that is public and no module, `also` more, `but` some.

    >>> import math
    >>> names = {"sin": math.sin, "math": math, "_private": 1, "inner": 2}
    >>> offer(names, but=["inner"])
    >>> names["__all__"]
    ['sin']

    Type checkers follow the imports, which say the same; a list that they cannot read would be in their way. The
    package then has a hint for names that it does not offer.
    """
    hidden = [name for name, value in names.items() if name.startswith("_") or isinstance(value, ModuleType)]
    names["__all__"] = [*also, *(name for name in names if name not in hidden and name not in but)]
    hints_for(names)
