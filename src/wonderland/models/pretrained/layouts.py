"""From the names and layouts of a file to ours and back: a table per family, and one function for each direction.

PyTorch keeps the matrix of a linear layer as (out, in), ours is (in, out); its kernels are (out, in, *kernel), ours
(*kernel, in, out). GPT-2 has one matrix for queries, keys and values, (in, 3 out), where ours are three.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...core.dtypes import DType, is_floating
from ...core.errors import DTypeError, FileError, ShapeError
from ...core.tensor import Tensor, wrap
from .settings import Settings, SettingsTable

__all__ = [
    "COLUMN_BLOCKS",
    "KERNEL",
    "ONE_ROW",
    "PATCHES",
    "SAME",
    "TRANSPOSED",
    "Ends",
    "Entry",
    "Family",
    "Layout",
    "check_names",
    "each",
    "entries",
    "linear",
    "norm",
    "only",
    "read_state",
    "same",
    "settle",
    "write_state",
    "written",
]

Arrays = list[np.ndarray]


@dataclass(frozen=True)
class Layout:
    """How the arrays of a file become ours, and ours those of a file; `axes` is what a file's tensor must have."""

    name: str
    read: Callable[[Arrays], Arrays]
    write: Callable[[Arrays, Settings], Arrays]
    axes: tuple[int, ...] | None = None  # any number, if None


def _each(f: Callable[[np.ndarray], np.ndarray]) -> Callable[[Arrays], Arrays]:
    return lambda arrays: [f(array) for array in arrays]


def _back(f: Callable[[np.ndarray], np.ndarray]) -> Callable[[Arrays, Settings], Arrays]:
    return lambda arrays, settings: [f(array) for array in arrays]


SAME = Layout("same", list, lambda arrays, _: arrays)
TRANSPOSED = Layout("(out, in) to (in, out)", _each(np.transpose), _back(np.transpose), (2,))
KERNEL = Layout(
    "(out, in, *kernel) to (*kernel, in, out)",
    _each(lambda w: w.transpose(*range(2, w.ndim), 1, 0)),
    _back(lambda w: w.transpose(w.ndim - 1, w.ndim - 2, *range(w.ndim - 2))),
    (3, 4, 5),
)
COLUMN_BLOCKS = Layout(  # equal blocks of the last axis, as many as there are names
    "(..., 3 out) to three (..., out)",
    lambda arrays: np.split(arrays[0], 3, axis=-1) if arrays[0].shape[-1] % 3 == 0 else [],
    lambda arrays, _: [np.concatenate(arrays, axis=-1)],
    (1, 2),
)
ONE_ROW = Layout("(1, ...) to (...)", _each(lambda w: w[0]), _back(lambda w: w[None]))


def _kernels(arrays: Arrays, settings: Settings) -> Arrays:
    p = settings["patch"]
    assert isinstance(p, int)
    return [w.reshape(p, p, -1, w.shape[-1]).transpose(3, 2, 0, 1) for w in arrays]


PATCHES = Layout(  # a convolution whose stride is its size, as a matrix
    "(out, in, p, p) to (p p in, out)", _each(lambda w: w.transpose(2, 3, 1, 0).reshape(-1, len(w))), _kernels, (4,)
)


@dataclass(frozen=True)
class Entry:
    """One row of a table: names in the file, our names, and the layout between them.

    `{i}` in names counts from 0 to the setting `over`; the row holds where all settings in `when` have these values.
    """

    theirs: tuple[str, ...]
    ours: tuple[str, ...]
    layout: Layout = SAME
    over: str | None = None
    when: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True)
class Ends:
    """Of which parts of a file a model is made: those that it must have, and those that it may have."""

    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Family:
    """Everything about models that share a `model_type`: which classes, which settings, which tensors.

    `architectures` maps the class names of `transformers` to what the model ends in.
    `prefix` stands before the names of all tensors but those of the ends; files without it are read, too.
    `parts` are settings that the file decides: each is true if the file has this tensor and the model, by `ends`, uses
    it. `body` stands before our names of all tensors but those of heads; a model without a head is the body alone.
    `untied` is the tensor that makes a head of its own, if the file and not the config says whether it is tied.
    `aliases` are older parts of names, `copies` tensors that repeat another one when weights are tied, and `ignored`
    tensors that are no weights, with the reason.
    """

    model_type: str
    architectures: Mapping[str, str]
    settings: SettingsTable
    tensors: tuple[Entry, ...]
    prefix: str = ""
    body: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    ends: Mapping[str, Ends] = field(default_factory=dict)
    untied: str | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)


# --- rows


