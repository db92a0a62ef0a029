"""LLVM beside others who use it in the same process: nothing of theirs is touched, and nobody waits for the other."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np
import pytest

import wonderland as wl
from wonderland.engines.native import machine as compiling
from wonderland.engines.native.aside import aside, completed
from wonderland.engines.native.llvm import Generator, Library
from wonderland.engines.native.machine import Machine, Module, machine
from wonderland.engines.native.undefined import undefined


@pytest.fixture(autouse=True)
def native() -> Iterator[None]:
    with wl.using_backend("native"):
        yield


def _globals() -> dict[str, Any]:
    """What users of llvmlite share, and what they have set up of it."""
    lib = llvm.ffi.lib
    shared = {"lib": lib, "lock": lib._lock, "inner": lib._lock._lock, "handle": lib._lib_handle, "table": lib._fntab}
    callbacks = {"callbacks": lib._lock._cblist, "count": len(lib._lock._cblist)}
    return shared | callbacks | {name: (f, f._lock, f._cfn) for name, f in lib._fntab.items()}


def _unchanged(before: dict[str, Any]) -> bool:
    now = _globals()
    same = lambda a, b: all(map(same, a, b)) if type(a) is tuple else a is b or (type(a) is int and a == b)  # type: ignore[has-type]
    return all(same(now[name], thing) for name, thing in before.items())


def _answer(number: int) -> int:
    """A number that native code returns, all the way as a stranger makes it: in the global context, with the lock."""
    module = llvm.parse_assembly(f"define i64 @answer() {{\n  ret i64 {number}\n}}\n")
    target = llvm.Target.from_default_triple().create_target_machine(opt=2, jit=True)
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(engine.get_function_address("answer"))())


def _several(seed: float) -> np.ndarray[Any, Any]:
    """What a function gives that needs several new routines, so that several threads compile them."""
    x = wl.asarray(np.linspace(0, 1, 60, dtype=np.float32).reshape(6, 10))
    parts = lambda x: [x @ x.T + seed, wl.cumsum(x, axis=0) * seed, wl.softmax(x * seed), wl.sort(x - seed, axis=1)]
    return np.concatenate([part.numpy().ravel() for part in wl.jit(parts)(x)])


def test_a_stranger_compiles_at_the_same_time() -> None:
    machine()
    _answer(1)
    before = _globals()
    stop, wrong, count = threading.Event(), [], [0]

    def stranger() -> None:
        try:
            while not stop.is_set():
                count[0] += 1
                if _answer(count[0]) != count[0] or not _unchanged(before):
                    wrong.append(count[0])
        except BaseException as error:
            wrong.append(error)  # type: ignore[arg-type]

    thread = threading.Thread(target=stranger)
    thread.start()
    seeds = [1.25 + i for i in range(6)]
    made = [_several(seed) for seed in seeds]
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
    assert not wrong
    assert count[0] > 0
    assert _unchanged(before)
    with wl.using_backend("numpy"):
        for found, seed in zip(made, seeds, strict=True):
            np.testing.assert_allclose(found, _several(seed), rtol=1e-5, atol=1e-6)


def test_compiling_does_not_wait_for_a_stranger() -> None:
    """Somebody is in LLVM, by llvmlite's rules, all the time."""
    machine()
    entered, leave = threading.Event(), threading.Event()

    def stranger() -> None:
        with llvm.ffi.lib._lock:
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=stranger)
    thread.start()
    entered.wait(60)
    done = threading.Event()
    compiler = threading.Thread(target=lambda: (_several(31.5), done.set()), daemon=True)
    compiler.start()
    try:
        assert done.wait(60)
    finally:
        leave.set()
        thread.join()


ADDRESSES = """
define void @f(ptr %x, ptr %y, i64 %n, i64 %s) {
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%j, %head]
  %a = mul i64 %i, %s
  %p = getelementptr float, ptr %x, i64 %a
  %v = load float, ptr %p
  %b = add i64 %a, 7
  %q = getelementptr float, ptr %y, i64 %b
  store float %v, ptr %q
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %head, label %out
out:
  ret void
}
"""


def test_no_option_of_the_process_is_set() -> None:
    """A stranger gets the same machine code before and after we have compiled, also where addresses are rewritten."""
    code = f"""
        import llvmlite.binding as llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        def assembly():
            target = llvm.Target.from_default_triple().create_target_machine(opt=2, jit=True)
            return target.emit_assembly(llvm.parse_assembly({ADDRESSES!r}))
        before = assembly()
        import wonderland as wl
        wl.jit(lambda x: wl.tanh(x) + 1)(wl.ones(100))
        print(before == assembly())
        llvm.set_option("", "-disable-lsr")  # a choice that matters here, so that the comparison means something
        print(before == assembly())
    """
    environment = {**os.environ, "WONDERLAND_BACKEND": "native"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_what_llvm_does_not_understand_is_an_error() -> None:
    host = machine().host
    with pytest.raises(RuntimeError, match=r"LLVM: parsing: .*expected"):
        Generator(host.triple, "", "").code("define nonsense")
    with pytest.raises(RuntimeError, match=r"LLVM: the target no-such-thing"):
        Generator("no-such-thing", "", "")
    with pytest.raises(RuntimeError, match="damaged"):
        Library(host.triple, [b"not an object file"], [])


# --- routines in memory


def _constant(number: int) -> dict[str, Any]:
    return {f"constant {number}": lambda name: f"define i64 @{name}() {{\n  ret i64 {number}\n}}\n"}


def _called(address: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(address)())


def test_routines_that_nobody_wants_are_unmapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "ROUTINES", 3)
    own, held, libraries = Machine(), [], []
    for i in range(8):
        ((_, address),) = own.routines(_constant(i), "constants").items()
        libraries.append(weakref.ref(address.library))
        if i == 1:
            held.append(address)
        own.routines(_constant(0), "constants")  # one that is wanted again and again
    del address
    gc.collect()
    assert [i for i, library in enumerate(libraries) if library() is not None] == [0, 1, 6, 7]
    assert own.compiled == 8
    assert _called(held[0]) == 1
    held.clear()
    assert libraries[1]() is None
    assert _called(own.function(*next(iter(_constant(5).items())))) == 5  # made once more
    assert own.compiled == 9


