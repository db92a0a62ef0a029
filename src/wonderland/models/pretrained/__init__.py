"""Folders of Hugging Face: reading them, and tables of names and layouts per family of models. Nothing is executed."""

from .checkpoint import Checkpoint, read_checkpoint
from .families import FAMILIES, find_family
from .folder import Folder, read_folder
from .layouts import Family, check_names, read_state, settle, write_state
from .loading import from_pretrained
from .saving import save_pretrained
from .settings import IgnoredSettingWarning, read_labels, read_settings, write_settings

__all__ = [
    "from_pretrained",
    "save_pretrained",
    "Checkpoint",
    "read_checkpoint",
    "Folder",
    "read_folder",
    "Family",
    "FAMILIES",
    "find_family",
    "read_settings",
    "write_settings",
    "read_labels",
    "IgnoredSettingWarning",
    "settle",
    "check_names",
    "read_state",
    "write_state",
]
