"""A folder as Hugging Face publishes it: config.json, and one or several safetensors with their index.

config.json                        the family ("model_type"), its sizes and choices
generation_config.json             if there: which tokens begin and end a text
preprocessor_config.json           if there: what becomes of images or sounds before the model sees them
model.safetensors                  the tensors, or
model.safetensors.index.json       {"weight_map": {"a tensor": "model-00001-of-00003.safetensors", ...}}, and those
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...core.arguments import shown
from ...core.errors import FileError
from ...core.tensor import Tensor
from ...storage.parsing import parse_json
from ...storage.safetensors import load_mapped

CONFIG = "config.json"
GENERATION = "generation_config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PREPROCESSOR = "preprocessor_config.json"
LONGEST_CONFIG = 1 << 20  # bytes; those of large models have some thousand
LONGEST_INDEX = 1 << 26  # a hundred bytes per tensor
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack")

__all__ = ["Folder", "read_folder", "read_table"]

Json = dict[str, object]


@dataclass(frozen=True)
class Folder:
    """What a folder says before its tensors are read."""

    path: Path
    config: Json
    generation: Json

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by the names in the files, as views of these: to be copied, see `load_mapped`."""
        single, index = self.path / WEIGHTS, self.path / INDEX
        if single.is_file():
            return load_mapped(single)
        if index.is_file():
            return _joined(self.path, _weight_map(index))
        raise _without_weights(self.path)


def read_folder(path: str | os.PathLike[str]) -> Folder:
    """The settings of a folder; `tensors()` of the result reads its weights.

    >>> import json, tempfile, wonderland as wl
    >>> from wonderland.models.pretrained import read_folder
    >>> with tempfile.TemporaryDirectory() as path:
    ...     wl.save({"wte.weight": wl.zeros((5, 2))}, path + "/model.safetensors")
    ...     with open(path + "/config.json", "w") as file:
    ...         json.dump({"model_type": "gpt2", "n_embd": 2}, file)
    ...     folder = read_folder(path)
    ...     list(folder.tensors())
    ['wte.weight']
    >>> folder.config["n_embd"]
    2
    """
    home = Path(path)
    if not home.is_dir():
        what = "is a file" if home.exists() else "does not exist"
        raise FileError(
            f"from_pretrained: the folder {home} {what}.",
            "a folder on this machine with config.json and model.safetensors; download one from its hub first",
        )
    if not (home / CONFIG).is_file():
        raise FileError(f"from_pretrained: {home} has no {CONFIG}.", "the whole folder of a published model")
    generation = home / GENERATION
    return Folder(
        home,
        read_table(home / CONFIG, LONGEST_CONFIG),
        read_table(generation, LONGEST_CONFIG) if generation.is_file() else {},
    )


def read_table(path: Path, longest: int) -> Json:
    """The table in a JSON file of at most some bytes."""
    try:
        with path.open("rb") as file:
            text = file.read(longest + 1)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.", "a file that can be read") from None
    if len(text) > longest:
        raise FileError(f"{path} has more than {longest:,} bytes.", "the file that was published")
    try:
        found = parse_json(text)
    except ValueError as error:
        raise FileError(f"{path} is not JSON: {error}.", "another copy of the file") from None
    if not isinstance(found, dict):
        raise FileError(f"{path} holds {shown(found)} and no table.", "another copy of the file")
    return found


def _weight_map(index: Path) -> dict[str, str]:
    """Which tensor lies in which file of the folder."""
    found = read_table(index, LONGEST_INDEX).get("weight_map")
    if not isinstance(found, dict) or not found:
        raise FileError(f"{index} has no weight_map, which says where each tensor is.", "another copy of the file")
    for name, file in found.items():
        # a name and no path: an index must not lead out of its folder
        if not isinstance(file, str) or not file.endswith(".safetensors") or file != os.path.basename(file):
            raise FileError(
                f"{index}: the tensor {name!r} is said to be in {shown(file)}, which is no safetensors file here.",
                "an index of files such as model-00001-of-00002.safetensors, beside it",
            )
        if "\\" in file or "\0" in file:
            raise FileError(f"{index}: {shown(file)} is not the name of a file.", "another copy of the index")
    return found


def _joined(home: Path, where: Mapping[str, str]) -> dict[str, Tensor]:
    files = sorted(set(where.values()))
    if missing := [file for file in files if not (home / file).is_file()]:
        raise FileError(
            f"from_pretrained: {home} lacks {_several(missing)} of the {len(files)} files that {INDEX} names.",
            "download the missing files into the folder",
        )
    found: dict[str, Tensor] = {}
    for file in files:
        part = load_mapped(home / file)
        wanted = [name for name, place in where.items() if place == file]
        if absent := [name for name in wanted if name not in part]:
            raise FileError(
                f"from_pretrained: {INDEX} says that {_several(absent)} is in {file}, which does not have it.",
                "index and shards of the same download",
            )
        found |= {name: part[name] for name in wanted}
    return found


def _without_weights(home: Path) -> FileError:
    other = [name for name in _PICKLES if (home / name).exists()]
    if other:
        return FileError(
            f"from_pretrained: {home} has its weights as {other[0]}, a kind that is not read here.",
            "the safetensors files of the same model; those in pickles (.bin) can execute code when they are opened",
        )
    return FileError(f"from_pretrained: {home} has neither {WEIGHTS} nor {INDEX}.", "the whole folder")


def _several(names: list[str]) -> str:
    """A few names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(repr(name) for name in names[:3]) + more