def test_functions_of_the_runtime_stay() -> None:
    own = Machine()
    text = "define i64 @stays() {\n  ret i64 7\n}\n"
    (address,) = (int(a) for a in own.functions(Module("stays", lambda: text, ("stays",))))
    gc.collect()
    assert _called(address) == 7


LIGHT = ("light", "whole")
SQUARES = """
define i64 @NAME(i64 %n) {
entry:
  %sum = alloca i64
  store i64 0, ptr %sum
  br label %more
more:
  %i = phi i64 [0, %entry], [%next, %more]
  %square = mul i64 %i, %i
  %before = load i64, ptr %sum
  %after = add i64 %before, %square
  store i64 %after, ptr %sum
  %next = add i64 %i, 1
  %some = icmp slt i64 %next, %n
  br i1 %some, label %more, label %out
out:
  %result = load i64, ptr %sum
  ret i64 %result
}
"""


def test_light_code_means_the_same() -> None:
    host = machine().host
    codes = {n: Generator(host.triple, "", "", light=n == "light").code(SQUARES.replace("NAME", n)) for n in LIGHT}
    library = Library(host.triple, list(codes.values()), LIGHT)
    sums = [ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library.addresses[name])(100) for name in LIGHT]
    assert sums == [sum(i * i for i in range(100))] * 2
    assert codes["light"] != codes["whole"].replace(b"whole", b"light")  # its variable stays in memory


CALLS = """
declare double @CALLED(double)
define double @caller(double %x) {
  %y = call double @CALLED(double %x)
  ret double %y
}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="symbols are read from ELF files")
def test_code_that_calls_what_is_not_there_is_refused() -> None:
    """LLVM's loader has no error for it, and the call would end the process."""
    host = machine().host
    code = {name: Generator(host.triple, "", "").code(CALLS.replace("CALLED", name)) for name in ("erfc", "__nowhere")}
    assert [undefined(data) for data in code.values()] == [["erfc"], ["__nowhere"]]
    library = Library(host.triple, [code["erfc"]], ["caller"])
    call = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(library.addresses["caller"])
    assert call(0.5) == pytest.approx(math.erfc(0.5))
    with pytest.raises(RuntimeError, match="__nowhere"):
        Library(host.triple, [code["__nowhere"]], ["caller"])


def test_the_way_into_a_program_is_compiled_beside_it() -> None:
    code = """
        import wonderland as wl
        from wonderland.engines.native.machine import machine
        f = wl.jit(lambda x: wl.tanh(x) + 1)
        found = []
        for _ in range(4):
            f(wl.ones(100))
            found.append(machine().compiled)
        print(*found)
    """
    environment = {**os.environ, "WONDERLAND_BACKEND": "native", "WONDERLAND_CACHE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.stdout.split() == ["3"] * 4, done.stderr  # the runtime, the entry, one routine


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="the mappings are not known")
def test_mappings_are_given_back() -> None:
    host = machine().host
    code = Generator(host.triple, "", "").code("define i64 @f() {\n  ret i64 1\n}\n")
    before = _mappings()
    libraries = [Library(host.triple, [code], ["f"]) for _ in range(50)]
    assert _mappings() > before + 25
    libraries.clear()
    assert _mappings() < before + 10


def _mappings() -> int:
    with open("/proc/self/maps") as file:
        return sum(1 for _ in file)


# --- threads of its own


def test_work_aside() -> None:
    assert sorted(completed(lambda x: x * x, [3, 4, 5], 2)) == [(0, 9), (1, 16), (2, 25)]
    assert aside(threading.get_ident) != threading.get_ident()
    assert list(completed(lambda x: x, [], 3)) == []


def test_an_error_aside_is_raised_and_ends_the_rest() -> None:
    done = []

    def work(i: int) -> None:
        if i == 2:
            raise ValueError("the third")
        time.sleep(0.01)
        done.append(i)

    with pytest.raises(ValueError, match="the third"):
        list(completed(work, range(1000), 1))
    assert len(done) < 500


def test_without_threads_the_caller_works(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*args: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("wonderland.engines.native.aside.start_new_thread", refuses)
    assert sorted(completed(lambda x: x + 1, [1, 2], 2)) == [(0, 2), (1, 3)]
