"""The public names and what they take: `python -m tools.names > before.txt`, and again after a change that keeps them.

One line for every function, class and method that can be reached from `wl`, with its parameters and their defaults.
Annotations are left out: a better type is no other function.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import wonderland as wl

DEPTH = 3  # wl.nn.functional.relu


def parameters(found: object) -> str:
    """The parameters of a function or a class, with their defaults."""
    try:
        signature = inspect.signature(found)  # type: ignore[arg-type]  # what cannot be called raises, see below
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    text = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return re.sub(r" at 0x[0-9a-f]+", "", text)  # where a default lies in memory


def names(namespace: ModuleType, prefix: str, depth: int = 1) -> Iterator[str]:
    """What a namespace offers, one line each."""
    for name in sorted(set(getattr(namespace, "__all__", dir(namespace)))):
        found, path = getattr(namespace, name), f"{prefix}.{name}"
        if name.startswith("_"):
            continue
        if isinstance(found, ModuleType):
            if found.__name__.startswith("wonderland.") and hasattr(found, "__all__") and depth < DEPTH:
                yield from names(found, path, depth + 1)
        elif inspect.isclass(found):
            yield path + parameters(found)
            yield from (f"{path}.{member}{parameters(value)}" for member, value in members(found))
        else:
            yield path + parameters(found)


def members(cls: type) -> Iterator[tuple[str, object]]:
    """The methods and attributes of a class, those that it inherits too."""
    for name in sorted(dir(cls)):
        special = name.startswith("__") and name.endswith("__")
        value = inspect.getattr_static(cls, name)
        if not name.startswith("_") or (special and inspect.isfunction(value)):
            yield name, value


def main() -> None:
    print("\n".join(names(wl, "wl")))


if __name__ == "__main__":
    main()
