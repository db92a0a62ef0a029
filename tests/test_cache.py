"""Compiled code on disk: found again, and robust against whatever happens to the folder."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from wonderland import cache
from wonderland.compiler.machine import Machine, Module

TEXT = "define i64 @answer() {\n  ret i64 42\n}\n"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WONDERLAND_CACHE", str(tmp_path / "cache"))


def answer(machine: Machine) -> int:
    import ctypes

    (address,) = machine.functions(Module("the answer", lambda: TEXT, ("answer",)))
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(address)())


def test_what_is_written_is_read() -> None:
    assert cache.read("a") is None
    cache.write("a", b"contents")
    assert cache.read("a") == b"contents"
    assert cache.size() > len(b"contents")
    wl.cache.clear()
    assert cache.read("a") is None
    assert cache.size() == 0


def test_code_is_compiled_once_and_found_the_next_time() -> None:
    first = Machine()
    assert (answer(first), answer(first), first.compiled) == (42, 42, 1)
    second = Machine()  # as in another process
    assert (answer(second), second.compiled) == (42, 0)


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 5000])
def test_a_damaged_or_foreign_file_is_replaced(damage: bytes) -> None:
    answer(Machine())
    (path,) = Path(cache.folder() or "").iterdir()
    path.write_bytes(damage)
    machine = Machine()
    assert (answer(machine), machine.compiled) == (42, 1)
    again = Machine()
    assert (answer(again), again.compiled) == (42, 0)


def test_a_flipped_bit_is_noticed() -> None:
    cache.write("a", bytes(1000))
    (path,) = Path(cache.folder() or "").iterdir()
    contents = bytearray(path.read_bytes())
    contents[500] ^= 1
    path.write_bytes(contents)
    assert cache.read("a") is None


def test_a_folder_that_cannot_be_used_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("WONDERLAND_CACHE", str(tmp_path / "file" / "cache"))
    cache.write("a", b"contents")
    assert cache.read("a") is None
    assert answer(Machine()) == 42
    wl.cache.clear()


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WONDERLAND_CACHE", "off")
    assert cache.folder() is None
    cache.write("a", b"contents")
    assert cache.read("a") is None


def test_others_cannot_read_the_folder() -> None:
    cache.write("a", b"contents")
    assert stat.S_IMODE(os.stat(cache.folder() or "").st_mode) == 0o700


def test_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 3 * (1000 + 32))
    for i in range(5):
        cache.write(f"n{i}", bytes(1000))
        path = os.path.join(cache.folder() or "", f"n{i}{cache.SUFFIX}")
        os.utime(path, (i, i))
    assert [cache.read(f"n{i}") is None for i in range(5)] == [True, True, False, False, False]


def test_two_processes_may_compile_at_once() -> None:
    program = (
        "import wonderland as wl\n"
        "with wl.using_backend('native'):\n"
        "    print(wl.jit(lambda x: (wl.tanh(x) + 1).sum())(wl.ones(100)).item())\n"
    )
    source = str(Path(wl.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, "-c", program]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    results = [float(process.communicate(timeout=60)[0]) for process in running]
    np.testing.assert_allclose(results, 100 * (np.tanh(1) + 1), rtol=1e-6)
    assert not [p for p in Path(cache.folder() or "").iterdir() if p.suffix == ".part"]
