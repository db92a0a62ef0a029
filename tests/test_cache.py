"""Compiled code on disk: found again, and robust against whatever happens to the folder."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import cache
from wonderland.cache import CacheWarning
from wonderland.core import own_folders
from wonderland.engines.native.machine import Machine, Module

TEXT = "define i64 @answer() {\n  ret i64 42\n}\n"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WONDERLAND_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.setattr(cache, "_unwatched", 0)
    monkeypatch.setattr(cache, "_failure", "")


posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes of files are a matter of POSIX")


def path_of(name: str) -> Path:
    return Path(os.environ["WONDERLAND_CACHE"]) / f"{name}{cache.SUFFIX}"


def answer(machine: Machine) -> int:
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


def test_those_that_were_not_used_for_longest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 64 * cache.BLOCK)
    for i in range(80):
        cache.write(f"n{i}", bytes(3 * cache.BLOCK))
        os.utime(path_of(f"n{i}"), (i, i))
    assert cache.size() <= cache.LIMIT
    kept = [path_of(f"n{i}").exists() for i in range(80)]
    assert kept == sorted(kept)  # first those that went, then those that stayed
    assert sum(kept) >= 15  # of 16 for which there is room


def test_a_file_alone_cannot_fill_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 64 * cache.BLOCK)
    cache.write("a", bytes(5 * cache.BLOCK))
    assert cache.info().files == 0


def test_the_folder_is_not_looked_through_for_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise n files take quadratic time."""
    looks = []
    entries = own_folders.OwnFolder.entries
    monkeypatch.setattr(own_folders.OwnFolder, "entries", lambda self: (looks.append(1), entries(self))[1])
    for i in range(200):
        cache.write(f"n{i}", b"contents")
    assert len(looks) == 1


def test_what_a_dead_process_left_goes() -> None:
    cache.write("a", b"contents")
    old, new, foreign = (path_of("a").parent / n for n in ("b.wlc.12.part", "c.wlc.34.part", "download.part"))
    for path in (old, new, foreign):
        path.write_bytes(b"half")
    long_ago = time.time() - 2 * cache.STALE
    os.utime(old, (long_ago, long_ago))
    os.utime(foreign, (long_ago, long_ago))
    cache._unwatched = 0
    cache.write("d", b"contents")
    assert [path.exists() for path in (old, new, foreign)] == [False, True, True]
    wl.cache.clear()
    assert [path.exists() for path in (old, new, foreign)] == [False, False, True]


def test_files_that_were_swapped_are_refused() -> None:
    """Each is whole, and neither is what its name says."""
    cache.write("a", b"code of a")
    cache.write("b", b"code of b")
    one, other = path_of("a"), path_of("b")
    contents = one.read_bytes(), other.read_bytes()
    one.write_bytes(contents[1])
    other.write_bytes(contents[0])
    assert cache.read("a") is None
    assert cache.read("b") is None


def test_swapped_code_is_compiled_anew() -> None:
    def number(machine: Machine, name: str) -> int:
        text = f"define i64 @{name}() {{\n  ret i64 {len(name)}\n}}\n"
        (address,) = machine.functions(Module(name, lambda: text, (name,)))
        return int(ctypes.CFUNCTYPE(ctypes.c_int64)(address)())

    first = Machine()
    assert [number(first, name) for name in ("one", "other")] == [3, 5]
    one, other = (path_of(first.name(name)) for name in ("one", "other"))
    contents = one.read_bytes(), other.read_bytes()
    one.write_bytes(contents[1])
    other.write_bytes(contents[0])
    second = Machine()
    assert [number(second, name) for name in ("one", "other")] == [3, 5]
    assert second.compiled == 2


@pytest.mark.parametrize("name", ["", "wonderland cache\n1 a\n"])
def test_a_checksum_of_nothing_is_refused(name: str) -> None:
    """An empty object file would crash the loader, whatever its checksum."""
    import hashlib

    cache.write("a", b"")
    assert cache.info().files == 0
    cache.write("a", b"contents")
    path_of("a").write_bytes(hashlib.sha256(name.encode()).digest())
    assert cache.read("a") is None
    assert not path_of("a").exists()


def test_every_truncation_is_noticed() -> None:
    cache.write("a", b"contents")
    whole = path_of("a").read_bytes()
    for length in range(len(whole)):
        cache.write("a", b"contents")
        path_of("a").write_bytes(whole[:length])
        assert cache.read("a") is None


