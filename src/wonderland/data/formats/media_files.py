"""Which files of a folder are images or sounds, and of which class; and many of them read at once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ...core.errors import InputError, WonderlandError
from ...core.typing import PathLike
from ...core.waiting import Waiting
from ..dataset import Dataset
from .files import as_path

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp", ".npy")
SOUNDS = (".wav", ".wave")
ENDINGS = {"image": IMAGES, "sound": SOUNDS}
# folders that are no classes, but parts: the name is the record's
PARTS = {"train": "train", "training": "train", "test": "test", "testing": "test"}
PARTS |= {"val": "validation", "valid": "validation", "validation": "validation", "dev": "validation"}


@dataclass(frozen=True)
class Listing:
    """The files under a folder, their classes if there are subfolders, and what was found beside them.

    `labels` are places in `classes`, or None. `parts` has the indices of files under folders named train and test.
    """

    root: Path
    files: tuple[Path, ...]
    labels: tuple[int, ...] | None = None
    classes: tuple[str, ...] = ()
    parts: dict[str, np.ndarray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The paths of the files as seen from the folder."""
        return tuple(file.relative_to(self.root).as_posix() for file in self.files)


class LabelledFiles(Dataset):
    """A dataset of files, of which each has a class: what folders of images and of sounds share."""

    classes: tuple[str, ...]
    samples: list[tuple[Path, int]]  # files and the numbers of their classes

    @property
    def targets(self) -> tuple[int, ...]:
        """The labels of all examples, without reading a file."""
        return tuple(label for _, label in self.samples)

    @property
    def target_names(self) -> tuple[str, ...]:
        """The classes, as a record calls them."""
        return self.classes

    def __len__(self) -> int:
        return len(self.samples)


def media_kind(source: object) -> str | None:
    """ "image" or "sound": what a file or a folder holds most of, by the endings of names; or None.

    >>> media_kind("holiday.JPG"), media_kind("bark.wav"), media_kind("table.csv")
    ('image', 'sound', None)

    An `.npy` file alone is an array of examples, and no image.
    """
    if not isinstance(source, (str, os.PathLike)):
        return None
    path = Path(source).expanduser()
    if path.is_dir():
        found = Counter(kind for file in _walk(path) if (kind := _kind(file)) is not None)
        return found.most_common(1)[0][0] if found else None
    return None if path.suffix.lower() == ".npy" else _kind(path)


def list_media(root: PathLike, kind: str, classes: bool = True) -> Listing:
    """The files of a kind under a folder, sorted, each with the class that its subfolder is, if `classes`.

    >>> import pathlib, tempfile
    >>> root = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("cat/1.png", "cat/2.png", "dog/old/3.png", "dog/notes.txt"):
    ...     (root / name).parent.mkdir(parents=True, exist_ok=True)
    ...     _ = (root / name).write_bytes(b"")
    >>> found = list_media(root, "image")
    >>> found.classes, found.labels, found.names[-1]
    (('cat', 'dog'), (0, 0, 1), 'dog/old/3.png')
    >>> found.notes
    ('1 file is no image and is left out: dog/notes.txt.',)

    A folder around the classes alone is passed through. Folders named train and test (val, valid ...) around the same
    classes are parts of the data.
    """
    top = as_path("read", root)
    if not top.is_dir():
        raise InputError(f"{str(top)!r} is not a folder.", f"a folder of {kind}s")
    every = sorted(_walk(top))
    files = [file for file in every if _kind(file) == kind]
    if not files:
        beside = f" ({len(every)} files of other kinds, such as {every[0].name})" if every else ", it is empty"
        raise InputError(
            f"{str(top)!r} has no {kind}s{beside}.",
            f"files that end in {', '.join(ENDINGS[kind])}, in a subfolder for each class",
        )
    notes = [_counted(top, [file for file in every if _kind(file) != kind], f"no {kind}")]
    if not classes:
        return Listing(top, tuple(files), notes=_said(notes))
    ways = {file: file.relative_to(top).parts[:-1] for file in files}
    while len({way[:1] for way in ways.values()}) == 1 and all(len(way) > 1 for way in ways.values()):
        ways = {file: way[1:] for file, way in ways.items()}  # a folder around all that says nothing
    firsts = {way[0] for way in ways.values() if way}
    parts: dict[str, np.ndarray] = {}
    if (
        len(firsts) > 1
        and all(name.lower() in PARTS for name in firsts)
        and all(len(w) > 1 for w in ways.values() if w)
    ):
        files = [file for file in files if ways[file]]
        of = [PARTS[ways[file][0].lower()] for file in files]
        parts = {name: np.array([i for i, part in enumerate(of) if part == name]) for name in sorted(set(of))}
        if "train" in parts and "test" not in parts:
            parts["test"] = parts.pop("validation")  # what was kept apart is what is measured
        ways = {file: way[1:] for file, way in ways.items()}
    inside = [file for file in files if ways[file]]
    if not inside:
        return Listing(top, tuple(files), notes=_said(notes))
    notes.append(_counted(top, [file for file in files if not ways[file]], "in no folder of a class"))
    names = sorted({ways[file][0] for file in inside})
    empty = sorted(
        folder.name
        for folder in top.iterdir()
        if folder.is_dir() and not _is_hidden(folder.name) and not any(folder in file.parents for file in inside)
    )
    if empty:
        notes.append(f"without {kind}s, and no class: {_some(empty)}.")
    place = {name: i for i, name in enumerate(names)}
    labels = tuple(place[ways[file][0]] for file in inside)
    return Listing(top, tuple(inside), labels, tuple(names), parts, _said(notes))


