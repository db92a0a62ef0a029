"""What a package offers, listed once: each of its files has an `__all__`, and its `__init__` imports from the files."""

from __future__ import annotations

from collections.abc import Collection
from types import ModuleType
from typing import Any

from .naming import hints_for


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
