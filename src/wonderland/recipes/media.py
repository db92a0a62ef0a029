"""Images and sounds of one's own: from files, folders, tables of file names and arrays to the inputs of a model."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.arguments import shown
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..data import DatasetRecord, list_datasets
from ..data.formats import images, sounds
from ..data.formats.files import GZIP, as_path
from ..data.formats.images import MODES, ImageForm, as_images, as_size, read_images
from ..data.formats.media_files import ENDINGS, IMAGES, Listing, list_media, media_kind
from ..data.formats.rates import at_rate
from ..data.formats.sounds import SoundForm, as_rate_and_seconds, as_sounds, read_sounds
from ..data.formats.wav import Waveform
from ..data.tables.kinds import guess_kind
from ..data.tables.reading import is_table_source, read_table
from ..data.tables.table import Table
from ..data.tables.targets import TargetSchema, infer_target
from ..storage.bounds import gunzip_head

Form = ImageForm | SoundForm
Settings = Mapping[str, object]
OPTIONS = {"image": ("size", "mode", "unreadable"), "sound": ("rate", "seconds", "unreadable")}
OF_TABLES = ("target", "task", "files", "folder")  # for a table of file names
PEEK = 1 << 16  # bytes of a table in which the name of a file shows
ALWAYS = ("name", "expect_size", "expect_sha256")


@dataclass(frozen=True)
class Files:
    """Files to read, what they are called in answers, and their targets if there are any."""

    name: str
    kind: str
    paths: tuple[Path, ...]
    ids: tuple[str, ...]
    targets: np.ndarray | None = None
    classes: tuple[str, ...] = ()
    parts: Mapping[str, np.ndarray] | None = None
    notes: tuple[str, ...] = ()


def kind_of(source: object) -> str | None:
    """ "image" or "sound" if a source is a file, a folder or a list of files of them; else None.

    >>> kind_of(["a.png", "b.jpg"]), kind_of("bark.wav"), kind_of("digits"), kind_of([[1.0, 2.0]])
    ('image', 'sound', None, None)
    """
    if isinstance(source, Waveform):
        return "sound"
    if isinstance(source, (list, tuple)) and source and all(isinstance(one, (str, os.PathLike)) for one in source):
        kinds = [next((k for k, ends in ENDINGS.items() if str(one).lower().endswith(ends)), None) for one in source]
        return kinds[0] if kinds[0] is not None and len(set(kinds)) == 1 else None
    if type(source).__module__.startswith("PIL."):
        return "image"
    return media_kind(source)


def are_media(source: object, inputs: Settings | None = None) -> bool:
    """Whether a source is read here: files of images or sounds, and tables that name them.

    With the `inputs` of a run on images or sounds also what is in memory: one example, and if the run was trained on
    files any array of them.
    """
    if isinstance(source, str) and source in {entry.name for entry in list_datasets()}:
        return False
    if kind_of(source) is not None or table_of_files(source) is not None:
        return True
    form = form_of(inputs or {})
    if form is None or isinstance(source, (str, os.PathLike, DatasetRecord, tuple)) or is_table_source(source):
        return False
    shape = tuple(np.shape(source)) if hasattr(source, "shape") else ()
    one = form.shape if isinstance(form, ImageForm) else (form.length, 1)
    return bool(shape) and (bool((inputs or {}).get("files")) or shape in (one, one[:-1]))


def read(settings: Settings) -> DatasetRecord:
    """The images or sounds of a folder with a subfolder for each class, of a file or of a list of files.

    >>> import tempfile, wonderland as wl
    >>> root = wl.data.write_sounds(tempfile.mkdtemp(), 10)
    >>> read({"name": str(root), "seconds": 0.25}).features.shape
    (10, 2000, 1)

    All become arrays of one shape, the record's `form`: what was inferred, or `size` and `mode` of images, `rate` and
    `seconds` of sounds. Its `notes` say what was decided.
    """
    if (table := table_of_files(settings.get("name"))) is not None:
        return of_table(table, settings)
    return _record(_found(settings, classes=True), settings, None)


def look(settings: Settings) -> Form:
    """The form that `read` would give the images or sounds of a source, by their headers and some of them."""
    source = settings.get("name")
    if (table := table_of_files(source)) is not None:
        column, kind = file_column(table, settings.get("files")) or ("", "")
        files = Files(table.name, kind, *_named(table, column, _base(settings)))
    else:
        files = _found(settings, classes=False)
    return _form(files, settings)[0]


def read_again(settings: Settings, run: Settings, targets: bool) -> DatasetRecord:
    """Other images or sounds, as those of a run were read: `run` is what it keeps about its data."""
    inputs, classes = run.get("inputs"), run.get("class_names")
    form = form_of(inputs if isinstance(inputs, Mapping) else {})
    if form is None:
        raise InputError(
            f"{shown(settings.get('name'))}: the run was not trained on images or sounds.",
            "data like those of its training",
        )
    names = tuple(map(str, classes)) if isinstance(classes, (list, tuple)) else ()
    return read_alike(settings, form, targets, names)


def read_alike(settings: Settings, form: Form, targets: bool, classes: tuple[str, ...] = ()) -> DatasetRecord:
    """Other images or sounds in the form of those of a run: files, folders, arrays, one of them or many.

    `classes` are those of the run; without them targets in a table are numbers.
    """
    source = settings.get("name")
    if (table := table_of_files(source)) is not None:
        return of_table(table, settings, form, targets, classes)
    kind = "image" if isinstance(form, ImageForm) else "sound"
    found = kind_of(source)
    if found is not None and found != kind:
        raise InputError(
            f"{shown(source)} is of {found}s, the run is of {kind}s.", f"{kind}s like those of the training"
        )
    if found is None or isinstance(source, Waveform) or type(source).__module__.startswith("PIL."):
        return DatasetRecord(_of_memory(source, form), name="data", form=form.to_dict())
    return _record(_found(settings, classes=targets), settings, form)


def read_inputs(source: object, about: Settings) -> tuple[np.ndarray, tuple[str, ...]]:
    """Inputs of a run that keeps `about` its data how images or sounds were read, and the names of their files."""
    record = read_again({"name": source}, about, targets=False)
    return record.features, record.ids


def form_of(inputs: Settings) -> Form | None:
    """The form of the images or sounds of a run, by what it keeps of its inputs; None if they were others."""
    kept = inputs.get("form")
    if not isinstance(kept, Mapping):
        return None
    return SoundForm.of_dict(kept) if kept.get("kind") == "sound" else ImageForm.of_dict(kept)


def form_of_record(record: DatasetRecord) -> Mapping[str, object] | None:
    """How the images or sounds of a record became arrays of one shape; of arrays of images, what they are."""
    x = record.features
    if record.form is not None:
        return record.form
    if x.ndim == 4 or (x.ndim == 3 and x.dtype == np.uint8):
        return ImageForm((x.shape[1], x.shape[2]), x.shape[3] if x.ndim == 4 else 1, str(x.dtype)).to_dict()
    return None


def like_those_of(settings: Settings, data: Settings) -> dict[str, object]:
    """The settings of other data for a run on images or sounds: their form is the run's, and not to be chosen."""
    for option in ("size", "mode", "rate", "seconds"):
        if option in data:
            raise InputError(f"data.{option}: the run settles it.", f"without data.{option}")
    ours = ("target", "task", "files", "folder", "unreadable") if "name" in data else ()
    table = not isinstance(data.get("name"), str) or kind_of(data.get("name")) is None
    return {**{k: settings[k] for k in ours if k in settings and (table or k == "unreadable")}, **data}


