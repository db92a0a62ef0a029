"""Modules that hold other modules: `Sequential`, `ModuleList`, `ModuleDict`."""

from __future__ import annotations

import bisect
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar, overload

from ...core.errors import IndexOutOfRange, ModuleError
from ...core.tensor import Tensor
from .module import Module

__all__ = ["Sequential", "ModuleList", "ModuleDict"]

N = TypeVar("N", bound="Numbered")
_NAMES = [*map(str, range(64))]  # of the first entries
Layer: TypeAlias = Callable[..., object]  # a module, or a function


class Numbered(Module):
    """Modules and functions under the names 0, 1, 2 and so on."""

    def __init__(self, entries: Iterable[Layer] = ()) -> None:
        for entry in entries:
            self.append(entry)

    def __len__(self) -> int:
        held = vars(self)
        return bisect.bisect_left(range(len(held)), True, key=lambda i: str(i) not in held)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries())

    def _entries(self) -> list[Layer]:
        held = vars(self)
        entries: list[Layer] = []
        for name in _NAMES:
            if name not in held:
                return entries
            entries.append(held[name])
        return [held[str(i)] for i in range(len(self))]

    def _name(self, index: int) -> str:
        n = len(self)
        if not -n <= index < n:
            raise IndexOutOfRange(f"{type(self).__name__}: there is no entry {index} among {n}.", f"indices below {n}")
        return str(index % n)

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self: N, index: slice) -> N: ...

    def __getitem__(self, index: int | slice) -> Any:
        """An entry, or for a slice a container of the same kind that shares the entries."""
        if isinstance(index, slice):
            made = type(self).__tree_new__()
            for entry in list(self)[index]:
                Numbered.append(made, entry)
            return made
        return vars(self)[self._name(index)]

    def __setitem__(self, index: int, entry: Layer) -> None:
        setattr(self, self._name(index), self._checked(entry))

    def append(self: N, entry: Layer) -> N:
        """Add an entry at the end."""
        setattr(self, str(len(self)), self._checked(entry))
        return self

    def _checked(self, entry: Layer) -> Layer:
        if not callable(entry):
            raise ModuleError(
                f"{type(self).__name__}: an entry of type {type(entry).__name__} cannot be called.",
                "modules or functions such as wl.relu; Sequential(*layers) for a list of them",
            )
        return entry

    def extra_repr(self) -> str:
        return ""

    def _shown(self) -> list[tuple[str, object]]:
        return [(str(i), entry) for i, entry in enumerate(self)]


class Sequential(Numbered):
    r"""The composition \(f_l(\dots f_2(f_1(x)))\) of modules and functions. Book, E.5.1 and section 6.1.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(2, 8), wl.relu, wl.nn.Linear(8, 1))
    >>> model
    Sequential(
      0: Linear(in_features=2, out_features=8, bias=True)
      1: relu
      2: Linear(in_features=8, out_features=1, bias=True)
    )
    >>> model(wl.ones((5, 2))).shape, len(model), model[:2](wl.ones((5, 2))).shape
    ((5, 1), 3, (5, 8))

    Several arguments go to the first module; each later one receives the result of the one before.
    """

    def __init__(self, *layers: Layer) -> None:
        super().__init__(layers)

    def forward(self, *args: Any) -> Tensor:
        entries = self._entries()
        if not entries:
            if len(args) != 1:
                raise ModuleError(
                    f"Sequential: without layers it returns its argument, but received {len(args)}.",
                    "one argument",
                )
            return args[0]
        for i, layer in enumerate(entries):
            try:
                args = (layer(*args),)
            except TypeError as error:
                if (misfit := self._misfit(i, layer, args)) is None:
                    raise
                raise misfit from error
        return args[0]

    def _misfit(self, index: int, layer: Layer, args: tuple[object, ...]) -> ModuleError | None:
        """The error for a layer that cannot be called with these arguments; None if it can."""
        try:
            signature = inspect.signature(layer.forward if isinstance(layer, Module) else layer)
        except (TypeError, ValueError):
            return None
        try:
            signature.bind(*args)
        except TypeError:
            name = layer._describe() if isinstance(layer, Module) else getattr(layer, "__name__", repr(layer))
            got = ", ".join(f"{a.dtype}{list(a.shape)}" if isinstance(a, Tensor) else type(a).__name__ for a in args)
            origin = f"layer {index - 1} returns" if index else "the arguments are"
            return ModuleError(
                f"Sequential: layer {index}, {name}, takes {signature}, but {origin} ({got}).",
                "a layer of one argument there, or a Module whose forward passes what is needed",
            )
        return None


class ModuleList(Numbered):
    """A list of modules, for a `forward` that uses them as it likes. A plain list attribute works, too.

    >>> import wonderland as wl
    >>> blocks = wl.nn.ModuleList([wl.nn.Linear(4, 4) for _ in range(3)])
    >>> len(blocks), [path for path, _ in blocks.named_parameters()][:2]
    (3, ['0.weight', '0.bias'])
    """

    def extend(self, entries: Iterable[Layer]) -> ModuleList:
        """Add entries at the end."""
        for entry in entries:
            self.append(entry)
        return self


class ModuleDict(Module):
    """A dict of modules. A plain dict attribute works, too.

    >>> import wonderland as wl
    >>> heads = wl.nn.ModuleDict({"digit": wl.nn.Linear(4, 10), "parity": wl.nn.Linear(4, 2)})
    >>> list(heads), heads["parity"](wl.ones(4)).shape
    (['digit', 'parity'], (2,))
    """

    def __init__(self, entries: Mapping[str, Layer] | None = None) -> None:
        self._keys: tuple[str, ...] = ()
        for key, entry in (entries or {}).items():
            self[key] = entry

    def __setitem__(self, key: str, entry: Layer) -> None:
        if not isinstance(key, str) or not key or "." in key or key in ("_keys", "_hooks") or hasattr(type(self), key):
            raise ModuleError(
                f"ModuleDict: {key!r} cannot be a key.",
                "a name without dots that is not a method or attribute of the dict",
            )
        if not callable(entry):
            raise ModuleError(
                f"ModuleDict: the entry {key!r} of type {type(entry).__name__} cannot be called.", "a module"
            )
        setattr(self, key, entry)
        if key not in self._keys:
            self._keys = (*self._keys, key)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise ModuleError(f"ModuleDict: there is no entry {key!r}.", f"one of {', '.join(map(repr, self._keys))}")
        return vars(self)[key]

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def keys(self) -> tuple[str, ...]:
        """The names of the entries."""
        return self._keys

    def values(self) -> list[Layer]:
        """The entries."""
        return [vars(self)[key] for key in self._keys]

    def items(self) -> list[tuple[str, Layer]]:
        """The names and the entries."""
        return [(key, vars(self)[key]) for key in self._keys]

    def extra_repr(self) -> str:
        return ""

    def _shown(self) -> list[tuple[str, object]]:
        return list(self.items())
