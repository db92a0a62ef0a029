"""LLVM, as far as the compiler needs it: text to machine code, and machine code into memory and out again.

The library is the one that llvmlite brings; it is called through prototypes of our own. Those of llvmlite let one
thread at a time into LLVM, by a lock that all its users in the process share (numba, say). LLVM itself asks only that
no two threads work in the same context. Here every text has a context, and every thread a code generator, of its own;
so our threads neither wait for strangers nor keep them waiting, and what llvmlite's users see is as without us.

What LLVM has once for the process is left alone: no option is set, and what every user must do once, making the host's
target known, is done through llvmlite and under its lock.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import llvmlite  # type: ignore[import-untyped]  # the package has no stubs
import llvmlite.binding as binding  # type: ignore[import-untyped]

from .undefined import undefined

_OBJECT = ctypes.c_void_p  # a pointer to something of LLVM's
_TEXT, _NUMBER, _SIZE, _FLAG = ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_bool
_MESSAGE = ctypes.POINTER(ctypes.c_char_p)  # where a function tells what went wrong

# name: (what it returns, its arguments)
_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "ContextCreate": (_OBJECT, []),
    "ContextDispose": (None, [_OBJECT]),
    "ParseAssembly": (_OBJECT, [_OBJECT, _TEXT, _MESSAGE]),
    "DisposeModule": (None, [_OBJECT]),
    "GetTargetFromTriple": (_OBJECT, [_TEXT, _MESSAGE]),
    "CreateTargetMachine": (
        _OBJECT,
        [_OBJECT, _TEXT, _TEXT, _TEXT, _NUMBER, _TEXT, _TEXT, _NUMBER, _NUMBER, _TEXT],
    ),
    "DisposeTargetMachine": (None, [_OBJECT]),
    "CreatePipelineTuningOptions": (_OBJECT, []),
    "DisposePipelineTuningOptions": (None, [_OBJECT]),
    "CreatePassBuilder": (_OBJECT, [_OBJECT, _OBJECT]),
    "DisposePassBuilder": (None, [_OBJECT]),
    "CreateNewModulePassManager": (_OBJECT, []),
    "module_AddSROAPass": (None, [_OBJECT]),
    "RunNewModulePassManager": (None, [_OBJECT, _OBJECT, _OBJECT]),
    "DisposeNewModulePassManger": (None, [_OBJECT]),  # spelled so
    "TargetMachineEmitToMemory": (_OBJECT, [_OBJECT, _OBJECT, _NUMBER, _MESSAGE]),
    "GetBufferStart": (_OBJECT, [_OBJECT]),
    "GetBufferSize": (_SIZE, [_OBJECT]),
    "DisposeMemoryBuffer": (None, [_OBJECT]),
    "CreateMCJITCompiler": (_OBJECT, [_OBJECT, _OBJECT, _FLAG, _MESSAGE]),
    "RemoveModule": (_FLAG, [_OBJECT, _OBJECT, _MESSAGE]),
    "CreateObjectFile": (_OBJECT, [_TEXT, _SIZE]),
    "DisposeObjectFile": (None, [_OBJECT]),
    "MCJITAddObjectFile": (None, [_OBJECT, _OBJECT]),
    "FinalizeObject": (None, [_OBJECT]),
    "SearchAddressOfSymbol": (_OBJECT, [_TEXT]),
    "GetFunctionAddress": (ctypes.c_uint64, [_OBJECT, _TEXT]),
    "DisposeExecutionEngine": (None, [_OBJECT]),
    "DisposeString": (None, [_TEXT]),
}


@functools.cache
def _functions() -> SimpleNamespace:
    library = ctypes.CDLL(binding.ffi.lib._name, handle=binding.ffi.lib._handle)
    found = {}
    for name, (result, arguments) in _PROTOTYPES.items():
        found[name] = function = library[f"LLVMPY_{name}"]  # indexing makes a new object, which is nobody else's
        function.restype, function.argtypes = result, arguments
    return SimpleNamespace(**found)


class Host:
    """The processor of this machine, as LLVM names it."""

    def __init__(self) -> None:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        features = binding.get_host_cpu_features()
        self.has: dict[str, bool] = dict(features)
        self.features: str = features.flatten()
        self.cpu: str = binding.get_host_cpu_name()
        self.triple: str = binding.get_default_triple()
        self.llvm: str = ".".join(map(str, binding.llvm_version_info)) + f" of llvmlite {llvmlite.__version__}"


def initialize_every_target() -> None:
    """Let code be generated for other systems than this one. It waits for llvmlite's lock, as Host does."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()