# --- which files


def _found(settings: Settings, classes: bool) -> Files:
    source = settings.get("name")
    kind = kind_of(source)
    if kind is None:
        raise InputError(f"{shown(source)} is no folder of images or sounds.", "a folder, a file, or a list of files")
    _refuse_others(settings, kind, ())
    if isinstance(source, (list, tuple)):
        return Files(
            f"{len(source)} {kind}s", kind, tuple(as_path("read", one) for one in source), tuple(map(str, source))
        )
    path = as_path("read", source)  # type: ignore[arg-type]  # a path, for it has a kind
    if not path.is_dir():
        return Files(str(path), kind, (path,), (path.name,))
    listing = list_media(path, kind, classes)
    if classes and listing.labels is None:
        raise InputError(
            f"{str(path)!r} has {len(listing.files):,} {kind}s and no subfolders: there is nothing to predict.",
            "a subfolder for each class, or a CSV of file names and labels",
        )
    return _of_listing(str(source), kind, listing)


def _of_listing(name: str, kind: str, found: Listing) -> Files:
    labels = None if found.labels is None else np.array(found.labels, np.int64)
    return Files(name, kind, found.files, found.names, labels, found.classes, found.parts, found.notes)


def table_of_files(source: object) -> Table | None:
    """The table of a source that is one, and has a column of file names; others are not read further than needed."""
    if not is_table_source(source):
        return None
    if isinstance(source, (str, os.PathLike)) and source != "-":
        try:
            with open(os.path.expanduser(source), "rb") as file:
                head = file.read(PEEK)
            head = gunzip_head(head, PEEK) if head.startswith(GZIP) else head
        except (OSError, ValueError):
            return None  # its reader will say what is wrong
        if not any(ending.encode() in head.lower() for kind in ENDINGS for ending in ENDINGS[kind]):
            return None
    elif source == "-":
        return None
    table = read_table(source)
    return table if file_column(table) is not None else None


