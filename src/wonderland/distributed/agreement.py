"""Whether processes that are to compute as one have the same program and the same settings."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterator, Mapping

import numpy as np

from ..core import __version__
from ..core.arguments import shown
from ..core.errors import ProcessError
from ..core.tensor import Distant, Far
from .group import Group

PACKAGE = os.path.dirname(os.path.dirname(__file__))
# what a machine has for itself, and what does not change results
_OWN = ("WONDERLAND_CACHE", "WONDERLAND_THREADS", "WONDERLAND_COORDINATOR", "WONDERLAND_LAUNCHED")


def agree(group: Group, what: str, facts: Mapping[str, object]) -> None:
    """Compare facts by name; `ProcessError` in every process, with the first difference, if there is one."""
    if group.size == 1:
        return
    told = group.gather({name: str(value) for name, value in facts.items()})
    for name in dict.fromkeys(name for one in told for name in one):
        values = [one.get(name, "nothing") for one in told]
        if len(set(values)) > 1:
            other = next(rank for rank, value in enumerate(values) if value != values[0])
            raise ProcessError(
                f"{what}: the processes differ in {name}: {shown(values[0])} in process 0, {shown(values[other])} in "
                f"process {other}.",
                "the same code, settings and files for all of them",
            )


def of_program() -> dict[str, str]:
    """What the program is: versions, the command, settings of the environment, checksums of its files."""
    facts = {
        "the version of Wonderland": __version__,
        "the version of Python": platform.python_version(),
        "the version of NumPy": np.__version__,
        "the command": " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]]),
        "the files of Wonderland": _digest(_files_of(PACKAGE)),
    }
    facts |= {name: text for name, text in os.environ.items() if name.startswith("WONDERLAND_") and name not in _OWN}
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and file.endswith(".py") and not file.startswith((sys.prefix, sys.base_prefix, PACKAGE)):
            facts[f"the file {os.path.basename(file)} ({name})"] = _digest([file])
    return facts


def of_tensors(tensors: Mapping[str, object]) -> dict[str, str]:
    """A checksum for every tensor, with its shape and dtype."""
    found = {}
    for name, tensor in tensors.items():
        if isinstance(tensor, Distant) and tensor.far is not None and not tensor.far.is_fully_replicated:
            # its parts were compared when they came to where they are
            found[name] = f"{tensor.dtype}{list(tensor.shape)} on {tensor.device}: {_placement(tensor.far)}"
            continue
        array = np.asarray(tensor)
        found[name] = f"{array.dtype}{list(array.shape)} {hashlib.sha256(array.tobytes()).hexdigest()[:12]}"
    return found


def _placement(far: Far) -> str:
    return str(getattr(far.sharding, "spec", ""))


def _files_of(folder: str) -> Iterator[str]:
    for where, folders, names in os.walk(folder):
        folders.sort()
        yield from (os.path.join(where, name) for name in sorted(names) if name.endswith(".py"))


def _digest(files: Iterator[str] | list[str]) -> str:
    sha = hashlib.sha256()
    for path in files:
        with open(path, "rb") as file:
            sha.update(file.read())
    return sha.hexdigest()[:12]
