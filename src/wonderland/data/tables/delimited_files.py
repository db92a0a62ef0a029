"""The lines of a text file that can be read again: unpacked, decoded, and the same each time."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import os
import re
import shutil
import stat
import sys
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from ...core.errors import FileError, InputError
from ...core.typing import PathLike
from ...storage.bounds import LEAST_TEXT, unpacked_limit
from ..formats.files import GZIP, as_path, damaged

_BLOCK = 1 << 20
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# letters beyond ASCII in UTF-8: in a file of one byte a character they are pairs that nobody writes
_UTF8_LETTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_ONE_BYTE = "cp1252"  # Latin-1 with the letters that Windows puts among its control characters


class TextFile:
    """A file of lines, or standard input, which is kept in a temporary file so that it can be read twice.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "t.csv")
    >>> _ = path.write_bytes(b"\\xef\\xbb\\xbfa,b\\r\\n1,2\\r\\n")
    >>> file = TextFile("demo", path)
    >>> file.encoding, list(file.blocks())
    ('utf-8', [b'a,b\\r\\n1,2\\r\\n'])
    """

    def __init__(
        self,
        who: str,
        source: PathLike,
        encoding: str | None = None,
        expect_size: int | None = None,
        expect_sha256: str | None = None,
    ) -> None:
        self.who = who
        self.kept: BinaryIO | None = None
        self.path: Path | None = None
        if isinstance(source, str) and source == "-":
            self.name = "standard input"
            self.kept = _spooled(sys.stdin.buffer)
        else:
            self.path = as_path(who, source)
            self.name = str(self.path)
            if self.path.is_dir():
                raise InputError(f"{who}: {self.name!r} is a folder.", "the path of a file")
            if not self.path.is_file():  # a pipe gives its bytes once
                with self._opened() as pipe:
                    self.kept = _spooled(pipe)
        if self.kept is not None:
            weakref.finalize(self, self.kept.close)
        self.state = self._state()
        self._check(expect_size, expect_sha256)
        with self.content() as file:
            self.head = file.read(1 << 16)
        self.encoding = self._known(encoding) if encoding is not None else self._found()
        self._check_text(guessed=encoding is None)

    def _opened(self) -> BinaryIO:
        if self.kept is not None:
            self.kept.seek(0)
            return cast(BinaryIO, _Shared(self.kept))
        try:
            return open(cast(Path, self.path), "rb")
        except OSError as error:
            reason = error.strerror
            raise FileError(f"{self.who}: cannot read {self.name!r}: {reason}.", "a file that you may read") from None

    def _state(self) -> tuple[int, int, int]:
        """What is different after somebody wrote to the file or put another one in its place."""
        if self.kept is not None:
            return (0, 0, 0)
        try:
            found = os.stat(cast(Path, self.path))
        except OSError:
            return (-1, 0, 0)
        return (found.st_size, found.st_mtime_ns, found.st_ino if stat.S_ISREG(found.st_mode) else 0)

    def check_unchanged(self) -> None:
        """Refuse what was read of a file that changed meanwhile."""
        if self._state() != self.state:
            raise InputError(f"{self.who}: {self.name!r} changed while it was read.", "again, when nobody writes to it")

    def _check(self, size: int | None, sha256: str | None) -> None:
        if size is None and sha256 is None:
            return
        hashed, found = hashlib.sha256(), 0
        with self._opened() as file:
            while block := file.read(_BLOCK):
                hashed.update(block)
                found += len(block)
        if size is not None and found != size:
            raise damaged(self.who, self.name, f"{size:,} bytes, found {found:,}")
        if sha256 is not None and hashed.hexdigest() != sha256.lower():
            raise damaged(self.who, self.name, f"sha256 {sha256}, found {hashed.hexdigest()}")

    @property
    def size(self) -> int:
        """About how many bytes `blocks` gives; 0 where only reading would tell."""
        with self._opened() as raw:
            return 0 if raw.read(2) == GZIP else self.state[0]

    @contextmanager
    def content(self) -> Iterator[BinaryIO]:
        """The content from its beginning, unpacked. What goes wrong inside is told as an error of the file."""
        with self._opened() as raw:
            packed = raw.read(2) == GZIP
            raw.seek(0)
            if not packed:
                yield raw
                return
            size = raw.seek(0, os.SEEK_END)
            raw.seek(0)
            limit = unpacked_limit(size, LEAST_TEXT)
            try:
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield cast(BinaryIO, io.BufferedReader(_Bounded(unpacked, limit), _BLOCK))
            except (EOFError, gzip.BadGzipFile, zlib.error, _TooLongError) as error:
                raise damaged(self.who, self.name, f"a whole gzip file within {limit:,} bytes", error) from None

    def blocks(self, size: int = _BLOCK) -> Iterator[bytes]:
        """The text from the beginning as blocks of UTF-8, whatever it is in the file."""
        decoder = None if self.encoding == "utf-8" else codecs.getincrementaldecoder(self.encoding)()
        with self.content() as file:
            if decoder is None and self.head.startswith(codecs.BOM_UTF8):
                file.read(len(codecs.BOM_UTF8))
            while block := file.read(size):
                yield block if decoder is None else decoder.decode(block).encode("utf-8")

    # --- encodings

    def _known(self, encoding: str) -> str:
        try:
            name = codecs.lookup(encoding).name
            b"a".decode(name, "ignore")  # which names that are no encodings of texts refuse
        except (LookupError, TypeError, ValueError):
            raise InputError(
                f"{self.who}: encoding={encoding!r} is none.", "'utf-8', 'latin-1', 'cp1252' or 'utf-16'"
            ) from None
        return "utf-8" if name == "utf-8-sig" else name  # a mark is left out anyway

    def _found(self) -> str:
        """The encoding by the mark at the beginning, by zeros in every second byte, or by what can be decoded."""
        for mark, encoding in _MARKS:
            if self.head.startswith(mark):
                return encoding
        even, odd = self.head[0:512:2], self.head[1:512:2]
        if len(odd) > 1 and odd.count(0) > 0.7 * len(odd) and not even.count(0):
            return "utf-16-le"
        if len(even) > 1 and even.count(0) > 0.7 * len(even) and not odd.count(0):
            return "utf-16-be"
        return "utf-8"

    def _check_text(self, guessed: bool) -> None:
        """Refuse a byte that is no text, with its line. What is not UTF-8 may have one byte a letter, as Latin-1."""
        try:
            self._decode()
        except _NotTextError as first:
            if not (guessed and self.encoding == "utf-8" and self._one_byte_a_letter()):
                raise self._undecodable(first) from None

    def _one_byte_a_letter(self) -> bool:
        """Whether nothing beyond ASCII is a letter in UTF-8, while all of it is one among those of Western Europe."""
        end = b""
        with self.content() as file:
            while block := file.read(_BLOCK):
                if not block.isascii() and _UTF8_LETTER.search(end + block):
                    return False
                end = block[-3:]
        self.encoding = _ONE_BYTE
        try:
            self._decode()
        except _NotTextError:
            self.encoding = "utf-8"
            return False
        return True

    def _decode(self) -> None:
        decoder, line = codecs.getincrementaldecoder(self.encoding)(), 1
        plain = self.encoding in ("utf-8", _ONE_BYTE)
        with self.content() as file:
            while True:
                block = file.read(_BLOCK)
                try:
                    text = decoder.decode(block, final=not block)
                except UnicodeDecodeError as error:
                    good = error.object[: error.start].decode(self.encoding, "ignore")
                    byte = f"byte {error.object[error.start]:#x}"
                    raise _NotTextError(byte, line + good.count("\n")) from None
                if "\0" in text:
                    raise _NotTextError("a zero byte", line + text[: text.index("\0")].count("\n"))
                line += block.count(b"\n") if plain else text.count("\n")
                if not block:
                    return

    def _undecodable(self, found: _NotTextError) -> InputError:
        what, line = found.args
        if what == "a zero byte":
            return damaged(self.who, self.name, f"text, found a zero byte in line {line}")
        shown = "UTF-8" if self.encoding == "utf-8" else self.encoding
        return InputError(
            f"{self.who}: {self.name!r} is damaged or of another kind: expected {shown} text, found {what} in "
            f"line {line}.",
            "encoding='latin-1', 'cp1252' or 'utf-16', if it was written so",
        )


class _NotTextError(Exception):
    """What was found instead of text, and in which line."""


class _TooLongError(Exception):
    """More bytes than a packed file of this size may have."""


def text_lines(blocks: Iterator[bytes]) -> io.TextIOWrapper:
    """The lines of blocks of UTF-8, with the ends that they have.

    >>> list(text_lines(iter([b"a\\nb", b"c\\r\\n"])))
    ['a\\n', 'bc\\r\\n']
    """
    return io.TextIOWrapper(io.BufferedReader(_Joined(blocks), _BLOCK), encoding="utf-8", newline="")


class _Joined(io.RawIOBase):
    """Blocks of bytes one after the other as a stream."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self.blocks, self.rest = blocks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        room = cast(memoryview, buffer)
        while not self.rest:
            block = next(self.blocks, None)
            if block is None:
                return 0
            self.rest = memoryview(block)
        count = min(len(room), len(self.rest))
        room[:count] = self.rest[:count]
        self.rest = self.rest[count:]
        return count


class _Bounded(io.RawIOBase):
    """A stream that unpacks as it is read, up to a number of bytes."""

    def __init__(self, file: gzip.GzipFile, most: int) -> None:
        self.file, self.left = file, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        count = self.file.readinto(cast(bytearray, buffer))
        self.left -= count
        if self.left < 0:
            raise _TooLongError("it unpacks to more")
        return count


class _Shared:
    """A temporary file that stays open when one of its readers is done."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def __getattr__(self, name: str) -> object:
        return getattr(self.file, name)

    def __enter__(self) -> _Shared:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def close(self) -> None:
        pass


def _spooled(stream: BinaryIO) -> BinaryIO:
    kept = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the source
    shutil.copyfileobj(stream, kept, _BLOCK)
    return cast(BinaryIO, kept)