def test_the_name_depends_on_the_machine_and_its_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    import llvmlite

    names = [Machine().name("a")]
    for attribute in ("triple", "name", "features", "vector_bytes", "registers", "converts_half"):
        machine = Machine()
        monkeypatch.setattr(machine, "cpu", machine.cpu._replace(**{attribute: "other"}))  # type: ignore[arg-type]
        monkeypatch.setattr(machine, "_version", machine.version())
        names.append(machine.name("a"))
    monkeypatch.setattr(llvmlite, "__version__", "0.0")
    names.append(Machine().name("a"))
    monkeypatch.setattr("wonderland.engines.native.machine._sources", lambda: "other")
    names.append(Machine().name("a"))
    assert len(set(names)) == 9


def test_a_function_that_is_not_there_is_never_called() -> None:
    machine = Machine()
    with pytest.raises(wl.errors.GraphError, match=r"has no function 'question'[\s\S]*wl\.cache\.clear"):
        machine.functions(Module("no answer", lambda: TEXT, ("question",)))
    assert "question" not in machine._permanent


def refused(reason: str) -> None:
    """Nothing is read or written, the user is told once, and `info` says why."""
    path = os.environ["WONDERLAND_CACHE"]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert cache.read("a") is None
        cache.write("b", b"contents")
        assert cache.read("b") is None
        assert answer(Machine()) == 42
        wl.cache.clear()
    (warning,) = told
    assert warning.category is CacheWarning
    assert re.search(rf"(?s){path} is not used.*{reason}.*try: .*WONDERLAND_CACHE", str(warning.message))
    assert cache.folder() is None
    assert cache.size() == 0
    assert reason in str(cache.info().problem)