class Generator:
    """A code generator. One thread at a time may use it. `light`: it translates and leaves everything else out."""

    def __init__(self, triple: str, cpu: str, features: str, light: bool = False) -> None:
        self._lib = lib = _functions()
        self._machine = _target_machine(triple, cpu, features, level=0 if light else 2)
        # used again and again: llvmlite's function that frees a builder leaves a kilobyte of it behind
        self._options = lib.CreatePipelineTuningOptions()
        self._builder = lib.CreatePassBuilder(self._machine, self._options)
        # One pass: who writes the text vectorises and unrolls loops, and code generation computes what is equal once.
        # LLVM's passes for that (GVN, InstCombine) take a fifth of the time and make nothing faster.
        self._passes = lib.CreateNewModulePassManager()
        if not light:
            lib.module_AddSROAPass(self._passes)  # variables into registers

    def code(self, text: str) -> bytes:
        """The object file of a module."""
        return self._emitted(text, as_object=True)

    def assembly(self, text: str) -> str:
        """The machine code of a module as text, to look at."""
        return self._emitted(text, as_object=False).decode()

    def _emitted(self, text: str, as_object: bool) -> bytes:
        with _parsed(text) as module:
            self._lib.RunNewModulePassManager(self._passes, module, self._builder)
            with _told("code generation") as message:
                buffer = self._lib.TargetMachineEmitToMemory(self._machine, module, as_object, message)
            try:
                return ctypes.string_at(self._lib.GetBufferStart(buffer), self._lib.GetBufferSize(buffer))
            finally:
                self._lib.DisposeMemoryBuffer(buffer)

    def __del__(self) -> None:
        if hasattr(self, "_passes"):
            self._lib.DisposeNewModulePassManger(self._passes)
            self._lib.DisposePassBuilder(self._builder)
            self._lib.DisposePipelineTuningOptions(self._options)
            self._lib.DisposeTargetMachine(self._machine)


class Library:
    """Object files in memory, ready to be called. When nobody holds it any more, its memory is given back."""

    def __init__(self, triple: str, objects: Sequence[bytes], names: Iterable[str]) -> None:
        self._lib = lib = _functions()
        machine = _target_machine(triple, "", "", level=0)  # the engine takes it over; it generates nothing
        own_manager = platform.machine().lower() in ("arm64", "aarch64")  # as llvmlite chooses
        with _parsed("") as module:
            with _told("an engine") as message:
                self._engine: int | None = lib.CreateMCJITCompiler(module, machine, own_manager, message)
            with _told("an engine") as message:
                lib.RemoveModule(self._engine, module, message)  # it would be compiled, though it is empty
        objects, names = [*objects], [*names]
        for data in objects:
            file = lib.CreateObjectFile(data, len(data))
            if not file:
                raise RuntimeError("LLVM: an object file is damaged")
            for name in undefined(data):  # the loader would have it called at address 0
                if name not in names and not lib.SearchAddressOfSymbol(name.encode()):
                    raise RuntimeError(f"LLVM: the code calls {name}, which is not there")
            lib.MCJITAddObjectFile(self._engine, file)
            lib.DisposeObjectFile(file)
        lib.FinalizeObject(self._engine)
        self.addresses = {name: int(lib.GetFunctionAddress(self._engine, name.encode())) for name in names}

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:  # by then modules may be empty
        engine = getattr(self, "_engine", None)
        if engine and not ending():  # at the end of the process a thread may still be inside
            self._lib.DisposeExecutionEngine(engine)


def _target_machine(triple: str, cpu: str, features: str, level: int) -> int:
    lib = _functions()
    with _told(f"the target {triple}") as message:
        target = lib.GetTargetFromTriple(triple.encode(), message)
    kind = triple + "-elf" if os.name == "nt" else triple  # the only kind of object that the engine loads there
    words = [word.encode() for word in (kind, cpu, features)]
    made = lib.CreateTargetMachine(target, *words, level, b"default", b"jitdefault", False, True, b"")
    if not made:
        raise RuntimeError(f"LLVM: there is no code generator for {triple}")
    return int(made)


@contextmanager
def _parsed(text: str) -> Iterator[int]:
    """The module of a text, in a context of its own."""
    lib = _functions()
    context = lib.ContextCreate()
    try:
        with _told("parsing") as message:
            module = lib.ParseAssembly(context, text.encode(), message)
        try:
            yield module
        finally:
            lib.DisposeModule(module)
    finally:
        lib.ContextDispose(context)


@contextmanager
def _told(what: str) -> Iterator[Any]:
    """A place for LLVM's message. If there is one, it is raised."""
    place = ctypes.c_char_p()
    yield ctypes.byref(place)
    if place:
        message = (place.value or b"").decode(errors="replace")
        _functions().DisposeString(place)
        raise RuntimeError(f"LLVM: {what}: {message}")
