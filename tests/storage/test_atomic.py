"""A file appears whole or not at all."""

import errno
import os
import stat

import pytest

import wonderland as wl
from wonderland.storage import atomic, write_atomically


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, moment):
    path = tmp_path / "state"
    write_atomically(path, b"old")
    monkeypatch.setattr(atomic.os, moment, full)
    with pytest.raises(wl.errors.FileError, match="the disk is full") as raised:
        write_atomically(path, b"new")
    assert "another disk" in str(raised.value)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state"]


def test_an_error_between_the_pieces_leaves_the_old_file(tmp_path):
    def pieces():
        yield b"half of "
        raise KeyboardInterrupt

    write_atomically(tmp_path / "state", b"old")
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "state", pieces())
    assert (tmp_path / "state").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state"]


def test_folders_are_made_and_files_are_readable(tmp_path):
    write_atomically(tmp_path / "a" / "b.txt", "κόσμος")
    assert (tmp_path / "a" / "b.txt").read_text(encoding="utf-8") == "κόσμος"
    assert stat.S_IMODE(os.stat(tmp_path / "a" / "b.txt").st_mode) == 0o666 & ~atomic._umask()


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path):
    with pytest.raises(wl.errors.FileError, match=str(tmp_path)):
        write_atomically(tmp_path, b"text")