def file_column(table: Table, column: object = None) -> tuple[str, str] | None:
    """The column of a table that names images or sounds, and which of them: the one that is said, or by looking."""
    names = table.names if column is None else (str(column),)
    for name in names:
        if table[name].kind == "text" and (kind := guess_kind(table[name]).kind) in OPTIONS:
            return name, kind
    if column is not None:
        raise InputError(f"{table.name}: the column {column!r} does not name images or sounds.", "another data.files")
    return None


def of_table(
    table: Table, settings: Settings, form: Form | None = None, targets: bool = True, classes: tuple[str, ...] = ()
) -> DatasetRecord:
    """The images or sounds that a column of a table names, with the column `target` if targets are wanted.

    Names are as seen from the folder of the table, or from `data.folder`. With a `form`, that of a run, targets are
    some of its `classes`, or numbers if it has none.
    """
    found = file_column(table, settings.get("files"))
    if found is None:
        raise InputError(f"{table.name}: no column names images or sounds.", "--set data.files=COLUMN")
    column, kind = found
    _refuse_others(settings, kind, OF_TABLES)
    paths, ids = _named(table, column, _base(settings))
    rest = [name for name in table.names if name != column]
    if not targets:
        return _record(Files(table.name, kind, paths, ids), settings, form)
    target = settings.get("target", rest[0] if len(rest) == 1 else None)
    if target is None:
        raise InputError(
            f"{table.name}: there is nothing to predict.", f"--set data.target=, one of {', '.join(rest) or 'a column'}"
        )
    if form is None:
        schema = infer_target(table, str(target), str(settings.get("task", "auto")))
    else:
        schema = TargetSchema(str(target), classes or None, (0.0,) * len(classes))
    unused = ", ".join(name for name in rest if name != target)
    notes = (f"beside the {kind}s nobody looks at the columns {unused}.",) if unused else ()
    return _record(
        Files(table.name, kind, paths, ids, schema.encode(table), schema.classes or (), notes=notes), settings, form
    )


def _base(settings: Settings) -> Path:
    """The folder from which the files of a table are seen."""
    folder, source = settings.get("folder"), settings.get("name")
    if folder is not None:
        return as_path("data.folder", str(folder))
    return Path(source).expanduser().parent if isinstance(source, (str, os.PathLike)) and source != "-" else Path()