def _walk(folder: Path) -> Iterator[Path]:
    """All files under a folder but those that are hidden, or that a system leaves."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        for name in names:
            if name[0] != "." and name.lower() not in ("thumbs.db", "desktop.ini"):
                yield Path(place) / name


def _is_hidden(folder: str) -> bool:
    return folder[0] == "." or folder == "__MACOSX"


def _kind(file: Path) -> str | None:
    return next((kind for kind, endings in ENDINGS.items() if file.suffix.lower() in endings), None)


def _counted(top: Path, files: Sequence[Path], what: str) -> str:
    if not files:
        return ""
    one = len(files) == 1
    shown = _some([file.relative_to(top).as_posix() for file in files])
    return f"{len(files):,} {'file is' if one else 'files are'} {what} and {'is' if one else 'are'} left out: {shown}."


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")


def _said(notes: Sequence[str]) -> tuple[str, ...]:
    return tuple(note for note in notes if note)


# --- many at once

FEW = 32  # files that are read one after another


def read_all(
    what: str,
    files: Sequence[Path],
    read: Callable[[Path], np.ndarray],
    into: np.ndarray,
    unreadable: str = "error",
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Read each file to its row of an array; which rows are there, and a note on those that are not.

    Several threads read: decoders do their work outside of Python's lock. Files that cannot be read are named all
    together in one error, or with `unreadable="skip"` in a note.
    """
    if unreadable not in ("error", "skip"):
        raise InputError(f"data.unreadable = {unreadable!r}.", '"error" or "skip"')
    mistakes: dict[int, WonderlandError] = {}

    def one(i: int) -> None:
        try:
            into[i] = read(files[i])
        except WonderlandError as error:
            mistakes[i] = error

    if len(files) <= FEW:
        for i in range(len(files)):
            one(i)
    else:
        waiting = Waiting(f"reading {what}s", len(files), "files")
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool, waiting:
            for _ in pool.map(one, range(len(files))):
                waiting.advance()
    if not mistakes:
        return np.arange(len(files)), ()
    first = mistakes[min(mistakes)]
    shown = _some([str(files[i]) for i in sorted(mistakes)])
    count = f"{len(mistakes):,} of {len(files):,} {what}s cannot be read: {shown}"
    if unreadable == "error" or len(mistakes) == len(files):
        if len(files) == 1:
            raise first
        reason = str(first).partition("\n")[0]
        raise InputError(
            f"{count}. The first: {reason}", "fresh copies, or --set data.unreadable=skip to leave them out"
        )
    return np.array([i for i in range(len(files)) if i not in mistakes], np.int64), (f"{count}; they are left out.",)