def same(theirs: str, ours: str) -> tuple[Entry, ...]:
    return (Entry((theirs,), (ours,)),)


def norm(theirs: str, ours: str, bias: bool = True) -> tuple[Entry, ...]:
    """A norm: its weight, and its bias if it has one."""
    parts = ("weight", "bias") if bias else ("weight",)
    return tuple(Entry((f"{theirs}.{part}",), (f"{ours}.{part}",)) for part in parts)


def linear(theirs: str, ours: str, bias: bool | str = True) -> tuple[Entry, ...]:
    """A linear layer; `bias` is whether it has one, or the setting that says so."""
    weight = Entry((f"{theirs}.weight",), (f"{ours}.weight",), TRANSPOSED)
    added = Entry((f"{theirs}.bias",), (f"{ours}.bias",))
    if isinstance(bias, str):
        return weight, replace(added, when=((bias, True),))
    return (weight, added) if bias else (weight,)


def each(over: str, *rows: Sequence[Entry]) -> tuple[Entry, ...]:
    """Rows that hold for every block."""
    return tuple(replace(entry, over=over) for group in rows for entry in group)


def only(rows: Sequence[Entry], **when: object) -> tuple[Entry, ...]:
    """Rows that hold where settings have some values."""
    return tuple(replace(entry, when=(*entry.when, *when.items())) for entry in rows)


def entries(family: Family, settings: Settings) -> Iterator[Entry]:
    """The rows for a model with these settings, one for each block."""
    for entry in family.tensors:
        if any(settings[name] != value for name, value in entry.when):
            continue
        if entry.over is None:
            yield entry
            continue
        count = settings[entry.over]
        assert isinstance(count, int)
        for i in range(count):
            theirs, ours = (tuple(n.replace("{i}", str(i)) for n in names) for names in (entry.theirs, entry.ours))
            yield replace(entry, theirs=theirs, ours=ours, over=None)


# --- both directions


def settle(
    family: Family, ends: str, settings: Settings, tensors: Mapping[str, Tensor], source: str = "the folder"
) -> Settings:
    """The settings, with those that the file decides: which heads it has, and whether one is tied."""
    found = _renamed(family, set(family.parts.values()), tensors)
    used = family.ends.get(ends, Ends())
    for part in used.needs:
        if family.parts[part] not in found:
            raise FileError(
                f"from_pretrained: {source} has no tensor {family.parts[part]!r}, but config.json names a model "
                "with it.",
                "weights and config.json of the same model",
            )
    settled = settings | {
        part: name in found and part in (*used.needs, *used.takes) for part, name in family.parts.items()
    }
    if family.untied is not None:
        head, original = found.get(family.untied), found.get(family.copies[family.untied])
        alike = head is None or (original is not None and np.array_equal(np.asarray(head), np.asarray(original)))
        settled["tied"] = alike
    return settled


def check_names(family: Family, settings: Settings, tensors: Mapping[str, Tensor], source: str = "the folder") -> None:
    """Refuse a file that lacks tensors of the model, or that has tensors of which the family knows nothing."""
    wanted = {name for row in entries(family, settings) for name in row.theirs}
    _check_names(family, settings, wanted, _renamed(family, wanted, tensors), source)


def read_state(
    family: Family,
    settings: Settings,
    tensors: Mapping[str, Tensor],
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    source: str = "the folder",
    dtype: DType | None = None,
) -> dict[str, Tensor]:
    """The tensors of a file under our names, in our layout, for `load_state_dict`.

    `shapes` are those of the model's own tensors, if they are to be compared, and `source` is for messages. Floating
    numbers become `dtype`, if there is one. What is given is copied, so the file's own memory can be let go.
    """
    rows = list(entries(family, settings))
    wanted = {name for row in rows for name in row.theirs}
    found = _renamed(family, wanted, tensors)
    _check_names(family, settings, wanted, found, source)
    state: dict[str, Tensor] = {}
    for row in rows:
        arrays = [np.asarray(found[name]) for name in row.theirs]
        for name, array in zip(row.ours, _read(row, arrays, source), strict=True):
            if shapes is not None:
                _check_shape(row, name, array.shape, shapes, source)
            if not is_floating(array.dtype):
                raise DTypeError(
                    f"from_pretrained: {row.theirs[0]!r} in {source} is of {array.dtype}.",
                    "weights in float32, float16 or bfloat16; without quantisation",
                )
            state[name] = wrap(np.array(array, dtype=dtype, order="C"))
    return state