def _named(table: Table, column: str, base: Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The files that a column names; all that are not there are named in one error."""
    values = table[column]
    if (empty := np.flatnonzero(values.missing)).size:
        raise InputError(
            f"{table.name}: {len(empty)} rows name no file in {column!r}, the first in {table.place(int(empty[0]))}.",
            "rows with a file",
        )
    ids = tuple(str(text) for text in values.strings())
    paths = tuple(base / name for name in ids)
    if missing := [i for i, path in enumerate(paths) if not path.is_file()]:
        some = ", ".join(f"{ids[i]} ({table.place(i)})" for i in missing[:3]) + (" ..." if len(missing) > 3 else "")
        raise InputError(
            f"{table.name}: {len(missing):,} of {len(paths):,} files are not in {str(base) or '.'!r}: {some}.",
            "the files, or --set data.folder= where they are",
        )
    return paths, ids


def _refuse_others(settings: Settings, kind: str, more: Iterable[str]) -> None:
    known = (*OPTIONS[kind], *more)
    if unknown := [name for name in settings if name not in (*known, *ALWAYS)]:
        raise InputError(f"data.{unknown[0]}: {kind}s are read without it.", f"one of {', '.join(known)}")


# --- from files to arrays


def _record(files: Files, settings: Settings, form: Form | None) -> DatasetRecord:
    unreadable, new = str(settings.get("unreadable", "error")), form is None
    x, kept, form, decided = _arrays(files, settings, form, unreadable)
    count, what = len(x), files.kind if len(x) == 1 else f"{files.kind}s"
    y = None if files.targets is None else files.targets[kept]
    notes = [*files.notes, *decided]
    if new:
        notes.insert(0, f"{count:,} {what} of {form}{_of_classes(y, files.classes)}.")
    ids = tuple(files.ids[i] for i in kept)
    if y is not None:
        notes += copies(x, y, ids, files.classes)
    place = {int(old): new for new, old in enumerate(kept)}
    parts = {
        name: np.array([place[i] for i in rows.tolist() if i in place], np.int64)
        for name, rows in (files.parts or {}).items()
    }
    return DatasetRecord(
        x, y, files.name, target_names=files.classes, parts=parts, ids=ids, form=form.to_dict(), notes=tuple(notes)
    )


def _arrays(
    files: Files, settings: Settings, form: Form | None, unreadable: str
) -> tuple[np.ndarray, np.ndarray, Form, tuple[str, ...]]:
    """The arrays, the places of their files, the form, and notes."""
    form, decided = _form(files, settings) if form is None else (form, ())
    if isinstance(form, ImageForm):
        x, kept, notes = read_images(files.paths, form, unreadable)
    else:
        x, kept, notes = read_sounds(files.paths, form, unreadable)
    return x, kept, form, (*decided, *notes)


def _form(files: Files, settings: Settings) -> tuple[Form, tuple[str, ...]]:
    """What files are made to be, and notes: what the settings say, else what is found."""
    if files.kind == "image":
        return images.choose_form(files.paths, as_size(settings.get("size")), _mode(settings.get("mode")))
    return sounds.choose_form(files.paths, *as_rate_and_seconds(settings.get("rate"), settings.get("seconds")))


def _mode(mode: object) -> str | None:
    if mode is not None and mode not in MODES:
        raise InputError(f"data.mode = {mode!r}.", "RGB (colour) or L (grey)")
    return None if mode is None else str(mode)


def _of_classes(y: np.ndarray | None, classes: Sequence[str]) -> str:
    if y is None or not classes:
        return ""
    counts = np.bincount(y, minlength=len(classes))
    some = ", ".join(f"{name} {count:,}" for name, count in list(zip(classes, counts, strict=True))[:6])
    return f", {len(classes)} classes: {some}{' ...' if len(classes) > 6 else ''}"


def _of_memory(source: object, form: Form) -> np.ndarray:
    """Arrays, an image of Pillow or a sound with its rate, as inputs."""
    if isinstance(source, Waveform):
        assert isinstance(form, SoundForm)
        mixed = np.asarray(source.samples, np.float32).reshape(len(source.samples), -1).mean(axis=1)
        return as_sounds(at_rate(mixed, source.sample_rate, form.rate), form)
    if type(source).__module__.startswith("PIL."):
        assert isinstance(form, ImageForm)
        return as_images(np.asarray(source.convert("RGB" if form.channels == 3 else "L")), form)  # type: ignore[attr-defined]
    if isinstance(source, (str, os.PathLike)) or source is None:
        raise InputError(
            f"{shown(source)} has no {'images' if isinstance(form, ImageForm) else 'sounds'}.",
            f"a folder or files that end in {', '.join(IMAGES[:3])} or .wav",
        )
    array = source.numpy() if isinstance(source, Tensor) else np.asarray(source)
    return as_images(array, form) if isinstance(form, ImageForm) else as_sounds(array, form)


# --- copies


def _digests(x: np.ndarray) -> list[bytes]:
    return [hashlib.blake2b(np.ascontiguousarray(row).data, digest_size=16).digest() for row in x]


def copies(x: np.ndarray, y: np.ndarray, ids: Sequence[str], classes: Sequence[str]) -> list[str]:
    """What is to be said of examples that are there twice: how many, and whether their classes agree."""
    first: dict[bytes, int] = {}
    same: list[tuple[int, int]] = []
    other: list[tuple[int, int]] = []
    for i, digest in enumerate(_digests(x)):
        j = first.setdefault(digest, i)
        if j != i:
            (other if classes and y[i] != y[j] else same).append((j, i))
    notes = []
    for found, where in ((same, ""), (other, " in another class")):
        if found:
            j, i = found[0]
            many = "is a copy of another" if len(found) == 1 else "are copies of others"
            notes.append(f"{len(found):,} of {len(x):,} {many}{where}, such as {ids[i]} of {ids[j]}.")
    return notes


def leaks(x: np.ndarray, ids: Sequence[str], known: np.ndarray, asked: np.ndarray) -> list[str]:
    """A note if examples to test with are copies of some to train on: the results are then too good.

    >>> leaks(np.array([[1], [2], [1]]), ["a", "b", "c"], np.array([0, 1]), np.array([2]))
    ['1 of 1 examples to test with is a copy of one to train on, such as c of a: results look better than they are.']
    """
    seen = {digest: int(i) for digest, i in zip(_digests(x[known]), known, strict=True)}
    found = [(seen[d], int(i)) for d, i in zip(_digests(x[asked]), asked, strict=True) if d in seen]
    if not found:
        return []
    j, i = found[0]
    many = "is a copy of one" if len(found) == 1 else "are copies of some"
    return [
        f"{len(found):,} of {len(asked):,} examples to test with {many} to train on, such as {ids[i]} of {ids[j]}: "
        f"results look better than they are."
    ]
