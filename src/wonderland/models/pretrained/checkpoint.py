"""A whole folder in our terms: family, settings, and a state for `load_state_dict`."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ...core.tensor import Tensor
from .families import find_family
from .folder import CONFIG, Folder, read_folder
from .layouts import Family, read_state, settle
from .settings import Settings, read_settings

__all__ = ["Checkpoint", "read_checkpoint"]


@dataclass(frozen=True)
class Checkpoint:
    """What a folder holds; `ends` is the head that its config names."""

    folder: Folder
    family: Family
    ends: str
    settings: Settings
    state: dict[str, Tensor]


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a folder of Hugging Face, without a model to put it into.

    The errors name the file, the key or tensor, and what to do: for a folder without config.json or weights, a
    missing shard, an unknown family, settings that no model here has, and tensors that are missing or left over.
    """
    folder = read_folder(path)
    source = str(folder.path / CONFIG)
    family, ends = find_family(folder.config, source)
    settings = read_settings(family.settings, folder.config, source)
    tensors = folder.tensors()
    settings = settle(family, ends, settings, tensors, str(folder.path))
    return Checkpoint(folder, family, ends, settings, read_state(family, settings, tensors, source=str(folder.path)))