def write_state(family: Family, settings: Settings, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our tensors under the names and in the layout of a file, the inverse of `read_state`."""
    return {name: value for rows in written(family, settings, state) for name, value in rows.items()}


def written(family: Family, settings: Settings, state: Mapping[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """What `write_state` gives, row after row of the table, so that not all of it need be in memory."""
    for row in entries(family, settings):
        if missing := [name for name in row.ours if name not in state]:
            raise ShapeError(
                f"save_pretrained: the model has no tensor {missing[0]!r} for {row.theirs[0]!r}.",
                f"a model of the family {family.model_type!r} with these settings",
            )
        arrays = row.layout.write([np.asarray(state[name]) for name in row.ours], settings)
        yield {n: wrap(np.ascontiguousarray(a)) for n, a in zip(row.theirs, arrays, strict=True)}


def _renamed(family: Family, wanted: set[str], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors under today's names: old parts replaced, and the prefix put before names that lack it."""
    found: dict[str, Tensor] = {}
    for name, value in tensors.items():
        for old, new in family.aliases.items():
            name = name.replace(old, new)
        longer = family.prefix + name
        known = longer in wanted or longer in family.copies or _ignored(family, longer)
        name = longer if known and name not in wanted else name
        if name in found:
            raise FileError(
                f"from_pretrained: two tensors of the folder are {name!r} under today's names.",
                "weights that were saved at once",
            )
        found[name] = value
    return found


def _ignored(family: Family, name: str) -> bool:
    """Whether a name is one of those without weights, whatever the number of its block."""
    plain = ".".join("{i}" if part.isdigit() else part for part in name.split("."))
    return plain in family.ignored


def _check_names(
    family: Family, settings: Settings, wanted: set[str], found: Mapping[str, Tensor], source: str
) -> None:
    if missing := sorted(wanted - set(found)):
        raise FileError(
            f"from_pretrained: {source} has no tensor {missing[0]!r}"
            + (f" and lacks {len(missing) - 1} more" if len(missing) > 1 else "")
            + f", which a {family.model_type!r} model with its config.json has.",
            "weights and config.json of the same model",
        )
    unused = {name for row in entries(family, settings | dict.fromkeys(family.parts, True)) for name in row.theirs}
    strange = [name for name in sorted(set(found) - wanted - unused) if not _ignored(family, name)]
    for name in list(strange):
        if name not in family.copies or (original := family.copies[name]) not in found:
            continue
        strange.remove(name)
        if not np.array_equal(np.asarray(found[name]), np.asarray(found[original])):
            raise FileError(
                f"from_pretrained: {source} has {name!r} with other numbers than {original!r}, but its config.json "
                "says that they are tied.",
                '"tie_word_embeddings": false in config.json, if the weights are right',
            )
    if strange:
        raise FileError(
            f"from_pretrained: {source} has a tensor {strange[0]!r}"
            + (f" and {len(strange) - 1} more" if len(strange) > 1 else "")
            + f" that a {family.model_type!r} model with its config.json has not.",
            "weights and config.json of the same model; without adapters or quantisation",
        )


def _read(row: Entry, arrays: Arrays, source: str) -> Arrays:
    for name, array in zip(row.theirs, arrays, strict=True):
        if row.layout.axes is not None and array.ndim not in row.layout.axes:
            raise ShapeError(
                f"from_pretrained: {name!r} in {source} has the shape {array.shape}.",
                f"{' or '.join(map(str, row.layout.axes))} axes: it is turned from {row.layout.name}",
            )
        if row.layout is ONE_ROW and (not array.ndim or array.shape[0] != 1):
            raise ShapeError(f"from_pretrained: {name!r} in {source} has the shape {array.shape}.", "(1, ...)")
    made = row.layout.read(arrays)
    if len(made) != len(row.ours):
        raise ShapeError(
            f"from_pretrained: {row.theirs[0]!r} in {source} has the shape {arrays[0].shape}.",
            f"a last axis of {len(row.ours)} equal parts, for {', '.join(row.ours)}",
        )
    return made


def _check_shape(
    row: Entry, name: str, shape: tuple[int, ...], shapes: Mapping[str, tuple[int, ...]], source: str
) -> None:
    if name not in shapes:
        raise ShapeError(
            f"from_pretrained: {row.theirs[0]!r} in {source} is {name!r} here, which the model does not have.",
            "a model with the settings of config.json",
        )
    if tuple(shapes[name]) != shape:
        size = f"{math.prod(shape):,} numbers for {math.prod(shapes[name]):,}"
        raise ShapeError(
            f"from_pretrained: {row.theirs[0]!r} in {source} gives {name!r} the shape {shape}, but by config.json the "
            f"model has {tuple(shapes[name])} there ({size}).",
            "weights and config.json of the same model",
        )
