"""One door to all data: `load` takes the name of a dataset or a path, `list` says which names there are."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from ..core.errors import FileError, InputError, ShapeError
from ..core.typing import PathLike
from ..storage.bounds import gunzip_head
from . import builtin
from .builtin.mnist import has_mnist, mnist
from .builtin.scikit import NAMES, from_sklearn
from .builtin.shapes import SHAPES
from .builtin.sounds import RATE, SOUNDS
from .formats.cifar import PIXELS, cifar10, cifar100, read_cifar10, read_cifar100
from .formats.delimited import read_csv
from .formats.files import GZIP, as_path, damaged
from .formats.folders import ImageFolder
from .formats.idx import is_idx, read_idx
from .formats.media_files import media_kind
from .formats.numpy_files import npz_record, read_npy
from .formats.parquet import read_parquet
from .formats.sounds import SoundFolder, SoundForm
from .formats.tables import read_records
from .record import DatasetRecord
from .tables.reading import is_table_source


class Entry(NamedTuple):
    """A dataset that `load` knows by name; `kind` is "bundled", "generated" or "sklearn"."""

    name: str
    kind: str
    description: str


_BUNDLED: dict[str, tuple[Callable[..., DatasetRecord], str]] = {
    "digits": (builtin.digits, "1,797 handwritten digits, 8 x 8 pixels"),
    "iris": (builtin.iris, "150 flowers, 4 lengths, 3 kinds"),
}
# name: what makes it, a description, and the names of the classes
_GENERATED: dict[str, tuple[Callable[..., tuple[np.ndarray, ...]], str, tuple[str, ...]]] = {
    "bimodal": (builtin.make_bimodal, "a target that is +1 or -1 whatever x is (regression)", ()),
    "blobs": (builtin.make_blobs, "normal clouds around centres", ()),
    "circles": (builtin.make_circles, "a circle around another", ("outer", "inner")),
    "heteroscedastic": (builtin.make_heteroscedastic, "a sine whose noise grows (regression)", ()),
    "imbalanced": (builtin.make_imbalanced, "two clouds, one with 5 % of the examples", ()),
    "income_rule": (builtin.make_income_rule, "income 1500 is low, except if age < 30", ("not low", "low")),
    "moons": (builtin.make_moons, "two half circles that reach into each other", ("upper", "lower")),
    "outliers": (builtin.make_outliers, "a line with 10 % outliers (regression)", ()),
    "parity": (builtin.make_parity, "d bits and their sum modulo 2", ("even", "odd")),
    "regression": (builtin.make_regression, "a linear function with noise (regression)", ()),
    "shapes": (builtin.make_shapes, "images of squares, discs, triangles and crosses", SHAPES),
    "sine": (builtin.make_sine, "a sine with noise (regression)", ()),
    "sounds": (builtin.make_sounds, "half a second of tones, rising, falling, hissing, clicking", SOUNDS),
    "spirals": (builtin.make_spirals, "arms that wind around the origin", ()),
    "swiss_roll": (builtin.make_swiss_roll, "a rolled sheet in space (regression)", ()),
    "xor": (builtin.make_xor, "exclusive or of two bits", ("equal", "different")),
}


def list_datasets(kind: str | None = None) -> list[Entry]:
    """The datasets that `load` knows by name, all of them or those of a kind. Also called `wl.data.list`.

    >>> import wonderland as wl
    >>> [entry.name for entry in wl.data.list("bundled")]
    ['digits', 'iris']
    """
    entries = [Entry(name, "bundled", text) for name, (_, text) in _BUNDLED.items()]
    entries += [Entry(name, "generated", text) for name, (_, text, _) in _GENERATED.items()]
    entries += [Entry(name, "sklearn", text) for name, text in NAMES.items()]
    kinds = sorted({entry.kind for entry in entries})
    if kind is not None and kind not in kinds:
        raise InputError(f"list: there is no kind {kind!r}.", f"one of {', '.join(kinds)}")
    return [entry for entry in entries if kind in (None, entry.kind)]


def load(source: object, **options: Any) -> Any:
    """A dataset by its name, from a file or folder, or of a table in memory; the options are those of what reads it.

    >>> import wonderland as wl
    >>> wl.data.load("moons", n_samples=50, noise=0.1)
    DatasetRecord('moons', features (50, 2) float32, targets (50,) int64, 2 classes)
    >>> len(wl.data.load("digits").test)
    360

    | source | is read by |
    |---|---|
    | a name of `wl.data.list()` | `digits`, `make_moons`, `from_sklearn` ... |
    | CSV, TSV (also .gz) | `read_csv`, with `target=` the column to predict |
    | Parquet | `read_parquet` |
    | JSON lines, JSON, Arrow, a data frame, columns by name, "-" | `read_table`; the options are those of `read_csv` |
    | `.npz` | `read_npz`; `features=` and `targets=` name its arrays, if these are not called x and y |
    | `.npy`, IDX | `read_npy`, `read_idx`; `targets=` is the path of the labels |
    | CIFAR's `.bin` | `read_cifar10` or `read_cifar100`, by the length of its records |
    | a folder | `mnist`, `cifar10` or `cifar100` if it holds their files, else `ImageFolder` or `SoundFolder` |

    Files are told apart by their content, then by their ending. `expect_size=` and `expect_sha256=` are checked first.
    """
    return reader_of(source)(**options)


def reader_of(source: object) -> Callable[..., Any]:
    """The function of options alone that reads a source as `load` does; its signature says which options it has."""
    if (not isinstance(source, (str, os.PathLike)) or source == "-") and is_table_source(source):
        return partial(read_records, source)
    if isinstance(source, str):
        if source in _BUNDLED:
            return _BUNDLED[source][0]
        if source in _GENERATED:
            return wraps(_GENERATED[source][0])(partial(_generated, source))
        if source in NAMES:
            return partial(from_sklearn, source)
        if not any(mark in source for mark in "./\\~") and not os.path.exists(source):
            names = ", ".join(entry.name for entry in list_datasets())
            raise InputError(f"load: there is no dataset or file {source!r}.", f"a path, or one of {names}")
    path = as_path("load", cast(PathLike, source))  # which refuses what is no path
    return partial((_folder_reader if path.is_dir() else _file_reader)(path), path)


def _generated(name: str, **options: object) -> DatasetRecord:
    make, text, classes = _GENERATED[name]
    if options.pop("coef", False):
        raise InputError(f"load: {name!r} as a dataset has no place for coef.", "wl.data.make_regression(coef=True)")
    X, y = make(**options)
    if not classes and y.dtype.kind == "i":
        classes = tuple(str(label) for label in range(int(y.max()) + 1))
    form = SoundForm(RATE, X.shape[1]).to_dict() if name == "sounds" else None
    return DatasetRecord(X, y, name, target_names=classes, description=text, form=form)


def _folder_reader(path: Path) -> Callable[..., Any]:
    if has_mnist(path):
        return mnist
    if (path / "test_batch.bin").exists():
        return cifar10
    if (path / "test.bin").exists():
        return cifar100
    return SoundFolder if media_kind(path) == "sound" else ImageFolder


def _file_reader(path: Path) -> Callable[..., Any]:
    head, ending = _head(path), path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if head.startswith(b"PAR1"):
        return read_parquet
    if head.startswith(b"PK\3\4"):
        return npz_record
    if head.startswith(b"\x93NUMPY"):
        return partial(_single, read_npy)
    if is_idx(head):
        return partial(_single, read_idx)
    if ending in ("csv", "tsv", "txt", "data"):
        return read_csv
    if ending == "bin":
        return _cifar
    if is_table_source(path):
        return read_records
    raise InputError(
        f"load: {str(path)!r} is of no known kind (it begins with {head[:4]!r}).",
        "CSV, JSON lines, Parquet, Arrow, NPY, NPZ, IDX, CIFAR's .bin, or a folder of images or sounds",
    )


def _cifar(path: Path, **checks: Any) -> DatasetRecord:
    # 30,730,000 and 30,740,000 bytes: the number of records tells the two kinds apart
    fine = path.stat().st_size % (PIXELS + 1) != 0
    return DatasetRecord(*(read_cifar100 if fine else read_cifar10)(path, **checks), name=str(path))


def _head(path: Path) -> bytes:
    """The first bytes of a file, unpacked if it is packed."""
    try:
        with path.open("rb") as file:
            head = file.read(1 << 16)
        return gunzip_head(head, 16) if head.startswith(GZIP) else head[:16]
    except OSError as error:
        raise FileError(f"load: cannot read {str(path)!r}: {error.strerror}.", "a file that you may read") from None
    except ValueError as error:
        raise damaged("load", path, "a whole gzip file", error) from None


def _single(
    read: Callable[..., np.ndarray], path: Path, *, targets: PathLike | None = None, **checks: Any
) -> DatasetRecord:
    """One array per file: features here, targets in another."""
    features = read(path, **checks)
    if features.ndim == 0:
        raise ShapeError(f"load: {str(path)!r} holds one number.", "an array whose first axis counts examples")
    if targets is None:
        return DatasetRecord(features, name=str(path))
    labels = load(targets).features
    return DatasetRecord(features, labels.astype(np.int64) if labels.dtype.kind in "iu" else labels, str(path))
