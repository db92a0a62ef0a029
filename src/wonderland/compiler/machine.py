"""The host: its vector width, and compiling LLVM's text to code that can be called, or finding it compiled already."""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import llvmlite  # type: ignore[import-untyped]  # the package has no stubs
import llvmlite.binding as llvm  # type: ignore[import-untyped]

from .. import cache


class Machine:
    """What the host's processor offers, and a compiler for it."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        features = llvm.get_host_cpu_features()
        self.cpu = llvm.get_host_cpu_name()
        self.features = features.flatten()
        if features.get("avx512f"):
            self.vector_bytes = 64
        elif features.get("avx2"):
            self.vector_bytes = 32
        else:
            self.vector_bytes = 16
        self.compiled = 0  # how many modules went through the code generator
        self._engines: dict[str, Any] = {}

    def target(self) -> Any:
        """A description of the host for the code generator; an engine takes it over and frees it."""
        triple = llvm.Target.from_default_triple()
        return triple.create_target_machine(cpu=self.cpu, features=self.features, opt=2, jit=True)

    def compile(self, text: str) -> Any:
        """An engine that holds the code of a module. The same text is compiled once and found on disk later."""
        described = "\n".join([llvmlite.__version__, self.cpu, self.features, text])
        name = hashlib.sha256(described.encode()).hexdigest()
        if name not in self._engines:
            self._engines[name] = self._engine(name, text)
        return self._engines[name]

    def _engine(self, name: str, text: str) -> Any:
        stored = cache.read(name)
        target = self.target()
        module = llvm.parse_assembly(text)
        if stored is None:
            options = llvm.create_pipeline_tuning_options(speed_level=1)
            options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
            builder = llvm.create_pass_builder(target, options)
            builder.getModulePassManager().run(module, builder)
        engine = llvm.create_mcjit_compiler(module, target)

        def keep(_: Any, code: bytes) -> None:
            self.compiled += 1
            cache.write(name, bytes(code))

        engine.set_object_cache(keep, lambda _: stored)
        engine.finalize_object()
        return engine

    def assembly(self, text: str) -> str:
        """The machine code of a module as text, to look at."""
        return str(self.target().emit_assembly(llvm.parse_assembly(text)))


@functools.cache
def machine() -> Machine:
    return Machine()
