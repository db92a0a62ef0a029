"""The host: its vector width, and compiling LLVM's text to functions that can be called, or finding them compiled."""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import llvmlite  # type: ignore[import-untyped]  # the package has no stubs
import llvmlite.binding as llvm  # type: ignore[import-untyped]

from .. import cache
from ..errors import GraphError
from ..forking import open_after_fork


class Module(NamedTuple):
    """Functions that are compiled together. Equal descriptions mean equal texts."""

    description: str
    text: Callable[[], str]
    names: tuple[str, ...]


class Machine:
    """What the host's processor offers, and a compiler for it.

    Compiled code is known by a description of what it does: found in memory, else on disk, else the text is asked for
    and compiled. So a text is written only when it is needed.
    """

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        # addresses are written as they should be computed; rewriting them costs time twice, now and when the code runs
        llvm.set_option("", "-disable-lsr")
        features = llvm.get_host_cpu_features()
        self.cpu = llvm.get_host_cpu_name()
        self.features = features.flatten()
        if features.get("avx512f"):
            self.vector_bytes, self.registers = 64, 32
        elif features.get("avx2"):
            self.vector_bytes, self.registers = 32, 16
        else:
            self.vector_bytes, self.registers = 16, 32 if features.get("neon") else 16
        self.compiled = 0  # how many modules went through the code generator
        self._lock = open_after_fork(threading.Lock())
        self._threads = threading.local()
        self._addresses: dict[str, int] = {}
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self.target())
        self._version = self.version()

    def target(self) -> Any:
        """A description of the host for the code generator; an engine takes it over and frees it."""
        triple = llvm.Target.from_default_triple()
        return triple.create_target_machine(cpu=self.cpu, features=self.features, opt=2, jit=True)

    def version(self) -> str:
        """All that code depends on beside its description: who makes it, and for whom."""
        made_by = [llvmlite.__version__, *llvm.llvm_version_info, _sources()]
        made_for = [llvm.get_default_triple(), self.cpu, self.features, self.vector_bytes, self.registers]
        return "\n".join(map(str, made_by + made_for))

    def name(self, description: str) -> str:
        """The name under which code is kept, from everything that it depends on."""
        return hashlib.sha256(f"{self._version}\n{description}".encode()).hexdigest()

    def functions(self, module: Module) -> list[int]:
        """The addresses of the functions of a module."""
        with self._lock:
            self._bring([module], module.description)
            return [self._addresses[name] for name in module.names]

    def routines(
        self, wanted: Mapping[str, Callable[[str], str]], purpose: str, beside: Sequence[Module] = ()
    ) -> dict[str, int]:
        """The addresses of functions by their descriptions; `wanted` makes the text of one, given its name.

        `beside`: modules that will be asked for soon, to be compiled on the way.
        """
        names = {description: f"k{self.name(description)[:32]}" for description in wanted}
        modules = [Module(d, functools.partial(wanted[d], name), (name,)) for d, name in names.items()]
        with self._lock:
            self._bring([*beside, *modules], purpose)
            return {description: self._addresses[name] for description, name in names.items()}

    def _bring(self, modules: Sequence[Module], purpose: str) -> None:
        """Bring modules into memory: what is not known yet is compiled, on several threads."""
        missing = [m for m in modules if m.names[0] not in self._addresses]
        if not missing:
            return
        with Progress(purpose, len(missing)) as progress:

            def make(module: Module) -> bytes:
                code = self._code(module)
                progress.advance()
                return code

            # objects of one call share pages: a process can have some ten thousand mappings
            for code in _together(make, missing):
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        for module in missing:
            self._addresses.update(self._found(module))

    def _found(self, module: Module) -> dict[str, int]:
        """The addresses of a module's functions; 0, for a function that is not there, must never be called."""
        addresses = {name: self._engine.get_function_address(name) for name in module.names}
        if absent := [name for name, address in addresses.items() if not address]:
            what = f"compiling: the code of {module.description[:80]!r} has no function {absent[0]!r}."
            raise GraphError(what, "wl.cache.clear(), and the same again")
        return addresses

    def function(self, description: str, text: Callable[[str], str]) -> int:
        """The address of one function."""
        return self.routines({description: text}, "a function")[description]

    def _code(self, module: Module) -> bytes:
        name = self.name(module.description)
        stored = cache.read(name)
        if stored is not None:
            return stored
        target = self._own_target()
        code = bytes(target.emit_object(self.optimized(module.text(), target)))
        self.compiled += 1
        cache.write(name, code)
        return code

    def _own_target(self) -> Any:
        """A code generator of this thread's own."""
        if not hasattr(self._threads, "target"):
            self._threads.target = self.target()
        return self._threads.target

    def optimized(self, text: str, target: Any) -> Any:
        """The module of a text after a few passes. Loops are vectorised and unrolled by who writes the text."""
        module = llvm.parse_assembly(text, llvm.create_context())
        builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=1))
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()  # variables into registers
        passes.add_new_gvn_pass()  # equal loads and operations once
        passes.add_instruction_combine_pass()
        passes.run(module, builder)
        return module

    def assembly(self, text: str) -> str:
        """The machine code of a module as text, to look at."""
        target = self._own_target()
        return str(target.emit_assembly(self.optimized(text, target)))


class _Open:
    """A lock that lets everybody in."""

    def acquire(self) -> None: ...

    def release(self) -> None: ...


def _together(f: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """f of all items, on as many threads as there are processors.

    The binding lets one thread at a time into LLVM, although modules of different contexts do not touch each other. So
    its lock is put aside meanwhile; where that is not possible, the threads take turns.
    """
    workers = min(os.cpu_count() or 1, len(items) // 2)
    if workers < 2:
        return [f(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor  # takes a while to load

    guard: Any = getattr(llvm.ffi.lib, "_lock", None)
    inner = getattr(guard, "_lock", None)
    if inner is not None:
        guard._lock = _Open()
    try:
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(f, items))
    finally:
        if inner is not None:
            guard._lock = inner


class Progress:
    """A line that appears when compiling takes more than a second."""

    def __init__(self, purpose: str, total: int) -> None:
        self._purpose, self._total = purpose, total
        self._done = 0
        self._start = time.monotonic()
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def advance(self) -> None:
        self._done += 1
        seconds = time.monotonic() - self._start
        if seconds > 1 and sys.stderr is not None and (sys.stderr.isatty() or not self._shown):
            text = f"wonderland: compiling {self._purpose}: {self._done} of {self._total} routines, {seconds:.0f} s"
            sys.stderr.write(f"\r{text}" if sys.stderr.isatty() else f"{text} ...\n")
            sys.stderr.flush()
            self._shown = True

    def __exit__(self, *error: object) -> None:
        if self._shown and sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def _sources() -> str:
    """A fingerprint of the compiler, and of what it takes constants from: what an older one has stored is not used."""
    digest = hashlib.sha256()
    package = pathlib.Path(__file__).parent.parent
    for path in sorted([package / "dtypes.py", *package.glob("compiler/**/*.py"), *package.glob("primitives/**/*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@functools.cache
def machine() -> Machine:
    return Machine()
