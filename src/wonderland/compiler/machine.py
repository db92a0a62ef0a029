"""The host: vector width, and compiling LLVM's text to code that can be called."""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]  # the package has no stubs


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

    def target(self) -> Any:
        """A description of the host for the code generator; an engine takes it over and frees it."""
        triple = llvm.Target.from_default_triple()
        return triple.create_target_machine(cpu=self.cpu, features=self.features, opt=2, jit=True)

    def compile(self, text: str) -> Any:
        """An engine that holds the code of a module; it must be kept alive."""
        module = llvm.parse_assembly(text)
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
        target = self.target()
        builder = llvm.create_pass_builder(target, options)
        builder.getModulePassManager().run(module, builder)
        engine = llvm.create_mcjit_compiler(module, target)
        engine.finalize_object()
        return engine

    def assembly(self, text: str) -> str:
        """The machine code of a module as text, to look at."""
        return self.target().emit_assembly(llvm.parse_assembly(text))


@functools.cache
def machine() -> Machine:
    return Machine()
