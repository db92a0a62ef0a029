"""Checkpoints: all that a run needs to go on as if it had never stopped.

A checkpoint is two files in a folder: `step-00000120.safetensors` with the tensors, and `step-00000120.json`, a small
readable record of everything else. The record is written last and has the checksums of both, so a checkpoint is there
whole or not at all, whenever the process dies; one that was damaged later is refused by name, and the one before it
serves. Nothing in either file is ever executed.

Tensors that are on several devices, or of which each process has a part, go to one file for each process that has
something (storage/slices.py), and the record is their index. What is read is whole again, whoever wrote it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ..core import __version__
from ..core.arguments import shown
from ..core.errors import FileError, InputError, WonderlandError
from ..core.tensor import Distant, Tensor, wrap
from ..distributed.group import Group
from ..storage.atomic import write_atomically
from ..storage.parsing import parse_json
from ..storage.safetensors import decode, encode
from ..storage.slices import Json, OnMesh, Sliced, SlicedSet, joined, write_slices

WHOLE, IN_SLICES = 1, 2  # formats
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class CheckpointWarning(UserWarning):
    """A damaged checkpoint was passed over."""


@dataclass(frozen=True)
class Checkpoint:
    """The contents of a checkpoint: tensors by name, and plain data."""

    path: str  # of the record
    tensors: dict[str, Tensor]
    record: dict[str, Any]

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names begin with the prefix and a dot, without them."""
        return {name[len(prefix) + 1 :]: t for name, t in self.tensors.items() if name.startswith(f"{prefix}.")}


class CheckpointFolder:
    """A folder of checkpoints; the newest `keep` of them stay, and those with names such as "best".

    >>> import tempfile, wonderland as wl
    >>> with tempfile.TemporaryDirectory() as path:
    ...     folder = wl.train.CheckpointFolder(path, keep=2)
    ...     for step in (10, 20, 30):
    ...         _ = folder.save(f"step-{step:08}", {"w": wl.tensor([1.0 * step])}, {"step": step})
    ...     folder.names(), folder.newest().record["step"]
    (['step-00000020', 'step-00000030'], 30)
    """

    def __init__(self, path: str | os.PathLike[str], keep: int = 2) -> None:
        if keep < 1:
            raise InputError(f"checkpoints: keep={keep}.", "at least one; two let a damaged file be replaced")
        self.path, self.keep = os.fspath(path), keep

    def names(self) -> list[str]:
        """The steps that have a checkpoint, oldest first."""
        try:
            files = os.listdir(self.path)
        except FileNotFoundError:
            return []
        return sorted(name[:-5] for name in files if name.startswith("step-") and name.endswith(".json"))

    def save(
        self,
        name: str,
        tensors: Mapping[str, Tensor | Sliced],
        record: Mapping[str, object],
        group: Group | None = None,
    ) -> str:
        """Write a checkpoint, remove what is too old, and return the path of its record.

        All processes of a group call it. The first writes the record and the tensors that all have; of those that are
        `Sliced` each writes what it holds. If one cannot, the error is raised in all of them, and what was there before
        is unchanged.
        """
        if not _NAME.fullmatch(name):
            raise InputError(f"checkpoints: the name {name!r}.", "letters, digits, dots, dashes and underscores")
        group = Group() if group is None else group
        tensors = {key: _held(tensor) for key, tensor in tensors.items()}
        path = os.path.join(self.path, f"{name}.json")
        index = None
        if any(isinstance(tensor, Sliced) for tensor in tensors.values()):
            index = self._write_slices(name, tensors, group)

        def write() -> None:
            entry = self._write_whole(name, tensors) if index is None else index
            kind = WHOLE if index is None else IN_SLICES
            full = {"format": kind, "wonderland": __version__, "tensors": entry, **record}
            write_atomically(path, json.dumps({**full, "sha256": _digest(full)}, indent=1))
            self._tidy()

        group.by_first("checkpoints", write)
        return path

    def _write_whole(self, name: str, tensors: Mapping[str, Tensor | Sliced]) -> Json:
        pieces = encode({key: tensor for key, tensor in tensors.items() if not isinstance(tensor, Sliced)})  # none is
        sha = hashlib.sha256()
        for piece in pieces:
            sha.update(piece)
        file = f"{name}.safetensors"
        if not name.startswith("step-"):  # a name that is used again must not lose its old file to a crash in between
            file = f"{name}-{sha.hexdigest()[:12]}.safetensors"
        write_atomically(os.path.join(self.path, file), pieces)
        return {"file": file, "bytes": sum(map(len, pieces)), "sha256": sha.hexdigest()}

    def _write_slices(self, name: str, tensors: Mapping[str, Tensor | Sliced], group: Group) -> Json:
        """Write what this process holds, in a file that no other checkpoint has; the index of all."""
        stem = f"{name}-{group.gather(secrets.token_hex(6))[0]}"
        held = {
            key: t
            if isinstance(t, Sliced)
            else Sliced.whole(t.numpy())
            if group.rank == 0
            else Sliced(t.shape, t.dtype, [])
            for key, t in tensors.items()
        }
        try:
            part = group.by_all("checkpoints", lambda: write_slices(self.path, stem, group.rank, held))
            return joined(group.gather(part))
        except WonderlandError:  # there will be no record that names the file
            _remove(os.path.join(self.path, f"{stem}-{group.rank:05}.safetensors"))
            raise

    def load(self, name: str) -> Checkpoint:
        """A checkpoint by name; a damaged one raises `FileError`."""
        return read(os.path.join(self.path, f"{name}.json"))

    def newest(self) -> Checkpoint | None:
        """The newest sound checkpoint; for a damaged one there is a warning, and the one before it is taken."""
        return next(self.sound(), None)

    def sound(self) -> Iterator[Checkpoint]:
        """The sound checkpoints, newest first; for each damaged one there is a warning."""
        for name in reversed(self.names()):
            try:
                found = self.load(name)
            except FileError as error:
                pass_over(error)
            else:
                yield found

    def _tidy(self) -> None:
        """Remove all but the newest checkpoints, and tensors that no record names."""
        for name in self.names()[: -self.keep]:
            _remove(os.path.join(self.path, f"{name}.json"))  # first the record: then there is no checkpoint
        kept: set[str] = set()
        for name in os.listdir(self.path):
            if name.endswith(".json"):
                with contextlib.suppress(FileError):
                    entry = _record(os.path.join(self.path, name))["tensors"]
                    kept.update(entry["files"] if "files" in entry else [entry["file"]])
        for name in os.listdir(self.path):
            whole = re.fullmatch(r"(step-\d+|.+-[0-9a-f]{12}(-\d{5})?)\.safetensors", name)
            if (whole and name not in kept) or name.endswith(".part"):
                _remove(os.path.join(self.path, name))


