"""Tensors on disk: files that appear whole or not at all, and that never execute code when they are read."""

from .atomic import write_atomically
from .locking import LockWarning, locked
from .safetensors import load, save

__all__ = ["save", "load", "write_atomically", "locked", "LockWarning"]