@posix
@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(mode: int) -> None:
    cache.write("a", b"contents")
    path_of("a").parent.chmod(mode)
    refused("may write to")
    assert path_of("a").exists()
    assert not path_of("b").exists()


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_to_is_replaced(mode: int) -> None:
    answer(Machine())
    (path,) = Path(cache.folder() or "").iterdir()
    path.chmod(mode)
    machine = Machine()
    assert (answer(machine), machine.compiled) == (42, 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = Machine()
    assert (answer(again), again.compiled) == (42, 0)


@posix
def test_a_folder_of_somebody_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write("a", b"contents")
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr(own_folders, "_check_above", lambda path: None)
    refused("belongs to user")
    assert [p.name for p in path_of("a").parent.iterdir()] == [path_of("a").name]


@posix
def test_a_file_of_somebody_else_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write("a", b"contents")
    fstat = os.fstat

    def of_another(handle: int) -> Any:
        about = fstat(handle)
        if stat.S_ISDIR(about.st_mode):
            return about
        fields = list(about)
        fields[stat.ST_UID] += 1
        return os.stat_result(fields)

    monkeypatch.setattr(os, "fstat", of_another)
    assert cache.read("a") is None


@posix
def test_a_folder_below_that_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write("a", b"contents")
    find = os.stat

    def of_another(path: Any, **options: Any) -> Any:
        fields = list(find(path, **options))
        if str(path) == str(tmp_path):
            fields[stat.ST_UID] = os.geteuid() + 1
        return os.stat_result(fields)

    monkeypatch.setattr(os, "stat", of_another)
    refused(f"{tmp_path}, above")


@posix
def test_names_above_must_stay_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody may write to /tmp, but only the owner of a name may change it; without the sticky bit anybody may."""
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv("WONDERLAND_CACHE", str(shared / "cache"))
    shared.chmod(0o1777)
    cache.write("a", b"contents")
    assert cache.read("a") == b"contents"
    shared.chmod(0o777)
    refused("everybody may write to")


@posix
def test_symbolic_links_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write("a", b"contents")
    path_of("a").rename(tmp_path / "elsewhere")
    path_of("a").symlink_to(tmp_path / "elsewhere")
    assert cache.read("a") is None
    cache.write("a", b"new")  # the link is replaced, and what it points to is not
    assert cache.read("a") == b"new"
    assert (tmp_path / "elsewhere").read_bytes().endswith(b"contents")
    (tmp_path / "link").symlink_to(path_of("a").parent)
    monkeypatch.setenv("WONDERLAND_CACHE", str(tmp_path / "link"))
    refused("is a symbolic link")


@posix
def test_a_link_above_the_folder_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """~/.cache on another disk."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    monkeypatch.setenv("WONDERLAND_CACHE", str(tmp_path / "link" / "cache"))
    cache.write("a", b"contents")
    assert cache.read("a") == b"contents"
    (tmp_path / "disk").chmod(0o777)
    refused("everybody may write to")


@posix
def test_neither_pipes_nor_folders_are_read() -> None:
    cache.write("a", b"contents")
    os.mkfifo(path_of("pipe"))
    path_of("folder").mkdir()
    assert cache.read("pipe") is None  # and does not wait for a writer
    assert cache.read("folder") is None
    assert cache.info().files == 1


@posix
def test_no_folder_on_the_way_is_open_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WONDERLAND_CACHE", str(tmp_path / "a" / "b" / "c"))
    mask = os.umask(0)
    try:
        cache.write("a", b"contents")
    finally:
        os.umask(mask)
    for path in (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(path_of("a").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"HOME": "."}, "home folder"),
        ({"HOME": "~"}, "home folder"),
        ({"XDG_CACHE_HOME": "relative"}, "XDG_CACHE_HOME"),
        ({"XDG_CACHE_HOME": "~/.cache"}, "XDG_CACHE_HOME"),
        ({"XDG_CACHE_HOME": "."}, "XDG_CACHE_HOME"),
    ],
)
def test_without_an_absolute_path_there_is_no_cache(
    settings: dict[str, str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WONDERLAND_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody asked for a cache, so nobody is told
        cache.write("a", b"contents")
    assert cache.folder() is None
    assert reason in str(cache.info().problem)
    assert not list(tmp_path.iterdir())


@posix
def test_a_user_without_a_home_has_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("WONDERLAND_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 123_456_789)  # is in no list of users
    assert os.path.expanduser("~") == "~"
    cache.write("a", b"contents")
    assert cache.folder() is None
    assert not list(tmp_path.iterdir())


def test_the_folder_that_is_asked_for_must_be_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WONDERLAND_CACHE", "cache")
    refused("no absolute path")
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WONDERLAND_CACHE", os.path.join("~", "cache"))
    assert cache.folder() == str(tmp_path / "cache")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("step", ["open", "write", "close", "rename"])
def test_a_full_or_broken_disk_is_no_error(code: int, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write("a", b"contents")
    failure = OSError(code, os.strerror(code))
    failed = []

    def fail(*args: Any, **options: Any) -> Any:
        failed.append(1)
        raise failure

    with monkeypatch.context() as patch:
        if step == "open":
            really_open = os.open
            patch.setattr(
                os, "open", lambda p, flags, *a, **k: (fail if flags & os.O_CREAT else really_open)(p, flags, *a, **k)
            )
        elif step == "rename":
            patch.setattr(os, "replace", fail)
        else:
            fdopen = os.fdopen

            class Broken:
                def __init__(self, handle: int, mode: str) -> None:
                    self.file = fdopen(handle, mode)

                def __enter__(self) -> Broken:
                    return self

                def write(self, contents: bytes) -> None:
                    self.file.write(contents[:10])
                    if step == "write":
                        fail()

                def __exit__(self, *error: object) -> None:
                    self.file.close()
                    if step == "close":
                        fail()

            patch.setattr(os, "fdopen", lambda h, mode: Broken(h, mode) if mode == "wb" else fdopen(h, mode))
        assert answer(Machine()) == 42
        assert failed
        assert os.strerror(code) in str(cache.info().problem)
    assert [p.name for p in path_of("a").parent.iterdir()] == [path_of("a").name]  # nothing half-written stays
    assert cache.read("a") == b"contents"
    machine = Machine()
    assert (answer(machine), machine.compiled) == (42, 1)
    assert cache.info().problem is None


def test_readers_among_writers_see_all_or_nothing() -> None:
    contents = [bytes([i]) * 100_000 for i in range(4)]
    stop = threading.Event()

    def write(mine: bytes) -> None:
        while not stop.is_set():
            cache.write("a", mine)

    writers = [threading.Thread(target=write, args=(mine,)) for mine in contents]
    cache.write("a", contents[0])
    for writer in writers:
        writer.start()
    try:
        assert all(cache.read("a") in contents for _ in range(300))
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert [p.name for p in path_of("a").parent.iterdir()] == [path_of("a").name]


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