def _held(tensor: Tensor | Sliced) -> Tensor | Sliced:
    """A tensor; one that is on several devices as the slices that they hold, so that none of it comes here twice."""
    if isinstance(tensor, Distant) and tensor.far is not None and len(tensor.far.sharding.device_set) > 1:
        return Sliced.of_shards(cast(OnMesh, tensor.far))
    return tensor


def pass_over(error: FileError) -> None:
    """Warn of a checkpoint that cannot be used."""
    reason = str(error).splitlines()[0]
    warnings.warn(f"{reason} The checkpoint before it is used.", CheckpointWarning, stacklevel=3)


def read(path: str | os.PathLike[str]) -> Checkpoint:
    """A checkpoint by the path of its record, or of a folder, of which it is the newest."""
    path = os.fspath(path)
    if os.path.isdir(path):
        found = CheckpointFolder(path).newest()
        if found is None:
            raise FileError(f"there is no sound checkpoint in {path}.", "a folder that a run wrote to")
        return found
    record = _record(path)
    entry = record["tensors"]
    if record["format"] == IN_SLICES:
        parts = SlicedSet(os.path.dirname(path), entry, f"the checkpoint {path}")
        return Checkpoint(path, {name: wrap(parts.read(name)) for name in parts}, record)
    file = os.path.join(os.path.dirname(path), entry["file"])
    try:
        with open(file, "rb") as stream:
            contents = stream.read()
    except OSError as error:
        raise FileError(
            f"the checkpoint {path} has lost its tensors: {file}: {error.strerror}.", "another one"
        ) from None
    if len(contents) != entry["bytes"]:
        raise FileError(
            f"{file} has {len(contents)} bytes instead of {entry['bytes']}; the checkpoint is not used.", "another one"
        )
    if hashlib.sha256(contents).hexdigest() != entry["sha256"]:
        raise FileError(f"{file} was changed after it was written; the checkpoint is not used.", "another one")
    return Checkpoint(path, decode(contents, file)[0], record)


def _record(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            record = parse_json(file.read())
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.", "a checkpoint that exists") from None
    except ValueError as error:
        raise FileError(f"{path} is not the record of a checkpoint: it is no JSON ({error}).", "another one") from None
    if not isinstance(record, dict) or not {"format", "tensors", "sha256"} <= record.keys():
        raise FileError(f"{path} is not the record of a checkpoint.", "another one")
    if record["format"] not in (WHOLE, IN_SLICES):
        raise FileError(
            f"{path} has the format {shown(record['format'])}, this version reads {WHOLE} and {IN_SLICES}.",
            "a newer version",
        )
    if record.pop("sha256") != _digest(record):
        raise FileError(f"{path} was changed after it was written; the checkpoint is not used.", "another one")
    entry = record["tensors"]
    if record["format"] == IN_SLICES and isinstance(entry, dict) and isinstance(entry.get("files"), dict):
        return record  # the rest is looked at when it is read
    if (
        not isinstance(entry, dict)
        or [type(entry.get(key)) for key in ("file", "bytes", "sha256")] != [str, int, str]
        or not _NAME.fullmatch(entry["file"])
    ):
        raise FileError(f"{path} does not say where its tensors are; the checkpoint is not used.", "another one")
    return record


def _digest(record: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):  # another process may tidy the same folder
        os.remove(path)
