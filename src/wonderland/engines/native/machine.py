"""Compiling LLVM's text for a processor to functions that can be called, or finding them compiled."""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from ... import cache
from ...core.errors import GraphError, WonderlandError
from ...core.forking import open_after_fork
from ...core.waiting import Waiting
from .aside import aside, completed
from .llvm import Generator, Host, Library
from .processor import named, of_host

Made = TypeVar("Made")

# Routines that stay in memory although no program needs them, because a new one may. A step of a large model has some
# hundred; each takes 2 to 20 KB, and at most three of the 65,530 mappings that Linux gives to a process.
ROUTINES = 2048


class Module(NamedTuple):
    """Functions that are compiled together. Equal descriptions mean equal texts.

    `light`: their time is in what they call, so they are translated as they stand, in a sixth of the time.
    """

    description: str
    text: Callable[[], str]
    names: tuple[str, ...]
    light: bool = False


class Address(int):
    """Where a function is. Its code stays in memory as long as this number is held, and may be gone afterwards."""

    library: Library

    def __new__(cls, library: Library, name: str) -> Address:
        made = super().__new__(cls, library.addresses[name])
        made.library = library
        return made


class CannotRun(WonderlandError, RuntimeError):  # noqa: N818 - says what happened
    """Code that was compiled for another processor than the host."""


class Machine:
    """A compiler for a processor: the host's, or one that is chosen by name.

    Compiled code is known by a description of what it does: found in memory, else on disk, else the text is asked for
    and compiled. So a text is written only when it is needed.
    """

    def __init__(self, chosen: str | None = None) -> None:
        self.host: Host = aside(Host)
        # the processor, and whether the host can run code for it
        self.cpu, self.runs = named(chosen, self.host) if chosen else (of_host(self.host), True)
        self.compiled = 0  # how many modules went through the code generator
        self._lock = open_after_fork(threading.Lock())
        self._generators: dict[bool, list[Generator]] = {False: [], True: []}  # those that no thread uses at the moment
        self._permanent: dict[str, Address] = {}
        self._recent: dict[str, Address] = {}  # routines by name, the one that was wanted last at the end
        self._version = self.version()

    def version(self) -> str:
        """All that code depends on beside its description: who makes it, and for whom."""
        made_by = [self.host.llvm, _sources()]
        return "\n".join(map(str, [*made_by, *self.cpu]))

    def name(self, description: str) -> str:
        """The name under which code is kept, from everything that it depends on."""
        return hashlib.sha256(f"{self._version}\n{description}".encode()).hexdigest()

    def functions(self, module: Module) -> list[Address]:
        """The addresses of the functions of a module, which stay in memory for good."""
        with self._lock:
            found = self._bring([module], module.description)
            self._permanent |= found
            return list(found.values())

    def routines(
        self, wanted: Mapping[str, Callable[[str], str]], purpose: str, beside: Sequence[Module] = ()
    ) -> dict[str, Address]:
        """The addresses of functions by their descriptions; `wanted` makes the text of one, given its name.

        Who calls a function holds its address. `beside`: modules that will be asked for soon, to be compiled on the
        way; they stay in memory for good.
        """
        names = {description: f"k{self.name(description)[:32]}" for description in wanted}
        modules = [Module(d, functools.partial(wanted[d], name), (name,)) for d, name in names.items()]
        permanent = [name for module in beside for name in module.names]
        with self._lock:
            found = self._bring([*beside, *modules], purpose)
            self._permanent |= {name: found.pop(name) for name in permanent}
            for name, address in found.items():
                self._recent.pop(name, None)
                self._recent[name] = address
            while len(self._recent) > ROUTINES:
                del self._recent[next(iter(self._recent))]
            return {description: found[name] for description, name in names.items()}

    def function(self, description: str, text: Callable[[str], str]) -> Address:
        """The address of one function."""
        return self.routines({description: text}, "a function")[description]

    def _bring(self, modules: Sequence[Module], purpose: str) -> dict[str, Address]:
        """The functions of modules by name: what is not in memory is read from disk or compiled, on several threads."""
        names = [name for module in modules for name in module.names]
        found = {name: self._permanent.get(name) or self._recent.get(name) for name in names}
        missing = [module for module in modules if not found[module.names[0]]]
        if missing:
            codes = self._codes(missing, purpose)
            if not self.runs:
                raise CannotRun(
                    f"{purpose}: compiled for {self.cpu.name}, which this machine cannot run.", "another host"
                )
            library = Library(self.host.triple, codes, [n for m in missing for n in m.names])
            for module in missing:
                found |= _found(module, library)
        return {name: address for name, address in found.items() if address is not None}

    def _codes(self, modules: Sequence[Module], purpose: str) -> list[bytes]:
        """The object files of modules."""
        names = [self.name(module.description) for module in modules]
        codes = [cache.read(name) for name in names]
        missing = [i for i, code in enumerate(codes) if code is None]
        workers = min(os.cpu_count() or 1, max(1, len(missing) // 2))
        with Waiting(f"compiling {purpose}", len(missing), "routines") as progress:
            for k, code in completed(self._compiled, [modules[i] for i in missing], workers):
                codes[missing[k]] = code
                cache.write(names[missing[k]], code)
                progress.advance()
        return [code for code in codes if code is not None]

    def _compiled(self, module: Module) -> bytes:
        code = self._generated(lambda generator: generator.code(module.text()), module.light)
        self.compiled += 1
        return code

    def assembly(self, text: str) -> str:
        """The machine code of a module as text, to look at."""
        return self._generated(lambda generator: generator.assembly(text))

    def _generated(self, use: Callable[[Generator], Made], light: bool = False) -> Made:
        """What a generator makes that no other thread uses meanwhile."""
        idle = self._generators[light]
        try:
            generator = idle.pop()
        except IndexError:
            generator = Generator(*self.cpu[:3], light)
        made = use(generator)
        idle.append(generator)
        return made


def _found(module: Module, library: Library) -> dict[str, Address]:
    """The addresses of a module's functions; 0, for a function that is not there, must never be called."""
    if absent := [name for name in module.names if not library.addresses[name]]:
        what = f"compiling: the code of {module.description[:80]!r} has no function {absent[0]!r}."
        raise GraphError(what, "wl.cache.clear(), and the same again")
    return {name: Address(library, name) for name in module.names}


def _sources() -> str:
    """A fingerprint of the compiler, and of what it takes constants from: what an older one has stored is not used."""
    digest = hashlib.sha256()
    package = pathlib.Path(__file__).parents[2]
    for part in ("core/dtypes.py", "core/primitive.py", "engines/native", "ir/sizes.py", "primitives"):
        for path in sorted(_python_files(str(package / part))):
            with open(path, "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()


def _python_files(path: str) -> Iterator[str]:
    """A file, or those of a folder; without pathlib, which takes thrice as long, as every process does this."""
    if not os.path.isdir(path):
        yield path
        return
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _python_files(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.path


@functools.cache
def machine() -> Machine:
    return Machine(os.environ.get("WONDERLAND_CPU"))
